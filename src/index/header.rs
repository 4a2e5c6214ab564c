//! The header of row files, which contain dense or sparse vectors.

use crate::embed::ProfileId;

use super::dense::VectorFileError;

/// Size of the header. It is a multiple of the cache line, so that rows of 64, 128 or 256 bytes in a mapped file start
/// at a cache line.
pub(super) const HEADER_BYTES: usize = 128;
/// Format version. 1: initial.
pub(super) const VERSION: u32 = 1;
/// Number of header bytes that the checksum covers.
const HASHED: usize = 80;

/// The header of a file of rows, little endian.
///
/// | offset | bytes | content |
/// | --- | --- | --- |
/// | 0 | 4 | magic, by kind of file |
/// | 4 | u32 | format version = 1 |
/// | 8 | 3 × u32 | numbers; the first is the number of rows |
/// | 20 | 12 | zero |
/// | 32 | 16 | id of the embedding profile |
/// | 48 | 32 | BLAKE3 of everything from offset 128 on |
/// | 80 | 32 | BLAKE3 of the bytes 0..80 |
/// | 112 | 16 | zero |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowsHeader {
    pub(super) numbers: [u32; 3],
    pub(super) profile: ProfileId,
    pub(super) body_hash: blake3::Hash,
}

impl RowsHeader {
    /// Parses and checks the header of a file. `file` is the content of the whole file.
    pub(super) fn parse(magic: &[u8; 4], file: &[u8]) -> Result<Self, VectorFileError> {
        if !file.starts_with(magic) {
            return Err(VectorFileError::OtherKind);
        }
        let header: &[u8; HEADER_BYTES] = file.first_chunk().ok_or(VectorFileError::Size {
            found: file.len() as u64,
            expected: HEADER_BYTES as u64,
        })?;
        let [found, numbers @ ..] = [4, 8, 12, 16].map(|at| u32::from_le_bytes(array(header, at)));
        if found != VERSION {
            return Err(VectorFileError::OtherFormat { found });
        }
        let zeros = header[20..32].iter().chain(&header[112..]).all(|&byte| byte == 0);
        if blake3::hash(&header[..HASHED]) != blake3::Hash::from_bytes(array(header, HASHED)) || !zeros {
            return Err(VectorFileError::Damaged);
        }
        Ok(Self {
            numbers,
            profile: ProfileId(array(header, 32)),
            body_hash: blake3::Hash::from_bytes(array(header, 48)),
        })
    }

    /// Returns the bytes of the header, including its checksum.
    pub(super) fn write(&self, magic: &[u8; 4]) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        header[..4].copy_from_slice(magic);
        for (at, number) in [4, 8, 12, 16].into_iter().zip([VERSION].iter().chain(&self.numbers)) {
            header[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        header[32..48].copy_from_slice(&self.profile.0);
        header[48..80].copy_from_slice(self.body_hash.as_bytes());
        let hash = blake3::hash(&header[..HASHED]);
        header[HASHED..112].copy_from_slice(hash.as_bytes());
        header
    }
}

/// Returns `N` bytes of the header from offset `at`.
fn array<const N: usize>(header: &[u8; HEADER_BYTES], at: usize) -> [u8; N] {
    std::array::from_fn(|i| header[at + i])
}
