//! Writes files of sparse vectors.

use super::file::{NO_SCALE, SparseFile, Term};
use crate::embed::{ProfileId, SparseVector};
use crate::index::dense::{FORMAT, WriteError};
use crate::sidecar::SectionWriter;

/// The step of the highest weight of a vector.
const MAX_STEP: f32 = 255.0;

/// Writes a [`SparseFile`]. The same rows give the same bytes on every machine.
#[derive(Debug)]
pub struct SparseWriter {
    profile: ProfileId,
    scales: Vec<f32>,
    /// Pairs of a token and a posting, which combines a row and a step in one number. Ordered by row.
    postings: Vec<(u32, u32)>,
}

impl SparseWriter {
    /// Starts an empty file.
    pub fn new(profile: ProfileId) -> Self {
        Self {
            profile,
            scales: Vec::new(),
            postings: Vec::new(),
        }
    }

    /// Adds a row. Adds no row on an error.
    pub fn push(&mut self, vector: &SparseVector) -> Result<(), WriteError> {
        let heaviest = vector
            .terms()
            .iter()
            .fold(0.0f32, |most, (_, weight)| most.max(*weight));
        // If all weights are close to 0, the scale would be 0, which marks a row without a vector.
        let scale = short(heaviest / MAX_STEP).max(NO_SCALE);
        let terms = vector.terms().iter().map(|(token, weight)| {
            let step = (weight / scale).round().clamp(1.0, MAX_STEP);
            Term::new(*token, step as u32)
        });
        self.add(scale, terms)
    }

    /// Copies a row of another file with the same scale, tokens and steps.
    pub fn copy_row(&mut self, from: &SparseFile, row: u32) -> Result<(), WriteError> {
        if from.profile() == self.profile && row < from.len() {
            self.add(from.scale(row), from.row(row).iter().copied())
        } else {
            Err(WriteError::OtherKind)
        }
    }

    /// Adds a row without a vector.
    pub fn push_none(&mut self) -> Result<(), WriteError> {
        self.add(0.0, std::iter::empty())
    }

    /// Returns the content of the file.
    pub fn finish(mut self) -> Vec<u8> {
        // The rows are ascending, and a stable sort does not change their order within a token.
        self.postings.sort_by_key(|(token, _)| *token);
        let tokens: Vec<(u32, u32)> = self
            .postings
            .chunk_by(|(a, _), (b, _)| a == b)
            .scan(0, |end, postings| {
                *end += postings.len() as u32;
                Some((postings[0].0, *end))
            })
            .collect();
        let bytes_of = |numbers: &mut dyn Iterator<Item = u32>| numbers.flat_map(u32::to_le_bytes).collect();
        let mut file = SectionWriter::new(FORMAT);
        file.add("scales", bytes_of(&mut self.scales.iter().map(|scale| scale.to_bits())));
        file.add(
            "tokens",
            bytes_of(&mut tokens.iter().flat_map(|(token, end)| [*token, *end])),
        );
        file.add(
            "postings",
            bytes_of(&mut self.postings.iter().map(|(_, posting)| *posting)),
        );
        file.add("profile", self.profile.0.to_vec());
        file.finish()
    }

    fn add(&mut self, scale: f32, terms: impl ExactSizeIterator<Item = Term>) -> Result<(), WriteError> {
        let row = self.scales.len() as u32;
        if row >= Term::END || self.postings.len() + terms.len() > u32::MAX as usize {
            return Err(WriteError::Full);
        }
        let postings = terms.map(|term| (term.number(), Term::new(row, term.step()).0));
        self.postings.extend(postings);
        self.scales.push(scale);
        Ok(())
    }
}

/// Rounds a scale to 16 significant bits. Its product with an 8-bit step is then exact in `f32`, so a row that is read
/// and written again is bit-identical on every machine.
fn short(scale: f32) -> f32 {
    f32::from_bits((scale.to_bits() + 0x80) & !0xff)
}
