//! Remote embedder: dense vectors from a server, on another machine or in another process.

use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::embed::{Batching, EmbedError, Embedder, Embedding, Profile};
use crate::index::{Row, RowFile};

use super::client::{Call, Client};
use super::endpoint::Endpoint;
use super::sign::Sign;
use super::texts::{Problem, ServerLimits, TextServer};
use super::wire;

/// Version of the text that is sent for a document, part of the profile. Must be incremented when that text changes in
/// a way that the settings do not express. History: 1 is the first version.
const SENT_VERSION: u32 = 1;

/// API of an embedding server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmbeddingApi {
    /// OpenAI's `POST …/embeddings`; also Infinity, the llama.cpp server, LM Studio, LiteLLM, vLLM.
    OpenAi,
    /// Ollama's `POST …/api/embed`.
    Ollama,
    /// `POST …/embed` of Hugging Face's text-embeddings-inference (TEI).
    Tei,
}

/// Encoding of a vector in a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// JSON numbers.
    #[default]
    Float,
    /// Base64 of little-endian `f32`; a quarter of the bytes. Only for [`EmbeddingApi::OpenAi`], and not every server
    /// supports it.
    Base64,
}

/// Server, model and request options of a [`RemoteEmbedder`].
#[derive(Clone, Debug)]
pub struct EmbedderOptions {
    /// Address and key of the server.
    pub endpoint: Endpoint,
    /// API of the server.
    pub api: EmbeddingApi,
    /// Name of the model on the server; may be empty if the server has only one.
    pub model: String,
    /// Distinguishes the vectors of different models that have the same name. Any text.
    pub revision: String,
    /// Prepended to a query.
    pub query_prefix: String,
    /// Prepended to a document.
    pub document_prefix: String,
    /// Number of dimensions to request, for models that can return shortened vectors.
    pub dimensions: Option<usize>,
    /// Encoding of vectors in responses.
    pub encoding: Encoding,
    /// Texts per request. Default: the known limit of the server.
    pub batch: Option<usize>,
    /// Maximum number of concurrent requests.
    pub in_flight: usize,
    /// Time limit of one request.
    pub timeout: Duration,
    /// Time limit for the vector of a query, including retries.
    pub query_timeout: Duration,
}

/// Embeds texts on a server. A text that the server rejects gets the zero vector.
pub struct RemoteEmbedder {
    server: TextServer,
    options: EmbedderOptions,
    profile: Profile,
    /// Dimension of the model's vectors, known after its probe vector was checked.
    dim: OnceLock<usize>,
    sign: Sign,
}

/// Result of probing a server.
#[derive(Clone, Debug)]
pub struct ServerProbe {
    /// Dimension of the vector; for a sparse vector, its number of tokens.
    pub dim: usize,
    /// Time to embed a short text.
    pub elapsed: Duration,
    /// Limits that the server reports.
    pub limits: ServerLimits,
}

impl RemoteEmbedder {
    /// Creates an embedder without sending a request.
    pub fn new(options: EmbedderOptions) -> Self {
        Self {
            server: TextServer::new(
                (options.endpoint.clone(), options.timeout),
                (options.api, &options.model),
                options.batch,
                options.in_flight,
            ),
            profile: profile(&options),
            options,
            dim: OnceLock::new(),
            sign: Sign::default(),
        }
    }

    /// Returns the options.
    pub fn options(&self) -> &EmbedderOptions {
        &self.options
    }

    /// Sets the stored vector of `index::PROBE_TEXT`. Queries fail if the model returns a different vector for this
    /// text.
    pub fn set_known_probe(&self, known: impl FnOnce() -> Option<RowFile>) {
        self.sign.set(known);
    }

    /// Requests one vector and the limits of the server, within `timeout` or until `interrupt` is set. Fails if the
    /// server's model differs from the model that made the stored vectors.
    pub fn examine(&self, timeout: Duration, interrupt: &AtomicBool) -> Result<ServerProbe, EmbedError> {
        let dim = self.dim.clone();
        let ask = |client: &Client, texts: &[&str], call: &Call<'_>| self.ask(&dim, client, texts, call);
        let check = |shown| self.check(shown);
        let sign = (self.sign.text(&self.options.document_prefix), &check as _);
        let (embedding, elapsed, limits) = self.server.examine(sign, (timeout, interrupt), &ask)?;
        Ok(ServerProbe {
            dim: embedding.vector.len(),
            elapsed,
            limits,
        })
    }

    /// Checks that the server has the model that made the stored vectors. Sets the dimension if it does.
    fn check(&self, shown: Embedding) -> Result<(), String> {
        let dim = shown.vector.len();
        self.sign.check(Row::Dense(shown))?;
        self.dim.get_or_init(|| dim);
        Ok(())
    }

    /// Embeds `texts` in one request. The first vector sets `dim`, and all other vectors must have the same dimension.
    fn ask(
        &self,
        dim: &OnceLock<usize>,
        client: &Client,
        texts: &[&str],
        call: &Call<'_>,
    ) -> Result<Vec<Option<Embedding>>, Problem> {
        let request = wire::request(&self.options, texts);
        let api = self.options.api;
        let answer = client.send_and_read(&request, call, |answer| wire::vectors(api, answer))?;
        let vectors = answer.of_texts(texts.len()).map_err(Problem::Unusable)?;
        let dim = *dim.get_or_init(|| vectors.first().map_or(0, Vec::len));
        if let Some(wanted) = self.options.dimensions.filter(|wanted| *wanted != dim) {
            return Err(Problem::OtherDimensions { found: dim, wanted });
        }
        let embeddings = vectors.into_iter().map(|vector| {
            if vector.len() == dim && !vector.iter().all(|x| x.is_finite()) {
                return Ok(None);
            }
            let embedding = Embedding::from_foreign(vector, dim, &self.profile.model).map_err(Problem::Embed)?;
            Ok(Some(embedding).filter(|embedding| embedding.weight > 0.0))
        });
        embeddings.collect()
    }
}

impl Embedder for RemoteEmbedder {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn embed_documents(&self, texts: &[&str], interrupt: &AtomicBool) -> Result<Vec<Embedding>, EmbedError> {
        let dim = self.dim.clone();
        let ask = |client: &Client, texts: &[&str], call: &Call<'_>| self.ask(&dim, client, texts, call);
        let embedded = self
            .server
            .documents((&self.options.document_prefix, texts), interrupt, &ask)?;
        let dim = dim.get().copied().or(self.options.dimensions).unwrap_or_default();
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
        self.server.batching()
    }

    fn embed_query(&self, text: &str, interrupt: &AtomicBool) -> Result<Embedding, EmbedError> {
        self.embed_at_once(&self.options.query_prefix, text, interrupt)
    }

    fn embed_example(&self, text: &str, interrupt: &AtomicBool) -> Result<Embedding, EmbedError> {
        self.embed_at_once(&self.options.document_prefix, text, interrupt)
    }

    fn notes(&self) -> Vec<String> {
        self.server.notes()
    }
}

impl RemoteEmbedder {
    fn embed_at_once(&self, prefix: &str, text: &str, interrupt: &AtomicBool) -> Result<Embedding, EmbedError> {
        let dim = self.dim.clone();
        let ask = |client: &Client, texts: &[&str], call: &Call<'_>| self.ask(&dim, client, texts, call);
        let check = |shown| self.check(shown);
        self.server.query(
            (prefix, text),
            (self.sign.text(&self.options.document_prefix), &check),
            (self.options.query_timeout, interrupt),
            &ask,
        )
    }
}

/// Derives the profile from the settings alone, so that it is known without a request. The profile contains the request
/// options that affect vectors, but not the address.
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
