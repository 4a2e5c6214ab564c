//! Computes sparse vectors on a server with `POST …/embed_sparse` of Hugging Face's text-embeddings-inference (TEI).

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::embed::{Batching, EmbedError, Profile, SparseEmbedder, SparseVector};
use crate::index::{Row, RowFile};

use super::client::{Call, Client};
use super::embedder::{EmbeddingApi, ServerProbe};
use super::endpoint::Endpoint;
use super::failure::RemoteError;
use super::sign::Sign;
use super::texts::{Problem, TextServer};
use super::wire::{self, Term};

/// Version of the text that is sent for a document and of the part of its vector that is stored, part of the profile.
/// Must be incremented on a change that the settings do not express. History: 1 is the first version.
const VERSION: u32 = 1;

/// Server, model and request options of a [`RemoteSparse`].
#[derive(Clone, Debug)]
pub struct SparseOptions {
    /// Address and key of the server.
    pub endpoint: Endpoint,
    /// Name of the model, used for display and to identify its vectors. It is not sent, because a TEI server has only
    /// one model.
    pub model: String,
    /// Distinguishes the vectors of different models that have the same name. Any text.
    pub revision: String,
    /// Maximum number of texts per request. Default: the known limit of the server.
    pub batch: Option<usize>,
    /// Maximum number of concurrent requests.
    pub in_flight: usize,
    /// Time limit of one request.
    pub timeout: Duration,
    /// Time limit for the vector of a query, including retries.
    pub query_timeout: Duration,
}

/// Computes sparse vectors on a server.
pub struct RemoteSparse {
    server: TextServer,
    options: SparseOptions,
    profile: Profile,
    sign: Sign,
}

impl RemoteSparse {
    /// Creates an embedder without sending a request.
    pub fn new(options: SparseOptions) -> Self {
        Self {
            server: TextServer::new(
                (options.endpoint.clone(), options.timeout),
                (EmbeddingApi::Tei, &options.model),
                options.batch,
                options.in_flight,
            ),
            profile: profile(&options),
            options,
            sign: Sign::default(),
        }
    }

    /// Returns the options.
    pub fn options(&self) -> &SparseOptions {
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
        let check = |shown| self.sign.check(Row::Sparse(shown));
        let sign = (self.sign.text(""), &check as _);
        let (vector, elapsed, limits) = self.server.examine(sign, (timeout, interrupt), &ask)?;
        Ok(ServerProbe {
            dim: vector.terms().len(),
            elapsed,
            limits,
        })
    }
}

impl SparseEmbedder for RemoteSparse {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn embed_documents(&self, texts: &[&str], interrupt: &AtomicBool) -> Result<Vec<Option<SparseVector>>, EmbedError> {
        self.server.documents(("", texts), interrupt, &ask)
    }

    fn embed_query(&self, text: &str, interrupt: &AtomicBool) -> Result<SparseVector, EmbedError> {
        let check = |shown| self.sign.check(Row::Sparse(shown));
        let sign = (self.sign.text(""), &check as _);
        self.server
            .query(("", text), sign, (self.options.query_timeout, interrupt), &ask)
    }

    fn batching(&self) -> Batching {
        self.server.batching()
    }

    fn notes(&self) -> Vec<String> {
        self.server.notes()
    }
}

/// Embeds `texts` in one request.
fn ask(client: &Client, texts: &[&str], call: &Call<'_>) -> Result<Vec<Option<SparseVector>>, Problem> {
    let answer: Vec<Vec<Term>> = client.send(&wire::sparse_request(texts), call).map_err(or_other_kind)?;
    if answer.len() != texts.len() {
        return Err(Problem::Unusable(format!(
            "{} vectors for {} texts",
            answer.len(),
            texts.len()
        )));
    }
    let backend = client.endpoint().host();
    let vectors = answer.into_iter().map(|terms| {
        let terms: Vec<(u32, f32)> = terms.into_iter().map(|term| (term.index, term.value.0)).collect();
        if terms.iter().any(|(_, weight)| !weight.is_finite()) {
            return Ok(None);
        }
        SparseVector::from_foreign(terms, &backend)
            .map(Some)
            .map_err(Problem::Embed)
    });
    vectors.collect()
}

/// Recognizes the error of a server that runs a model for dense vectors.
fn or_other_kind(error: RemoteError) -> Problem {
    match error.status() {
        Some(424) => Problem::Unusable(format!(
            "no sparse vectors ({}): start the server with --pooling splade and a model trained for it",
            error.failure
        )),
        _ => Problem::Remote(error),
    }
}

/// Derives the profile from the settings alone, so that it is known without a request.
fn profile(options: &SparseOptions) -> Profile {
    Profile {
        model: options.model.clone(),
        digest: options.revision.clone(),
        dim: 0,
        recipe: format!(
            "remote sparse {VERSION}; the {} heaviest tokens",
            SparseVector::MAX_TERMS
        ),
    }
}

#[cfg(test)]
mod tests;
