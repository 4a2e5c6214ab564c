//! Sends texts to an embedding server in batches.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::embed::{Batching, EmbedError};

use super::client::{Call, Client, Limits};
use super::embedder::EmbeddingApi;
use super::endpoint::Endpoint;
use super::failure::{Failure, RemoteError};
use super::redact::redact;
use super::wire;

/// A server that converts each text to a vector.
///
/// Texts are batched by number and size. A request that the server rejects as too large or invalid is split in halves
/// until the rejected text is found. That text gets no vector, and neither does a text with an unusable vector. A
/// control text ([`CONTROL_TEXT`]) shows whether the text or the server causes an error. Secrets are removed from every
/// text.
pub(super) struct TextServer {
    client: Client,
    api: EmbeddingApi,
    /// Name of the model on the server.
    model: String,
    batch: Option<usize>,
    in_flight: usize,
    limits: OnceLock<ServerLimits>,
    has_answered: AtomicBool,
    pace: Pace,
    counts: Counts,
}

/// Limits the size of requests according to the speed of the last response, so that requests to a slow server are small
/// and do not time out.
struct Pace {
    /// Target duration of one request.
    target: Duration,
    max_bytes: AtomicUsize,
    is_known: AtomicBool,
}

/// Fraction of the time limit that a request should take. The remaining time allows for differences between texts and
/// for other load on the server.
const TIMEOUT_FRACTION: u32 = 4;

impl Pace {
    /// Records that a request of `n_bytes` took `took`. At most `in_flight` requests run at a time.
    fn note(&self, n_bytes: usize, took: Duration, in_flight: usize) {
        // The first request runs alone; later requests share the server.
        let n_others = if self.is_known.swap(true, Ordering::Relaxed) {
            1
        } else {
            in_flight.max(1)
        };
        let in_time = n_bytes as f64 * self.target.as_secs_f64() / took.as_secs_f64().max(1e-6);
        self.max_bytes
            .store((in_time / n_others as f64) as usize, Ordering::Relaxed);
    }
}

/// Limits that a server reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerLimits {
    /// Maximum number of tokens of a text that the model reads. The end of a longer text is ignored.
    pub max_tokens: Option<usize>,
    /// Maximum number of texts per request.
    pub max_texts: Option<usize>,
}

/// Numbers of texts that were changed, truncated or rejected.
#[derive(Debug, Default)]
struct Counts {
    redacted: AtomicUsize,
    truncated: AtomicUsize,
    refused: AtomicUsize,
}

/// An error from a request for vectors.
pub(super) enum Problem {
    Remote(RemoteError),
    Embed(EmbedError),
    Unusable(String),
    OtherModel(String),
    OtherDimensions { found: usize, wanted: usize },
}

impl Problem {
    fn is_slow(&self) -> bool {
        matches!(self, Self::Remote(error) if matches!(error.failure, Failure::Slow { .. }))
    }
}

impl From<RemoteError> for Problem {
    fn from(error: RemoteError) -> Self {
        Self::Remote(error)
    }
}

/// Computes one result for each text in a single request. A result is `None` if it is unusable.
pub(super) type Ask<'a, T> = &'a dyn Fn(&Client, &[&str], &Call<'_>) -> Result<Vec<Option<T>>, Problem>;

/// The probe text to send with a query, if the model was not checked yet, and the function that checks its result.
pub(super) type ProbeCheck<'a, T> = (Option<String>, &'a dyn Fn(T) -> Result<(), String>);

/// The control text, for which every model has a usable vector.
const CONTROL_TEXT: &str = "codescout";

impl TextServer {
    /// Creates a client without sending a request. `timeout` applies to one request. `batch` is the number of texts per
    /// request; default: the known limit of the server.
    pub(super) fn new(
        (endpoint, timeout): (Endpoint, Duration),
        (api, model): (EmbeddingApi, &str),
        batch: Option<usize>,
        in_flight: usize,
    ) -> Self {
        let limits = Limits {
            request_timeout: timeout,
            connect_timeout: Limits::default().connect_timeout.min(timeout),
            patience: timeout,
            ..Limits::default()
        };
        Self {
            client: Client::new(endpoint, limits),
            api,
            model: model.to_owned(),
            batch,
            in_flight,
            limits: OnceLock::new(),
            has_answered: AtomicBool::new(false),
            pace: Pace {
                target: timeout / TIMEOUT_FRACTION,
                max_bytes: AtomicUsize::new(usize::MAX),
                is_known: AtomicBool::new(false),
            },
            counts: Counts::default(),
        }
    }

    /// Returns one result for each of `texts`, which are sent with `prefix`. A result is `None` if the text is empty or
    /// rejected.
    pub(super) fn documents<T>(
        &self,
        (prefix, texts): (&str, &[&str]),
        interrupt: &AtomicBool,
        ask: Ask<'_, T>,
    ) -> Result<Vec<Option<T>>, EmbedError> {
        let call = Call {
            deadline: None,
            interrupt,
            retries: true,
        };
        let sent: Vec<String> = texts.iter().map(|text| self.sent(prefix, text)).collect();
        let mut made: Vec<Option<T>> = texts.iter().map(|_| None).collect();
        // Empty texts are not sent, because servers reject them.
        let full: Vec<usize> = (0..texts.len()).filter(|&at| !texts[at].trim().is_empty()).collect();
        for part in self.parts(&full, &sent) {
            let texts: Vec<&str> = part.iter().map(|&at| sent[at].as_str()).collect();
            let (n_bytes, asked) = (texts.iter().map(|text| text.len()).sum(), Instant::now());
            let answers = self.halved(&texts, &call, ask);
            if !matches!(&answers, Err(problem) if !problem.is_slow()) {
                self.pace.note(n_bytes, asked.elapsed(), self.in_flight);
            }
            let answers = answers.map_err(|problem| self.error(problem))?;
            self.count_truncated(&texts, &call);
            part.iter().zip(answers).for_each(|(&at, answer)| made[at] = answer);
        }
        Ok(made)
    }

    /// Returns the result for one text, sent with `prefix`, within a time limit or until `interrupt` is set. If `sign`
    /// contains a probe text, it is sent in the same request and its result is checked. A failed check is an error.
    pub(super) fn query<T>(
        &self,
        (prefix, text): (&str, &str),
        sign: ProbeCheck<'_, T>,
        (within, interrupt): (Duration, &AtomicBool),
        ask: Ask<'_, T>,
    ) -> Result<T, EmbedError> {
        let call = Call {
            deadline: Some(Instant::now() + within),
            interrupt,
            retries: false,
        };
        self.with_sign(&self.sent(prefix, text), sign, &call, ask)
    }

    fn with_sign<T>(
        &self,
        query: &str,
        (sign, check): ProbeCheck<'_, T>,
        call: &Call<'_>,
        ask: Ask<'_, T>,
    ) -> Result<T, EmbedError> {
        let Some(sign) = sign else {
            return self.one(query, call, ask);
        };
        let both = match self.batch {
            Some(1) => Ok(Vec::new()),
            _ => ask(&self.client, &[query, &sign], call),
        };
        let mut both = match both {
            // The two texts are too large for one request, or one of them is invalid.
            Err(Problem::Remote(error)) if error.rejects_texts() => Vec::new(),
            both => both.map_err(|problem| self.error(problem))?,
        };
        let (shown, made) = (both.pop().flatten(), both.pop().flatten());
        let shown = shown.map_or_else(|| self.one(&sign, call, ask), Ok)?;
        check(shown).map_err(|what| self.error(Problem::OtherModel(what)))?;
        made.map_or_else(|| self.one(query, call, ask), Ok)
    }

    /// Returns the result for [`CONTROL_TEXT`], the elapsed time and the limits of the server, within a time limit or
    /// until `interrupt` is set.
    pub(super) fn examine<T>(
        &self,
        sign: ProbeCheck<'_, T>,
        (within, interrupt): (Duration, &AtomicBool),
        ask: Ask<'_, T>,
    ) -> Result<(T, Duration, ServerLimits), EmbedError> {
        let started = Instant::now();
        let call = Call {
            deadline: Some(started + within),
            interrupt,
            retries: false,
        };
        let made = self.with_sign(CONTROL_TEXT, sign, &call, ask)?;
        Ok((made, started.elapsed(), self.server_limits(&call)))
    }

    /// Returns the batch size and concurrency that callers should use.
    pub(super) fn batching(&self) -> Batching {
        let known = self.limits.get().and_then(|limits| limits.max_texts);
        Batching {
            max_texts: self.batch.or(known).unwrap_or(wire::max_texts(self.api)),
            max_bytes: wire::max_bytes(self.api).min(self.pace.max_bytes.load(Ordering::Relaxed)),
            in_flight: self.in_flight,
        }
    }

    /// Returns notes for the user about texts that were changed or rejected so far.
    pub(super) fn notes(&self) -> Vec<String> {
        let counted = |count: &AtomicUsize, what: &str| {
            let n = count.load(Ordering::Relaxed);
            (n > 0).then(|| format!("{n} {what}"))
        };
        [
            counted(&self.counts.redacted, "secrets were removed before texts were sent"),
            counted(
                &self.counts.truncated,
                "texts are longer than the model's input limit: their ends are ignored",
            ),
            counted(
                &self.counts.refused,
                "texts were refused by the server, or got no usable vector",
            ),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn one<T>(&self, text: &str, call: &Call<'_>, ask: Ask<'_, T>) -> Result<T, EmbedError> {
        self.request_one(text, call, ask).map_err(|problem| self.error(problem))
    }

    fn request_one<T>(&self, text: &str, call: &Call<'_>, ask: Ask<'_, T>) -> Result<T, Problem> {
        let made = ask(&self.client, &[text], call)?.into_iter().next().flatten();
        made.ok_or_else(|| Problem::Unusable("a vector of zeros or of values that are not numbers".to_owned()))
    }

    /// Returns a query or document as it is sent, with the prefix and without secrets.
    fn sent(&self, prefix: &str, text: &str) -> String {
        let (text, n_secrets) = redact(text);
        self.counts.redacted.fetch_add(n_secrets, Ordering::Relaxed);
        format!("{prefix}{text}")
    }

    fn server_limits(&self, call: &Call<'_>) -> ServerLimits {
        *self.limits.get_or_init(|| {
            let asked = wire::limits_request(self.api, &self.model);
            let answer = asked.map(|request| self.client.send(&request, call));
            match answer {
                Some(Ok(answer)) => wire::limits(self.api, &answer),
                // Some versions of a server do not report their limits.
                Some(Err(error)) => {
                    tracing::debug!(%error, "the server does not report its limits");
                    ServerLimits::default()
                }
                None => ServerLimits::default(),
            }
        })
    }

    /// Requests results for prepared texts. Splits requests that the server rejects.
    fn halved<T>(&self, texts: &[&str], call: &Call<'_>, ask: Ask<'_, T>) -> Result<Vec<Option<T>>, Problem> {
        match ask(&self.client, texts, call) {
            Err(Problem::Remote(error)) if error.rejects_texts() => match texts {
                [] => Ok(Vec::new()),
                [text] if self.has_answered.load(Ordering::Relaxed) => {
                    self.request_one(CONTROL_TEXT, call, ask)?;
                    tracing::warn!(n_bytes = text.len(), %error, "the server rejected a text");
                    self.counts.refused.fetch_add(1, Ordering::Relaxed);
                    Ok(vec![None])
                }
                // The server has not accepted any text yet, so it may reject every text.
                [_] => Err(Problem::Remote(error)),
                _ => {
                    let (front, back) = texts.split_at(texts.len() / 2);
                    let mut made = self.halved(front, call, ask)?;
                    made.extend(self.halved(back, call, ask)?);
                    Ok(made)
                }
            },
            made => {
                let made = made?;
                let n_unusable = made.iter().filter(|made| made.is_none()).count();
                if n_unusable == texts.len() && n_unusable > 0 {
                    self.request_one(CONTROL_TEXT, call, ask)?;
                }
                self.counts.refused.fetch_add(n_unusable, Ordering::Relaxed);
                self.has_answered.store(true, Ordering::Relaxed);
                Ok(made)
            }
        }
    }

    fn error(&self, problem: Problem) -> EmbedError {
        let backend = format!("{} at {}", self.model, self.client.endpoint().host());
        match problem {
            Problem::Embed(error) => error,
            Problem::Unusable(detail) => EmbedError::Unusable { backend, detail },
            Problem::OtherModel(detail) => EmbedError::OtherModel { backend, detail },
            Problem::OtherDimensions { found, wanted } => EmbedError::OtherDimensions { backend, found, wanted },
            Problem::Remote(RemoteError {
                failure: Failure::Interrupted,
                ..
            }) => EmbedError::Interrupted,
            Problem::Remote(error) if matches!(error.failure, Failure::Slow { .. }) => EmbedError::TooSlow {
                backend,
                source: error.with_hint(),
            },
            Problem::Remote(error) => EmbedError::Unavailable {
                backend,
                source: error.with_hint(),
            },
        }
    }

    /// Counts the texts that the server truncates. Estimates four bytes per token.
    fn count_truncated(&self, texts: &[&str], call: &Call<'_>) {
        if let Some(max_tokens) = self.server_limits(call).max_tokens {
            let n_long = texts.iter().filter(|text| text.len() / 4 > max_tokens).count();
            self.counts.truncated.fetch_add(n_long, Ordering::Relaxed);
        }
    }

    /// Splits the texts at the indices `places` into requests.
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
