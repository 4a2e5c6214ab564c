//! Resolves references to definitions, at any revision: who calls what, and what a change reaches.
//!
//! Linking is a pure function of the facts of the files in a view and of the manifests in the same tree. A [`Linker`]
//! reads the facts of a file when a question first needs them, and keeps them and its answers in [`Links`].
//! `environment` knows where the modules of each language are, `scripts` those of JavaScript; `scopes` finds what a plain
//! name means, `globals` what no import is needed for; `types` follows the type of a receiver; `resolve` combines them,
//! and `outside` decides what is proven to be outside of the repository.

mod aliases;
mod alternatives;
mod c;
mod cargo;
mod compiler;
mod dart;
mod environment;
mod facts;
mod family;
mod fixtures;
mod globals;
mod impact;
mod imports;
mod kotlin;
mod lua;
mod members;
mod memo;
mod outside;
mod overloads;
mod overrides;
mod php;
mod query;
mod resolve;
mod scala;
mod scopes;
mod scripts;
mod together;
mod types;
mod usage;

pub use facts::DefId;
pub use family::{Kin, NameUse};
pub use impact::{Impact, Reach, Reached, Relation};
pub use imports::{ImportSite, Imported};
pub use query::{Mentions, Site};
pub use resolve::{Link, Linker, Links, MAX_CANDIDATES, Tier};
pub use together::Together;
pub use usage::{Usage, Usages};
