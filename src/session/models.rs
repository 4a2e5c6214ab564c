//! The embedding models and the reranker of an open repository.

use std::sync::LazyLock;

use super::error::{Context as _, Result};
use crate::config::Config;
use crate::embed::{Embedder, StaticModel, open_model2vec};
use crate::index::Segments;
use crate::ingest::EmbeddingSource;
use crate::remote::{RemoteEmbedder, RemoteReranker, RemoteSparse};
use crate::sidecar::{Sidecar, State};

/// The built-in model and the configured models.
pub struct Models {
    /// Loaded on first use, because most requests need no model.
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

    /// Returns the model whose vectors are used to rank by similarity.
    pub fn embedder(&self) -> &dyn Embedder {
        self.added().unwrap_or(self.own())
    }

    /// Returns the external model that is used in addition to the built-in one, if there is one.
    pub fn added(&self) -> Option<&dyn Embedder> {
        match (&self.remote, &self.from_folder) {
            (Some(model), _) => Some(model),
            (None, Some(model)) => Some(model.as_ref()),
            (None, None) => None,
        }
    }

    /// Returns the built-in model. Every document has a vector of it.
    pub fn own(&self) -> &StaticModel {
        &self.built_in
    }

    /// Returns the built-in model as an [`Embedder`]. Commit messages have vectors only of this model.
    pub(crate) fn own_embedder(&self) -> &dyn Embedder {
        self.own()
    }

    /// Returns the id of the built-in model's profile. Every segment has vectors of it.
    pub(crate) fn own_profile(&self) -> String {
        self.own().profile().id().to_string()
    }

    /// Returns the model on an embedding server, if one is configured.
    pub(crate) fn remote(&self) -> Option<&RemoteEmbedder> {
        self.remote.as_ref()
    }

    /// Returns the sparse embedding model, if a server for it is configured.
    pub fn remote_sparse(&self) -> Option<&RemoteSparse> {
        self.remote_sparse.as_ref()
    }

    /// Returns the external models, whose vectors are stored in addition to those of the built-in model.
    pub fn sources(&self) -> Vec<EmbeddingSource<'_>> {
        let dense = self.added().map(EmbeddingSource::Dense);
        let sparse = self.remote_sparse().map(|model| EmbeddingSource::Sparse(model));
        dense.into_iter().chain(sparse).collect()
    }

    /// Returns the reranker, if one is configured.
    pub(crate) fn reranker(&self) -> Option<&RemoteReranker> {
        self.reranker.as_ref()
    }

    /// Adds the vectors of the external models to `segments`.
    pub(super) fn with_added(&self, segments: Segments, sidecar: &Sidecar, state: &State) -> Segments {
        let sources = self.sources().into_iter();
        sources.fold(segments, |segments, source| {
            segments.with_added(sidecar, state, &source.profile().id().to_string())
        })
    }
}
