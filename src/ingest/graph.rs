//! Builds graphs of vectors that are too many to scan quickly.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::index::Segments;
use crate::index::dense::{FlatIndex, GraphBuildError, build_graph, worthwhile};
use crate::sidecar::{GraphEntry, State, Store};

use super::publish::{GRAPH_ENDING, pass, publish_state, store};
use super::run::{Ingest, IngestError};

/// A new graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewGraph {
    /// The embedding profile of the vectors.
    pub profile: String,
    /// Number of documents.
    pub n_docs: u32,
    /// Size of the file in bytes.
    pub n_bytes: u64,
    /// Duration of the build.
    pub elapsed: Duration,
}

impl Ingest<'_> {
    /// Builds the graphs that are missing or lack many documents. A profile gets a graph if a scan of the documents that
    /// the present one lacks reads at least `min_bytes`. Takes minutes, in which other processes can write. Returns
    /// nothing if another process computes vectors or graphs.
    pub fn build_graphs(&self, min_bytes: u64, interrupt: &AtomicBool) -> Result<Vec<NewGraph>, IngestError> {
        let mut built = Vec::new();
        let Some(_only) = self.sidecar.lock_embedding()? else {
            return Ok(built);
        };
        let Some(state) = self
            .sidecar
            .state()?
            .filter(|state| state.recipe == self.options.recipe)
        else {
            return Ok(built);
        };
        let segments = state.segments.iter().flat_map(|entry| &entry.vectors);
        let mut profiles: Vec<&str> = segments.map(|vectors| vectors.profile.as_str()).collect();
        profiles.sort_unstable();
        profiles.dedup();
        for profile in profiles {
            let started = Instant::now();
            let known = state.graphs.iter().find(|graph| graph.profile == profile);
            let Some(flat) = self.vectors_of(&state, profile)? else {
                continue;
            };
            let Some(n_docs) = worthwhile(&flat, known.map(|graph| graph.n_docs), min_bytes) else {
                continue;
            };
            let bytes = match build_graph(&flat, n_docs, interrupt) {
                Ok(bytes) => bytes,
                Err(GraphBuildError::Interrupted) => return Ok(built),
                Err(GraphBuildError::File(error)) => return Err(error.into()),
            };
            let file = store(self.sidecar, Store::Dense, GRAPH_ENDING, &bytes)?;
            pass("graph.stored", self.sidecar)?;
            let lock = self.sidecar.lock_unless(self.patience, interrupt)?;
            // Garbage collection can have given other numbers to the documents meanwhile.
            let Some(mut newest) = self.sidecar.state()?.filter(|newest| newest.epoch == state.epoch) else {
                return Ok(built);
            };
            built.push(NewGraph {
                profile: profile.to_owned(),
                n_docs,
                n_bytes: file.length,
                elapsed: started.elapsed(),
            });
            newest.graphs.retain(|graph| graph.profile != profile);
            newest.graphs.push(GraphEntry {
                epoch: state.epoch,
                profile: profile.to_owned(),
                n_docs,
                file,
            });
            publish_state(self.sidecar, &lock, &mut newest)?;
            pass("graph.published", self.sidecar)?;
        }
        Ok(built)
    }

    /// Opens the dense vectors of a profile.
    fn vectors_of(&self, state: &State, profile: &str) -> Result<Option<FlatIndex>, IngestError> {
        let own = self.profile();
        let mut segments = Segments::open_newest(self.sidecar, state, &own)?;
        if profile != own {
            segments = segments.with_added(self.sidecar, state, profile);
        }
        let vectors = segments.iter().filter_map(|segment| {
            let vectors = if profile == own {
                &segment.vectors
            } else {
                &segment.added
            };
            Some((segment.base_doc, vectors.clone()?))
        });
        Ok(FlatIndex::new(vectors.collect()).ok())
    }
}
