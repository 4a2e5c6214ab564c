//! Runs the git executable safely: it runs no program that the repository configures, fetches nothing, takes no locks,
//! shows no prompts or pager, and ignores environment variables that select another repository.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::AtomicBool;

use super::bounded::{BoundError, output_until};
use super::open::Repository;
use crate::model::explain_by;
use crate::program::{command, search_path};

/// Settings that prevent git from running other programs.
///
/// The repository chooses the names of textconv and external diff drivers, so no setting can disable them. Callers that
/// show diffs pass `--no-textconv --no-ext-diff`.
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

/// The environment variables that git inherits, with the absolute folders of `PATH` outside of the repository. They locate
/// the user's configuration and the temporary directories. All others, including those that begin with `GIT_`, are removed.
const KEPT_VARIABLES: [&str; 8] = [
    "HOME",
    "XDG_CONFIG_HOME",
    "USER",
    "TMPDIR",
    "SystemRoot",
    "USERPROFILE",
    "APPDATA",
    "TEMP",
];

/// Limit on each memory allocation of git. A blob of several gigabytes makes git fail instead of filling the memory.
const MAX_ALLOCATION: &str = "512m";

/// Additional environment variables that git inherits for commands that use the network.
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

/// An error from running git.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// git is not installed or could not be started.
    #[error("cannot run the git executable, which this repository needs")]
    NotRun(#[source] io::Error),
    /// git failed.
    #[error("git {operation} failed: {message}")]
    Failed {
        /// The git subcommand.
        operation: String,
        /// The error output of git.
        message: String,
    },
    /// The interrupt flag was set.
    #[error("interrupted")]
    Interrupted,
}

explain_by!(CommandError; Interrupted);

/// Runs `git <arguments>` in the repository and returns the output.
///
/// git runs inside the git directory and discovers the repository from there. Setting `GIT_DIR` instead would disable
/// git's ownership check.
pub(super) fn git<S: AsRef<OsStr>>(
    repository: &Repository,
    operation: &str,
    arguments: &[S],
) -> Result<Vec<u8>, CommandError> {
    let folders = repository.folders();
    let output = reading(repository.git_dir(), &folders, operation, arguments)?.output();
    printed(operation, output.map_err(CommandError::NotRun)?)
}

/// Like `git`, but runs in [`Repository::discovery_dir`], and stops the subprocess when `interrupt` is set.
pub(super) fn git_until<S: AsRef<OsStr>>(
    repository: &Repository,
    operation: &str,
    arguments: &[S],
    interrupt: &AtomicBool,
) -> Result<Vec<u8>, CommandError> {
    let folders = repository.folders();
    let mut command = reading(repository.discovery_dir(), &folders, operation, arguments)?;
    let output = output_until(&mut command, interrupt);
    let output = output.map_err(|error| match error {
        BoundError::Interrupted => CommandError::Interrupted,
        BoundError::NotRun(source) => CommandError::NotRun(source),
        other => CommandError::NotRun(io::Error::other(other)),
    });
    printed(operation, output?)
}

fn reading<S: AsRef<OsStr>>(
    folder: &Path,
    roots: &[&Path],
    operation: &str,
    arguments: &[S],
) -> Result<Command, CommandError> {
    let mut command = hardened(folder, roots)?;
    command
        .env("GIT_ALLOC_LIMIT", MAX_ALLOCATION)
        .arg(operation)
        .args(arguments);
    Ok(command)
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

/// Returns the directory that the environment variable `GIT_DIR` names. The directory never replaces the discovered
/// repository. It only shows that the user named the repository explicitly.
pub(super) fn named_git_dir() -> Option<PathBuf> {
    std::fs::canonicalize(std::env::var_os("GIT_DIR")?).ok()
}

/// Returns the directory that the environment variable `GIT_WORK_TREE` names. Like [`named_git_dir`], it only shows what
/// the user named explicitly.
pub(super) fn named_work_tree() -> Option<PathBuf> {
    std::fs::canonicalize(std::env::var_os("GIT_WORK_TREE")?).ok()
}

/// Returns the path in the environment variable `GIT_INDEX_FILE`. A relative one starts at the root of the worktree.
pub(super) fn named_index() -> Option<PathBuf> {
    std::env::var_os("GIT_INDEX_FILE").map(PathBuf::from)
}

/// Returns true if `safe.bareRepository` makes git use a bare repository only if it is named explicitly. As in git, the
/// system and user configuration and `git -c` settings count, but not the repository's own configuration. Returns false
/// if git is not installed outside of the repository at `git_dir`.
pub(super) fn refuses_bare_repositories(git_dir: &Path) -> bool {
    let Ok(mut command) = command("git", &[git_dir]) else {
        return false;
    };
    command.args(["config", "--show-scope", "--get-all", "safe.bareRepository"]);
    // Run outside of any repository. If `/` is inside one, its settings are recognized by their scope.
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

/// A git version without the patch level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GitVersion {
    /// The major version.
    pub major: u32,
    /// The minor version.
    pub minor: u32,
}

impl fmt::Display for GitVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Returns the version of the git executable. Runs it in `folder`, which may be in a repository.
pub fn git_version(folder: &Path) -> Result<GitVersion, CommandError> {
    let repository = Repository::discover(folder).ok();
    let folders = repository.as_ref().map(Repository::folders).unwrap_or_default();
    let output = reading::<&str>(folder, &folders, "version", &[])?.output();
    let printed = printed("version", output.map_err(CommandError::NotRun)?)?;
    let printed = String::from_utf8_lossy(&printed);
    parse_version(&printed).ok_or_else(|| CommandError::Failed {
        operation: "version".to_owned(),
        message: format!("unexpected output {:?}", printed.trim()),
    })
}

/// Parses output such as `git version 2.47.3 (Apple Git-1)`.
fn parse_version(printed: &str) -> Option<GitVersion> {
    let mut numbers = printed.strip_prefix("git version ")?.split(['.', ' ', '\n']);
    Some(GitVersion {
        major: numbers.next()?.parse().ok()?,
        minor: numbers.next()?.parse().ok()?,
    })
}

/// Like [`hardened`], for commands that use the network: also inherits the variables for SSH agents, proxies and
/// certificates.
pub(super) fn networked(folder: &Path, roots: &[&Path]) -> Result<Command, CommandError> {
    let mut command = hardened(folder, roots)?;
    let kept = NETWORK_VARIABLES.iter();
    command.envs(kept.filter_map(|name| Some((name, std::env::var_os(name)?))));
    Ok(command)
}

/// Returns the command that runs git in `folder`. No program in the folders `roots` is run.
fn hardened(folder: &Path, roots: &[&Path]) -> Result<Command, CommandError> {
    let mut command = command("git", roots).map_err(CommandError::NotRun)?;
    command
        .current_dir(folder)
        .env_clear()
        .env("PATH", search_path(roots))
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
    Ok(command)
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
