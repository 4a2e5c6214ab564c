//! Shares vectors between clones through the REST API of a Qdrant server.
//!
//! Each embedding profile has one collection for all repositories, with vectors named `dense` or `sparse`. Requests use
//! an alias of the collection, so that another collection can replace it atomically. Dense and sparse vectors are not
//! in one point: that would tie every sparse vector to a dense model, and since a write replaces the whole point, a
//! clone without sparse vectors would silently remove those of other clones.
//!
//! A point is a chunk of one repository. Its id is the XOR of the chunk's key and the repository's tag, so the key can
//! be computed from the id. A point stores nothing about its repository except the tag.
//!
//! One more point for each repository stores its generation (see [`Standing`](crate::index::shared::Standing)). It has
//! no vector, so no search finds it. [`Qdrant`] is the client; [`QdrantIndex`] is the index over the documents of one
//! view.

mod claims;
mod collection;
mod points;
mod search;
mod wire;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::de::DeserializeOwned;

use super::client::{Call, Client, Limits, Request};
use super::endpoint::Endpoint;
use super::failure::{Failure, Hinted, RemoteError};
use crate::embed::ProfileId;
use crate::index::RowKind;
use crate::index::shared::{RepositoryTag, SharedError};
use crate::model::ChunkKey;

pub use collection::{QdrantProbe, SettingsApplied};
pub use search::QdrantIndex;
pub(super) use wire::Envelope;

/// Maximum duration of a query in any clone. Queries in flight when a removal is announced have ended after this time.
const MAX_QUERY_TIME: Duration = Duration::from_secs(10);
/// Maximum size of a response. It is several times the size of a request with vectors, because a server may write
/// numbers with more digits.
const MAX_ANSWER_BYTES: u64 = 16 << 20;
/// Maximum size of a response about one point, and allowance for the fixed part of a larger response.
const BASE_RESPONSE_BYTES: u64 = 64 << 10;
/// Allowance for each point in a response, without its vector.
const POINT_BYTES: u64 = 256;
/// Interval between checks whether a pending change is done.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Interval between checks of the interrupt flag during a pause.
const TICK: Duration = Duration::from_millis(50);

/// Server, collection and request options of a [`Qdrant`].
#[derive(Clone, Debug)]
pub struct QdrantOptions {
    /// Address and key of the server.
    pub endpoint: Endpoint,
    /// Prefix of collection names.
    pub prefix: String,
    /// Parameters of a new collection.
    pub collection: CollectionOptions,
    /// True to compare all vectors of a repository instead of searching the server's HNSW graph.
    pub exact: bool,
    /// Number of replicas that must agree on a response, or `majority`, `quorum` or `all`. By default one replica is
    /// read.
    pub read_consistency: Option<String>,
    /// Time limit of one query, including all its requests; at most 10 s.
    pub query_timeout: Duration,
    /// Time limit of any other request.
    pub timeout: Duration,
    /// Maximum number of concurrent requests.
    pub in_flight: usize,
}

/// Parameters of a collection. `None` means the server's default.
#[derive(Clone, Debug, Default)]
pub struct CollectionOptions {
    /// Number of shards.
    pub shards: Option<u32>,
    /// Number of replicas of each shard.
    pub replication: Option<u32>,
    /// Number of replicas that must acknowledge a write.
    pub write_consistency: Option<u32>,
    /// Quantization of the vectors.
    pub compression: Compression,
    /// True to keep the original vectors on disk instead of in memory.
    pub on_disk: bool,
}

/// Quantized copy of the vectors that the server keeps in memory in addition to the original vectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// No quantization.
    #[default]
    None,
    /// Vectors with one byte per component.
    Scalar,
    /// Vectors with one bit per component.
    Binary,
    /// Vectors with one byte for several components (product quantization).
    Product,
}

/// Client for the vectors of one profile and one repository on a Qdrant server.
pub struct Qdrant {
    client: Client,
    options: QdrantOptions,
    profile: ProfileId,
    kind: RowKind,
    repository: RepositoryTag,
    counted: Mutex<Option<Counted>>,
}

/// A recent count of the repository's vectors.
#[derive(Clone, Copy)]
struct Counted {
    generation: [u8; 16],
    n_vectors: u64,
    at: Instant,
}

impl Qdrant {
    /// Creates a client without sending a request.
    pub fn new(options: QdrantOptions, profile: ProfileId, kind: RowKind, repository: RepositoryTag) -> Self {
        let limits = Limits {
            request_timeout: options.timeout,
            connect_timeout: Limits::default().connect_timeout.min(options.timeout),
            max_answer_bytes: MAX_ANSWER_BYTES,
            patience: options.timeout,
        };
        Self {
            client: Client::new(options.endpoint.clone(), limits),
            options,
            profile,
            kind,
            repository,
            counted: Mutex::new(None),
        }
    }

    /// Returns a client for the vectors of another profile of the same repository. Both clients share connections.
    pub fn beside(&self, profile: ProfileId, kind: RowKind) -> Self {
        Self {
            client: self.client.clone(),
            options: self.options.clone(),
            profile,
            kind,
            repository: self.repository,
            counted: Mutex::new(None),
        }
    }

    /// Returns the profile of the vectors.
    pub fn profile(&self) -> ProfileId {
        self.profile
    }

    /// Returns the kind of the vectors.
    pub fn kind(&self) -> RowKind {
        self.kind
    }

    /// Returns the options.
    pub fn options(&self) -> &QdrantOptions {
        &self.options
    }

    /// Returns the alias of the collection.
    pub fn alias(&self) -> String {
        format!("{}-{}", self.options.prefix, self.profile)
    }

    /// Returns the request path for `rest` below the collection.
    fn path(&self, rest: &str) -> String {
        format!("/collections/{}{rest}", self.alias())
    }

    /// Returns the request path for reading `rest`, with the read consistency as a parameter.
    fn reading(&self, rest: &str) -> String {
        self.consistent(self.path(rest))
    }

    fn consistent(&self, path: String) -> String {
        match &self.options.read_consistency {
            Some(consistency) => format!("{path}?consistency={consistency}"),
            None => path,
        }
    }

    /// Polls until an acknowledged change is done. Returns false after the timeout of one request, or at the deadline
    /// if that is earlier.
    fn poll_until(
        &self,
        deadline: Option<Instant>,
        interrupt: &AtomicBool,
        mut is_true: impl FnMut() -> Result<bool, SharedError>,
    ) -> Result<bool, SharedError> {
        let until = Instant::now() + self.options.timeout;
        let until = deadline.map_or(until, |deadline| deadline.min(until));
        while !is_true()? {
            if Instant::now() >= until {
                return Ok(false);
            }
            pause(LOOK_EVERY, interrupt)?;
        }
        Ok(true)
    }

    /// Sends a request. Each attempt has its own timeout, and there is no deadline for the whole call.
    fn send<A: DeserializeOwned>(&self, request: &Request, interrupt: &AtomicBool) -> Result<A, RemoteError> {
        self.send_until(None, request, interrupt)
    }

    fn send_until<A: DeserializeOwned>(
        &self,
        deadline: Option<Instant>,
        request: &Request,
        interrupt: &AtomicBool,
    ) -> Result<A, RemoteError> {
        self.send_by(&patient(deadline, interrupt), request)
    }

    fn send_by<A: DeserializeOwned>(&self, call: &Call<'_>, request: &Request) -> Result<A, RemoteError> {
        let answer: Envelope<A> = self.client.send(request, call)?;
        Ok(answer.result)
    }

    fn place(&self) -> String {
        format!("Qdrant at {}", self.options.endpoint.host())
    }

    fn failed(&self, error: RemoteError) -> SharedError {
        match error.failure {
            Failure::Interrupted => SharedError::Interrupted,
            // The error's source names the host.
            _ => SharedError::Unavailable {
                backend: "Qdrant".to_owned(),
                source: hinted(error),
            },
        }
    }

    fn unusable(&self, detail: impl Into<String>) -> SharedError {
        SharedError::Unusable {
            backend: self.place(),
            detail: detail.into(),
        }
    }

    /// Returns the beginning of a text from the server with the key removed.
    fn excerpt(&self, said: &str) -> String {
        self.client.excerpt(said.as_bytes())
    }

    fn point_of(&self, key: ChunkKey) -> PointId {
        PointId(std::array::from_fn(|at| key.0[at] ^ self.repository.0[at]))
    }

    fn key_of(&self, point: PointId) -> ChunkKey {
        ChunkKey(self.point_of(ChunkKey(point.0)).0)
    }
}

/// Returns a call with retries, for commands that write, fetch or remove vectors, so that they survive a restart of the
/// server.
fn patient(deadline: Option<Instant>, interrupt: &AtomicBool) -> Call<'_> {
    Call {
        deadline,
        interrupt,
        retries: true,
    }
}

fn pause(time: Duration, interrupt: &AtomicBool) -> Result<(), SharedError> {
    let until = Instant::now() + time;
    while Instant::now() < until {
        if interrupt.load(Ordering::Relaxed) {
            return Err(SharedError::Interrupted);
        }
        std::thread::sleep(TICK);
    }
    Ok(())
}

/// Adds a hint to an error.
fn hinted(error: RemoteError) -> Box<dyn std::error::Error + Send + Sync> {
    let hint = match error.status() {
        Some(404) => Some("run codescout index to create the collection"),
        // The general hint is about `batch`, a setting for embedders. The size of these requests is fixed.
        Some(413) => Some("the server's request size limit is lower than usual: see its max_request_size_mb"),
        _ => error.hint(),
    };
    Hinted::boxed(&error, error.to_string(), hint)
}

/// Id of a point: 16 bytes, written as a UUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PointId(pub(super) [u8; 16]);

impl std::fmt::Display for PointId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

/// Returns the size limit of a response with `n_points` points but no vectors.
fn bytes_of(n_points: usize) -> u64 {
    n_points as u64 * POINT_BYTES + BASE_RESPONSE_BYTES
}

impl PointId {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let digits: String = text.chars().filter(|&c| c != '-').collect();
        Some(Self(from_hex(&digits)?))
    }
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex<const N: usize>(digits: &str) -> Option<[u8; N]> {
    if digits.len() != 2 * N || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::support::{Reply, Stub};

    fn qdrant(server: &str, tag: u8) -> Qdrant {
        let options = QdrantOptions {
            endpoint: Endpoint::new(server).unwrap(),
            prefix: "codescout".to_owned(),
            collection: CollectionOptions::default(),
            exact: true,
            read_consistency: None,
            query_timeout: Duration::from_secs(1),
            timeout: Duration::from_secs(1),
            in_flight: 1,
        };
        Qdrant::new(options, ProfileId([7; 16]), RowKind::Dense, RepositoryTag([tag; 16]))
    }

    #[test]
    fn qdrant_probe_stops_on_interrupt() {
        let stub = Stub::start(|_| Reply::json(&serde_json::json!({"version": "1"})).after(Duration::from_secs(60)));
        let found = qdrant(&stub.url(), 1).examine(Duration::from_secs(120), &AtomicBool::new(true));
        assert!(matches!(found, Err(SharedError::Interrupted)));
        assert!(stub.requests().is_empty());
    }

    #[test]
    fn points_are_keys_and_keys_are_points() {
        let of = |tag| qdrant("http://127.0.0.1:6333", tag);
        let (ours, theirs) = (of(0xf0), of(0x0f));
        let key = ChunkKey(std::array::from_fn(|at| at as u8));
        let point = ours.point_of(key);
        assert_eq!(point.to_string(), "f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff");
        assert_eq!(PointId::parse(&point.to_string()), Some(point));
        assert_eq!(ours.key_of(point), key);
        assert_ne!(theirs.key_of(point), key, "the same chunk is another point elsewhere");
        for odd in [
            "",
            "7",
            "f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfe",
            "zzf1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff",
        ] {
            assert_eq!(PointId::parse(odd), None);
        }
        assert_eq!(ours.alias(), format!("codescout-{}", "07".repeat(16)));
    }
}
