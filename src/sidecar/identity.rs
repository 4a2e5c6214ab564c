//! What the repository is known by where clones share: the file `repository`.

use std::io;

use super::layout::Sidecar;
use super::record::{RecordError, RecordKind, read_record, write_record};

const NAME: &str = "repository";
/// Format 1: the first.
const KIND: RecordKind = RecordKind {
    magic: *b"CSRP",
    format: 1,
};

impl Sidecar {
    /// What was noted; finding it takes reading many commits.
    pub fn repository_identity(&self) -> Result<Option<String>, RecordError> {
        read_record(self, NAME, KIND)
    }

    /// Notes it. Whoever does finds the same.
    pub fn note_repository_identity(&self, identity: &str) -> io::Result<()> {
        write_record(self, NAME, KIND, &identity)
    }
}
