//! Clones repositories by their addresses into bare mirrors.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::bounded::Bounds;
use super::exchange::{ExchangeError, is_allowed, outcome, transferring, without_password};

/// Every branch and tag.
const REFSPECS: [&str; 2] = ["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"];

/// Clones the repository at `address` to the bare repository `folder`, which must not exist. `work` is an empty folder
/// on the same file system.
pub fn clone_bare(address: &str, folder: &Path, work: &Path, bounds: &Bounds<'_>) -> Result<(), ExchangeError> {
    if !is_allowed(address) {
        return Err(ExchangeError::Address {
            address: without_password(address),
        });
    }
    let mut command = git_in(work)?;
    command.args(["clone", "--quiet", "--bare", "--template=", "--", address, "mirror.git"]);
    run(command, address, work, bounds)?;
    match fs::rename(work.join("mirror.git"), folder) {
        // Another process was faster.
        Err(_) if folder.join("HEAD").exists() => Ok(()),
        renamed => renamed.map_err(|source| ExchangeError::Io {
            path: folder.to_owned(),
            source,
        }),
    }
}

/// Fetches the branches and tags of the repository at `address` into the bare repository `folder`.
pub fn fetch_bare(address: &str, folder: &Path, bounds: &Bounds<'_>) -> Result<(), ExchangeError> {
    let mut command = git_in(folder)?;
    command.args([
        "fetch",
        "--quiet",
        "--prune",
        "--no-write-fetch-head",
        "--recurse-submodules=no",
        "--",
        address,
    ]);
    command.args(REFSPECS);
    run(command, address, folder, bounds)?;
    // The default branch may have another name now.
    let mut command = git_in(folder)?;
    command.args(["ls-remote", "--quiet", "--symref", "--", address, "HEAD"]);
    let printed = run(command, address, folder, bounds)?;
    let printed = String::from_utf8_lossy(&printed);
    let branch = printed
        .lines()
        .find_map(|line| line.strip_prefix("ref: ")?.split_whitespace().next());
    if let Some(branch) = branch.filter(|branch| branch.starts_with("refs/heads/")) {
        let mut command = git_in(folder)?;
        command.args(["symbolic-ref", "HEAD", branch]);
        run(command, address, folder, bounds)?;
    }
    Ok(())
}

/// Returns git for a folder in the cache.
fn git_in(folder: &Path) -> Result<Command, ExchangeError> {
    let mut command = transferring(folder, &[folder])?;
    // A server must not lead to another host.
    command.args(["-c", "http.followRedirects=false"]);
    Ok(command)
}

fn run(mut command: Command, address: &str, folder: &Path, bounds: &Bounds<'_>) -> Result<Vec<u8>, ExchangeError> {
    let output = bounds
        .output(&mut command, folder, b"")
        .map_err(|source| ExchangeError::Bound {
            address: without_password(address),
            source,
        })?;
    outcome("clone", address, output)
}
