//! Opens a repository by its address: clones it into the user's cache once.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::error::{Context as _, OpError, Result};
use crate::config::{Config, Environment, Overrides, RepositoryFiles};
use crate::git::{Bounds, clone_bare, fetch_bare, host_of};

/// Limit on what a clone may take on disk.
const MAX_BYTES: u64 = 4 << 30;
/// Time limit of a clone.
const MAX_TIME: Duration = Duration::from_secs(1800);

/// Returns true for an address of a repository on a server; false for a folder.
pub(crate) fn is_address(repo: &str) -> bool {
    (repo.contains("://") || host_of(repo).is_some()) && !Path::new(repo).exists()
}

/// Returns the folder of the mirror of a repository. Clones it if there is none, and fetches if `is_fetched`. Only hosts
/// that the user's own settings allow are contacted.
pub(crate) fn mirror_of(
    address: &str,
    is_fetched: bool,
    interrupt: &AtomicBool,
    said: &dyn Fn(&str),
) -> Result<PathBuf> {
    let user = address
        .split_once("://")
        .and_then(|(_, rest)| rest.split('/').next()?.rsplit_once('@'));
    let is_odd = address
        .chars()
        .any(|c| c.is_whitespace() || c.is_control() || "?#\\".contains(c));
    if is_odd || user.is_some_and(|(user, _)| user.contains(':')) {
        return Err(OpError::new(
            "the address has a password, spaces, ?, # or \\",
            "leave them out; git asks its credential helpers",
        ));
    }
    let environment = Environment::read();
    // A repository at hand has no say in this.
    let config = Config::resolve(&Overrides::default(), &environment, &RepositoryFiles::default())?;
    let host = host_of(address).unwrap_or_else(|| "file".to_owned());
    let allowed = &config.clone.hosts.value;
    if !allowed
        .as_deref()
        .unwrap_or_default()
        .split(',')
        .any(|name| name.trim().eq_ignore_ascii_case(&host))
    {
        return Err(OpError::new(
            format!("cloning from {host} is not allowed"),
            format!("to allow it: codescout config set --user clone.hosts {host} (several are separated by commas)"),
        ));
    }
    let cache = environment
        .cache
        .context("neither HOME nor XDG_CACHE_HOME is set")?
        .join("clones");
    let id = blake3::hash(address.as_bytes()).to_hex();
    let name = address
        .trim_end_matches('/')
        .trim_end_matches(".git")
        .rsplit(['/', ':'])
        .next()
        .unwrap_or_default();
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let name: String = name.chars().filter(is_plain).take(40).collect();
    let folder = cache.join(format!("{name}-{}.git", &id[..16]));
    let bounds = Bounds {
        max_bytes: MAX_BYTES,
        until: Some(Instant::now() + MAX_TIME),
        interrupt,
    };
    if !folder.exists() {
        said(&format!("cloning into {}", folder.display()));
        fs::create_dir_all(&cache).with_context(|| format!("cannot create {}", cache.display()))?;
        remove_abandoned(&cache);
        let work = tempfile::tempdir_in(&cache).with_context(|| format!("cannot write to {}", cache.display()))?;
        clone_bare(address, &folder, work.path(), &bounds)?;
    } else if is_fetched {
        said("fetching");
        fetch_bare(address, &folder, &bounds)?;
    }
    Ok(folder)
}

/// Removes the folders that interrupted clones have left.
fn remove_abandoned(cache: &Path) {
    for entry in fs::read_dir(cache).into_iter().flatten().flatten() {
        let age = entry
            .metadata()
            .and_then(|found| found.modified())
            .ok()
            .and_then(|time| time.elapsed().ok());
        let is_temporary = entry.file_name().as_encoded_bytes().starts_with(b".tmp");
        if is_temporary && age.is_some_and(|age| age > 2 * MAX_TIME) {
            _ = fs::remove_dir_all(entry.path());
        }
    }
}
