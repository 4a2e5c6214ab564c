//! Reads vector files.

use std::fmt;
use std::path::Path;

use super::half;
use super::quantise::{self, Quantisation};
use crate::embed::ProfileId;
use crate::sidecar::{Bytes, FileError, SectionFile, Sidecar, Store};

/// Format version of files of dense and of sparse vectors. 2: sections.
pub const FORMAT: u32 = 2;
/// Limit on the dimension, which keeps integer sums within bounds. No model comes near it.
pub(super) const MAX_DIM: usize = 1 << 14;
const META_BYTES: usize = 24;

/// An immutable file of quantised unit vectors, one row per document from 0.
///
/// Sections of the file (format 2, little endian):
/// - `codes`: n × row_bytes; row_bytes = dim for 8 bits, ⌈dim / 2⌉ for 4, see [`Quantisation`]. The first section of four
///   starts at a multiple of the cache line, so rows of 64, 128 or 256 bytes in a mapped file straddle none.
/// - `factors`: n × u16, halves without sign: cos(x, y) ≈ factor · Σ level(x) · y for unit y; 0 for the zero vector.
/// - `weights`: n × u16, likewise: the weights of the texts, see `embed::Embedding::weight`.
/// - `meta`: u32 dim | u32 bits per component: 4 or 8 | 16 bytes id of the embedding profile.
#[derive(Clone)]
pub struct VectorFile {
    file: SectionFile,
    dim: usize,
    quantisation: Quantisation,
    profile: ProfileId,
    codes: Bytes,
    factors: Bytes,
    weights: Bytes,
}

impl VectorFile {
    /// Opens the file `name` of the sidecar. Like all files there, it is verified by its checksums; values are verified
    /// before a file from elsewhere is added.
    pub fn open(sidecar: &Sidecar, name: &str) -> Result<Self, FileError> {
        Self::from_sections(SectionFile::open(sidecar, Store::Dense, name, FORMAT)?)
    }

    /// Opens a file in memory. `name` is used in error messages.
    pub fn from_bytes(name: &Path, bytes: impl Into<Bytes>) -> Result<Self, FileError> {
        Self::from_sections(SectionFile::from_bytes(name, bytes.into(), FORMAT)?)
    }

    /// Opens a file and verifies its checksums. Values may still be out of range, which can change scores but causes no
    /// panic; [`Self::verify`] finds them.
    pub(in crate::index) fn from_sections(file: SectionFile) -> Result<Self, FileError> {
        let meta = file.section("meta")?;
        let meta: &[u8; META_BYTES] = (*meta).try_into().map_err(|_| file.damaged("meta"))?;
        let number = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| meta[at + i]));
        let dim = number(0) as usize;
        let quantisation = Quantisation::from_bits(number(4)).filter(|_| (1..=MAX_DIM).contains(&dim));
        let vectors = Self {
            dim,
            quantisation: quantisation.ok_or_else(|| file.damaged("meta"))?,
            profile: ProfileId(std::array::from_fn(|i| meta[8 + i])),
            codes: file.section("codes")?,
            factors: file.section("factors")?,
            weights: file.section("weights")?,
            file,
        };
        let n = vectors.factors.len() / 2;
        let lengths = [vectors.codes.len(), vectors.factors.len(), vectors.weights.len()];
        if u32::try_from(n).is_ok() && lengths == [n * vectors.row_bytes(), 2 * n, 2 * n] {
            Ok(vectors)
        } else {
            Err(vectors.file.damaged("lengths of sections"))
        }
    }

    /// Verifies the whole file and checks that [`VectorWriter`] could have written each row. Checksums alone do not
    /// protect against a crafted file.
    ///
    /// [`VectorWriter`]: super::VectorWriter
    pub fn verify(&self) -> Result<(), FileError> {
        self.file.verify()?;
        match (0..self.len() as usize).find(|&row| !self.is_row_in_range(row)) {
            None => Ok(()),
            Some(row) => Err(self.file.damaged(format!("values of row {row}"))),
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
        (self.factors.len() / 2) as u32
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the size of the file in bytes.
    pub fn n_bytes(&self) -> u64 {
        self.file.n_bytes()
    }

    /// Returns the number of components of each vector.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Returns the storage format of the rows.
    pub fn quantisation(&self) -> Quantisation {
        self.quantisation
    }

    /// Returns the embedding profile of the vectors.
    pub fn profile(&self) -> ProfileId {
        self.profile
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

    /// Returns whether a row is stored as [`VectorWriter::push`] would store `vector` and `weight`, bit for bit.
    ///
    /// [`VectorWriter::push`]: super::VectorWriter::push
    pub fn has_row_of(&self, row: u32, vector: &[f32], weight: f32) -> bool {
        if row >= self.len() || vector.len() != self.dim {
            return false;
        }
        let (row, mut codes) = (row as usize, Vec::with_capacity(self.row_bytes()));
        let factor = quantise::encode(self.quantisation, vector, &mut codes);
        self.row(row) == codes && self.factors().get(row) == factor && self.weights().get(row) == half::encode(weight)
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
        &self.codes
    }

    /// Returns the codes of a row. Panics if the row is outside the file.
    #[inline(always)]
    pub(super) fn row(&self, row: usize) -> &[u8] {
        let row_bytes = self.row_bytes();
        &self.codes()[row * row_bytes..][..row_bytes]
    }

    pub(super) fn factors(&self) -> Halves<'_> {
        Halves(self.factors.as_chunks().0)
    }

    pub(super) fn weights(&self) -> Halves<'_> {
        Halves(self.weights.as_chunks().0)
    }

    pub(super) fn row_bytes(&self) -> usize {
        self.quantisation.row_bytes(self.dim)
    }
}

impl fmt::Debug for VectorFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VectorFile({} rows of {} components)", self.len(), self.dim)
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

#[cfg(test)]
mod tests;
