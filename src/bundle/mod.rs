//! One file that carries what is known of a tree's blobs to another clone: for a cache between jobs, a team-mate, a server.
//!
//! What it says is not believed: names, sizes and hashes are checked while it is read, and what it holds is compared with the
//! blobs themselves before any of it counts ([`crate::ingest::Ingest::import`]); or it is signed by somebody who is trusted.
//! Knows no network. Start at [`Contents::write`] and [`Opened::read`].

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
