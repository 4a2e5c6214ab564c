//! Places at which a test can end, stop or fail the writer.
//!
//! `failpoint::hit("sweep.before_remove")?` marks one. [`arm`] names the one that shall act; the program hands down what its
//! environment says. Only builds with debug assertions have them: elsewhere both functions do nothing.
//!
//! Each name stands in [`names`] too, which tests walk: at every place a writer is killed and made to fail. A file written by
//! `write_atomic` brings its own places by what it is called ([`KINDS`] × [`STEPS`]).

#[cfg(not(debug_assertions))]
mod disabled;
#[cfg(debug_assertions)]
mod enabled;

use std::path::Path;

#[cfg(not(debug_assertions))]
pub use disabled::{arm, hit};
#[cfg(debug_assertions)]
pub use enabled::{arm, hit};

/// Files that are written atomically: the ending of the name; the whole name where it has none.
pub const KINDS: &[&str] = &[
    ".gitignore",
    "FORMAT",
    "art",
    "exclude",
    "gc",
    "hist",
    "lex",
    "lin",
    "log",
    "msg",
    "part",
    "pins",
    "probe",
    "snap",
    "state",
    "sym",
    "tips",
    "toml",
    "vec",
    "versions",
];

/// What happens to each of them, in this order. `half`: with half of its bytes.
pub const STEPS: &[&str] = &["begin", "created", "half", "written", "synced", "renamed", "done"];

/// Places that are not part of writing one file.
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
    "gc.before_remove_folder",
    "gc.before_remove_manifest",
    "gc.checked",
    "gc.manifests",
    "gc.marked",
    "gc.published",
    "gc.removed_manifest",
    "gc.retired",
    "gc.segments",
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

/// Why [`arm`] did not understand its text.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not a fail point: name[:n]=kill|stop|eio|enospc|emfile")]
pub struct NotAFailPoint(pub String);

/// Every place, once.
pub fn names() -> Vec<String> {
    let of_files = KINDS
        .iter()
        .flat_map(|kind| STEPS.iter().map(|step| name_of(kind, step)));
    PLACES.iter().map(|place| (*place).to_owned()).chain(of_files).collect()
}

/// The place of a step of writing the file at `path`.
pub(super) fn name_of_step(path: &Path, step: &str) -> String {
    let name = path.file_name().unwrap_or_default();
    let kind = path.extension().unwrap_or(name).to_string_lossy();
    name_of(&kind, step)
}

fn name_of(kind: &str, step: &str) -> String {
    format!("write.{kind}.{step}")
}
