//! Recognizes hook managers, which affect the hooks of other programs.
//!
//! Tested with husky 9, lefthook 2 and pre-commit 4: husky sets `core.hooksPath`, so that git ignores `.git/hooks`;
//! lefthook renames a hook to `*.old` and does not call it; pre-commit renames it to `*.legacy` and calls it.

use std::path::{Path, PathBuf};

use super::event::HookEvent;
use super::folder::HooksFolder;
use super::script::contains;
use crate::git::{Repository, read_small_file};

/// A hook manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manager {
    /// <https://typicode.github.io/husky>
    Husky,
    /// <https://lefthook.dev>
    Lefthook,
    /// <https://pre-commit.com>
    PreCommit,
    /// <https://github.com/sds/overcommit>
    Overcommit,
}

impl Manager {
    /// The name of the manager.
    pub fn name(self) -> &'static str {
        match self {
            Self::Husky => "husky",
            Self::Lefthook => "lefthook",
            Self::PreCommit => "pre-commit",
            Self::Overcommit => "overcommit",
        }
    }

    /// Returns the manager that wrote a hook's file, judged by its content.
    pub(super) fn of_hook(content: &[u8]) -> Option<Self> {
        const MARKS: [(&[u8], Manager); 4] = [
            (b"LEFTHOOK", Manager::Lefthook),
            (b"pre-commit.com", Manager::PreCommit),
            (b"OVERCOMMIT", Manager::Overcommit),
            (b"husky", Manager::Husky),
        ];
        MARKS
            .into_iter()
            .find(|(mark, _)| contains(content, mark))
            .map(|(_, manager)| manager)
    }
}

/// A hook manager, and the file or folder by which it was recognized.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The manager.
    pub manager: Manager,
    /// The file or folder.
    pub evidence: PathBuf,
}

/// Files in the root of a work tree that configure a manager.
const CONFIGURATIONS: [(Manager, &[&str]); 4] = [
    (Manager::Husky, &[".husky"]),
    (
        Manager::Lefthook,
        &[
            "lefthook.yml",
            "lefthook.yaml",
            "lefthook.toml",
            "lefthook.json",
            ".lefthook.yml",
            ".lefthook.yaml",
            ".lefthook.toml",
            ".lefthook.json",
            ".config/lefthook.yml",
            ".config/lefthook.yaml",
        ],
    ),
    (
        Manager::PreCommit,
        &[".pre-commit-config.yaml", ".pre-commit-config.yml"],
    ),
    (Manager::Overcommit, &[".overcommit.yml"]),
];

/// Returns the managers that are configured in the worktree or have written a hook's file.
pub(super) fn managers(repository: &Repository, folder: &HooksFolder) -> Vec<Seen> {
    let mut seen: Vec<Seen> = Vec::new();
    let mut see = |manager, evidence: PathBuf| {
        if seen.iter().all(|known| known.manager != manager) {
            seen.push(Seen { manager, evidence });
        }
    };
    if let Some(husky) = husky_folder(&folder.path) {
        see(Manager::Husky, husky);
    }
    for (manager, names) in CONFIGURATIONS {
        let found = names.iter().filter_map(|name| Some(repository.work_dir()?.join(name)));
        found
            .filter(|path| path.exists())
            .take(1)
            .for_each(|path| see(manager, path));
    }
    for event in HookEvent::ALL {
        let path = folder.path.join(event.name());
        if let Some(manager) = read(&path).and_then(|content| Manager::of_hook(&content)) {
            see(manager, path);
        }
    }
    seen
}

/// If a folder of hooks is husky's, returns the folder with the user's own hooks: the parent of `.husky/_`, or `.husky`
/// itself up to version 8.
pub(super) fn husky_folder(hooks: &Path) -> Option<PathBuf> {
    let is_husky = |path: &Path| path.file_name().is_some_and(|name| name == ".husky");
    let parent = hooks
        .parent()
        .filter(|_| hooks.file_name().is_some_and(|name| name == "_"));
    match parent {
        Some(parent) if is_husky(parent) => Some(parent.to_owned()),
        _ => is_husky(hooks).then(|| hooks.to_owned()),
    }
}

/// Returns true if lefthook's configuration calls codescout for an event.
pub(super) fn lefthook_starts_us(seen: &[Seen], event: HookEvent) -> bool {
    let call = format!("codescout hooks run {}", event.name());
    let configurations = seen.iter().filter(|seen| seen.manager == Manager::Lefthook);
    configurations
        .filter_map(|seen| read(&seen.evidence))
        .any(|content| contains(&content, call.as_bytes()))
}

/// Reads a file that may come from a checkout. Returns `None` if that fails.
fn read(path: &Path) -> Option<Vec<u8>> {
    read_small_file(path).ok().flatten()
}

/// Returns the lines to add to `lefthook.yml`.
pub(super) fn lefthook_snippet(event: HookEvent) -> String {
    let name = event.name();
    format!(
        "{name}:\n  commands:\n    codescout:\n      run: codescout hooks run {name} {{0}} </dev/null >/dev/null 2>&1 &\n"
    )
}
