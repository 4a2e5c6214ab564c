//! Converts between paths as typed, which are relative to the caller's directory, and paths as stored, which are
//! relative to the repository root.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bstr::ByteSlice;

use crate::model::{RepoPath, quoted, typed, with_placeholders, without_placeholders};
use crate::query::{SymbolQuery, parse_target};
use crate::session::{Result, Workspace};
use crate::snapshot::{FileId, View, linked_folder};

/// Converts a target as typed (`path`, `path:10-20`, `path#name`, `name`): removes quotes and makes its path relative
/// to the repository root.
///
/// A path is relative to the caller's directory if it exists there, and otherwise relative to the root. A path that
/// begins with `:/` is relative to the root. An absolute path must be below the worktree.
pub(crate) fn inside<'t>(workspace: &Workspace, target: &'t str) -> Cow<'t, str> {
    if let Some(target) = in_linked(workspace, target) {
        return Cow::Owned(target);
    }
    let target = match typed(target) {
        Cow::Borrowed(target) => below_root(workspace, target),
        Cow::Owned(target) => Cow::Owned(below_root(workspace, &target).into_owned()),
    };
    if let Some(path) = target.strip_prefix(":/") {
        return Cow::Owned(path.to_owned());
    }
    match from_here(workspace, &target) {
        Some(path) if is_there(workspace, &path) => Cow::Owned(path),
        _ => target,
    }
}

/// Converts a target like [`inside`], but treats its path as relative to the caller's directory even if it does not
/// exist there: the file may have been deleted, or be part of another revision. Returns `None` if the result is the
/// same.
pub(crate) fn inside_here(workspace: &Workspace, target: &str) -> Option<String> {
    let path = from_here(workspace, &below_root(workspace, &typed(target)))?;
    (!is_there(workspace, &path)).then_some(path)
}

/// Returns a target that begins with the name of a linked repository as one in its folder.
fn in_linked(workspace: &Workspace, target: &str) -> Option<String> {
    let (name, rest) = workspace.config.links.split(target)?;
    Some(linked_folder(name) + rest)
}

fn below_root<'t>(workspace: &Workspace, target: &'t str) -> Cow<'t, str> {
    let root = workspace.repository.work_dir().and_then(|root| root.to_str());
    let below = root.and_then(|root| target.strip_prefix(root)?.strip_prefix('/'));
    Cow::Borrowed(below.unwrap_or(target))
}

/// Converts a path relative to the caller's directory to one relative to the root. Returns `None` if that directory is
/// the root or the path is not relative to it.
fn from_here(workspace: &Workspace, path: &str) -> Option<String> {
    let here = workspace.here();
    if here.is_empty() || path.starts_with('/') || path.starts_with(":/") {
        return None;
    }
    below(here, path)
}

/// Returns the path that is written relative to a directory; `None` if it leads out of the repository.
pub(crate) fn below(folder: &str, written: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in written.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Returns true if the path of a target exists in the worktree. The target may end in `:lines` or `#name`.
fn is_there(workspace: &Workspace, target: &str) -> bool {
    on_disk(workspace, target).is_some()
}

/// Returns the absolute path of a target in the worktree, without `:lines` and `#name`; `None` if it does not exist.
pub(crate) fn on_disk(workspace: &Workspace, target: &str) -> Option<PathBuf> {
    let root = workspace.repository.work_dir()?;
    let ends = target.rmatch_indices([':', '#']).map(|(at, _)| at);
    let mut paths = std::iter::once(target.len()).chain(ends).map(|end| &target[..end]);
    paths.find_map(|path| {
        let path = without_placeholders(path);
        let path = root.join(Path::new(OsStr::from_bytes(&path)));
        path.symlink_metadata().is_ok().then_some(path)
    })
}

/// Converts a path as typed to one relative to the repository root and without trailing slashes. The path need not be
/// UTF-8.
pub(crate) fn typed_path(workspace: &Workspace, typed: &OsStr) -> RepoPath {
    let text = with_placeholders(typed.as_bytes());
    let text = inside(workspace, &text);
    let typed = without_placeholders(&text);
    let path = typed.strip_prefix(b"./").unwrap_or(&typed);
    RepoPath::new(if path == b"." {
        b""
    } else {
        path.trim_end_with(|c| c == '/')
    })
}

/// Converts a glob as typed to one relative to the repository root. The path of a file or directory on disk is matched
/// literally. In a subdirectory the result selects files below that directory: `*.rs` at any depth. `!*.rs` excludes
/// files of the whole repository.
pub(crate) fn pattern(workspace: &Workspace, typed: &str) -> String {
    let (sign, glob) = match typed.strip_prefix('!') {
        Some(glob) => ("!", glob),
        None => ("", typed),
    };
    if let Some(path) = in_linked(workspace, glob) {
        return format!("{sign}{path}");
    }
    let path = inside(workspace, glob);
    let path = path.trim_start_matches("./");
    if on_disk(workspace, path).is_some_and(|found| found.ends_with(path)) {
        return format!("{sign}{}", literal(path.trim_end_matches('/')));
    }
    let here = escaped(workspace.here());
    let is_relative = from_here(workspace, glob).is_some();
    match from_here(workspace, path).filter(|_| is_relative) {
        Some(below) if path.split('/').any(|part| part == "..") => format!("{sign}{below}"),
        Some(_) if path.contains('/') => format!("{sign}{here}/{path}"),
        Some(_) if sign.is_empty() => format!("{here}/**/{path}"),
        _ => format!("{sign}{path}"),
    }
}

/// Returns a pattern that matches only the file or directory at `path`.
pub(crate) fn literal(path: &str) -> String {
    // Patterns without a slash would match at any depth.
    escaped(path) + "/"
}

/// Returns a text as a pattern that matches only this text.
fn escaped(path: &str) -> String {
    let mut pattern = String::with_capacity(path.len());
    for letter in path.chars() {
        if "*?[]{}\\!".contains(letter) {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}

/// Converts a path relative to the repository root to one relative to the directory `here`. Keeps a suffix (`:10`,
/// `#name`).
pub(crate) fn seen_from(here: &str, path: &str) -> String {
    if let Some(quoted) = path.strip_prefix('"') {
        return format!("\"{}", seen_from(here, quoted));
    }
    // A path in a linked repository.
    if path.split_once('/').is_some_and(|(first, _)| first.ends_with(':')) {
        return path.to_owned();
    }
    let (mut here, mut rest) = (here, path);
    // Removes the directories that both paths have in common.
    while let (Some((first, below)), false) = (rest.split_once('/'), here.is_empty()) {
        let (directory, deeper) = here.split_once('/').unwrap_or((here, ""));
        if first != directory {
            break;
        }
        (here, rest) = (deeper, below);
    }
    let n_up = if here.is_empty() { 0 } else { here.split('/').count() };
    format!("{}{rest}", "../".repeat(n_up))
}

/// Parses a location, a name or an id as typed into a query. The flag is true for a location.
pub(crate) fn name_or_place(workspace: &Workspace, view: &View, typed: &str) -> Result<(SymbolQuery, bool)> {
    let query = parse_target(view, &inside(workspace, typed));
    let is_place = matches!(query, SymbolQuery::At { .. });
    Ok((query, is_place))
}

/// Returns the path of a file, quoted if it has special characters.
pub(crate) fn path_of(view: &View, file: FileId) -> String {
    quoted(view.file(file).path).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_shown_from_the_directory() {
        for (here, path, shown) in [
            ("", "src/a.rs:3", "src/a.rs:3"),
            ("src", "src/a.rs:3", "a.rs:3"),
            ("src/deep", "src/a.rs#f", "../a.rs#f"),
            ("src", "docs/x.md", "../docs/x.md"),
            ("src", "src-old/a.rs", "../src-old/a.rs"),
            ("src/a", "src/b/c/d.rs", "../b/c/d.rs"),
            ("src", "README.md", "../README.md"),
            ("src", "\"src/caf\\351.rs\"", "\"caf\\351.rs\""),
        ] {
            assert_eq!(seen_from(here, path), shown, "{here} {path}");
        }
    }
}
