//! Records what a Qdrant server has of each repository of a fleet.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::super::error::{Context as _, Result};
use crate::query::Statistics;
use crate::remote::PointId;
use crate::sidecar::{decode, encode, write_atomic};

/// What is stored of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Recorded {
    /// The commit, as hexadecimal digits.
    pub(crate) commit: String,
    /// The groups that it is in.
    pub(crate) groups: Vec<String>,
    /// Number of files.
    pub(crate) n_files: u32,
    /// Number of chunks.
    pub(crate) n_chunks: u32,
    /// Number of files without content in the index: binary, too large, or with credentials.
    pub(crate) n_left_out: u32,
    /// The time when this was stored, in seconds since 1970.
    pub(crate) at: u64,
    /// False while points are being changed. Then the server may have any of the points.
    pub(crate) is_whole: bool,
}

/// The points of a repository by id, with a digest of their content. The digest is 0 if the content is not known.
pub(super) type KnownPoints = BTreeMap<PointId, u64>;

/// The records of all repositories by name.
type AllRecords = BTreeMap<String, Recorded>;

/// Time after which a change of a folder has another modification time than the one before.
const TICK: Duration = Duration::from_millis(50);

/// The folder with the records for one collection.
pub(super) struct Records {
    folder: PathBuf,
    /// All records, with the time of the folder's last change.
    held: Mutex<Option<(SystemTime, Arc<AllRecords>)>>,
}

impl Records {
    /// Uses the records for the collection `name`.
    pub(super) fn of(fleet: &Path, name: &str) -> Self {
        Self {
            folder: fleet.join(name),
            held: Mutex::default(),
        }
    }

    /// Returns the records of all repositories that can be read.
    pub(super) fn all(&self) -> Arc<AllRecords> {
        let changed = fs::metadata(&self.folder).and_then(|found| found.modified()).ok();
        let mut held = self.held.lock();
        if let (Some((at, all)), Some(changed)) = (held.as_ref(), changed)
            && *at == changed
        {
            return Arc::clone(all);
        }
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let record = |file: String| {
            let name = file.strip_suffix(".record")?;
            let recorded = self.of_repository(name).unwrap_or_else(|error| {
                tracing::warn!("{error:#}");
                None
            });
            Some((name.to_owned(), recorded?))
        };
        let all = Arc::new(names.filter_map(record).collect::<AllRecords>());
        // A change within the same tick would not be noticed.
        let is_settled = |changed: &SystemTime| changed.elapsed().is_ok_and(|age| age > TICK);
        *held = changed.filter(is_settled).map(|changed| (changed, Arc::clone(&all)));
        all
    }

    pub(super) fn of_repository(&self, name: &str) -> Result<Option<Recorded>> {
        self.read(&format!("{name}.record"))
    }

    pub(super) fn points(&self, name: &str) -> Result<KnownPoints> {
        Ok(self.read(&format!("{name}.points"))?.unwrap_or_default())
    }

    pub(super) fn statistics(&self, name: &str) -> Result<Option<Statistics>> {
        self.read(&format!("{name}.words"))
    }

    /// Records that the server may have these points of a repository.
    pub(super) fn begin(&self, name: &str, points: &KnownPoints) -> Result<()> {
        let recorded = self.of_repository(name).ok().flatten().unwrap_or_default();
        let begun = Recorded {
            is_whole: false,
            ..recorded
        };
        self.write(&format!("{name}.points"), points)?;
        self.write(&format!("{name}.record"), &begun)
    }

    /// Records that the server has exactly these points of a repository.
    pub(super) fn finish(
        &self,
        name: &str,
        recorded: &Recorded,
        points: &KnownPoints,
        statistics: &Statistics,
    ) -> Result<()> {
        self.write(&format!("{name}.words"), statistics)?;
        self.write(&format!("{name}.points"), points)?;
        self.write(&format!("{name}.record"), recorded)
    }

    /// Forgets a repository.
    pub(super) fn remove(&self, name: &str) -> Result<()> {
        for ending in ["points", "words", "record"] {
            let path = self.folder.join(format!("{name}.{ending}"));
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("cannot remove {}", path.display()));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the file that a feeder locks while it stores a repository.
    pub(super) fn lock_file(&self, name: &str) -> Result<fs::File> {
        fs::create_dir_all(&self.folder).with_context(|| format!("cannot create {}", self.folder.display()))?;
        let path = self.folder.join(format!("{name}.lock"));
        let file = fs::File::options().create(true).append(true).open(&path);
        file.with_context(|| format!("cannot create {}", path.display()))
    }

    /// Returns when the statistics of a repository were written.
    pub(super) fn stamp(&self, name: &str) -> Option<SystemTime> {
        let metadata = fs::metadata(self.folder.join(format!("{name}.words"))).ok()?;
        metadata.modified().ok()
    }

    /// Reads a file. A hash of the content precedes it.
    fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        let path = self.folder.join(name);
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            bytes => bytes.with_context(|| format!("cannot read {}", path.display()))?,
        };
        let damaged = || format!("{} is damaged; run codescout fleet verify --repair", path.display());
        let (hash, content) = bytes.split_at_checked(blake3::OUT_LEN).with_context(damaged)?;
        if blake3::hash(content).as_bytes() != hash {
            return Err(super::OpError::failed(damaged()));
        }
        Ok(Some(decode(content).ok().with_context(damaged)?))
    }

    fn write(&self, name: &str, content: &impl Serialize) -> Result<()> {
        let path = self.folder.join(name);
        let content = encode(content);
        let bytes = [blake3::hash(&content).as_bytes(), content.as_slice()].concat();
        write_atomic(&path, &bytes).with_context(|| format!("cannot write {}", path.display()))
    }
}
