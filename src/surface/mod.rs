//! The doors: what people and programs see. `cli` is the command line; `open` opens what a command needs and no more;
//! `doctor` looks for what is wrong.

pub mod cli;
mod doctor;
mod history;
mod open;

pub use history::{OpenedHistory, Uncommitted};
pub use open::{Opened, Workspace};
