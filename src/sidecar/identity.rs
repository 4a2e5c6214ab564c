//! The file `repository`, which stores an identity that all clones of the repository share.

use std::io;

use super::file_error::FileError;
use super::layout::Sidecar;
use super::record::{RecordKind, read_record, write_record};

const NAME: &str = "repository";
/// The current format. No earlier format exists.
const KIND: RecordKind = RecordKind {
    magic: *b"CSRP",
    format: 1,
    earlier: None,
};

impl Sidecar {
    /// Returns the stored identity. It is stored because computing it requires reading many commits.
    pub fn repository_identity(&self) -> Result<Option<String>, FileError> {
        read_record(self, NAME, KIND)
    }

    /// Stores the identity. Every process computes the same one, so no lock is needed.
    pub fn note_repository_identity(&self, identity: &str) -> io::Result<()> {
        write_record(self, NAME, KIND, &identity)
    }
}
