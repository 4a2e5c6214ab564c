//! Where the files lie that a repository is made of: links followed, and the objects that it borrows from others.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::open::Repository;
use super::small_file::read_small_file;

/// Alternates of alternates; git itself goes no further.
/// Source: `MAX_ALTERNATE_DEPTH` is 5 in git's `object-file.c` ("recursive depth of nesting").
const MAX_DEPTH: usize = 5;
/// A git directory with more files is not walked through.
const MAX_ENTRIES: usize = 500_000;
/// Below a git directory, but not read: other repositories, large files, programs.
const NOT_READ: &[&str] = &["modules", "lfs", "hooks"];

impl Repository {
    /// Whether all that is read of the repository lies in places that `is_allowed` lets pass: its work tree, refs, objects and settings,
    /// with whatever links among them lead to, and the objects of others that it names. `is_allowed` is given absolute paths without
    /// links. An error where that cannot be known.
    pub fn lies_within(&self, is_allowed: &dyn Fn(&Path) -> bool) -> io::Result<bool> {
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
    /// Whether a folder and what links in it lead to is allowed, but for some names in it.
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
                return Err(io::Error::other("there are too many files in the git directory"));
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
            // It leads nowhere, so nothing is read there.
            return Ok(true);
        };
        if target.is_dir() {
            self.folder(&target, &[])
        } else {
            Ok((self.is_allowed)(&target))
        }
    }

    /// Whether a folder of objects is allowed, and those that it borrows from.
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
                // Quoted as in C; nobody writes such a one without need.
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
