//! Files of dense or sparse vectors, with one row for each document of a segment. With these types, the same code
//! stores rows of either kind.

use std::path::Path;

use crate::embed::{Embedding, ProfileId, SparseVector};
use crate::sidecar::{Bytes, FileError, SectionFile, Sidecar, Store};

use super::dense::{FORMAT, Quantisation, VectorFile, VectorWriter, WriteError};
use super::sparse::{SparseFile, SparseWriter};

/// The storage format of vectors from external models. Four bits have been evaluated for the built-in model only.
const QUANTISATION: Quantisation = Quantisation::Int8;

/// The kind of a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowKind {
    /// Dense vectors: all components.
    Dense,
    /// Sparse vectors: weights of some tokens.
    Sparse,
}

/// The vector that an embedder returned for one text.
#[derive(Clone, Debug)]
pub enum Row {
    /// A dense vector with its weight.
    Dense(Embedding),
    /// A sparse vector.
    Sparse(SparseVector),
}

/// An open file of rows. All rows have the same embedding profile.
#[derive(Clone, Debug)]
pub enum RowFile {
    /// Dense vectors. A row with weight 0 is a placeholder. A row of zeros with another weight belongs to a text that
    /// the model cannot embed.
    Dense(VectorFile),
    /// Sparse vectors.
    Sparse(SparseFile),
}

/// Writes a [`RowFile`].
#[derive(Debug)]
pub enum RowWriter {
    /// Dense vectors.
    Dense(VectorWriter),
    /// Sparse vectors.
    Sparse(SparseWriter),
}

impl RowKind {
    /// Returns the plural noun for messages.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Dense => "vectors",
            Self::Sparse => "sparse vectors",
        }
    }
}

impl Row {
    /// Returns true if the model recognised nothing in the text.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Dense(embedding) => embedding.vector.iter().all(|&x| x == 0.0),
            Self::Sparse(vector) => vector.is_empty(),
        }
    }
}

impl RowFile {
    /// Opens a file of the sidecar, of either kind, and verifies it.
    pub fn open(sidecar: &Sidecar, name: &str) -> Result<Self, FileError> {
        Self::from_sections(SectionFile::open(sidecar, Store::Dense, name, FORMAT)?)
    }

    /// Opens a file in memory, of either kind, and verifies it. `name` is used in error messages.
    pub fn from_bytes(name: &Path, bytes: impl Into<Bytes>) -> Result<Self, FileError> {
        Self::from_sections(SectionFile::from_bytes(name, bytes.into(), FORMAT)?)
    }

    fn from_sections(file: SectionFile) -> Result<Self, FileError> {
        if file.has_section("codes") {
            let file = VectorFile::from_sections(file)?;
            file.verify()?;
            Ok(Self::Dense(file))
        } else {
            let file = SparseFile::from_sections(file)?;
            file.verify()?;
            Ok(Self::Sparse(file))
        }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> u32 {
        match self {
            Self::Dense(file) => file.len(),
            Self::Sparse(file) => file.len(),
        }
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the embedding profile of the rows.
    pub fn profile(&self) -> ProfileId {
        match self {
            Self::Dense(file) => file.profile(),
            Self::Sparse(file) => file.profile(),
        }
    }

    /// Returns true if the text of `row` has been embedded. Otherwise, the row is a placeholder.
    pub fn has(&self, row: u32) -> bool {
        match self {
            Self::Dense(file) => file.weight(row) > 0.0,
            Self::Sparse(file) => file.has(row),
        }
    }

    /// Starts an empty file of the same kind, to copy rows to.
    pub fn writer(&self) -> Result<RowWriter, WriteError> {
        Ok(match self {
            Self::Dense(file) => RowWriter::Dense(VectorWriter::new(file.dim(), file.quantisation(), file.profile())?),
            Self::Sparse(file) => RowWriter::Sparse(SparseWriter::new(file.profile())),
        })
    }

    /// Returns the cosine of the first row of this file and the first row of `known`. The error describes why the rows
    /// cannot be compared.
    pub fn likeness(&self, known: &Self) -> Result<f32, String> {
        match (self, known) {
            (Self::Dense(file), Self::Dense(known)) if file.dim() != known.dim() => Err(format!(
                "{} components, but the stored vectors have {}",
                file.dim(),
                known.dim()
            )),
            (Self::Dense(file), Self::Dense(known)) => {
                let vectors = [file, known].map(|file| file.vector(0).unwrap_or_default());
                Ok(vectors[0].iter().zip(&vectors[1]).map(|(a, b)| a * b).sum())
            }
            (Self::Sparse(file), Self::Sparse(known)) => Ok(file.cosine(0, known, 0).unwrap_or_default()),
            _ => Err("different kind of vectors".to_owned()),
        }
    }
}

impl RowWriter {
    /// Starts an empty file for rows of the same kind and dimension as `row`.
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

    /// Copies a row of another file byte for byte.
    pub fn copy_row(&mut self, from: &RowFile, row: u32) -> Result<(), WriteError> {
        match (self, from) {
            (Self::Dense(writer), RowFile::Dense(from)) => writer.copy_row(from, row),
            (Self::Sparse(writer), RowFile::Sparse(from)) => writer.copy_row(from, row),
            _ => Err(WriteError::OtherKind),
        }
    }

    /// Adds a placeholder for a text that has not been embedded.
    pub fn push_none(&mut self) -> Result<(), WriteError> {
        match self {
            Self::Dense(writer) => writer.push_none(),
            Self::Sparse(writer) => writer.push_none(),
        }
    }

    /// Adds an empty row for a text that the model cannot embed, so that it is not embedded again.
    pub fn push_empty(&mut self) -> Result<(), WriteError> {
        match self {
            Self::Dense(writer) => writer.push_empty(),
            Self::Sparse(writer) => writer.push(&SparseVector::default()),
        }
    }

    /// Returns the content of the file.
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
        RowFile::from_bytes(Path::new("rows"), writer.finish()).unwrap()
    }

    #[test]
    fn rows_of_either_kind_are_carried_and_gaps_stay_gaps() {
        for row in [dense(&[0.6, 0.8]), sparse(&[(3, 1.0), (9, 0.5)])] {
            let from = file(&[&row, &row]);
            let mut writer = from.writer().unwrap();
            writer.copy_row(&from, 1).unwrap();
            writer.push_none().unwrap();
            writer.copy_row(&from, 0).unwrap();
            let carried = RowFile::from_bytes(Path::new("rows"), writer.finish()).unwrap();
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
            "3 components, but the stored vectors have 2"
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
                assert!(RowFile::from_bytes(Path::new("rows"), damaged).is_err(), "{at}");
            }
        }
    }
}
