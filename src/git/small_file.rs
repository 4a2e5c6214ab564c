//! Reads files that git keeps small, with a size limit. A sparse or compressed file can be huge but use only a few
//! bytes of disk space.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

/// The size limit. A list of shallow boundaries of this size contains 1.6 million commits.
pub(super) const MAX_SMALL_BYTES: u64 = 64 << 20;

/// Returns the content of a regular file, or `None` if it does not exist. Fails if the file is larger than 64 MiB.
pub fn read_small_file(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let found = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found?,
    };
    if !found.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut bytes = Vec::new();
    check(found.len())?;
    let opened = File::open(path)?;
    check(opened.take(MAX_SMALL_BYTES + 1).read_to_end(&mut bytes)? as u64)?;
    Ok(Some(bytes))
}

/// Fails if the file exists and is too large.
pub(super) fn check_size_of(path: &Path) -> io::Result<()> {
    fs::metadata(path).map_or(Ok(()), |found| check(found.len()))
}

/// Fails if a file of `n_bytes` is too large.
pub(super) fn check(n_bytes: u64) -> io::Result<()> {
    if n_bytes > MAX_SMALL_BYTES {
        Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("larger than {} MiB", MAX_SMALL_BYTES >> 20),
        ))
    } else {
        Ok(())
    }
}
