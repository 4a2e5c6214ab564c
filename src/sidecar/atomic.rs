//! Writes files atomically.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Stat, Uid};
use rustix::rand::{GetRandomFlags, getrandom};

use super::beneath::{EntryKind, Folder, Owners};
use super::failpoint;

/// Name prefix of temporary files. A killed writer leaves such files in the directory.
pub(super) const TEMPORARY_PREFIX: &str = ".writing-";
/// The default mode, so that other users of the repository can read a file.
const USUAL: Mode = Mode::from_raw_mode(0o666);

/// Writes `bytes` to `path` atomically: writes a temporary file in the same directory, flushes it, renames it to `path`
/// and flushes the directory.
///
/// Readers see either the old content or the new, even after a crash. The new file gets the mode of the old one and, if
/// permitted, its owner, so that the same users can read it. If `path` is a symbolic link, the link itself is replaced.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not the path of a file"));
    };
    let folder = File::open(folder)?;
    let old = match rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(old) => (FileType::from_raw_mode(old.st_mode) == FileType::RegularFile).then_some(old),
        Err(rustix::io::Errno::NOENT) => None,
        Err(errno) => return Err(errno.into()),
    };
    write_like(folder.as_fd(), name, bytes, old.as_ref(), None)
}

/// Like [`write_atomic`], for a file in an open directory, which may have been moved meanwhile. The file gets the
/// default mode.
pub fn write_in(folder: BorrowedFd<'_>, name: &OsStr, bytes: &[u8]) -> io::Result<()> {
    write_like(folder, name, bytes, None, None)
}

/// Like [`write_in`], for a file that only its owner can read.
pub fn write_private_in(folder: BorrowedFd<'_>, name: &OsStr, bytes: &[u8]) -> io::Result<()> {
    write_like(folder, name, bytes, None, Some(Mode::RUSR.union(Mode::WUSR)))
}

/// Writes a file with the owner of the file `old` that it replaces, and with this mode, or else that of `old`, or else the
/// usual one.
pub(super) fn write_like(
    folder: BorrowedFd<'_>,
    name: &OsStr,
    bytes: &[u8],
    old: Option<&Stat>,
    mode: Option<Mode>,
) -> io::Result<()> {
    let step = |step| failpoint::hit(&failpoint::name_of_step(Path::new(name), step));
    step("begin")?;
    let (temporary, mut file) = create_temporary(folder, mode.unwrap_or(USUAL))?;
    let mut write = || {
        step("created")?;
        if let Some(old) = old {
            make_like(&file, old)?;
        }
        if let Some(mode) = mode {
            rustix::fs::fchmod(&file, mode)?;
        }
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
        // On a full disk, the temporary file would take the space that the next attempt needs. If this removal fails,
        // the next writer removes it.
        let _ = rustix::fs::unlinkat(folder, &temporary, AtFlags::empty());
        return Err(error);
    }
    step("renamed")?;
    rustix::fs::fsync(folder)?;
    step("done")
}

/// Creates an unlinked file in the file system of an open directory.
pub(super) fn unlinked_file_in(folder: BorrowedFd<'_>) -> io::Result<File> {
    let (temporary, file) = create_temporary(folder, USUAL)?;
    rustix::fs::unlinkat(folder, &temporary, AtFlags::empty())?;
    Ok(file)
}

/// Removes the temporary files that killed writers left in the directory at `path`. The caller must hold the writer
/// lock.
pub fn remove_stale_temporaries(path: &Path) -> io::Result<()> {
    remove_stale_in(&Folder::open(path, Owners::current_user_and(None))?)
}

/// Like [`remove_stale_temporaries`], for an open directory.
pub(super) fn remove_stale_in(folder: &Folder) -> io::Result<()> {
    for entry in folder.entries()? {
        if entry.kind != EntryKind::Folder && entry.name.as_bytes().starts_with(TEMPORARY_PREFIX.as_bytes()) {
            failpoint::hit("temporary.before_remove")?;
            match folder.remove_file(&entry.name) {
                // A process that is creating the sidecar holds no lock and has just renamed this file.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed?,
            }
            failpoint::hit("temporary.removed")?;
        }
    }
    Ok(())
}

/// Gives a new file the owner and the mode of the file that it replaces. If the owner cannot be changed, the new file
/// belongs to the current user.
pub fn make_like(file: &File, old: &Stat) -> io::Result<()> {
    let new = rustix::fs::fstat(file)?;
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid) {
        let group = Some(Gid::from_raw(old.st_gid));
        let _ = rustix::fs::fchown(file, Some(Uid::from_raw(old.st_uid)), group)
            .or_else(|_| rustix::fs::fchown(file, None, group));
    }
    let mode = Mode::from_raw_mode(old.st_mode & 0o777);
    Ok(rustix::fs::fchmod(file, mode)?)
}

/// Creates a file with a random name.
pub(super) fn create_temporary(folder: BorrowedFd<'_>, mode: Mode) -> io::Result<(String, File)> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    loop {
        let mut random = [0; 8];
        getrandom(&mut random, GetRandomFlags::empty())?;
        let name = format!("{TEMPORARY_PREFIX}{:016x}", u64::from_le_bytes(random));
        match rustix::fs::openat(folder, &name, flags, mode) {
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
    fn files_are_replaced_atomically_and_leftovers_removed() {
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
    fn a_file_keeps_its_mode_and_a_new_one_gets_the_usual() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let folder = tempfile::tempdir().unwrap();
        let mode_of = |name: &str| fs::metadata(folder.path().join(name)).unwrap().mode() & 0o777;
        fs::write(folder.path().join("usual"), "").unwrap();
        let path = folder.path().join("file");
        write_atomic(&path, b"one").unwrap();
        assert_eq!(mode_of("file"), mode_of("usual"));
        for mode in [0o600, 0o664, 0o640] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            write_atomic(&path, b"two").unwrap();
            assert_eq!(mode_of("file"), mode);
        }
        let opened = File::open(folder.path()).unwrap();
        write_in(opened.as_fd(), OsStr::new("file"), b"three").unwrap();
        assert_eq!(mode_of("file"), mode_of("usual"));
        write_private_in(opened.as_fd(), OsStr::new("file"), b"four").unwrap();
        assert_eq!(mode_of("file"), 0o600);
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
