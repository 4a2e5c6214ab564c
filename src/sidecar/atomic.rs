//! Files that appear whole or not at all.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::rand::{GetRandomFlags, getrandom};

use super::beneath::{EntryKind, Folder, Owners};
use super::failpoint;

/// Files being written begin with this; a killed writer leaves them behind.
pub(super) const TEMPORARY_PREFIX: &str = ".writing-";

/// Writes `bytes` to `path`: a temporary file in the same folder, flushed to disk, renamed, the folder flushed.
///
/// A reader sees the old content or the new, never a mixture; after a crash likewise.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a file needs a folder"));
    };
    write_in(File::open(folder)?.as_fd(), name, bytes)
}

/// [`write_atomic`] for a file of an opened folder, wherever that has been moved to meanwhile.
pub(super) fn write_in(folder: BorrowedFd<'_>, name: &OsStr, bytes: &[u8]) -> io::Result<()> {
    let step = |step| failpoint::hit(&failpoint::name_of_step(Path::new(name), step));
    step("begin")?;
    let (temporary, mut file) = create_temporary(folder)?;
    let mut write = || {
        step("created")?;
        let (first, second) = bytes.split_at(if cfg!(debug_assertions) { bytes.len() / 2 } else { 0 });
        file.write_all(first)?;
        step("half")?;
        file.write_all(second)?;
        step("written")?;
        file.sync_all()?;
        step("synced")?;
        Ok(rustix::fs::renameat(folder, &temporary, folder, name)?)
    };
    if let Err(error) = write() {
        // On a full disk it would take the room of what is tried next; who writes next would remove it otherwise.
        let _ = rustix::fs::unlinkat(folder, &temporary, AtFlags::empty());
        return Err(error);
    }
    step("renamed")?;
    rustix::fs::fsync(folder)?;
    step("done")
}

/// Removes what killed writers left in the folder at `path`. Only the holder of the writer lock may call it.
pub fn remove_stale_temporaries(path: &Path) -> io::Result<()> {
    remove_stale_in(&Folder::open(path, Owners::us_and(None))?)
}

/// [`remove_stale_temporaries`] of an opened folder.
pub(super) fn remove_stale_in(folder: &Folder) -> io::Result<()> {
    for entry in folder.entries()? {
        if entry.kind != EntryKind::Folder && entry.name.as_bytes().starts_with(TEMPORARY_PREFIX.as_bytes()) {
            failpoint::hit("temporary.before_remove")?;
            folder.remove_file(&entry.name)?;
            failpoint::hit("temporary.removed")?;
        }
    }
    Ok(())
}

/// A new file that only its owner may read, under a name that nobody has.
fn create_temporary(folder: BorrowedFd<'_>) -> io::Result<(String, File)> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    loop {
        let mut random = [0; 8];
        getrandom(&mut random, GetRandomFlags::empty())?;
        let name = format!("{TEMPORARY_PREFIX}{:016x}", u64::from_le_bytes(random));
        match rustix::fs::openat(folder, &name, flags, Mode::from_raw_mode(0o600)) {
            Ok(fd) => return Ok((name, File::from(fd))),
            Err(rustix::io::Errno::EXIST | rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use std::fs;

    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_leftovers_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        write_atomic(&path, b"one").unwrap();
        write_atomic(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");

        fs::write(folder.path().join(".writing-abc"), b"half").unwrap();
        remove_stale_temporaries(folder.path()).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_is_replaced_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let outside = folder.path().join("outside");
        fs::write(&outside, "theirs").unwrap();
        std::os::unix::fs::symlink(&outside, folder.path().join("state")).unwrap();
        write_atomic(&folder.path().join("state"), b"ours").unwrap();
        assert_eq!(fs::read(&outside).unwrap(), b"theirs");
        assert!(!folder.path().join("state").is_symlink());
    }
}
