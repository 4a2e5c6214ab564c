//! Caches the changes of definitions in single files, until the definitions in all commits have been traced.
//!
//! Each path has one cache file in the history directory. Its name is derived from the path and the recipe. The file
//! `state` does not list it, so it is removed if it has not been written for a while. Format 1:
//!
//! ```text
//! meta    u64 decompressed length of the changes
//! changes a zstd frame: 16-byte keys of version pairs with the records of their differences, and of commits that moved
//!   a definition here with its record; and, by name of a definition, the shortened keys of the pairs that left it
//!   unchanged
//! ```

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::extract::DefinitionKind;
use crate::model::{CommitId, RepoPath};
use crate::sidecar::{
    FileError, SectionFile, SectionWriter, Sidecar, Store, StoredFile, compress, decode, decompress, encode,
};

use super::lineage::SymbolRecord;
use super::record::Entry;
use super::symbols::{SymbolEvents, SymbolKey};

/// The extension of cache files.
pub const KNOWN_ENDING: &str = "known";
/// Format version. 1: initial.
const FORMAT: u32 = 1;
/// Size limit of a cache file. Larger files are neither written nor read.
const MAX_BYTES: usize = 64 << 20;
/// Limit on the number of names per file for which unchanged version pairs are stored.
const MAX_NAMES: usize = 64;

/// Identifies what is cached: the differences of two versions of a file, by a hash of everything that determines them; or
/// where a commit moved a definition from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct ChangeKey([u8; 16]);

impl ChangeKey {
    pub(super) fn new(before: Option<&(RepoPath, Entry)>, after: Option<Entry>) -> Self {
        let mut hasher = blake3::Hasher::new();
        let mut add = |entry: Option<Entry>| {
            hasher.update(&[
                u8::from(entry.is_some()),
                u8::from(entry.is_some_and(|entry| entry.is_file())),
            ]);
            if let Some(entry) = entry {
                hasher.update(entry.oid.as_bytes());
            }
        };
        add(after);
        add(before.map(|(_, entry)| *entry));
        if let Some((path, _)) = before {
            hasher.update(path.as_bytes());
        }
        let mut id = [0; 16];
        hasher.finalize_xof().fill(&mut id);
        Self(id)
    }

    /// Identifies the origin of a definition among the files that a commit changed.
    pub(super) fn of_search(commit: CommitId, key: &SymbolKey) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("codescout origin of a definition");
        hasher.update(commit.0.as_bytes());
        hasher.update(&key.nth.to_le_bytes());
        hasher.update(key.name.as_bytes());
        let mut id = [0; 16];
        hasher.finalize_xof().fill(&mut id);
        Self(id)
    }

    /// Returns a shortened id, for long lists.
    fn short(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }
}

/// The cached changes of the files that have been queried.
#[derive(Debug)]
pub struct SymbolChangeCache {
    sidecar: Option<Sidecar>,
    recipe: u64,
    paths: HashMap<RepoPath, CachedPath>,
}

#[derive(Debug, Default)]
struct CachedPath {
    changes: HashMap<ChangeKey, Rc<Vec<SymbolRecord>>>,
    /// The version pairs that left a definition unchanged, by its name and its index among definitions of that name.
    untouched: Untouched,
    has_new: bool,
}

type Untouched = BTreeMap<(String, u32), BTreeSet<u64>>;

/// The decompressed content of a cache file.
#[derive(Serialize, Deserialize)]
struct Stored {
    changes: Vec<(ChangeKey, Vec<StoredRecord>)>,
    untouched: Untouched,
}

impl SymbolChangeCache {
    /// Creates a cache that is stored in `sidecar`, or only in memory if `sidecar` is `None`.
    pub fn new(sidecar: Option<Sidecar>, recipe: u64) -> Self {
        Self {
            sidecar,
            recipe,
            paths: HashMap::new(),
        }
    }

    pub(super) fn get(&mut self, path: &RepoPath, pair: &ChangeKey) -> Option<Rc<Vec<SymbolRecord>>> {
        self.path(path).changes.get(pair).cloned()
    }

    pub(super) fn add(&mut self, path: &RepoPath, pair: ChangeKey, records: Rc<Vec<SymbolRecord>>) {
        let known = self.path(path);
        known.changes.insert(pair, records);
        known.has_new = true;
    }

    pub(super) fn is_untouched(&mut self, key: &SymbolKey, pair: &ChangeKey) -> bool {
        let untouched = &self.path(&key.path).untouched;
        let pairs = untouched.get(&(key.name.clone(), key.nth));
        pairs.is_some_and(|pairs| pairs.contains(&pair.short()))
    }

    pub(super) fn add_unchanged(&mut self, key: &SymbolKey, pair: ChangeKey) {
        let known = self.path(&key.path);
        let name = (key.name.clone(), key.nth);
        if known.untouched.len() >= MAX_NAMES && !known.untouched.contains_key(&name) {
            known.untouched.clear();
        }
        known.untouched.entry(name).or_default().insert(pair.short());
        known.has_new = true;
    }

    fn path(&mut self, path: &RepoPath) -> &mut CachedPath {
        if !self.paths.contains_key(path) {
            let known = self.read(path).unwrap_or_else(|error| {
                tracing::warn!(%path, %error, "cannot read the cached symbol changes of a file; computing them again");
                None
            });
            self.paths.insert(path.clone(), known.unwrap_or_default());
        }
        self.paths.entry(path.clone()).or_default()
    }

    fn read(&self, path: &RepoPath) -> Result<Option<CachedPath>, FileError> {
        let Some(sidecar) = &self.sidecar else { return Ok(None) };
        let file = match SectionFile::open(sidecar, Store::History, &self.name(path), FORMAT) {
            Err(error) if error.is_gone() => return Ok(None),
            file => file?,
        };
        let meta = file.section("meta")?;
        let length = meta
            .as_ref()
            .try_into()
            .map_or(usize::MAX, |length| u64::from_le_bytes(length) as usize);
        let bytes = decompress(&file.section("changes")?, length, MAX_BYTES).map_err(|_| file.damaged("changes"))?;
        let stored: Stored = decode(&bytes).map_err(|_| file.damaged("changes"))?;
        let opened = stored.changes.into_iter().map(|(pair, records)| {
            let records: Option<Vec<SymbolRecord>> = records.into_iter().map(|record| record.open(path)).collect();
            Some((pair, Rc::new(records?)))
        });
        let changes: Option<HashMap<_, _>> = opened.collect();
        Ok(Some(CachedPath {
            changes: changes.ok_or_else(|| file.damaged("changes"))?,
            untouched: stored.untouched,
            has_new: false,
        }))
    }

    /// Writes new entries to the cache files. If that fails, the next query computes them again.
    pub fn save(&mut self) {
        let Some(sidecar) = &self.sidecar else { return };
        for (path, known) in self.paths.iter().filter(|(_, known)| known.has_new) {
            let changes = known.changes.iter().map(|(pair, records)| {
                let records = records.iter().map(|record| StoredRecord::of(record, path));
                (*pair, records.collect())
            });
            let mut stored = Stored {
                changes: changes.collect(),
                untouched: known.untouched.clone(),
            };
            stored.changes.sort_unstable_by_key(|(pair, _)| pair.0);
            let bytes = encode(&stored);
            if bytes.len() > MAX_BYTES {
                continue;
            }
            let mut writer = SectionWriter::new(FORMAT);
            writer.add("meta", (bytes.len() as u64).to_le_bytes().to_vec());
            writer.add("changes", compress(&bytes));
            if let Err(error) = sidecar.write(Store::History, &self.name(path), &writer.finish()) {
                tracing::debug!(%path, %error, "cannot write the cached symbol changes of a file");
            }
        }
        self.paths.values_mut().for_each(|known| known.has_new = false);
    }

    fn name(&self, path: &RepoPath) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.recipe.to_le_bytes());
        hasher.update(path.as_bytes());
        let digest = hasher.finalize().to_hex();
        format!("{}.{KNOWN_ENDING}", &digest[..StoredFile::NAME_DIGITS])
    }

    /// Verifies every byte of the cache file `name`.
    pub fn check(sidecar: &Sidecar, name: &str) -> Result<(), FileError> {
        SectionFile::open(sidecar, Store::History, name, FORMAT)?.verify()
    }
}

/// The serialised form of a [`SymbolRecord`].
#[derive(Serialize, Deserialize)]
struct StoredRecord {
    name: String,
    nth: u32,
    kind: u8,
    events: u8,
    old_lines: Option<(u32, u32)>,
    new_lines: Option<(u32, u32)>,
    text: u32,
    origin: Option<StoredOrigin>,
    goes_on: bool,
}

#[derive(Serialize, Deserialize)]
struct StoredOrigin {
    /// The path of the origin; `None` if the definition stayed in the file.
    path: Option<Vec<u8>>,
    name: String,
    nth: u32,
    percent: u8,
}

impl StoredRecord {
    fn of(record: &SymbolRecord, path: &RepoPath) -> Self {
        let origin = record.origin.as_ref().map(|(key, percent)| StoredOrigin {
            path: (key.path != *path).then(|| key.path.as_bytes().to_vec()),
            name: key.name.clone(),
            nth: key.nth,
            percent: *percent,
        });
        Self {
            name: record.name.clone(),
            nth: record.nth,
            kind: record.kind as u8,
            events: record.events.bits(),
            old_lines: record.old_lines,
            new_lines: record.new_lines,
            text: record.text,
            origin,
            goes_on: record.goes_on,
        }
    }

    /// Converts the record. Returns `None` if it is invalid.
    fn open(self, path: &RepoPath) -> Option<SymbolRecord> {
        let is_range = |lines: Option<(u32, u32)>| lines.is_none_or(|(first, last)| 0 < first && first <= last);
        if !is_range(self.old_lines) || !is_range(self.new_lines) {
            return None;
        }
        let origin = self.origin.map(|origin| {
            let key = SymbolKey {
                path: origin.path.map_or_else(|| path.clone(), RepoPath::new),
                name: origin.name,
                nth: origin.nth,
            };
            (key, origin.percent)
        });
        Some(SymbolRecord {
            name: self.name,
            nth: self.nth,
            kind: DefinitionKind::from_number(self.kind)?,
            events: SymbolEvents::from_bits(self.events),
            old_lines: self.old_lines,
            new_lines: self.new_lines,
            text: self.text,
            origin,
            goes_on: self.goes_on,
        })
    }
}
