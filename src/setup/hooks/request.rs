//! The part of a hook that git waits for. It writes a request and starts the worker.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::event::HookEvent;
use super::queue::Queue;
use super::trial::answer_trial;
use crate::config::Environment;
use crate::git::{OpenError, Repository};
use crate::model::explain_by;
use crate::program::command_at;

/// Priority (nice value) of the worker, below the user's own programs.
const NICENESS: i32 = 10;

/// An error from writing a request.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// There is no repository.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The request cannot be written, or the worker cannot be started.
    #[error("cannot start a run in {}", .folder.display())]
    Io {
        /// The folder of the requests.
        folder: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

explain_by!(RequestError: Open);

/// Writes a request for a hook that git called with `arguments`, and starts a worker unless one is running. `at` is a
/// folder in the repository. If it is `None`, the repository is the one named by git's environment variables, or else
/// the one that contains the current folder.
pub fn request(event: HookEvent, arguments: &[OsString], at: Option<&Path>) -> Result<(), RequestError> {
    // Git and the user wait for this process. The worker inherits the priority.
    let _ = rustix::process::nice(NICENESS);
    let repository = match (at, std::env::var_os("GIT_DIR")) {
        (Some(at), _) => Repository::discover(at)?,
        // A relative path starts at the current folder, which git sets to the root of the worktree or the bare
        // repository.
        (None, Some(git_dir)) => Repository::open(Path::new(&git_dir))?,
        (None, None) => Repository::discover(Path::new("."))?,
    };
    let queue = Queue::of(&repository);
    let failed = |source| RequestError::Io {
        folder: queue.root().to_owned(),
        source,
    };
    if let Some(nonce) = Environment::read().hook_trial {
        return answer_trial(&queue, event, &nonce).map_err(failed);
    }
    if event.is_about_files(arguments) {
        return Ok(());
    }
    queue.leave(&repository, event).map_err(failed)?;
    // A worker looks for requests again after it has released the lock. If this hook acquires the lock, it starts a
    // worker. So no request is lost.
    if queue.try_lock().map_err(failed)?.is_none() {
        return Ok(());
    }
    let program = std::env::current_exe().map_err(failed)?;
    let worker = worker(&program, &repository, event);
    worker.and_then(|mut worker| worker.spawn()).map(|_| ()).map_err(failed)
}

/// Creates the command that runs a worker, without the caller's file descriptors and git's environment variables.
fn worker(program: &Path, repository: &Repository, event: HookEvent) -> io::Result<Command> {
    let mut command = command_at(program)?;
    command
        .args(["hooks", "run", "--worker", event.name(), "--repo"])
        .arg(repository.git_dir())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    drop_variables_of_git(&mut command);
    Ok(command)
}

/// Removes the environment variables by which git passes a hook the repository, index and worktree.
pub(super) fn drop_variables_of_git(command: &mut Command) {
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_git(name)) {
        command.env_remove(name);
    }
}

/// Returns true for git's environment variables. Includes more than `git rev-parse --local-env-vars` lists, so that
/// variables of newer versions are covered.
fn is_of_git(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b"GIT_")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn every_variable_that_belongs_to_one_repository_is_dropped() {
        let listed = Command::new("git")
            .args(["rev-parse", "--local-env-vars"])
            .output()
            .unwrap();
        let names = String::from_utf8(listed.stdout).unwrap();
        assert!(names.lines().count() > 10, "{names}");
        assert!(names.lines().all(|name| is_of_git(OsStr::new(name))), "{names}");
    }
}
