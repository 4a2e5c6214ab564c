//! One open repository with everything that a question needs: sidecar, settings, models, views of revisions, recorded history, sharing.
//! Start at `workspace.rs`.

mod collect;
mod exchange;
mod exclude;
mod hint;
mod history;
mod layers;
mod models;
mod place;
mod qdrant;
mod revision;
mod share;
mod sizes;
mod stored;
mod views;
mod workspace;
mod writing;

pub(crate) use exchange::{Content, Purpose, PushPlan, Remote};
pub(crate) use hint::{Door, Hinted, hint};
pub use history::{OpenedHistory, Uncommitted};
pub(crate) use place::sidecar_root_of;
pub(crate) use share::{ImportOptions, ImportedBundle, Known, Packing, TakenCommits, open_plain, write_whole};
pub(crate) use sizes::{SizesOut, sizes};
pub(crate) use stored::Freshness;
pub(crate) use views::{Base, READ_ONLY_NOTE};
pub use views::{Edits, Opened};
pub(crate) use workspace::Keeping;
pub use workspace::Workspace;
pub(crate) use writing::{PATIENCE, is_read_only};
