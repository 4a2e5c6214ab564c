//! Checks which directories the files of a repository are in, including link targets and borrowed objects.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::open::Repository;
use super::small_file::read_small_file;

/// Depth limit of alternates, as in git. Source: `MAX_ALTERNATE_DEPTH` is 5 in git's `object-file.c` ("recursive depth
/// of nesting").
const MAX_DEPTH: usize = 5;
/// Limit on the number of files in the git directory.
const MAX_ENTRIES: usize = 500_000;
/// Subdirectories of a git directory that are skipped, because they contain other repositories, large files or
/// programs.
const NOT_READ: &[&str] = &["modules", "lfs", "hooks"];

impl Repository {
    /// Returns true if `is_allowed` accepts every location that this repository's data is read from: its worktree,
    /// refs, objects and configuration, the targets of symbolic links among them, and the object directories it borrows
    /// from. `is_allowed` is called with absolute paths without links. Returns an error if the locations cannot be
    /// determined.
    pub fn is_confined_to(&self, is_allowed: &dyn Fn(&Path) -> bool) -> io::Result<bool> {
        let mut reach = Reach {
            is_allowed,
            walked: HashSet::new(),
            n_entries: 0,
        };
        if !self.work_dir().is_none_or(is_allowed) {
            return Ok(false);
        }
        for folder in [self.common_dir(), self.git_dir()] {
            if !reach.folder(folder, NOT_READ)? {
                return Ok(false);
            }
        }
        reach.objects(&self.common_dir().join("objects"), 0)
    }
}

struct Reach<'a> {
    is_allowed: &'a dyn Fn(&Path) -> bool,
    walked: HashSet<PathBuf>,
    n_entries: usize,
}

impl Reach<'_> {
    /// Returns true if a directory and the targets of all symbolic links below it are allowed. Skips entries named in
    /// `left_out`.
    fn folder(&mut self, folder: &Path, left_out: &[&str]) -> io::Result<bool> {
        if !(self.is_allowed)(folder) {
            return Ok(false);
        }
        if !self.walked.insert(folder.to_owned()) {
            return Ok(true);
        }
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            self.n_entries += 1;
            if self.n_entries > MAX_ENTRIES {
                return Err(io::Error::other("too many files in the git directory"));
            }
            let (path, kind) = (entry.path(), entry.file_type()?);
            let is_fine = if left_out.iter().any(|name| entry.file_name() == *name) {
                true
            } else if kind.is_symlink() {
                self.link(&path)?
            } else {
                !kind.is_dir() || self.folder(&path, &[])?
            };
            if !is_fine {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn link(&mut self, link: &Path) -> io::Result<bool> {
        let Ok(target) = fs::canonicalize(link) else {
            // Nothing can be read through a dangling link.
            return Ok(true);
        };
        if target.is_dir() {
            self.folder(&target, &[])
        } else {
            Ok((self.is_allowed)(&target))
        }
    }

    /// Returns true if an object directory and all directories it borrows from are allowed.
    fn objects(&mut self, objects: &Path, depth: usize) -> io::Result<bool> {
        let Ok(objects) = fs::canonicalize(objects) else {
            return Ok(false);
        };
        if depth > MAX_DEPTH || !self.folder(&objects, &[])? {
            return Ok(false);
        }
        let Some(alternates) = read_small_file(&objects.join("info/alternates"))? else {
            return Ok(true);
        };
        for line in alternates.split(|byte| *byte == b'\n') {
            let is_fine = match line {
                [] | [b'#', ..] => true,
                // A path quoted as in C. It is rejected without decoding, because it is rare.
                [b'"', ..] => false,
                line => self.objects(&objects.join(OsStr::from_bytes(line)), depth + 1)?,
            };
            if !is_fine {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
