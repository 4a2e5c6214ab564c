//! `codescout precise`

use std::time::Duration;

use serde::Serialize;

use super::args::{Global, PreciseArgs, PreciseCommand, RunArgs};
use super::import::scip::{ImportScipOut, import};
use super::render::{Output, note};
use super::{Found, INTERRUPTED};
use crate::config::Overrides;
use crate::precise::Indexer;
use crate::session::{Context as _, IndexerOptions, OpError, ReadyIndexer, Result, Workspace};

#[derive(Debug, Serialize)]
struct RunOut {
    program: String,
    network_blocked: bool,
    files_left_out: usize,
    #[serde(flatten)]
    imported: ImportScipOut,
}

pub(super) fn run(global: &Global, args: &PreciseArgs, output: &mut Output) -> Result<Found> {
    let PreciseCommand::Run(args) = &args.command;
    let indexer = Indexer::of_language(&args.language).context("no indexer is known for this language")?;
    let mut workspace = Workspace::open(&global.repo, &Overrides::default())?;
    workspace.start_in(&global.repo);
    let ready = workspace.ready_indexer(indexer, &global.reference, args.allow_network)?;
    if !global.quiet {
        note(&announcement(&ready, args));
    }
    if !may_execute(&ready, args, output)? {
        output.line("not run")?;
        return Ok(Found::Nothing);
    }
    let options = IndexerOptions {
        timeout: Duration::from_secs(args.timeout),
        max_memory_bytes: args.max_memory,
        shows_output: global.verbose > 0,
    };
    let made = workspace.run_indexer(&ready, options, &INTERRUPTED)?;
    let imported = import(&workspace, &made.path, &revision(&ready), global)?;
    if output.json {
        output.json(&RunOut {
            program: ready.program.display().to_string(),
            network_blocked: ready.blocks_network(),
            files_left_out: made.n_left_out,
            imported,
        })?;
    } else {
        imported.print(output)?;
    }
    Ok(Found::Something)
}

/// Returns the id of the commit, or of the tree if the revision is one.
fn revision(ready: &ReadyIndexer) -> String {
    let target = ready.target;
    target
        .commit
        .map_or_else(|| target.tree.to_string(), |commit| commit.to_string())
}

/// Describes what is about to run.
fn announcement(ready: &ReadyIndexer, args: &RunArgs) -> String {
    let network = match (args.allow_network, ready.blocks_network()) {
        (true, _) => "with network",
        (false, true) => "without network",
        (false, false) => "with network, which cannot be blocked here",
    };
    let executes = match ready.indexer.executes {
        Some(what) => format!("it executes parts of the repository: {what}"),
        None => "it executes nothing of the repository".to_owned(),
    };
    let (program, revision) = (ready.program.display(), revision(ready));
    format!("running {program} on a checkout of {revision:.12}, {network}; {executes}")
}

/// Returns true if the indexer executes nothing of the repository, or the user allows it.
fn may_execute(ready: &ReadyIndexer, args: &RunArgs, output: &mut Output) -> Result<bool> {
    let Some(what) = ready.indexer.executes.filter(|_| !args.allow_build) else {
        return Ok(true);
    };
    let program = ready.indexer.program;
    if output.json || !output.can_ask() {
        return Err(OpError::new(
            format!("{program} executes parts of the repository: {what}"),
            "use --allow-build if you trust the repository",
        ));
    }
    Ok(output.ask(&format!("Run {program}?"))?)
}
