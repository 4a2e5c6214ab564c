//! Fail points: places in the code where a test can kill or stop the writer or make it fail.
//!
//! A call such as `failpoint::hit("sweep.before_remove")?` marks a fail point. [`arm`] selects the one to trigger; the
//! program passes it the value of an environment variable. Only builds with debug assertions have fail points. In other
//! builds, both functions do nothing.
//!
//! [`names`] returns the names of all fail points, so that tests can kill and fail a writer at each of them. Atomic
//! writes have a fail point for each step and each kind of file ([`KINDS`] × [`STEPS`]).

#[cfg(not(debug_assertions))]
mod disabled;
#[cfg(debug_assertions)]
mod enabled;

use std::path::Path;

#[cfg(not(debug_assertions))]
pub use disabled::{arm, hit};
#[cfg(debug_assertions)]
pub use enabled::{arm, hit};

/// Kinds of atomically written files: the file extension, or the file name if it has no extension.
pub const KINDS: &[&str] = &[
    ".gitignore",
    "FORMAT",
    "art",
    "exclude",
    "gc",
    "graph",
    "hist",
    "journal",
    "lex",
    "lin",
    "log",
    "msg",
    "part",
    "pins",
    "precise",
    "probe",
    "snap",
    "state",
    "sym",
    "tips",
    "toml",
    "vec",
    "versions",
];

/// Steps of an atomic write, in order. At `half`, half of the bytes are written.
pub const STEPS: &[&str] = &["begin", "created", "half", "written", "synced", "renamed", "done"];

/// Fail points outside of atomic writes.
pub const PLACES: &[&str] = &[
    "compact.merged",
    "compact.published",
    "compact.retired",
    "compact.stored",
    "create.folder",
    "create.stores",
    "damaged.before_remove",
    "damaged.moved",
    "damaged.removed",
    "edit.done",
    "edit.half",
    "edit.locked",
    "edit.recorded",
    "edit.replaced",
    "edit.written",
    "gc.before_remove_folder",
    "gc.before_remove_manifest",
    "gc.checked",
    "gc.manifests",
    "gc.marked",
    "gc.published",
    "gc.removed_manifest",
    "gc.retired",
    "gc.segments",
    "graph.published",
    "graph.stored",
    "hooks.log_half",
    "hooks.log_written",
    "hooks.request_found",
    "hooks.request_half",
    "hooks.request_left",
    "hooks.request_taken",
    "hooks.request_written",
    "import.published",
    "import.stored",
    "lock.cleaned",
    "lock.opened",
    "lock.taken",
    "precise.stored",
    "repair.found",
    "repair.mended",
    "repair.rebuilt",
    "repair.set_aside",
    "segment.stored",
    "staging.begun",
    "staging.written",
    "sweep.before_remove",
    "sweep.removed",
    "symbols.stored",
    "temporary.before_remove",
    "temporary.removed",
    "update.indexed",
    "update.manifest",
];

/// An error from parsing the argument of [`arm`].
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not a fail point: name[:n]=kill|stop|eio|enospc|emfile")]
pub struct NotAFailPoint(pub String);

/// Returns the names of all fail points, each once.
pub fn names() -> Vec<String> {
    let of_files = KINDS
        .iter()
        .flat_map(|kind| STEPS.iter().map(|step| name_of(kind, step)));
    PLACES.iter().map(|place| (*place).to_owned()).chain(of_files).collect()
}

/// Returns the name of the fail point for `step` of writing the file at `path`.
pub(super) fn name_of_step(path: &Path, step: &str) -> String {
    let name = path.file_name().unwrap_or_default();
    let kind = path.extension().unwrap_or(name).to_string_lossy();
    name_of(&kind, step)
}

fn name_of(kind: &str, step: &str) -> String {
    format!("write.{kind}.{step}")
}
