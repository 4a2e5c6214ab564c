//! Reads vector files.

use std::fmt;
use std::sync::Arc;

use super::half;
use super::quantise::{self, Quantisation};
use crate::embed::ProfileId;
use crate::index::header::{self, HEADER_BYTES, RowsHeader};

/// The content of a file, either owned or memory-mapped.
pub type SharedBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// An immutable file of quantised unit vectors, one row per document from 0.
///
/// Little endian, without gaps.
///
/// | offset | bytes | content |
/// | --- | --- | --- |
/// | 0 | 4 | `CSVF` |
/// | 4 | u32 | format version = 1 |
/// | 8 | u32 | n, number of rows |
/// | 12 | u32 | dim |
/// | 16 | u32 | bits per component: 4 or 8 |
/// | 20 | 12 | zero |
/// | 32 | 16 | id of the embedding profile |
/// | 48 | 32 | BLAKE3 of everything from offset 128 on |
/// | 80 | 32 | BLAKE3 of the bytes 0..80 |
/// | 112 | 16 | zero |
/// | 128 | n × row_bytes | codes; row_bytes = dim for 8 bits, ⌈dim / 2⌉ for 4, see [`Quantisation`] |
/// | | n × u16 | factors, as unsigned halves: cos(x, y) ≈ factor · Σ level(x) · y for unit y; 0 for the zero vector |
/// | | n × u16 | weights of the texts, as halves, see `embed::Embedding::weight` |
///
/// Opening checks only the header and the sizes, in constant time. Damage elsewhere can change scores but never causes
/// a panic. [`Self::verify`] detects damage and values out of range.
#[derive(Clone)]
pub struct VectorFile {
    bytes: SharedBytes,
    header: Header,
}

impl VectorFile {
    /// Opens a file from its content, which must not change while the file is open.
    pub fn open(bytes: SharedBytes) -> Result<Self, VectorFileError> {
        let header = Header::parse((*bytes).as_ref())?;
        Ok(Self { bytes, header })
    }

    /// Reads the whole file, verifies its checksum and checks that [`VectorWriter`] could have written each row. The
    /// checksum alone does not protect against a crafted file. Processes about 1 GB per second.
    ///
    /// [`VectorWriter`]: super::VectorWriter
    pub fn verify(&self) -> Result<(), VectorFileError> {
        let is_sound = blake3::hash(&self.all()[HEADER_BYTES..]) == self.header.body_hash
            && (0..self.len() as usize).all(|row| self.is_row_in_range(row));
        if is_sound {
            Ok(())
        } else {
            Err(VectorFileError::Damaged)
        }
    }

    /// Returns true if factor and weight are finite and [`quantise::encode`] can return this factor for the codes of
    /// the row.
    fn is_row_in_range(&self, row: usize) -> bool {
        let (factor, weight) = (self.factors().get(row), self.weights().get(row));
        let is_factor = || {
            let range = self.quantisation().factor_range(self.row(row), self.dim());
            factor == 0 || range.contains(&half::decode(factor))
        };
        half::is_finite(factor) && half::is_finite(weight) && is_factor()
    }

    /// Returns the number of rows.
    pub fn len(&self) -> u32 {
        self.header.n
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the size of the file in bytes.
    pub fn n_bytes(&self) -> usize {
        self.all().len()
    }

    /// Returns the number of components of each vector.
    pub fn dim(&self) -> usize {
        self.header.dim
    }

    /// Returns the storage format of the rows.
    pub fn quantisation(&self) -> Quantisation {
        self.header.quantisation
    }

    /// Returns the embedding profile of the vectors.
    pub fn profile(&self) -> ProfileId {
        self.header.profile
    }

    /// Returns the weight that the embedder gave the text of `row`. Returns 0 if the row is outside the file.
    pub fn weight(&self, row: u32) -> f32 {
        if row < self.len() {
            half::decode(self.weights().get(row as usize))
        } else {
            0.0
        }
    }

    /// Returns true if `row` has a nonzero vector.
    pub fn has_vector(&self, row: u32) -> bool {
        row < self.len() && self.factors().get(row as usize) != 0
    }

    /// Returns the vector of `row`, converted back from integers. It has unit length or is zero. Returns `None` if the
    /// row is outside the file.
    pub fn vector(&self, row: u32) -> Option<Vec<f32>> {
        if row >= self.len() {
            return None;
        }
        let mut vector = vec![0.0; self.dim()];
        if self.has_vector(row) {
            quantise::decode(self.quantisation(), self.row(row as usize), &mut vector);
            let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
            vector.iter_mut().for_each(|x| *x /= norm);
        }
        Some(vector)
    }

    /// Returns true if two files have the same content, according to their headers.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.header == other.header
    }

    /// Returns true if a row is byte-identical to a row of another file.
    pub fn has_same_row(&self, row: u32, other: &Self, other_row: u32) -> bool {
        if row >= self.len() || other_row >= other.len() {
            return false;
        }
        let (at, other_at) = (row as usize, other_row as usize);
        self.row(at) == other.row(other_at)
            && self.factors().get(at) == other.factors().get(other_at)
            && self.weights().get(at) == other.weights().get(other_at)
    }

    /// Returns the codes of all rows.
    #[inline(always)]
    pub(super) fn codes(&self) -> &[u8] {
        &self.all()[HEADER_BYTES..][..self.header.codes_bytes()]
    }

    /// Returns the codes of a row. Panics if the row is outside the file.
    #[inline(always)]
    pub(super) fn row(&self, row: usize) -> &[u8] {
        let row_bytes = self.header.row_bytes();
        &self.codes()[row * row_bytes..][..row_bytes]
    }

    pub(super) fn factors(&self) -> Halves<'_> {
        let start = HEADER_BYTES + self.header.codes_bytes();
        Halves(self.all()[start..].as_chunks().0)
    }

    pub(super) fn weights(&self) -> Halves<'_> {
        let start = HEADER_BYTES + self.header.codes_bytes() + 2 * self.header.n as usize;
        Halves(self.all()[start..].as_chunks().0)
    }

    fn all(&self) -> &[u8] {
        (*self.bytes).as_ref()
    }
}

impl fmt::Debug for VectorFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("VectorFile").field(&self.header).finish()
    }
}

/// An array of two-byte numbers.
#[derive(Clone, Copy)]
pub(super) struct Halves<'a>(&'a [[u8; 2]]);

impl<'a> Halves<'a> {
    /// Returns the number at index `i`. Panics if `i` is outside the array.
    #[inline(always)]
    pub(super) fn get(self, i: usize) -> u16 {
        u16::from_le_bytes(self.0[i])
    }

    /// Returns `len` numbers from the index `first` on. Panics if they are outside the array.
    pub(super) fn run(self, first: usize, len: usize) -> impl Iterator<Item = u16> + 'a {
        self.0[first..first + len]
            .iter()
            .map(|&bytes| u16::from_le_bytes(bytes))
    }
}

/// An error from opening or verifying a file of rows.
#[derive(Debug, thiserror::Error)]
pub enum VectorFileError {
    /// The file does not begin with the expected magic bytes.
    #[error("not a vector file")]
    OtherKind,
    /// The file has another format version.
    #[error("vector file has format {found}, this build reads {VERSION}")]
    OtherFormat {
        /// The format version of the file.
        found: u32,
    },
    /// The size of the file does not match its header.
    #[error("vector file has {found} bytes, expected {expected}")]
    Size {
        /// The size of the file in bytes.
        found: u64,
        /// The size in bytes according to the header.
        expected: u64,
    },
    /// A checksum does not match, or the header has invalid values.
    #[error("vector file is damaged")]
    Damaged,
}

const MAGIC: &[u8; 4] = b"CSVF";
/// Format version. 1: initial.
pub const VERSION: u32 = header::VERSION;
/// Limit on the dimension, above that of any model. Ensures that integer sums do not overflow.
pub(super) const MAX_DIM: usize = 1 << 14;

/// The header as described in [`VectorFile`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) n: u32,
    pub(super) dim: usize,
    pub(super) quantisation: Quantisation,
    pub(super) profile: ProfileId,
    pub(super) body_hash: blake3::Hash,
}

impl Header {
    /// Parses the header of a file and checks that the size of the file matches.
    fn parse(file: &[u8]) -> Result<Self, VectorFileError> {
        let RowsHeader {
            numbers: [n, dim, bits],
            profile,
            body_hash,
        } = RowsHeader::parse(MAGIC, file)?;
        let dim = dim as usize;
        let quantisation = Quantisation::from_bits(bits).filter(|_| (1..=MAX_DIM).contains(&dim));
        let parsed = Self {
            n,
            dim,
            quantisation: quantisation.ok_or(VectorFileError::Damaged)?,
            profile,
            body_hash,
        };
        if parsed.file_bytes() == file.len() as u64 {
            Ok(parsed)
        } else {
            Err(VectorFileError::Size {
                found: file.len() as u64,
                expected: parsed.file_bytes(),
            })
        }
    }

    /// Returns the bytes of the header, including its checksum.
    pub(super) fn write(&self) -> [u8; HEADER_BYTES] {
        let header = RowsHeader {
            numbers: [self.n, self.dim as u32, self.quantisation.bits()],
            profile: self.profile,
            body_hash: self.body_hash,
        };
        header.write(MAGIC)
    }

    fn row_bytes(&self) -> usize {
        self.quantisation.row_bytes(self.dim)
    }

    fn codes_bytes(&self) -> usize {
        self.n as usize * self.row_bytes()
    }

    /// Returns the size of the file. At most 2^32 · (2^14 + 4) + 128, so there is no overflow.
    fn file_bytes(&self) -> u64 {
        HEADER_BYTES as u64 + u64::from(self.n) * (self.row_bytes() as u64 + 4)
    }
}

#[cfg(test)]
mod tests;
