//! Notes in the sidecar, which are not files of the repository.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{ENDING, Found, MAX_BYTES, PATIENCE, text_of};
use crate::session::{OpError, Result, Workspace};
use crate::sidecar::{FileLock, NOTES_NAME, SUM_ENDING, is_intact, sums_of, write_atomic};

/// Limit on the number of notes.
const MAX_NOTES: usize = 10_000;
/// Polling interval while another process changes notes.
const RETRY_EVERY: Duration = Duration::from_millis(5);

/// The notes in the sidecar of a repository.
pub(super) struct PrivateNotes<'a> {
    workspace: &'a Workspace,
    folder: PathBuf,
}

impl<'a> PrivateNotes<'a> {
    pub(super) fn of(workspace: &'a Workspace) -> Self {
        Self {
            workspace,
            folder: workspace.storage.root().join(NOTES_NAME),
        }
    }

    /// Returns true if there may be notes.
    pub(super) fn exist(&self) -> bool {
        self.folder.is_dir()
    }

    pub(super) fn all(&self) -> Result<Vec<Found>> {
        let mut found = Vec::new();
        let mut folders = vec![(self.folder.clone(), String::new())];
        while let Some((folder, start)) = folders.pop() {
            let entries = match fs::read_dir(&folder) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                entries => entries.map_err(|error| failed(&folder, &error))?,
            };
            for entry in entries {
                let entry = entry.map_err(|error| failed(&folder, &error))?;
                let path = entry.path();
                // Links are not followed.
                let kind = entry.file_type().map_err(|error| failed(&path, &error))?;
                let Ok(name) = entry.file_name().into_string() else {
                    continue;
                };
                if kind.is_dir() {
                    folders.push((path, format!("{start}{name}/")));
                } else if let Some(name) = name.strip_suffix(ENDING).filter(|_| kind.is_file()) {
                    let Some(bytes) = read(&path).map_err(|error| failed(&path, &error))? else {
                        continue;
                    };
                    let sums = read(&sums_path(&path)).map_err(|error| failed(&path, &error))?;
                    found.push(Found {
                        name: format!("{start}{name}"),
                        path: None,
                        is_changed: !is_intact(&bytes, sums.as_deref()),
                        text: text_of(&bytes),
                    });
                }
            }
            if found.len() + folders.len() > MAX_NOTES {
                return Err(OpError::failed(format!(
                    "more than {MAX_NOTES} notes in {}",
                    self.folder.display()
                )));
            }
        }
        Ok(found)
    }

    /// Replaces the text of a note if it is still `from`. `None` for no note.
    pub(super) fn store(&self, name: &str, from: Option<&str>, to: Option<&str>, interrupt: &AtomicBool) -> Result<()> {
        self.workspace.storage.open_or_create(interrupt)?;
        let path = self.folder.join(format!("{name}{ENDING}"));
        let failed = |error: io::Error| failed(&path, &error);
        self.check_folders(&path).map_err(failed)?;
        fs::create_dir_all(&self.folder).map_err(failed)?;
        let _lock = self.lock(interrupt).map_err(failed)?;
        let old = read(&path).map_err(failed)?;
        if old.as_deref().map(text_of).as_deref() != from {
            return Err(OpError::new(
                format!("note {name} has just been changed"),
                "nothing was changed; read it again",
            ));
        }
        let stored = match (to, path.parent()) {
            (Some(text), Some(folder)) => {
                fs::create_dir_all(folder).and_then(|()| replace(&path, old.as_deref(), text.as_bytes()))
            }
            _ => remove(&path),
        };
        stored.map_err(failed)
    }

    /// Fails if a folder of a note is a link, which can lead out of the sidecar if that came with an archive.
    fn check_folders(&self, path: &Path) -> io::Result<()> {
        let mut folders = path
            .ancestors()
            .skip(1)
            .take_while(|folder| folder.starts_with(&self.folder));
        match folders.find(|folder| folder.is_symlink()) {
            Some(link) => Err(io::Error::other(format!("{} is a symbolic link", link.display()))),
            None => Ok(()),
        }
    }

    /// Waits until no other process changes notes, which takes milliseconds.
    fn lock(&self, interrupt: &AtomicBool) -> io::Result<FileLock> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match FileLock::take(File::open(&self.folder)?)? {
                Ok(lock) => return Ok(lock),
                Err(_) if interrupt.load(Ordering::Relaxed) => return Err(io::ErrorKind::Interrupted.into()),
                Err(_) if Instant::now() >= deadline => return Err(io::ErrorKind::ResourceBusy.into()),
                Err(_) => thread::sleep(RETRY_EVERY),
            }
        }
    }
}

/// Writes a note after its checksums.
fn replace(path: &Path, old: Option<&[u8]>, new: &[u8]) -> io::Result<()> {
    let sums_path = sums_path(path);
    let sums = read(&sums_path)?;
    write_atomic(&sums_path, sums_of(old, sums.as_deref(), new).as_bytes())?;
    write_atomic(path, new)
}

/// Deletes a note after its checksums, because checksums without a note mean that it was lost.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(sums_path(path)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => fs::remove_file(path),
    }
}

fn sums_path(path: &Path) -> PathBuf {
    let mut path = path.to_owned().into_os_string();
    path.push(SUM_ENDING);
    path.into()
}

/// Reads the start of a note. Links, pipes and other special files are refused.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
        Ok(metadata) if !metadata.is_file() => return Err(io::Error::other("it is not a regular file")),
        Ok(_) => {}
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

fn failed(path: &Path, error: &io::Error) -> OpError {
    OpError::failed(format!("cannot read or write {}: {error}", path.display()))
}
