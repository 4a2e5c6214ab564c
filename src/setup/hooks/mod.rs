//! Git hooks that keep the index up to date without delaying git.
//!
//! A hook is only a hint, since every query compares tree ids and builds what is missing. [`request`] writes a request and starts
//! a worker; [`work`] waits until git is done and indexes what is checked out. [`install()`] and [`uninstall`] edit hooks
//! alongside those of others, [`status`] says if git would call them, [`trial`] makes git call them.
//! Nothing here prints, and nothing takes one of git's locks.

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
