//! Temporary folders below which no other user can put files.
//!
//! Build tools read their settings from all folders above a project: `.cargo/config.toml`, `settings.gradle`, `go.work`,
//! `node_modules`. In a folder that all users can write, such as `/tmp`, these could be anyone's.

use std::env;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::error::{Context as _, OpError, Result};
use crate::config::Environment;

/// The user who may write everywhere.
const ROOT: u32 = 0;
/// Permission of a group or of others to write.
const WRITTEN_BY_OTHERS: u32 = 0o022;

/// Creates a folder whose parents only this user and root can write, and that `is_excluded` does not exclude. It is
/// removed with the value.
pub(super) fn private_folder(prefix: &str, is_excluded: impl Fn(&Path) -> bool) -> Result<TempDir> {
    let usual = env::temp_dir();
    let cache = Environment::read().cache;
    let is_usable = |folder: &PathBuf| is_private(folder).unwrap_or(false) && !is_excluded(folder);
    let own = || {
        let folder = cache.as_ref()?;
        // If it cannot be created, it is not usable.
        let _ = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        Some(folder.clone()).filter(is_usable)
    };
    let parent = Some(usual.clone()).filter(is_usable).or_else(own).ok_or_else(|| {
        let tried = [Some(&usual), cache.as_ref()].into_iter().flatten();
        let tried: Vec<String> = tried.map(|folder| folder.display().to_string()).collect();
        OpError::new(
            format!(
                "other users could place build settings above the checkout, or it would be inside the repository, in {}",
                tried.join(" and in ")
            ),
            "set TMPDIR to a folder outside of the repository that, like all folders above it, only you and root can write",
        )
    })?;
    // Without links: only these parents were checked.
    let parent = parent.canonicalize()?;
    let folder = tempfile::Builder::new().prefix(prefix).tempdir_in(&parent);
    folder.with_context(|| format!("cannot make a folder in {}", parent.display()))
}

/// Returns true if only this user and root can write a folder and those above it.
fn is_private(folder: &Path) -> io::Result<bool> {
    let us = rustix::process::geteuid().as_raw();
    for folder in folder.canonicalize()?.ancestors() {
        let found = fs::symlink_metadata(folder)?;
        if ![ROOT, us].contains(&found.uid()) || found.mode() & WRITTEN_BY_OTHERS != 0 {
            return Ok(false);
        }
    }
    Ok(true)
}
