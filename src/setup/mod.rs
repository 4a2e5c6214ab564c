//! Integrates codescout with other programs: `install` edits the configuration of coding agents, `hooks` manages git
//! hooks, `notes` reads and answers the hooks of coding agents, and `doctor` checks for problems.

pub(crate) mod doctor;
pub mod hooks;
pub(crate) mod install;
pub(crate) mod notes;
