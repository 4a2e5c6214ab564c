//! Converts texts to embedding vectors.
//!
//! [`Embedder`] is the trait. [`StaticModel`] is the model in the binary, and [`open_model2vec`] opens any Model2Vec
//! directory (with the cargo feature `model2vec`). Another module implements the traits [`Embedder`] and
//! [`SparseEmbedder`] for remote servers. This module handles only texts and vectors. It does not access paths,
//! commits, stores or the network. Start with [`StaticModel::embedded`].
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
