//! An embedder on another machine, or in another process.

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

/// Embeds with a server. A text that the server does not take gets the zero vector.
pub struct RemoteEmbedder {
    server: TextServer,
    options: EmbedderOptions,
    profile: Profile,
    /// Of the model that is known by its sign.
    dim: OnceLock<usize>,
    sign: Sign,
}

/// What a server said when it was looked at.
#[derive(Clone, Debug)]
pub struct Examined {
    /// Components of its vectors; of a sparse one, its tokens.
    pub dim: usize,
    /// For the vector of a short text.
    pub elapsed: Duration,
    /// What it takes.
    pub limits: ServerLimits,
}

impl RemoteEmbedder {
    /// Makes one; nothing is sent.
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

    /// Which server, and how it is asked.
    pub fn options(&self) -> &EmbedderOptions {
        &self.options
    }

    /// Says by what row of `index::PROBE_TEXT` the model is known: queries are answered if it still gives that.
    pub fn know_by(&self, known: impl FnOnce() -> Option<RowFile>) {
        self.sign.set(known);
    }

    /// Asks for one vector, within `timeout` or until the flag is set, and for what the server takes. The model has to be the one
    /// that is known, if one is.
    pub fn examine(&self, timeout: Duration, interrupt: &AtomicBool) -> Result<Examined, EmbedError> {
        let dim = self.dim.clone();
        let ask = |client: &Client, texts: &[&str], call: &Call<'_>| self.ask(&dim, client, texts, call);
        let check = |shown| self.check(shown);
        let sign = (self.sign.text(&self.options.document_prefix), &check as _);
        let (embedding, elapsed, limits) = self.server.examine(sign, (timeout, interrupt), &ask)?;
        Ok(Examined {
            dim: embedding.vector.len(),
            elapsed,
            limits,
        })
    }

    /// Whether it is the model that is known; only what such a one gave says how many components there are to be.
    fn check(&self, shown: Embedding) -> Result<(), String> {
        let dim = shown.vector.len();
        self.sign.check(Row::Dense(shown))?;
        self.dim.get_or_init(|| dim);
        Ok(())
    }

    /// The vectors of some texts by one request; the first of the call says what `dim` all others are to have.
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
