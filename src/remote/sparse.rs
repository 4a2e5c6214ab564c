//! Sparse vectors from a server: `POST …/embed_sparse` of Hugging Face's text-embeddings-inference.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::embed::{Batching, EmbedError, Profile, SparseEmbedder, SparseVector};
use crate::index::{Row, RowFile};

use super::client::{Call, Client};
use super::embedder::{EmbeddingApi, Examined};
use super::endpoint::Endpoint;
use super::failure::RemoteError;
use super::sign::Sign;
use super::texts::{Problem, TextServer};
use super::wire::{self, Term};

/// Raised when what is sent of a text, or kept of its vector, changes in another way than the settings say: 1, the first.
const VERSION: u32 = 1;

/// Which server, and how it is asked.
#[derive(Clone, Debug)]
pub struct SparseOptions {
    /// Where it is.
    pub endpoint: Endpoint,
    /// The model's name, for people and for the name of the vectors: such a server has one.
    pub model: String,
    /// Any text that keeps the vectors of one model apart from those of another under the same name.
    pub revision: String,
    /// Texts in a request; by default what the server is known to take.
    pub batch: Option<usize>,
    /// Requests at a time.
    pub in_flight: usize,
    /// For one request.
    pub timeout: Duration,
    /// For the vector of a query, with all retries.
    pub query_timeout: Duration,
}

/// Makes sparse vectors with a server.
pub struct RemoteSparse {
    server: TextServer,
    options: SparseOptions,
    profile: Profile,
    sign: Sign,
}

impl RemoteSparse {
    /// Makes one; nothing is sent.
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

    /// Which server, and how it is asked.
    pub fn options(&self) -> &SparseOptions {
        &self.options
    }

    /// Says by what row of `index::PROBE_TEXT` the model is known: queries are answered if it still gives that.
    pub fn know_by(&self, known: impl FnOnce() -> Option<RowFile>) {
        self.sign.set(known);
    }

    /// Asks for one vector, within `timeout` or until the flag is set, and for what the server takes. The model has to be the one
    /// that is known, if one is.
    pub fn examine(&self, timeout: Duration, interrupt: &AtomicBool) -> Result<Examined, EmbedError> {
        let check = |shown| self.sign.check(Row::Sparse(shown));
        let sign = (self.sign.text(""), &check as _);
        let (vector, elapsed, limits) = self.server.examine(sign, (timeout, interrupt), &ask)?;
        Ok(Examined {
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

/// The vectors of some texts by one request.
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

/// What the server says if it was started with a model for dense vectors.
fn or_other_kind(error: RemoteError) -> Problem {
    match error.status() {
        Some(424) => Problem::Unusable(format!(
            "no sparse vectors ({}): start the server with --pooling splade and a model that was trained for it",
            error.failure
        )),
        _ => Problem::Remote(error),
    }
}

/// Follows from settings alone, so that it is known while the server is away.
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
