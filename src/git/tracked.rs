//! Checks if a path is tracked by reading only the first entries of the index.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;

use super::open::{ObjectFormat, Repository, RepositoryKind};
use super::worktree::WorkTreeError;

/// Length of the stat fields at the start of an index entry: times, device, inode, mode, user, group, size. Source of
/// all numbers in this file: git's `gitformat-index` manual page.
const STAT_BYTES: usize = 40;
const EXTENDED: u16 = 0x4000;
/// Length limit of a path, far above that of any real one.
const MAX_PATH_BYTES: usize = 64 << 10;

impl Repository {
    /// Returns true if the index of the main worktree has an entry at `path` or below it. The entry can be a file, a
    /// symbolic link or a submodule. Always false for a bare repository.
    ///
    /// The index is sorted by path and is read only up to the position of `path`. If `path` begins with a dot, few
    /// entries precede it, however large the index is.
    pub fn tracks(&self, path: &[u8]) -> Result<bool, WorkTreeError> {
        // The index of a linked worktree is in a subdirectory of `worktrees`. A submodule has its own common directory.
        self.tracks_in(self.common_dir().join("index"), path)
    }

    /// Like [`Self::tracks`], but for the index of this worktree.
    pub fn tracks_here(&self, path: &[u8]) -> Result<bool, WorkTreeError> {
        self.tracks_in(self.git_dir().join("index"), path)
    }

    fn tracks_in(&self, index: PathBuf, path: &[u8]) -> Result<bool, WorkTreeError> {
        if self.kind() == RepositoryKind::Bare {
            return Ok(false);
        }
        let ignores_case = self
            .local()
            .filesystem_options()
            .is_ok_and(|options| options.ignore_case);
        let n_id_bytes = match self.object_format() {
            ObjectFormat::Sha1 => 20,
            ObjectFormat::Sha256 => 32,
        };
        let wanted = Wanted { path, ignores_case };
        has_entry(&index, n_id_bytes, wanted)
            .and_then(|found| Ok(found || self.shared_index_has(n_id_bytes, wanted)?))
            .map_err(|source| WorkTreeError::Index {
                path: index,
                source: Box::new(source),
            })
    }

    /// Checks the shared files of a split index, which contain most entries in the same format. Also checks obsolete
    /// shared files, which may still exist.
    fn shared_index_has(&self, n_id_bytes: usize, wanted: Wanted<'_>) -> io::Result<bool> {
        for entry in std::fs::read_dir(self.common_dir())? {
            let entry = entry?;
            if entry.file_name().as_encoded_bytes().starts_with(b"sharedindex.")
                && has_entry(&entry.path(), n_id_bytes, wanted)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[derive(Clone, Copy)]
struct Wanted<'a> {
    path: &'a [u8],
    ignores_case: bool,
}

impl Wanted<'_> {
    fn is_met_by(self, path: &[u8]) -> bool {
        let Some((begin, rest)) = path.split_at_checked(self.path.len()) else {
            return false;
        };
        let is_same = begin == self.path || self.ignores_case && begin.eq_ignore_ascii_case(self.path);
        is_same && rest.first().is_none_or(|&byte| byte == b'/')
    }

    /// Returns true if all later entries of the index sort after the wanted path, so that reading can stop.
    fn is_before(self, path: &[u8]) -> bool {
        let n_bytes = path.len().min(self.path.len());
        path[..n_bytes] > self.path[..n_bytes]
    }
}

fn has_entry(index: &PathBuf, n_id_bytes: usize, wanted: Wanted<'_>) -> io::Result<bool> {
    let file = match File::open(index) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        file => file?,
    };
    let mut file = BufReader::new(file);
    let mut header = [0; 12];
    file.read_exact(&mut header)?;
    let [version, n_entries] = [4, 8].map(|at| u32::from_be_bytes(std::array::from_fn(|i| header[at + i])));
    if !header.starts_with(b"DIRC") || !(2..=4).contains(&version) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "not an index of version 2, 3 or 4",
        ));
    }
    let mut path = Vec::new();
    for _ in 0..n_entries {
        read_path(&mut file, version, n_id_bytes, &mut path)?;
        if wanted.is_met_by(&path) {
            return Ok(true);
        }
        if wanted.is_before(&path) {
            return Ok(false);
        }
    }
    Ok(false)
}

/// Reads the next entry. `path` must contain the path of the previous entry and receives the new path.
fn read_path(file: &mut impl BufRead, version: u32, n_id_bytes: usize, path: &mut Vec<u8>) -> io::Result<()> {
    let mut fixed = [0; STAT_BYTES + 32 + 2];
    let fixed = &mut fixed[..STAT_BYTES + n_id_bytes + 2];
    file.read_exact(fixed)?;
    let flags = u16::from_be_bytes([fixed[fixed.len() - 2], fixed[fixed.len() - 1]]);
    let mut n_bytes = fixed.len();
    if flags & EXTENDED != 0 {
        file.read_exact(&mut [0; 2])?;
        n_bytes += 2;
    }
    if version == 4 {
        // Number of bytes to remove from the end of the previous path.
        let n_dropped = read_offset(file)?;
        path.truncate(path.len().saturating_sub(n_dropped));
        return read_to_zero(file, path);
    }
    path.clear();
    read_to_zero(file, path)?;
    // One to eight zeros pad the entry to a multiple of eight bytes. One of them has been read already.
    n_bytes += path.len();
    let n_zeros = 8 - n_bytes % 8;
    file.read_exact(&mut [0; 8][..n_zeros - 1])
}

fn read_to_zero(file: &mut impl BufRead, path: &mut Vec<u8>) -> io::Result<()> {
    file.take(MAX_PATH_BYTES as u64).read_until(0, path)?;
    match path.pop() {
        Some(0) => Ok(()),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "unterminated path")),
    }
}

/// Reads a variable-width number in the "offset encoding" of pack files.
fn read_offset(file: &mut impl BufRead) -> io::Result<usize> {
    let mut byte = [0];
    file.read_exact(&mut byte)?;
    let mut value = usize::from(byte[0] & 0x7f);
    while byte[0] & 0x80 != 0 {
        file.read_exact(&mut byte)?;
        value = (value.saturating_add(1).saturating_mul(128)).saturating_add(usize::from(byte[0] & 0x7f));
    }
    Ok(value)
}
