//! The one way in which the git executable is called: nothing that a repository configures can run, nothing is fetched,
//! locked, prompted for or paged, and the environment cannot turn the call towards another repository.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::AtomicBool;

use super::bounded::{BoundError, output_until};

/// Settings that would make git run something, switched off.
///
/// Textconv and external diff drivers also have names of the repository's choosing and cannot be switched off by a
/// setting; callers that show diffs pass `--no-textconv --no-ext-diff`.
const SAFE_SETTINGS: [&str; 9] = [
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.useReplaceRefs=false",
    "diff.external=",
    "log.showSignature=false",
    "submodule.recurse=false",
    "protocol.allow=never",
];

/// The only variables that a call inherits: what finds the executable, the user's own configuration, and where
/// temporary files go. Everything with `GIT_` is gone with the rest.
const KEPT_VARIABLES: [&str; 9] = [
    "PATH",
    "HOME",
    "XDG_CONFIG_HOME",
    "USER",
    "TMPDIR",
    "SystemRoot",
    "USERPROFILE",
    "APPDATA",
    "TEMP",
];

/// No single allocation of git's may be larger, so that a blob of some gigabytes ends it instead of filling the memory.
const MAX_ALLOCATION: &str = "512m";

/// What a call beyond this machine needs besides.
const NETWORK_VARIABLES: [&str; 10] = [
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "http_proxy",
    "https_proxy",
    "HTTPS_PROXY",
    "no_proxy",
    "NO_PROXY",
    "ALL_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// Why a call of the git executable gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// There is no git on this machine, or it could not be started.
    #[error("cannot run the git executable, which this repository needs")]
    NotRun(#[source] io::Error),
    /// It ran and failed.
    #[error("git {operation} failed: {message}")]
    Failed {
        /// The subcommand.
        operation: String,
        /// What it printed.
        message: String,
    },
    /// Nobody wants the answer any more.
    #[error("interrupted")]
    Interrupted,
}

/// Runs `git <arguments>` in the repository at `git_dir` and gives what it printed.
///
/// The repository is found by git's own discovery from inside `git_dir`, never by naming it with `GIT_DIR`, which would
/// switch off git's check of who owns it.
pub(super) fn git<S: AsRef<OsStr>>(git_dir: &Path, operation: &str, arguments: &[S]) -> Result<Vec<u8>, CommandError> {
    let output = reading(git_dir, operation, arguments).output();
    printed(operation, output.map_err(CommandError::NotRun)?)
}

/// The same until `interrupt` is set: then git is ended.
pub(super) fn git_until<S: AsRef<OsStr>>(
    git_dir: &Path,
    operation: &str,
    arguments: &[S],
    interrupt: &AtomicBool,
) -> Result<Vec<u8>, CommandError> {
    let output = output_until(&mut reading(git_dir, operation, arguments), interrupt);
    let output = output.map_err(|error| match error {
        BoundError::Interrupted => CommandError::Interrupted,
        BoundError::NotRun(source) => CommandError::NotRun(source),
        other => CommandError::NotRun(io::Error::other(other)),
    });
    printed(operation, output?)
}

fn reading<S: AsRef<OsStr>>(git_dir: &Path, operation: &str, arguments: &[S]) -> Command {
    let mut command = hardened(git_dir);
    command
        .env("GIT_ALLOC_LIMIT", MAX_ALLOCATION)
        .arg(operation)
        .args(arguments);
    command
}

fn printed(operation: &str, output: Output) -> Result<Vec<u8>, CommandError> {
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(CommandError::Failed {
        operation: operation.to_owned(),
        message: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}

/// The folder that `GIT_DIR` names, if that is set. It puts no repository in the place of another; it says that this one was asked for.
pub(super) fn named_git_dir() -> Option<PathBuf> {
    std::fs::canonicalize(std::env::var_os("GIT_DIR")?).ok()
}

/// Whether git is told to work in no bare repository that is not named: `safe.bareRepository` as it stands where no repository has a say,
/// in the files of the machine and the user and in the variables that stand for `git -c`. Without a git there is nobody who set it.
pub(super) fn refuses_bare_repositories() -> bool {
    let mut command = Command::new("git");
    command.args(["config", "--show-scope", "--get-all", "safe.bareRepository"]);
    // Where there is no repository, as far as one can know; that of a root folder is told by its scope.
    command.current_dir("/").stdin(Stdio::null());
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_CONFIG"] {
        command.env_remove(name);
    }
    let printed = command.output().map(|output| output.stdout).unwrap_or_default();
    let printed = String::from_utf8_lossy(&printed).to_lowercase();
    let mut scoped = printed.lines().filter_map(|line| line.split_once('\t'));
    let of_user = |(scope, _): &(&str, &str)| !matches!(*scope, "local" | "worktree");
    scoped.rfind(of_user).is_some_and(|(_, value)| value == "explicit")
}

/// A version of git; the patch level changes nothing that matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GitVersion {
    /// The first number.
    pub major: u32,
    /// The second.
    pub minor: u32,
}

impl fmt::Display for GitVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The version of the git executable, asked for in `folder`.
pub fn git_version(folder: &Path) -> Result<GitVersion, CommandError> {
    let printed = git::<&str>(folder, "version", &[])?;
    let printed = String::from_utf8_lossy(&printed);
    parse_version(&printed).ok_or_else(|| CommandError::Failed {
        operation: "version".to_owned(),
        message: format!("it says {:?}", printed.trim()),
    })
}

/// `git version 2.47.3 (Apple Git-1)` and the like.
fn parse_version(printed: &str) -> Option<GitVersion> {
    let mut numbers = printed.strip_prefix("git version ")?.split(['.', ' ', '\n']);
    Some(GitVersion {
        major: numbers.next()?.parse().ok()?,
        minor: numbers.next()?.parse().ok()?,
    })
}

/// [`hardened`] for a call that goes to another machine: with agents, proxies and certificates.
pub(super) fn networked(folder: &Path) -> Command {
    let mut command = hardened(folder);
    let kept = NETWORK_VARIABLES.iter();
    command.envs(kept.filter_map(|name| Some((name, std::env::var_os(name)?))));
    command
}

fn hardened(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .current_dir(folder)
        .env_clear()
        .envs(
            KEPT_VARIABLES
                .iter()
                .filter_map(|name| Some((name, std::env::var_os(name)?))),
        )
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    for setting in SAFE_SETTINGS {
        command.args(["-c", setting]);
    }
    command.args(["--no-pager", "--literal-pathspecs"]);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_vendors_write_them() {
        let version = |major, minor| Some(GitVersion { major, minor });
        assert_eq!(parse_version("git version 2.47.3\n"), version(2, 47));
        assert_eq!(parse_version("git version 2.39.5 (Apple Git-154)\n"), version(2, 39));
        assert_eq!(parse_version("git version 2.50.windows.1\n"), version(2, 50));
        assert_eq!(parse_version("hub version 2"), None);
    }
}
