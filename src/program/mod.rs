//! Finds other programs and starts them.
//!
//! No other module does, so that nothing in a repository is run by accident: a relative folder in `PATH`, or an empty
//! one, would be the folder in which this program was started. It does not count, here or for what a program starts.
//! Neither does a folder of the repository at hand or of the checkout around the current folder, except for a language
//! server, which may need the user's packages.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// The search path if none is left.
const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Returns the program as found on a search path. Relative folders of the path, and programs that lead into one of the
/// folders `roots`, do not count.
pub fn find_program(name: &str, search_path: &OsStr, roots: &[&Path]) -> Option<PathBuf> {
    let mut parts = Path::new(name).components();
    if !matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None)) || name.contains('/') {
        return None;
    }
    let is_found = |program: &PathBuf| is_program(program) && !leads_into(program, roots);
    absolute_folders(search_path)
        .map(|folder| folder.join(name))
        .find(is_found)
}

/// Returns true if the file at `path` can be executed.
pub fn is_program(path: &Path) -> bool {
    let found = fs::metadata(path);
    found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Returns true if a path leads into one of the folders `roots` or, if there are any, into the checkout around the current
/// folder, which may be another repository. A link inside of one counts, even if it leads out.
pub fn leads_into(path: &Path, roots: &[&Path]) -> bool {
    if roots.is_empty() {
        return false;
    }
    let here = checkout_around(Path::new("."));
    let roots = roots.iter().filter_map(|root| root.canonicalize().ok());
    let roots: Vec<PathBuf> = roots.chain(here).collect();
    let is_within = |path: &Path| roots.iter().any(|root| path.starts_with(root));
    let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
    path.canonicalize().map_or(true, |path| is_within(&path)) || parent.is_some_and(|parent| is_within(&parent))
}

/// Returns the folders of a search path that are absolute, in its order. Those of `/proc`, and those to which a way leads
/// through it, depend on the current folder.
pub fn absolute_folders(search_path: &OsStr) -> impl Iterator<Item = PathBuf> {
    let is_of_processes = |path: &Path| path.starts_with("/proc");
    let is_fixed = move |folder: &PathBuf| {
        let mut real = folder.ancestors().filter_map(|part| part.canonicalize().ok());
        folder.is_absolute() && !is_of_processes(folder) && !real.any(|part| is_of_processes(&part))
    };
    env::split_paths(search_path).filter(is_fixed)
}

/// Returns a search path of folders. It is never empty, as that would mean the current folder.
pub fn joined_path(folders: impl Iterator<Item = PathBuf>) -> OsString {
    // Fails only for a folder that contains the separator, which no split path does.
    let joined = env::join_paths(folders).unwrap_or_default();
    if joined.is_empty() { SYSTEM_PATH.into() } else { joined }
}

/// Returns the absolute folders of `PATH` that do not lead into one of the folders `roots`, for programs that are started.
pub fn search_path(roots: &[&Path]) -> OsString {
    let path = env::var_os("PATH").unwrap_or_default();
    joined_path(absolute_folders(&path).filter(|folder| !leads_into(folder, roots)))
}

/// Returns the nearest folder at or above `folder` that has an entry `.git`.
pub fn checkout_around(folder: &Path) -> Option<PathBuf> {
    let folder = folder.canonicalize().ok()?;
    folder
        .ancestors()
        .find(|folder| folder.join(".git").exists())
        .map(Path::to_owned)
}

/// Returns the path of this program, even if another version has been installed since it was started.
pub fn this_program() -> io::Result<PathBuf> {
    let running = Path::new("/proc/self/exe");
    if cfg!(target_os = "linux") && running.exists() {
        Ok(running.to_owned())
    } else {
        env::current_exe()
    }
}

/// Returns the command that runs the program with a name on `PATH`, or at an absolute path. Neither it nor the programs
/// that it starts are found on `PATH` in one of the folders `roots`.
pub fn command(name: &str, roots: &[&Path]) -> io::Result<Command> {
    let missing = || io::Error::new(io::ErrorKind::NotFound, format!("there is no program {name:?} on PATH"));
    let search_path = search_path(roots);
    let named = Some(PathBuf::from(name)).filter(|path| path.is_absolute());
    let program = named.or_else(|| find_program(name, &search_path, roots));
    let mut command = command_at(&program.ok_or_else(missing)?)?;
    command.env("PATH", search_path);
    Ok(command)
}

/// Returns the command that runs the program at an absolute path, with the absolute folders of `PATH`.
pub fn command_at(program: &Path) -> io::Result<Command> {
    if !program.is_absolute() {
        let message = format!("the path of the program {} is relative", program.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let mut command = Command::new(program);
    command.env("PATH", search_path(&[]));
    Ok(command)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    /// Returns a folder with the program `tool`.
    fn with_tool() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let tool = folder.path().join("tool");
        fs::write(&tool, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
        folder
    }

    #[test]
    fn only_absolute_folders_of_a_search_path_count() {
        let folder = with_tool();
        let path = folder.path().to_str().unwrap();
        // The way from the current folder to the program.
        let here = env::current_dir().unwrap();
        let relative = format!("{}{path}", "../".repeat(here.components().count() - 1));
        assert!(is_program(&Path::new(&relative).join("tool")));
        for search_path in ["", ":", ".", "bin:", &relative, &format!("{relative}::.")] {
            assert_eq!(find_program("tool", search_path.as_ref(), &[]), None, "{search_path}");
            let all = joined_path(absolute_folders(search_path.as_ref()));
            assert_eq!(all, SYSTEM_PATH, "{search_path}");
        }
        let found = Some(folder.path().join("tool"));
        let search_path = format!("::.:{relative}:{path}");
        assert_eq!(find_program("tool", search_path.as_ref(), &[]), found);
        assert_eq!(joined_path(absolute_folders(search_path.as_ref())), path);
        assert_eq!(find_program("tool", path.as_ref(), &[folder.path()]), None);
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/proc/self", &link).unwrap();
        let through_link = link.join("cwd");
        for search_path in [
            "/proc/self/cwd",
            "/tmp/../proc/self/cwd",
            through_link.to_str().unwrap(),
        ] {
            let all = joined_path(absolute_folders(search_path.as_ref()));
            assert_eq!(all, SYSTEM_PATH, "{search_path}");
        }
    }

    #[test]
    fn a_name_is_not_a_path() {
        let folder = with_tool();
        let path = folder.path().as_os_str();
        for name in ["", ".", "..", "./tool", "tool/", "../tool", "/tool"] {
            assert_eq!(find_program(name, path, &[]), None, "{name}");
        }
        for name in ["./tool", "no-such-program", ""] {
            assert!(command(name, &[]).is_err(), "{name}");
        }
        let tool = folder.path().join("tool");
        assert_eq!(
            command(tool.to_str().unwrap(), &[]).unwrap().get_program(),
            tool.as_os_str()
        );
    }
}
