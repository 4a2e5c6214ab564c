//! Connects codescout with what surrounds it: `install` edits the configuration of coding agents, `hooks` contains the hooks
//! that git calls, and `doctor` checks for problems.

pub(crate) mod doctor;
pub mod hooks;
pub(crate) mod install;
