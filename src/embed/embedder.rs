//! The contract of everything that turns texts into vectors.

use std::error::Error;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::profile::Profile;

/// Turns texts into vectors of one [`Profile`].
///
/// For the same profile the same text gives the same vector, whatever else is in the batch. Documents and queries may be
/// treated differently (prefixes, token weights); their vectors are compared by dot product. Implementations block and may be
/// called from many threads; those that compute locally use the calling thread only, so that the caller decides about parallelism.
pub trait Embedder: Send + Sync {
    /// What the vectors depend on beside their texts. Constant during the embedder's life.
    fn profile(&self) -> &Profile;

    /// One embedding per text, in the order of `texts`. Any number of texts, of any length; an adapter splits them into the
    /// batches its server takes.
    ///
    /// Looks at `interrupt` at least once per batch and returns [`EmbedError::Interrupted`] when it is set. On an error no
    /// partial result is given.
    fn embed_documents(&self, texts: &[&str], interrupt: &AtomicBool) -> Result<Vec<Embedding>, EmbedError>;

    /// How many texts at a time are best given to [`Self::embed_documents`], and how many calls of it at once do good.
    fn batching(&self) -> Batching {
        Batching::default()
    }

    /// What happened to texts that people should know, so far: that secrets were struck out, that texts were cut off.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// The embedding of a query. A text in which the model finds nothing gives the zero vector, which is like no document. What
    /// takes long ends with [`EmbedError::Interrupted`] soon after `interrupt` is set.
    fn embed_query(&self, text: &str, interrupt: &AtomicBool) -> Result<Embedding, EmbedError>;

    /// The embedding of a text that documents like it are wanted for, as it would be of a document; somebody waits for it.
    fn embed_example(&self, text: &str, interrupt: &AtomicBool) -> Result<Embedding, EmbedError> {
        let embedded = self.embed_documents(&[text], interrupt)?;
        embedded.into_iter().next().ok_or_else(|| EmbedError::Unusable {
            backend: self.profile().model.clone(),
            detail: "no vector".to_owned(),
        })
    }
}

/// How texts are best handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batching {
    /// Texts in one call.
    pub max_texts: usize,
    /// Bytes of texts in one call, if there is more than one.
    pub max_bytes: usize,
    /// Calls at once, each from a thread of its own.
    pub in_flight: usize,
    /// A call takes no longer.
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
    /// `Profile::dim` finite components; unit length, or all zero when the model found nothing in the text.
    pub vector: Vec<f32>,
    /// How much the text holds: the length of the pooled vector before normalisation, where a model has such a thing;
    /// otherwise 1. Zero with the zero vector.
    pub weight: f32,
}

impl Embedding {
    /// Takes a vector from outside: checks that it is `dim` finite numbers, and makes it unit length with weight 1.
    ///
    /// `backend` names the model or server in the error.
    pub fn from_foreign(mut vector: Vec<f32>, dim: usize, backend: &str) -> Result<Self, EmbedError> {
        let unusable = |detail: String| EmbedError::Unusable {
            backend: backend.to_owned(),
            detail,
        };
        if vector.len() != dim {
            return Err(unusable(format!(
                "a vector of {} components where {dim} were expected",
                vector.len()
            )));
        }
        if vector.iter().any(|x| !x.is_finite()) {
            return Err(unusable("a vector with a component that is not a number".to_owned()));
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

/// Why no embedding was given.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// The caller's flag was set.
    #[error("embedding was interrupted")]
    Interrupted,
    /// The model cannot be reached, or refuses for now: trying again later may help.
    #[error("model {backend} is unavailable")]
    Unavailable {
        /// Model or server.
        backend: String,
        /// What happened.
        source: Box<dyn Error + Send + Sync>,
    },
    /// It did not answer in the time that a call has; fewer texts may be done in it.
    #[error("model {backend} is too slow")]
    TooSlow {
        /// Model or server.
        backend: String,
        /// What happened.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The model answered with something that cannot be used: trying again will not help.
    #[error("model {backend} gave {detail}")]
    Unusable {
        /// Model or server.
        backend: String,
        /// What was wrong with the answer.
        detail: String,
    },
    /// It is not the model that it was.
    #[error("model {backend} gave {detail}")]
    OtherModel {
        /// Model or server.
        backend: String,
        /// What is different.
        detail: String,
    },
    /// The model does not give as many dimensions as are set.
    #[error("model {backend} gave vectors of {found} components where {wanted} were asked for")]
    OtherDimensions {
        /// Model or server.
        backend: String,
        /// What it gives.
        found: usize,
        /// What is set.
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
