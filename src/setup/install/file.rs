//! Reads and replaces files of other programs. A file is always replaced atomically.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::git::belongs_to_git;
use crate::program::is_program;
use crate::sidecar::{RealFolder, real_path};

/// Maximum size of a file. No client's configuration is that large.
const MAX_BYTES: u64 = 64 << 20;

/// The reason why a file cannot be changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    /// The file cannot be read or written.
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
    /// A symbolic link to a file that does not exist.
    #[error("{} is a dangling symbolic link", .path.display())]
    DanglingLink {
        /// The link.
        path: PathBuf,
    },
    /// A symbolic link in the repository to a file outside it.
    #[error("{} is a symbolic link to {}, outside the repository", .path.display(), .target.display())]
    LeadsOutside {
        /// The link.
        path: PathBuf,
        /// Its target.
        target: PathBuf,
    },
    /// A symbolic link in the repository to a file of git or codescout.
    #[error("{} is a symbolic link to {}, which belongs to git or codescout", .path.display(), .target.display())]
    LeadsIntoGit {
        /// The link.
        path: PathBuf,
        /// Its target.
        target: PathBuf,
    },
    /// A symbolic link in the repository to a script or another program.
    #[error("{} is a symbolic link to {}, which is a program", .path.display(), .target.display())]
    LeadsToProgram {
        /// The link.
        path: PathBuf,
        /// Its target.
        target: PathBuf,
    },
    /// The path is a folder, a device or a pipe, or the file is far too large.
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
    /// The file is not UTF-8.
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

/// The current state of a file.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// The path after resolving symbolic links.
    pub(super) target: PathBuf,
    /// The content; `None` if the file does not exist.
    pub(super) text: Option<String>,
    /// True if the file has no write permission.
    is_read_only: bool,
}

impl Found {
    /// Reads the file at `path`. If there is a `root`, the resolved path must be inside it, and not in a directory of git
    /// or, by a link, a program such as a hook.
    pub(super) fn read(path: &Path, root: Option<&Path>) -> Result<Self, FileError> {
        let target = real_path(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => FileError::DanglingLink { path: path.to_owned() },
            _ => FileError::io("read", path)(error),
        })?;
        if let Some(root) = root {
            let (root, path) = (
                fs::canonicalize(root).map_err(FileError::io("read", root))?,
                path.to_owned(),
            );
            if !target.starts_with(&root) {
                return Err(FileError::LeadsOutside { path, target });
            }
            if belongs_to_git(&root, &target) {
                return Err(FileError::LeadsIntoGit { path, target });
            }
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
        // On some file systems all files are executable, so a file of the same kind is no program.
        let is_program = is_program(&target) && target.extension() != path.extension() || bytes.starts_with(b"#!");
        if root.is_some() && is_program && is_link(path, root) {
            let path = path.to_owned();
            return Err(FileError::LeadsToProgram { path, target });
        }
        let text = String::from_utf8(bytes).map_err(|_| FileError::NotText { path: target.clone() })?;
        Ok(Self {
            target,
            text: Some(text),
            is_read_only: metadata.permissions().readonly(),
        })
    }

    /// Returns an error for a read-only file. Replacing it would succeed, but the owner does not want it to change.
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

/// Returns true if a part of `path` below `root` is a symbolic link.
fn is_link(path: &Path, root: Option<&Path>) -> bool {
    let mut below = path.ancestors().take_while(|part| Some(*part) != root);
    below.any(Path::is_symlink)
}

/// Returns the folders to create for a file, the outermost first.
pub(super) fn missing_folders(path: &Path) -> Vec<PathBuf> {
    let folders = path.ancestors().skip(1);
    let mut missing: Vec<PathBuf> = folders
        .take_while(|folder| !folder.exists())
        .map(Path::to_owned)
        .collect();
    missing.reverse();
    missing
}

/// Replaces a file atomically, with the old permissions. `path` has no symbolic links.
pub(super) fn write(path: &Path, text: &str) -> Result<(), FileError> {
    let written = RealFolder::of_file(path, true).and_then(|(folder, name)| folder.write(&name, text.as_bytes(), None));
    written.map_err(FileError::io("write", path))
}

/// Removes a file, and then those of `folders` (outermost first) that are empty. `path` has no symbolic links.
pub(super) fn remove(path: &Path, folders: &[PathBuf]) -> Result<(), FileError> {
    let removed = RealFolder::of_file(path, false).and_then(|(folder, name)| folder.remove(&name));
    removed.map_err(FileError::io("remove", path))?;
    for folder in folders.iter().rev() {
        let removed = RealFolder::of_file(folder, false).and_then(|(folder, name)| folder.remove_folder(&name));
        if removed.is_err() {
            // The folder contains other files by now.
            break;
        }
    }
    Ok(())
}
