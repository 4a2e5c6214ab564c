//! Plans and applies the installation and removal of hooks.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::event::HookEvent;
use super::folder::{HooksFolder, Standing, resolved};
use super::managers::{Manager, Seen, husky_folder, lefthook_snippet, lefthook_starts_us, managers};
use super::queue::Queue;
use super::script::{Held, MOVED, Program, Shape, added, lines, own_file};
use crate::git::{Repository, read_small_file};
use crate::model::Explain;
use crate::sidecar::RealFolder;

/// File mode of a new hook.
const EXECUTABLE: u32 = 0o755;

/// Determines which files outside this clone's git directory may be changed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wishes {
    /// Allows changes to the folder of `core.hooksPath` at any location, and to hooks of hook managers.
    pub force: bool,
    /// Allows changes to the hooks in husky's folder, which is part of the worktree.
    pub husky: bool,
}

/// The plan of an installation or removal.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The folder where git looks for hooks.
    pub folder: HooksFolder,
    /// Programs that manage hooks here.
    pub managers: Vec<Seen>,
    /// One step for each hook that changes, or that would change if that were allowed.
    pub steps: Vec<Step>,
    /// Instructions for the user.
    pub advice: Vec<String>,
    /// A folder that is removed with the hooks.
    leftover: Option<PathBuf>,
}

/// A step for one file.
#[derive(Clone, Debug)]
pub struct Step {
    /// The hook.
    pub event: HookEvent,
    /// The path of the hook's file.
    pub path: PathBuf,
    /// The planned change.
    pub action: Action,
    changes: Vec<Change>,
}

/// The change of a hook's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The file is created.
    Created,
    /// codescout's lines are added below the first line of the file.
    Added,
    /// The file is renamed, and a new file in its place calls it.
    Chained,
    /// codescout's lines in the file are updated.
    Updated,
    /// The file is up to date.
    Unchanged,
    /// The file is removed.
    Removed,
    /// codescout's lines are removed from the file.
    TakenOut,
    /// The file is removed, and the renamed hook is restored.
    PutBack,
    /// The file is not changed.
    Left {
        /// The reason.
        why: String,
    },
}

/// A change of files on disk.
#[derive(Clone, Debug)]
enum Change {
    /// Creates a hard link `to` for the file at `from`.
    Keep { from: PathBuf, to: PathBuf },
    /// Replaces the file at `to` with the file at `from`.
    Move { from: PathBuf, to: PathBuf },
    /// Writes a file atomically.
    Write { path: PathBuf, content: Vec<u8>, mode: u32 },
    /// Removes the file at `path`.
    Remove { path: PathBuf },
}

/// An error from reading or writing hooks.
#[derive(Debug, thiserror::Error)]
#[error("cannot change {}", .path.display())]
pub struct InstallError {
    path: PathBuf,
    #[source]
    source: io::Error,
}

impl Explain for InstallError {}

/// Plans an installation. `program` is the executable that the hooks will call.
pub fn install(repository: &Repository, program: &Path, wishes: Wishes) -> Result<Plan, InstallError> {
    let mut plan = Plan::new(repository);
    let events = HookEvent::of(repository);
    if let Some(husky) = husky_folder(&plan.folder.path).map(|husky| resolved(&husky)) {
        let is_inside = HooksFolder::standing(repository, &husky) == Standing::WorkTree;
        if !is_inside && !wishes.force {
            let why = format!(
                "{} leads out of the worktree (--force changes it anyway)",
                husky.display()
            );
            for event in events {
                plan.leave(*event, husky.join(event.name()), &why);
            }
            return Ok(plan);
        }
        for event in events {
            plan.install_in_husky(*event, &husky, wishes)?;
        }
        if !plan.advice.is_empty() {
            let or = "or run codescout hooks install --husky";
            plan.advice.push(or.to_owned());
        }
        return Ok(plan);
    }
    let why = match plan.folder.standing {
        Standing::GitDir => None,
        Standing::WorkTree | Standing::Outside if wishes.force => None,
        Standing::WorkTree => Some("core.hooksPath is inside the worktree, whose files are not changed"),
        Standing::Outside => Some("core.hooksPath is a folder that other repositories may share"),
        Standing::Nowhere => Some("core.hooksPath is not a folder, so git runs no hooks"),
    };
    match why {
        None => {
            for event in events {
                plan.install_one(*event, program, wishes)?;
            }
        }
        Some(why) => {
            for event in events {
                plan.leave(*event, plan.folder.real.join(event.name()), why);
            }
            let folder = plan.folder.path.display();
            plan.advice.push(match plan.folder.standing {
                Standing::Nowhere => "hooks are optional: the next query updates the index".to_owned(),
                _ => format!("to install into {folder} anyway, run codescout hooks install --force"),
            });
        }
    }
    Ok(plan)
}

/// Plans a removal. It removes all lines and files of codescout and restores renamed hooks.
pub fn uninstall(repository: &Repository, wishes: Wishes) -> Result<Plan, InstallError> {
    let mut plan = Plan::new(repository);
    let mut folders = vec![
        plan.folder.real.clone(),
        resolved(&HooksFolder::default_path(repository)),
    ];
    folders.dedup();
    let husky = husky_folder(&plan.folder.path).map(|husky| resolved(&husky));
    folders.extend(husky.filter(|husky| *husky != plan.folder.real));
    for folder in folders {
        let is_shared = folder == plan.folder.real && plan.folder.standing == Standing::Outside;
        let is_outside = HooksFolder::standing(repository, &folder) == Standing::Outside;
        let may_write = !(is_shared || is_outside) || wishes.force;
        for event in HookEvent::ALL {
            let hook = folder.join(event.name());
            let mut moved = Some(with_ending(&hook, MOVED)).filter(|moved| moved.symlink_metadata().is_ok());
            // The file may be under the hook's name or under a name that a hook manager gives to an existing hook.
            for ending in ["", ".legacy", ".old"] {
                plan.uninstall_one(event, with_ending(&hook, ending), &mut moved, may_write)?;
            }
            // A renamed hook that no file calls is the result of a killed installation on a file system without hard
            // links.
            if may_write
                && let Some(from) = moved
                && matches!(Found::at(&hook)?, Found::Nothing)
            {
                let back = Change::Move { from, to: hook.clone() };
                plan.push(event, hook, Action::PutBack, vec![back]);
            }
        }
    }
    plan.leftover = Some(Queue::of(repository).root().to_owned());
    Ok(plan)
}

impl Plan {
    fn new(repository: &Repository) -> Self {
        let folder = HooksFolder::of(repository);
        Self {
            managers: managers(repository, &folder),
            folder,
            steps: Vec::new(),
            advice: Vec::new(),
            leftover: None,
        }
    }

    /// Returns true if all files that should change may be changed.
    pub fn is_complete(&self) -> bool {
        !self.steps.iter().any(|step| matches!(step.action, Action::Left { .. }))
    }

    /// Applies the plan.
    pub fn apply(&self) -> Result<(), InstallError> {
        for change in self.steps.iter().flat_map(|step| &step.changes) {
            change.apply()?;
        }
        if let Some(folder) = self.leftover.as_deref().filter(|folder| folder.exists()) {
            fs::remove_dir_all(folder).map_err(|source| failed(folder, source))?;
        }
        Ok(())
    }

    fn push(&mut self, event: HookEvent, path: PathBuf, action: Action, changes: Vec<Change>) {
        self.steps.push(Step {
            event,
            path,
            action,
            changes,
        });
    }

    fn leave(&mut self, event: HookEvent, path: PathBuf, why: &str) {
        let why = why.to_owned();
        self.push(event, path, Action::Left { why }, Vec::new());
    }

    fn write(&mut self, event: HookEvent, path: PathBuf, action: Action, content: Vec<u8>, mode: u32) {
        let write = Change::Write {
            path: path.clone(),
            content,
            mode,
        };
        self.push(event, path, action, vec![write]);
    }

    fn create(&mut self, event: HookEvent, path: PathBuf, shape: Shape, program: Program<'_>) {
        let content = own_file(event, shape, program);
        self.write(event, path, Action::Created, content, EXECUTABLE);
    }

    fn install_one(&mut self, event: HookEvent, program: &Path, wishes: Wishes) -> Result<(), InstallError> {
        let path = self.folder.real.join(event.name());
        let program = Program::At(program);
        let moved = with_ending(&path, MOVED);
        let is_moved = moved.symlink_metadata().is_ok();
        match Found::at(&path)? {
            // The installation was killed between renaming and writing, or the user removed the file.
            Found::Nothing if is_moved => self.create(event, path, Shape::Chain, program),
            Found::Nothing => self.create(event, path, Shape::Own, program),
            Found::Folder => self.leave(event, path, "it is a folder"),
            Found::Script(content, mode) => match (Held::find(&content), Manager::of_hook(&content)) {
                (Some(held), _) => self.bring_up_to_date(event, path, &content, mode, &held, program),
                (None, Some(Manager::Lefthook)) => self.leave_to_lefthook(event, path),
                (None, Some(Manager::Overcommit)) if !wishes.force => {
                    self.leave(
                        event,
                        path,
                        "it belongs to overcommit, which depends on the hook's file name",
                    );
                }
                (None, Some(Manager::PreCommit)) if holds_ours(&with_ending(&path, ".legacy")) => {
                    self.push(event, path, Action::Unchanged, Vec::new());
                }
                _ => match added(&content, &lines(event, Shape::Added, program)) {
                    Some(with_ours) if mode & 0o111 != 0 => self.write(event, path, Action::Added, with_ours, mode),
                    _ => self.chain(event, path, program),
                },
            },
            Found::Link => self.chain(event, path, program),
        }
        Ok(())
    }

    fn bring_up_to_date(
        &mut self,
        event: HookEvent,
        path: PathBuf,
        content: &[u8],
        mode: u32,
        held: &Held,
        program: Program<'_>,
    ) {
        let newest = lines(event, held.shape, program);
        if held.lines == newest && mode & 0o111 != 0 {
            return self.push(event, path, Action::Unchanged, Vec::new());
        }
        let start = memchr::memmem::find(content, &held.lines).unwrap_or_default();
        let end = start + held.lines.len();
        let content = [&content[..start], &newest, &content[end..]].concat();
        self.write(event, path, Action::Updated, content, mode | 0o111);
    }

    fn chain(&mut self, event: HookEvent, path: PathBuf, program: Program<'_>) {
        let moved = with_ending(&path, MOVED);
        let mut changes = Vec::new();
        // If a previous run was killed after the first change, the hook has both names.
        if !is_same_file(&path, &moved) {
            if moved.symlink_metadata().is_ok() {
                let why = format!("{} already exists; move one of the two files", moved.display());
                return self.leave(event, path, &why);
            }
            changes.push(Change::Keep {
                from: path.clone(),
                to: moved,
            });
        }
        changes.push(Change::Write {
            path: path.clone(),
            content: own_file(event, Shape::Chain, program),
            mode: EXECUTABLE,
        });
        self.push(event, path, Action::Chained, changes);
    }

    fn leave_to_lefthook(&mut self, event: HookEvent, path: PathBuf) {
        if lefthook_starts_us(&self.managers, event) {
            return self.push(event, path, Action::Unchanged, Vec::new());
        }
        self.leave(event, path, "it belongs to lefthook, which overwrites it");
        let snippet = lefthook_snippet(event);
        self.advice.push(format!("add to lefthook's configuration:\n{snippet}"));
    }

    fn install_in_husky(&mut self, event: HookEvent, husky: &Path, wishes: Wishes) -> Result<(), InstallError> {
        let path = husky.join(event.name());
        let program = Program::Named;
        match Found::at(&path)? {
            Found::Script(content, mode) => match Held::find(&content) {
                Some(held) => self.bring_up_to_date(event, path, &content, mode, &held, program),
                None if wishes.husky => {
                    let ours = lines(event, Shape::Added, program);
                    // Hooks of husky need no first line that names the shell.
                    let with_ours = added(&content, &ours).unwrap_or_else(|| [ours, content].concat());
                    self.write(event, path, Action::Added, with_ours, mode);
                }
                None => self.leave_to_husky(event, path),
            },
            Found::Nothing if wishes.husky => self.create(event, path, Shape::Own, program),
            Found::Nothing => self.leave_to_husky(event, path),
            Found::Folder | Found::Link => self.leave(event, path, "it is not a regular file"),
        }
        Ok(())
    }

    fn leave_to_husky(&mut self, event: HookEvent, path: PathBuf) {
        let name = event.name();
        self.advice.push(format!(
            "add to {}: (codescout hooks run {name} \"$@\" </dev/null >/dev/null 2>&1 &)",
            path.display()
        ));
        self.leave(event, path, "husky manages the hooks in files of the worktree");
    }

    /// Removes codescout's lines from the file at `path`. `moved` is the hook that an installation renamed, until it is
    /// restored. If a hook manager has renamed codescout's file, that file still calls `moved` by name.
    fn uninstall_one(
        &mut self,
        event: HookEvent,
        path: PathBuf,
        moved: &mut Option<PathBuf>,
        may_write: bool,
    ) -> Result<(), InstallError> {
        // If an installation was killed, one hook has two names.
        if may_write && let Some(second) = moved.take_if(|moved| is_same_file(&path, moved)) {
            let remove = Change::Remove { path: second.clone() };
            self.push(event, second, Action::Removed, vec![remove]);
            return Ok(());
        }
        let Found::Script(content, mode) = Found::at(&path)? else {
            return Ok(());
        };
        let Some(held) = Held::find(&content) else {
            return Ok(());
        };
        let back = moved.take_if(|_| may_write && held.shape == Shape::Chain && held.is_whole_file());
        if !may_write {
            self.leave(event, path, "it is outside the repository; use --force to remove it");
        } else if let Some(from) = back {
            let back = Change::Move { from, to: path.clone() };
            self.push(event, path, Action::PutBack, vec![back]);
        } else if let Some(moved) = moved.as_ref().filter(|_| held.shape == Shape::Chain) {
            let why = format!("it was edited, so {} was not restored", moved.display());
            self.leave(event, path, &why);
        } else if held.is_whole_file() {
            let remove = Change::Remove { path: path.clone() };
            self.push(event, path, Action::Removed, vec![remove]);
        } else {
            self.write(event, path, Action::TakenOut, held.rest, mode);
        }
        Ok(())
    }
}

/// The kind of file at a hook's path.
pub(super) enum Found {
    /// There is no file.
    Nothing,
    /// A regular file, with its content and mode.
    Script(Vec<u8>, u32),
    /// A symbolic link or a special file.
    Link,
    /// A folder.
    Folder,
}

impl Found {
    pub(super) fn at(path: &Path) -> Result<Self, InstallError> {
        let is_absent =
            |error: &io::Error| matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
        let metadata: Metadata = match path.symlink_metadata() {
            Ok(metadata) => metadata,
            Err(error) if is_absent(&error) => return Ok(Self::Nothing),
            Err(source) => return Err(failed(path, source)),
        };
        if metadata.is_dir() {
            return Ok(Self::Folder);
        }
        if !metadata.is_file() {
            return Ok(Self::Link);
        }
        let content = read_small_file(path).map_err(|source| failed(path, source))?;
        Ok(Self::Script(
            content.unwrap_or_default(),
            metadata.permissions().mode() & 0o7777,
        ))
    }
}

/// Returns true if both paths are names of the same file. Does not follow symbolic links.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| path.symlink_metadata().map(|metadata| (metadata.dev(), metadata.ino()));
    matches!((id(one), id(other)), (Ok(one), Ok(other)) if one == other)
}

/// Returns true if an executable file contains codescout's lines.
pub(super) fn holds_ours(path: &Path) -> bool {
    matches!(Found::at(path), Ok(Found::Script(content, mode)) if mode & 0o111 != 0 && Held::find(&content).is_some())
}

pub(super) fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

impl Change {
    fn apply(&self) -> Result<(), InstallError> {
        let (Self::Keep { to: path, .. }
        | Self::Move { to: path, .. }
        | Self::Write { path, .. }
        | Self::Remove { path }) = self;
        self.apply_in_folder(path).map_err(|source| failed(path, source))
    }

    /// All files of a change are in one folder.
    fn apply_in_folder(&self, path: &Path) -> io::Result<()> {
        let (folder, name) = RealFolder::of_file(path, matches!(self, Self::Write { .. }))?;
        match self {
            // Creates the second name first, so that the hook always exists. Does not overwrite a file that was created
            // under that name meanwhile.
            Self::Keep { from, .. } => {
                let from = from.file_name().unwrap_or_default();
                folder.link(from, &name).or_else(|error| match error.kind() {
                    io::ErrorKind::AlreadyExists => Err(error),
                    _ => folder.rename(from, &name),
                })
            }
            Self::Move { from, .. } => folder.rename(from.file_name().unwrap_or_default(), &name),
            Self::Write { content, mode, .. } => folder.write(&name, content, Some(*mode)),
            Self::Remove { .. } => folder.remove(&name),
        }
    }
}

fn failed(path: &Path, source: io::Error) -> InstallError {
    InstallError {
        path: path.to_owned(),
        source,
    }
}
