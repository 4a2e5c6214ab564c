//! `codescout hooks`

use serde::Serialize;

use super::args::{Global, HooksArgs, HooksCommand};
use super::render::{Output, STRONG, one_line};
use super::{Found, INTERRUPTED, advice};
use crate::config::Environment;
use crate::git::Repository;
use crate::session::{Context as _, OpError, Result, sidecar_root_of};
use crate::setup::hooks::{
    self, Action, Entry, HookEvent, HookState, HookStatus, HooksFolder, Plan, Seen, Standing, Status, Wishes,
};

#[derive(Debug, Serialize)]
struct PlanOut {
    repo: String,
    #[serde(flatten)]
    folder: FolderOut,
    managers: Vec<ManagerOut>,
    dry_run: bool,
    steps: Vec<StepOut>,
    advice: Vec<String>,
}

#[derive(Debug, Serialize)]
struct FolderOut {
    folder: String,
    /// One of `git_dir`, `work_tree`, `outside` and `nowhere`.
    standing: &'static str,
}

#[derive(Debug, Serialize)]
struct ManagerOut {
    name: &'static str,
    evidence: String,
}

#[derive(Debug, Serialize)]
struct StepOut {
    event: &'static str,
    path: String,
    action: &'static str,
    why: Option<String>,
}

#[derive(Debug, Serialize)]
struct StatusOut {
    repo: String,
    #[serde(flatten)]
    folder: FolderOut,
    managers: Vec<ManagerOut>,
    installed: bool,
    hooks: Vec<HookOut>,
    waiting: usize,
    last_run: Option<Entry>,
    logs: Vec<String>,
}

#[derive(Debug, Serialize)]
struct HookOut {
    event: &'static str,
    path: String,
    state: &'static str,
    called: bool,
    note: Option<String>,
}

pub(super) fn run(global: &Global, args: &HooksArgs, output: &mut Output) -> Result<Found> {
    match &args.command {
        HooksCommand::Install { dry_run, force, husky } => {
            let repository = Repository::discover(&global.repo)?;
            let program = std::env::current_exe().context("cannot determine the path of this program")?;
            let wishes = Wishes {
                force: *force,
                husky: *husky,
            };
            let plan = hooks::install(&repository, &program, wishes)?;
            apply_plan(&repository, &plan, *dry_run, output)
        }
        HooksCommand::Uninstall { dry_run, force } => {
            let repository = Repository::discover(&global.repo)?;
            let wishes = Wishes {
                force: *force,
                husky: true,
            };
            let plan = hooks::uninstall(&repository, wishes)?;
            apply_plan(&repository, &plan, *dry_run, output)
        }
        HooksCommand::Status => {
            let repository = Repository::discover(&global.repo)?;
            show_status(&repository, output)
        }
        HooksCommand::Run {
            event,
            arguments,
            worker,
        } => {
            let event = HookEvent::named(event).context("unknown hook")?;
            if *worker {
                hooks::work(&Repository::open(&global.repo)?, &INTERRUPTED);
                return Ok(Found::Something);
            }
            let at = (global.repo.as_os_str() != ".").then_some(global.repo.as_path());
            // An error from the request must not disturb git or its user, so it is only logged.
            if let Err(error) = hooks::request(event, arguments, at) {
                tracing::debug!("{:#}", OpError::from(error));
            }
            Ok(Found::Something)
        }
        HooksCommand::Agent { client } => advice::run(client, output),
    }
}

fn apply_plan(repository: &Repository, plan: &Plan, dry_run: bool, output: &mut Output) -> Result<Found> {
    if !dry_run {
        plan.apply()?;
    }
    if output.json {
        output.json(&PlanOut {
            repo: repo(repository),
            folder: folder_out(&plan.folder),
            managers: managers_out(&plan.managers),
            dry_run,
            steps: plan.steps.iter().map(StepOut::of).collect(),
            advice: plan.advice.clone(),
        })?;
    } else {
        show_plan(plan, dry_run, output)?;
    }
    Ok(if plan.is_complete() {
        Found::Something
    } else {
        Found::Nothing
    })
}

fn show_plan(plan: &Plan, dry_run: bool, output: &mut Output) -> Result<()> {
    show_managers(&plan.managers, output)?;
    for step in &plan.steps {
        let StepOut {
            event,
            path,
            action,
            why,
        } = StepOut::of(step);
        let would = if dry_run { "would be " } else { "" };
        let action = match action {
            "left" | "unchanged" => action.to_owned(),
            action => format!("{would}{}", action.replace('_', " ")),
        };
        let why = why.map_or(String::new(), |why| format!(": {}", one_line(&why)));
        let event = output.styled(STRONG, event);
        output.line(&format!("{event}  {action}  {}{why}", one_line(&path)))?;
    }
    if plan.steps.is_empty() {
        output.line("no codescout hooks are installed")?;
    }
    for advice in &plan.advice {
        output.put(&output.styled(anstyle::Style::new(), advice))?;
        output.line("")?;
    }
    Ok(())
}

fn show_status(repository: &Repository, output: &mut Output) -> Result<Found> {
    let status = hooks::status(repository, &sidecar_root_of(repository, &Environment::read()));
    let found = if status.is_installed() {
        Found::Something
    } else {
        Found::Nothing
    };
    if output.json {
        output.json(&status_out(repository, &status))?;
        return Ok(found);
    }
    output.line(&format!(
        "folder      {}",
        one_line(&status.folder.path.display().to_string())
    ))?;
    show_managers(&status.managers, output)?;
    for hook in &status.hooks {
        let HookOut {
            event,
            state,
            called,
            note,
            ..
        } = HookOut::of(hook);
        let called = if called { "called" } else { "not called" };
        let note = note.map_or(String::new(), |note| format!(": {}", one_line(&note)));
        let event = output.styled(STRONG, &format!("{event:<13}"));
        output.line(&format!("{event} {called}, {}{note}", state.replace('_', " ")))?;
    }
    if status.n_waiting > 0 {
        output.line(&format!("requests    {} waiting", status.n_waiting))?;
    }
    if let Some(entry) = &status.last_run {
        let why = entry
            .why
            .as_deref()
            .map_or(String::new(), |why| format!(": {}", one_line(why)));
        let what = format!(
            "{} {} {}",
            entry.event,
            one_line(&entry.reference),
            entry.outcome.word()
        );
        output.line(&format!("last run    {} {what}{why}", one_line(&entry.at)))?;
    }
    if !status.is_installed() {
        output.line("run codescout hooks install to install the missing hooks")?;
    }
    Ok(found)
}

fn show_managers(managers: &[Seen], output: &mut Output) -> Result<()> {
    for ManagerOut { name, evidence } in managers_out(managers) {
        output.line(&format!("manager     {name} ({})", one_line(&evidence)))?;
    }
    Ok(())
}

fn status_out(repository: &Repository, status: &Status) -> StatusOut {
    StatusOut {
        repo: repo(repository),
        folder: folder_out(&status.folder),
        managers: managers_out(&status.managers),
        installed: status.is_installed(),
        hooks: status.hooks.iter().map(HookOut::of).collect(),
        waiting: status.n_waiting,
        last_run: status.last_run.clone(),
        logs: status.logs.iter().map(|path| path.display().to_string()).collect(),
    }
}

fn repo(repository: &Repository) -> String {
    repository
        .work_dir()
        .unwrap_or(repository.git_dir())
        .display()
        .to_string()
}

fn folder_out(folder: &HooksFolder) -> FolderOut {
    FolderOut {
        folder: folder.path.display().to_string(),
        standing: match folder.standing {
            Standing::GitDir => "git_dir",
            Standing::WorkTree => "work_tree",
            Standing::Outside => "outside",
            Standing::Nowhere => "nowhere",
        },
    }
}

fn managers_out(managers: &[Seen]) -> Vec<ManagerOut> {
    let out = |seen: &Seen| ManagerOut {
        name: seen.manager.name(),
        evidence: seen.evidence.display().to_string(),
    };
    managers.iter().map(out).collect()
}

impl StepOut {
    fn of(step: &hooks::Step) -> Self {
        let (action, why) = match &step.action {
            Action::Created => ("created", None),
            Action::Added => ("added", None),
            Action::Chained => ("chained", None),
            Action::Updated => ("updated", None),
            Action::Unchanged => ("unchanged", None),
            Action::Removed => ("removed", None),
            Action::TakenOut => ("taken_out", None),
            Action::PutBack => ("put_back", None),
            Action::Left { why } => ("left", Some(why.clone())),
        };
        Self {
            event: step.event.name(),
            path: step.path.display().to_string(),
            action,
            why,
        }
    }
}

impl HookOut {
    fn of(hook: &HookStatus) -> Self {
        let state = match hook.state {
            HookState::Missing => "missing",
            HookState::Own => "own",
            HookState::Added => "added",
            HookState::Chained => "chained",
            HookState::Managed(_) => "managed",
            HookState::Replaced(_) => "replaced",
            HookState::Foreign => "foreign",
        };
        Self {
            event: hook.event.name(),
            path: hook.path.display().to_string(),
            state,
            called: hook.is_called,
            note: hook.note.clone(),
        }
    }
}
