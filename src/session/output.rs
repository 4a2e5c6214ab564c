//! Files outside of the sidecar that a command writes because the user names them.

use std::fs;
use std::path::{Component, Path, PathBuf};

use super::error::{Context as _, Result, ensure};
use super::workspace::Workspace;
use crate::program::checkout_around;
use crate::sidecar::write_atomic;

/// Resolves the folders of a file to write. Fails if the path leads through a link of the worktree, which may come from the
/// repository and lead anywhere. Folders of the path may be missing.
pub(crate) fn check_output(workspace: &Workspace, typed: &Path) -> Result<PathBuf> {
    let repository = &workspace.repository;
    let kept = [repository.git_dir(), repository.common_dir(), workspace.storage.root()];
    check_links(repository.work_dir(), &kept, typed)
}

/// Like [`check_output`], for a command that opens no repository: `folder` is where it runs.
pub(crate) fn check_output_from(folder: &Path, typed: &Path) -> Result<()> {
    let root = checkout_around(folder);
    let kept = root.iter().map(|root| root.join(".git")).collect::<Vec<_>>();
    let kept: Vec<&Path> = kept.iter().map(PathBuf::as_path).collect();
    check_links(root.as_deref(), &kept, typed).map(drop)
}

/// Resolves the folders of a path. Fails if it leads through a link below `root`, out of it or into one of the folders
/// `kept`.
fn check_links(root: Option<&Path>, kept: &[&Path], typed: &Path) -> Result<PathBuf> {
    let absolute = std::path::absolute(typed)?;
    let folders = absolute.ancestors().skip(1);
    // If none of them exists, the writer says so.
    let Some((folder, real)) = folders
        .filter_map(|folder| Some((folder, folder.canonicalize().ok()?)))
        .next()
    else {
        return Ok(absolute);
    };
    let resolved = real.join(absolute.strip_prefix(folder).unwrap_or(&absolute));
    let canonical = |path: &Path| path.canonicalize().ok();
    let root = root.and_then(canonical);
    let outermost = folder
        .ancestors()
        .filter(|above| root.is_some() && canonical(above) == root)
        .last();
    let Some((root, outermost)) = root.zip(outermost) else {
        return Ok(resolved);
    };
    let below = folder.strip_prefix(outermost).unwrap_or(Path::new(""));
    let is_link = fs::symlink_metadata(&absolute).is_ok_and(|found| found.is_symlink());
    let leads_away = !real.starts_with(&root)
        || kept
            .iter()
            .filter_map(|kept| canonical(kept))
            .any(|kept| real.starts_with(kept));
    ensure!(
        !is_link && (below_root(root, below) == real || !leads_away),
        "{} is, or is behind, a symbolic link; name another file, or - for standard output",
        typed.display()
    );
    Ok(resolved)
}

fn below_root(root: PathBuf, below: &Path) -> PathBuf {
    below.components().fold(root, |mut path, part| {
        match part {
            Component::ParentDir => _ = path.pop(),
            part => path.push(part),
        }
        path
    })
}

/// Writes a whole file atomically, or into a pipe or device.
pub(crate) fn write_text(path: &Path, text: &str) -> Result<()> {
    let is_stream = fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir());
    let written = if is_stream {
        fs::write(path, text)
    } else {
        std::path::absolute(path).and_then(|path| write_atomic(&path, text.as_bytes()))
    };
    written.with_context(|| format!("cannot write {}", path.display()))
}
