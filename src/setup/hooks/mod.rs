//! What git calls: hooks that keep the index fresh without anybody waiting for them.
//!
//! A hook is a hint and no more, since every question compares tree ids and builds what it misses. [`request`] notes the hint
//! and starts a worker; [`work`] waits until git is done and indexes what is checked out. [`install()`] and [`uninstall`] write
//! the hooks side by side with those of others, [`status`] says whether git would call them, [`trial`] has git do it.
//! Nothing here prints, and nothing takes a lock of git's.

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
