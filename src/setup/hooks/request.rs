//! What a hook does itself: it notes what was asked for and starts the worker.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::event::HookEvent;
use super::queue::Queue;
use super::trial::answer_trial;
use crate::config::Environment;
use crate::git::{OpenError, Repository};

/// How far behind the user's own programs everything stands that hooks start.
const NICENESS: i32 = 10;

/// Why a hint was not noted.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// No repository.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The note cannot be written, or the worker cannot be started.
    #[error("cannot start a run in {}", .folder.display())]
    Io {
        /// The folder of the notes.
        folder: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// Notes that git called a hook with `arguments`, and starts a worker unless one is at work. `at` is a folder in the repository; by
/// default git's own variables say which it is, else the current folder.
pub fn request(event: HookEvent, arguments: &[OsString], at: Option<&Path>) -> Result<(), RequestError> {
    // Git is still about to end, and somebody waits for that. The worker inherits it.
    let _ = rustix::process::nice(NICENESS);
    let repository = match (at, std::env::var_os("GIT_DIR")) {
        (Some(at), _) => Repository::discover(at)?,
        // As git left it: relative to the current folder, which is the work tree's root or the bare repository.
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
    // Whoever holds the lock looks for requests again after letting it go; and who only tries it, as here, starts a worker
    // then. So a request is never left without somebody who sees it.
    if queue.try_lock().map_err(failed)?.is_none() {
        return Ok(());
    }
    let program = std::env::current_exe().map_err(failed)?;
    let mut worker = worker(&program, &repository, event);
    worker.spawn().map(|_| ()).map_err(failed)
}

/// The call of a worker: apart from the caller's descriptors and from everything that git told its hook.
fn worker(program: &Path, repository: &Repository, event: HookEvent) -> Command {
    let mut command = Command::new(program);
    command
        .args(["hooks", "run", "--worker", event.name(), "--repo"])
        .arg(repository.git_dir())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    drop_variables_of_git(&mut command);
    command
}

/// Makes a call independent of what git told its hook: which repository, index and work tree it was about.
pub(super) fn drop_variables_of_git(command: &mut Command) {
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_git(name)) {
        command.env_remove(name);
    }
}

/// Whether a variable is git's: a superset of `git rev-parse --local-env-vars`, so that what newer versions add is in it too.
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
