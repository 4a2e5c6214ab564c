//! The git hooks after which another commit may be checked out.

use std::ffi::OsString;

use crate::git::{Repository, RepositoryKind};

/// A hook of git. Names and arguments: git's `githooks` page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HookEvent {
    /// After `commit`, and after each commit of a rebase, cherry-pick or revert.
    PostCommit,
    /// After `switch`, `checkout`, `clone`, `worktree add`, and at the start of a rebase.
    PostCheckout,
    /// After `merge` and `pull`.
    PostMerge,
    /// After `commit --amend`, and once at the end of a rebase.
    PostRewrite,
    /// After a push into this repository.
    PostReceive,
}

impl HookEvent {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::PostCommit,
        Self::PostCheckout,
        Self::PostMerge,
        Self::PostRewrite,
        Self::PostReceive,
    ];

    /// The file's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::PostCommit => "post-commit",
            Self::PostCheckout => "post-checkout",
            Self::PostMerge => "post-merge",
            Self::PostRewrite => "post-rewrite",
            Self::PostReceive => "post-receive",
        }
    }

    /// The hook with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.name() == name)
    }

    /// The hooks that a repository needs: those of commits with a worktree, that of pushes in a bare repository.
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

    /// Returns true if the arguments say that only files were checked out, without moving `HEAD`.
    pub(super) fn is_about_files(self, arguments: &[OsString]) -> bool {
        self == Self::PostCheckout && arguments.get(2).is_some_and(|flag| flag == "0")
    }
}
