//! The question about a target's past.

use clap::{ArgMatches, Args, FromArgMatches};
use serde::{Deserialize, Serialize};

use crate::model::RepoPath;
use crate::ops::target::Targets;
use crate::query::LogFilter;

/// What is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HistoryOp {
    /// The commits that changed the target
    #[default]
    Log,
    /// The commit that introduced it
    Introduced,
    /// The last commit that has it, and the one that deleted it
    LastSeen,
    /// Deleted files or definitions
    Deleted,
    /// Files that change in the same commits
    Cochange,
}

/// The flags that select a [`HistoryOp`] on the command line.
#[derive(clap::Args)]
#[group(multiple = false)]
struct OpFlags {
    /// Show only the commit that introduced it
    #[arg(long)]
    introduced: bool,
    /// Show only the last commit that has it and the commit that deleted it
    #[arg(long)]
    last_seen: bool,
    /// List deleted files under TARGET, deleted definitions named TARGET, or deleted code that matches a description
    #[arg(long)]
    deleted: bool,
    /// Show files that changed in the same commits
    #[arg(long)]
    cochange: bool,
}

impl Args for HistoryOp {
    fn augment_args(command: clap::Command) -> clap::Command {
        OpFlags::augment_args(command)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        OpFlags::augment_args_for_update(command)
    }
}

impl FromArgMatches for HistoryOp {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let flags = OpFlags::from_arg_matches(matches)?;
        let given = [
            (flags.introduced, Self::Introduced),
            (flags.last_seen, Self::LastSeen),
            (flags.deleted, Self::Deleted),
            (flags.cochange, Self::Cochange),
        ];
        Ok(given
            .into_iter()
            .find_map(|(is_given, op)| is_given.then_some(op))
            .unwrap_or_default())
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

pub(super) struct Question<'a> {
    pub(super) targets: &'a Targets<'a>,
    pub(super) op: HistoryOp,
    /// True if commits that changed only whitespace or comments of a definition are omitted.
    pub(super) no_formatting: bool,
    pub(super) part: Shown,
    pub(super) filter: LogFilter,
    /// A file or directory; empty for the whole repository.
    pub(super) path: RepoPath,
}

/// The range of rows to return.
#[derive(Clone, Copy)]
pub(super) struct Shown {
    pub(super) skip: usize,
    pub(super) limit: usize,
    pub(super) has_diff: bool,
}
