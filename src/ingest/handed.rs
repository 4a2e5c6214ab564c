//! Exports and imports vectors of external models, so that only one clone has to embed the text of a chunk.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use crate::artifact::ArtifactKey;
use crate::embed::ProfileId;
use crate::index::dense::WriteError;
use crate::index::{RecordsError, RowFile, Segments};
use crate::model::ChunkKey;
use crate::sidecar::{Bytes, Sidecar, Store};

use super::catch_up::{CatchUp, CatchUpError, check_or_store_probe};
use super::maker::EmbeddingSource;
use super::parts::{Part, Parts, load_probe, probe_name};

/// Maximum number of rows in a part.
const MAX_PART: usize = 16_384;

/// Vectors from another clone, not verified yet.
#[derive(Clone, Debug)]
pub struct ReceivedRows {
    /// The profile that the bundle claims for the vectors.
    pub profile: ProfileId,
    /// A file with one row: the vector of the probe text.
    pub probe: Bytes,
    /// The claimed number of rows of each part.
    pub sizes: Vec<u32>,
    /// Rows with the keys of their chunks.
    pub parts: Vec<Bytes>,
}

/// Verified rows of the configured model, all of one kind.
pub struct VerifiedRows {
    like: RowFile,
    probe: Bytes,
    /// Opened one by one, because reading sparse rows loads them into memory.
    parts: Vec<Bytes>,
}

/// Returns true if the blob has documents and all of them have rows of the profile.
pub fn has_rows(segments: &Segments, key: ArtifactKey, profile: ProfileId) -> bool {
    let found = segments.find_blob(key).and_then(|blob| segments.of_blob(blob));
    let Some((segment, local)) = found else { return false };
    let n_docs = segment.artifacts.docs(local).collect::<HashSet<_>>().len();
    n_docs > 0 && n_rows(segments, &[key], profile) == n_docs
}

/// Counts the documents of the blobs in `keys` that have a row of the profile.
pub fn n_rows(segments: &Segments, keys: &[ArtifactKey], profile: ProfileId) -> usize {
    docs_with_rows(segments, keys, profile).len()
}

/// Returns the stored vector of a profile's probe text, or `None` if the profile has never been used in this sidecar.
pub fn probe_of(sidecar: &Sidecar, profile: ProfileId) -> io::Result<Option<Bytes>> {
    match sidecar.map(Store::Dense, &probe_name(profile)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        mapped => mapped.map(Some),
    }
}

/// Gathers the rows of a profile for the documents of the blobs in `keys`, each document once, in the order of the
/// keys. Passes each part and its number of rows to `finished`.
pub fn gather_rows<E: From<RecordsError>>(
    segments: &Segments,
    keys: &[ArtifactKey],
    profile: ProfileId,
    mut finished: impl FnMut(u32, &[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let failed = |error: WriteError| E::from(error.into());
    let (mut chunks, mut writer) = (Vec::new(), None);
    for doc in docs_with_rows(segments, keys, profile) {
        let found = segments.of_doc(doc);
        let Some((segment, row, rows)) = found.and_then(|(segment, row)| Some((segment, row, segment.rows(profile)?)))
        else {
            continue;
        };
        let open = match &mut writer {
            Some(open) => open,
            None => writer.insert(rows.writer().map_err(failed)?),
        };
        open.copy_row(&rows, row).map_err(failed)?;
        chunks.push(segment.lexical.key(row));
        if chunks.len() >= MAX_PART
            && let Some(full) = writer.take()
        {
            finished(chunks.len() as u32, &Part::encode(&chunks, full.finish()))?;
            chunks.clear();
        }
    }
    match writer {
        Some(last) => finished(chunks.len() as u32, &Part::encode(&chunks, last.finish())),
        None => Ok(()),
    }
}

/// Returns the documents of the blobs in `keys` that have a row, each once, in the order of the keys.
fn docs_with_rows(segments: &Segments, keys: &[ArtifactKey], profile: ProfileId) -> Vec<u32> {
    let mut seen = HashSet::new();
    let blobs = keys
        .iter()
        .filter_map(|&key| segments.of_blob(segments.find_blob(key)?));
    let docs = blobs.flat_map(|(segment, local)| segment.artifacts.docs(local).collect::<Vec<_>>());
    let has_row = |doc: &u32| {
        let found = segments.of_doc(*doc);
        found.is_some_and(|(segment, row)| segment.rows(profile).is_some_and(|rows| rows.has(row)))
    };
    docs.filter(|doc| seen.insert(*doc) && has_row(doc)).collect()
}

impl CatchUp<'_> {
    /// Checks that imported vectors have the kind and dimension of the model's vectors. Their values cannot be checked
    /// without the model.
    pub fn examine(&self, offered: &ReceivedRows) -> Result<VerifiedRows, CatchUpError> {
        let profile = self.maker.profile().id();
        let rows = RowFile::from_bytes(Path::new("probe"), offered.probe.clone()).ok();
        let is_of_maker = |rows: &RowFile| {
            matches!(
                (rows, &self.maker),
                (RowFile::Dense(_), EmbeddingSource::Dense(_)) | (RowFile::Sparse(_), EmbeddingSource::Sparse(_))
            )
        };
        let like = rows.filter(|rows| rows.profile() == profile && rows.len() == 1);
        let like = like.filter(is_of_maker);
        let like = like.ok_or_else(|| outside("invalid probe"))?;
        if offered.parts.len() != offered.sizes.len() {
            return Err(outside("some parts are missing"));
        }
        for (bytes, &size) in offered.parts.iter().zip(&offered.sizes) {
            let other_number = || outside("the number of vectors differs from the header");
            if size as usize > MAX_PART {
                return Err(other_number());
            }
            let part = opened(bytes)?;
            if part.rows.len() != size {
                return Err(other_number());
            }
            let is_like = part.rows.is_empty() || like.writer()?.copy_row(&part.rows, 0).is_ok();
            if part.rows.profile() != profile || !is_like {
                return Err(outside("vectors of different kinds"));
            }
        }
        Ok(VerifiedRows {
            parts: offered.parts.clone(),
            probe: offered.probe.clone(),
            like,
        })
    }

    /// Imports vectors of local chunks that have none yet. Returns the number of imported vectors.
    ///
    /// First compares the bundle's vector of the probe text with the configured model's, which is requested now if it
    /// is not stored.
    pub fn take_over(&self, examined: &VerifiedRows, interrupt: &AtomicBool) -> Result<usize, CatchUpError> {
        let VerifiedRows { like, probe, parts } = examined;
        let _only = self.sidecar.lock_embedding()?;
        if _only.is_none() {
            return Err(outside("another process is computing vectors"));
        }
        let state = self
            .sidecar
            .state()?
            .filter(|state| state.recipe == self.options.recipe);
        let state = state.ok_or_else(|| outside("nothing is indexed yet"))?;
        let profile = self.maker.profile().id();
        let segments = Segments::open_newest(self.sidecar, &state, self.own_profile)?;
        let segments = segments.with_added(self.sidecar, &state, &profile.to_string());
        let stored = segments.iter().find_map(|segment| segment.rows(profile));
        if let Some(Err(difference)) = stored.map(|stored| like.likeness(&stored)) {
            return Err(outside(&difference));
        }
        if load_probe(self.sidecar, profile)?.is_none() {
            self.request_probe(&segments, interrupt)?;
        }
        let same = check_or_store_probe(self.sidecar, like, probe)?;
        same.map_err(|difference| outside(&format!("{difference}: made by another model of the same name")))?;
        let mut here = Parts::load(self.sidecar, profile)?;
        let mut n_new = 0;
        for part in parts {
            n_new += self.keep_new(&opened(part)?, &segments, &mut here)?;
        }
        self.join(&mut here, self.patience, interrupt)?;
        Ok(n_new)
    }

    /// Stores the rows of a part that belong to local chunks without a row. Returns their number.
    fn keep_new(&self, part: &Part, segments: &Segments, here: &mut Parts) -> Result<usize, CatchUpError> {
        let profile = self.maker.profile().id();
        let (mut writer, mut keys) = (part.rows.writer()?, Vec::<ChunkKey>::new());
        let mut seen = HashSet::new();
        for (key, row) in part.keys().zip(0u32..) {
            let Some((segment, local)) = segments.find_doc(key).and_then(|doc| segments.of_doc(doc)) else {
                continue;
            };
            let has_one = here.find(key).is_some() || segment.rows(profile).is_some_and(|rows| rows.has(local));
            if !has_one && part.rows.has(row) && seen.insert(key) {
                writer.copy_row(&part.rows, row)?;
                keys.push(key);
            }
        }
        if !keys.is_empty() {
            here.add(Part::store(self.sidecar, &keys, writer.finish())?);
        }
        Ok(keys.len())
    }
}

fn opened(bytes: &Bytes) -> Result<Part, CatchUpError> {
    Part::decode("part", bytes.clone()).map_err(|error| outside(&error.to_string()))
}

fn outside(what: &str) -> CatchUpError {
    CatchUpError::Outside { what: what.to_owned() }
}
