//! The line in a repository's own `info/exclude` that keeps the sidecar out of `git status`.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::Result;

use super::{PATIENCE, Workspace};
use crate::sidecar::{Sidecar, remove_stale_temporaries, write_atomic};

/// The line that excludes the sidecar.
const EXCLUDE_LINE: &str = "/.codescout/";

impl Workspace {
    /// Adds the sidecar to the repository's own `info/exclude`, so that `git status` does not list it.
    pub fn exclude_sidecar(&self, sidecar: &Sidecar, interrupt: &AtomicBool) -> Result<()> {
        if !self.needs_exclude_line()? {
            return Ok(());
        }
        // The lock keeps two concurrent first runs from both writing. A killed run leaves a temporary file here that
        // only the lock holder may remove.
        let _lock = sidecar.lock_unless(PATIENCE, interrupt)?;
        Ok(self.write_exclude_line()?)
    }

    /// Adds the line if it is missing. The caller holds the lock or has just created the sidecar.
    pub(super) fn write_exclude_line(&self) -> std::io::Result<()> {
        match self.exclude_without_line()? {
            Some((path, text)) => add_exclude_line(&path, &text),
            None => Ok(()),
        }
    }

    /// Returns true if the sidecar is inside the worktree and `info/exclude` lacks the line.
    pub fn needs_exclude_line(&self) -> std::io::Result<bool> {
        Ok(self.exclude_without_line()?.is_some())
    }

    /// The path and text of `info/exclude`, if it lacks the line.
    fn exclude_without_line(&self) -> std::io::Result<Option<(PathBuf, String)>> {
        let main = self.repository.main_work_dir();
        if !main.is_some_and(|root| self.sidecar_root().starts_with(root)) {
            return Ok(None);
        }
        let path = self.repository.common_dir().join("info").join("exclude");
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let has_line = text.lines().any(|line| line.trim() == EXCLUDE_LINE);
        Ok((!has_line).then_some((path, text)))
    }
}

fn add_exclude_line(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
        remove_stale_temporaries(folder)?;
    }
    // A symbolic link of the user stays; its target is written.
    let path = if path.is_symlink() {
        path.canonicalize()?
    } else {
        path.to_owned()
    };
    let separator = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    write_atomic(&path, format!("{text}{separator}{EXCLUDE_LINE}\n").as_bytes())
}
