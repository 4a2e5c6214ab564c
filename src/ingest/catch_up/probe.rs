//! Compares the model of this run with the one that computed the stored vectors.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::{CatchUp, CatchUpError};
use crate::embed::EmbedError;
use crate::index::{PROBE_TEXT, RowFile, Segments, check_probe, probe_file};
use crate::ingest::parts::{load_probe, probe_name, write_unlocked};
use crate::model::chain;
use crate::sidecar::{FileError, Sidecar};

/// An error that stops a run before it starts.
pub(super) enum Stopped {
    /// Embedding failed.
    Failed(EmbedError),
    /// Storing failed.
    Broken(CatchUpError),
}

impl From<EmbedError> for Stopped {
    fn from(error: EmbedError) -> Self {
        Self::Failed(error)
    }
}

impl CatchUp<'_> {
    /// Embeds the probe text and compares the vector with the one stored by the first run. Returns a row file that
    /// defines the kind and dimension of all other rows.
    pub(super) fn probe(&self, segments: &Segments, interrupt: &AtomicBool) -> Result<RowFile, Stopped> {
        let rows = self.maker.rows(&[PROBE_TEXT], interrupt)?;
        let Some(row) = rows.into_iter().next().flatten().filter(|row| !row.is_empty()) else {
            return Err(self.other("a zero vector for the probe text"));
        };
        let profile = self.maker.profile().id();
        let bytes = probe_file(&row, profile).map_err(|what| self.other(&what))?;
        let probe =
            RowFile::from_bytes(Path::new("probe"), bytes.clone()).map_err(|error| Stopped::Broken(error.into()))?;
        let stored = segments.iter().find_map(|segment| segment.rows(profile));
        if let Some(Err(difference)) = stored.map(|stored| probe.likeness(&stored)) {
            return Err(self.other_model(&difference));
        }
        let known =
            check_or_store_probe(self.sidecar, &probe, &bytes).map_err(|error| Stopped::Broken(error.into()))?;
        known.map_err(|difference| self.other_model(&difference))?;
        Ok(probe)
    }

    /// Requests and stores the model's vector for the probe text, so that imported vectors can be compared with it.
    pub(in crate::ingest) fn request_probe(
        &self,
        segments: &Segments,
        interrupt: &AtomicBool,
    ) -> Result<(), CatchUpError> {
        match self.probe(segments, interrupt) {
            Ok(_) => Ok(()),
            Err(Stopped::Broken(error)) => Err(error),
            Err(Stopped::Failed(error)) => Err(CatchUpError::Outside {
                what: format!(
                    "cannot verify the vectors, because the model's server does not respond; import them again \
                     later: {}",
                    chain(&error)
                ),
            }),
        }
    }

    fn other_model(&self, difference: &str) -> Stopped {
        self.other(&format!(
            "{difference}: the server returns vectors of a different model under the same name; set {} to store its \
             vectors separately, or restore the previous model",
            self.maker.revision_setting()
        ))
    }

    fn other(&self, what: &str) -> Stopped {
        Stopped::Failed(EmbedError::Unusable {
            backend: self.maker.profile().model.clone(),
            detail: what.to_owned(),
        })
    }
}

/// Compares the probe's vector with the first one stored for its profile. Stores it if it is the first. The inner error
/// describes the difference.
pub(in crate::ingest) fn check_or_store_probe(
    sidecar: &Sidecar,
    probe: &RowFile,
    bytes: &[u8],
) -> Result<Result<(), String>, FileError> {
    match load_probe(sidecar, probe.profile()) {
        Ok(Some(known)) => Ok(check_probe(probe, &known)),
        Ok(None) => write_unlocked(sidecar, &probe_name(probe.profile()), bytes).map(Ok),
        Err(error) if error.is_invalid() => Ok(Err(error.to_string())),
        Err(error) => Err(error),
    }
}
