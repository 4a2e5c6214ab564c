//! Clients for remote servers: embedders, rerankers and Qdrant.
//!
//! [`Client`] sends HTTP requests to one server. It enforces deadlines, retries with backoff and jitter, and never
//! reveals a key. The adapters built on it implement traits of lower modules. This module does not read environment
//! variables or settings files. The caller passes an [`Endpoint`] from the user's settings, never from the
//! repository's. Start at [`Client::send`].

mod breaker;
mod client;
mod embedder;
mod endpoint;
mod failure;
mod fleet;
mod redact;
mod rerank_wire;
mod reranker;
mod retry;
mod sign;
mod sparse;
mod texts;
mod wire;

pub use client::{Call, Client, Limits, Request};
pub use embedder::{EmbedderOptions, EmbeddingApi, Encoding, RemoteEmbedder, ServerProbe};
pub use endpoint::{Endpoint, EndpointError, KeyHeader, Secret};
pub use failure::{Failure, RemoteError, is_about_key};
pub use fleet::{FleetCollection, Payload, Point, PointId, PointQuery, PointVector, QdrantOptions, Words};
pub use reranker::{RemoteReranker, RerankApi, RerankerOptions};
pub use sparse::{RemoteSparse, SparseOptions};
pub use texts::ServerLimits;
