//! Opens files of a worktree by path without ever leaving its root.
//!
//! Each directory on the path is opened in turn, without following symbolic links. So no link can redirect an access
//! outside the root, not even one created during the access. Directories of git and of codescout are not entered,
//! whatever their names.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, Stat};

/// An open handle to the root directory of a worktree.
#[derive(Debug)]
pub(super) struct Root {
    root: OwnedFd,
    /// The directories that belong to git or to codescout. Device and inode identify them.
    own: Vec<Stat>,
}

impl Root {
    /// Opens the root directory. `path` may contain symbolic links.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            root: rustix::fs::open(path, flags, Mode::empty())?,
            own: Vec::new(),
        })
    }

    /// Excludes the directories at `paths`, as far as they exist. Symbolic links to them are followed.
    pub(super) fn without(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.own = paths
            .into_iter()
            .filter_map(|path| rustix::fs::stat(path).ok())
            .collect();
        self
    }

    /// Opens the directory at `path` with one system call. Fails if the last component is a symbolic link, but follows
    /// links in the other components. The caller must check those, or use only names and stat data from the directory.
    pub(super) fn folder_in_one_step(&self, path: &[u8]) -> io::Result<OwnedFd> {
        let folder = open_folder(self.root.as_fd(), if path.is_empty() { b"." } else { path })?;
        self.check_identity(&folder)?;
        Ok(folder)
    }

    /// Returns the stat data of the file at `path`, or of the root if `path` is empty. Does not follow a link in the
    /// last component. As with [`Self::folder_in_one_step`], the caller must check the other components.
    pub(super) fn stat_in_one_step(&self, path: &[u8]) -> io::Result<Stat> {
        stat(self.root.as_fd(), if path.is_empty() { b"." } else { path })
    }

    /// Returns true if the file system updates the times of a directory exactly when an entry is added or removed.
    /// Returns false for network file systems and file systems implemented by a program, which may not do so.
    pub(super) fn keeps_folder_times(&self) -> bool {
        #[cfg(target_os = "linux")]
        return rustix::fs::fstatfs(&self.root).is_ok_and(|found| LOCAL_FILE_SYSTEMS.contains(&(found.f_type as u64)));
        #[cfg(not(target_os = "linux"))]
        return false;
    }

    /// Opens the directory at `path`, or the root if `path` is empty. Fails for a directory of git or codescout and for
    /// everything below one.
    pub(super) fn folder(&self, path: &[u8]) -> io::Result<OwnedFd> {
        self.opened(path, |folder, _| self.check_foreign(folder))
    }

    /// Like [`Self::folder`], for a caller that has checked the parents, and who checks the listing of the directory.
    pub(super) fn folder_to_list(&self, path: &[u8]) -> io::Result<OwnedFd> {
        let folder = self.opened(path, |_, _| Ok(()))?;
        self.check_identity(&folder)?;
        Ok(folder)
    }

    /// Opens the directory that contains the file at `path`. Also returns the name of the file.
    pub(super) fn parent_of<'p>(&self, path: &'p [u8]) -> io::Result<(OwnedFd, &'p [u8])> {
        self.parent_with(path, |_, _| Ok(()))
    }

    /// Like [`Self::parent_of`]. Calls `check` with each directory below the root and the name of the next one or of
    /// the file.
    pub(super) fn parent_with<'p>(
        &self,
        path: &'p [u8],
        mut check: impl FnMut(&OwnedFd, &[u8]) -> io::Result<()>,
    ) -> io::Result<(OwnedFd, &'p [u8])> {
        let (folder, name) = split(path);
        let checked_all = |opened: &OwnedFd, end: usize| {
            self.check_foreign(opened)?;
            let rest = &path[end + 1..];
            check(opened, rest.split(|byte| *byte == b'/').next().unwrap_or(rest))
        };
        Ok((self.opened(folder, checked_all)?, checked(name)?))
    }

    /// Returns the stat data of the file at `path`, which may be in any directory. Does not follow links.
    pub(super) fn stat_of(&self, path: &[u8]) -> io::Result<Stat> {
        let (folder, name) = split(path);
        stat(self.opened(folder, |_, _| Ok(()))?.as_fd(), checked(name)?)
    }

    /// Opens the directory at `path`. Calls `check` with each directory on the way and the end of its path.
    fn opened(&self, path: &[u8], mut check: impl FnMut(&OwnedFd, usize) -> io::Result<()>) -> io::Result<OwnedFd> {
        if path.is_empty() {
            return open_folder(self.root.as_fd(), b".");
        }
        let mut folder: Option<OwnedFd> = None;
        let mut end = 0;
        for name in path.split(|byte| *byte == b'/') {
            let parent = folder.as_ref().unwrap_or(&self.root);
            let opened = open_folder(parent.as_fd(), checked(name)?)?;
            end += name.len();
            check(&opened, end)?;
            end += 1;
            folder = Some(opened);
        }
        Ok(folder.expect("a path has a component"))
    }

    fn check_foreign(&self, folder: &OwnedFd) -> io::Result<()> {
        self.check_identity(folder)?;
        if is_git_dir(|name| stat(folder.as_fd(), name).is_ok()) {
            return Err(belongs_to_git());
        }
        Ok(())
    }

    fn check_identity(&self, folder: &OwnedFd) -> io::Result<()> {
        let found = rustix::fs::fstat(folder)?;
        let is_it = |own: &Stat| (own.st_dev, own.st_ino) == (found.st_dev, found.st_ino);
        if self.own.iter().any(is_it) {
            return Err(belongs_to_git());
        }
        Ok(())
    }
}

fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (&path[..0], path),
    }
}

/// Returns true for the contents of a git directory. `has` returns true for the names in the directory.
///
/// Source: `is_git_directory` in git's `setup.c`.
pub(super) fn is_git_dir(has: impl Fn(&[u8]) -> bool) -> bool {
    has(b"HEAD") && (has(b"commondir") || has(b"objects") && has(b"refs"))
}

/// The error from entering a directory of git or codescout.
#[derive(Debug, thiserror::Error)]
#[error("it is in a directory of git or codescout")]
struct BelongsToGit;

fn belongs_to_git() -> io::Error {
    io::Error::other(BelongsToGit)
}

/// Returns true for the error from entering a directory of git or codescout.
pub(super) fn is_of_git(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|source| source.is::<BelongsToGit>())
}

/// The `statfs(2)` types of ext2 to ext4, XFS, Btrfs, tmpfs, F2FS, overlayfs and ZFS. Source: Linux
/// `uapi/linux/magic.h` and OpenZFS `zfs_vfsops.h`.
#[cfg(target_os = "linux")]
const LOCAL_FILE_SYSTEMS: [u64; 7] = [
    0xef53,
    0x5846_5342,
    0x9123_683e,
    0x0102_1994,
    0xf2f5_2010,
    0x794c_7630,
    0x2fc1_2fc1,
];

/// Opens a subdirectory. Fails if it is a symbolic link or not a directory.
pub(super) fn open_folder(parent: BorrowedFd<'_>, name: &[u8]) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(parent, name, flags, Mode::empty())?)
}

/// Opens a file for reading. Fails if it is a symbolic link. Does not block on a named pipe.
pub(super) fn open_file(parent: BorrowedFd<'_>, name: &[u8]) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(parent, name, flags, Mode::empty())?)
}

/// Returns the stat data of a directory entry without following a link.
pub(super) fn stat(parent: BorrowedFd<'_>, name: &[u8]) -> io::Result<Stat> {
    Ok(rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Returns the target of a symbolic link.
pub(super) fn read_link(parent: BorrowedFd<'_>, name: &[u8]) -> io::Result<Vec<u8>> {
    Ok(rustix::fs::readlinkat(parent, name, Vec::new())?.into_bytes())
}

/// Returns true if the error means that the path does not exist or has an unexpected file type.
pub(super) fn is_absence(error: &io::Error) -> bool {
    let is_link_or_no_folder = [rustix::io::Errno::LOOP, rustix::io::Errno::NOTDIR]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()));
    error.kind() == io::ErrorKind::NotFound || is_link_or_no_folder
}

fn checked(name: &[u8]) -> io::Result<&[u8]> {
    if matches!(name, b"" | b"." | b"..") || name.eq_ignore_ascii_case(b".git") {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a path inside a worktree",
        ));
    }
    Ok(name)
}
