//! Files of sparse vectors as they are read.

use std::fmt;

use crate::embed::ProfileId;
use crate::index::dense::{SharedBytes, VectorFileError};
use crate::index::header::{HEADER_BYTES, RowsHeader};

/// An immutable file of sparse vectors, one row per document from 0 on.
///
/// Little endian; parts follow one another without gaps, after a header of 128 bytes as dense vector files have it, which begins
/// with `CSSP` and whose numbers are n, the number of rows; m, that of terms; 0.
///
/// | offset | bytes | content |
/// | --- | --- | --- |
/// | 128 | n × u32 | where each row's terms end, counted in terms |
/// | | n × f32 | scales: above 0, or 0 for no vector |
/// | | m × u32 | terms: token × 256 + step, by ascending token within a row; weight = scale · step, steps are 1 to 255 |
///
/// A byte for a weight is what is usual for such models; see Mackenzie, Trotman, Lin, "Wacky Weights in Learned Sparse
/// Representations and the Revenge of Score-at-a-Time Query Evaluation", 2021, where it costs no effectiveness. Opening checks the
/// header and the sizes only. Damage further on changes scores but breaks nothing; [`Self::verify`] finds it.
#[derive(Clone)]
pub struct SparseFile {
    bytes: SharedBytes,
    header: RowsHeader,
}

pub(super) const MAGIC: &[u8; 4] = b"CSSP";

impl SparseFile {
    /// Opens a file from its bytes, which must not change while it is open.
    pub fn open(bytes: SharedBytes) -> Result<Self, VectorFileError> {
        let file = (*bytes).as_ref();
        let header = RowsHeader::parse(MAGIC, file)?;
        let [n, m, zero] = header.numbers;
        let (found, expected) = (
            file.len() as u64,
            HEADER_BYTES as u64 + 8 * u64::from(n) + 4 * u64::from(m),
        );
        match (zero, found == expected) {
            (0, true) => Ok(Self { bytes, header }),
            (0, false) => Err(VectorFileError::Size { found, expected }),
            _ => Err(VectorFileError::Damaged),
        }
    }

    /// Reads the whole file and compares it with its checksum: about a gigabyte per second and more.
    pub fn verify(&self) -> Result<(), VectorFileError> {
        match blake3::hash(&self.all()[HEADER_BYTES..]) == self.header.body_hash {
            true => Ok(()),
            false => Err(VectorFileError::Damaged),
        }
    }

    /// Number of rows.
    pub fn len(&self) -> u32 {
        self.header.numbers[0]
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The size of the file.
    pub fn n_bytes(&self) -> usize {
        self.all().len()
    }

    /// Which model made the vectors.
    pub fn profile(&self) -> ProfileId {
        self.header.profile
    }

    /// Whether there is a vector for `row`, be it an empty one.
    pub fn has(&self, row: u32) -> bool {
        self.scale(row) > 0.0
    }

    /// Tokens with their weights as far as they are kept, by ascending token; none outside the file.
    pub fn terms(&self, row: u32) -> impl Iterator<Item = (u32, f32)> + '_ {
        let scale = self.scale(row);
        self.entries(row).iter().map(move |&entry| {
            let (token, step) = token_and_step(entry);
            (token, scale * step as f32)
        })
    }

    /// The cosine of the angle between a row and a row of another file; `None` where one is empty.
    pub fn cosine(&self, row: u32, other: &Self, other_row: u32) -> Option<f32> {
        let theirs: std::collections::HashMap<u32, f32> = other.terms(other_row).collect();
        let dot: f32 = self
            .terms(row)
            .filter_map(|(token, weight)| Some(weight * theirs.get(&token)?))
            .sum();
        let norm = |file: &Self, row| file.terms(row).map(|(_, weight)| weight * weight).sum::<f32>().sqrt();
        let norms = norm(self, row) * norm(other, other_row);
        (norms > 0.0).then(|| dot / norms)
    }

    /// What the steps of a row are multiplied by; 0 outside the file.
    #[inline(always)]
    pub(super) fn scale(&self, row: u32) -> f32 {
        let start = HEADER_BYTES + 4 * self.len() as usize;
        let scales: &[[u8; 4]] = self.all()[start..].as_chunks().0;
        match row < self.len() {
            true => f32::from_le_bytes(scales[row as usize]),
            false => 0.0,
        }
    }

    /// The terms of a row as they are stored; none outside the file.
    #[inline(always)]
    pub(super) fn entries(&self, row: u32) -> &[[u8; 4]] {
        let end = |row: u32| {
            self.ends()
                .get(row as usize)
                .map(|end| u32::from_le_bytes(*end) as usize)
        };
        let start = row.checked_sub(1).map_or(Some(0), end);
        let range = start.zip(end(row)).map(|(start, end)| start..end);
        range
            .and_then(|range| self.all_entries().get(range))
            .unwrap_or_default()
    }

    fn ends(&self) -> &[[u8; 4]] {
        &self.all()[HEADER_BYTES..].as_chunks().0[..self.len() as usize]
    }

    fn all_entries(&self) -> &[[u8; 4]] {
        self.all()[HEADER_BYTES + 8 * self.len() as usize..].as_chunks().0
    }

    fn all(&self) -> &[u8] {
        (*self.bytes).as_ref()
    }
}

impl fmt::Debug for SparseFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SparseFile").field(&self.header).finish()
    }
}

/// The two parts of a stored term.
#[inline(always)]
pub(super) fn token_and_step(entry: [u8; 4]) -> (u32, u32) {
    let entry = u32::from_le_bytes(entry);
    (entry >> 8, entry & 255)
}
