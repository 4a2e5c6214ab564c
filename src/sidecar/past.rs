//! Which past versions of files are indexed: the file `versions`.

use std::io;

use serde::{Deserialize, Serialize};

use super::layout::Sidecar;
use super::lock::WriterLock;
use super::record::{RecordError, RecordKind, read_record, write_record};

const NAME: &str = "versions";
/// Format 1: the first.
const KIND: RecordKind = RecordKind {
    magic: *b"CSVE",
    format: 1,
};

/// Which versions of files are indexed that no snapshot has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PastVersions {
    /// The last versions of files and definitions that were removed.
    #[default]
    Last,
    /// Every version that is recorded.
    All,
}

impl Sidecar {
    /// Which past versions are indexed.
    pub fn past_versions(&self) -> Result<PastVersions, RecordError> {
        Ok(read_record(self, NAME, KIND)?.unwrap_or_default())
    }

    /// Notes which past versions are indexed.
    pub fn set_past_versions(&self, versions: PastVersions, _lock: &WriterLock) -> io::Result<()> {
        write_record(self, NAME, KIND, &versions)
    }
}
