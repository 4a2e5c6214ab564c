//! Integrates codescout with other programs: `install` edits the configuration of coding agents, `hooks` manages git
//! hooks, `advice` reads and answers the hooks of coding agents, `ci_file` creates a CI file, and `doctor` checks for
//! problems.

pub(crate) mod advice;
pub(crate) mod ci_file;
pub(crate) mod doctor;
pub mod hooks;
pub(crate) mod install;
