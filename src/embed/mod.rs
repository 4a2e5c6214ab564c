//! Which vector stands for a text.
//!
//! [`Embedder`] is the contract; [`StaticModel`] is the model inside the binary, [`open_model2vec`] any Model2Vec folder
//! (with the cargo feature `model2vec`), and adapters for remote servers implement the same trait elsewhere, as they do
//! [`SparseEmbedder`]. The room knows texts and vectors only: no path, no commit, no store, no network. Start at
//! [`StaticModel::embedded`].
//!
//! The weights, their card, licence notice, file format and training scripts are in `weights/`.

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
