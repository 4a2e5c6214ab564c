//! Changes files in a folder that no symbolic link can exchange.
//!
//! Between the check of a path and a write, another process may replace a folder of the path by a link. So a path is
//! resolved once and checked; its folder is then opened part by part without following links, and its files are changed
//! relative to the open folder.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::atomic::{create_temporary, remove_stale_in, write_like};
use super::beneath::{FOLDER, Folder};

/// An open folder.
#[derive(Debug)]
pub struct RealFolder(OwnedFd);

/// Resolves the symbolic links of a path, of which the last parts need not exist. Fails if a part is a link to nothing.
pub fn real_path(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    for existing in path.ancestors() {
        if existing.symlink_metadata().is_ok() {
            let rest = path.strip_prefix(existing).unwrap_or(Path::new(""));
            let real = existing.canonicalize()?;
            // `join` with an empty path would append a slash, which is wrong for a file.
            return Ok(if rest.as_os_str().is_empty() {
                real
            } else {
                real.join(rest)
            });
        }
    }
    Ok(path)
}

impl RealFolder {
    /// Opens a folder by its real path. Fails if a part of it is a symbolic link by now.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::walk(path, false)
    }

    /// Like [`Self::open`], but creates the folders that are missing.
    pub fn open_or_make(path: &Path) -> io::Result<Self> {
        Self::walk(path, true)
    }

    /// Opens the folder of a file by the file's real path. Also returns the name of the file.
    pub fn of_file(path: &Path, makes_folders: bool) -> io::Result<(Self, OsString)> {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        Ok((Self::walk(folder, makes_folders)?, name.to_owned()))
    }

    fn walk(path: &Path, makes_folders: bool) -> io::Result<Self> {
        let mut folder = rustix::fs::open("/", STEP, Mode::empty())?;
        for part in path.components() {
            let name = match part {
                Component::RootDir => continue,
                Component::Normal(name) => name,
                _ => return Err(io::ErrorKind::InvalidInput.into()),
            };
            let open = || rustix::fs::openat(&folder, name, STEP, Mode::empty());
            folder = match open() {
                Err(Errno::NOENT) if makes_folders => {
                    match rustix::fs::mkdirat(&folder, name, Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => open()?,
                        Err(errno) => return Err(errno.into()),
                    }
                }
                opened => opened?,
            };
        }
        // The handle of a step can be neither listed nor flushed. The last folder must be readable.
        Ok(Self(rustix::fs::openat(&folder, ".", FOLDER, Mode::empty())?))
    }

    /// Writes a file atomically, with this mode or else the mode and owner of the file that it replaces. Replaces a link
    /// itself.
    pub fn write(&self, name: &OsStr, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
        let old = match rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(old) => (FileType::from_raw_mode(old.st_mode) == FileType::RegularFile).then_some(old),
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(errno.into()),
        };
        write_like(self.0.as_fd(), name, bytes, old.as_ref(), mode.map(Mode::from_raw_mode))
    }

    /// Creates a file, which appears complete or not at all. Fails if it exists.
    pub fn create(&self, name: &OsStr, bytes: &[u8]) -> io::Result<()> {
        let (temporary, mut file) = self.temporary()?;
        let mut create = || {
            io::Write::write_all(&mut file, bytes)?;
            file.sync_all()?;
            match rustix::fs::renameat_with(&self.0, &temporary, &self.0, name, RenameFlags::NOREPLACE) {
                Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                    rustix::fs::linkat(&self.0, &temporary, &self.0, name, AtFlags::empty())?;
                    self.remove(OsStr::new(&temporary))
                }
                renamed => Ok(renamed?),
            }
        };
        create().inspect_err(|_| self.discard(&temporary))
    }

    /// Creates an empty file with a random name.
    pub fn temporary(&self) -> io::Result<(String, File)> {
        create_temporary(self.0.as_fd(), Mode::from_raw_mode(0o666))
    }

    /// Removes a temporary file. If that fails, the file stays.
    pub fn discard(&self, temporary: &str) {
        let _ = self.remove(OsStr::new(temporary));
    }

    /// Removes the temporary files that killed writers left. The caller must hold the writer lock.
    pub fn remove_stale_temporaries(&self) -> io::Result<()> {
        remove_stale_in(&Folder::of(self.0.try_clone()?))
    }

    /// Renames an entry of the folder, in place of another one.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.0, from, &self.0, to)?)
    }

    /// Gives a file a second name.
    pub fn link(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::linkat(&self.0, from, &self.0, to, AtFlags::empty())?)
    }

    /// Removes a file or link.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Removes an empty folder.
    pub fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    /// Opens a file for reading. Fails if it is a link. Does not block on a pipe.
    pub fn file(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.0, name, flags, Mode::empty())?.into())
    }
}

/// Flags for opening a part of a path. On Linux, that needs no permission to list the folder.
#[cfg(target_os = "linux")]
const STEP: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const STEP: OFlags = FOLDER;

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_folder_that_became_a_link_is_not_opened() {
        let place = tempfile::tempdir().unwrap();
        let root = real_path(place.path()).unwrap();
        for folder in ["a/b", "other/b"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        let path = real_path(&root.join("a/b/new/file")).unwrap();
        assert_eq!(path, root.join("a/b/new/file"));
        let held = RealFolder::open(&root.join("a/b")).unwrap();
        fs::rename(root.join("a"), root.join("moved")).unwrap();
        symlink(root.join("other"), root.join("a")).unwrap();
        assert_eq!(real_path(&root.join("a/b")).unwrap(), root.join("other/b"));
        for path in [root.join("a"), root.join("a/b"), root.join("a/b/new")] {
            assert!(RealFolder::open_or_make(&path).is_err(), "{}", path.display());
        }
        let name = OsStr::new("file");
        held.create(name, b"one").unwrap();
        assert!(held.create(name, b"two").is_err());
        held.write(name, b"three", Some(0o755)).unwrap();
        assert_eq!(fs::read(root.join("moved/b/file")).unwrap(), b"three");
        assert_eq!(fs::read_dir(root.join("moved/b")).unwrap().count(), 1);
        assert_eq!(fs::read_dir(root.join("other/b")).unwrap().count(), 0);
        held.remove(name).unwrap();
        assert!(real_path(&root.join("a/missing/../b")).is_ok());
    }
}
