//! Opens files of a worktree by path without ever leaving its root.
//!
//! Each directory on the path is opened in turn, without following symbolic links. So no link can redirect an access
//! outside the root, not even one created during the access.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, Stat};

/// An open handle to the root directory of a worktree.
#[derive(Debug)]
pub(super) struct Root(OwnedFd);

impl Root {
    /// Opens the root directory. `path` may contain symbolic links.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::open(path, flags, Mode::empty())?))
    }

    /// Opens the directory at `path` with one system call. Fails if the last component is a symbolic link, but follows
    /// links in the other components. The caller must check those, or use only names and stat data from the directory.
    pub(super) fn folder_in_one_step(&self, path: &[u8]) -> io::Result<OwnedFd> {
        open_folder(self.0.as_fd(), if path.is_empty() { b"." } else { path })
    }

    /// Returns the stat data of the file at `path`, or of the root if `path` is empty. Does not follow a link in the
    /// last component. As with [`Self::folder_in_one_step`], the caller must check the other components.
    pub(super) fn stat_in_one_step(&self, path: &[u8]) -> io::Result<Stat> {
        stat(self.0.as_fd(), if path.is_empty() { b"." } else { path })
    }

    /// Returns true if the file system updates the times of a directory exactly when an entry is added or removed.
    /// Returns false for network file systems and file systems implemented by a program, which may not do so.
    pub(super) fn keeps_folder_times(&self) -> bool {
        #[cfg(target_os = "linux")]
        return rustix::fs::fstatfs(&self.0).is_ok_and(|found| LOCAL_FILE_SYSTEMS.contains(&(found.f_type as u64)));
        #[cfg(not(target_os = "linux"))]
        return false;
    }

    /// Opens the directory at `path`, or the root if `path` is empty.
    pub(super) fn folder(&self, path: &[u8]) -> io::Result<OwnedFd> {
        if path.is_empty() {
            return open_folder(self.0.as_fd(), b".");
        }
        let mut names = path.split(|byte| *byte == b'/');
        let first = names.next().unwrap_or_default();
        let mut folder = open_folder(self.0.as_fd(), checked(first)?)?;
        for name in names {
            folder = open_folder(folder.as_fd(), checked(name)?)?;
        }
        Ok(folder)
    }

    /// Opens the directory that contains the file at `path`. Also returns the name of the file.
    pub(super) fn parent_of<'p>(&self, path: &'p [u8]) -> io::Result<(OwnedFd, &'p [u8])> {
        let (folder, name) = match path.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => (&path[..slash], &path[slash + 1..]),
            None => (&path[..0], path),
        };
        Ok((self.folder(folder)?, checked(name)?))
    }
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
