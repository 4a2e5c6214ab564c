//! Vectors in a Qdrant, asked over REST.
//!
//! One collection for each embedding profile, of vectors named `dense` or of such named `sparse`, for all repositories: its name is an
//! alias, so that another collection can take its place in one step. (Both kinds in one point would tie every sparse vector to a dense
//! model; and as who puts a point puts all of it, who has no sparse vectors would remove those of others in silence.) A point is a chunk of one repository; its id is the chunk's key and the repository's tag, laid over one another
//! bit by bit, so that either way from one to the other is a sum. Of the repository a point tells the tag and nothing else.
//!
//! A point of its own tells each repository's generation (see [`Standing`](crate::index::shared::Standing)); it has no vector, so no
//! search finds it. [`Qdrant`] is the way there, [`QdrantIndex`] the index over the documents of one view.

mod claims;
mod collection;
mod points;
mod search;
mod wire;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use super::client::{Call, Client, Limits, Request};
use super::endpoint::Endpoint;
use super::failure::{Failure, OpError, RemoteError};
use crate::embed::ProfileId;
use crate::index::RowKind;
use crate::index::shared::{RepositoryTag, SharedError};
use crate::model::ChunkKey;

pub use collection::{QdrantFound, Resettled};
pub use search::QdrantIndex;
use wire::Envelope;

/// No question takes longer, whoever asks: what was on its way when a removal was announced is answered by then.
const LONGEST_QUESTION: Duration = Duration::from_secs(10);
/// No answer is larger: some of what a request with vectors holds, written at length.
const MAX_ANSWER_BYTES: u64 = 16 << 20;
/// Of an answer about one point, or of the end of a larger one,
const FEW_BYTES: u64 = 64 << 10;
/// and for each point without its vector.
const POINT_BYTES: u64 = 256;
/// Whether something is done yet is looked at so often.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// An interrupt is noticed so soon.
const TICK: Duration = Duration::from_millis(50);

/// Where the vectors are, and how they are kept there.
#[derive(Clone, Debug)]
pub struct QdrantOptions {
    /// The server.
    pub endpoint: Endpoint,
    /// What the names of collections begin with.
    pub prefix: String,
    /// How a new collection is made.
    pub collection: CollectionOptions,
    /// Whether all vectors of a repository are compared, in place of following the server's graph.
    pub exact: bool,
    /// How many replicas have to agree on an answer: a number, `majority`, `quorum` or `all`; by default one is asked.
    pub read_consistency: Option<String>,
    /// For one question, with all requests; ten seconds at most.
    pub query_timeout: Duration,
    /// For one request that is no question.
    pub timeout: Duration,
    /// Requests at a time.
    pub in_flight: usize,
}

/// How a collection is made; `None` leaves it to the server.
#[derive(Clone, Debug, Default)]
pub struct CollectionOptions {
    /// Parts that the points are spread over.
    pub shards: Option<u32>,
    /// Copies of each part.
    pub replication: Option<u32>,
    /// Copies that have to have a write before it counts.
    pub write_consistency: Option<u32>,
    /// What the vectors are kept as beside themselves.
    pub compression: Compression,
    /// Whether the vectors themselves stay on disk.
    pub on_disk: bool,
}

/// What vectors are kept as, in memory, beside themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Nothing else.
    #[default]
    None,
    /// A byte a component.
    Scalar,
    /// A bit a component.
    Binary,
    /// A byte for some components.
    Product,
}

/// The vectors of one profile and one repository in a Qdrant.
pub struct Qdrant {
    client: Client,
    options: QdrantOptions,
    profile: ProfileId,
    kind: RowKind,
    repository: RepositoryTag,
    counted: Mutex<Option<Counted>>,
}

/// How many vectors of the repository there were.
#[derive(Clone, Copy)]
struct Counted {
    generation: [u8; 16],
    n_vectors: u64,
    at: Instant,
}

impl Qdrant {
    /// Makes one; nothing is sent.
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

    /// What another model has made of the same repository, over the same connections.
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

    /// Whose vectors these are.
    pub fn profile(&self) -> ProfileId {
        self.profile
    }

    /// Of which kind the vectors are.
    pub fn kind(&self) -> RowKind {
        self.kind
    }

    /// Where the vectors are, and how.
    pub fn options(&self) -> &QdrantOptions {
        &self.options
    }

    /// The name that the collection is asked by.
    pub fn alias(&self) -> String {
        format!("{}-{}", self.options.prefix, self.profile)
    }

    /// The path of something about the collection.
    fn path(&self, rest: &str) -> String {
        format!("/collections/{}{rest}", self.alias())
    }

    /// The same for something that is read.
    fn reading(&self, rest: &str) -> String {
        self.consistent(self.path(rest))
    }

    fn consistent(&self, path: String) -> String {
        match &self.options.read_consistency {
            Some(consistency) => format!("{path}?consistency={consistency}"),
            None => path,
        }
    }

    /// Looks whether something that was promised is done, for as long as one request may take, and not behind a deadline.
    fn comes_true(
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

    /// Sends something that has no deadline but that of each request.
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

    fn told(&self) -> String {
        format!("Qdrant at {}", self.options.endpoint.host())
    }

    fn failed(&self, error: RemoteError) -> SharedError {
        match error.failure {
            Failure::Interrupted => SharedError::Interrupted,
            // The error names the host.
            _ => SharedError::Unavailable {
                backend: "Qdrant".to_owned(),
                source: hinted(error),
            },
        }
    }

    fn unusable(&self, detail: impl Into<String>) -> SharedError {
        SharedError::Unusable {
            backend: self.told(),
            detail: detail.into(),
        }
    }

    /// The beginning of what the server said, without the key.
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

/// A call of a command that puts, takes or removes: it waits for a server that is restarted.
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

/// An error with what to do about it.
fn hinted(error: RemoteError) -> Box<dyn std::error::Error + Send + Sync> {
    let hint = match error.status() {
        Some(404) => Some("codescout index makes the collection"),
        // What is in flight is a setting of the embedder too; here it is ours.
        Some(413) => Some("the server takes less at once than is usual: see its max_request_size_mb"),
        _ => error.hint(),
    };
    OpError::boxed(&error, error.to_string(), hint)
}

/// Names a point: any 16 bytes, written as a UUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct PointId([u8; 16]);

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

/// What an answer with points without their vectors may have.
fn bytes_of(n_points: usize) -> u64 {
    n_points as u64 * POINT_BYTES + FEW_BYTES
}

impl PointId {
    fn parse(text: &str) -> Option<Self> {
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
    fn who_looks_at_it_stops_when_told_to() {
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
