//! The embedding models and the reranker that an open repository uses.

use std::sync::LazyLock;

use anyhow::{Context as _, Result};

use crate::config::Config;
use crate::embed::{Embedder, StaticModel, open_model2vec};
use crate::index::Segments;
use crate::ingest::EmbeddingSource;
use crate::remote::{RemoteEmbedder, RemoteReranker, RemoteSparse};
use crate::sidecar::{Sidecar, State};

/// The models in use: the built-in one, and those that are configured.
pub struct Models {
    /// Loaded on first use: most requests need no model.
    built_in: LazyLock<StaticModel>,
    from_folder: Option<Box<dyn Embedder>>,
    remote: Option<RemoteEmbedder>,
    remote_sparse: Option<RemoteSparse>,
    reranker: Option<RemoteReranker>,
}

impl Models {
    pub(super) fn of(config: &Config) -> Result<Self> {
        let remote = config.remote_embedder()?.map(RemoteEmbedder::new);
        let from_folder = match &config.embedding.model.value {
            Some(folder) if remote.is_none() => {
                Some(open_model2vec(folder).context("cannot open the embedding model")?)
            }
            _ => None,
        };
        Ok(Self {
            built_in: LazyLock::new(StaticModel::embedded),
            from_folder,
            remote,
            remote_sparse: config.sparse.options()?.map(RemoteSparse::new),
            reranker: config.rerank.options()?.map(RemoteReranker::new),
        })
    }

    /// Returns the model whose vectors rank by similarity.
    pub fn embedder(&self) -> &dyn Embedder {
        self.added().unwrap_or(self.own())
    }

    /// Returns the model used in addition to the built-in one, if any.
    pub fn added(&self) -> Option<&dyn Embedder> {
        match (&self.remote, &self.from_folder) {
            (Some(model), _) => Some(model),
            (None, Some(model)) => Some(model.as_ref()),
            (None, None) => None,
        }
    }

    /// Returns the built-in model, of which every document has vectors.
    pub fn own(&self) -> &StaticModel {
        &self.built_in
    }

    /// Returns the built-in model as an [`Embedder`], for messages of commits, which have no vectors of other models.
    pub(crate) fn own_embedder(&self) -> &dyn Embedder {
        self.own()
    }

    /// Returns the id of the built-in model's profile.
    pub(crate) fn own_profile(&self) -> String {
        self.own().profile().id().to_string()
    }

    /// Returns the model on another machine or in another process, if configured.
    pub(crate) fn remote(&self) -> Option<&RemoteEmbedder> {
        self.remote.as_ref()
    }

    /// Returns the sparse embedding model, if a server for it is configured.
    pub fn remote_sparse(&self) -> Option<&RemoteSparse> {
        self.remote_sparse.as_ref()
    }

    /// Returns the models that add vectors to those that every segment has.
    pub fn sources(&self) -> Vec<EmbeddingSource<'_>> {
        let dense = self.added().map(EmbeddingSource::Dense);
        let sparse = self.remote_sparse().map(|model| EmbeddingSource::Sparse(model));
        dense.into_iter().chain(sparse).collect()
    }

    /// Returns the reranker, if configured.
    pub(crate) fn reranker(&self) -> Option<&RemoteReranker> {
        self.reranker.as_ref()
    }

    /// Adds the vectors of the additional models to `segments`.
    pub(super) fn with_added(&self, segments: Segments, sidecar: &Sidecar, state: &State) -> Segments {
        let sources = self.sources().into_iter();
        sources.fold(segments, |segments, source| {
            segments.with_added(sidecar, state, &source.profile().id().to_string())
        })
    }
}
