//! The source of the rows of one profile, of either kind.

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

    /// Notes for the user about embedded texts so far.
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

    /// The setting that distinguishes models of the same name.
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

    /// Embeds texts in order. `None` for a text that is not accepted or for which the model gives no vector.
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
