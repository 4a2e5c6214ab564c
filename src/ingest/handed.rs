//! What a model beside the program's own has made, from one clone to another: the text of a chunk is asked for once by all of them.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::artifact::ArtifactKey;
use crate::embed::ProfileId;
use crate::index::dense::WriteError;
use crate::index::{RecordsError, RowFile, Segments};
use crate::model::ChunkKey;
use crate::sidecar::{Bytes, Sidecar, Store};

use super::catch_up::{CatchUp, CatchUpError, same_probe};
use super::maker::Maker;
use super::parts::{Part, Parts, n_rows_of, probe_name};

/// A part is closed at so many rows.
const MAX_PART: usize = 16_384;

/// What a model has made elsewhere, as it came.
#[derive(Clone, Debug)]
pub struct OfferedRows {
    /// Of the model, by what its bundle says.
    pub profile: ProfileId,
    /// A file of one row: what it said of the fixed text.
    pub probe: Bytes,
    /// How many rows each part is said to have.
    pub sizes: Vec<u32>,
    /// Rows with the keys of their chunks.
    pub parts: Vec<Bytes>,
}

/// Rows of one form that name this profile.
pub struct ExaminedRows {
    like: RowFile,
    probe: Bytes,
    /// They are opened one by one: their keys are in memory then.
    parts: Vec<Bytes>,
}

/// Whether a profile has rows for all documents of a blob, of which there are some.
pub fn has_rows(segments: &Segments, key: ArtifactKey, profile: ProfileId) -> bool {
    let found = segments.find_blob(key).and_then(|blob| segments.of_blob(blob));
    let Some((segment, local)) = found else { return false };
    let n_docs = segment.artifacts.docs(local).collect::<HashSet<_>>().len();
    n_docs > 0 && n_rows(segments, &[key], profile) == n_docs
}

/// How many documents of the blobs under `keys` have a row of a profile.
pub fn n_rows(segments: &Segments, keys: &[ArtifactKey], profile: ProfileId) -> usize {
    docs_with_rows(segments, keys, profile).len()
}

/// The row that a profile's probe had first; `None` if the profile has never been used here.
pub fn probe_of(sidecar: &Sidecar, profile: ProfileId) -> io::Result<Option<Bytes>> {
    match sidecar.map(Store::Dense, &probe_name(profile)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        mapped => mapped.map(Some),
    }
}

/// Gathers the rows of a profile that `segments` have for the documents of the blobs under `keys`, each once, in the order in which
/// these name them, and hands them on part by part, with how many there are.
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
            finished(chunks.len() as u32, &Part::encode(&chunks, &full.finish()))?;
            chunks.clear();
        }
    }
    match writer {
        Some(last) => finished(chunks.len() as u32, &Part::encode(&chunks, &last.finish())),
        None => Ok(()),
    }
}

/// Each document once, in the order in which the keys name them.
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
    /// Whether what the same model has made elsewhere has the form of what it makes. Nobody can tell what a model would have said
    /// but the model.
    pub fn examine(&self, offered: &OfferedRows) -> Result<ExaminedRows, CatchUpError> {
        let profile = self.maker.profile().id();
        let rows = RowFile::open(Arc::new(offered.probe.clone())).ok();
        let is_of_maker = |rows: &RowFile| {
            matches!(
                (rows, &self.maker),
                (RowFile::Dense(_), Maker::Dense(_)) | (RowFile::Sparse(_), Maker::Sparse(_))
            )
        };
        let like = rows.filter(|rows| rows.profile() == profile && rows.len() == 1);
        let like = like.filter(is_of_maker);
        let like = like.ok_or_else(|| outside("the probe is none"))?;
        if offered.parts.len() != offered.sizes.len() {
            return Err(outside("not all of them came"));
        }
        for (bytes, &size) in offered.parts.iter().zip(&offered.sizes) {
            // Before anything is made of what it says itself.
            if size as usize > MAX_PART || n_rows_of(bytes).is_some_and(|n| n != size) {
                return Err(outside("another number of them than is said"));
            }
            let part = opened(bytes)?;
            let is_like = part.rows.is_empty() || like.writer()?.copy_row(&part.rows, 0).is_ok();
            if part.rows.profile() != profile || !is_like {
                return Err(outside("they are of different kinds"));
            }
        }
        Ok(ExaminedRows {
            parts: offered.parts.clone(),
            probe: offered.probe.clone(),
            like,
        })
    }

    /// Takes them over as far as they are about chunks that are known here and have nothing yet. What the model in use here says of the
    /// fixed text decides whether it has made them: where it was never asked, it is now. Returns how many these are.
    pub fn take_over(&self, examined: &ExaminedRows, interrupt: &AtomicBool) -> Result<usize, CatchUpError> {
        let ExaminedRows { like, probe, parts } = examined;
        let _only = self.sidecar.lock_embedding()?;
        if _only.is_none() {
            return Err(outside("another process is making vectors"));
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
        if probe_of(self.sidecar, profile)
            .map_err(|error| self.io(error))?
            .is_none()
        {
            self.ask_probe(&segments, interrupt)?;
        }
        let same = same_probe(self.sidecar, like, probe).map_err(|error| self.io(error))?;
        same.map_err(|difference| outside(&format!("{difference}: another model of this name has made them")))?;
        let mut here = Parts::load(self.sidecar, profile).map_err(|error| self.io(error))?;
        let mut n_new = 0;
        for part in parts {
            n_new += self.keep_new(&opened(part)?, &segments, &mut here)?;
        }
        self.join(&mut here, self.patience, interrupt)?;
        Ok(n_new)
    }

    /// Stores the rows of a part of which nothing is here; how many.
    fn keep_new(&self, part: &Part, segments: &Segments, here: &mut Parts) -> Result<usize, CatchUpError> {
        let profile = self.maker.profile().id();
        let (mut writer, mut keys) = (part.rows.writer()?, Vec::<ChunkKey>::new());
        let mut seen = HashSet::new();
        for (&key, row) in part.keys.iter().zip(0u32..) {
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
            let stored = Part::store(self.sidecar, &keys, &writer.finish());
            here.add(stored.map_err(|error| self.io(error))?);
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
