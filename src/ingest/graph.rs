//! Builds graphs of vectors that are too many to scan quickly.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::index::Segments;
use crate::index::dense::{FlatIndex, GraphBuildError, GraphFile, GraphLimits, VectorFile, build_graph, worthwhile};
use crate::sidecar::{GraphEntry, State, Store};

use super::publish::{GRAPH_ENDING, pass, publish_state, store};
use super::run::{Ingest, IngestError};
use super::sweep::retire_files;

/// A new graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewGraph {
    /// The embedding profile of the vectors.
    pub profile: String,
    /// Number of documents.
    pub n_docs: u32,
    /// True if the graph finds enough of the best results to be used.
    pub is_usable: bool,
    /// Size of the file in bytes.
    pub n_bytes: u64,
    /// Duration of the build.
    pub elapsed: Duration,
}

impl Ingest<'_> {
    /// Builds the graphs that are missing, damaged or lack many documents. Takes minutes, in which other processes can
    /// write. Returns `None` if another process computes vectors or graphs.
    pub fn build_graphs(
        &self,
        limits: GraphLimits,
        interrupt: &AtomicBool,
    ) -> Result<Option<Vec<NewGraph>>, IngestError> {
        let mut built = Vec::new();
        let Some(_only) = self.sidecar.lock_embedding()? else {
            return Ok(None);
        };
        let Some(state) = self
            .sidecar
            .state()?
            .filter(|state| state.recipe == self.options.recipe)
        else {
            return Ok(Some(built));
        };
        let mut sizes: BTreeMap<&str, u64> = BTreeMap::new();
        for vectors in state.segments.iter().flat_map(|entry| &entry.vectors) {
            *sizes.entry(&vectors.profile).or_default() += vectors.file.length;
        }
        // Most repositories have so few vectors that no segment needs to be opened.
        for (profile, _) in sizes.into_iter().filter(|(_, n_bytes)| *n_bytes >= limits.min_bytes) {
            let started = Instant::now();
            let Some((flat, known)) = self.vectors_of(&state, profile)? else {
                continue;
            };
            let Some(n_docs) = worthwhile(&flat, known.map(|graph| graph.n_docs()), limits) else {
                continue;
            };
            let bytes = match build_graph(&flat, n_docs, interrupt) {
                Ok(bytes) => bytes,
                Err(GraphBuildError::Interrupted) => return Ok(Some(built)),
                Err(GraphBuildError::File(error)) => return Err(error.into()),
            };
            let file = store(self.sidecar, Store::Dense, GRAPH_ENDING, &bytes)?;
            pass("graph.stored", self.sidecar)?;
            let lock = self.sidecar.lock_unless(self.patience, interrupt)?;
            // Garbage collection can have given other numbers to the documents meanwhile.
            let Some(mut newest) = self.sidecar.state()?.filter(|newest| newest.epoch == state.epoch) else {
                return Ok(Some(built));
            };
            let ef = GraphFile::open(self.sidecar, &file.name)?.ef() as u32;
            built.push(NewGraph {
                profile: profile.to_owned(),
                n_docs,
                is_usable: ef > 0,
                n_bytes: file.length,
                elapsed: started.elapsed(),
            });
            let known = newest.graphs.iter().position(|graph| graph.profile == profile);
            let replaced = known.map(|at| newest.graphs.remove(at).file);
            let replaced = replaced.filter(|old| *old != file);
            newest.graphs.push(GraphEntry {
                epoch: state.epoch,
                profile: profile.to_owned(),
                n_docs,
                ef,
                file,
            });
            publish_state(self.sidecar, &lock, &mut newest)?;
            retire_files(self.sidecar, replaced.iter().map(|file| (Store::Dense, file)));
            pass("graph.published", self.sidecar)?;
        }
        Ok(Some(built))
    }

    /// Opens the dense vectors of a profile and their graph.
    fn vectors_of(&self, state: &State, profile: &str) -> Result<Option<(FlatIndex, Option<GraphFile>)>, IngestError> {
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
        let vectors: Vec<(u32, VectorFile)> = vectors.collect();
        let graph = vectors.first().and_then(|(_, first)| segments.graph(first.profile()));
        match FlatIndex::new(vectors) {
            Ok(flat) => Ok(Some((flat, graph))),
            Err(error) => {
                tracing::warn!(profile, "cannot build a graph of vectors: {error}");
                Ok(None)
            }
        }
    }
}
