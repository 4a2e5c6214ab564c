//! The embedding models and the reranker of a workspace.

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
    /// The model whose vectors rank by similarity.
    pub fn embedder(&self) -> &dyn Embedder {
        self.added_model().unwrap_or(self.static_model())
    }

    /// The model used in addition to the built-in one, if any.
    pub fn added_model(&self) -> Option<&dyn Embedder> {
        match (&self.remote_model, &self.foreign_model) {
            (Some(model), _) => Some(model),
            (None, Some(model)) => Some(model.as_ref()),
            (None, None) => None,
        }
    }

    /// The built-in model, whose vectors every document has.
    pub fn static_model(&self) -> &StaticModel {
        &self.static_model
    }

    /// The built-in model as an [`Embedder`], used where no other model applies: messages of commits.
    pub(crate) fn own_model(&self) -> &dyn Embedder {
        self.static_model()
    }

    /// The id of the built-in model's profile, which every segment has vectors of.
    pub(crate) fn own_profile(&self) -> String {
        self.static_model.profile().id().to_string()
    }

    /// The model on another machine or in another process, if configured.
    pub(crate) fn remote_model(&self) -> Option<&RemoteEmbedder> {
        self.remote_model.as_ref()
    }

    /// The sparse embedding model, if a server for it is configured.
    pub fn remote_sparse(&self) -> Option<&RemoteSparse> {
        self.remote_sparse.as_ref()
    }

    /// The models that make vectors in addition to those that every segment has.
    pub fn makers(&self) -> Vec<EmbeddingSource<'_>> {
        let dense = self.added_model().map(EmbeddingSource::Dense);
        let sparse = self.remote_sparse.as_ref().map(|model| EmbeddingSource::Sparse(model));
        dense.into_iter().chain(sparse).collect()
    }

    /// The reranker, if configured.
    pub(crate) fn reranker(&self) -> Option<&RemoteReranker> {
        self.reranker.as_ref()
    }

    /// The reranking of the best candidates in a view, if a reranker is configured.
    pub fn reranking<'a>(&'a self, view: &'a View, interrupt: &'a AtomicBool) -> Option<Reranking<'a>> {
        self.reranker.as_ref().map(|reranker| Reranking {
            reranker,
            n_candidates: self.config.rerank.n_candidates(),
            sources: Sources::new(view, &self.repository),
            interrupt,
        })
    }

    /// Adds the vectors of the additional models to `segments`.
    pub(super) fn with_added(&self, segments: Segments, sidecar: &Sidecar, state: &State) -> Segments {
        let makers = self.makers().into_iter();
        makers.fold(segments, |segments, maker| {
            segments.with_added(sidecar, state, &maker.profile().id().to_string())
        })
    }
}
