//! An open repository with everything that requests need: sidecar, settings, models, views of revisions, recorded
//! history and shared vectors. Start at `workspace.rs`.

mod collect;
mod ctx;
mod error;
mod exchange;
mod facts;
mod history;
mod indexer;
mod jobs;
mod layers;
mod limited;
mod models;
mod open;
mod place;
mod qdrant;
mod recording;
mod revision;
mod share;
mod sizes;
mod storage;
mod stored;
mod views;
mod workspace;
mod writing;

pub use ctx::Ctx;
pub(crate) use ctx::Limits;
pub(crate) use error::{Context, ErrorOut, bail, ensure};
pub use error::{OpError, Result};
pub(crate) use exchange::{Content, Purpose, PushPlan, Remote};
pub use history::{OpenedHistory, Records, Uncommitted};
pub(crate) use indexer::{IndexerOptions, ReadyIndexer};
pub(crate) use jobs::{Advance, End, Hold, Job, Made, Task};
pub use models::Models;
pub(crate) use open::Visibility;
pub use open::{Build, SeenView, Session, ViewRequest};
pub(crate) use place::sidecar_root_of;
pub use qdrant::VectorSharing;
pub(crate) use share::{ImportOptions, ImportedBundle, Known, Packing, TakenCommits, open_plain, write_whole};
pub(crate) use sizes::{SizesOut, sizes};
pub(crate) use storage::Keeping;
pub use storage::Storage;
pub(crate) use stored::Freshness;
pub use views::Edits;
pub use workspace::Workspace;
pub(crate) use writing::{PATIENCE, is_read_only};
