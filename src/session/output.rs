//! Files outside of the sidecar that a command writes because the user names them.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use super::error::{Context as _, Result, ensure};
use super::workspace::Workspace;

/// Fails if the path of a file to write leads through a link of the worktree, which may come from the repository and lead
/// anywhere.
pub(crate) fn check_output(workspace: &Workspace, typed: &Path) -> Result<()> {
    let absolute = std::path::absolute(typed)?;
    let (Some(folder), Some(name)) = (absolute.parent(), absolute.file_name()) else {
        return Ok(());
    };
    // The writer says what is wrong.
    let Ok(real) = folder.canonicalize() else {
        return Ok(());
    };
    let canonical = |path: &Path| path.canonicalize().ok();
    let root = workspace.repository.work_dir().and_then(canonical);
    let outermost = folder
        .ancestors()
        .filter(|above| root.is_some() && canonical(above) == root)
        .last();
    let Some((root, outermost)) = root.zip(outermost) else {
        return Ok(());
    };
    let below = folder.strip_prefix(outermost).unwrap_or(Path::new(""));
    let is_link = fs::symlink_metadata(real.join(name)).is_ok_and(|found| found.is_symlink());
    let repository = &workspace.repository;
    let kept = [repository.git_dir(), repository.common_dir(), workspace.storage.root()];
    let leads_away = !real.starts_with(&root)
        || kept
            .into_iter()
            .filter_map(canonical)
            .any(|kept| real.starts_with(kept));
    ensure!(
        !is_link && (below_root(root, below) == real || !leads_away),
        "{} is, or is behind, a symbolic link; name another file, or - for standard output",
        typed.display()
    );
    Ok(())
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

/// Writes a temporary file and renames it, so that the file is never incomplete and nothing is written through a link.
pub(crate) fn write_renamed<T>(path: &Path, write: impl FnOnce(&mut fs::File) -> Result<T>) -> Result<T> {
    let cannot = || format!("cannot write {}", path.display());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    ensure!(!path.is_dir(), "{} is a folder, not a file", path.display());
    ensure!(folder.is_dir(), "folder {} does not exist", folder.display());
    let mut file = tempfile::Builder::new()
        .prefix(".writing-")
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(folder)
        .with_context(cannot)?;
    if let Ok(old) = fs::metadata(path) {
        file.as_file().set_permissions(old.permissions()).with_context(cannot)?;
    }
    let value = write(file.as_file_mut())?;
    file.as_file().sync_all().with_context(cannot)?;
    file.persist(path).map_err(|error| error.error).with_context(cannot)?;
    Ok(value)
}

/// Writes a whole file like [`write_renamed`], or into a pipe or device.
pub(crate) fn write_text(path: &Path, text: &str) -> Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return fs::write(path, text).with_context(cannot);
    }
    write_renamed(path, |file| file.write_all(text.as_bytes()).with_context(cannot))
}
