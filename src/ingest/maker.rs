//! The source of the vectors of one profile: an embedder of dense or sparse vectors.

use std::sync::atomic::AtomicBool;

use crate::embed::{Batching, EmbedError, Embedder, Profile, SparseEmbedder};
use crate::index::{Row, RowKind};

/// An embedder of dense or sparse vectors.
#[derive(Clone, Copy)]
pub enum EmbeddingSource<'a> {
    /// Dense vectors of an external model.
    Dense(&'a dyn Embedder),
    /// Sparse vectors.
    Sparse(&'a dyn SparseEmbedder),
}

impl<'a> EmbeddingSource<'a> {
    /// The profile of the rows.
    pub fn profile(&self) -> &'a Profile {
        match self {
            Self::Dense(embedder) => embedder.profile(),
            Self::Sparse(embedder) => embedder.profile(),
        }
    }

    /// Returns notes for the user about the texts embedded so far.
    pub fn notes(&self) -> Vec<String> {
        match self {
            Self::Dense(embedder) => embedder.notes(),
            Self::Sparse(embedder) => embedder.notes(),
        }
    }

    /// The kind of the rows.
    pub fn kind(&self) -> RowKind {
        match self {
            Self::Dense(_) => RowKind::Dense,
            Self::Sparse(_) => RowKind::Sparse,
        }
    }

    /// The name of the setting that distinguishes models with the same name.
    pub(super) fn revision_setting(&self) -> &'static str {
        match self {
            Self::Dense(_) => "embedding.revision",
            Self::Sparse(_) => "sparse.revision",
        }
    }

    pub(super) fn batching(&self) -> Batching {
        match self {
            Self::Dense(embedder) => embedder.batching(),
            Self::Sparse(embedder) => embedder.batching(),
        }
    }

    /// Embeds texts in order. A result is `None` if the text is not accepted or the model returns no vector for it.
    pub(super) fn rows(&self, texts: &[&str], interrupt: &AtomicBool) -> Result<Vec<Option<Row>>, EmbedError> {
        Ok(match self {
            Self::Dense(embedder) => {
                let embedded = embedder.embed_documents(texts, interrupt)?.into_iter();
                embedded
                    .map(|embedding| (embedding.weight > 0.0).then_some(Row::Dense(embedding)))
                    .collect()
            }
            Self::Sparse(embedder) => {
                let embedded = embedder.embed_documents(texts, interrupt)?.into_iter();
                embedded.map(|vector| vector.map(Row::Sparse)).collect()
            }
        })
    }
}
