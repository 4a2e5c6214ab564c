//! Files that appear whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use super::failpoint;

/// Files being written begin with this; a killed writer leaves them behind.
pub(super) const TEMPORARY_PREFIX: &str = ".writing-";

/// Writes `bytes` to `path`: a temporary file in the same folder, flushed to disk, renamed, the folder flushed.
///
/// A reader sees the old content or the new, never a mixture; after a crash likewise.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path
        .parent()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "a file needs a folder"))?;
    let step = |step| failpoint::hit(&failpoint::name_of_step(path, step));
    step("begin")?;
    let mut temporary = tempfile::Builder::new().prefix(TEMPORARY_PREFIX).tempfile_in(folder)?;
    step("created")?;
    let (first, second) = bytes.split_at(if cfg!(debug_assertions) { bytes.len() / 2 } else { 0 });
    temporary.write_all(first)?;
    step("half")?;
    temporary.write_all(second)?;
    step("written")?;
    temporary.as_file().sync_all()?;
    step("synced")?;
    temporary.persist(path).map_err(|failed| failed.error)?;
    step("renamed")?;
    sync_folder(folder)?;
    step("done")
}

/// Removes what killed writers left in `folder`. Only the holder of the writer lock may call it.
pub fn remove_stale_temporaries(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(TEMPORARY_PREFIX) {
            failpoint::hit("temporary.before_remove")?;
            fs::remove_file(entry.path())?;
            failpoint::hit("temporary.removed")?;
        }
    }
    Ok(())
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
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
}
