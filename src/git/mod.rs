//! What git holds: repositories, refs, commits, trees, blobs, and the files of a work tree.
//!
//! Objects are read in-process; where that cannot be (refs kept in reftable), the git executable is called through one
//! hardened wrapper. Nothing that a repository's configuration names is ever run, nothing is fetched unasked ([`Exchange`] is what asks), no file
//! outside the work tree's root is followed to, and no environment variable can put another repository in the place of the one
//! that was asked for. The room knows nothing of indexing. Start at [`Repository::discover`].

mod attributes;
mod beneath;
mod blame;
mod blob;
mod bounded;
mod command;
mod commit;
mod diff;
mod disk_file;
mod exchange;
mod hooks_path;
mod includes;
mod index;
mod irregular;
mod known_files;
mod line_diff;
mod linked;
mod mailmap;
mod object_id;
mod open;
mod operation;
mod reach;
mod reader;
mod refs;
mod revision;
mod roots;
mod scan;
mod small_file;
mod stillness;
mod surroundings;
mod tracked;
mod tree;
mod untracked;
mod watch;
mod worktree;

pub use attributes::{AttributeMatcher, Attributes, MAX_RULES_BYTES, PathAttributes, RULES_FILES, is_rules_file};
pub use blame::{Blame, BlameLine, BlameOptions, BlamedCommit};
pub use blob::{BlobContent, hash_blob};
pub use bounded::{BoundError, Bounds};
pub use command::{CommandError, GitVersion, git_version};
pub use commit::{CommitInfo, Person};
pub use diff::{TreeChange, TreeEntry};
pub use disk_file::{DiskFile, Unread, WorkTreeReader};
pub use exchange::{Direction, Exchange, ExchangeError, Shelf};
pub use hooks_path::{HooksPath, HooksPathOrigin};
pub use known_files::KnownFiles;
pub use line_diff::{LineHunk, diff_lines};
pub use mailmap::ConfiguredMailmaps;
pub use open::{ObjectFormat, OpenError, Repository, RepositoryKind};
pub use operation::is_in_operation;
pub use reader::{MAX_OBJECT_BYTES, ObjectError, ObjectReader};
pub use refs::{Head, LogTip, Ref, RefError, RefKind};
pub use revision::{Candidate, Resolved, RevisionError};
pub use roots::{Root, RootKind};
pub use small_file::read_small_file;
pub use stillness::Stillness;
pub use tree::{FileMode, TreeFile, TreeOutcome};
pub use watch::{RefWatch, WatchError};
pub use worktree::{OnDisk, Stage, WorkTreeChange, WorkTreeChanges, WorkTreeError};

/// The cause below one of this room's errors, whatever library or system call it came from.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;
