//! Finds programs of the user. What a repository contains is never found.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

/// Returns the program as found on a search path. Entries of the path that are relative or lead into one of the folders
/// `roots` do not count.
pub fn find_program(name: &str, search_path: &OsStr, roots: &[&Path]) -> Option<PathBuf> {
    let mut parts = Path::new(name).components();
    if !matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None)) {
        return None;
    }
    let folders = std::env::split_paths(search_path).filter(|folder| folder.is_absolute());
    let is_found = |program: &PathBuf| is_program(program) && !leads_into(program, roots);
    folders.map(|folder| folder.join(name)).find(is_found)
}

/// Returns true if the file at `path` can be executed.
pub fn is_program(path: &Path) -> bool {
    let found = fs::metadata(path);
    found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Returns true if a path leads into one of the folders `roots`. A link inside of one counts, even if it leads out.
pub fn leads_into(path: &Path, roots: &[&Path]) -> bool {
    let roots: Vec<PathBuf> = roots.iter().filter_map(|root| root.canonicalize().ok()).collect();
    let is_within = |path: &Path| roots.iter().any(|root| path.starts_with(root));
    let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
    path.canonicalize().map_or(true, |path| is_within(&path)) || parent.is_some_and(|parent| is_within(&parent))
}
