//! Runs a command that the user has configured, in the root of the worktree.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::error::{Context as _, OpError, Result};
use super::limited::{LimitError, Limits, Printed, run, start_guard};
use super::workspace::Workspace;
use crate::program::{absolute_folders, command_at, find_program, is_program, joined_path, leads_into};

/// Number of bytes that are kept of the output: its end.
const KEPT_BYTES: usize = 1 << 20;

/// The end of a command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) ended: Result<(), LimitError>,
    pub(crate) printed: Printed,
    pub(crate) took: Duration,
}

impl Workspace {
    /// Runs a program with arguments, without a shell, in the root of the worktree, with an empty standard input. It
    /// gets the environment of this process, except for entries of `PATH` that are relative or in the repository.
    pub(crate) fn run_command(&self, words: &[String], timeout: Duration, interrupt: &AtomicBool) -> Result<Ran> {
        let root = self.repository.work_dir();
        let root = root.context("a bare repository has no worktree in which a command could run")?;
        let (name, arguments) = words.split_first().context("the command is empty")?;
        let program = self.named_program(name)?;
        let mut command = command_at(&program).context("cannot run the program")?;
        command
            .args(arguments)
            .current_dir(root)
            .env("PATH", self.search_path());
        let guard = start_guard().context("cannot start the process that ends the program with this one")?;
        let limits = Limits {
            timeout,
            max_memory_bytes: u64::MAX,
            interrupt,
            guard: Some(&guard),
            shows_output: false,
            kept_bytes: KEPT_BYTES,
        };
        let began = Instant::now();
        let (ended, printed) = run(&mut command, limits);
        Ok(Ran {
            ended,
            printed,
            took: began.elapsed(),
        })
    }

    /// Returns the program with this name or absolute path.
    fn named_program(&self, name: &str) -> Result<PathBuf> {
        let path = Path::new(name);
        if path.is_absolute() && is_program(path) {
            return Ok(path.to_owned());
        }
        let path = env::var_os("PATH").unwrap_or_default();
        let own = virtual_env().map(|own| own.join("bin"));
        let own = own.filter(|own| env::split_paths(&path).any(|folder| folder == *own));
        let found = own.and_then(|own| find_program(name, own.as_os_str(), &[]));
        found.or_else(|| self.find_program(name)).ok_or_else(|| {
            OpError::new(
                format!("there is no program {name:?} on PATH, outside of the repository"),
                "name a program that is installed, or the absolute path of one; for a script: sh scripts/test.sh",
            )
        })
    }

    /// Finds a program on the path. Relative entries and programs inside the repository do not count.
    pub(super) fn find_program(&self, name: &str) -> Option<PathBuf> {
        find_program(name, &env::var_os("PATH")?, &self.repository.folders())
    }

    /// Returns true if a path leads into the repository.
    pub(super) fn is_inside(&self, path: &Path) -> bool {
        leads_into(path, &self.repository.folders())
    }

    /// Returns `PATH` for a program that the user runs on the repository, without entries that would find programs of
    /// the repository. The user's own virtual environment may be in the repository.
    pub(super) fn search_path(&self) -> OsString {
        let path = env::var_os("PATH").unwrap_or_default();
        let own = virtual_env();
        let is_own = |folder: &Path| own.as_ref().is_some_and(|own| folder.starts_with(own));
        joined_path(absolute_folders(&path).filter(|folder| is_own(folder) || !self.is_inside(folder)))
    }
}

/// Returns the active virtual environment, which may be in the repository.
fn virtual_env() -> Option<PathBuf> {
    let own = env::var_os("VIRTUAL_ENV").map(PathBuf::from);
    own.filter(|own| own.is_absolute())
}
