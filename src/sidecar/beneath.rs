//! Reaching the files of the sidecar without ever leaving its folder.
//!
//! The folder is opened once; everything in it is opened relative to that handle, step by step, and never through a link. So
//! neither a link that stands there, nor one that is put in the folder's place during a run, leads anywhere else. What is not
//! a regular file is not waited for: a named pipe without a writer would hang a reader.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};

/// Users whose files are taken for ours.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owners {
    us: u32,
    other: Option<u32>,
}

/// Could change every file and every program on this machine anyway.
const ROOT: u32 = 0;

impl Owners {
    /// This process, the machine's administrator, and perhaps one more.
    pub(super) fn us_and(other: Option<u32>) -> Self {
        let us = rustix::process::geteuid().as_raw();
        Self { us, other }
    }

    pub(super) fn contain(self, user: u32) -> bool {
        user == self.us || user == ROOT || Some(user) == self.other
    }
}

/// What stands under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A named pipe, a device, a socket.
    Other,
}

/// Something in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name within the folder.
    pub name: OsString,
    /// What it is; a link is not followed.
    pub kind: EntryKind,
    /// In bytes.
    pub length: u64,
    /// When it was last changed.
    pub modified: SystemTime,
}

/// An opened folder.
#[derive(Debug)]
pub(super) struct Folder {
    fd: OwnedFd,
    owners: Owners,
}

impl Folder {
    /// Opens the folder at `path`; the last name may not be a link.
    pub(super) fn open(path: &Path, owners: Owners) -> io::Result<Self> {
        let fd = rustix::fs::open(path, FOLDER, Mode::empty())?;
        Ok(Self { fd, owners })
    }

    /// Opens a folder in this one.
    pub(super) fn folder(&self, name: &str) -> io::Result<Self> {
        let fd = rustix::fs::openat(&self.fd, name, FOLDER, Mode::empty())?;
        let owners = self.owners;
        Ok(Self { fd, owners })
    }

    /// Makes a folder in this one if it is not there.
    pub(super) fn make_folder(&self, name: &str) -> io::Result<()> {
        match rustix::fs::mkdirat(&self.fd, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Opens a regular file that belongs to one of the owners, for reading.
    pub(super) fn file(&self, name: &OsStr) -> io::Result<File> {
        if name.as_bytes().contains(&b'/') {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not the name of a file"));
        }
        self.checked(rustix::fs::openat(
            &self.fd,
            name,
            OFlags::RDONLY | FILE,
            Mode::empty(),
        )?)
    }

    /// Opens a file for locking, making it if it is not there. It is not written to.
    pub(super) fn lock_file(&self, name: &str) -> io::Result<File> {
        let mode = Mode::from_raw_mode(0o666);
        self.checked(rustix::fs::openat(
            &self.fd,
            name,
            OFlags::WRONLY | OFlags::CREATE | FILE,
            mode,
        )?)
    }

    /// What stands under a name; `None` for nothing.
    pub(super) fn entry(&self, name: &OsStr) -> io::Result<Option<Entry>> {
        match rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(entry_of(name.to_owned(), &stat))),
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Everything in it, in the order of names.
    pub(super) fn entries(&self) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for found in Dir::read_from(&self.fd)? {
            let name = OsString::from_vec(found?.file_name().to_bytes().to_vec());
            if matches!(name.as_bytes(), b"." | b"..") {
                continue;
            }
            // What has gone since its name was read is not there.
            entries.extend(self.entry(&name)?);
        }
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// Takes a name away; what it stands for is not followed.
    pub(super) fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.fd, name, AtFlags::empty())?)
    }

    /// Gives what stands under a name another one, perhaps in another folder.
    pub(super) fn rename(&self, name: &OsStr, to: &Self, new_name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.fd, name, &to.fd, new_name)?)
    }

    /// Which folder this is, whatever its name is by now; and who owns it.
    pub(super) fn stat(&self) -> io::Result<Stat> {
        Ok(rustix::fs::fstat(&self.fd)?)
    }

    fn checked(&self, fd: OwnedFd) -> io::Result<File> {
        let stat = rustix::fs::fstat(&fd)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(io::Error::other("not a regular file"));
        }
        if !self.owners.contain(stat.st_uid) {
            return Err(io::Error::other(format!("it belongs to user {}", stat.st_uid)));
        }
        Ok(File::from(fd))
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// Not blocking: who opens a named pipe would wait for its other end.
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
        let folder = Folder::open(place.path(), Owners::us_and(None)).unwrap();
        folder.file(OsStr::new("file")).unwrap();
        for name in ["link", "folder", "pipe", "absent"] {
            assert!(folder.file(OsStr::new(name)).is_err(), "{name}");
        }
        for name in ["link", "folder", "pipe"] {
            assert!(folder.lock_file(name).is_err(), "{name}");
        }
        folder.folder("folder").unwrap();
        assert!(folder.folder("door").is_err());
        assert!(Folder::open(&place.path().join("door"), Owners::us_and(None)).is_err());
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
