//! Recognises lock files and vendored code by their paths.

use crate::model::RepoPath;

const LOCK_FILES: [&str; 27] = [
    "Cargo.lock",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "bun.lock",
    "bun.lockb",
    "deno.lock",
    "composer.lock",
    "Gemfile.lock",
    "poetry.lock",
    "Pipfile.lock",
    "uv.lock",
    "pdm.lock",
    "pixi.lock",
    "go.sum",
    "go.work.sum",
    "mix.lock",
    "pubspec.lock",
    "Podfile.lock",
    "Package.resolved",
    "packages.lock.json",
    "flake.lock",
    "stack.yaml.lock",
    "cabal.project.freeze",
    "gradle.lockfile",
    "renv.lock",
];

const VENDORED_FOLDERS: [&str; 14] = [
    "node_modules",
    "vendor",
    "vendors",
    "third_party",
    "third-party",
    "thirdparty",
    "bower_components",
    "jspm_packages",
    "Godeps",
    "Pods",
    "Carthage",
    "site-packages",
    ".yarn",
    "_vendor",
];

/// Returns true if the file is the lock file of a package manager, judging by its name.
pub fn is_lock_file(path: &RepoPath) -> bool {
    LOCK_FILES.iter().any(|name| name.as_bytes() == path.file_name())
}

/// Returns true if a parent directory has a conventional name of directories for third-party code.
pub fn is_vendored(path: &RepoPath) -> bool {
    let bytes = path.as_bytes();
    let folders = &bytes[..bytes.len() - path.file_name().len()];
    folders
        .split(|&byte| byte == b'/')
        .any(|folder| VENDORED_FOLDERS.iter().any(|name| name.as_bytes() == folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_files_are_recognised_by_name_in_any_directory() {
        assert!(is_lock_file(&"Cargo.lock".into()));
        assert!(is_lock_file(&"web/package-lock.json".into()));
        assert!(!is_lock_file(&"src/lock.rs".into()));
        assert!(!is_lock_file(&"go.sum/readme".into()));
    }

    #[test]
    fn vendored_code_is_recognised_by_directory_name() {
        assert!(is_vendored(&"vendor/a/b.go".into()));
        assert!(is_vendored(&"web/node_modules/x/index.js".into()));
        assert!(!is_vendored(&"src/vendor".into()));
        assert!(!is_vendored(&"src/vendoring/a.rs".into()));
    }
}
