//! The state of the hooks and of their last run.

use std::path::{Path, PathBuf};

use super::event::HookEvent;
use super::folder::{HooksFolder, Standing};
use super::install::{Found, holds_ours, with_ending};
use super::log::{Entry, HookLog};
use super::managers::{Manager, Seen, husky_folder, lefthook_starts_us, managers};
use super::queue::Queue;
use super::script::{Held, Shape};
use crate::git::Repository;

/// The state of all hooks.
#[derive(Clone, Debug)]
pub struct Status {
    /// The folder where git looks for hooks.
    pub folder: HooksFolder,
    /// Programs that manage hooks here.
    pub managers: Vec<Seen>,
    /// The hooks that the repository needs.
    pub hooks: Vec<HookStatus>,
    /// Number of waiting requests. Requests wait while a worker is busy or a git operation is not finished.
    pub n_waiting: usize,
    /// The last line of the log.
    pub last_run: Option<Entry>,
    /// The paths of the log files.
    pub logs: Vec<PathBuf>,
}

/// The state of one hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookStatus {
    /// The hook.
    pub event: HookEvent,
    /// The path of the hook's file.
    pub path: PathBuf,
    /// The kind of content of the file.
    pub state: HookState,
    /// True if git would call codescout.
    pub is_called: bool,
    /// A remark.
    pub note: Option<String>,
}

/// The content of a hook's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookState {
    /// There is no file.
    Missing,
    /// codescout created the file.
    Own,
    /// Another script that contains codescout's lines.
    Added,
    /// codescout created the file, which calls the previous hook.
    Chained,
    /// A file of a hook manager, which calls codescout.
    Managed(Manager),
    /// A file of a hook manager. codescout's file was renamed and is not called.
    Replaced(Manager),
    /// Another file that does not call codescout.
    Foreign,
}

impl Status {
    /// Returns true if git would call every hook that the repository needs.
    pub fn is_installed(&self) -> bool {
        self.hooks.iter().all(|hook| hook.is_called)
    }
}

/// Returns the state of the hooks of a repository whose sidecar is at `sidecar_root`. Runs no hook and writes nothing.
pub fn status(repository: &Repository, sidecar_root: &Path) -> Status {
    let folder = HooksFolder::of(repository);
    let managers = managers(repository, &folder);
    let log = HookLog::of(repository, Some(sidecar_root));
    let events = HookEvent::of(repository).iter();
    Status {
        hooks: events
            .map(|event| hook(*event, repository, &folder, &managers))
            .collect(),
        folder,
        managers,
        n_waiting: Queue::of(repository).requests().len(),
        last_run: log.entries().pop(),
        logs: log.paths(),
    }
}

fn hook(event: HookEvent, repository: &Repository, folder: &HooksFolder, managers: &[Seen]) -> HookStatus {
    if let Some(husky) = husky_folder(&folder.path) {
        return husky_hook(event, &husky, folder);
    }
    let path = folder.path.join(event.name());
    let hidden = HooksFolder::default_path(repository).join(event.name());
    let is_hidden = hidden != path && holds_ours(&hidden);
    let (state, is_executable) = match Found::at(&path) {
        Ok(Found::Script(content, mode)) => (state_of(event, &path, &content, managers), mode & 0o111 != 0),
        Ok(Found::Nothing) => (HookState::Missing, false),
        Ok(Found::Link | Found::Folder) | Err(_) => (HookState::Foreign, true),
    };
    let is_ours = !matches!(state, HookState::Missing | HookState::Replaced(_) | HookState::Foreign);
    let note = match state {
        _ if folder.standing == Standing::Nowhere => Some(
            "core.hooksPath is not a folder, so hooks are \
            disabled"
                .to_owned(),
        ),
        HookState::Replaced(manager) => Some(format!(
            "{} moved it to {}.old and does not call it",
            manager.name(),
            event.name()
        )),
        _ if is_ours && !is_executable => Some("it is not executable, so git ignores it".to_owned()),
        _ if is_hidden && !is_ours => Some(format!("git ignores {} because of core.hooksPath", hidden.display())),
        _ => None,
    };
    HookStatus {
        event,
        path,
        state,
        is_called: is_ours && is_executable && folder.standing != Standing::Nowhere,
        note,
    }
}

fn state_of(event: HookEvent, path: &Path, content: &[u8], managers: &[Seen]) -> HookState {
    if let Some(held) = Held::find(content) {
        return match held.shape {
            Shape::Own => HookState::Own,
            Shape::Chain => HookState::Chained,
            Shape::Added => HookState::Added,
        };
    }
    match Manager::of_hook(content) {
        Some(Manager::PreCommit) if holds_ours(&with_ending(path, ".legacy")) => HookState::Managed(Manager::PreCommit),
        Some(Manager::Lefthook) if lefthook_starts_us(managers, event) => HookState::Managed(Manager::Lefthook),
        Some(manager) if holds_ours(&with_ending(path, ".old")) => HookState::Replaced(manager),
        _ => HookState::Foreign,
    }
}

/// Returns the state of a hook in husky's folder. husky's file calls the user's file, which must contain codescout's
/// lines.
fn husky_hook(event: HookEvent, husky: &Path, folder: &HooksFolder) -> HookStatus {
    let path = husky.join(event.name());
    let is_ours = match Found::at(&path) {
        Ok(Found::Script(content, _)) => {
            let call = format!("codescout hooks run {}", event.name());
            Held::find(&content).is_some() || super::script::contains(&content, call.as_bytes())
        }
        _ => false,
    };
    let caller = folder.path.join(event.name());
    let is_called = is_ours && caller.is_file();
    HookStatus {
        event,
        state: match is_ours {
            true => HookState::Managed(Manager::Husky),
            false if path.exists() => HookState::Foreign,
            false => HookState::Missing,
        },
        note: (is_ours && !is_called).then(|| format!("{} is missing: run husky", caller.display())),
        path,
        is_called,
    }
}
