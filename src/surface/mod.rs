//! The doors: what people and programs see. `cli` is the command line; `open` opens what a command needs and no more.

pub mod cli;
mod open;

pub use open::{Opened, Workspace};
