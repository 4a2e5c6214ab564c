//! Removes unused files: segments and batches of commits replaced by merging, manifests of an earlier epoch, and files
//! of killed writers.

use std::collections::HashSet;
use std::io;
use std::time::{Duration, SystemTime};

use crate::history::KNOWN_ENDING;
use crate::precise::FactsFile;
use crate::sidecar::{EntryKind, HistoryEntry, SegmentEntry, Sidecar, State, Store, StoredFile, WriterLock, failpoint};
use crate::snapshot::{EDITS_ENDING, SnapshotStore};

use super::history::HISTORY_ENDING;
use super::publish::{ARTIFACTS_ENDING, GRAPH_ENDING, LEXICAL_ENDING, NAME_DIGITS, SPARSE_ENDING, VECTORS_ENDING};
use super::sides::{LINES_ENDING, MESSAGES_ENDING};
use super::trace::SYMBOLS_ENDING;

/// The stores that contain segment files, and the file extensions in each.
const SWEPT: [(Store, &[&str]); 4] = [
    (Store::Artifacts, &[ARTIFACTS_ENDING, EDITS_ENDING, FactsFile::ENDING]),
    (Store::Lexical, &[LEXICAL_ENDING]),
    (Store::Dense, &[VECTORS_ENDING, SPARSE_ENDING, GRAPH_ENDING]),
    (
        Store::History,
        &[
            HISTORY_ENDING,
            SYMBOLS_ENDING,
            MESSAGES_ENDING,
            LINES_ENDING,
            KNOWN_ENDING,
        ],
    ),
];

/// Sets the modification time of files of segments that the published state no longer lists, which starts their grace
/// period. A failure only shortens the period.
pub(super) fn retire(sidecar: &Sidecar, entries: &[SegmentEntry]) {
    retire_files(sidecar, entries.iter().flat_map(SegmentEntry::files));
}

/// Like [`retire`], for batches of commits.
pub(super) fn retire_history(sidecar: &Sidecar, entries: &[HistoryEntry]) {
    retire_files(sidecar, entries.iter().flat_map(HistoryEntry::files));
}

/// Like [`retire`], for one file.
pub(super) fn retire_file(sidecar: &Sidecar, store: Store, file: &StoredFile) {
    touch(sidecar, store, &file.name, SystemTime::now());
}

pub(super) fn retire_files<'e>(sidecar: &Sidecar, files: impl Iterator<Item = (Store, &'e StoredFile)>) {
    let now = SystemTime::now();
    for (store, file) in files {
        touch(sidecar, store, &file.name, now);
    }
}

/// Like [`retire`], for all manifests of an old epoch.
pub(super) fn retire_manifests(sidecar: &Sidecar, snapshots: &SnapshotStore<'_>) -> io::Result<()> {
    let now = SystemTime::now();
    let files = snapshots.files()?;
    files
        .iter()
        .filter(|file| file.is_current)
        .for_each(|file| touch(sidecar, Store::Snapshots, &file.name, now));
    Ok(())
}

fn touch(sidecar: &Sidecar, store: Store, name: &str, now: SystemTime) {
    if let Err(error) = sidecar.retire(store, name, now) {
        tracing::debug!(name, %error, "cannot set the modification time");
    }
}

/// Limits for deleting unused files. A reader may have read an older state without having opened its files yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grace {
    /// Minimum time since the last modification of a file before it is deleted.
    pub(super) period: Duration,
    /// Total size of the most recently modified unused files to keep. At least the size of the files in use.
    pub(super) min_bytes: u64,
}

/// Removes segment files that the published `state` does not list and manifests of other epochs, except those in their
/// grace period. Does not remove files of other programs. Returns the number of files removed.
///
/// A process that has such a file mapped can still read it. A process that has read an older state but not opened its
/// files finds them missing and reads the state again (see `Segments::open_newest`). The grace period makes that rare.
pub(super) fn sweep(sidecar: &Sidecar, state: &State, grace: Grace, lock: &WriterLock) -> io::Result<usize> {
    let Found {
        mut unnamed,
        named_bytes,
        history_bytes,
    } = find(sidecar, state)?;
    unnamed.sort_unstable_by(|a, b| (b.changed, &b.name).cmp(&(a.changed, &a.name)));
    let now = SystemTime::now();
    let allowed = (named_bytes + history_bytes).max(grace.min_bytes);
    let (mut kept_bytes, mut n_removed) = (0, 0);
    for file in unnamed {
        kept_bytes += file.n_bytes;
        // A file with a modification time in the future counts as new.
        let is_old = grace.period.is_zero() || now.duration_since(file.changed).is_ok_and(|age| age > grace.period);
        if is_old || kept_bytes > allowed {
            failpoint::hit("sweep.before_remove")?;
            sidecar.remove(file.store, &file.name, lock)?;
            failpoint::hit("sweep.removed")?;
            n_removed += 1;
        }
    }
    Ok(n_removed)
}

/// The segment files and manifests on disk.
pub(super) struct Found {
    pub(super) unnamed: Vec<Unnamed>,
    /// Bytes of segments and manifests.
    pub(super) named_bytes: u64,
    /// Bytes of batches of commits.
    pub(super) history_bytes: u64,
}

/// An unused file.
pub(super) struct Unnamed {
    store: Store,
    name: String,
    pub(super) n_bytes: u64,
    changed: SystemTime,
}

/// Lists the files of the stores.
pub(super) fn find(sidecar: &Sidecar, state: &State) -> io::Result<Found> {
    let named: HashSet<&str> = state.files().map(|(_, file)| file.name.as_str()).collect();
    let (mut unnamed, mut named_bytes, mut history_bytes) = (Vec::new(), 0, 0);
    for (store, endings) in SWEPT {
        let entries = match sidecar.entries(Some(store)) {
            // The sidecar is older than the store. The next writer creates the folder.
            Err(error) if error.kind() == io::ErrorKind::NotFound && store == Store::History => continue,
            entries => entries?,
        };
        for entry in entries {
            let is_file = entry.kind == EntryKind::File;
            let name = entry.name.to_str().filter(|name| is_own_name(name, endings));
            let Some(name) = name.filter(|_| is_file) else {
                continue;
            };
            if named.contains(name) {
                match store {
                    Store::History => history_bytes += entry.length,
                    _ => named_bytes += entry.length,
                }
            } else {
                unnamed.push(Unnamed {
                    store,
                    name: name.to_owned(),
                    n_bytes: entry.length,
                    changed: entry.modified,
                });
            }
        }
    }
    for manifest in SnapshotStore::new(sidecar, state.epoch, state.recipe).files()? {
        if manifest.is_current {
            named_bytes += manifest.n_bytes;
        } else {
            unnamed.push(Unnamed {
                store: Store::Snapshots,
                name: manifest.name,
                n_bytes: manifest.n_bytes,
                changed: manifest.changed,
            });
        }
    }
    Ok(Found {
        unnamed,
        named_bytes,
        history_bytes,
    })
}

/// Returns true if a name has the form of this program's file names.
fn is_own_name(name: &str, endings: &[&str]) -> bool {
    name.split_once('.').is_some_and(|(stem, found)| {
        stem.len() == NAME_DIGITS && stem.bytes().all(|byte| byte.is_ascii_hexdigit()) && endings.contains(&found)
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use std::fs::{self, File};

    use super::*;
    use crate::sidecar::StoredFile;

    const HOUR: Duration = Duration::from_secs(3600);
    const GRACE: Grace = Grace {
        period: HOUR,
        min_bytes: 100,
    };

    fn file(digit: char, ending: &str) -> StoredFile {
        StoredFile {
            name: format!("{}.{ending}", digit.to_string().repeat(NAME_DIGITS)),
            length: 1,
        }
    }

    /// Writes a file last modified `hours` ago.
    fn write(sidecar: &Sidecar, store: Store, name: &str, hours: u32) {
        let path = sidecar.path(store, name);
        fs::write(&path, "x").unwrap();
        let file = File::options().append(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - HOUR * hours).unwrap();
    }

    #[test]
    fn removes_only_own_old_unused_files() {
        let folder = tempfile::tempdir().unwrap();
        let sidecar = Sidecar::open_or_create(&folder.path().join("sidecar")).unwrap();
        let lock = sidecar.lock(Duration::from_secs(20)).unwrap();
        let state = State {
            segments: vec![SegmentEntry {
                base_blob: 0,
                n_blobs: 0,
                base_doc: 0,
                n_docs: 0,
                artifacts: file('a', "art"),
                lexical: file('b', "lex"),
                vectors: Vec::new(),
            }],
            ..State::default()
        };
        for (store, name, hours) in [
            (Store::Artifacts, file('a', "art").name, 9),
            (Store::Artifacts, file('c', "art").name, 9),
            (Store::Artifacts, "README.art".to_owned(), 9),
            (Store::Lexical, file('b', "lex").name, 9),
            (Store::Lexical, file('c', "lex").name, 0),
            (Store::Dense, file('c', "vec").name, 9),
            (Store::Dense, file('c', "other").name, 9),
        ] {
            write(&sidecar, store, &name, hours);
        }
        assert_eq!(sweep(&sidecar, &state, GRACE, &lock).unwrap(), 2);
        assert!(!sidecar.path(Store::Artifacts, &file('c', "art").name).exists());
        assert!(!sidecar.path(Store::Dense, &file('c', "vec").name).exists());
    }

    #[test]
    fn the_grace_period_begins_when_a_file_goes_out_of_use() {
        let folder = tempfile::tempdir().unwrap();
        let sidecar = Sidecar::open_or_create(&folder.path().join("sidecar")).unwrap();
        let lock = sidecar.lock(Duration::from_secs(20)).unwrap();
        let entry = SegmentEntry {
            base_blob: 0,
            n_blobs: 0,
            base_doc: 0,
            n_docs: 0,
            artifacts: file('a', "art"),
            lexical: file('b', "lex"),
            vectors: Vec::new(),
        };
        write(&sidecar, Store::Artifacts, &entry.artifacts.name, 9);
        retire(&sidecar, &[entry]);
        assert_eq!(sweep(&sidecar, &State::default(), GRACE, &lock).unwrap(), 0);
        let none = Grace {
            period: Duration::ZERO,
            ..GRACE
        };
        assert_eq!(sweep(&sidecar, &State::default(), none, &lock).unwrap(), 1);
    }
    #[test]
    fn oldest_unused_files_are_removed_first() {
        let folder = tempfile::tempdir().unwrap();
        let sidecar = Sidecar::open_or_create(&folder.path().join("sidecar")).unwrap();
        let lock = sidecar.lock(Duration::from_secs(20)).unwrap();
        for (digit, hours) in [('a', 3), ('b', 1), ('c', 4), ('d', 2)] {
            write(&sidecar, Store::Lexical, &file(digit, "lex").name, hours);
        }
        let grace = Grace {
            period: HOUR * 9,
            min_bytes: 2,
        };
        assert_eq!(sweep(&sidecar, &State::default(), grace, &lock).unwrap(), 2);
        for (digit, stays) in [('a', false), ('b', true), ('c', false), ('d', true)] {
            assert_eq!(
                sidecar.path(Store::Lexical, &file(digit, "lex").name).exists(),
                stays,
                "{digit}"
            );
        }
    }
}
