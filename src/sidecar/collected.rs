//! The file `gc`, which records the last garbage collection.

use std::io;

use serde::{Deserialize, Serialize};

use super::layout::Sidecar;
use super::lock::WriterLock;
use super::record::{RecordError, RecordKind, read_record, write_record};

const NAME: &str = "gc";
/// Format 1 is the first.
const KIND: RecordKind = RecordKind {
    magic: *b"CSGC",
    format: 1,
};

/// The result of the last collection, used to decide when to run the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastCollection {
    /// When it ended, in seconds since 1970-01-01T00:00Z.
    pub ended_at: i64,
    /// Number of snapshots kept.
    pub n_snapshots: u64,
}

impl Sidecar {
    /// Returns the last collection, or `None` before the first one.
    pub fn last_collection(&self) -> Result<Option<LastCollection>, RecordError> {
        read_record(self, NAME, KIND)
    }

    /// Records that a collection has ended.
    pub fn note_collection(&self, last: LastCollection, _lock: &WriterLock) -> io::Result<()> {
        write_record(self, NAME, KIND, &last)
    }
}
