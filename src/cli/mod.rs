//! The command line: one file per subcommand.

mod advice;
mod args;
mod broker;
mod ci;
mod columns;
mod completions;
mod config;
mod docs;
mod doctor;
mod edit;
mod eval;
mod export;
mod fleet;
mod gc;
mod graph;
mod grep;
mod help;
mod hooks;
mod import;
mod index;
mod init;
mod input;
mod install;
mod links;
mod man;
mod memory;
mod op;
mod pager;
mod precise;
mod progress;
mod push;
mod render;
mod review;
mod search;
mod serve;
mod signals;
mod web;

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::FromArgMatches;
use clap::error::{ContextKind, ContextValue};

use self::args::{Args, Command, Global, PageArgs, Paged};
use self::render::Output;
use crate::artifact::{WORKER, serve_extractor, use_workers};
use crate::config::{Environment, Overrides};
use crate::model::{ErrorKind, panics};
use crate::program::this_program;
use crate::session::{OpError, Result, Workspace, is_address, mirror_of};
use crate::sidecar::failpoint;

/// Set by SIGINT, SIGTERM and SIGHUP. Long operations check it and stop, keeping completed work.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// Set while no operation is running. A signal then ends the process immediately.
static IDLE: AtomicBool = AtomicBool::new(false);

/// The outcome of a command, which determines the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// Exit code 0.
    Something,
    /// Exit code 1.
    Nothing,
    /// Exit code 2. The command has printed what remains to be done.
    Unfinished,
    /// Exit code 3. A program that acts on the answer must assume everything.
    Uncertain,
}

/// Runs the program. Exit codes: 0 found, 1 nothing found, 2 failed, 3 cannot tell, 129 SIGHUP, 130 SIGINT, 143 SIGTERM.
pub fn main(args: impl Iterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.collect();
    if let Some(code) = completions::answer(&args) {
        return code;
    }
    if args.len() == 2 && args[1] == WORKER {
        return serve_extractor().map_or(ExitCode::from(2), |()| ExitCode::SUCCESS);
    }
    // No worker can be started if the path is unknown.
    use_workers(this_program().unwrap_or_default());
    let is_verbose = args.iter().any(|arg| arg == "--verbose" || arg == "-v");
    let parsed = help::command().try_get_matches_from(args);
    let mut args = match parsed.and_then(|matches| Args::from_arg_matches(&matches)) {
        Ok(args) => args,
        Err(mut error) => {
            suggest_quotes(&mut error);
            let code = exit_after_clap_error(&error);
            if is_verbose && error.kind() == clap::error::ErrorKind::DisplayVersion {
                let mut output = Output::new(anstream::ColorChoice::Never, false, false);
                return output
                    .bytes(man::build().as_bytes())
                    .and_then(|()| output.flush())
                    .map_or(ExitCode::from(2), |()| code);
            }
            return code;
        }
    };
    let mut output = Output::new(args.global.color(), args.global.json, args.global.quiet);
    if args.command.is_paged() {
        output.adapt(&Environment::read().terminal, !args.global.no_pager, &args.global.repo);
    }
    start_logging(&args.global);
    signals::catch();
    let opened = arm_fail_point().and_then(|()| use_mirror(&mut args));
    let ended = opened.and_then(|()| run_caught(&args, &mut output));
    // An error is printed after what was found before.
    let shown = output.flush();
    match ended.and_then(|found| Ok((shown?, found).1)) {
        Ok(Found::Something) => ExitCode::SUCCESS,
        Ok(Found::Nothing) => ExitCode::from(1),
        Ok(Found::Unfinished) => ExitCode::from(2),
        Ok(Found::Uncertain) => ExitCode::from(3),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(_) if INTERRUPTED.load(Ordering::Relaxed) => ExitCode::from(signals::exit_code()),
        Err(error) => {
            output.error(&error);
            ExitCode::from(2)
        }
    }
}

/// If the repository is named by its address, replaces that by the folder of its mirror. `index` fetches.
fn use_mirror(args: &mut Args) -> Result<()> {
    let Some(address) = args.global.repo.to_str().filter(|repo| is_address(repo)) else {
        return Ok(());
    };
    let is_fetched = matches!(args.command, Command::Index(_));
    let said = |text: &str| {
        if !args.global.quiet {
            render::note(text);
        }
    };
    args.global.repo = mirror_of(address, is_fetched, &INTERRUPTED, &said)?;
    Ok(())
}

fn arm_fail_point() -> Result<()> {
    if let Some(wanted) = Environment::read().fail_at {
        failpoint::arm(&wanted)?;
    }
    Ok(())
}

/// Runs the command. Converts a panic to an error with exit code 2, because gix panics on some malformed files. Panics
/// of other threads are reported as usual, except expected ones of libraries.
fn run_caught(args: &Args, output: &mut Output) -> Result<Found> {
    let caller = std::thread::current().id();
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().id() == caller || panics::is_expected() {
            tracing::debug!("{panic}");
        } else {
            report(panic);
        }
    }));
    let ended = std::panic::catch_unwind(AssertUnwindSafe(|| run(args, output)));
    ended.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(OpError::new(
            format!("internal error: {}", text.unwrap_or_else(|| "no message".to_owned())),
            "git fsck checks the repository for damage; -vv prints where the error occurred",
        ))
    })
}

fn run(args: &Args, output: &mut Output) -> Result<Found> {
    let open = |overrides: &Overrides| {
        let mut workspace = Workspace::open(&args.global.repo, overrides)?;
        workspace.start_in(&args.global.repo);
        Ok::<_, OpError>(workspace)
    };
    match &args.command {
        Command::Index(index) => index::run(&open(&Overrides::default())?, &args.global, index, output),
        Command::Search(search) => search::run(open(&Overrides::default())?, &args.global, search, output),
        Command::Graph(graph) => graph::run(open(&Overrides::default())?, &args.global, graph, output),
        Command::Grep(grep) => grep::run(open(&Overrides::default())?, &args.global, grep, output),
        Command::Read(read) => op::run(
            "read",
            read,
            &PageArgs::default(),
            open(&Overrides::default())?,
            &args.global,
            output,
        ),
        Command::Symbol(Paged { op: symbol, page }) => op::run(
            "symbol",
            symbol,
            page,
            open(&Overrides::default())?,
            &args.global,
            output,
        ),
        Command::Outline(Paged { op: outline, page }) => op::run(
            "outline",
            outline,
            page,
            open(&Overrides::default())?,
            &args.global,
            output,
        ),
        Command::History(Paged { op: history, page }) => op::run(
            "history",
            history,
            page,
            open(&Overrides::default())?,
            &args.global,
            output,
        ),
        Command::Blame(Paged { op: blame, page }) => {
            op::run("blame", blame, page, open(&Overrides::default())?, &args.global, output)
        }
        Command::Diff(Paged { op: diff, page }) => {
            op::run("diff", diff, page, open(&Overrides::default())?, &args.global, output)
        }
        Command::Review(review) => review::run(open(&Overrides::default())?, &args.global, review, output),
        Command::Web(web) => web::run(&args.global, web),
        Command::Edit(edit) => edit::run(open(&Overrides::default())?, &args.global, edit, output),
        Command::Rename(rename) => op::run(
            "rename",
            rename,
            &PageArgs::default(),
            open(&Overrides::default())?,
            &args.global,
            output,
        ),
        Command::Docs(docs) => docs::run(open(&Overrides::default())?, &args.global, docs, output),
        Command::Memory(memory) => memory::run(open(&Overrides::default())?, &args.global, memory, output),
        Command::Run(Paged { op: run, page }) => {
            op::run("run", run, page, open(&Overrides::default())?, &args.global, output)
        }
        Command::Hooks(hooks) => hooks::run(&args.global, hooks, output),
        Command::Config(config) => config::run(&args.global, config, output),
        Command::Completions(completions) => completions::run(completions, output),
        Command::Man(man) => man::run(&args.global, man),
        Command::Doctor(doctor) => doctor::run(&args.global, doctor, output),
        Command::Init(init) => init::run(&open(&Overrides::default())?, &args.global, init, output),
        Command::Install(install) => install::run(&args.global, install, output),
        Command::Uninstall(install) => install::run_uninstall(&args.global, install, output),
        Command::Eval(eval) => eval::run(&args.global, eval, output),
        Command::Verify(verify) => op::run(
            "verify",
            verify,
            &PageArgs::default(),
            open(&Overrides::default())?,
            &args.global,
            output,
        ),
        Command::Status(status) => op::run(
            "status",
            status,
            &PageArgs::default(),
            open(&Overrides::default())?,
            &args.global,
            output,
        ),
        Command::Gc(gc) => gc::run(open(&Overrides::default())?, &args.global, gc, output),
        Command::Export(export) => export::run(&open(&Overrides::default())?, &args.global, export, output),
        Command::Import(import) => import::run(&args.global, import, output),
        Command::Precise(precise) => precise::run(&args.global, precise, output),
        Command::Ci(ci) => ci::run(&open(&Overrides::default())?, &args.global, ci, output),
        Command::Push(push) => push::run(&open(&Overrides::default())?, &args.global, push, output),
        Command::Pull(pull) => push::run_pull(&open(&Overrides::default())?, &args.global, pull, output),
        Command::Broker(broker) => broker::run(broker),
        Command::Fleet(fleet) => fleet::run(&args.global, fleet, output),
        Command::Serve(serve) => serve::run(&args.global, serve),
        Command::Options => {
            output.put(&help::options())?;
            Ok(Found::Something)
        }
    }
}

/// In a search, replaces clap's tip to write `--` before an unknown argument, because paths follow that.
fn suggest_quotes(error: &mut clap::Error) {
    let is_search = match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string().contains(" search ["),
        _ => false,
    };
    if is_search && error.kind() == clap::error::ErrorKind::UnknownArgument {
        let tip = "to search for text that begins with '-', put it in double quotes: codescout search '\"-v\"'";
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
}

fn exit_after_clap_error(error: &clap::Error) -> ExitCode {
    // clap prints help and version to standard output; all other output is an error.
    let code = if error.use_stderr() { 2 } else { 0 };
    // An error repeats arguments, which can be names of files.
    let is_safe = |argument: OsString| {
        let text = argument.to_string_lossy();
        render::sanitize(&text) == text
    };
    let printed = if std::env::args_os().all(is_safe) || !error.use_stderr() {
        error.print()
    } else {
        write!(std::io::stderr().lock(), "{}", render::sanitize(&error.to_string()))
    };
    match printed {
        Ok(()) => ExitCode::from(code),
        Err(_) => ExitCode::from(2),
    }
}

fn start_logging(global: &Global) {
    let default = match global.verbose {
        _ if global.quiet => "error",
        0 => "warn",
        1 => "info",
        _ => "debug",
    };
    let wanted = Environment::read()
        .log
        .unwrap_or_else(|| format!("codescout={default}"));
    let filter = tracing_subscriber::EnvFilter::new(wanted);
    // Fails only in tests, which call this several times in one process. The first subscriber remains.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(match global.color() {
            anstream::ColorChoice::Auto => std::io::stderr().is_terminal(),
            choice => choice != anstream::ColorChoice::Never,
        })
        .without_time()
        .with_target(false)
        .try_init();
}

fn is_broken_pipe(error: &OpError) -> bool {
    error.kind == ErrorKind::System(std::io::ErrorKind::BrokenPipe)
}
