//! The doors: what people and programs see. `cli` is the command line, `hooks` what git calls; `open` opens what a command
//! needs and no more; `doctor` looks for what is wrong.

pub mod cli;
mod collect;
mod doctor;
pub mod hooks;
mod open;

pub use open::{Opened, Workspace};
