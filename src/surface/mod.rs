//! The doors: what people and programs see. `cli` is the command line; `open` opens what a command needs and no more;
//! `doctor` looks for what is wrong; `install` edits the configuration of agents.

pub mod cli;
mod doctor;
mod install;
mod open;

pub use open::{Opened, Workspace};
