//! Opens Model2Vec directories with the reference loader, if the cargo feature `model2vec` is enabled.

#[cfg(not(feature = "model2vec"))]
mod disabled;
#[cfg(feature = "model2vec")]
mod enabled;

#[cfg(not(feature = "model2vec"))]
pub use disabled::open;
#[cfg(feature = "model2vec")]
pub use enabled::open;
