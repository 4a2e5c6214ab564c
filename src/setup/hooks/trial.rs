//! Tests the hooks: makes git call them, and waits for them to report the call.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::event::HookEvent;
use super::install::Found;
use super::queue::{ANSWER, Queue};
use super::request::drop_variables_of_git;
use super::script::{Program, Shape, own_file};
use super::status::{HookStatus, status};
use crate::git::Repository;
use crate::model::random_bytes;
use crate::program::command;

/// Time limit for all hooks to end and report.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// The environment variable that marks a trial. Its value identifies the response.
const VARIABLE: &str = "CODESCOUT_HOOK_TRIAL";

/// Determines whether hooks that contain other lines are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// Hooks with other lines are not called, so no program from the repository's configuration runs.
    LeaveAlone,
    /// Of the hooks with other lines, only `post-checkout` is called, as after the checkout of a file, which does not
    /// move `HEAD`.
    Run,
}

/// The result of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trial {
    /// git called the hook, and the hook called codescout.
    Called {
        /// The time until the response.
        elapsed: Duration,
    },
    /// git ran the hook, but codescout was not called.
    NotCalled {
        /// The reason, as far as it is known.
        why: String,
    },
    /// The hook is not installed.
    NotInstalled,
    /// The hook was not called in the trial.
    NotTried {
        /// The reason.
        why: String,
    },
}

/// Calls each hook that the repository needs with `git hook run`. Makes no commit and indexes nothing. `program` is the
/// executable that installed hooks call.
pub fn trial(
    repository: &Repository,
    sidecar_root: &Path,
    program: &Path,
    foreign: Foreign,
) -> Vec<(HookEvent, Trial)> {
    let status = status(repository, sidecar_root);
    let hooks = status.hooks.iter();
    let called: Vec<_> = hooks
        .map(|hook| (hook.event, call(repository, hook, program, foreign)))
        .collect();
    let deadline = Instant::now() + PATIENCE;
    called
        .into_iter()
        .map(|(event, call)| (event, call.map_or_else(|trial| trial, |call| call.outcome(deadline))))
        .collect()
}

/// A running `git hook run`.
struct Call {
    answer: PathBuf,
    started: Instant,
    /// True if git succeeded; `None` if it did not end in time.
    exit: Option<bool>,
}

impl Call {
    /// Waits for the response until `deadline`.
    fn outcome(&self, deadline: Instant) -> Trial {
        while self.exit == Some(true) && !self.answer.exists() && Instant::now() < deadline {
            thread::sleep(LOOK_EVERY);
        }
        if fs::remove_file(&self.answer).is_ok() {
            return Trial::Called {
                elapsed: self.started.elapsed(),
            };
        }
        let why = match self.exit {
            Some(true) => "git ran the hook, and it did not start this program",
            Some(false) => "git hook run failed (it needs git 2.36)",
            None => "the hook timed out",
        };
        Trial::NotCalled { why: why.to_owned() }
    }
}

fn call(repository: &Repository, hook: &HookStatus, program: &Path, foreign: Foreign) -> Result<Call, Trial> {
    if !hook.is_called {
        return Err(Trial::NotInstalled);
    }
    let is_ours_alone = holds_nothing_else(hook, program) && !repository.has_configured_hooks();
    if !is_ours_alone && (foreign == Foreign::LeaveAlone || hook.event != HookEvent::PostCheckout) {
        return Err(Trial::NotTried {
            why: "other programs' hooks would run too".to_owned(),
        });
    }
    let not_run = |source: io::Error| Trial::NotTried {
        why: format!("git cannot be run: {source}"),
    };
    if foreign == Foreign::LeaveAlone && !git_agrees(repository, hook).map_err(not_run)? {
        return Err(Trial::NotTried {
            why: "git reads its configuration in another way, and may run other hooks".to_owned(),
        });
    }
    start(repository, hook.event).map_err(not_run)
}

/// Returns true if the file is exactly what this program would write.
fn holds_nothing_else(hook: &HookStatus, program: &Path) -> bool {
    let expected = own_file(hook.event, Shape::Own, Program::At(program));
    matches!(Found::at(&hook.path), Ok(Found::Script(content, _)) if content == expected)
}

/// Returns true if git itself looks for a hook where this program does, and for no other hooks. It may follow
/// conditions and links in a configuration that this program does not.
fn git_agrees(repository: &Repository, hook: &HookStatus) -> io::Result<bool> {
    let name = format!("hooks/{}", hook.event.name());
    let mut child = git(repository, &["rev-parse", "--git-path", &name])?
        .stdout(Stdio::piped())
        .spawn()?;
    let mut path = Vec::new();
    if wait(&mut child)?.is_some()
        && let Some(mut printed) = child.stdout.take()
    {
        printed.read_to_end(&mut path)?;
    }
    let real = |path: &Path| fs::canonicalize(repository.place().join(path));
    let path = real(Path::new(OsStr::from_bytes(path.trim_ascii_end())));
    // git config fails with 1 if there are none.
    let others = wait(&mut git(repository, &["config", "--get-regexp", r"^hook\."])?.spawn()?)?;
    let has_others = others.and_then(|status| status.code()) != Some(1);
    Ok(!has_others && matches!((path, real(&hook.path)), (Ok(a), Ok(b)) if a == b))
}

/// Creates a git command with the user's configuration and without environment variables about a repository.
fn git(repository: &Repository, args: &[&str]) -> io::Result<Command> {
    let mut command = command("git", &repository.folders())?;
    drop_variables_of_git(&mut command);
    command
        .current_dir(repository.place())
        .args(["-c", "core.fsmonitor=false"])
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Ok(command)
}

fn start(repository: &Repository, event: HookEvent) -> io::Result<Call> {
    let nonce = format!("{:032x}", u128::from_be_bytes(random_bytes()?));
    let started = Instant::now();
    let mut child = git_hook_run(repository, event, &nonce)?.spawn()?;
    Ok(Call {
        answer: Queue::of(repository).path(&answer_name(&nonce, event)),
        started,
        exit: wait(&mut child)?.map(|status| status.success()),
    })
}

/// Creates the command `git hook run`.
fn git_hook_run(repository: &Repository, event: HookEvent, nonce: &str) -> io::Result<Command> {
    let zeros = "0".repeat(40);
    let arguments: &[&str] = match event {
        HookEvent::PostCheckout => &[&zeros, &zeros, "0"],
        HookEvent::PostMerge => &["0"],
        HookEvent::PostRewrite => &["amend"],
        HookEvent::PostCommit | HookEvent::PostReceive => &[],
    };
    let mut command = git(repository, &["hook", "run", event.name(), "--"])?;
    command.env(VARIABLE, nonce).args(arguments);
    Ok(command)
}

/// Waits for git to end. Returns how it ended; `None` if it did not end in time.
fn wait(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        thread::sleep(LOOK_EVERY);
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

fn answer_name(nonce: &str, event: HookEvent) -> String {
    format!("{ANSWER}{nonce} {}", event.name())
}

/// Responds to a trial by writing a file whose name only the caller knows.
pub(super) fn answer_trial(queue: &Queue, event: HookEvent, nonce: &str) -> io::Result<()> {
    if nonce.len() > 64 || !nonce.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    queue.make()?;
    fs::write(queue.path(&answer_name(nonce, event)), "")
}
