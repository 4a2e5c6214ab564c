//! Helpers for all tests. They do not use the crate under test, so that unit tests can use them too.

#![allow(dead_code, reason = "each test binary uses its own part of it")]
#![allow(clippy::unwrap_used, reason = "tests")]

pub(crate) mod cpu_time;
mod long;
pub(crate) mod model;
pub(crate) mod qdrant;
mod repo;
pub(crate) mod scip;
mod stub;
mod wait;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

#[allow(unused_imports, reason = "each test binary uses its own part of it")]
pub(crate) use long::{assert_within, is_long, properties};
pub(crate) use repo::TestRepo;
#[allow(unused_imports, reason = "each test binary uses its own part of it")]
pub(crate) use stub::{Reply, Seen, Stub};
#[allow(unused_imports, reason = "each test binary uses its own part of it")]
pub(crate) use wait::{Ending, InTime, Printed, in_time, kill, output_of, wait_for_end, wait_until};

/// Returns the variable that names for a child process where this process records trusted settings files (see
/// `.cargo/config.toml`).
pub(crate) fn user_state() -> Option<(&'static str, std::ffi::OsString)> {
    const NAME: &str = "XDG_STATE_HOME";
    Some((NAME, std::env::var_os(NAME)?))
}

/// Writes an executable file, using another process. A file that is open for writing cannot be executed, and a file
/// that this process has open may be inherited by a program that another test is starting.
#[track_caller]
pub(crate) fn write_executable(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", "cat > \"$0\" && chmod 755 \"$0\""]).arg(path);
    let writer = shell.stdin(Stdio::piped()).spawn().unwrap();
    assert!(output_of(writer, content).status.success());
}
