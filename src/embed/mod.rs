//! Embeddings: turns texts into vectors.
//!
//! [`Embedder`] is the trait. [`StaticModel`] is the model built into the binary, and [`open_model2vec`] opens any
//! Model2Vec directory (with the cargo feature `model2vec`). Adapters for remote servers, which live in another module,
//! implement the same trait or [`SparseEmbedder`]. This module handles only texts and vectors: no paths, commits,
//! stores or network. Start with [`StaticModel::embedded`].
//!
//! `weights/` contains the weights, their model card, licence notice, file format and training scripts.

mod embedder;
mod model2vec;
mod model_file;
mod profile;
mod rows;
mod sparse;
mod static_model;
mod token_dots;
mod tokenizer;
mod vocabulary;

pub use embedder::{Batching, EmbedError, Embedder, Embedding};
pub use model_file::ModelFileError;
pub use model2vec::open as open_model2vec;
pub use profile::{Profile, ProfileId};
pub use sparse::{SparseEmbedder, SparseVector};
pub use static_model::{OpenError, Scratch, Side, StaticModel};
pub use token_dots::{Bag, TokenDots};
