//! Replaces files of a worktree as one batch: after a crash, the next batch completes the one that was interrupted.
//!
//! The contents before and after are first written to a journal in the git directory, with one atomic rename. Then each
//! file is replaced by a rename. If a step fails, the journal is reversed and the files get their earlier contents back.
//! All batches of a worktree hold one lock, and no path passes through a symbolic link or into another repository.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bstr::ByteSlice;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::beneath::{self, Root};
use super::journal::{JOURNAL, JournalFolder};
use super::open::{Repository, shell_quoted};
use super::worktree::WorkTreeError;
use crate::model::{ErrorKind, Explain, Explanation, RepoPath, random_bytes};
use crate::sidecar::{decode, encode, failpoint, make_like};

/// Name prefix of a file that is being written next to the one that it replaces.
const TEMPORARY: &str = ".codescout-edit-";

/// A file with its content before and after; `None` if it does not exist.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rewrite {
    /// The path.
    pub path: Vec<u8>,
    /// The content before.
    pub from: Option<Vec<u8>>,
    /// The content after.
    pub to: Option<Vec<u8>>,
    /// The permissions of a removed file, for restoring it. Set by [`Rewriter::apply`].
    pub mode: Option<u32>,
}

/// A batch that is being applied.
#[derive(Debug, Serialize, Deserialize)]
struct Journal {
    /// Makes the names of temporary files unique.
    number: u64,
    rewrites: Vec<Rewrite>,
}

/// An error from rewriting files.
#[derive(Debug, thiserror::Error)]
pub enum RewriteError {
    /// The path may not be written.
    #[error("{} is not written: {why}", .path.to_text())]
    Refused {
        /// The path.
        path: RepoPath,
        /// The reason.
        why: &'static str,
    },
    /// The content of a file is not the one that the batch replaces.
    #[error("{} was changed meanwhile", .path.to_text())]
    Changed {
        /// The path.
        path: RepoPath,
    },
    /// Another process is editing files.
    #[error("another process is editing files of this worktree (it holds {})", .path.display())]
    Busy {
        /// The path of the lock.
        path: PathBuf,
    },
    /// The process was interrupted while it waited for the lock.
    #[error("interrupted")]
    Interrupted,
    /// The journal cannot be read or written.
    #[error("cannot use {}", .path.display())]
    Journal {
        /// The path of the journal or its folder.
        path: PathBuf,
        /// The underlying error.
        #[source]
        source: io::Error,
    },
    /// There is a journal, and it is not known that this user's codescout wrote it.
    #[error("an interrupted edit is not completed: {} is not recorded as written by you", .path.display())]
    NotRecorded {
        /// The path of the journal.
        path: PathBuf,
        /// False if there is no folder for records.
        has_records: bool,
    },
    /// A file cannot be read or written.
    #[error("cannot write {}", .path.to_text())]
    Io {
        /// The path.
        path: RepoPath,
        /// The underlying error.
        #[source]
        source: io::Error,
    },
    /// A step failed, and so did restoring the files that were already replaced.
    #[error("{error}, and the other files cannot be restored: {undoing}")]
    Halfway {
        /// The first error.
        error: Box<RewriteError>,
        /// The error from restoring.
        undoing: Box<RewriteError>,
    },
    /// There is no worktree, or it cannot be opened.
    #[error(transparent)]
    WorkTree(#[from] WorkTreeError),
}

impl Explain for RewriteError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Interrupted => Explanation::of_kind(ErrorKind::Interrupted),
            Self::Changed { .. } => Explanation::hinting("nothing was changed; read the file again"),
            Self::Io { .. } => Explanation::hinting("nothing was changed"),
            Self::Halfway { .. } => Explanation::hinting("the next edit restores them first"),
            Self::Journal { path, .. } if path.ends_with(JOURNAL) => Explanation::hinting(format!(
                "if it is damaged, remove {} and check git diff",
                path.display()
            )),
            Self::NotRecorded { path, has_records } => Explanation::hinting(not_recorded_hint(path, *has_records)),
            Self::WorkTree(error) => error.explain(),
            _ => Explanation::default(),
        }
    }
}

fn not_recorded_hint(path: &Path, has_records: bool) -> String {
    let reason = if has_records {
        "it is damaged or came with an archive"
    } else {
        "neither XDG_STATE_HOME nor HOME is set, so there is no record"
    };
    let path = shell_quoted(&path.to_string_lossy());
    format!("nothing was changed, and {reason}. See what it would write: less -f {path}. Then remove it: rm {path}")
}

/// Rewrites files of one worktree. Holds the lock of the worktree.
pub struct Rewriter {
    root: Root,
    journal: JournalFolder,
    completed: Vec<RepoPath>,
}

impl Repository {
    /// Locks the worktree against other rewriters and completes a batch that was interrupted. Waits up to `patience`
    /// for the lock. `records` is the user's folder that records which journals this user wrote.
    pub fn rewriter(
        &self,
        records: Option<&Path>,
        patience: Duration,
        interrupt: &AtomicBool,
    ) -> Result<Rewriter, RewriteError> {
        let root = self.root()?;
        let journal = JournalFolder::lock(self, records, patience, interrupt)?;
        failpoint::hit("edit.locked").map_err(|source| journal.error(source))?;
        let mut rewriter = Rewriter {
            root,
            journal,
            completed: Vec::new(),
        };
        rewriter.complete()?;
        Ok(rewriter)
    }
}

impl Rewriter {
    /// Returns the files of an earlier batch that was interrupted, and is complete now.
    pub fn completed(&self) -> &[RepoPath] {
        &self.completed
    }

    /// Replaces the files, all or none.
    pub fn apply(&mut self, mut rewrites: Vec<Rewrite>) -> Result<(), RewriteError> {
        if rewrites.is_empty() {
            return Ok(());
        }
        for rewrite in &mut rewrites {
            if self.content(&rewrite.path)? != rewrite.from {
                return Err(changed(&rewrite.path));
            }
            if rewrite.to.is_none() {
                let (folder, name) = self.parent(&rewrite.path)?;
                rewrite.mode = beneath::stat(folder.as_fd(), name).ok().map(|stat| stat.st_mode);
            }
        }
        let journal = Journal {
            number: u64::from_le_bytes(random_bytes().map_err(|source| self.journal.error(source))?),
            rewrites,
        };
        self.journal.write(&encode(&journal))?;
        if let Err(error) = self.run(&journal, Otherwise::Fail) {
            let undone = self.undo(journal);
            return Err(match undone {
                Ok(()) => error,
                Err(undoing) => RewriteError::Halfway {
                    error: Box::new(error),
                    undoing: Box::new(undoing),
                },
            });
        }
        self.journal.forget()
    }

    /// Completes the batch in the journal, if there is one.
    fn complete(&mut self) -> Result<(), RewriteError> {
        let Some(bytes) = self.journal.read()? else {
            self.journal.forget_record();
            return Ok(());
        };
        let damaged = |error| self.journal.error(io::Error::new(io::ErrorKind::InvalidData, error));
        let journal: Journal = decode(&bytes).map_err(damaged)?;
        self.run(&journal, Otherwise::Skip)?;
        self.completed = journal
            .rewrites
            .iter()
            .map(|rewrite| RepoPath::new(rewrite.path.as_slice()))
            .collect();
        self.journal.forget()
    }

    /// Restores the files that a batch has replaced.
    fn undo(&self, journal: Journal) -> Result<(), RewriteError> {
        let back = |rewrite: Rewrite| Rewrite {
            from: rewrite.to,
            to: rewrite.from,
            ..rewrite
        };
        let journal = Journal {
            rewrites: journal.rewrites.into_iter().map(back).collect(),
            ..journal
        };
        self.journal.write(&encode(&journal))?;
        self.run(&journal, Otherwise::Skip)?;
        self.journal.forget()
    }

    /// Gives each file its content after the batch. Files that already have it are left alone.
    fn run(&self, journal: &Journal, otherwise: Otherwise) -> Result<(), RewriteError> {
        for (at, rewrite) in journal.rewrites.iter().enumerate() {
            let temporary = format!("{TEMPORARY}{:016x}-{at}", journal.number);
            let found = self.content(&rewrite.path);
            match (otherwise, found) {
                (_, Ok(found)) if found == rewrite.to => self.discard(&rewrite.path, &temporary),
                (_, Ok(found)) if found == rewrite.from => {
                    if let Err(error) = self.replace(rewrite, &temporary) {
                        if found.is_none() {
                            self.remove_empty_folders(&rewrite.path);
                        }
                        return Err(error);
                    }
                }
                // Another program has changed the file since, so its content is the newer one.
                (Otherwise::Skip, _) => self.discard(&rewrite.path, &temporary),
                (Otherwise::Fail, Ok(_)) => return Err(changed(&rewrite.path)),
                (Otherwise::Fail, Err(error)) => return Err(error),
            }
        }
        failpoint::hit("edit.done").map_err(|source| self.journal.error(source))
    }

    fn replace(&self, rewrite: &Rewrite, temporary: &str) -> Result<(), RewriteError> {
        let path = rewrite.path.as_slice();
        let io_error = |source| RewriteError::Io {
            path: RepoPath::new(path),
            source,
        };
        if rewrite.to.is_some() && rewrite.from.is_none() {
            self.make_folders(path).map_err(io_error)?;
        }
        let (folder, name) = self.parent(path)?;
        let _temporary = Temporary {
            folder: &folder,
            name: temporary,
        };
        if let Some(bytes) = &rewrite.to {
            let old = beneath::stat(folder.as_fd(), name).ok();
            write_temporary(&folder, temporary, bytes, old.as_ref(), rewrite.mode).map_err(io_error)?;
            failpoint::hit("edit.written").map_err(io_error)?;
        }
        // The content may have changed while the new one was written.
        if self.content(path)? != rewrite.from {
            return Err(changed(path));
        }
        match (&rewrite.from, &rewrite.to) {
            (None, Some(_)) => rename_to_new(&folder, temporary, name).map_err(io_error)?,
            (Some(_), Some(_)) => {
                rustix::fs::renameat(&folder, temporary, &folder, name).map_err(|errno| io_error(errno.into()))?;
            }
            (_, None) => {
                rustix::fs::unlinkat(&folder, name, AtFlags::empty()).map_err(|errno| io_error(errno.into()))?;
                self.remove_empty_folders(path);
            }
        }
        failpoint::hit("edit.replaced").map_err(io_error)?;
        rustix::fs::fsync(&folder).map_err(|errno| io_error(errno.into()))
    }

    /// Returns the content of a regular file; `None` if there is nothing at the path.
    fn content(&self, path: &[u8]) -> Result<Option<Vec<u8>>, RewriteError> {
        let io_error = |source| RewriteError::Io {
            path: RepoPath::new(path),
            source,
        };
        let (folder, name) = match self.parent(path) {
            Err(RewriteError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
            found => found?,
        };
        let file = match beneath::open_file(folder.as_fd(), name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
                return Err(refused(path, "it is a symbolic link"));
            }
            file => file.map_err(io_error)?,
        };
        let mut file = File::from(file);
        if !file.metadata().map_err(io_error)?.is_file() {
            return Err(refused(path, "it is not a regular file"));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(io_error)?;
        Ok(Some(bytes))
    }

    /// Opens the folder of a file. Fails if it belongs to another repository, or if a file at this path would make a
    /// folder a git directory, whose `config` can name programs.
    fn parent<'p>(&self, path: &'p [u8]) -> Result<(OwnedFd, &'p [u8]), RewriteError> {
        check_path(path)?;
        let io_error = |error: io::Error| match error.raw_os_error().map(Errno::from_raw_os_error) {
            _ if beneath::is_of_git(&error) => refused(path, "it belongs to git or to codescout"),
            Some(Errno::LOOP | Errno::NOTDIR) => refused(path, "a folder of it is a symbolic link or a file"),
            _ => RewriteError::Io {
                path: RepoPath::new(path),
                source: error,
            },
        };
        let mut why = None;
        let found = self.root.parent_with(path, |folder, next| {
            let has = |name: &[u8]| beneath::stat(folder.as_fd(), name).is_ok();
            if has(b".git") {
                why = Some("it is in another repository");
            } else if beneath::is_git_dir(|name| name.eq_ignore_ascii_case(next) || has(name)) {
                why = Some("it would make its folder a git directory");
            }
            why.map_or(Ok(()), |why| Err(io::Error::other(why)))
        });
        match why {
            Some(why) => Err(refused(path, why)),
            None => found.map_err(io_error),
        }
    }

    fn make_folders(&self, path: &[u8]) -> io::Result<()> {
        for slash in path.find_iter(b"/") {
            let (parent, name) = self.root.parent_of(&path[..slash])?;
            match rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o777)) {
                Ok(()) => rustix::fs::fsync(&parent)?,
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// Removes the folders that a removed file leaves empty, as git does.
    fn remove_empty_folders(&self, path: &[u8]) {
        for slash in path.rfind_iter(b"/") {
            let removed = self
                .root
                .parent_of(&path[..slash])
                .map(|(parent, name)| rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR));
            if !matches!(removed, Ok(Ok(()))) {
                return;
            }
        }
    }

    /// Removes the temporary file that a killed process may have left for a step.
    fn discard(&self, path: &[u8], temporary: &str) {
        if let Ok((folder, _)) = self.parent(path) {
            let _ = rustix::fs::unlinkat(&folder, temporary, AtFlags::empty());
        }
    }
}

/// A temporary file, which is removed from the folder in which it was written, even if that has another path by then.
struct Temporary<'a> {
    folder: &'a OwnedFd,
    name: &'a str,
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        // It does not exist if it has been renamed.
        let _ = rustix::fs::unlinkat(self.folder, self.name, AtFlags::empty());
    }
}

/// Determines what to do with a file that has neither content.
#[derive(Clone, Copy)]
enum Otherwise {
    Fail,
    Skip,
}

/// Maximum lengths of a path and of a name in it, without the final zero. git opens a file by its whole path. Source:
/// `PATH_MAX` and `NAME_MAX` in Linux `uapi/linux/limits.h` and Apple's `sys/syslimits.h`.
const MAX_PATH_BYTES: usize = if cfg!(target_os = "linux") { 4095 } else { 1023 };
const MAX_NAME_BYTES: usize = 255;

/// Fails unless `path` is the path of a file that may be written: git can open it, it has no control characters, stays
/// inside the worktree, and enters no git directory and no sidecar, whatever the file system makes of case and ignored
/// characters.
pub fn check_path(path: &[u8]) -> Result<(), RewriteError> {
    if path.len() > MAX_PATH_BYTES {
        return Err(refused(path, "the path is too long for git to open it"));
    }
    if path.to_str().is_ok_and(|text| text.contains(char::is_control)) || path.iter().any(u8::is_ascii_control) {
        return Err(refused(path, "the path contains control characters"));
    }
    for name in path.split(|byte| *byte == b'/') {
        match name {
            b"" | b"." | b".." => return Err(refused(path, "the path is not inside the worktree")),
            name if name.split_str("\\").any(is_own) => return Err(refused(path, "it belongs to git or to codescout")),
            name if name.len() > MAX_NAME_BYTES => {
                return Err(refused(path, "a name in the path is longer than 255 bytes"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns true for a name that some file system equates with `.git` or `.codescout`: HFS+ ignores some characters,
/// NTFS final dots and blanks and the stream after a colon, and has short names. Source: git's `is_hfs_dotgit` and
/// `is_ntfs_dotgit`.
fn is_own(name: &[u8]) -> bool {
    let is_ignored = |letter: &char| matches!(letter, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    let visible: String = name
        .to_str_lossy()
        .chars()
        .filter(|letter| !is_ignored(letter))
        .collect();
    let visible = visible
        .split(':')
        .next()
        .unwrap_or_default()
        .trim_end_matches(['.', ' ']);
    [".git", "git~1", ".codescout", "codesc~1"]
        .iter()
        .any(|own| visible.eq_ignore_ascii_case(own))
        || visible.starts_with(TEMPORARY)
}

/// Returns true if a file is in a directory of git or codescout below `root`. Both paths are without links.
pub fn belongs_to_git(root: &Path, file: &Path) -> bool {
    let below = file.strip_prefix(root).unwrap_or(file);
    let mut folders = file.ancestors().skip(1).take_while(|folder| *folder != root);
    below.iter().any(|name| is_own(name.as_bytes()))
        || folders
            .any(|folder| beneath::is_git_dir(|name| folder.join(OsStr::from_bytes(name)).symlink_metadata().is_ok()))
}

fn refused(path: &[u8], why: &'static str) -> RewriteError {
    RewriteError::Refused {
        path: RepoPath::new(path),
        why,
    }
}

fn changed(path: &[u8]) -> RewriteError {
    RewriteError::Changed {
        path: RepoPath::new(path),
    }
}

/// Writes a file that will replace another one, with the mode and the owner of that one, or with the given mode.
fn write_temporary(
    folder: &OwnedFd,
    name: &str,
    bytes: &[u8],
    old: Option<&Stat>,
    mode: Option<u32>,
) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let create = || rustix::fs::openat(folder, name, flags, Mode::from_raw_mode(0o666));
    let created = match create() {
        // A killed process has left it.
        Err(Errno::EXIST) => {
            rustix::fs::unlinkat(folder, name, AtFlags::empty())?;
            create()?
        }
        created => created?,
    };
    let mut file = File::from(created);
    if let Some(old) = old.filter(|old| FileType::from_raw_mode(old.st_mode) == FileType::RegularFile) {
        make_like(&file, old)?;
    } else if let Some(mode) = mode {
        rustix::fs::fchmod(&file, Mode::from_raw_mode(mode & 0o777))?;
    }
    let (first, second) = bytes.split_at(if cfg!(debug_assertions) { bytes.len() / 2 } else { 0 });
    file.write_all(first)?;
    failpoint::hit("edit.half")?;
    file.write_all(second)?;
    file.sync_all()
}

/// Renames a file to a name that must not exist.
fn rename_to_new(folder: &OwnedFd, temporary: &str, name: &[u8]) -> io::Result<()> {
    match rustix::fs::renameat_with(folder, temporary, folder, name, RenameFlags::NOREPLACE) {
        // Some file systems cannot do that. The caller has just checked that the name is free.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Ok(rustix::fs::renameat(folder, temporary, folder, name)?),
        renamed => Ok(renamed?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_git_and_codescout_are_recognised_in_every_form() {
        for own in [
            ".git",
            ".GIT",
            ".Git.",
            ".git ",
            ".g\u{200c}it",
            "git~1",
            ".git::$INDEX_ALLOCATION",
            ".CodeScout",
            ".git\\x",
            "a\\.git\\x",
            ".git\\..\\x",
            "x\\git~1",
        ] {
            assert!(check_path(format!("a/{own}/b").as_bytes()).is_err(), "{own}");
        }
        for wrong in ["", "/a", "a//b", "a/../b", "./a", "a\nb", "a\u{85}b", "a/"] {
            assert!(check_path(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
        let long = |n_bytes: usize| "a/".repeat(n_bytes / 2) + &"b"[..n_bytes % 2];
        for wrong in [
            long(12_001),
            long(MAX_PATH_BYTES + 2),
            "a".repeat(256),
            format!("a/{}/b", "\u{e9}".repeat(128)),
        ] {
            assert!(check_path(wrong.as_bytes()).is_err(), "{wrong}");
        }
        for fine in [
            long(MAX_PATH_BYTES),
            "a".repeat(255),
            format!("a/{}/b", "a".repeat(255)),
        ] {
            check_path(fine.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        }
        for fine in [
            "a",
            "a\\b",
            ".github/x",
            ".gitignore",
            "a/.codescout.toml",
            "caf\u{e9}",
            "a b",
        ] {
            check_path(fine.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        }
    }
}
