//! Reads and replaces files of other programs. A file is always replaced whole.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// No client's configuration is as large; a larger file is something else.
const MAX_BYTES: u64 = 64 << 20;

/// The reason that a file is not changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    /// It cannot be read or written.
    #[error("cannot {act} {}", .path.display())]
    Io {
        /// `read`, `write`, …
        act: &'static str,
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
    /// A link to a file that does not exist.
    #[error("{} is a dangling symbolic link", .path.display())]
    DanglingLink {
        /// The link.
        path: PathBuf,
    },
    /// A link in the repository to a file outside it.
    #[error("{} is a symbolic link to {}, outside the repository", .path.display(), .target.display())]
    LeadsOutside {
        /// The link.
        path: PathBuf,
        /// Its target.
        target: PathBuf,
    },
    /// A folder, a device, a pipe, or far too large.
    #[error("{} is not a regular file of reasonable size", .path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The file has no write permission.
    #[error("{} is read-only", .path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// It is not UTF-8.
    #[error("{} is not UTF-8 text", .path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
}

impl FileError {
    fn io(act: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { act, path, source }
    }
}

/// A file in its present state.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// The path after links are resolved.
    pub(super) target: PathBuf,
    /// The content; `None` if the file does not exist.
    pub(super) text: Option<String>,
    /// True if the file has no write permission.
    is_read_only: bool,
}

impl Found {
    /// Reads the file at `path`. With `root`, the resolved path must be inside it.
    pub(super) fn read(path: &Path, root: Option<&Path>) -> Result<Self, FileError> {
        let target = match fs::canonicalize(path) {
            Ok(target) => target,
            Err(error) if error.kind() == io::ErrorKind::NotFound => missing_target(path)?,
            Err(error) => return Err(FileError::io("read", path)(error)),
        };
        if let Some(root) = root
            && !target.starts_with(fs::canonicalize(root).map_err(FileError::io("read", root))?)
        {
            let path = path.to_owned();
            return Err(FileError::LeadsOutside { path, target });
        }
        let metadata = match fs::metadata(&target) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self {
                    target,
                    text: None,
                    is_read_only: false,
                });
            }
            Err(error) => return Err(FileError::io("read", &target)(error)),
        };
        if !metadata.is_file() || metadata.len() > MAX_BYTES {
            return Err(FileError::NotAFile { path: target });
        }
        let bytes = fs::read(&target).map_err(FileError::io("read", &target))?;
        let text = String::from_utf8(bytes).map_err(|_| FileError::NotText { path: target.clone() })?;
        Ok(Self {
            target,
            text: Some(text),
            is_read_only: metadata.permissions().readonly(),
        })
    }

    /// Refuses a read-only file: replacing it would succeed, against its owner's intent.
    pub(super) fn writable(&self) -> Result<(), FileError> {
        if self.is_read_only {
            Err(FileError::ReadOnly {
                path: self.target.clone(),
            })
        } else {
            Ok(())
        }
    }
}

/// The resolved path of a file that does not exist: below the real path of the nearest existing folder.
fn missing_target(path: &Path) -> Result<PathBuf, FileError> {
    for folder in path.ancestors() {
        if fs::symlink_metadata(folder).is_err() {
            continue;
        }
        let real = fs::canonicalize(folder).map_err(|_| FileError::DanglingLink {
            path: folder.to_owned(),
        })?;
        let rest = path.strip_prefix(folder).unwrap_or(path);
        return Ok(real.join(rest));
    }
    Ok(path.to_owned())
}

/// The folders to create for a file, the outermost first.
pub(super) fn missing_folders(path: &Path) -> Vec<PathBuf> {
    let folders = path.ancestors().skip(1);
    let mut missing: Vec<PathBuf> = folders
        .take_while(|folder| !folder.exists())
        .map(Path::to_owned)
        .collect();
    missing.reverse();
    missing
}

/// Replaces a file atomically: writes a temporary file in the same folder with the old permissions, flushes it and
/// renames it.
pub(super) fn write(path: &Path, text: &str) -> Result<(), FileError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(FileError::io("make", folder))?;
    let permissions = fs::metadata(path).map(|metadata| metadata.permissions()).ok();
    replace(folder, path, text.as_bytes(), permissions).map_err(FileError::io("write", path))
}

fn replace(folder: &Path, path: &Path, bytes: &[u8], permissions: Option<fs::Permissions>) -> io::Result<()> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".codescout-");
    #[cfg(unix)]
    let new_file = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o666);
    #[cfg(unix)]
    builder.permissions(new_file);
    let mut temporary = builder.tempfile_in(folder)?;
    // Set before writing, so that private content is never readable by others.
    if let Some(permissions) = permissions {
        temporary.as_file().set_permissions(permissions)?;
    }
    temporary.write_all(bytes)?;
    temporary.as_file().sync_all()?;
    temporary.persist(path).map_err(|failed| failed.error)?;
    Ok(())
}

/// Removes a file, and then those of `folders` (outermost first) that are empty.
pub(super) fn remove(path: &Path, folders: &[PathBuf]) -> Result<(), FileError> {
    fs::remove_file(path).map_err(FileError::io("remove", path))?;
    for folder in folders.iter().rev() {
        if fs::remove_dir(folder).is_err() {
            // Another program uses it by now.
            break;
        }
    }
    Ok(())
}
