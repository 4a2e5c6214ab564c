//! `codescout fleet`

use std::collections::HashMap;
use std::io::Read as _;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::args::{FleetAddArgs, FleetArgs, FleetCommand, FleetIndexArgs, FleetVerifyArgs, Global, PageArgs, Paged};
use super::import::trust_of;
use super::progress::CliProgress;
use super::render::{Output, note};
use super::{Found, INTERRUPTED, grep, op};
use crate::model::count::count;
use crate::session::{CallCtx, Context as _, Fed, Feeding, FleetFolder, OpError, Recorded, Result, Workspace, ensure};

/// Time between looks at the refs of a watched fleet.
const LOOK_EVERY: Duration = Duration::from_millis(300);

pub(super) fn run(global: &Global, args: &FleetArgs, output: &mut Output) -> Result<Found> {
    let folder = FleetFolder::at(args.dir.as_deref())?;
    let page = PageArgs::default();
    let open = || folder.open(&args.groups);
    let open_all = || {
        ensure!(
            args.groups.is_empty(),
            "this command is about all repositories; leave out --group"
        );
        folder.open(&[])
    };
    match &args.command {
        FleetCommand::Add(add) => run_add(&folder, add, &args.groups, output),
        FleetCommand::Remove { names } => {
            names.iter().try_for_each(|name| folder.remove(name))?;
            let links = folder.config()?.links;
            for (name, reader) in links.readers() {
                let (_, gone) = links.groups_of(&reader);
                if !gone.is_empty() {
                    note(&format!(
                        "reader {name} has groups without repositories: {}",
                        gone.join(", ")
                    ));
                }
            }
            Ok(Found::Something)
        }
        FleetCommand::List => list(&folder, &open()?, output),
        FleetCommand::Token { name } => {
            let token = folder.admit(name, &args.groups)?;
            if output.json {
                output.json(&json!({ "name": name, "token": token }))?;
            } else {
                output.line(&token)?;
            }
            Ok(Found::Something)
        }
        FleetCommand::Revoke { name } => {
            ensure!(
                args.groups.is_empty(),
                "this command is about all groups; leave out --group"
            );
            folder.revoke(name).map(|()| Found::Something)
        }
        FleetCommand::Status => status(&open_all()?, output),
        FleetCommand::Index(index) => open_all().and_then(|_| run_index(&folder, global, index, output)),
        FleetCommand::Verify(verify) => run_verify(&open_all()?, global, verify, output),
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
                .filter(|line| !line.is_empty() && !line.starts_with('#'))
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

fn list(folder: &FleetFolder, workspace: &Workspace, output: &mut Output) -> Result<Found> {
    let fleet = workspace.fleet.as_ref().context("no fleet")?;
    let links = workspace.config.links.all();
    let config = folder.config()?;
    let groups = workspace.config.links.scopes();
    let mut readers = config.links.readers();
    // A selected group lists its readers.
    let is_all = groups == config.links.scopes();
    readers.retain(|_, reader| is_all || reader.groups.iter().any(|group| groups.contains(group)));
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
        let readers = readers
            .iter()
            .map(|(name, reader)| json!({ "name": name, "groups": reader.groups }));
        output.json(&json!({
            "repositories": rows.collect::<Vec<_>>(),
            "readers": readers.collect::<Vec<_>>(),
        }))?;
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
        for (name, reader) in &readers {
            let groups = match reader.groups.as_slice() {
                [] => "all repositories".to_owned(),
                groups => format!("[{}]", groups.join(", ")),
            };
            output.line(&format!("reader {name}  {groups}"))?;
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
    let left_out = match n_left_out {
        0 => String::new(),
        n => format!(", {n} left out"),
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
    let links = workspace.config.links.all();
    let lost = fleet.lost_of(&links, &INTERRUPTED);
    if let Err(error) = &lost {
        output.error(error);
    }
    for link in links {
        let is_lost = lost.as_ref().is_ok_and(|lost| lost.contains(&link.name));
        let state = if is_lost {
            "not on the server"
        } else {
            fleet.state(&link, &workspace.config.links.scopes_of(&link.name))
        };
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
    Ok(match lost {
        Err(_) => Found::Unfinished,
        Ok(_) if n_behind > 0 => Found::Nothing,
        Ok(_) => Found::Something,
    })
}

fn run_index(folder: &FleetFolder, global: &Global, args: &FleetIndexArgs, output: &mut Output) -> Result<Found> {
    let mut errors: HashMap<String, String> = HashMap::new();
    let mut is_first = true;
    loop {
        let began = Instant::now();
        let failed = store(folder, global, args, is_first, output)?;
        // In a watched fleet, an error is shown when it changes.
        for (name, error) in &failed {
            if errors.get(name) != Some(&error.message) {
                output.error(error);
            }
        }
        output.flush()?;
        if !args.watch {
            return Ok(if failed.is_empty() {
                Found::Something
            } else {
                Found::Unfinished
            });
        }
        errors = failed.into_iter().map(|(name, error)| (name, error.message)).collect();
        is_first &= !errors.is_empty();
        std::thread::sleep(LOOK_EVERY.max(began.elapsed()));
        if INTERRUPTED.load(Ordering::SeqCst) {
            return Err(OpError::interrupted());
        }
    }
}

/// Stores what is new of the repositories, and removes those that are no longer in the settings. Returns errors by
/// repository.
fn store(
    folder: &FleetFolder,
    global: &Global,
    args: &FleetIndexArgs,
    is_first: bool,
    output: &mut Output,
) -> Result<Vec<(String, OpError)>> {
    let workspace = folder.open(&[])?;
    let fleet = workspace.fleet.as_ref().context("no fleet")?;
    let links = fleet.selected(&workspace, &args.names)?;
    let lost = if is_first {
        fleet.lost_of(&links, &INTERRUPTED)
    } else {
        Ok(Vec::new())
    };
    let lost = match lost {
        Ok(lost) => lost,
        Err(error) if args.watch => return Ok(vec![("Qdrant".to_owned(), error)]),
        Err(error) => return Err(error),
    };
    let progress = CliProgress::new(global.quiet);
    let pull = args.pull.then(|| trust_of(args.trust.as_deref())).transpose()?;
    let mut failed = Vec::new();
    for link in links {
        let call = CallCtx::unlimited(progress.ctx());
        let feeding = Feeding {
            is_lost: lost.contains(&link.name),
            pull,
        };
        match fleet.feed(&workspace, &link, feeding, &call) {
            Ok(Some(fed)) => say(&link.name, &fed, output)?,
            Ok(None) => {}
            Err(_) if INTERRUPTED.load(Ordering::SeqCst) => return Err(OpError::interrupted()),
            Err(error) => failed.push((link.name.clone(), about(&link.name, error))),
        }
    }
    if args.names.is_empty() {
        let call = CallCtx::unlimited(progress.ctx());
        for name in fleet.removed(&workspace) {
            match fleet.forget(&name, &call) {
                Ok(n_points) => output.line(&format!("{name}: removed {n_points} points"))?,
                Err(error) => failed.push((name.clone(), about(&name, error))),
            }
        }
    }
    Ok(failed)
}

/// Names the repository of an error.
fn about(name: &str, error: OpError) -> OpError {
    OpError {
        message: format!("{name}: {error}"),
        ..error
    }
}

fn say(name: &str, fed: &Fed, output: &mut Output) -> Result<()> {
    let Fed {
        recorded,
        n_put,
        n_removed,
        n_pulled,
        elapsed,
    } = fed;
    if output.json {
        let row: Value = json!({
            "name": name,
            "stored": recorded,
            "points_stored": n_put,
            "points_removed": n_removed,
            "files_pulled": n_pulled,
            "elapsed_ms": elapsed.as_millis() as u64,
        });
        output.json(&row)?;
    } else {
        let pulled = match n_pulled {
            0 => String::new(),
            n => format!("; took {} from the pushed index", count(*n, "file")),
        };
        output.line(&format!(
            "{name}: {}{pulled}; stored {n_put} points, removed {n_removed} in {:.1} s",
            described(recorded),
            elapsed.as_secs_f64()
        ))?;
    }
    Ok(())
}

fn run_verify(workspace: &Workspace, global: &Global, args: &FleetVerifyArgs, output: &mut Output) -> Result<Found> {
    let fleet = workspace.fleet.as_ref().context("no fleet")?;
    let (mut rows, mut n_different, mut n_failed) = (Vec::new(), 0, 0);
    for link in fleet.selected(workspace, &args.names)? {
        let progress = CliProgress::new(global.quiet);
        let call = CallCtx::unlimited(progress.ctx());
        let checked = fleet.check(workspace, &link, &call).and_then(|checked| {
            let is_repaired = args.repair && !checked.is_sound;
            let feeding = Feeding {
                is_lost: true,
                pull: None,
            };
            let fed = is_repaired
                .then(|| fleet.feed(workspace, &link, feeding, &call))
                .transpose()?;
            Ok((checked, fed.flatten()))
        });
        let (checked, fed) = match checked {
            Ok(checked) => checked,
            Err(_) if INTERRUPTED.load(Ordering::SeqCst) => return Err(OpError::interrupted()),
            Err(error) => {
                output.error(&about(&link.name, error));
                n_failed += 1;
                continue;
            }
        };
        n_different += usize::from(!checked.is_sound);
        if output.json {
            rows.push(json!({
                "name": link.name,
                "points": checked.n_points,
                "missing": checked.n_missing,
                "extra": checked.n_extra,
                "sound": checked.is_sound,
            }));
            continue;
        }
        let (n, missing, extra) = (checked.n_points, checked.n_missing, checked.n_extra);
        let record = if checked.is_sound || missing + extra > 0 {
            ""
        } else {
            ", but another record"
        };
        output.line(&format!(
            "{}: {n} points, {missing} missing, {extra} extra{record}",
            link.name
        ))?;
        if let Some(fed) = fed {
            say(&link.name, &fed, output)?;
        }
    }
    if output.json {
        output.json(&json!({ "repositories": rows }))?;
    }
    Ok(match (n_failed, n_different) {
        (0, 0) => Found::Something,
        (0, _) if args.repair => Found::Something,
        (0, _) => Found::Nothing,
        _ => Found::Unfinished,
    })
}
