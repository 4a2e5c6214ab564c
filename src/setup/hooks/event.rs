//! The git hooks that run when a different commit may be checked out or pushed.

use std::ffi::OsString;

use crate::git::{Repository, RepositoryKind};

/// A git hook. Source of names and arguments: git's `githooks` page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HookEvent {
    /// Runs after `commit`, and after each commit of a rebase, cherry-pick or revert.
    PostCommit,
    /// Runs after `switch`, `checkout`, `clone`, `worktree add`, and at the start of a rebase.
    PostCheckout,
    /// Runs after `merge` and `pull`.
    PostMerge,
    /// Runs after `commit --amend`, and once at the end of a rebase.
    PostRewrite,
    /// Runs after a push into this repository.
    PostReceive,
}

impl HookEvent {
    /// All hooks.
    pub const ALL: [Self; 5] = [
        Self::PostCommit,
        Self::PostCheckout,
        Self::PostMerge,
        Self::PostRewrite,
        Self::PostReceive,
    ];

    /// The name of the hook's file.
    pub fn name(self) -> &'static str {
        match self {
            Self::PostCommit => "post-commit",
            Self::PostCheckout => "post-checkout",
            Self::PostMerge => "post-merge",
            Self::PostRewrite => "post-rewrite",
            Self::PostReceive => "post-receive",
        }
    }

    /// Returns the hook with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.name() == name)
    }

    /// Returns the hooks that a repository needs. With a worktree, these are the hooks for commits and checkouts; in a
    /// bare repository, the hook for pushes.
    pub fn of(repository: &Repository) -> &'static [Self] {
        const WORK_TREES: &[HookEvent] = HookEvent::ALL.split_at(4).0;
        const PUSHES: &[HookEvent] = HookEvent::ALL.split_at(4).1;
        let has_linked = || repository.common_dir().join("worktrees").is_dir();
        match repository.kind() {
            RepositoryKind::Bare if has_linked() => &Self::ALL,
            RepositoryKind::Bare => PUSHES,
            RepositoryKind::LinkedWorkTree if repository.main_work_dir().is_none() => &Self::ALL,
            _ => WORK_TREES,
        }
    }

    /// Returns true if the hook's arguments mean that only files were checked out and `HEAD` did not move.
    pub(super) fn is_about_files(self, arguments: &[OsString]) -> bool {
        self == Self::PostCheckout && arguments.get(2).is_some_and(|flag| flag == "0")
    }
}
