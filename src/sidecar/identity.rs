//! The file `repository`, which identifies the repository among its clones.

use std::io;

use super::layout::Sidecar;
use super::record::{RecordError, RecordKind, read_record, write_record};

const NAME: &str = "repository";
/// Format 1 is the first.
const KIND: RecordKind = RecordKind {
    magic: *b"CSRP",
    format: 1,
};

impl Sidecar {
    /// Returns the stored identity. Computing it requires reading many commits.
    pub fn repository_identity(&self) -> Result<Option<String>, RecordError> {
        read_record(self, NAME, KIND)
    }

    /// Stores the identity. All processes compute the same one.
    pub fn note_repository_identity(&self, identity: &str) -> io::Result<()> {
        write_record(self, NAME, KIND, &identity)
    }
}
