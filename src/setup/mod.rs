//! Integrates codescout with other programs: `install` edits the configuration of coding agents, `hooks` manages git
//! hooks, and `doctor` checks for problems.

pub(crate) mod doctor;
pub mod hooks;
pub(crate) mod install;
