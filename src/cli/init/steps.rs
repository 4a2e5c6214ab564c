//! The steps of `codescout init` and of its undoing: plans of other modules, made first and applied one by one.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::record::Record;
use crate::cli::args::{Global, InitStep};
use crate::cli::install::{SERVER_NAME, absent, added_elsewhere, user_plan, user_removal};
use crate::cli::progress::CliProgress;
use crate::ingest::Target;
use crate::model::count::count;
use crate::session::{CallCtx, Context as _, Event, OpError, Result, Steps, Workspace, ensure};
use crate::setup::ci_file::{CiFile, NewCiFile};
use crate::setup::hooks::{self, Action, Wishes};
use crate::setup::install::{Client, Places, Plan, Uses};

/// A step.
#[derive(Debug)]
pub(super) struct Step {
    /// `index`, `hooks`, `agent` or `ci`.
    pub(super) part: &'static str,
    /// What is done, in the imperative.
    pub(super) what: String,
    pub(super) state: State,
    /// What the user should do or know afterwards.
    pub(super) notes: Vec<String>,
    work: Work,
}

/// The state of a step.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum State {
    Planned,
    /// It was done, with this result.
    Done(Option<String>),
    /// There was nothing to do.
    Already,
    /// It is not done, for this reason.
    Left(String),
    Failed(String),
}

/// What a step changes.
#[derive(Debug)]
enum Work {
    Nothing,
    Index(Target),
    Hooks(hooks::Plan),
    Agent(&'static Client, Plan),
    /// The use of a client's server by this clone.
    Use(&'static Client),
    CiFile(NewCiFile),
}

impl Step {
    fn planned(part: &'static str, what: String, work: Work) -> Self {
        Self {
            part,
            what,
            state: State::Planned,
            notes: Vec::new(),
            work,
        }
    }

    fn settled(part: &'static str, what: impl Into<String>, state: State) -> Self {
        Self {
            state,
            ..Self::planned(part, what.into(), Work::Nothing)
        }
    }
}

impl Work {
    /// Sets whether the record has this work. Returns true if that changes the record.
    fn record(&self, record: &mut Record, is_there: bool) -> bool {
        match self {
            Self::Nothing | Self::Index(_) => return false,
            // Hooks that are only brought up to date were there before.
            Self::Hooks(plan) => {
                let is_new =
                    |step: &hooks::Step| matches!(step.action, Action::Created | Action::Added | Action::Chained);
                record.hooks = is_there && (record.hooks || plan.steps.iter().any(is_new));
            }
            Self::Agent(client, _) | Self::Use(client) => {
                record.agents.retain(|id| id != client.id);
                record.agents.extend(is_there.then(|| client.id.to_owned()));
            }
            Self::CiFile(file) => {
                record.ci_files.retain(|other| other.path != file.path);
                record.ci_files.extend(is_there.then(|| file.clone()));
            }
        }
        true
    }
}

/// Where the steps are done.
pub(super) struct Setting<'a> {
    workspace: &'a Workspace,
    global: &'a Global,
    /// The user's folders; `None` without a home directory.
    places: Option<Places>,
    is_undoing: bool,
}

impl<'a> Setting<'a> {
    pub(super) fn of(workspace: &'a Workspace, global: &'a Global, is_undoing: bool) -> Self {
        Self {
            workspace,
            global,
            places: Places::read(workspace.repository.work_dir().map(Path::to_owned)),
            is_undoing,
        }
    }

    /// Plans all steps but those in `without`. A plan that cannot be made is a step that is left.
    pub(super) fn doing(&self, without: &[InitStep]) -> Result<Vec<Step>> {
        let mut steps = vec![self.index()?];
        let is_wanted = |step| !without.contains(&step);
        if is_wanted(InitStep::Hooks) {
            let left = |error| vec![Step::settled("hooks", "install git hooks", State::Left(reason(&error)))];
            steps.extend(self.hooks().unwrap_or_else(left));
        }
        if is_wanted(InitStep::Agents) {
            steps.extend(self.agents());
        }
        if is_wanted(InitStep::Ci) {
            steps.push(self.ci_file());
        }
        Ok(steps)
    }

    fn index(&self) -> Result<Step> {
        let what = format!("index {}", self.global.reference);
        let Some(target) = self.workspace.target(&self.global.reference)? else {
            let why = "there are no commits yet; queries search the files on disk";
            return Ok(Step::settled("index", what, State::Left(why.to_owned())));
        };
        Ok(match self.workspace.stored_whole(target.tree)? {
            Some(_) => Step::settled("index", what, State::Already),
            None => Step::planned("index", what, Work::Index(target)),
        })
    }

    fn hooks(&self) -> Result<Vec<Step>> {
        let program = std::env::current_exe().context("cannot determine the path of this program")?;
        let plan = hooks::install(&self.workspace.repository, &program, Wishes::default())?;
        let what = format!("install git hooks in {}", plan.folder.path.display());
        let is_left = |step: &&hooks::Step| matches!(step.action, Action::Left { .. });
        let mut steps = Vec::new();
        if let Some(first) = plan.steps.iter().find(is_left) {
            let why = match &first.action {
                Action::Left { why } => std::iter::once(why).chain(&plan.advice).map(String::as_str),
                _ => return Ok(steps),
            };
            let why: Vec<&str> = why.collect();
            let event = first.event.name();
            steps.push(Step::settled(
                "hooks",
                format!("{what} ({event})"),
                State::Left(why.join("\n")),
            ));
        }
        let is_change = |step: &hooks::Step| !is_left(&step) && step.action != Action::Unchanged;
        if plan.steps.iter().any(is_change) {
            steps.push(Step::planned("hooks", what, Work::Hooks(plan)));
        } else if steps.is_empty() {
            steps.push(Step::settled("hooks", what, State::Already));
        }
        Ok(steps)
    }

    fn agents(&self) -> Vec<Step> {
        let Some(places) = &self.places else {
            let why = "there is no home directory; set HOME".to_owned();
            return vec![Step::settled(
                "agent",
                "add codescout to coding agents",
                State::Left(why),
            )];
        };
        let clone = self.workspace.repository.common_dir();
        let shared = added_elsewhere(places, SERVER_NAME, clone).into_iter();
        let shared = shared.map(|(client, file)| {
            let what = format!(
                "use the entry of {} from this clone too: {}",
                client.title,
                file.display()
            );
            Step::planned("agent", what, Work::Use(client))
        });
        let absent = absent(places, SERVER_NAME).into_iter();
        shared.chain(absent.map(|client| self.agent(client, places))).collect()
    }

    fn agent(&self, client: &'static Client, places: &Places) -> Step {
        let what = format!("add codescout to {} for all your projects", client.title);
        if client.starts_anywhere {
            let why = format!("it needs a folder: codescout install {} --root DIR", client.id);
            return Step::settled("agent", what, State::Left(why));
        }
        let plan = match user_plan(client, places) {
            Ok(plan) => plan,
            Err(error) => return Step::settled("agent", what, State::Left(reason(&error))),
        };
        let files: Vec<&Path> = plan.changes.iter().map(|change| change.path.as_path()).collect();
        if let Some(file) = files
            .iter()
            .copied()
            .chain([&*places.records()])
            .find(|file| !is_writable(file))
        {
            let why = format!("{} cannot be written", file.display());
            return Step::settled("agent", what, State::Left(why));
        }
        let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        Step {
            notes: plan.next.clone(),
            ..Step::planned(
                "agent",
                format!("{what}: {}", names.join(", ")),
                Work::Agent(client, plan),
            )
        }
    }

    fn ci_file(&self) -> Step {
        let create = |path: &Path| format!("create {}", path.display());
        match CiFile::of(&self.workspace.repository) {
            Ok(CiFile::Missing(file)) => Step {
                notes: vec![format!(
                    "{}: put the installation of codescout in the place of its first step, and commit it",
                    file.path.display()
                )],
                ..Step::planned("ci", create(&file.path), Work::CiFile(file))
            },
            Ok(CiFile::Exists(path)) => Step::settled("ci", create(&path), State::Already),
            Ok(CiFile::Left(why)) => Step::settled("ci", "create a CI file", State::Left(why)),
            Err(error) => Step::settled("ci", "create a CI file", State::Left(reason(&error.into()))),
        }
    }

    /// Plans to undo what was recorded, in reverse order.
    pub(super) fn undoing(&self, record: &Record) -> Vec<Step> {
        let repository = &self.workspace.repository;
        let own = record.ci_files.iter().filter(|file| file.is_of(repository));
        let ci = own.map(|file| {
            let what = format!("remove {}", file.path.display());
            if file.is_unchanged() {
                return Step::planned("ci", what, Work::CiFile(file.clone()));
            }
            let why = "it was changed or removed since";
            Step::settled("ci", what, State::Left(why.to_owned()))
        });
        let agents = record.agents.iter().filter_map(|id| Client::by_name(id));
        let agents = agents.filter_map(|client| self.without_agent(client));
        let hooks = record.hooks.then(|| {
            let wishes = Wishes {
                force: false,
                husky: true,
            };
            let of_all = if repository.linked_work_trees().is_empty() {
                ""
            } else {
                " of all worktrees"
            };
            let what = format!("remove the git hooks{of_all}");
            match hooks::uninstall(repository, wishes) {
                Ok(plan) if plan.steps.is_empty() => None,
                Ok(plan) => Some(Step::planned("hooks", what, Work::Hooks(plan))),
                Err(error) => Some(Step::settled("hooks", what, State::Failed(reason(&error.into())))),
            }
        });
        ci.chain(agents).chain(hooks.flatten()).collect()
    }

    /// Plans to remove the server from a client, unless others use it.
    fn without_agent(&self, client: &'static Client) -> Option<Step> {
        let what = format!("remove codescout from {} for all your projects", client.title);
        let places = self.places.as_ref().context("there is no home directory; set HOME");
        let plan = match places.and_then(|places| user_removal(client, places)) {
            Ok(plan) if !plan.is_needed() => return None,
            Ok(plan) => plan,
            Err(error) => return Some(Step::settled("agent", what, State::Failed(reason(&error)))),
        };
        let uses = self.uses(client)?;
        let clone = self.workspace.repository.common_dir();
        if uses.clones().iter().all(|other| other != clone) {
            let why = format!(
                "it is not recorded for this clone alone; codescout uninstall {} does it",
                client.id
            );
            return Some(Step::settled("agent", what, State::Left(why)));
        }
        let shown = |paths: Vec<&Path>| {
            let paths: Vec<String> = paths.into_iter().map(|path| path.display().to_string()).collect();
            paths.join(", ")
        };
        let others = uses.others(clone);
        if others.is_empty() {
            let files = shown(plan.changes.iter().map(|change| change.path.as_path()).collect());
            return Some(Step::planned(
                "agent",
                format!("{what}: {files}"),
                Work::Agent(client, plan),
            ));
        }
        let others = shown(others.iter().map(PathBuf::as_path).collect());
        let what = format!("keep codescout in {}, which other clones use: {others}", client.title);
        Some(Step::planned("agent", what, Work::Use(client)))
    }

    fn uses(&self, client: &Client) -> Option<Uses> {
        self.places.as_ref().map(|places| Uses::of(client, places))
    }

    /// Applies a planned step, and sets its state. Fails only if it is interrupted.
    pub(super) fn apply(&self, step: &mut Step, record: &mut Record) -> Result<()> {
        step.state = match self.change(&step.work, record) {
            Ok(how) => State::Done(how),
            Err(error) if error.is_interrupted() => return Err(error),
            Err(error) => {
                step.notes.clear();
                State::Failed(reason(&error))
            }
        };
        Ok(())
    }

    /// Makes the change of a step. When doing, it is recorded before, so that a killed run can be undone.
    fn change(&self, work: &Work, record: &mut Record) -> Result<Option<String>> {
        if !self.is_undoing {
            self.note(work, record, true)?;
        }
        match work {
            Work::Nothing => {}
            Work::Index(target) => return self.indexed(*target).map(Some),
            Work::Hooks(plan) => plan.apply()?,
            Work::Agent(client, plan) => {
                let uses = self.uses(client).context("there is no home directory")?;
                if !self.is_undoing {
                    uses.add(self.workspace.repository.common_dir())?;
                }
                plan.apply()?;
                if self.is_undoing {
                    uses.clear()?;
                }
            }
            Work::Use(client) => {
                let uses = self.uses(client).context("there is no home directory")?;
                let clone = self.workspace.repository.common_dir();
                if self.is_undoing {
                    uses.remove(clone)?;
                } else {
                    uses.add(clone)?;
                }
            }
            Work::CiFile(file) if self.is_undoing => {
                ensure!(file.remove()?, "{} was changed meanwhile", file.path.display());
            }
            Work::CiFile(file) => file.create()?,
        }
        if self.is_undoing {
            self.note(work, record, false)?;
        }
        Ok(None)
    }

    /// Records whether a step is done.
    fn note(&self, work: &Work, record: &mut Record, is_there: bool) -> Result<()> {
        if work.record(record, is_there) {
            record.write(self.workspace).context("cannot record the step")?;
        }
        Ok(())
    }

    fn indexed(&self, target: Target) -> Result<String> {
        let progress = CliProgress::new(self.global.quiet);
        let call = CallCtx::unlimited(progress.ctx());
        let outcome = self
            .workspace
            .update(target, Steps::default(), &call, &mut Event::log)?;
        if outcome.interrupted {
            return Err(OpError::interrupted_with("the files indexed so far are kept"));
        }
        let chunks = count(outcome.n_new_chunks, "chunk");
        Ok(format!("{} in {chunks}", count(outcome.n_new_blobs, "file")))
    }
}

/// Returns true if a file can be written or created, as far as permissions tell.
fn is_writable(path: &Path) -> bool {
    let existing = path.ancestors().find(|path| path.exists());
    existing.is_some_and(|path| access(path, Access::WRITE_OK).is_ok())
}

/// Returns the text of an error with its hint.
fn reason(error: &OpError) -> String {
    let shown = error.for_shell();
    [Some(shown.error), shown.hint]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join("\n")
}
