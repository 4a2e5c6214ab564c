//! The file `gc`, which records the time and the result of the last garbage collection.

use std::io;

use serde::{Deserialize, Serialize};

use super::file_error::FileError;
use super::layout::Sidecar;
use super::lock::WriterLock;
use super::record::{RecordKind, read_record, write_record};

const NAME: &str = "gc";
/// The current format. No earlier format exists.
const KIND: RecordKind = RecordKind {
    magic: *b"CSGC",
    format: 1,
    earlier: None,
};

/// The last garbage collection. Used to decide when to run the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastCollection {
    /// The time when it ended, in seconds since 1970-01-01T00:00Z.
    pub ended_at: i64,
    /// Number of snapshots that remained.
    pub n_snapshots: u64,
}

impl Sidecar {
    /// Returns the record of the last collection, or `None` if none has run yet.
    pub fn last_collection(&self) -> Result<Option<LastCollection>, FileError> {
        read_record(self, NAME, KIND)
    }

    /// Stores the record of the last collection.
    pub fn note_collection(&self, last: LastCollection, _lock: &WriterLock) -> io::Result<()> {
        write_record(self, NAME, KIND, &last)
    }
}
