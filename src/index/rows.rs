//! Rows of any kind, one for each document of a segment: what keeps them need not know what they say.

use std::sync::Arc;

use crate::embed::{Embedding, ProfileId, SparseVector};

use super::dense::{Quantisation, SharedBytes, VectorFile, VectorFileError, VectorWriter, WriteError};
use super::sparse::{SparseFile, SparseWriter};

/// Components of vectors from outside are kept in a byte each; four bits are measured for the model inside the program alone.
const QUANTISATION: Quantisation = Quantisation::Int8;

/// What an embedder has made of a text.
#[derive(Clone, Debug)]
pub enum Row {
    /// A direction.
    Dense(Embedding),
    /// Weights of tokens.
    Sparse(SparseVector),
}

/// An opened file of rows of one profile.
#[derive(Clone, Debug)]
pub enum RowFile {
    /// Of vectors. A row of weight 0 is none.
    Dense(VectorFile),
    /// Of sparse vectors.
    Sparse(SparseFile),
}

/// Collects the rows of a [`RowFile`] and gives its bytes.
#[derive(Debug)]
pub enum RowWriter {
    /// Of vectors.
    Dense(VectorWriter),
    /// Of sparse vectors.
    Sparse(SparseWriter),
}

impl Row {
    /// Whether the model found nothing in the text.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Dense(embedding) => embedding.vector.iter().all(|&x| x == 0.0),
            Self::Sparse(vector) => vector.is_empty(),
        }
    }
}

impl RowFile {
    /// Opens a file, whichever it is, and compares it with its checksum.
    pub fn open(bytes: SharedBytes) -> Result<Self, VectorFileError> {
        let file = match SparseFile::open(Arc::clone(&bytes)) {
            Err(VectorFileError::OtherKind) => Self::Dense(VectorFile::open(bytes)?),
            opened => Self::Sparse(opened?),
        };
        match &file {
            Self::Dense(file) => file.verify()?,
            Self::Sparse(file) => file.verify()?,
        }
        Ok(file)
    }

    /// Number of rows.
    pub fn len(&self) -> u32 {
        match self {
            Self::Dense(file) => file.len(),
            Self::Sparse(file) => file.len(),
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What made them.
    pub fn profile(&self) -> ProfileId {
        match self {
            Self::Dense(file) => file.profile(),
            Self::Sparse(file) => file.profile(),
        }
    }

    /// Whether the text of `row` has been embedded; a row may stand for one that has not been.
    pub fn has(&self, row: u32) -> bool {
        match self {
            Self::Dense(file) => file.weight(row) > 0.0,
            Self::Sparse(file) => file.has(row),
        }
    }

    /// Begins a file that takes copies of these rows.
    pub fn writer(&self) -> Result<RowWriter, WriteError> {
        Ok(match self {
            Self::Dense(file) => RowWriter::Dense(VectorWriter::new(file.dim(), file.quantisation(), file.profile())?),
            Self::Sparse(file) => RowWriter::Sparse(SparseWriter::new(file.profile())),
        })
    }

    /// How alike the first rows of two files are, as a cosine; else in what the files differ.
    pub fn likeness(&self, known: &Self) -> Result<f32, String> {
        match (self, known) {
            (Self::Dense(file), Self::Dense(known)) if file.dim() != known.dim() => Err(format!(
                "{} components where the vectors that are stored have {}",
                file.dim(),
                known.dim()
            )),
            (Self::Dense(file), Self::Dense(known)) => {
                let vectors = [file, known].map(|file| file.vector(0).unwrap_or_default());
                Ok(vectors[0].iter().zip(&vectors[1]).map(|(a, b)| a * b).sum())
            }
            (Self::Sparse(file), Self::Sparse(known)) => Ok(file.cosine(0, known, 0).unwrap_or_default()),
            _ => Err("vectors of another kind".to_owned()),
        }
    }
}

impl RowWriter {
    /// Begins a file of rows such as `row` for a profile.
    pub fn like(row: &Row, profile: ProfileId) -> Result<Self, WriteError> {
        Ok(match row {
            Row::Dense(embedding) => Self::Dense(VectorWriter::new(embedding.vector.len(), QUANTISATION, profile)?),
            Row::Sparse(_) => Self::Sparse(SparseWriter::new(profile)),
        })
    }

    /// Adds a row.
    pub fn push(&mut self, row: &Row) -> Result<(), WriteError> {
        match (self, row) {
            (Self::Dense(writer), Row::Dense(embedding)) => writer.push(&embedding.vector, embedding.weight),
            (Self::Sparse(writer), Row::Sparse(vector)) => writer.push(vector),
            _ => Err(WriteError::OtherKind),
        }
    }

    /// Adds a copy of a row of another file, byte for byte.
    pub fn copy_row(&mut self, from: &RowFile, row: u32) -> Result<(), WriteError> {
        match (self, from) {
            (Self::Dense(writer), RowFile::Dense(from)) => writer.copy_row(from, row),
            (Self::Sparse(writer), RowFile::Sparse(from)) => writer.copy_row(from, row),
            _ => Err(WriteError::OtherKind),
        }
    }

    /// Adds a row that stands for a text that has not been embedded.
    pub fn push_none(&mut self) -> Result<(), WriteError> {
        match self {
            Self::Dense(writer) => writer.push_none(),
            Self::Sparse(writer) => writer.push_none(),
        }
    }

    /// The finished file.
    pub fn finish(self) -> Vec<u8> {
        match self {
            Self::Dense(writer) => writer.finish(),
            Self::Sparse(writer) => writer.finish(),
        }
    }
}
