//! Vector files as they are written.

use super::half;
use super::quantise::{self, Quantisation};
use super::vectors::{Header, MAX_DIM, VectorFile};
use crate::embed::ProfileId;
use crate::index::header::HEADER_BYTES;

/// Collects the rows of a [`VectorFile`] and gives its bytes.
///
/// The same rows give the same bytes on every machine. Holds the file in memory: 132 bytes per vector of 256 components in int4.
#[derive(Debug)]
pub struct VectorWriter {
    dim: usize,
    quantisation: Quantisation,
    profile: ProfileId,
    /// Room for the header, then the codes.
    file: Vec<u8>,
    factors: Vec<u16>,
    weights: Vec<u16>,
}

/// Why a row cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Not a dimension that files can have.
    #[error("vectors of {dim} dimensions cannot be stored, only of 1 to {MAX_DIM}")]
    UnsupportedDimension {
        /// What was asked for.
        dim: usize,
    },
    /// The vector comes from another model.
    #[error("the vector has {found} dimensions where {expected} were expected")]
    Dimension {
        /// Of the vector.
        found: usize,
        /// Of the file.
        expected: usize,
    },
    /// A component or the weight is infinite or not a number.
    #[error("the vector is not finite")]
    NotFinite,
    /// The row comes from a file of another profile, dimension or quantisation.
    #[error("the row comes from a file of another kind")]
    OtherKind,
    /// Rows are numbered in 32 bits.
    #[error("the vector file is full")]
    Full,
}

impl VectorWriter {
    /// Begins a file.
    pub fn new(dim: usize, quantisation: Quantisation, profile: ProfileId) -> Result<Self, WriteError> {
        if dim == 0 || dim > MAX_DIM {
            return Err(WriteError::UnsupportedDimension { dim });
        }
        Ok(Self {
            dim,
            quantisation,
            profile,
            file: vec![0; HEADER_BYTES],
            factors: Vec::new(),
            weights: Vec::new(),
        })
    }

    /// Number of rows so far: the number that the next row will get.
    pub fn len(&self) -> usize {
        self.factors.len()
    }

    /// Whether there are no rows yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a row. `vector` has unit length or is zero (see `embed::Embedding`); nothing is written on an error.
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
            .push(quantise::encode(self.quantisation, vector, &mut self.file));
        self.weights.push(half::encode(weight));
        Ok(())
    }

    /// Adds a copy of a row of another file, byte for byte: what merging segments needs.
    pub fn copy_row(&mut self, from: &VectorFile, row: u32) -> Result<(), WriteError> {
        let same_kind =
            (from.dim(), from.quantisation(), from.profile()) == (self.dim, self.quantisation, self.profile);
        if !same_kind || row >= from.len() {
            return Err(WriteError::OtherKind);
        }
        self.check_room()?;
        self.file.extend_from_slice(from.row(row as usize));
        self.factors.push(from.factors().get(row as usize));
        self.weights.push(from.weights().get(row as usize));
        Ok(())
    }

    /// Appends a row that stands for no vector: like nothing, of weight 0.
    pub fn push_none(&mut self) -> Result<(), WriteError> {
        self.push(&vec![0.0; self.dim], 0.0)
    }

    /// Appends a row for a text of which the model makes nothing: like nothing, of weight 1.
    pub fn push_empty(&mut self) -> Result<(), WriteError> {
        self.push(&vec![0.0; self.dim], 1.0)
    }

    /// The finished file.
    pub fn finish(mut self) -> Vec<u8> {
        let header = |body_hash| Header {
            n: self.factors.len() as u32,
            dim: self.dim,
            quantisation: self.quantisation,
            profile: self.profile,
            body_hash,
        };
        self.file.reserve_exact(4 * self.factors.len());
        self.file.extend(
            self.factors
                .iter()
                .chain(&self.weights)
                .flat_map(|half| half.to_le_bytes()),
        );
        let header = header(blake3::hash(&self.file[HEADER_BYTES..]));
        self.file[..HEADER_BYTES].copy_from_slice(&header.write());
        self.file
    }

    fn check_room(&self) -> Result<(), WriteError> {
        if self.factors.len() < u32::MAX as usize {
            Ok(())
        } else {
            Err(WriteError::Full)
        }
    }
}
