//! Git hooks that keep the index up to date without delaying git.
//!
//! The index does not depend on hooks: every query compares tree ids and builds what is missing. [`request`] writes a
//! request and starts a worker. [`work`] waits until git is done and indexes the checked-out commit. [`install()`] and
//! [`uninstall`] edit hooks next to those of other programs, [`status`] reports if git would call them, and [`trial`]
//! makes git call them as a test. This module prints nothing and takes none of git's locks.

mod event;
mod folder;
mod install;
mod log;
mod managers;
mod queue;
mod request;
mod run;
mod script;
mod status;
mod trial;

pub use event::HookEvent;
pub use folder::{HooksFolder, Standing};
pub use install::{Action, InstallError, Plan, Step, Wishes, install, uninstall};
pub use log::{Entry, HookLog, RunOutcome};
pub use managers::{Manager, Seen};
pub use request::{RequestError, request};
pub use run::work;
pub use status::{HookState, HookStatus, Status, status};
pub use trial::{Foreign, Trial, trial};
