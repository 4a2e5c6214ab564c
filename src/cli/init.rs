//! `codescout init`

use std::io::{IsTerminal, stdin};

use serde::Serialize;

use super::args::{Global, InitArgs};
use super::input::read_line;
use super::progress::CliProgress;
use super::render::{Output, one_line};
use super::{Found, INTERRUPTED};
use crate::model::count::count;
use crate::session::{Context as _, OpError, Result, Workspace};
use crate::setup::hooks::{self, Wishes};

#[derive(Debug, Serialize)]
struct InitOut {
    repo: String,
    sidecar: String,
    tree: Option<String>,
    new_blobs: usize,
    new_chunks: usize,
    /// True if git runs all hooks.
    hooks: bool,
    /// Commands to try next.
    next: Vec<&'static str>,
}

const INSTALL_HOOKS: &str = "codescout hooks install";

/// Commands to try next, each with a description.
const NEXT: [(&str, &str); 5] = [
    (
        "codescout search \"where are errors shown\"",
        "search in your own words",
    ),
    ("codescout outline", "show what is in this repository"),
    (
        INSTALL_HOOKS,
        "update the index in the background, so that queries do not wait for it",
    ),
    ("codescout install --list", "list coding agents that can use codescout"),
    ("codescout doctor", "check for problems"),
];

pub(super) fn run(workspace: &Workspace, global: &Global, args: &InitArgs, output: &mut Output) -> Result<Found> {
    let repository = &workspace.repository;
    let root = repository.place();
    let mut answer = InitOut {
        repo: root.display().to_string(),
        sidecar: workspace.storage.root().display().to_string(),
        tree: None,
        new_blobs: 0,
        new_chunks: 0,
        hooks: hooks::status(repository, workspace.storage.root()).is_installed(),
        next: NEXT.map(|(command, _)| command).to_vec(),
    };
    if let Some(target) = workspace.target(&global.reference)? {
        let outcome = workspace.ingest(target, &CliProgress::new(global.quiet), &INTERRUPTED)?;
        if outcome.interrupted {
            return Err(OpError::interrupted_with("the files indexed so far are kept"));
        }
        answer.tree = Some(target.tree.to_string());
        answer.new_blobs = outcome.n_new_blobs;
        answer.new_chunks = outcome.n_new_chunks;
    }
    if !answer.hooks && is_hooks_wanted(args, output)? {
        let advice = install_hooks(workspace)?;
        answer.hooks = advice.is_empty();
        advice.iter().for_each(|line| output.remark(line));
    }
    if output.json {
        output.json(&answer)?
    } else {
        show(&answer, output)?
    }
    Ok(Found::Something)
}

/// Returns true if hooks should be installed, according to the flags or the user's answer on a terminal.
fn is_hooks_wanted(args: &InitArgs, output: &mut Output) -> Result<bool> {
    if args.hooks || args.no_hooks || output.json || !stdin().is_terminal() || !output.is_terminal() {
        return Ok(args.hooks);
    }
    output.put("Install git hooks that update the index in the background? [y/N] ")?;
    output.flush()?;
    let line = read_line()?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

/// Installs the hooks. Returns instructions for the user if a hook manager requires manual steps.
fn install_hooks(workspace: &Workspace) -> Result<Vec<String>> {
    let program = std::env::current_exe().context("cannot determine the path of this program")?;
    let plan = hooks::install(&workspace.repository, &program, Wishes::default())?;
    plan.apply()?;
    Ok(plan.advice)
}

fn show(answer: &InitOut, output: &mut Output) -> Result<()> {
    output.line(&match (&answer.tree, answer.new_blobs) {
        (None, _) => "no commits yet; queries search the files on disk".to_owned(),
        (Some(_), 0) => "the index is up to date".to_owned(),
        (Some(_), n_blobs) => format!(
            "indexed {} in {}",
            count(n_blobs, "file"),
            count(answer.new_chunks, "chunk")
        ),
    })?;
    let sidecar = one_line(&answer.sidecar);
    output.line(&format!(
        "the index is in {sidecar}, ignored by git, and can be deleted at any time"
    ))?;
    if answer.hooks {
        output.line("hooks are installed; codescout hooks uninstall removes them")?;
    }
    output.line("next steps:")?;
    for (command, purpose) in NEXT {
        if !(answer.hooks && command == INSTALL_HOOKS) {
            output.line(&format!("  {command:<44} {purpose}"))?;
        }
    }
    Ok(())
}
