//! Reaching files of a work tree by their paths without ever leaving its root.
//!
//! Every folder on the way is opened as a folder that is no symbolic link, one after the other, so that neither a link in
//! the repository nor one that is put there in between leads anywhere else.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, Stat};

/// An opened folder at the root of a work tree.
#[derive(Debug)]
pub(super) struct Root(OwnedFd);

impl Root {
    /// Opens the folder that is the root; it may be reached through links.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::open(path, flags, Mode::empty())?))
    }

    /// Opens the folder at `path` in one step. Only the last of its names is known to be no link: the caller sees to the
    /// others, and takes nothing from the folder but names and stat data.
    pub(super) fn folder_in_one_step(&self, path: &[u8]) -> io::Result<OwnedFd> {
        open_folder(self.0.as_fd(), if path.is_empty() { b"." } else { path })
    }

    /// What stands at `path`, which is the root if it is empty; a link is not followed. As with
    /// [`Self::folder_in_one_step`], the names before the last are the caller's business.
    pub(super) fn stat_in_one_step(&self, path: &[u8]) -> io::Result<Stat> {
        stat(self.0.as_fd(), if path.is_empty() { b"." } else { path })
    }

    /// Whether the file system is one of those that set a folder's times when, and only when, a name is put into it or
    /// taken out. Those that are mounted over a network, or made by programs, are not counted on.
    pub(super) fn keeps_folder_times(&self) -> bool {
        #[cfg(target_os = "linux")]
        return rustix::fs::fstatfs(&self.0).is_ok_and(|found| LOCAL_FILE_SYSTEMS.contains(&(found.f_type as u64)));
        #[cfg(not(target_os = "linux"))]
        return false;
    }

    /// Opens the folder at `path`, which is the root if it is empty.
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

    /// The folder that the file at `path` stands in, and the file's name.
    pub(super) fn parent_of<'p>(&self, path: &'p [u8]) -> io::Result<(OwnedFd, &'p [u8])> {
        let (folder, name) = match path.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => (&path[..slash], &path[slash + 1..]),
            None => (&path[..0], path),
        };
        Ok((self.folder(folder)?, checked(name)?))
    }
}

/// ext2 to ext4, XFS, Btrfs, tmpfs, F2FS, overlayfs and ZFS, as in Linux' `uapi/linux/magic.h` and OpenZFS' `zfs_vfsops.h`.
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

/// Opens a folder in a folder, if it is one and no link to one.
pub(super) fn open_folder(parent: BorrowedFd<'_>, name: &[u8]) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(parent, name, flags, Mode::empty())?)
}

/// Opens a file for reading; fails on a link. Does not wait for the other end of a named pipe.
pub(super) fn open_file(parent: BorrowedFd<'_>, name: &[u8]) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(parent, name, flags, Mode::empty())?)
}

/// What stands in the folder under this name; a link is not followed.
pub(super) fn stat(parent: BorrowedFd<'_>, name: &[u8]) -> io::Result<Stat> {
    Ok(rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Where the link points.
pub(super) fn read_link(parent: BorrowedFd<'_>, name: &[u8]) -> io::Result<Vec<u8>> {
    Ok(rustix::fs::readlinkat(parent, name, Vec::new())?.into_bytes())
}

/// Whether the error says that nothing, or nothing of the kind, is there.
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
            "not a path inside a work tree",
        ));
    }
    Ok(name)
}
