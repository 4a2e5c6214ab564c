//! Remote reranker, on another machine or in another process.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::query::{RerankError, Reranker};

use super::breaker::Breaker;
use super::client::{Call, Client, Limits};
use super::endpoint::Endpoint;
use super::failure::{Failure, RemoteError};
use super::redact::redact;
use super::rerank_wire as wire;

/// Maximum number of requests for one reranking, including those for halves of rejected batches.
const MAX_REQUESTS: usize = 12;
/// Maximum size of a response. Some servers include the texts.
const MAX_ANSWER_BYTES: u64 = 4 << 20;

/// API of a reranking server. All use `POST …/rerank`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RerankApi {
    /// Hugging Face's text-embeddings-inference (TEI).
    Tei,
    /// Infinity.
    Infinity,
    /// Version 2 of Cohere's API; also vLLM, LiteLLM.
    Cohere,
    /// Jina.
    Jina,
    /// Voyage.
    Voyage,
    /// The llama.cpp server.
    LlamaCpp,
}

/// Server, model and request options of a [`RemoteReranker`].
#[derive(Clone, Debug)]
pub struct RerankerOptions {
    /// Address and key of the server.
    pub endpoint: Endpoint,
    /// API of the server.
    pub api: RerankApi,
    /// Name of the model on the server; may be empty if the server has only one.
    pub model: String,
    /// Maximum number of texts per request. Default: the limit of servers with this API.
    pub batch: Option<usize>,
    /// Time limit of one reranking, including all requests and pauses.
    pub timeout: Duration,
}

/// Reranks texts on a server.
///
/// A request that the server rejects as too large or invalid is split in halves until the rejected text is found, which
/// gets no score. Secrets are removed from every text and from the query.
pub struct RemoteReranker {
    client: Client,
    options: RerankerOptions,
    name: String,
    /// Counts whole rerankings. The client's breaker counts single requests, which may all succeed and still take too
    /// long together.
    breaker: Breaker,
}

impl RemoteReranker {
    /// Creates a reranker without sending a request.
    pub fn new(options: RerankerOptions) -> Self {
        let limits = Limits {
            request_timeout: options.timeout,
            connect_timeout: Limits::default().connect_timeout.min(options.timeout),
            max_answer_bytes: MAX_ANSWER_BYTES,
            ..Limits::default()
        };
        Self {
            client: Client::new(options.endpoint.clone(), limits),
            name: format!("{} at {}", model_of(&options), options.endpoint.host()),
            options,
            breaker: Breaker::default(),
        }
    }

    /// Returns the options.
    pub fn options(&self) -> &RerankerOptions {
        &self.options
    }

    /// Returns the name of the model for display.
    pub fn model(&self) -> &str {
        model_of(&self.options)
    }

    /// Reranks two short texts to probe the server. Returns the elapsed time. Stops when `interrupt` is set.
    pub fn examine(&self, interrupt: &AtomicBool) -> Result<Duration, RerankError> {
        let started = Instant::now();
        let texts = ["reads the settings file", "fn main() {}"];
        self.rerank("where are settings read", &texts, interrupt)?;
        Ok(started.elapsed())
    }

    /// Returns a query or text with secrets removed, as it is sent.
    fn sent(&self, text: &str) -> String {
        redact(text).0.into_owned()
    }

    /// Scores all texts, batch by batch.
    fn judge_all(&self, query: &str, texts: &[&str], call: Call<'_>) -> Result<Vec<Option<f32>>, RemoteError> {
        let mut course = Course {
            call,
            n_requests: 0,
            refusal: None,
        };
        let query = self.sent(query);
        let sent: Vec<String> = texts.iter().map(|text| self.sent(text)).collect();
        // Empty texts are not sent, because servers reject them.
        let full: Vec<usize> = (0..texts.len()).filter(|&at| !texts[at].trim().is_empty()).collect();
        let mut scores = vec![None; texts.len()];
        let batch = self.options.batch.unwrap_or(wire::max_texts(self.options.api)).max(1);
        for part in full.chunks(batch) {
            let texts: Vec<&str> = part.iter().map(|&at| sent[at].as_str()).collect();
            let judged = self.judge(&query, &texts, &mut course)?;
            for (&at, score) in part.iter().zip(judged) {
                scores[at] = score;
            }
        }
        match course.refusal {
            Some(error) if scores.iter().all(Option::is_none) => Err(error),
            _ => Ok(scores),
        }
    }

    /// Scores `texts`. Splits requests that the server rejects.
    fn judge(&self, query: &str, texts: &[&str], course: &mut Course<'_>) -> Result<Vec<Option<f32>>, RemoteError> {
        course.n_requests += 1;
        match self.ask(query, texts, &course.call) {
            Ok(scores) => Ok(scores.into_iter().map(Some).collect()),
            Err(error) if !error.rejects_texts() || course.n_requests >= MAX_REQUESTS => Err(error),
            Err(error) if texts.len() < 2 => {
                tracing::warn!(n_bytes = query.len() + texts.concat().len(), %error, "the server rejected a text");
                course.refusal = Some(error);
                Ok(vec![None; texts.len()])
            }
            Err(_) => {
                let (front, back) = texts.split_at(texts.len() / 2);
                let mut scores = self.judge(query, front, course)?;
                scores.extend(self.judge(query, back, course)?);
                Ok(scores)
            }
        }
    }

    /// Scores `texts` in one request.
    fn ask(&self, query: &str, texts: &[&str], call: &Call<'_>) -> Result<Vec<f32>, RemoteError> {
        let request = wire::request(&self.options, query, texts);
        self.client
            .send_and_read(&request, call, |answer| wire::scores(answer, texts.len()))
    }

    fn error(&self, error: RemoteError) -> RerankError {
        match error.failure {
            Failure::Interrupted => RerankError::Interrupted,
            _ => RerankError::Unavailable {
                reranker: self.name.clone(),
                source: error.with_hint(),
            },
        }
    }
}

impl Reranker for RemoteReranker {
    fn name(&self) -> &str {
        &self.name
    }

    fn rerank(&self, query: &str, texts: &[&str], interrupt: &AtomicBool) -> Result<Vec<Option<f32>>, RerankError> {
        let started = Instant::now();
        let call = Call {
            deadline: Some(started + self.options.timeout),
            interrupt,
            retries: false,
        };
        let admitted = self.breaker.admit(started).map_err(|again_in| RemoteError {
            host: self.options.endpoint.host(),
            failure: Failure::BreakerOpen { again_in },
            n_requests: 0,
        });
        let judged = admitted.and_then(|()| self.judge_all(query, texts, call));
        match &judged {
            Err(error)
                if matches!(
                    error.failure,
                    Failure::BreakerOpen { .. } | Failure::Paused { .. } | Failure::Interrupted
                ) => {}
            Err(error) if error.is_temporary() => self.breaker.failed(Instant::now()),
            _ => self.breaker.succeeded(),
        }
        judged.map_err(|error| self.error(error))
    }
}

fn model_of(options: &RerankerOptions) -> &str {
    match options.model.as_str() {
        "" => "the reranker",
        model => model,
    }
}

/// State of one reranking.
struct Course<'a> {
    call: Call<'a>,
    n_requests: usize,
    /// The error for a text that the server rejected.
    refusal: Option<RemoteError>,
}

#[cfg(test)]
mod tests;
