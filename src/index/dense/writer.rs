//! Writes vector files.

use super::half;
use super::quantise::{self, Quantisation};
use super::vectors::{FORMAT, MAX_DIM, VectorFile};
use crate::embed::ProfileId;
use crate::sidecar::SectionWriter;

/// Writes a [`VectorFile`].
///
/// The same rows give the same bytes on every machine. Holds the file in memory, which takes 132 bytes per vector with
/// 256 components in int4.
#[derive(Debug)]
pub struct VectorWriter {
    dim: usize,
    quantisation: Quantisation,
    profile: ProfileId,
    codes: Vec<u8>,
    factors: Vec<u16>,
    weights: Vec<u16>,
}

/// An error from writing a row.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The dimension is not supported.
    #[error("cannot store vectors of {dim} dimensions (supported: 1 to {MAX_DIM})")]
    UnsupportedDimension {
        /// The requested dimension.
        dim: usize,
    },
    /// The vector has another dimension than the file.
    #[error("the vector has {found} dimensions, expected {expected}")]
    Dimension {
        /// The dimension of the vector.
        found: usize,
        /// The dimension of the file.
        expected: usize,
    },
    /// A component or the weight is infinite or not a number.
    #[error("the vector is not finite")]
    NotFinite,
    /// The row is from a file with another profile, dimension or quantisation.
    #[error("the row is from a file with another profile, dimension or quantisation")]
    OtherKind,
    /// All row numbers, which have 32 bits, are used.
    #[error("the vector file is full")]
    Full,
}

impl VectorWriter {
    /// Starts an empty file.
    pub fn new(dim: usize, quantisation: Quantisation, profile: ProfileId) -> Result<Self, WriteError> {
        if dim == 0 || dim > MAX_DIM {
            return Err(WriteError::UnsupportedDimension { dim });
        }
        Ok(Self {
            dim,
            quantisation,
            profile,
            codes: Vec::new(),
            factors: Vec::new(),
            weights: Vec::new(),
        })
    }

    /// Returns the number of rows so far. The next row has this number.
    pub fn len(&self) -> usize {
        self.factors.len()
    }

    /// Returns true if there are no rows yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a row. `vector` must have unit length or be zero (see `embed::Embedding`). Adds no row on an error.
    pub fn push(&mut self, vector: &[f32], weight: f32) -> Result<(), WriteError> {
        if vector.len() != self.dim {
            return Err(WriteError::Dimension {
                found: vector.len(),
                expected: self.dim,
            });
        }
        if !weight.is_finite() || vector.iter().any(|x| !x.is_finite()) {
            return Err(WriteError::NotFinite);
        }
        self.check_room()?;
        self.factors
            .push(quantise::encode(self.quantisation, vector, &mut self.codes));
        self.weights.push(half::encode(weight));
        Ok(())
    }

    /// Copies a row of another file byte for byte. Used to merge segments.
    pub fn copy_row(&mut self, from: &VectorFile, row: u32) -> Result<(), WriteError> {
        let same_kind =
            (from.dim(), from.quantisation(), from.profile()) == (self.dim, self.quantisation, self.profile);
        if !same_kind || row >= from.len() {
            return Err(WriteError::OtherKind);
        }
        self.check_room()?;
        self.codes.extend_from_slice(from.row(row as usize));
        self.factors.push(from.factors().get(row as usize));
        self.weights.push(from.weights().get(row as usize));
        Ok(())
    }

    /// Adds a placeholder for a document without a vector: a zero vector with weight 0.
    pub fn push_none(&mut self) -> Result<(), WriteError> {
        self.push(&vec![0.0; self.dim], 0.0)
    }

    /// Adds a row for a text that the model cannot embed: a zero vector with weight 1.
    pub fn push_empty(&mut self) -> Result<(), WriteError> {
        self.push(&vec![0.0; self.dim], 1.0)
    }

    /// Returns the content of the file.
    pub fn finish(self) -> Vec<u8> {
        let bytes_of = |halves: Vec<u16>| halves.into_iter().flat_map(u16::to_le_bytes).collect();
        let mut meta = (self.dim as u32).to_le_bytes().to_vec();
        meta.extend_from_slice(&self.quantisation.bits().to_le_bytes());
        meta.extend_from_slice(&self.profile.0);
        let mut file = SectionWriter::new(FORMAT);
        file.add("codes", self.codes);
        file.add("factors", bytes_of(self.factors));
        file.add("weights", bytes_of(self.weights));
        file.add("meta", meta);
        file.finish()
    }

    fn check_room(&self) -> Result<(), WriteError> {
        if self.factors.len() < u32::MAX as usize {
            Ok(())
        } else {
            Err(WriteError::Full)
        }
    }
}
