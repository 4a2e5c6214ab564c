//! What makes the vectors of a workspace, and what judges its answers again.

use std::sync::atomic::AtomicBool;

use super::Workspace;
use crate::embed::{Embedder, StaticModel};
use crate::index::Segments;
use crate::ingest::EmbeddingSource;
use crate::query::{Reranking, Sources};
use crate::remote::{RemoteEmbedder, RemoteReranker, RemoteSparse};
use crate::sidecar::{Sidecar, State};
use crate::snapshot::View;

impl Workspace {
    /// What makes the vectors that decide about nearness.
    pub fn embedder(&self) -> &dyn Embedder {
        self.added_model().unwrap_or(self.static_model())
    }

    /// The model that is in use beside the one inside the binary, if one is.
    pub fn added_model(&self) -> Option<&dyn Embedder> {
        match (&self.remote_model, &self.foreign_model) {
            (Some(model), _) => Some(model),
            (None, Some(model)) => Some(model.as_ref()),
            (None, None) => None,
        }
    }

    /// The model inside the binary, whose vectors every document has.
    pub fn static_model(&self) -> &StaticModel {
        &self.static_model
    }

    /// The model inside the binary, which judges what is given to no other: messages of commits.
    pub(crate) fn own_model(&self) -> &dyn Embedder {
        self.static_model()
    }

    /// The profile that every segment has vectors of.
    pub(crate) fn own_profile(&self) -> String {
        self.static_model.profile().id().to_string()
    }

    /// The model on another machine or in another process, if one is in use.
    pub(crate) fn remote_model(&self) -> Option<&RemoteEmbedder> {
        self.remote_model.as_ref()
    }

    /// What makes sparse vectors, if a server for them is set.
    pub fn remote_sparse(&self) -> Option<&RemoteSparse> {
        self.remote_sparse.as_ref()
    }

    /// What makes rows beside those that every segment has.
    pub fn makers(&self) -> Vec<EmbeddingSource<'_>> {
        let dense = self.added_model().map(EmbeddingSource::Dense);
        let sparse = self.remote_sparse.as_ref().map(|model| EmbeddingSource::Sparse(model));
        dense.into_iter().chain(sparse).collect()
    }

    /// The reranker, if one is in use.
    pub(crate) fn reranker(&self) -> Option<&RemoteReranker> {
        self.reranker.as_ref()
    }

    /// What judges the best candidates of an answer about a view again, if a reranker is in use.
    pub fn reranking<'a>(&'a self, view: &'a View, interrupt: &'a AtomicBool) -> Option<Reranking<'a>> {
        self.reranker.as_ref().map(|reranker| Reranking {
            reranker,
            n_candidates: self.config.rerank.n_candidates(),
            sources: Sources::new(view, &self.repository),
            interrupt,
        })
    }

    /// Segments with the rows of the makers that are in use.
    pub(super) fn with_added(&self, segments: Segments, sidecar: &Sidecar, state: &State) -> Segments {
        let makers = self.makers().into_iter();
        makers.fold(segments, |segments, maker| {
            segments.with_added(sidecar, state, &maker.profile().id().to_string())
        })
    }
}
