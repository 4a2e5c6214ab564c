//! Runs an indexer that the user has installed on a clean checkout of a revision.
//!
//! The repository has no influence on which program runs, and nothing is written to it.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tempfile::TempDir;

use super::error::{Context as _, OpError, Result, ensure};
use super::limited::{LimitError, Limits, Printed, run, start_guard};
use super::private::private_folder;
use super::workspace::Workspace;
use crate::ingest::Target;
use crate::precise::Indexer;
use crate::program::command_at;

/// Arguments with which `unshare` (util-linux) runs a program without network. When the program ends, everything that it
/// started ends too.
const WITHOUT_NETWORK: [&str; 6] = ["--map-current-user", "--net", "--pid", "--fork", "--kill-child", "--"];
/// Number of bytes that are kept of the output: its end.
const KEPT_BYTES: usize = 4 << 10;
/// Number of lines of the output that an error shows.
const N_SHOWN_LINES: usize = 20;

/// Options for running an indexer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexerOptions {
    pub(crate) timeout: Duration,
    /// Limit on the resident memory of all its processes in bytes.
    pub(crate) max_memory_bytes: u64,
    /// True if its output is shown on standard error.
    pub(crate) shows_output: bool,
}

/// An indexer that is ready to run.
#[derive(Debug)]
pub(crate) struct ReadyIndexer {
    pub(crate) indexer: &'static Indexer,
    pub(crate) program: PathBuf,
    pub(crate) target: Target,
    /// The program that blocks the network. `None` if the network is allowed or cannot be blocked.
    unshare: Option<PathBuf>,
}

/// The index that an indexer wrote.
#[derive(Debug)]
pub(crate) struct MadeIndex {
    pub(crate) path: PathBuf,
    /// Number of files that the checkout lacks.
    pub(crate) n_left_out: usize,
    /// The folder of `path`, which is removed with this value.
    _folder: TempDir,
}

impl ReadyIndexer {
    /// Returns true if the indexer runs without network.
    pub(crate) fn blocks_network(&self) -> bool {
        self.unshare.is_some()
    }

    fn command(&self) -> io::Result<Command> {
        let Some(unshare) = &self.unshare else {
            return command_at(&self.program);
        };
        let mut command = command_at(unshare)?;
        command.args(WITHOUT_NETWORK).arg(&self.program);
        Ok(command)
    }
}

impl Workspace {
    /// Finds an indexer and the revision that it is to read.
    pub(crate) fn ready_indexer(
        &self,
        indexer: &'static Indexer,
        reference: &str,
        allows_network: bool,
    ) -> Result<ReadyIndexer> {
        let target = self.target(reference)?.context("there is no commit yet")?;
        let program = self.find_program(indexer.program).ok_or_else(|| {
            OpError::new(
                format!("{} is not installed", indexer.program),
                format!(
                    "install it outside of the repository, in a folder of PATH that is not relative: {}",
                    indexer.installation
                ),
            )
        })?;
        let unshare = if cfg!(target_os = "linux") && !allows_network {
            self.find_program("unshare")
                .filter(|unshare| can_block_network(unshare))
        } else {
            None
        };
        Ok(ReadyIndexer {
            indexer,
            program,
            target,
            unshare,
        })
    }

    /// Writes a clean checkout of the revision to a private folder and runs the indexer there, in the caller's
    /// directory.
    pub(crate) fn run_indexer(
        &self,
        ready: &ReadyIndexer,
        options: IndexerOptions,
        interrupt: &AtomicBool,
    ) -> Result<MadeIndex> {
        let name = ready.indexer.program;
        let folder = private_folder("codescout-precise-", |folder| self.is_inside(folder))?;
        let checkout = folder.path().join("checkout");
        fs::create_dir(&checkout)?;
        let written = self
            .repository
            .reader()
            .write_tree(ready.target.tree, &checkout, interrupt)?;
        let project = checkout.join(self.here());
        ensure!(project.is_dir(), "the revision has no folder {}", self.here());
        let path = folder.path().join("index.scip");
        let mut command = ready.command().context("cannot run the indexer")?;
        command
            .args(ready.indexer.arguments(|file| project.join(file).is_file()))
            .arg(&path)
            .current_dir(&project);
        set_environment(&mut command, folder.path(), self.search_path());
        let guard = start_guard().context("cannot start the process that ends the program with this one")?;
        let limits = Limits {
            timeout: options.timeout,
            max_memory_bytes: options.max_memory_bytes,
            interrupt,
            guard: Some(&guard),
            shows_output: options.shows_output,
            kept_bytes: KEPT_BYTES,
        };
        let (ended, Printed { text: output, .. }) = run(&mut command, limits);
        if let Err(error) = ended {
            return Err(explained(name, &error, &output, ready));
        }
        ensure!(path.is_file(), "{name} wrote no index{}", last_lines(&output));
        Ok(MadeIndex {
            path,
            n_left_out: written.n_left_out,
            _folder: folder,
        })
    }
}

fn can_block_network(unshare: &Path) -> bool {
    let version = command_at(unshare).and_then(|mut command| {
        let command = command.args(WITHOUT_NETWORK).arg(unshare).arg("--version");
        command.output()
    });
    version.is_ok_and(|output| output.status.success())
}

/// Passes on the environment of the user, except what would find programs of the checkout or of the repository, or select
/// a git repository.
fn set_environment(command: &mut Command, folder: &Path, search_path: OsString) {
    for (name, _) in env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"GIT_")) {
        command.env_remove(name);
    }
    command.env("PATH", search_path);
    command.env("GIT_CEILING_DIRECTORIES", folder);
    // Python would import modules of the checkout, and Go would fetch and run the toolchain that a module asks for.
    command.env("PYTHONSAFEPATH", "1").env("GOTOOLCHAIN", "local");
}

fn explained(name: &str, error: &LimitError, output: &str, ready: &ReadyIndexer) -> OpError {
    let failed = OpError::failed(format!("{name} did not finish: {error}{}", last_lines(output)));
    match error {
        LimitError::Interrupted => OpError::interrupted_with("nothing was imported"),
        LimitError::TooLong(_) => failed.with_hint("allow more time with --timeout"),
        LimitError::TooMuchMemory(_) => failed.with_hint("allow more memory with --max-memory"),
        LimitError::Failed(_) if ready.blocks_network() => {
            failed.with_hint("if it has to fetch dependencies, install them first or use --allow-network")
        }
        LimitError::Failed(_) | LimitError::NotRun(_) => failed,
    }
}

/// Returns the last lines of an output, each on a line of its own.
fn last_lines(output: &str) -> String {
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    let shown = &lines[lines.len().saturating_sub(N_SHOWN_LINES)..];
    shown.iter().map(|line| format!("\n  {line}")).collect()
}
