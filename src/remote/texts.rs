//! Texts on their way to a server that makes something of each.

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

/// A server that is given texts.
///
/// They are cut into requests by number and bytes; a request that is refused as too large, or for something in it, is halved until
/// the text is found that the server does not take, which gets nothing, and so does one of which it makes nothing that can be used.
/// Whether that is the text's fault, or the server has ceased to work, is told by a text of ours. Secrets are struck out of every text.
pub(super) struct TextServer {
    client: Client,
    api: EmbeddingApi,
    /// The model's name there.
    model: String,
    batch: Option<usize>,
    in_flight: usize,
    limits: OnceLock<ServerLimits>,
    has_answered: AtomicBool,
    pace: Pace,
    counts: Counts,
}

/// How much the server makes of in a part of the time that a request has, by the last answer; no request holds more, so that a slow
/// server gets small ones and no work is lost because it came too late.
struct Pace {
    /// For one request.
    target: Duration,
    max_bytes: AtomicUsize,
    is_known: AtomicBool,
}

/// A request shall take that part of the time that it has: texts, and what else the server has to do, differ.
const SHARE_OF_TIMEOUT: u32 = 4;

impl Pace {
    /// Takes in that `n_bytes` took so long, of `in_flight` requests at a time.
    fn note(&self, n_bytes: usize, took: Duration, in_flight: usize) {
        // The first is alone with the server; those after it will not be.
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

/// Why nothing was made of texts.
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

/// Asks for something about each of some texts by one request; `None` where what came cannot be used.
pub(super) type Ask<'a, T> = &'a dyn Fn(&Client, &[&str], &Call<'_>) -> Result<Vec<Option<T>>, Problem>;

/// A text to be asked about beside another, if there is one, and what says whether the answer is as it should be.
pub(super) type SignOf<'a, T> = (Option<String>, &'a dyn Fn(T) -> Result<(), String>);

/// Every model makes something of it.
const EASY_TEXT: &str = "codescout";

impl TextServer {
    /// Makes one; nothing is sent. `timeout` is for one request; `batch`, texts in a request, is by default what the server is
    /// known to take.
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
                target: timeout / SHARE_OF_TIMEOUT,
                max_bytes: AtomicUsize::new(usize::MAX),
                is_known: AtomicBool::new(false),
            },
            counts: Counts::default(),
        }
    }

    /// One of what is asked for, for each of `texts` behind a prefix; none for a text that is empty or that the server does not take.
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
        // Servers refuse an empty text, and there is nothing in it.
        let full: Vec<usize> = (0..texts.len()).filter(|&at| !texts[at].trim().is_empty()).collect();
        for part in self.parts(&full, &sent) {
            let texts: Vec<&str> = part.iter().map(|&at| sent[at].as_str()).collect();
            let (n_bytes, asked) = (texts.iter().map(|text| text.len()).sum(), Instant::now());
            let answers = self.halved(&texts, &call, ask);
            if !matches!(&answers, Err(problem) if !problem.is_slow()) {
                self.pace.note(n_bytes, asked.elapsed(), self.in_flight);
            }
            let answers = answers.map_err(|problem| self.told(problem))?;
            self.count_truncated(&texts, &call);
            part.iter().zip(answers).for_each(|(&at, answer)| made[at] = answer);
        }
        Ok(made)
    }

    /// What is asked for of one text behind a prefix, within a time, or until the flag is set. If the server is to show a sign, that is
    /// asked for in the same request and looked at by `check`; what it has against the answer is an error.
    pub(super) fn query<T>(
        &self,
        (prefix, text): (&str, &str),
        sign: SignOf<'_, T>,
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
        (sign, check): SignOf<'_, T>,
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
            // Too much for one request, or one of the two is wrong.
            Err(Problem::Remote(error)) if error.is_about_texts() => Vec::new(),
            both => both.map_err(|problem| self.told(problem))?,
        };
        let (shown, made) = (both.pop().flatten(), both.pop().flatten());
        let shown = shown.map_or_else(|| self.one(&sign, call, ask), Ok)?;
        check(shown).map_err(|what| self.told(Problem::OtherModel(what)))?;
        made.map_or_else(|| self.one(query, call, ask), Ok)
    }

    /// The same of a text of ours, once, within a time or until the flag is set; also the time that it took, and what the server takes.
    pub(super) fn examine<T>(
        &self,
        sign: SignOf<'_, T>,
        (within, interrupt): (Duration, &AtomicBool),
        ask: Ask<'_, T>,
    ) -> Result<(T, Duration, ServerLimits), EmbedError> {
        let started = Instant::now();
        let call = Call {
            deadline: Some(started + within),
            interrupt,
            retries: false,
        };
        let made = self.with_sign(EASY_TEXT, sign, &call, ask)?;
        Ok((made, started.elapsed(), self.server_limits(&call)))
    }

    /// How texts are best handed over.
    pub(super) fn batching(&self) -> Batching {
        let known = self.limits.get().and_then(|limits| limits.max_texts);
        Batching {
            max_texts: self.batch.or(known).unwrap_or(wire::max_texts(self.api)),
            max_bytes: wire::max_bytes(self.api).min(self.pace.max_bytes.load(Ordering::Relaxed)),
            in_flight: self.in_flight,
            timeout: self.pace.target * SHARE_OF_TIMEOUT,
        }
    }

    /// What happened to texts so far.
    pub(super) fn notes(&self) -> Vec<String> {
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
                "texts were refused by the server, or given no vector that can be used",
            ),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn one<T>(&self, text: &str, call: &Call<'_>, ask: Ask<'_, T>) -> Result<T, EmbedError> {
        self.ask_one(text, call, ask).map_err(|problem| self.told(problem))
    }

    fn ask_one<T>(&self, text: &str, call: &Call<'_>, ask: Ask<'_, T>) -> Result<T, Problem> {
        let made = ask(&self.client, &[text], call)?.into_iter().next().flatten();
        made.ok_or_else(|| Problem::Unusable("a vector of zeros, or of what is no number".to_owned()))
    }

    /// What a query or document looks like when it leaves.
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
                // Not every version has it; then nothing is known.
                Some(Err(error)) => {
                    tracing::debug!(%error, "limits are not known");
                    ServerLimits::default()
                }
                None => ServerLimits::default(),
            }
        })
    }

    /// Asks about texts that are ready to be sent, in parts as small as it takes.
    fn halved<T>(&self, texts: &[&str], call: &Call<'_>, ask: Ask<'_, T>) -> Result<Vec<Option<T>>, Problem> {
        match ask(&self.client, texts, call) {
            Err(Problem::Remote(error)) if error.is_about_texts() => match texts {
                [] => Ok(Vec::new()),
                [text] if self.has_answered.load(Ordering::Relaxed) => {
                    self.ask_one(EASY_TEXT, call, ask)?;
                    tracing::warn!(n_bytes = text.len(), %error, "a text is not taken by the server");
                    self.counts.refused.fetch_add(1, Ordering::Relaxed);
                    Ok(vec![None])
                }
                // It has not taken any text yet: it is not this one that is wrong.
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
                    self.ask_one(EASY_TEXT, call, ask)?;
                }
                self.counts.refused.fetch_add(n_unusable, Ordering::Relaxed);
                self.has_answered.store(true, Ordering::Relaxed);
                Ok(made)
            }
        }
    }

    fn told(&self, problem: Problem) -> EmbedError {
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

    /// Counts the texts that the server cuts off, by the rule of thumb of four bytes a token.
    fn count_truncated(&self, texts: &[&str], call: &Call<'_>) {
        if let Some(max_tokens) = self.server_limits(call).max_tokens {
            let n_long = texts.iter().filter(|text| text.len() / 4 > max_tokens).count();
            self.counts.truncated.fetch_add(n_long, Ordering::Relaxed);
        }
    }

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
