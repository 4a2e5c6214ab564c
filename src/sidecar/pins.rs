//! The file `pins`: trees whose snapshots garbage collection must not delete.

use std::io;

use serde::{Deserialize, Serialize};

use super::file_error::FileError;
use super::layout::Sidecar;
use super::lock::WriterLock;
use super::record::{RecordKind, read_record, write_record};
use crate::model::{CommitId, Oid, TreeId};

const NAME: &str = "pins";
/// The current format. No earlier format exists.
const KIND: RecordKind = RecordKind {
    magic: *b"CSPN",
    format: 1,
    earlier: None,
};

/// A tree whose snapshot is not deleted until the tree is unpinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The pinned revision, as the user typed it.
    pub name: String,
    /// The commit; `None` if the revision names a tree.
    pub commit: Option<CommitId>,
    /// The id of the tree.
    pub tree: TreeId,
    /// The time of pinning, in seconds since 1970-01-01T00:00Z.
    pub pinned_at: i64,
}

/// The serialised form of a pin. Ids are hexadecimal; an empty string represents a missing commit.
#[derive(Serialize, Deserialize)]
struct StoredPin {
    name: String,
    commit: String,
    tree: String,
    pinned_at: i64,
}

impl Sidecar {
    /// Returns the pins in order of creation.
    pub fn pins(&self) -> Result<Vec<Pin>, FileError> {
        let stored: Vec<StoredPin> = read_record(self, NAME, KIND)?.unwrap_or_default();
        let damaged = || FileError::damaged(self.root().join(NAME), "an id");
        stored
            .into_iter()
            .map(|pin| pin.into_pin().ok_or_else(damaged))
            .collect()
    }

    /// Replaces the list of pins.
    pub fn write_pins(&self, pins: &[Pin], _lock: &WriterLock) -> io::Result<()> {
        let stored: Vec<StoredPin> = pins.iter().map(StoredPin::of).collect();
        write_record(self, NAME, KIND, &stored)
    }
}

impl StoredPin {
    fn of(pin: &Pin) -> Self {
        Self {
            name: pin.name.clone(),
            commit: pin.commit.map(|commit| commit.to_string()).unwrap_or_default(),
            tree: pin.tree.to_string(),
            pinned_at: pin.pinned_at,
        }
    }

    fn into_pin(self) -> Option<Pin> {
        let commit = if self.commit.is_empty() {
            None
        } else {
            Some(CommitId(Oid::from_hex(&self.commit).ok()?))
        };
        Some(Pin {
            commit,
            tree: TreeId(Oid::from_hex(&self.tree).ok()?),
            name: self.name,
            pinned_at: self.pinned_at,
        })
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use std::time::Duration;

    #[test]
    fn pins_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let sidecar = Sidecar::open_or_create(&folder.path().join("sidecar")).unwrap();
        assert_eq!(sidecar.pins().unwrap(), []);
        let lock = sidecar.lock(Duration::from_secs(20)).unwrap();
        let id = |byte, length| Oid::from_bytes(&vec![byte; length]).unwrap();
        let pins = [
            Pin {
                name: "v1".to_owned(),
                commit: Some(CommitId(id(1, 20))),
                tree: TreeId(id(2, 20)),
                pinned_at: 7,
            },
            Pin {
                name: "a tree".to_owned(),
                commit: None,
                tree: TreeId(id(3, 32)),
                pinned_at: -7,
            },
        ];
        sidecar.write_pins(&pins, &lock).unwrap();
        assert_eq!(sidecar.pins().unwrap(), pins);
    }
}
