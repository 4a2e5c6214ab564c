//! The [`Embedder`] trait, which converts texts to vectors.

use std::error::Error;
use std::sync::atomic::AtomicBool;

use super::profile::Profile;
use crate::model::explain_by;

/// Converts texts to vectors according to one [`Profile`].
///
/// The vector of a text depends only on the text and the profile, not on other texts in the same batch. Documents and
/// queries may be embedded differently (prefixes, token weights). Similarity is the dot product of a document vector
/// and a query vector.
///
/// Methods block and may be called from many threads. Local implementations do not spawn threads, so that the caller
/// controls parallelism.
pub trait Embedder: Send + Sync {
    /// Returns the profile: everything besides the text that determines a vector. It never changes during the lifetime
    /// of the embedder.
    fn profile(&self) -> &Profile;

    /// Returns the embeddings of `texts`, in the same order. Accepts any number of texts of any length. A remote
    /// embedder splits them into batches that the server accepts.
    ///
    /// Checks `interrupt` at least once per batch and returns [`EmbedError::Interrupted`] if it is set. An error
    /// discards all results of the call.
    fn embed_documents(&self, texts: &[&str], interrupt: &AtomicBool) -> Result<Vec<Embedding>, EmbedError>;

    /// Returns the recommended batch size and concurrency for [`Self::embed_documents`].
    fn batching(&self) -> Batching {
        Batching::default()
    }

    /// Returns notes for the user about the texts embedded so far, for example that texts were truncated or secrets
    /// removed.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the embedding of a query. If the model recognises nothing in the text, this is the zero vector, whose
    /// similarity to every document is 0. Returns [`EmbedError::Interrupted`] soon after `interrupt` is set.
    fn embed_query(&self, text: &str, interrupt: &AtomicBool) -> Result<Embedding, EmbedError>;

    /// Returns the embedding of an example text that is used to search for similar documents. Embeds the text like a
    /// document. Interactive queries call this, so it should be fast.
    fn embed_example(&self, text: &str, interrupt: &AtomicBool) -> Result<Embedding, EmbedError> {
        let embedded = self.embed_documents(&[text], interrupt)?;
        embedded.into_iter().next().ok_or_else(|| EmbedError::Unusable {
            backend: self.profile().model.clone(),
            detail: "no vector".to_owned(),
        })
    }
}

/// The recommended size and concurrency of calls to an embedder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batching {
    /// Maximum number of texts in one call.
    pub max_texts: usize,
    /// Maximum number of bytes in one call. A single text may be longer.
    pub max_bytes: usize,
    /// Number of concurrent calls, each on its own thread.
    pub in_flight: usize,
}

impl Default for Batching {
    fn default() -> Self {
        Self {
            max_texts: 64,
            max_bytes: 1 << 20,
            in_flight: 1,
        }
    }
}

/// The vector of a text, and its weight.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedding {
    /// The components of the vector, all finite; there are `Profile::dim` of them. The vector has unit length, or is
    /// zero if the model recognised nothing in the text.
    pub vector: Vec<f32>,
    /// The amount of content in the text. For models that pool token vectors, this is the length of the pooled vector
    /// before normalisation; for other models, it is 1. It is 0 for the zero vector.
    pub weight: f32,
}

impl Embedding {
    /// Converts a vector that another program computed. Checks that it has `dim` finite components and scales it to
    /// unit length. The weight is 1.
    ///
    /// Error messages name the model or server as `backend`.
    pub fn from_foreign(mut vector: Vec<f32>, dim: usize, backend: &str) -> Result<Self, EmbedError> {
        let unusable = |detail: String| EmbedError::Unusable {
            backend: backend.to_owned(),
            detail,
        };
        if vector.len() != dim {
            return Err(unusable(format!(
                "a vector of {} components, expected {dim}",
                vector.len()
            )));
        }
        if vector.iter().any(|x| !x.is_finite()) {
            return Err(unusable("a vector with a non-finite component".to_owned()));
        }
        let norm = vector.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt();
        if norm == 0.0 {
            return Ok(Self { vector, weight: 0.0 });
        }
        for x in &mut vector {
            *x = (f64::from(*x) / norm) as f32;
        }
        Ok(Self { vector, weight: 1.0 })
    }
}

/// An error from embedding a text.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// The interrupt flag was set.
    #[error("embedding was interrupted")]
    Interrupted,
    /// The model cannot be reached or rejects requests for now. A retry may succeed.
    #[error("model {backend} is unavailable")]
    Unavailable {
        /// The model or server.
        backend: String,
        /// The underlying error.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The model did not answer within the time limit. A call with fewer texts may succeed.
    #[error("model {backend} is too slow")]
    TooSlow {
        /// The model or server.
        backend: String,
        /// The underlying error.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The model returned an unusable result. A retry will not help.
    #[error("model {backend} returned {detail}")]
    Unusable {
        /// The model or server.
        backend: String,
        /// The problem with the result.
        detail: String,
    },
    /// The server uses another model than before.
    #[error("model {backend} returned {detail}")]
    OtherModel {
        /// The model or server.
        backend: String,
        /// The unexpected result, which shows that the model has changed.
        detail: String,
    },
    /// The model returned vectors of another dimension than configured.
    #[error("model {backend} returned vectors of {found} components, expected {wanted}")]
    OtherDimensions {
        /// The model or server.
        backend: String,
        /// The dimension of the returned vectors.
        found: usize,
        /// The configured dimension.
        wanted: usize,
    },
}

explain_by!(EmbedError; Interrupted);

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn foreign_vectors_become_unit_length() {
        let embedding = Embedding::from_foreign(vec![3.0, 0.0, -4.0], 3, "m").unwrap();
        assert_eq!(
            embedding,
            Embedding {
                vector: vec![0.6, 0.0, -0.8],
                weight: 1.0
            }
        );
        let huge = Embedding::from_foreign(vec![f32::MAX, f32::MAX], 2, "m").unwrap();
        assert!((huge.vector[0] - 0.5f32.sqrt()).abs() < 1e-6);
        assert_eq!(Embedding::from_foreign(vec![0.0; 3], 3, "m").unwrap().weight, 0.0);
    }

    #[test]
    fn foreign_vectors_are_checked() {
        for bad in [
            vec![1.0; 2],
            vec![1.0; 4],
            vec![1.0, f32::NAN, 0.0],
            vec![1.0, f32::INFINITY, 0.0],
        ] {
            assert!(matches!(
                Embedding::from_foreign(bad, 3, "m"),
                Err(EmbedError::Unusable { .. })
            ));
        }
    }
}
