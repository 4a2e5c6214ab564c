//! Records the changes of each commit, and finds the histories of files and definitions.
//!
//! Commits are numbered so that parents have lower numbers than their children. Their records are stored in immutable
//! files, one per [`Batch`] of commits. [`History`] combines all batches. It finds the commits that are reachable from
//! a commit, and the commits that changed a path. [`follow`] follows one file or definition back from a commit, across
//! renames, as git does.
//!
//! Other files add to a batch: [`Messages`] makes the commit messages searchable, and [`LineChanges`] the added and
//! removed lines. A commit is traced if a [`SymbolBatch`] contains the changes of its definitions. For other commits,
//! these changes are computed on demand. This module does not depend on views. Start with [`History`].

mod batch;
mod collect;
mod delta;
mod files;
mod follow;
mod gone;
mod known;
mod life;
mod lineage;
mod lines;
mod merge;
mod messages;
mod people;
mod plan;
mod record;
mod renames;
mod selection;
mod shape;
mod store;
mod symbol_batch;
mod symbols;
mod trace;
mod versions;
mod watch;
mod wire;
mod writer;

pub use batch::{Batch, NumberedCommit, PathRun};
pub use collect::{CollectError, collect, with_renames};
pub use delta::{FilePair, SymbolDelta, symbol_deltas};
pub use files::{FileChange, FileHistory, file_history};
pub use follow::{ABSENT, Followed, Step, Timeline, UNKNOWN, follow};
pub use gone::{PastFile, TextLifetime, past_files, text_lifetime, versions};
pub use known::{KNOWN_ENDING, SymbolChangeCache};
pub use life::{SymbolChange, SymbolHistory, SymbolTracer, SymbolVersion};
pub use lineage::SymbolRecord;
pub use lines::{
    ChangedLines, LineChanges, LineDiff, LinesError, NumberedLines, changed_lines, compared, submodule_text,
};
pub use merge::{mergeable, merged, merged_symbols};
pub use messages::{Messages, MessagesError, is_trailer};
pub use people::Mailmap;
pub use plan::{HistoryLimit, Plan, plan};
pub use record::{Boundary, Change, CommitData, CommitHead, Entry, Origin, PathChange, Who, message_text};
pub use renames::has_compared_files;
pub use selection::{MAX_EXPORTED_COMMITS, Selected, select};
pub use shape::{Shape, has_own_history};
pub use store::{History, HistoryError, Reachable};
pub use symbol_batch::{SymbolBatch, TracedChange, TracedPaths, symbol_batch_bytes};
pub use symbols::{FileShapes, SymbolEvents, SymbolKey, change_between};
pub use trace::{TraceError, n_traced, trace, unread};
pub use versions::{record_recipe, symbol_recipe};
pub use writer::BatchWriter;

/// Number of commits per batch when many commits are recorded. An interrupt loses at most this many.
pub const BATCH_COMMITS: usize = 4096;

#[cfg(test)]
mod tests;
