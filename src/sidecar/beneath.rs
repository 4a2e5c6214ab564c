//! Accesses the files of the sidecar without ever leaving its directory.
//!
//! The directory is opened once. Every file in it is opened relative to that handle, one path component at a time, and
//! symbolic links are never followed. So no link can redirect an access outside the directory, not even if the
//! directory is replaced during a run. Only regular files are read, because opening a named pipe without a writer would
//! block.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{
    Access, AtFlags, Dir, FileType, Mode, OFlags, Stat, StatVfsMountFlags, Timespec, Timestamps, UTIME_OMIT,
};

/// The users whose files are trusted: the current user, root, and optionally one more.
#[derive(Clone, Copy, Debug)]
pub struct Owners {
    us: u32,
    other: Option<u32>,
}

/// Root is always trusted, because it can change every file on the machine anyway.
const ROOT: u32 = 0;

impl Owners {
    /// Trusts the current user, root and, if given, `other`.
    pub fn current_user_and(other: Option<u32>) -> Self {
        let us = rustix::process::geteuid().as_raw();
        Self { us, other }
    }

    /// Returns true if files of this user are trusted.
    pub fn contain(self, user: u32) -> bool {
        user == self.us || user == ROOT || Some(user) == self.other
    }
}

/// The type of a directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Folder,
    /// A symbolic link.
    Link,
    /// A named pipe, device or socket.
    Other,
}

/// A directory entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name within the directory.
    pub name: OsString,
    /// The type; links are not followed.
    pub kind: EntryKind,
    /// The length in bytes.
    pub length: u64,
    /// The time of the last modification.
    pub modified: SystemTime,
}

/// An open directory.
#[derive(Debug)]
pub(super) struct Folder {
    fd: OwnedFd,
    owners: Owners,
}

impl Folder {
    /// Opens the directory at `path`. Fails if the last component of `path` is a symbolic link.
    pub(super) fn open(path: &Path, owners: Owners) -> io::Result<Self> {
        let fd = rustix::fs::open(path, FOLDER, Mode::empty())?;
        Ok(Self { fd, owners })
    }

    /// Uses an open directory.
    pub(super) fn of(fd: OwnedFd) -> Self {
        let owners = Owners::current_user_and(None);
        Self { fd, owners }
    }

    /// Opens a subdirectory.
    pub(super) fn folder(&self, name: impl AsRef<OsStr>) -> io::Result<Self> {
        let fd = rustix::fs::openat(&self.fd, name.as_ref(), FOLDER, Mode::empty())?;
        let owners = self.owners;
        Ok(Self { fd, owners })
    }

    /// Creates a subdirectory if it does not exist.
    pub(super) fn make_folder(&self, name: &str) -> io::Result<()> {
        match rustix::fs::mkdirat(&self.fd, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Opens a regular file for reading. Fails if the file belongs to an untrusted user.
    pub(super) fn file(&self, name: &OsStr) -> io::Result<File> {
        if name.as_bytes().contains(&b'/') {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file name"));
        }
        self.checked(rustix::fs::openat(
            &self.fd,
            name,
            OFlags::RDONLY | FILE,
            Mode::empty(),
        )?)
    }

    /// Opens a file for locking, creating it if it does not exist. The content of the file is never read or written.
    pub(super) fn lock_file(&self, name: &str) -> io::Result<File> {
        let mode = Mode::from_raw_mode(0o666);
        self.checked(rustix::fs::openat(
            &self.fd,
            name,
            OFlags::WRONLY | OFlags::CREATE | FILE,
            mode,
        )?)
    }

    /// Returns the entry with this name, if it exists.
    pub(super) fn entry(&self, name: &OsStr) -> io::Result<Option<Entry>> {
        match rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(entry_of(name.to_owned(), &stat))),
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Returns all entries, sorted by name.
    pub(super) fn entries(&self) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for found in Dir::read_from(&self.fd)? {
            let name = OsString::from_vec(found?.file_name().to_bytes().to_vec());
            if matches!(name.as_bytes(), b"." | b"..") {
                continue;
            }
            // Skip an entry that was removed after its name was read.
            entries.extend(self.entry(&name)?);
        }
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// Removes a file or link; a link is not followed.
    pub(super) fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.fd, name, AtFlags::empty())?)
    }

    /// Sets the modification time of a file; a link is not followed.
    pub(super) fn touch(&self, name: &OsStr, modified: SystemTime) -> io::Result<()> {
        let since = modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let times = Timestamps {
            last_access: Timespec {
                tv_sec: 0,
                tv_nsec: UTIME_OMIT,
            },
            last_modification: Timespec {
                tv_sec: since.as_secs() as i64,
                tv_nsec: since.subsec_nanos().into(),
            },
        };
        Ok(rustix::fs::utimensat(
            &self.fd,
            name,
            &times,
            AtFlags::SYMLINK_NOFOLLOW,
        )?)
    }

    /// Returns the total size of the files in this directory and below, in bytes.
    pub(super) fn n_bytes(&self) -> io::Result<u64> {
        let mut n_bytes = 0;
        for entry in self.entries()? {
            n_bytes += match entry.kind {
                EntryKind::Folder => self.folder(&entry.name)?.n_bytes()?,
                _ => entry.length,
            };
        }
        Ok(n_bytes)
    }

    /// Removes a subdirectory and everything below it. Links are removed, but not their targets.
    pub(super) fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        let folder = self.folder(name)?;
        for entry in folder.entries()? {
            match entry.kind {
                EntryKind::Folder => folder.remove_folder(&entry.name)?,
                _ => folder.remove_file(&entry.name)?,
            }
        }
        Ok(rustix::fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR)?)
    }

    /// Renames an entry, optionally moving it to another directory.
    pub(super) fn rename(&self, name: &OsStr, to: &Self, new_name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.fd, name, &to.fd, new_name)?)
    }

    /// Fails if this user may not create files in the directory. Writes nothing.
    pub(super) fn check_writable(&self) -> io::Result<()> {
        if rustix::fs::fstatvfs(&self.fd)?
            .f_flag
            .contains(StatVfsMountFlags::RDONLY)
        {
            return Err(rustix::io::Errno::ROFS.into());
        }
        let access = Access::WRITE_OK | Access::EXEC_OK;
        Ok(rustix::fs::accessat(&self.fd, ".", access, AtFlags::EACCESS)?)
    }

    /// Returns the stat data of the directory: its device and inode, which do not change when it is renamed, and its
    /// owner.
    pub(super) fn stat(&self) -> io::Result<Stat> {
        Ok(rustix::fs::fstat(&self.fd)?)
    }

    fn checked(&self, fd: OwnedFd) -> io::Result<File> {
        let stat = rustix::fs::fstat(&fd)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(io::Error::other("not a regular file"));
        }
        if !self.owners.contain(stat.st_uid) {
            return Err(io::Error::other(format!("owned by user {}", stat.st_uid)));
        }
        Ok(File::from(fd))
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

pub(super) const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// Flags for opening a file. Non-blocking, because opening a named pipe would otherwise wait for a writer.
const FILE: OFlags = OFlags::NOFOLLOW
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

fn entry_of(name: OsString, stat: &Stat) -> Entry {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Folder,
        FileType::Symlink => EntryKind::Link,
        _ => EntryKind::Other,
    };
    Entry {
        name,
        kind,
        length: stat.st_size.max(0) as u64,
        modified: SystemTime::UNIX_EPOCH
            + Duration::new(
                stat.st_mtime.max(0) as u64,
                (stat.st_mtime_nsec as u32).min(999_999_999),
            ),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_pipes_and_folders_are_no_files() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("file"), "x").unwrap();
        symlink("file", place.path().join("link")).unwrap();
        fs::create_dir(place.path().join("folder")).unwrap();
        symlink("folder", place.path().join("door")).unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(place.path().join("pipe"))
            .status();
        assert!(made.unwrap().success());
        let folder = Folder::open(place.path(), Owners::current_user_and(None)).unwrap();
        folder.file(OsStr::new("file")).unwrap();
        for name in ["link", "folder", "pipe", "absent"] {
            assert!(folder.file(OsStr::new(name)).is_err(), "{name}");
        }
        for name in ["link", "folder", "pipe"] {
            assert!(folder.lock_file(name).is_err(), "{name}");
        }
        folder.folder("folder").unwrap();
        assert!(folder.folder("door").is_err());
        assert!(Folder::open(&place.path().join("door"), Owners::current_user_and(None)).is_err());
        let kinds: Vec<EntryKind> = folder.entries().unwrap().iter().map(|entry| entry.kind).collect();
        assert_eq!(
            kinds,
            [
                EntryKind::Link,
                EntryKind::File,
                EntryKind::Folder,
                EntryKind::Link,
                EntryKind::Other
            ]
        );
    }
}
