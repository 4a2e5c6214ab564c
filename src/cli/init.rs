//! `codescout init`: index, hooks, coding agents and CI file in one command.

mod record;
mod steps;

use serde::Serialize;

use self::record::Record;
use self::steps::{Setting, State, Step};
use super::Found;
use super::args::{Global, InitArgs};
use super::render::{Output, one_line};
use crate::session::{Result, Workspace};

/// Commands to try next, each with a description.
const NEXT: [(&str, &str); 3] = [
    (
        "codescout search \"where are errors shown\"",
        "search in your own words",
    ),
    ("codescout outline", "show what is in this repository"),
    ("codescout doctor", "check for problems"),
];

#[derive(Debug, Serialize)]
struct InitOut<'a> {
    repo: String,
    sidecar: String,
    /// True if the steps were done, or there were none to do.
    done: bool,
    steps: Vec<StepOut<'a>>,
    /// Commands to try next.
    next: Vec<&'static str>,
}

#[derive(Debug, Serialize)]
struct StepOut<'a> {
    part: &'static str,
    what: &'a str,
    state: &'static str,
    /// The result, or the reason why it is not done.
    detail: Option<&'a str>,
    /// What the user should do or know afterwards.
    notes: &'a [String],
}

impl<'a> From<&'a Step> for StepOut<'a> {
    fn from(step: &'a Step) -> Self {
        let (state, detail) = match &step.state {
            State::Planned => ("planned", None),
            State::Done(how) => ("done", how.as_deref()),
            State::Already => ("already", None),
            State::Left(why) => ("left", Some(why.as_str())),
            State::Failed(why) => ("failed", Some(why.as_str())),
        };
        Self {
            part: step.part,
            what: &step.what,
            state,
            detail,
            notes: &step.notes,
        }
    }
}

pub(super) fn run(workspace: &Workspace, global: &Global, args: &InitArgs, output: &mut Output) -> Result<Found> {
    let setting = Setting::of(workspace, global, args.undo);
    let mut record = Record::read(workspace)?;
    let mut steps = if args.undo {
        setting.undoing(&record)
    } else {
        setting.doing(&args.without)?
    };
    let is_needed = steps.iter().any(|step| step.state == State::Planned);
    if !output.json && is_needed {
        steps.iter().try_for_each(|step| output.line(&line(step)))?;
    }
    let can_do = !is_needed || args.yes || (!output.json && output.can_ask() && output.ask("Do this?")?);
    if can_do {
        for step in steps.iter_mut().filter(|step| step.state == State::Planned) {
            setting.apply(step, &mut record)?;
            if !output.json {
                output.line(&line(step))?;
            }
        }
    }
    if output.json {
        output.json(&InitOut {
            repo: workspace.repository.place().display().to_string(),
            sidecar: workspace.storage.root().display().to_string(),
            done: can_do,
            steps: steps.iter().map(StepOut::from).collect(),
            next: NEXT.map(|(command, _)| command).to_vec(),
        })?;
    } else if !can_do {
        let undo = if args.undo { " --undo" } else { "" };
        output.remark(&format!(
            "nothing was changed; codescout init{undo} --yes does it without asking"
        ));
    } else {
        show_rest(workspace, args, &steps, is_needed, output)?;
    }
    let has_failed = steps.iter().any(|step| matches!(step.state, State::Failed(_)));
    Ok(match (can_do, has_failed) {
        (false, _) => Found::Nothing,
        (true, true) => Found::Unfinished,
        (true, false) => Found::Something,
    })
}

/// Describes a step and its state on one line, or more if it is left with a longer explanation.
fn line(step: &Step) -> String {
    let what = one_line(&step.what);
    match &step.state {
        State::Planned => format!("- {what}"),
        State::Done(None) => format!("done: {what}"),
        State::Done(Some(how)) => format!("done: {what} ({how})"),
        State::Already => format!("already done: {what}"),
        State::Left(why) => format!("left: {what}: {}", indented(why)),
        State::Failed(why) => format!("failed: {what}: {}", indented(why)),
    }
}

/// Returns a text with all lines but the first indented.
fn indented(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(one_line).collect();
    lines.join("\n    ")
}

fn show_rest(
    workspace: &Workspace,
    args: &InitArgs,
    steps: &[Step],
    was_needed: bool,
    output: &mut Output,
) -> Result<()> {
    if !was_needed {
        steps.iter().try_for_each(|step| output.line(&line(step)))?;
    }
    let sidecar = one_line(&workspace.storage.root().display().to_string());
    if args.undo {
        if steps.is_empty() {
            output.line("there is nothing to undo")?;
        }
        output.line(&format!("the index stays in {sidecar}, and can be deleted at any time"))?;
        return Ok(());
    }
    for note in steps.iter().flat_map(|step| &step.notes) {
        output.line(&format!("next: {}", one_line(note)))?;
    }
    output.line(&format!(
        "the index is in {sidecar}, ignored by git, and can be deleted at any time; codescout init --undo removes the rest"
    ))?;
    output.line("next steps:")?;
    for (command, purpose) in NEXT {
        output.line(&format!("  {command:<44} {purpose}"))?;
    }
    Ok(())
}
