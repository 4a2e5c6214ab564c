//! Opens any Model2Vec directory as a model, using the reference loader behind the cargo feature `model2vec`.

#[cfg(not(feature = "model2vec"))]
mod disabled;
#[cfg(feature = "model2vec")]
mod enabled;

#[cfg(not(feature = "model2vec"))]
pub use disabled::open;
#[cfg(feature = "model2vec")]
pub use enabled::open;
