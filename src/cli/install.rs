//! `codescout install` and `codescout uninstall`

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde::Serialize;

use super::Found;
use super::args::{ClientArgs, ExtraArg, Global, InstallArgs, UninstallArgs};
use super::render::{ADDED, FAINT, MATCH, Output, STRONG, one_line};
use crate::git::Repository;
use crate::session::{Context as _, OpError, Result};
use crate::setup::install::{
    Act, Change, Client, InstallError, Part, Places, Plan, Request, Scope, Server, TOKEN_VARIABLE, Uses, clients,
    config_file, is_installed,
};

/// The default name of the server in configurations.
pub(super) const SERVER_NAME: &str = "codescout";
/// Maximum length of a shown line. A configuration may consist of one long line that contains everything, including
/// tokens.
const MAX_SHOWN_CHARACTERS: usize = 160;

#[derive(Debug, Serialize)]
struct InstallOut {
    client: &'static str,
    scope: &'static str,
    name: String,
    /// True if files were changed, or would be with `--dry-run`.
    changed: bool,
    dry_run: bool,
    files: Vec<FileOut>,
    /// What a project's files have in place of what install writes, although this user has not installed it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    differs: Vec<String>,
    next: Vec<String>,
}

#[derive(Debug, Serialize)]
struct FileOut {
    file: String,
    part: &'static str,
    act: &'static str,
    diff: String,
    backup: Option<String>,
}

#[derive(Debug, Serialize)]
struct ListOut {
    clients: Vec<ListedOut>,
}

#[derive(Debug, Serialize)]
struct ListedOut {
    client: &'static str,
    title: &'static str,
    /// A program or folder that indicates that the client is installed.
    found: Option<String>,
    user_file: Option<String>,
    project_file: Option<String>,
    /// Configuration files with an entry for the server.
    installed: Vec<String>,
}

pub(super) fn run(global: &Global, args: &InstallArgs, output: &mut Output) -> Result<Found> {
    match args.client.filter(|_| !args.list) {
        Some(client) => install(global, client, args, output),
        None => {
            let (found, absent) = list(global, &args.name, output)?;
            if args.list || output.json {
                return Ok(found);
            }
            offer(global, &absent, args, output)?;
            Ok(found)
        }
    }
}

/// Offers to configure the agents that were found, or says how to do it.
fn offer(global: &Global, absent: &[&'static Client], args: &InstallArgs, output: &mut Output) -> Result<()> {
    for client in absent {
        let needs_roots = client.starts_anywhere && args.roots.is_empty();
        if needs_roots || !output.can_ask() {
            let roots = if needs_roots { " --root DIR" } else { "" };
            output.remark(&format!(
                "to configure {}: codescout install {}{roots}",
                client.title, client.id
            ));
        } else if output.ask(&format!("Configure {}?", client.title))? {
            install(global, client, args, output)?;
        }
    }
    Ok(())
}

fn install(global: &Global, client: &Client, args: &InstallArgs, output: &mut Output) -> Result<Found> {
    let mut request = request(&args.common, &args.name)?;
    let places = places(global, request.scope)?;
    request.instructions = args.instructions;
    request.skill = args.with.contains(&ExtraArg::Skill);
    request.subagent = args.with.contains(&ExtraArg::Subagent);
    request.hooks = args.with.contains(&ExtraArg::Hooks);
    request.force = args.force;
    request.program = program(request.scope, &places)?;
    config_file(client, &request, &places).map_err(|error| hinted(client, error))?;
    let server = server(client, &request, args)?;
    let plan = Plan::install(client, &server, &request, &places).map_err(|error| {
        let is_text = matches!(error, InstallError::Text { .. });
        let error = hinted(client, error);
        match (client.limit(), client.by_hand(&request.name, &server)) {
            (Some(limit), Some(entry)) if is_text => {
                let gap = if entry.contains('\n') { '\n' } else { ' ' };
                error.with_hint(format!("nothing was changed; {limit}: add this by hand:{gap}{entry}"))
            }
            _ => error,
        }
    })?;
    if !confirm_planted(&plan, &request, args, output)? {
        return report(client, &request, &plan, Done::Declined, Vec::new(), output);
    }
    let mut next = plan.next.clone();
    if args.http.is_some() {
        next.push(format!(
            "set {TOKEN_VARIABLE} to the server's token in the environment of {}; it is not stored in a file",
            client.title
        ));
    }
    let done = settle(&plan, &args.common, output)?;
    forget_uses(client, &request, &places, done)?;
    report(client, &request, &plan, done, next, output)
}

pub(super) fn run_uninstall(global: &Global, args: &UninstallArgs, output: &mut Output) -> Result<Found> {
    let mut request = request(&args.common, &args.name)?;
    let places = places(global, request.scope)?;
    request.program = program(request.scope, &places)?;
    let plan = Plan::uninstall(args.client, &request, &places).map_err(|error| hinted(args.client, error))?;
    let done = settle(&plan, &args.common, output)?;
    forget_uses(args.client, &request, &places, done)?;
    report(args.client, &request, &plan, done, Vec::new(), output)
}

/// Returns the clients that are found on this machine and have no server of this name, in either scope.
pub(super) fn absent(places: &Places, name: &str) -> Vec<&'static Client> {
    let has_server = |client: &Client| {
        let mut scopes = [Scope::User, Scope::Project].into_iter();
        scopes.any(|scope| is_installed(client, scope, name, places).is_some())
    };
    let found = clients().iter().filter(|client| client.trace(places).is_some());
    found.filter(|client| !has_server(client)).collect()
}

/// Returns the clients that have a server of this name because `init` added it in other clones, with its file.
pub(super) fn added_elsewhere(places: &Places, name: &str, clone: &Path) -> Vec<(&'static Client, PathBuf)> {
    let with_file = |client: &'static Client| Some((client, is_installed(client, Scope::User, name, places)?));
    let is_used = |client: &Client| {
        let clones = Uses::of(client, places).clones();
        !clones.is_empty() && clones.iter().all(|other| other != clone)
    };
    let used = clients().iter().filter(|client| is_used(client));
    used.filter_map(with_file).collect()
}

/// Plans to add the server to a client for all projects of the user.
pub(super) fn user_plan(client: &Client, places: &Places) -> Result<Plan> {
    let request = user_request(places)?;
    let server = client.stdio(request.scope, &request.program, &[]);
    Plan::install(client, &server, &request, places).map_err(|error| hinted(client, error))
}

/// Plans to undo [`user_plan`].
pub(super) fn user_removal(client: &Client, places: &Places) -> Result<Plan> {
    Plan::uninstall(client, &user_request(places)?, places).map_err(|error| hinted(client, error))
}

fn user_request(places: &Places) -> Result<Request> {
    Ok(Request {
        name: SERVER_NAME.to_owned(),
        program: program(Scope::User, places)?,
        ..Request::default()
    })
}

fn request(common: &ClientArgs, name: &str) -> Result<Request> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.is_empty() || name.len() > 32 || !name.chars().all(is_part) {
        return Err(OpError::new(
            format!("invalid server name {name:?}"),
            "use 1 to 32 letters, digits, - and _",
        ));
    }
    Ok(Request {
        scope: common.scope.into(),
        name: name.to_owned(),
        ..Request::default()
    })
}

/// Returns the folders of the user and, for project scope, the worktree.
fn places(global: &Global, scope: Scope) -> Result<Places> {
    let project = match scope {
        Scope::User => None,
        Scope::Project => Some(work_dir(&global.repo)?),
    };
    Places::read(project).ok_or_else(|| {
        let hint = "set HOME (on Windows USERPROFILE)".to_owned();
        let message = "cannot determine the home directory".to_owned();
        OpError::new(message, hint)
    })
}

fn work_dir(path: &Path) -> Result<PathBuf> {
    let repository = Repository::discover(path)?;
    let root = repository
        .work_dir()
        .context("a bare repository has no worktree for project configuration")?;
    Ok(root.to_owned())
}

fn server(client: &Client, request: &Request, args: &InstallArgs) -> Result<Server> {
    if let Some(url) = &args.http {
        return Ok(Server::Http { url: checked(url)? });
    }
    let roots = roots(client, request.scope, &args.roots)?;
    let mut options: Vec<String> = roots.into_iter().flat_map(|root| ["--root".to_owned(), root]).collect();
    let profiles = args.profiles.iter().filter_map(ValueEnum::to_possible_value);
    let mut profiles: Vec<String> = profiles.map(|profile| profile.get_name().to_owned()).collect();
    let mut seen = HashSet::new();
    profiles.retain(|profile| seen.insert(profile.clone()));
    if !profiles.is_empty() {
        options.extend(["--profile".to_owned(), profiles.join(",")]);
    }
    Ok(client.stdio(request.scope, &request.program, &options))
}

/// Returns the program as clients start it. Project files are committed, so they must not contain paths of this machine.
fn program(scope: Scope, places: &Places) -> Result<String> {
    if scope == Scope::Project {
        return Ok("codescout".to_owned());
    }
    let program = std::env::current_exe().context("cannot determine the path of this program")?;
    let program = places.stable_path(&program);
    let shown = program.display();
    let text = program.to_str().map(str::to_owned);
    text.with_context(|| format!("the path of this program is not UTF-8: {shown}"))
}

/// Returns the folders below which calls may name repositories, as they are written to the configuration. A client that
/// does not start the server in the open project needs at least one.
fn roots(client: &Client, scope: Scope, given: &[PathBuf]) -> Result<Vec<String>> {
    if scope == Scope::Project && !given.is_empty() {
        let message = "--root cannot be used with --scope project: project files are committed".to_owned();
        let hint = "use --scope user".to_owned();
        return Err(OpError::new(message, hint));
    }
    if scope == Scope::User && client.starts_anywhere && given.is_empty() {
        return Err(OpError::new(
            format!(
                "{} does not start the server in the open project, so it needs a directory with your repositories",
                client.title
            ),
            "add --root DIR; agents then pass a repository below it as repo",
        ));
    }
    let written = |root: &PathBuf| {
        let real = std::fs::canonicalize(root).with_context(|| format!("cannot use the root {}", root.display()))?;
        let text = real.to_str().map(str::to_owned);
        text.with_context(|| format!("the path of this directory is not UTF-8: {}", real.display()))
    };
    given.iter().map(written).collect()
}

/// Checks the URL of a server. It must not contain credentials, because the configuration is shown and may be
/// committed.
fn checked(url: &str) -> Result<String> {
    let rest = ["http://", "https://"].iter().find_map(|start| url.strip_prefix(start));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next());
    let is_clean = !url.contains(|c: char| c.is_whitespace() || c.is_control());
    let wrong = match host {
        Some(host) if !host.is_empty() && is_clean && !host.contains('@') => return Ok(url.to_owned()),
        Some(host) if host.contains('@') => "the URL contains credentials",
        _ => "invalid server URL",
    };
    Err(OpError::new(
        wrong.to_owned(),
        format!("use a URL such as http://127.0.0.1:8000/mcp; the token comes from the variable {TOKEN_VARIABLE}"),
    ))
}

fn hinted(client: &Client, error: InstallError) -> OpError {
    let other = |scope: Scope| match scope {
        Scope::User => "--scope project",
        Scope::Project => "--scope user",
    };
    let hint = match &error {
        InstallError::NoFile { scope, .. } => format!(
            "try {}; docs/install.md lists the files that {} reads",
            other(*scope),
            client.title
        ),
        InstallError::NotHere { .. } => "docs/install.md lists the clients and their files".to_owned(),
        InstallError::NoHttp { .. } => "add the address in its settings, or install without --http".to_owned(),
        InstallError::Text { .. } => match client.limit() {
            Some(limit) => format!("nothing was changed; {limit}: change the entry by hand"),
            None => "nothing was changed; fix the file, or change the entry by hand".to_owned(),
        },
        InstallError::Raced { .. } => "run the command again".to_owned(),
        InstallError::File(_) => return error.into(),
    };
    OpError::from(error).with_hint(hint)
}

/// Returns false if the user does not want what a project's files have in place of what would be written. Fails if the
/// user cannot be asked.
fn confirm_planted(plan: &Plan, request: &Request, args: &InstallArgs, output: &mut Output) -> Result<bool> {
    if plan.planted.is_empty() || args.force {
        return Ok(true);
    }
    let shown = |line: &String| format!("\n  {}", one_line(&cut(line)));
    let lines: String = plan.planted.iter().map(shown).collect();
    let message = format!(
        "this repository already has an entry {:?} that you have not installed, and that differs from what install writes:{lines}",
        request.name
    );
    if args.common.dry_run {
        output.remark(&message);
        return Ok(true);
    }
    if output.json || !output.can_ask() {
        let hint = "check these lines: an agent would start what they say; --force replaces the entry with install's";
        return Err(OpError::new(message, hint));
    }
    output.line(&message)?;
    Ok(output.ask("Keep what install does not write, such as other fields?")?)
}

/// The outcome of applying a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Done {
    Yes,
    Shown,
    Declined,
}

/// Shows the changes, asks for confirmation and applies them.
fn settle(plan: &Plan, args: &ClientArgs, output: &mut Output) -> Result<Done> {
    if !output.json {
        plan.changes.iter().try_for_each(|change| show(change, output))?;
    }
    if args.dry_run {
        return Ok(Done::Shown);
    }
    if plan.is_needed() && !args.yes {
        if output.json || !output.can_ask() {
            return Err(OpError::new(
                "not a terminal: nothing was changed",
                "use --yes to change the files, or --dry-run to show the changes",
            ));
        }
        if !output.ask("Apply these changes?")? {
            return Ok(Done::Declined);
        }
    }
    plan.apply()?;
    Ok(Done::Yes)
}

/// Records that a server of the user was changed by request, so that it does not end with the last clone that uses it.
fn forget_uses(client: &Client, request: &Request, places: &Places, done: Done) -> Result<()> {
    if done == Done::Yes && request.scope == Scope::User && request.name == SERVER_NAME {
        Uses::of(client, places).clear()?;
    }
    Ok(())
}

fn show(change: &Change, output: &mut Output) -> Result<()> {
    for line in change.diff().lines() {
        let line = line.trim_end_matches('\r');
        let shown = one_line(&cut(line));
        output.line(&match line.as_bytes().first() {
            _ if line.starts_with("--- ") || line.starts_with("+++ ") => output.styled(STRONG, &shown),
            Some(b'+') => output.styled(ADDED, &shown),
            Some(b'-') => output.styled(MATCH, &shown),
            Some(b'@') => output.styled(FAINT, &shown),
            _ => shown,
        })?;
    }
    Ok(())
}

fn cut(line: &str) -> String {
    let mut shown: String = line.chars().take(MAX_SHOWN_CHARACTERS).collect();
    if shown.len() < line.len() {
        shown.push('…');
    }
    shown
}

fn report(
    client: &Client,
    request: &Request,
    plan: &Plan,
    done: Done,
    next: Vec<String>,
    output: &mut Output,
) -> Result<Found> {
    let found = match done {
        Done::Declined => Found::Nothing,
        _ if plan.changes.is_empty() => Found::Nothing,
        _ => Found::Something,
    };
    if output.json {
        output.json(&InstallOut {
            client: client.id,
            scope: request.scope.name(),
            name: request.name.clone(),
            changed: plan.is_needed(),
            dry_run: done == Done::Shown,
            files: plan.changes.iter().map(FileOut::from).collect(),
            differs: plan.planted.clone(),
            next,
        })?;
        return Ok(found);
    }
    for line in lines_of(client, plan, done) {
        output.line(&line)?;
    }
    if done == Done::Yes && plan.is_needed() {
        for line in next {
            output.line(&format!("next: {}", one_line(&line)))?;
        }
    }
    Ok(found)
}

fn lines_of(client: &Client, plan: &Plan, done: Done) -> Vec<String> {
    let line = |change: &Change| {
        let file = one_line(&change.path.display().to_string());
        let did = match (change.act(), done) {
            (Act::Keep, _) => format!("{file}: unchanged"),
            (Act::Left, _) => format!("{file}: left, because it was changed (--force replaces it)"),
            (_, Done::Declined) => format!("{file}: not changed"),
            (Act::Create, Done::Yes) => format!("{file}: created"),
            (Act::Edit, Done::Yes) => format!("{file}: changed"),
            (Act::Remove, Done::Yes) => format!("{file}: removed"),
            (Act::Create, _) => format!("{file}: would be created"),
            (Act::Edit, _) => format!("{file}: would be changed"),
            (Act::Remove, _) => format!("{file}: would be removed"),
        };
        match &change.backup {
            Some(backup) if change.act() == Act::Edit && done == Done::Yes => {
                format!("{did}; backup: {}", one_line(&backup.display().to_string()))
            }
            _ => did,
        }
    };
    if plan.changes.is_empty() {
        vec![format!("codescout is not configured in {}", client.title)]
    } else {
        plan.changes.iter().map(line).collect()
    }
}

impl From<&Change> for FileOut {
    fn from(change: &Change) -> Self {
        Self {
            file: change.path.display().to_string(),
            part: match change.part {
                Part::Server => "server",
                Part::Instructions => "instructions",
                Part::Skill => "skill",
                Part::Subagent => "subagent",
                Part::Hooks => "hooks",
            },
            act: match change.act() {
                Act::Keep => "keep",
                Act::Left => "left",
                Act::Create => "create",
                Act::Edit => "edit",
                Act::Remove => "remove",
            },
            diff: change.diff(),
            backup: change.backup.as_ref().map(|backup| backup.display().to_string()),
        }
    }
}

/// Lists all clients. Also returns those that were found without the server.
fn list(global: &Global, name: &str, output: &mut Output) -> Result<(Found, Vec<&'static Client>)> {
    // Outside a repository only the user scope exists.
    let scope = match work_dir(&global.repo) {
        Ok(_) => Scope::Project,
        Err(_) => Scope::User,
    };
    let places = places(global, scope)?;
    let shown = |path: PathBuf| path.display().to_string();
    let listed = clients().iter().map(|client| {
        let file = |scope| client.files(scope, name, &places).into_iter().next().map(shown);
        let scopes = [Scope::User, Scope::Project].into_iter();
        ListedOut {
            client: client.id,
            title: client.title,
            found: client.trace(&places),
            user_file: file(Scope::User),
            project_file: file(Scope::Project),
            installed: scopes
                .filter_map(|scope| is_installed(client, scope, name, &places))
                .map(shown)
                .collect(),
        }
    });
    let listed: Vec<ListedOut> = listed.collect();
    let found = if listed.iter().any(|client| client.found.is_some()) {
        Found::Something
    } else {
        Found::Nothing
    };
    let absent = absent(&places, name);
    if output.json {
        output.json(&ListOut { clients: listed })?;
        return Ok((found, absent));
    }
    for client in &listed {
        let name = output.styled(STRONG, &format!("{:<14}", client.client));
        let state = match (&client.found, client.installed.is_empty()) {
            (_, false) => format!("installed in {}", client.installed.join(", ")),
            (Some(found), true) => format!("found: {found}"),
            (None, true) => "not found".to_owned(),
        };
        output.line(&format!("{name} {:<14} {}", client.title, one_line(&state)))?;
    }
    Ok((found, absent))
}
