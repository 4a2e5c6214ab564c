//! The doors: what people and programs see. `cli` is the command line, `mcp` the tools of agents; neither imports the other.
//! `open` opens what a question needs and no more, `answer` says what both doors answer with.

mod answer;
pub mod cli;
mod doors;
pub mod mcp;
mod open;

pub use doors::{Bodies, Doors, HttpOptions, ServeOptions};
pub use open::{Opened, Workspace};
