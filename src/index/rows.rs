//! Rows of any kind, one for each document of a segment: what keeps them need not know what they say.

use std::sync::Arc;

use crate::embed::{Embedding, ProfileId, SparseVector};

use super::dense::{Quantisation, SharedBytes, VectorFile, VectorFileError, VectorWriter, WriteError};
use super::sparse::{SparseFile, SparseWriter};

/// Components of vectors from outside are kept in a byte each; four bits are measured for the model inside the program alone.
const QUANTISATION: Quantisation = Quantisation::Int8;

/// Which kind rows are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowKind {
    /// Directions.
    Dense,
    /// Weights of tokens.
    Sparse,
}

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
    /// Of vectors. A row of weight 0 is none; one of zeros with a weight is of a text of which the model makes nothing.
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

impl RowKind {
    /// What they are called.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Dense => "vectors",
            Self::Sparse => "sparse vectors",
        }
    }
}

impl Row {
    /// Whether the model found nothing in the text.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Dense(embedding) => embedding.vector.iter().all(|&x| x == 0.0),
            Self::Sparse(vector) => vector.is_empty(),
        }
    }

    /// Components; 0 for what has none.
    pub fn dim(&self) -> usize {
        match self {
            Self::Dense(embedding) => embedding.vector.len(),
            Self::Sparse(_) => 0,
        }
    }
}

impl RowFile {
    /// Opens a file, whichever it is, compares it with its checksum and checks that its values are in range.
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

    /// Components of every row; 0 for what has none.
    pub fn dim(&self) -> usize {
        match self {
            Self::Dense(file) => file.dim(),
            Self::Sparse(_) => 0,
        }
    }

    /// Whether `row` is of a text of which the model has made something.
    pub fn has_content(&self, row: u32) -> bool {
        match self {
            Self::Dense(file) => file.has_vector(row),
            Self::Sparse(file) => file.has_terms(row),
        }
    }

    /// What the model has made of the text of `row`, as far as it is kept; `None` where that is nothing.
    pub fn row(&self, row: u32) -> Option<Row> {
        if !self.has_content(row) {
            return None;
        }
        Some(match self {
            Self::Dense(file) => Row::Dense(Embedding {
                vector: file.vector(row)?,
                weight: file.weight(row),
            }),
            Self::Sparse(file) => Row::Sparse(file.vector(row)),
        })
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

    /// Adds a row for a text of which the model makes nothing, so that it is not asked again.
    pub fn push_empty(&mut self) -> Result<(), WriteError> {
        match self {
            Self::Dense(writer) => writer.push_empty(),
            Self::Sparse(writer) => writer.push(&SparseVector::default()),
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

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    const PROFILE: ProfileId = ProfileId([7; 16]);

    fn dense(vector: &[f32]) -> Row {
        Row::Dense(Embedding::from_foreign(vector.to_vec(), vector.len(), "m").unwrap())
    }

    fn sparse(terms: &[(u32, f32)]) -> Row {
        Row::Sparse(SparseVector::from_foreign(terms.to_vec(), "m").unwrap())
    }

    fn file(rows: &[&Row]) -> RowFile {
        let mut writer = RowWriter::like(rows[0], PROFILE).unwrap();
        rows.iter().for_each(|row| writer.push(row).unwrap());
        RowFile::open(Arc::new(writer.finish())).unwrap()
    }

    #[test]
    fn rows_of_either_kind_are_carried_and_gaps_stay_gaps() {
        for row in [dense(&[0.6, 0.8]), sparse(&[(3, 1.0), (9, 0.5)])] {
            let from = file(&[&row, &row]);
            let mut writer = from.writer().unwrap();
            writer.copy_row(&from, 1).unwrap();
            writer.push_none().unwrap();
            writer.copy_row(&from, 0).unwrap();
            let carried = RowFile::open(Arc::new(writer.finish())).unwrap();
            assert_eq!((carried.len(), carried.profile()), (3, PROFILE));
            assert_eq!([0, 1, 2, 3].map(|row| carried.has(row)), [true, false, true, false]);
            assert!(carried.likeness(&from).unwrap() > 0.999);
        }
    }

    #[test]
    fn kinds_are_not_mixed() {
        let (dense, sparse) = (dense(&[0.6, 0.8]), sparse(&[(3, 1.0)]));
        let (files, mut writer) = (
            [file(&[&dense]), file(&[&sparse])],
            RowWriter::like(&sparse, PROFILE).unwrap(),
        );
        assert!(matches!(writer.push(&dense), Err(WriteError::OtherKind)));
        assert!(matches!(writer.copy_row(&files[0], 0), Err(WriteError::OtherKind)));
        assert!(files[0].likeness(&files[1]).is_err());
        let other = file(&[&self::dense(&[1.0, 0.0, 0.0])]);
        assert_eq!(
            other.likeness(&files[0]).unwrap_err(),
            "3 components where the vectors that are stored have 2"
        );
    }

    #[test]
    fn a_damaged_file_of_either_kind_is_not_opened() {
        for row in [dense(&[0.6, 0.8]), sparse(&[(3, 1.0)])] {
            let mut writer = RowWriter::like(&row, PROFILE).unwrap();
            writer.push(&row).unwrap();
            let bytes = writer.finish();
            for at in 0..bytes.len() {
                let mut damaged = bytes.clone();
                damaged[at] ^= 4;
                assert!(RowFile::open(Arc::new(damaged)).is_err(), "{at}");
            }
        }
    }
}
