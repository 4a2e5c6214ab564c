//! The doors: what people and programs see. `cli` is the command line, `mcp` the tools of agents, `hooks` what git calls.
//! `open` opens what a question needs and no more, of a sidecar that stands where `place` says and that `exclude` keeps out
//! of git; `answer` says what the doors answer with, `doctor` looks for what is wrong. `share` carries what is known to other
//! clones, `install` edits the configuration of agents.

mod answer;
pub mod cli;
mod collect;
mod doctor;
mod doors;
mod exchange;
mod exclude;
mod history;
pub mod hooks;
mod install;
pub mod mcp;
mod open;
mod place;
mod qdrant;
mod share;
mod unprintable;

pub use doors::{Bodies, Doors, HttpOptions, ServeOptions};
pub use history::{OpenedHistory, Uncommitted};
pub use open::{Edits, Opened, Workspace};
