//! When garbage was collected last: the file `gc`.

use std::io;

use serde::{Deserialize, Serialize};

use super::layout::Sidecar;
use super::lock::WriterLock;
use super::record::{RecordError, RecordKind, read_record, write_record};

/// Format 1: the first.
const KIND: RecordKind = RecordKind {
    magic: *b"CSGC",
    format: 1,
};

/// What the last collection left behind; decides when the next is worth it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastCollection {
    /// When it ended, in seconds since 1970-01-01T00:00Z.
    pub ended_at: i64,
    /// How many snapshots were kept.
    pub n_snapshots: u64,
}

impl Sidecar {
    /// The last collection; `None` before the first.
    pub fn last_collection(&self) -> Result<Option<LastCollection>, RecordError> {
        read_record(&self.root().join("gc"), KIND)
    }

    /// Notes that a collection has ended.
    pub fn note_collection(&self, last: LastCollection, _lock: &WriterLock) -> io::Result<()> {
        write_record(&self.root().join("gc"), KIND, &last)
    }
}
