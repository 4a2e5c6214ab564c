//! The doors: what people and programs see. `cli` is the command line, `mcp` the tools of agents.
//! `open` opens what a question needs and no more, of a sidecar that stands where `place` says and that `exclude` keeps out
//! of git; `answer` says what the doors answer with. `share` carries what is known to other clones.

pub(crate) mod answer;
pub mod cli;
mod collect;
mod doors;
mod exchange;
mod exclude;
mod history;
pub mod mcp;
pub(crate) mod open;
mod place;
mod qdrant;
mod share;
mod unprintable;

pub use doors::{Bodies, Doors, HttpOptions, ServeOptions};
pub use history::{OpenedHistory, Uncommitted};
pub use open::{Edits, Opened, Workspace};
