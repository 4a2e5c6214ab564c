//! An embedder on another machine, or in another process.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::embed::{Batching, EmbedError, Embedder, Embedding, Profile};

use super::client::{Call, Client, Limits};
use super::endpoint::Endpoint;
use super::failure::{Failure, RemoteError};
use super::redact::Redactor;
use super::wire::{self, Answer};

/// Raised when what is sent of a text changes in another way than the settings say: 1, the first.
const SENT_VERSION: u32 = 1;

/// Whose interface is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmbeddingApi {
    /// `POST …/embeddings` as OpenAI has it: also Infinity, the llama.cpp server, LM Studio, LiteLLM, vLLM.
    OpenAi,
    /// `POST …/api/embed` of Ollama.
    Ollama,
    /// `POST …/embed` of Hugging Face's text-embeddings-inference.
    Tei,
}

/// How the numbers of a vector are written in an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// As numbers.
    #[default]
    Float,
    /// As base64 of little-endian `f32`; a quarter of the bytes. Only [`EmbeddingApi::OpenAi`] knows it, and not every server.
    Base64,
}

/// Which server, and how it is asked.
#[derive(Clone, Debug)]
pub struct EmbedderOptions {
    /// Where it is.
    pub endpoint: Endpoint,
    /// What it speaks.
    pub api: EmbeddingApi,
    /// The model's name there; may be empty for a server that has one.
    pub model: String,
    /// Any text that keeps the vectors of one model apart from those of another under the same name.
    pub revision: String,
    /// Put before a query.
    pub query_prefix: String,
    /// Put before a document.
    pub document_prefix: String,
    /// Asked for, if the model can give fewer than it has.
    pub dimensions: Option<usize>,
    /// Of answers.
    pub encoding: Encoding,
    /// Texts in a request; by default what the server is known to take.
    pub batch: Option<usize>,
    /// Requests at a time.
    pub in_flight: usize,
    /// For one request.
    pub timeout: Duration,
    /// For the vector of a query, with all retries.
    pub query_timeout: Duration,
}

/// Embeds with a server.
///
/// Texts are cut into requests by number and bytes; a request that is refused as too large, or for something in it, is halved until
/// the text is found that the server does not take, which gets the zero vector. Secrets are struck out of every text.
pub struct RemoteEmbedder {
    client: Client,
    options: EmbedderOptions,
    profile: Profile,
    redactor: Redactor,
    dim: OnceLock<usize>,
    limits: OnceLock<ServerLimits>,
    counts: Counts,
}

/// What a server says that it takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerLimits {
    /// Tokens of a text; what is longer is cut off.
    pub max_tokens: Option<usize>,
    /// Texts in a request.
    pub max_texts: Option<usize>,
}

/// What happened to texts.
#[derive(Debug, Default)]
struct Counts {
    redacted: AtomicUsize,
    truncated: AtomicUsize,
    refused: AtomicUsize,
}

/// What a server said when it was looked at.
#[derive(Clone, Debug)]
pub struct Examined {
    /// Components of its vectors.
    pub dim: usize,
    /// For the vector of a short text.
    pub elapsed: Duration,
    /// What it takes.
    pub limits: ServerLimits,
}

impl RemoteEmbedder {
    /// Makes one; nothing is sent.
    pub fn new(options: EmbedderOptions) -> Result<Self, RemoteError> {
        let limits = Limits {
            request_timeout: options.timeout,
            connect_timeout: Limits::default().connect_timeout.min(options.timeout),
            ..Limits::default()
        };
        Ok(Self {
            client: Client::new(options.endpoint.clone(), limits)?,
            profile: profile(&options),
            options,
            redactor: Redactor::new(),
            dim: OnceLock::new(),
            limits: OnceLock::new(),
            counts: Counts::default(),
        })
    }

    /// Which server, and how it is asked.
    pub fn options(&self) -> &EmbedderOptions {
        &self.options
    }

    /// Asks for one vector, within `timeout`, and for what the server takes.
    pub fn examine(&self, timeout: Duration) -> Result<Examined, EmbedError> {
        let started = Instant::now();
        let never = AtomicBool::new(false);
        let call = Call {
            deadline: Some(started + timeout),
            interrupt: &never,
            retries: false,
        };
        let vectors = self.ask(&["codescout"], &call).map_err(|problem| self.told(problem))?;
        let elapsed = started.elapsed();
        Ok(Examined {
            dim: vectors.first().map_or(0, |embedding| embedding.vector.len()),
            elapsed,
            limits: self.server_limits(&call),
        })
    }

    /// What a query or document looks like when it leaves.
    fn sent(&self, prefix: &str, text: &str) -> String {
        let (text, n_secrets) = self.redactor.redact(text);
        self.counts.redacted.fetch_add(n_secrets, Ordering::Relaxed);
        format!("{prefix}{text}")
    }

    fn server_limits(&self, call: &Call<'_>) -> ServerLimits {
        *self.limits.get_or_init(|| {
            let asked = wire::limits_request(self.options.api, &self.options.model);
            let answer = asked.map(|request| self.client.send(&request, call));
            match answer {
                Some(Ok(answer)) => wire::limits(self.options.api, &answer),
                // Not every version has it; then nothing is known.
                Some(Err(error)) => {
                    tracing::debug!(%error, "limits are not known");
                    ServerLimits::default()
                }
                None => ServerLimits::default(),
            }
        })
    }

    /// The vectors of some texts that are ready to be sent, in parts as small as it takes.
    fn embed(&self, texts: &[&str], call: &Call<'_>) -> Result<Vec<Embedding>, Problem> {
        match self.ask(texts, call) {
            Err(Problem::Remote(error)) if is_about_texts(&error) => match texts {
                [] => Ok(Vec::new()),
                [text] => self.embed_refused(text, error),
                _ => {
                    let (front, back) = texts.split_at(texts.len() / 2);
                    let mut embedded = self.embed(front, call)?;
                    embedded.extend(self.embed(back, call)?);
                    Ok(embedded)
                }
            },
            embedded => embedded,
        }
    }

    /// A text that the server does not take even alone.
    fn embed_refused(&self, text: &str, error: RemoteError) -> Result<Vec<Embedding>, Problem> {
        let Some(&dim) = self.dim.get() else {
            return Err(Problem::Remote(error));
        };
        tracing::warn!(n_bytes = text.len(), %error, "a text is not taken by the server");
        self.counts.refused.fetch_add(1, Ordering::Relaxed);
        Ok(vec![Embedding {
            vector: vec![0.0; dim],
            weight: 0.0,
        }])
    }

    /// The vectors of some texts by one request.
    fn ask(&self, texts: &[&str], call: &Call<'_>) -> Result<Vec<Embedding>, Problem> {
        let request = wire::request(&self.options, texts);
        let answer: Answer = self.client.send(&request, call)?;
        let vectors = answer.into_vectors(texts.len()).map_err(Problem::Unusable)?;
        let dim = *self.dim.get_or_init(|| vectors.first().map_or(0, Vec::len));
        if self.options.dimensions.is_some_and(|wanted| wanted != dim) {
            let wanted = self.options.dimensions.unwrap_or_default();
            return Err(Problem::Unusable(format!(
                "vectors of {dim} components where {wanted} were asked for"
            )));
        }
        let embeddings: Vec<Embedding> = vectors
            .into_iter()
            .map(|vector| Embedding::from_foreign(vector, dim, &self.profile.model).map_err(Problem::Embed))
            .collect::<Result<_, _>>()?;
        match embeddings.iter().position(|embedding| embedding.weight == 0.0) {
            Some(at) => Err(Problem::Unusable(format!(
                "a vector of zeros for text {} of {}",
                at + 1,
                texts.len()
            ))),
            None => Ok(embeddings),
        }
    }

    fn told(&self, problem: Problem) -> EmbedError {
        let backend = format!("{} at {}", self.profile.model, self.options.endpoint.host());
        match problem {
            Problem::Embed(error) => error,
            Problem::Unusable(detail) => EmbedError::Unusable { backend, detail },
            Problem::Remote(RemoteError {
                failure: Failure::Interrupted,
                ..
            }) => EmbedError::Interrupted,
            Problem::Remote(error) => {
                let hint = error.hint();
                let source: Box<dyn std::error::Error + Send + Sync> = match hint {
                    Some(hint) => format!("{error} ({hint})").into(),
                    None => Box::new(error),
                };
                EmbedError::Unavailable { backend, source }
            }
        }
    }

    /// Counts the texts that the server cuts off, by the rule of thumb of four bytes a token.
    fn count_truncated(&self, texts: &[&str], call: &Call<'_>) {
        if let Some(max_tokens) = self.server_limits(call).max_tokens {
            let n_long = texts.iter().filter(|text| text.len() / 4 > max_tokens).count();
            self.counts.truncated.fetch_add(n_long, Ordering::Relaxed);
        }
    }
}

impl Embedder for RemoteEmbedder {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn embed_documents(&self, texts: &[&str], interrupt: &AtomicBool) -> Result<Vec<Embedding>, EmbedError> {
        let call = Call {
            deadline: None,
            interrupt,
            retries: true,
        };
        let sent: Vec<String> = texts
            .iter()
            .map(|text| self.sent(&self.options.document_prefix, text))
            .collect();
        let mut embedded: Vec<Option<Embedding>> = vec![None; texts.len()];
        // Servers refuse an empty text, and there is nothing in it.
        let full: Vec<usize> = (0..texts.len()).filter(|&at| !texts[at].trim().is_empty()).collect();
        for part in self.parts(&full, &sent) {
            let texts: Vec<&str> = part.iter().map(|&at| sent[at].as_str()).collect();
            let vectors = self.embed(&texts, &call).map_err(|problem| self.told(problem))?;
            self.count_truncated(&texts, &call);
            for (&at, embedding) in part.iter().zip(vectors) {
                embedded[at] = Some(embedding);
            }
        }
        let dim = self.dim.get().copied().or(self.options.dimensions).unwrap_or_default();
        let none = || Embedding {
            vector: vec![0.0; dim],
            weight: 0.0,
        };
        Ok(embedded
            .into_iter()
            .map(|embedding| embedding.unwrap_or_else(none))
            .collect())
    }

    fn batching(&self) -> Batching {
        let known = self.limits.get().and_then(|limits| limits.max_texts);
        Batching {
            max_texts: self
                .options
                .batch
                .or(known)
                .unwrap_or(wire::max_texts(self.options.api)),
            max_bytes: wire::max_bytes(self.options.api),
            in_flight: self.options.in_flight,
        }
    }

    fn embed_query(&self, text: &str) -> Result<Embedding, EmbedError> {
        let never = AtomicBool::new(false);
        let call = Call {
            deadline: Some(Instant::now() + self.options.query_timeout),
            interrupt: &never,
            retries: true,
        };
        let sent = self.sent(&self.options.query_prefix, text);
        let embedded = self.ask(&[&sent], &call).map_err(|problem| self.told(problem))?;
        embedded.into_iter().next().ok_or_else(|| EmbedError::Unusable {
            backend: self.profile.model.clone(),
            detail: "no vector".to_owned(),
        })
    }

    fn notes(&self) -> Vec<String> {
        let told = |count: &AtomicUsize, what: &str| {
            let n = count.load(Ordering::Relaxed);
            (n > 0).then(|| format!("{n} {what}"))
        };
        [
            told(&self.counts.redacted, "secrets were struck out before texts left"),
            told(
                &self.counts.truncated,
                "texts are longer than the model reads: their ends do not count",
            ),
            told(
                &self.counts.refused,
                "texts were refused by the server and have no vector",
            ),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

impl RemoteEmbedder {
    /// Cuts the texts at `places` into requests.
    fn parts<'p>(&self, places: &'p [usize], sent: &[String]) -> Vec<&'p [usize]> {
        let Batching {
            max_texts, max_bytes, ..
        } = self.batching();
        let mut parts = Vec::new();
        let (mut start, mut n_bytes) = (0, 0);
        for (end, &at) in places.iter().enumerate() {
            let is_full = end - start >= max_texts.max(1) || n_bytes + sent[at].len() > max_bytes;
            if is_full && end > start {
                parts.push(&places[start..end]);
                (start, n_bytes) = (end, 0);
            }
            n_bytes += sent[at].len();
        }
        if start < places.len() {
            parts.push(&places[start..]);
        }
        parts
    }
}

/// Why there are no vectors.
enum Problem {
    Remote(RemoteError),
    Embed(EmbedError),
    Unusable(String),
}

impl From<RemoteError> for Problem {
    fn from(error: RemoteError) -> Self {
        Self::Remote(error)
    }
}

/// Whether the server has something against the texts: that they are too many, too long, or one of them wrong.
fn is_about_texts(error: &RemoteError) -> bool {
    matches!(error.status(), Some(400 | 413 | 422))
}

/// Follows from settings alone, so that it is known while the server is away. Where the server is does not matter; how it is asked
/// does.
fn profile(options: &EmbedderOptions) -> Profile {
    Profile {
        model: options.model.clone(),
        digest: options.revision.clone(),
        dim: options.dimensions.unwrap_or(0),
        recipe: format!(
            "remote {SENT_VERSION}; document prefix {:?}; query prefix {:?}",
            options.document_prefix, options.query_prefix
        ),
    }
}

#[cfg(test)]
mod tests;
