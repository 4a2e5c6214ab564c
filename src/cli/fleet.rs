//! `codescout fleet`

use std::io::Read as _;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::args::{FleetAddArgs, FleetArgs, FleetCommand, FleetIndexArgs, FleetVerifyArgs, Global, PageArgs, Paged};
use super::progress::CliProgress;
use super::render::Output;
use super::{Found, INTERRUPTED, grep, op};
use crate::session::{CallCtx, Context as _, Fed, FleetFolder, OpError, Recorded, Result, Workspace};

/// Time between looks at the refs of a watched fleet.
const LOOK_EVERY: Duration = Duration::from_millis(300);

pub(super) fn run(global: &Global, args: &FleetArgs, output: &mut Output) -> Result<Found> {
    let folder = FleetFolder::at(args.dir.as_deref())?;
    let page = PageArgs::default();
    let open = || folder.open(&args.groups);
    match &args.command {
        FleetCommand::Add(add) => run_add(&folder, add, &args.groups, output),
        FleetCommand::Remove { names } => {
            names.iter().try_for_each(|name| folder.remove(name))?;
            Ok(Found::Something)
        }
        FleetCommand::List => list(&open()?, output),
        FleetCommand::Status => status(&open()?, output),
        FleetCommand::Index(index) => run_index(&open()?, global, index, output),
        FleetCommand::Verify(verify) => run_verify(&open()?, global, verify, output),
        FleetCommand::Search(Paged { op: search, page }) => op::run("search", search, page, open()?, global, output),
        FleetCommand::Grep(grep) => grep::run(open()?, global, grep, output),
        FleetCommand::Symbol(Paged { op: symbol, page }) => op::run("symbol", symbol, page, open()?, global, output),
        FleetCommand::Graph(Paged { op: graph, page }) => op::run("graph", graph, page, open()?, global, output),
        FleetCommand::Outline(Paged { op, page }) => op::run("outline", op, page, open()?, global, output),
        FleetCommand::Read(read) => op::run("read", read, &page, open()?, global, output),
        FleetCommand::History(Paged { op, page }) => op::run("history", op, page, open()?, global, output),
    }
}

fn run_add(folder: &FleetFolder, args: &FleetAddArgs, groups: &[String], output: &mut Output) -> Result<Found> {
    let mut folders = args.folders.clone();
    if let Some(list) = &args.from_list {
        let text = if list == Path::new("-") {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text)?;
            text
        } else {
            std::fs::read_to_string(list).with_context(|| format!("cannot read {}", list.display()))?
        };
        folders.extend(
            text.lines()
                .map(str::trim)
                .filter(|line| !line.is_empty())
                .map(str::to_owned),
        );
    }
    let (mut added, mut n_failed) = (Vec::new(), 0);
    for typed in &folders {
        let (name, path) = match typed.split_once('=') {
            Some((name, path)) if !name.contains('/') => (Some(name), path),
            _ => (None, typed.as_str()),
        };
        match folder.add(name, Path::new(path), args.branch.as_deref(), groups) {
            Ok(name) if output.json => added.push(json!({ "name": name, "path": path })),
            Ok(name) => output.line(&format!("{name}  {path}"))?,
            Err(error) => {
                output.error(&error);
                n_failed += 1;
            }
        }
    }
    if output.json {
        output.json(&json!({ "repositories": added }))?;
    }
    Ok(if n_failed > 0 {
        Found::Unfinished
    } else {
        Found::Something
    })
}

fn list(workspace: &Workspace, output: &mut Output) -> Result<Found> {
    let fleet = workspace.fleet.as_ref().context("no fleet")?;
    let links = workspace.config.links.all();
    let rows = links.iter().map(|link| {
        let recorded = fleet.recorded(&link.name);
        (link, workspace.config.links.scopes_of(&link.name), recorded)
    });
    if output.json {
        let rows = rows.map(|(link, groups, recorded)| {
            let mut row = json!({ "name": link.name, "path": link.path, "groups": groups });
            if let Some(recorded) = recorded {
                row["stored"] = json!(recorded);
            }
            row
        });
        output.json(&json!({ "repositories": rows.collect::<Vec<_>>() }))?;
    } else {
        for (link, groups, recorded) in rows {
            let stored = recorded.map_or_else(|| "not stored".to_owned(), |recorded| described(&recorded));
            let groups = if groups.is_empty() {
                String::new()
            } else {
                format!("  [{}]", groups.join(", "))
            };
            output.line(&format!("{}  {}{groups}  {stored}", link.name, link.path.display()))?;
        }
    }
    Ok(if links.is_empty() {
        Found::Nothing
    } else {
        Found::Something
    })
}

fn described(recorded: &Recorded) -> String {
    let Recorded {
        commit,
        n_files,
        n_chunks,
        n_left_out,
        ..
    } = recorded;
    let left_out = if *n_left_out > 0 {
        format!(", {n_left_out} files left out")
    } else {
        String::new()
    };
    format!(
        "{} {n_files} files, {n_chunks} chunks{left_out}",
        &commit[..commit.len().min(10)]
    )
}

fn status(workspace: &Workspace, output: &mut Output) -> Result<Found> {
    let fleet = workspace.fleet.as_ref().context("no fleet")?;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    let (mut rows, mut n_behind) = (Vec::new(), 0);
    for link in workspace.config.links.all() {
        let state = fleet.state(&link)?;
        n_behind += usize::from(state != "up to date");
        let age = fleet
            .recorded(&link.name)
            .map(|recorded| now.saturating_sub(recorded.at));
        rows.push(json!({ "name": link.name, "state": state, "age_s": age }));
    }
    for name in fleet.removed(workspace) {
        n_behind += 1;
        rows.push(json!({ "name": name, "state": "removed, still stored" }));
    }
    if output.json {
        output.json(&json!({ "collection": fleet.collection_name(), "repositories": rows }))?;
    } else {
        for row in &rows {
            let text = |key: &str| row[key].as_str().unwrap_or_default();
            output.line(&format!("{}  {}", text("name"), text("state")))?;
        }
    }
    Ok(if n_behind > 0 { Found::Nothing } else { Found::Something })
}

fn run_index(workspace: &Workspace, global: &Global, args: &FleetIndexArgs, output: &mut Output) -> Result<Found> {
    let fleet = workspace.fleet.as_ref().context("no fleet")?;
    let mut is_first = true;
    loop {
        let mut n_failed = 0;
        for link in fleet.selected(workspace, &args.names)? {
            let progress = CliProgress::new(global.quiet);
            let call = CallCtx::unlimited(progress.ctx());
            match fleet.feed(workspace, &link, &call) {
                Ok(Some(fed)) => say(&link.name, &fed, output)?,
                Ok(None) => {}
                Err(_) if INTERRUPTED.load(Ordering::SeqCst) => return Err(OpError::interrupted()),
                // A watched fleet is tried again; the error is said once.
                Err(error) if is_first || !args.watch => {
                    n_failed += 1;
                    output.error(&OpError {
                        message: format!("{}: {error}", link.name),
                        ..error
                    });
                }
                Err(error) => tracing::debug!("{}: {error:#}", link.name),
            }
        }
        if args.names.is_empty() {
            let progress = CliProgress::new(global.quiet);
            let call = CallCtx::unlimited(progress.ctx());
            for name in fleet.removed(workspace) {
                let n_points = fleet.forget(&name, &call)?;
                output.line(&format!("{name}: removed {n_points} points"))?;
            }
        }
        output.flush()?;
        if !args.watch {
            return Ok(if n_failed > 0 {
                Found::Unfinished
            } else {
                Found::Something
            });
        }
        is_first = false;
        std::thread::sleep(LOOK_EVERY);
        if INTERRUPTED.load(Ordering::SeqCst) {
            return Err(OpError::interrupted());
        }
    }
}

fn say(name: &str, fed: &Fed, output: &mut Output) -> Result<()> {
    let Fed {
        recorded,
        n_put,
        n_removed,
        elapsed,
    } = fed;
    if output.json {
        let row: Value = json!({
            "name": name,
            "stored": recorded,
            "points_stored": n_put,
            "points_removed": n_removed,
            "elapsed_ms": elapsed.as_millis() as u64,
        });
        output.json(&row)?;
    } else {
        output.line(&format!(
            "{name}: {}; stored {n_put} points, removed {n_removed} in {:.1} s",
            described(recorded),
            elapsed.as_secs_f64()
        ))?;
    }
    Ok(())
}

fn run_verify(workspace: &Workspace, global: &Global, args: &FleetVerifyArgs, output: &mut Output) -> Result<Found> {
    let fleet = workspace.fleet.as_ref().context("no fleet")?;
    let (mut rows, mut n_different) = (Vec::new(), 0);
    for link in fleet.selected(workspace, &args.names)? {
        let progress = CliProgress::new(global.quiet);
        let call = CallCtx::unlimited(progress.ctx());
        let checked = fleet.check(workspace, &link, args.repair, &call)?;
        let is_different = checked.n_missing > 0 || checked.n_extra > 0;
        n_different += usize::from(is_different);
        if output.json {
            rows.push(json!({
                "name": link.name,
                "points": checked.n_points,
                "missing": checked.n_missing,
                "extra": checked.n_extra,
            }));
        } else {
            let (n, missing, extra) = (checked.n_points, checked.n_missing, checked.n_extra);
            output.line(&format!(
                "{}: {n} points, {missing} missing, {extra} too many",
                link.name
            ))?;
        }
        // Stores nothing unless something is to be repaired.
        if args.repair
            && let Some(fed) = fleet.feed(workspace, &link, &call)?
            && !output.json
        {
            say(&link.name, &fed, output)?;
        }
    }
    if output.json {
        output.json(&json!({ "repositories": rows }))?;
    }
    Ok(if n_different > 0 && !args.repair {
        Found::Nothing
    } else {
        Found::Something
    })
}
