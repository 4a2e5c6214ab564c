//! The line in a repository's own `info/exclude` that keeps the sidecar out of `git status`.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::Result;

use super::{PATIENCE, Workspace};
use crate::sidecar::{Sidecar, remove_stale_temporaries, write_atomic};

/// Keeps the sidecar out of the repository it lies in.
const EXCLUDE_LINE: &str = "/.codescout/";

impl Workspace {
    /// Keeps the sidecar out of `git status` by the repository's own `info/exclude`.
    pub fn exclude_sidecar(&self, sidecar: &Sidecar, interrupt: &AtomicBool) -> Result<()> {
        if !self.needs_exclude_line()? {
            return Ok(());
        }
        // Two first runs at once must not both write, and who was killed here has left a file that only the holder may remove.
        let _lock = sidecar.lock_unless(PATIENCE, interrupt)?;
        Ok(self.write_exclude_line()?)
    }

    /// Adds the line if it is not there. The caller holds the lock, or has just made the sidecar.
    pub(super) fn write_exclude_line(&self) -> std::io::Result<()> {
        match self.exclude_without_line()? {
            Some((path, text)) => add_exclude_line(&path, &text),
            None => Ok(()),
        }
    }

    /// Whether the sidecar is in the work tree and `info/exclude` does not say so.
    pub fn needs_exclude_line(&self) -> std::io::Result<bool> {
        Ok(self.exclude_without_line()?.is_some())
    }

    /// `info/exclude` with its text, if it lacks the line.
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
    // The user's link stays, and what it leads to is written.
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
