//! The doors: what people and programs see. `cli` is the command line, `hooks` what git calls; `open` opens what a command
//! needs and no more.

pub mod cli;
pub mod hooks;
mod open;

pub use open::{Opened, Workspace};
