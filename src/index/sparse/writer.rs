//! Files of sparse vectors as they are written.

use super::file::{MAGIC, SparseFile};
use crate::embed::{ProfileId, SparseVector};
use crate::index::dense::WriteError;
use crate::index::header::{HEADER_BYTES, RowsHeader};

/// The heaviest token of a vector has this step.
const MAX_STEP: f32 = 255.0;

/// Collects the rows of a [`SparseFile`] and gives its bytes. The same rows give the same bytes on every machine.
#[derive(Debug)]
pub struct SparseWriter {
    profile: ProfileId,
    ends: Vec<u32>,
    scales: Vec<f32>,
    entries: Vec<[u8; 4]>,
}

impl SparseWriter {
    /// Begins a file.
    pub fn new(profile: ProfileId) -> Self {
        Self {
            profile,
            ends: Vec::new(),
            scales: Vec::new(),
            entries: Vec::new(),
        }
    }

    /// Adds a row. Nothing is written on an error.
    pub fn push(&mut self, vector: &SparseVector) -> Result<(), WriteError> {
        let heaviest = vector
            .terms()
            .iter()
            .fold(0.0f32, |most, (_, weight)| most.max(*weight));
        // Weights next to nothing would have a scale of nothing, which stands for no vector.
        let scale = (heaviest / MAX_STEP).max(f32::MIN_POSITIVE);
        let entries = vector.terms().iter().map(|(token, weight)| {
            let step = (weight / scale).round().clamp(1.0, MAX_STEP) as u32;
            (token << 8 | step).to_le_bytes()
        });
        self.add(scale, entries)
    }

    /// Adds a copy of a row of another file, byte for byte.
    pub fn copy_row(&mut self, from: &SparseFile, row: u32) -> Result<(), WriteError> {
        match from.profile() == self.profile && row < from.len() {
            true => self.add(from.scale(row), from.entries(row).iter().copied()),
            false => Err(WriteError::OtherKind),
        }
    }

    /// Appends a row that stands for no vector.
    pub fn push_none(&mut self) -> Result<(), WriteError> {
        self.add(0.0, std::iter::empty())
    }

    /// The finished file.
    pub fn finish(self) -> Vec<u8> {
        let mut file = vec![0; HEADER_BYTES];
        file.reserve_exact(8 * self.ends.len() + 4 * self.entries.len());
        file.extend(self.ends.iter().flat_map(|end| end.to_le_bytes()));
        file.extend(self.scales.iter().flat_map(|scale| scale.to_le_bytes()));
        file.extend(self.entries.as_flattened());
        let header = RowsHeader {
            numbers: [self.ends.len() as u32, self.entries.len() as u32, 0],
            profile: self.profile,
            body_hash: blake3::hash(&file[HEADER_BYTES..]),
        };
        file[..HEADER_BYTES].copy_from_slice(&header.write(MAGIC));
        file
    }

    fn add(&mut self, scale: f32, entries: impl ExactSizeIterator<Item = [u8; 4]>) -> Result<(), WriteError> {
        let end = u32::try_from(self.entries.len() + entries.len()).map_err(|_| WriteError::Full)?;
        if self.ends.len() >= u32::MAX as usize {
            return Err(WriteError::Full);
        }
        self.entries.extend(entries);
        self.ends.push(end);
        self.scales.push(scale);
        Ok(())
    }
}
