//! Detects named pipes and devices where git expects files. Opening one can block forever, and gix opens files without
//! checking their type, so this module checks them first.

use std::collections::HashSet;
use std::fs::{self, FileType};
use std::io::{self, Read as _};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use bstr::ByteSlice;

use super::beneath::Root;
use super::includes::check_includes;
use super::open::OpenError;
use super::small_file;

/// Subdirectories of a git directory that are skipped: they are large or contain other repositories, and gix does not
/// open files in them by name.
const NOT_WALKED: [&str; 2] = ["modules", "lfs"];
/// Depth to which a linked or borrowed directory is checked. An object directory contains `pack` and `info`.
const LINKED_DEPTH: usize = 2;
/// Limit on the object directories that a repository borrows from, directly or indirectly. git follows five levels.
const MAX_ALTERNATES: usize = 256;
const MAX_ALTERNATES_BYTES: u64 = 1 << 20;
/// Limit on the number of loose objects to check. git packs them at 6,700 (`gc.auto`). Checking this many takes about 5
/// ms.
const MAX_LOOSE_OBJECTS: usize = 50_000;
/// Links to this device are allowed, because it reads as an empty file.
const NULL: &str = "/dev/null";
/// Reading a file below these directories may block or never end, whatever its type. git never creates links into them.
const SYSTEM_DIRS: [&str; 3] = ["/dev", "/proc", "/sys"];
/// A file system in memory. It is inside `/dev` but contains ordinary files.
const SHARED_MEMORY: &str = "/dev/shm";
/// Files of a git directory, besides refs, that git or gix reads into memory as a whole.
const READ_WHOLE: [&str; 10] = [
    "HEAD",
    "MERGE_HEAD",
    "config",
    "config.worktree",
    "info/attributes",
    "info/exclude",
    "info/grafts",
    "info/sparse-checkout",
    "objects/info/alternates",
    "shallow",
];

/// Checks the repository at `start` or in a parent directory. Fails if its git directory contains a pipe or a device
/// instead of a file.
pub(super) fn check_above(start: &Path) -> Result<(), OpenError> {
    for folder in start.ancestors() {
        let dot_git = folder.join(".git");
        let linked = if dot_git.is_file() {
            gix::discover::path::from_gitdir_file(&dot_git).ok()
        } else {
            None
        };
        let candidates = [folder.join(linked.unwrap_or(dot_git)), folder.to_owned()];
        if let Some(git_dir) = candidates.into_iter().find(|folder| is_git_dir(folder)) {
            check(&git_dir)?;
            if let Some(Ok(common)) = gix::discover::path::from_plain_file(&git_dir.join("commondir")) {
                check(&git_dir.join(common))?;
            }
            return Ok(());
        }
    }
    Ok(())
}

/// Returns true if git could recognize the directory as a git directory. Reads no file.
fn is_git_dir(folder: &Path) -> bool {
    let has = |name: &str| folder.join(name).symlink_metadata().is_ok();
    has("HEAD") && (has("objects") || has("commondir"))
}

/// Checks all files of a git directory, the targets of its symbolic links, the object directories it borrows from, and
/// the files that its configuration includes.
fn check(git_dir: &Path) -> Result<(), OpenError> {
    let mut folders = vec![(git_dir.to_owned(), usize::MAX)];
    let mut borrowed = HashSet::new();
    let mut n_objects_left = MAX_LOOSE_OBJECTS;
    let [own_objects, refs, work_trees] = ["objects", "refs", "worktrees"].map(|name| git_dir.join(name));
    while let Some((folder, depth)) = folders.pop() {
        // Ignore a directory that cannot be listed; opening the repository reports it.
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let Ok(kind) = entry.file_type() else { continue };
            let is_link = kind.is_symlink();
            if is_irregular(kind) || is_link && leads_to_irregular(&path) {
                return Err(OpenError::Irregular { path });
            } else if kind.is_dir() || is_link && path.is_dir() {
                let depth = if is_link { depth.min(LINKED_DEPTH) } else { depth };
                let is_hex = name.as_encoded_bytes().iter().all(u8::is_ascii_hexdigit);
                let is_fan_out = name.len() == 2 && is_hex && (folder == own_objects || depth < usize::MAX);
                if is_fan_out {
                    n_objects_left -= check_loose_objects(&path, n_objects_left)?;
                } else if depth > 0 && NOT_WALKED.iter().all(|left_out| name != *left_out) {
                    folders.push((path, depth.saturating_sub(usize::from(depth < usize::MAX))));
                }
            } else if folder.starts_with(&refs) || name == "HEAD" && folder.parent() == Some(&work_trees) {
                check_size(path)?;
            } else if path.ends_with("info/alternates") {
                for objects in alternates(&path)? {
                    if borrowed.len() < MAX_ALTERNATES && borrowed.insert(objects.clone()) {
                        folders.push((objects, LINKED_DEPTH));
                    }
                }
            }
        }
    }
    READ_WHOLE.iter().try_for_each(|name| check_size(git_dir.join(name)))?;
    check_includes(&git_dir.join("config"))?;
    check_includes(&git_dir.join("config.worktree"))
}

/// Checks the first `limit` files of a directory. Returns the number of checked files.
fn check_loose_objects(folder: &Path, limit: usize) -> Result<usize, OpenError> {
    let mut n_checked = 0;
    for entry in fs::read_dir(folder).into_iter().flatten().flatten().take(limit) {
        let kind = entry.file_type();
        if kind.is_ok_and(|kind| is_irregular(kind) || kind.is_symlink() && leads_to_irregular(&entry.path())) {
            return Err(OpenError::Irregular { path: entry.path() });
        }
        n_checked += 1;
    }
    Ok(n_checked)
}

/// Returns the object directories that `objects/info/alternates` lists, with symbolic links resolved.
fn alternates(file: &Path) -> Result<Vec<PathBuf>, OpenError> {
    let objects = file.ancestors().nth(2).unwrap_or(file);
    let mut text = Vec::new();
    let read = fs::File::open(file).and_then(|opened| opened.take(MAX_ALTERNATES_BYTES).read_to_end(&mut text));
    if let Err(source) = read
        && source.kind() != io::ErrorKind::NotFound
    {
        let path = file.to_owned();
        return Err(OpenError::Inaccessible { path, source });
    }
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with(b"#"));
    // Each is compared with all others.
    if lines.clone().count() > MAX_ALTERNATES {
        let source = io::Error::other(format!("more than {MAX_ALTERNATES} alternates"));
        let path = file.to_owned();
        return Err(OpenError::Inaccessible { path, source });
    }
    let named = lines.filter_map(|line| {
        gix::quote::ansi_c::undo(line.as_bstr())
            .ok()
            .map(|(path, _)| path.into_owned())
    });
    Ok(named
        .filter_map(|path| fs::canonicalize(objects.join(path.to_path().ok()?)).ok())
        .collect())
}

/// Checks a file that the configuration names.
pub(super) fn check_file(path: PathBuf) -> Result<(), OpenError> {
    if leads_to_irregular(&path) {
        Err(OpenError::Irregular { path })
    } else {
        check_size(path)
    }
}

fn check_size(path: PathBuf) -> Result<(), OpenError> {
    small_file::check_size_of(&path).map_err(|source| OpenError::Inaccessible { path, source })
}

fn leads_to_irregular(path: &Path) -> bool {
    let target = fs::canonicalize(path).unwrap_or_default();
    let is_below = |folder: &str| target.starts_with(folder);
    let is_of_the_system = SYSTEM_DIRS.into_iter().any(is_below) && !is_below(SHARED_MEMORY);
    let is_odd = || is_of_the_system || fs::metadata(path).is_ok_and(|found| is_irregular(found.file_type()));
    target != Path::new(NULL) && is_odd()
}

fn is_irregular(kind: FileType) -> bool {
    kind.is_fifo() || kind.is_char_device() || kind.is_block_device()
}

const MAILMAP: &[u8] = b".mailmap";

/// Fails if the mailmap of a worktree exceeds the size limit.
pub(super) fn check_mailmap(root: &Root) -> io::Result<()> {
    match root.stat_in_one_step(MAILMAP) {
        Ok(found) => check_rules_size(MAILMAP, found.st_size as u64),
        Err(_) => Ok(()),
    }
}

fn check_rules_size(file: &[u8], n_bytes: u64) -> io::Result<()> {
    let failed = |error: io::Error| io::Error::new(error.kind(), format!("cannot read {}: {error}", file.as_bstr()));
    small_file::check(n_bytes).map_err(failed)
}

/// Checks the rules files of a worktree (`.gitattributes`, `.gitignore`, mailmap) that git and gix read to process a
/// path.
#[derive(Clone, Default)]
pub(super) struct RulesFiles {
    /// Directories whose rules files have passed the checks.
    checked: HashSet<Vec<u8>>,
}

impl RulesFiles {
    /// Fails if a rules file in a parent directory of `path` is a pipe, a device or too large.
    pub(super) fn check(&mut self, root: &Root, path: &[u8]) -> io::Result<()> {
        let ends = path.iter().enumerate().rev().filter(|(_, byte)| **byte == b'/');
        for end in ends.map(|(end, _)| end).chain([0]) {
            let folder = &path[..end];
            // The parents of a checked directory have been checked as well.
            if self.checked.contains(folder) {
                break;
            }
            for name in [&b".gitattributes"[..], b".gitignore", MAILMAP] {
                let file = if end == 0 {
                    name.to_vec()
                } else {
                    [folder, b"/", name].concat()
                };
                let found = root
                    .stat_in_one_step(&file)
                    .map(|found| (rustix::fs::FileType::from_raw_mode(found.st_mode), found.st_size as u64));
                use rustix::fs::FileType::{BlockDevice, CharacterDevice, Fifo, RegularFile};
                match found {
                    Ok((Fifo | CharacterDevice | BlockDevice, _)) => {
                        return Err(io::Error::other(format!("{} is a pipe or a device", file.as_bstr())));
                    }
                    // Only blame reads the mailmap, so its size is checked separately.
                    Ok((RegularFile, n_bytes)) if name != MAILMAP => check_rules_size(&file, n_bytes)?,
                    _ => {}
                }
            }
            self.checked.insert(folder.to_vec());
        }
        Ok(())
    }
}
