//! `codescout completions`, and the candidates that shells then request.
//!
//! A request runs this program with the variable `CODESCOUT_COMPLETE`. It reads the index if there is one, and never makes one.
//! An error means no candidates.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, Command, CommandFactory, ValueHint};
use clap_complete::engine::{
    ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use clap_complete::env::{CompleteEnv, Shells};

use super::args::{Args, CompletionsArgs};
use super::render::Output;
use super::{Found, exit_after_clap_error};
use crate::config::{Environment, Overrides};
use crate::extract;
use crate::git::{RefKind, Repository};
use crate::query::{definition_names, kind_names};
use crate::session::{Context as _, Result, Workspace};

/// The variable with the name of the shell that requests candidates.
const VARIABLE: &str = "CODESCOUT_COMPLETE";
const PROGRAM: &str = "codescout";
/// Maximum number of candidates for a value.
const MAX_CANDIDATES: usize = 200;
/// Revisions that are not refs.
const OTHER_REVISIONS: &[&str] = &["HEAD", "INDEX", "WORKTREE"];

pub(super) fn run(args: &CompletionsArgs, output: &mut Output) -> Result<Found> {
    let shells = Shells::builtins();
    let name = args.shell.to_string();
    let shell = shells.completer(&name).context("no completions for this shell")?;
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script)?;
    output.bytes(&script)?;
    Ok(Found::Something)
}

/// Answers a shell that requests candidates; `None` if none does.
pub(super) fn answer(args: &[OsString]) -> Option<ExitCode> {
    if !Environment::read().is_completing {
        return None;
    }
    // A panic, on which gix relies for some malformed files, leaves the terminal as it is.
    std::panic::set_hook(Box::new(|_| {}));
    let here = std::env::current_dir().ok();
    let request = CompleteEnv::with_factory(|| with_candidates(Args::command())).var(VARIABLE);
    match request.try_complete(args, here.as_deref()) {
        Ok(false) => None,
        Ok(true) => Some(ExitCode::SUCCESS),
        Err(_) if args.iter().any(|arg| arg == "--") => Some(ExitCode::FAILURE),
        Err(error) => Some(exit_after_clap_error(&error)),
    }
}

/// Adds candidates to the arguments of a command and its subcommands, by the names of their values.
fn with_candidates(command: Command) -> Command {
    let name = command.get_name().to_owned();
    let command = command.mut_args(|arg| match (value_name(&arg).as_str(), name.as_str()) {
        ("REV" | "REV,…" | "FROM" | "TO" | "REVISIONS", _) => arg.add(ArgValueCompleter::new(revisions)),
        ("TARGET", _) => arg.add(ArgValueCompleter::new(targets)),
        ("WORDS", _) | ("NAME", "symbol" | "read") => arg.add(ArgValueCompleter::new(definitions)),
        ("PATH" | "PATH:LINE[:COL]" | "GLOB" | "FILE", _) => arg.add(ArgValueCompleter::new(paths)),
        ("DIR", _) => arg.add(ArgValueCompleter::new(folders)),
        ("LANG", _) => arg.add(ArgValueCandidates::new(|| {
            candidates(extract::languages().map(|language| language.name))
        })),
        ("KIND", _) => arg.add(ArgValueCandidates::new(|| candidates(kind_names()))),
        _ if arg.get_value_hint() == ValueHint::AnyPath => arg.add(ArgValueCompleter::new(paths)),
        _ => arg,
    });
    command.mut_subcommands(with_candidates)
}

fn value_name(arg: &Arg) -> String {
    match arg.get_value_names() {
        Some([name, ..]) => name.to_string(),
        _ => arg.get_id().as_str().to_uppercase(),
    }
}

fn candidates<T: Into<OsString>>(values: impl IntoIterator<Item = T>) -> Vec<CompletionCandidate> {
    let values = values.into_iter().map(CompletionCandidate::new);
    values.filter(is_plain).take(MAX_CANDIDATES).collect()
}

/// Returns true if no shell interprets the candidate, and it is no option. A repository chooses its names, and bash inserts
/// candidates unquoted.
fn is_plain(candidate: &CompletionCandidate) -> bool {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-./:@+#,~".contains(letter);
    // A shell expands `~user` and ignores words behind `#`.
    candidate
        .get_value()
        .to_str()
        .is_some_and(|value| value.chars().all(is_plain) && !value.starts_with(['-', '~', '#']))
}

fn paths(start: &OsStr) -> Vec<CompletionCandidate> {
    plain(&PathCompleter::any().current_dir(repository()), start)
}

fn folders(start: &OsStr) -> Vec<CompletionCandidate> {
    plain(&PathCompleter::dir(), start)
}

fn plain(completer: &PathCompleter, start: &OsStr) -> Vec<CompletionCandidate> {
    let paths = completer.complete(start).into_iter();
    paths.filter(is_plain).take(MAX_CANDIDATES).collect()
}

fn targets(start: &OsStr) -> Vec<CompletionCandidate> {
    let mut targets = paths(start);
    targets.extend(definitions(start));
    targets
}

/// Completes the name of a ref, also of the second one of a range.
fn revisions(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(typed) = typed.to_str() else {
        return Vec::new();
    };
    let split = typed.rfind("..").map_or(0, |at| at + "..".len());
    let (before, start) = typed.split_at(split);
    let repository = Repository::discover(&repository());
    let refs = repository
        .ok()
        .and_then(|repository| repository.refs().ok())
        .unwrap_or_default();
    let refs = refs.iter().filter(|each| each.kind != RefKind::Other);
    let refs = refs.map(|each| each.short_name().to_string());
    let names = OTHER_REVISIONS.iter().map(|name| (*name).to_owned()).chain(refs);
    let names = names.filter(|name| name.starts_with(start));
    candidates(names.map(|name| format!("{before}{name}")))
}

/// Completes the name of a definition of the checked-out commit, if that is indexed.
fn definitions(start: &OsStr) -> Vec<CompletionCandidate> {
    let names = |start: &str| {
        let view = Workspace::open(&repository(), &Overrides::default())?.stored_view()?;
        let names = view.map(|view| definition_names(&view, start, MAX_CANDIDATES));
        Result::<_>::Ok(names.transpose()?.unwrap_or_default())
    };
    let start = start.to_str().filter(|start| !start.is_empty());
    candidates(start.and_then(|start| names(start).ok()).unwrap_or_default())
}

/// Returns the directory that the typed command names by `--repo`.
fn repository() -> PathBuf {
    let words: Vec<OsString> = std::env::args_os().skip_while(|word| word != "--").collect();
    // bash splits words at `=`.
    let mut words = words.iter().filter(|word| *word != "=");
    let named = words.find_map(|word| match word.to_str()?.strip_prefix("--repo")? {
        "" => Some(None),
        value => value.strip_prefix('=').map(|value| Some(PathBuf::from(value))),
    });
    match named {
        Some(Some(value)) => value,
        Some(None) => words.next().map_or_else(|| PathBuf::from("."), PathBuf::from),
        None => PathBuf::from("."),
    }
}
