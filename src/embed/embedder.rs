//! The [`Embedder`] trait: turns texts into vectors.

use std::error::Error;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::profile::Profile;

/// Turns texts into vectors of one [`Profile`].
///
/// With the same profile, the same text gives the same vector, regardless of the rest of the batch. Documents and
/// queries may be treated differently (prefixes, token weights); their vectors are compared by dot product. Methods
/// block and may be called from many threads. Local implementations use only the calling thread, so that the caller
/// controls parallelism.
pub trait Embedder: Send + Sync {
    /// Everything besides the text that determines a vector. Constant for the lifetime of the embedder.
    fn profile(&self) -> &Profile;

    /// Returns one embedding per text, in the order of `texts`. Accepts any number of texts of any length; an adapter
    /// splits them into batches that its server accepts.
    ///
    /// Checks `interrupt` at least once per batch and returns [`EmbedError::Interrupted`] when it is set. An error
    /// returns no partial result.
    fn embed_documents(&self, texts: &[&str], interrupt: &AtomicBool) -> Result<Vec<Embedding>, EmbedError>;

    /// The best batch size for [`Self::embed_documents`], and the useful number of concurrent calls.
    fn batching(&self) -> Batching {
        Batching::default()
    }

    /// Notes for the user about the texts so far, for example that secrets were removed or that texts were truncated.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the embedding of a query. A text in which the model finds nothing gives the zero vector, whose
    /// similarity to every document is 0. A long call returns [`EmbedError::Interrupted`] soon after `interrupt` is
    /// set.
    fn embed_query(&self, text: &str, interrupt: &AtomicBool) -> Result<Embedding, EmbedError>;

    /// Returns the embedding of an example text to find similar documents, embedded as a document would be. A user is
    /// waiting for it.
    fn embed_example(&self, text: &str, interrupt: &AtomicBool) -> Result<Embedding, EmbedError> {
        let embedded = self.embed_documents(&[text], interrupt)?;
        embedded.into_iter().next().ok_or_else(|| EmbedError::Unusable {
            backend: self.profile().model.clone(),
            detail: "no vector".to_owned(),
        })
    }
}

/// Recommended size and concurrency of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batching {
    /// Maximum number of texts in one call.
    pub max_texts: usize,
    /// Maximum number of bytes in one call; a single text may exceed it.
    pub max_bytes: usize,
    /// Number of concurrent calls, each from its own thread.
    pub in_flight: usize,
    /// Time limit of a call.
    pub timeout: Duration,
}

impl Default for Batching {
    fn default() -> Self {
        Self {
            max_texts: 64,
            max_bytes: 1 << 20,
            in_flight: 1,
            timeout: Duration::from_secs(60),
        }
    }
}

/// The vector of one text.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedding {
    /// `Profile::dim` finite components; of unit length, or all zero if the model found nothing in the text.
    pub vector: Vec<f32>,
    /// The amount of content in the text: the length of the pooled vector before normalisation for models that have
    /// one, otherwise 1. 0 for the zero vector.
    pub weight: f32,
}

impl Embedding {
    /// Converts a vector from an external source: checks that it has `dim` finite components, and scales it to unit
    /// length, with weight 1.
    ///
    /// `backend` names the model or server in errors.
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
    /// The caller set the interrupt flag.
    #[error("embedding was interrupted")]
    Interrupted,
    /// The model cannot be reached, or refuses requests for now; a retry may succeed.
    #[error("model {backend} is unavailable")]
    Unavailable {
        /// The model or server.
        backend: String,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The model did not answer within the time limit of a call; fewer texts may succeed.
    #[error("model {backend} is too slow")]
    TooSlow {
        /// The model or server.
        backend: String,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The model returned something unusable; a retry will not help.
    #[error("model {backend} returned {detail}")]
    Unusable {
        /// The model or server.
        backend: String,
        /// The problem with the answer.
        detail: String,
    },
    /// The model has changed.
    #[error("model {backend} returned {detail}")]
    OtherModel {
        /// The model or server.
        backend: String,
        /// The difference.
        detail: String,
    },
    /// The model does not return vectors of the configured dimension.
    #[error("model {backend} returned vectors of {found} components, expected {wanted}")]
    OtherDimensions {
        /// The model or server.
        backend: String,
        /// The dimension returned.
        found: usize,
        /// The dimension configured.
        wanted: usize,
    },
}

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
