//! What servers of others are asked, and what becomes of their answers.
//!
//! [`Client`] speaks HTTP with one server: it keeps to deadlines, tries again with patience and without storms, and never tells
//! a key. Adapters on top of it implement the traits of lower rooms. Nothing here reads the environment or a settings file: an
//! [`Endpoint`] is handed in by who resolved it from what the user, not the repository, has set. Start at [`Client::send`].

mod breaker;
mod client;
mod embedder;
mod endpoint;
mod failure;
mod qdrant;
mod redact;
mod rerank_wire;
mod reranker;
mod retry;
mod sign;
mod sparse;
mod texts;
mod wire;

pub use client::{Call, Client, Limits, Request};
pub use embedder::{EmbedderOptions, EmbeddingApi, Encoding, Examined, RemoteEmbedder};
pub use endpoint::{Endpoint, EndpointError, KeyHeader, Secret};
pub use failure::{Failure, RemoteError, is_about_key};
pub use qdrant::{CollectionOptions, Compression, Qdrant, QdrantFound, QdrantIndex, QdrantOptions, Resettled};
pub use reranker::{RemoteReranker, RerankApi, RerankerOptions};
pub use sparse::{RemoteSparse, SparseOptions};
pub use texts::ServerLimits;
