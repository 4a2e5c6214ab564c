//! What makes the rows of one profile, of whatever kind.

use std::sync::atomic::AtomicBool;

use crate::embed::{Batching, EmbedError, Embedder, Profile, SparseEmbedder};
use crate::index::{Row, RowKind};

/// Makes vectors or sparse vectors.
#[derive(Clone, Copy)]
pub enum Maker<'a> {
    /// Vectors of a model beside the program's own.
    Dense(&'a dyn Embedder),
    /// Sparse vectors.
    Sparse(&'a dyn SparseEmbedder),
}

impl<'a> Maker<'a> {
    /// What they depend on beside the texts.
    pub fn profile(&self) -> &'a Profile {
        match self {
            Self::Dense(embedder) => embedder.profile(),
            Self::Sparse(embedder) => embedder.profile(),
        }
    }

    /// What happened to texts that people should know, so far.
    pub fn notes(&self) -> Vec<String> {
        match self {
            Self::Dense(embedder) => embedder.notes(),
            Self::Sparse(embedder) => embedder.notes(),
        }
    }

    /// Of which kind they are.
    pub fn kind(&self) -> RowKind {
        match self {
            Self::Dense(_) => RowKind::Dense,
            Self::Sparse(_) => RowKind::Sparse,
        }
    }

    /// What keeps models of one name apart.
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

    /// One for each text, in their order; `None` for a text that is not taken, or of which nothing is made.
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
