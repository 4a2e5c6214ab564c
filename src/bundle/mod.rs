//! Bundles: files that transfer the index of some trees to another clone, through a CI cache, another developer or a
//! server.
//!
//! The contents of a bundle are untrusted. Names, sizes and hashes are checked while it is read. Records are compared
//! with the blobs themselves before they are used ([`crate::ingest::Ingest::import`]), unless a trusted key signed the
//! bundle. This module does no network I/O. Start reading at [`Contents::write`] and [`BundleFile::open`].

mod format;
mod keys;
mod pack;
mod pipeline;
mod signature;
mod unpack;

pub use format::{AddedPart, CommitsPart, FORMAT, Formats, Header, HeaderError, Kind, PartSizes};
pub use keys::{decode_keys, encode_keys};
pub use pack::{Contents, PackError, Packed};
pub use pipeline::pipeline;
pub use signature::{KeyError, PublicKey, SigningKey};
pub use unpack::{BundleFile, MAX_TOTAL_BYTES, ReadError, Trust};
