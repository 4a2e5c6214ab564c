//! Reads git repositories: refs, commits, trees, blobs, and the files of a worktree.
//!
//! Objects are read in-process. Where that is not possible (refs in reftable), a single hardened wrapper runs the git
//! executable. This module runs no program that a repository configures, fetches nothing except through [`Exchange`],
//! follows no symbolic link out of the worktree, and ignores environment variables that select another repository. It
//! does not depend on the index of codescout. Start with [`Repository::discover`].

mod attributes;
mod beneath;
mod blame;
mod blob;
mod bounded;
mod cause;
mod checkout;
mod command;
mod commit;
mod diff;
mod disk_file;
mod exchange;
mod hooks_path;
mod host;
mod includes;
mod index;
mod irregular;
mod journal;
mod known_files;
mod line_diff;
mod linked;
mod mailmap;
mod mirror;
mod object_id;
mod open;
mod operation;
mod reach;
mod reader;
mod refs;
mod revision;
mod rewrite;
mod roots;
mod scan;
mod small_file;
mod stillness;
mod store;
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
pub use cause::Cause;
pub use checkout::{CheckoutError, WrittenFiles};
pub use command::{CommandError, GitVersion, git_version};
pub use commit::{CommitInfo, Person};
pub use diff::{TreeChange, TreeEntry};
pub use disk_file::{DiskFile, ExactFile, Unread, WorkTreeReader};
pub use exchange::{Direction, Exchange, ExchangeError, RemoteFiles};
pub use hooks_path::{HooksPath, HooksPathOrigin};
pub use host::{host_of, origin_host};
pub use known_files::KnownFiles;
pub use line_diff::{LineHunk, diff_lines, unified_diff, unified_diff_bytes};
pub use mailmap::ConfiguredMailmaps;
pub use mirror::{clone_bare, fetch_bare};
pub use open::{ObjectFormat, OpenError, Repository, RepositoryKind, shell_quoted};
pub use operation::is_in_operation;
pub use reader::{MAX_OBJECT_BYTES, ObjectError, ObjectReader};
pub use refs::{Head, Ref, RefError, RefKind};
pub use revision::{Candidate, Resolved, RevisionError};
pub use rewrite::{Rewrite, RewriteError, Rewriter, belongs_to_git, check_path};
pub use roots::{Root, RootKind};
pub use small_file::read_small_file;
pub use stillness::WorktreeWatch;
pub use store::{FileStore, StoreError};
pub use tree::{FileMode, TreeFile, TreeOutcome};
pub use watch::{RefWatch, WatchError};
pub use worktree::{OnDisk, Stage, WorkTreeChange, WorkTreeChanges, WorkTreeError};
