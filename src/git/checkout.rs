//! Writes the files of a tree to an empty folder, so that a program can read them without the repository.
//!
//! No filter, hook or setting applies. A tree can be made by hand, so nothing in it leads out of the folder or makes the
//! folder a git repository.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::blob::BlobContent;
use super::reader::{ObjectError, ObjectReader};
use super::tree::{FileMode, TreeFile};
use crate::model::{RepoPath, TreeId, explain_by};
use crate::sidecar::volume;

/// Limit on the size of a file in bytes. Larger files are left out.
const MAX_FILE_BYTES: u64 = 256 << 20;
/// Limit on the size of all files in bytes.
const MAX_BYTES: u64 = 16 << 30;
/// Disk space that must remain free.
const SPARE_BYTES: u64 = 256 << 20;

/// The outcome of writing a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WrittenFiles {
    /// Number of files and symbolic links that were written.
    pub n_written: usize,
    /// Number of others: submodules, missing and very large blobs, links that lead out of the folder, odd paths.
    pub n_left_out: usize,
}

/// An error from writing a tree.
#[derive(Debug, thiserror::Error)]
pub enum CheckoutError {
    /// The repository cannot be read.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// A file cannot be written.
    #[error("cannot write {}", .path.display())]
    Write {
        /// The path of the file.
        path: PathBuf,
        /// The I/O error.
        #[source]
        source: io::Error,
    },
    /// The files are too large, or the disk is nearly full.
    #[error("the files need more than {room} bytes")]
    NoRoom {
        /// Number of bytes that may be written.
        room: u64,
    },
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

explain_by!(CheckoutError: Object; Interrupted);

impl ObjectReader {
    /// Writes the files of a tree below `folder`, which must be empty.
    pub fn write_tree(
        &mut self,
        tree: TreeId,
        folder: &Path,
        interrupt: &AtomicBool,
    ) -> Result<WrittenFiles, CheckoutError> {
        let mut files = Vec::new();
        let outcome = self.tree_files(tree, &mut |file| files.push(file))?;
        let mut written = WrittenFiles {
            n_left_out: outcome.n_unusable,
            ..WrittenFiles::default()
        };
        // Links come last, and folders first, so that nothing is written through a link.
        files.sort_by_key(|file| file.mode == FileMode::Symlink);
        for parent in files
            .iter()
            .filter_map(|file| parent_of(&file.path))
            .collect::<BTreeSet<_>>()
        {
            let path = folder.join(parent);
            fs::create_dir_all(&path).map_err(write_error(&path))?;
        }
        let mut n_bytes = 0;
        for file in &files {
            if interrupt.load(Ordering::Relaxed) {
                return Err(CheckoutError::Interrupted);
            }
            let is_written = match self.content(file)? {
                Some(content) => {
                    n_bytes += content.len() as u64;
                    check_room(folder, content.len() as u64, n_bytes)?;
                    write(folder, file, &content)?
                }
                None => false,
            };
            written.n_written += usize::from(is_written);
            written.n_left_out += usize::from(!is_written);
        }
        Ok(written)
    }

    fn content(&mut self, file: &TreeFile) -> Result<Option<Vec<u8>>, ObjectError> {
        let Some(blob) = file.blob().filter(|_| is_plain(file.path.as_bytes())) else {
            return Ok(None);
        };
        Ok(match self.blob(blob, MAX_FILE_BYTES)? {
            BlobContent::Content(content) => Some(content),
            _ => None,
        })
    }
}

/// Returns the folder of a file, unless the file is in the root or is not written.
fn parent_of(path: &RepoPath) -> Option<&Path> {
    let path = Some(path.as_bytes()).filter(|path| is_plain(path))?;
    Path::new(OsStr::from_bytes(path)).parent()
}

fn check_room(folder: &Path, length: u64, n_bytes: u64) -> Result<(), CheckoutError> {
    let free = volume(folder).map_err(write_error(folder))?.free_bytes;
    if free < SPARE_BYTES + length || n_bytes > MAX_BYTES {
        let room = MAX_BYTES.min(n_bytes - length + free.saturating_sub(SPARE_BYTES));
        return Err(CheckoutError::NoRoom { room });
    }
    Ok(())
}

/// Writes a file, or returns false for what has no place in the folder.
fn write(folder: &Path, file: &TreeFile, content: &[u8]) -> Result<bool, CheckoutError> {
    let name = Path::new(OsStr::from_bytes(file.path.as_bytes()));
    let path = folder.join(name);
    let depth = name.components().count() - 1;
    let made = || match file.mode {
        FileMode::Symlink => symlink(OsStr::from_bytes(content), &path),
        mode => {
            let mode = if mode == FileMode::Executable { 0o755 } else { 0o644 };
            let mut options = fs::OpenOptions::new();
            options
                .write(true)
                .create_new(true)
                .mode(mode)
                .open(&path)?
                .write_all(content)
        }
    };
    if file.mode == FileMode::Symlink && !stays_inside(content, depth) {
        return Ok(false);
    }
    match made() {
        Ok(()) => Ok(true),
        // Two entries of the tree have the same path, or the system cannot tell their paths apart or store one.
        Err(error) if is_odd_path(error.kind()) => Ok(false),
        Err(error) => Err(write_error(&path)(error)),
    }
}

fn is_odd_path(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{AlreadyExists, InvalidFilename, InvalidInput, IsADirectory, NotADirectory};
    matches!(
        kind,
        AlreadyExists | InvalidFilename | InvalidInput | IsADirectory | NotADirectory
    )
}

/// Returns true for a path that names a file below the folder and in no `.git`. Some file systems ignore case and
/// characters beyond ASCII there.
fn is_plain(path: &[u8]) -> bool {
    path.split(|&byte| byte == b'/').all(|name| {
        let ascii: Vec<u8> = name
            .iter()
            .filter(|byte| byte.is_ascii())
            .map(u8::to_ascii_lowercase)
            .collect();
        !matches!(&*ascii, b"" | b"." | b".." | b".git") && !name.contains(&0)
    })
}

/// Returns true if a link in a folder at this depth leads to a place inside. `..` may be only at the start: after a name,
/// which can be another link, it leads anywhere.
fn stays_inside(target: &[u8], depth: usize) -> bool {
    let mut names = target
        .split(|&byte| byte == b'/')
        .filter(|name| !matches!(*name, b"" | b"."))
        .peekable();
    let mut n_up = 0;
    while names.next_if_eq(&&b".."[..]).is_some() {
        n_up += 1;
    }
    !target.is_empty() && !target.starts_with(b"/") && n_up <= depth && names.all(is_plain)
}

fn write_error(path: &Path) -> impl FnOnce(io::Error) -> CheckoutError {
    let path = path.to_owned();
    move |source| CheckoutError::Write { path, source }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::git::Repository;
    use crate::model::Oid;
    use crate::support::TestRepo;

    #[test]
    fn links_that_lead_out_are_told_apart() {
        for (target, depth) in [("a", 0), ("a/b", 0), ("../a", 1), ("./..//../a/.", 2), (".", 0)] {
            assert!(stays_inside(target.as_bytes(), depth), "{target}");
        }
        for (target, depth) in [
            ("", 0),
            ("/etc", 0),
            ("..", 0),
            ("../../a", 1),
            ("a/..", 1),
            ("a/../../..", 3),
            (".git/x", 0),
        ] {
            assert!(!stays_inside(target.as_bytes(), depth), "{target}");
        }
        for path in [
            "",
            "..",
            "a/../b",
            "/a",
            "a//b",
            ".GIT/config",
            "a/.g\u{200c}it/config",
            "a\0b",
        ] {
            assert!(!is_plain(path.as_bytes()), "{path}");
        }
        assert!(is_plain(b".github/a b/.gitignore"));
    }

    #[test]
    fn a_tree_is_written_without_filters_and_links_that_lead_out() {
        let repo = TestRepo::new("//- a/b.txt\nhello\n");
        repo.write(".gitattributes", "* filter=evil text eol=crlf ident\n");
        repo.write("run.sh", "#!/bin/sh\n# $Id$\n");
        repo.git(["config", "filter.evil.smudge", "touch $HOME/evil"]);
        repo.symlink("b.txt", "a/inside");
        repo.symlink("../../outside", "a/outside");
        repo.symlink("/etc/passwd", "absolute");
        repo.git(["add", "--all", "--force"]);
        repo.git(["update-index", "--chmod=+x", "run.sh"]);
        repo.commit_index("links");
        let folder = tempfile::tempdir().unwrap();
        let repository = Repository::discover(repo.root()).unwrap();
        let mut reader = repository.reader();
        let commit = repository.head().unwrap().commit().unwrap();
        let tree = reader.commit(commit).unwrap().tree;
        let never = AtomicBool::new(false);
        let written = reader.write_tree(tree, folder.path(), &never).unwrap();
        assert_eq!(
            written,
            WrittenFiles {
                n_written: 4,
                n_left_out: 2
            }
        );
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(
            (read("a/inside"), read("run.sh")),
            ("hello\n".to_owned(), "#!/bin/sh\n# $Id$\n".to_owned())
        );
        use std::os::unix::fs::PermissionsExt;
        let mode = |name: &str| fs::metadata(folder.path().join(name)).unwrap().permissions().mode() & 0o111;
        assert!(mode("run.sh") != 0 && mode("a/b.txt") == 0);
        assert!(!folder.path().join("absolute").is_symlink() && !folder.path().join("a/outside").is_symlink());
        // A folder and a link of the same name: the link inside would be written to another place.
        let made = |arguments: &[&str], input: &str| {
            let id = repo.git_with_input(arguments, input.as_bytes());
            String::from_utf8(id).unwrap().trim().to_owned()
        };
        let blob = |content: &str| made(&["hash-object", "-w", "--stdin"], content);
        let inner = made(&["mktree"], &format!("120000 blob {}\tup\n", blob("../out")));
        let both = format!("120000 blob {}\ta\n040000 tree {inner}\ta\n", blob("."));
        let tree = TreeId(Oid::from_hex(&made(&["mktree"], &both)).unwrap());
        let folder = tempfile::tempdir().unwrap();
        let written = reader.write_tree(tree, folder.path(), &never).unwrap();
        assert_eq!((written.n_written, written.n_left_out), (1, 1));
        assert!(folder.path().join("a").is_dir() && !folder.path().join("up").is_symlink());
        let stopped = reader.write_tree(tree, &folder.path().join("new"), &AtomicBool::new(true));
        assert!(matches!(stopped, Err(CheckoutError::Interrupted)));
    }
}
