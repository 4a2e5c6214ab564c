//! The file with which a CI system keeps the index between its jobs.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::git::{ExchangeError, Repository, origin_host, read_small_file};
use crate::sidecar::RealFolder;

/// The file for GitHub, relative to the root of the worktree, and its folders, the outermost first.
const GITHUB_FILE: &str = ".github/workflows/codescout.yml";
const GITHUB_FOLDERS: [&str; 2] = [".github", ".github/workflows"];
/// The second one serves SSH on the port of HTTPS.
const GITHUB_HOSTS: [&str; 2] = ["github.com", "ssh.github.com"];
const GITHUB_TEMPLATE: &str = include_str!("../../docs/ci/github.yml");
/// The file for GitLab, which has other jobs too.
const GITLAB_FILE: &str = ".gitlab-ci.yml";
const GITLAB_TEMPLATE: &str = include_str!("../../docs/ci/gitlab.yml");
/// Every template has this command.
const COMMAND: &str = "codescout ci restore";

/// The CI file of a repository.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CiFile {
    /// It can be created.
    Missing(NewCiFile),
    /// It exists, and is never changed.
    Exists(PathBuf),
    /// It cannot be created, for this reason.
    Left(String),
}

/// A CI file to create, or that was created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NewCiFile {
    pub(crate) path: PathBuf,
    /// Folders that are created with it, the outermost first.
    folders: Vec<PathBuf>,
}

impl CiFile {
    /// Finds out which file the repository needs, by the host of its remote `origin`. Changes nothing.
    pub(crate) fn of(repository: &Repository) -> Result<Self, ExchangeError> {
        let Some(root) = repository.work_dir() else {
            return Ok(Self::Left("a bare repository has no files".to_owned()));
        };
        let host = origin_host(repository)?;
        Ok(match host.as_deref() {
            Some(host) if GITHUB_HOSTS.contains(&host) => Self::for_github(root),
            Some(host) if host.split(['.', '-']).any(|part| part == "gitlab") => Self::for_gitlab(root),
            Some(host) => Self::Left(format!(
                "there is no template for {host}; docs/ci/cache.sh works in any shell"
            )),
            None => Self::Left("there is no remote origin whose host implies the CI system".to_owned()),
        })
    }

    fn for_gitlab(root: &Path) -> Self {
        let path = root.join(GITLAB_FILE);
        match read_small_file(&path) {
            Ok(Some(text)) if String::from_utf8_lossy(&text).lines().any(runs_command) => Self::Exists(path),
            _ => Self::Left(format!(
                "add this to {GITLAB_FILE}, which has your other jobs:\n{GITLAB_TEMPLATE}"
            )),
        }
    }

    fn for_github(root: &Path) -> Self {
        let path = root.join(GITHUB_FILE);
        if path.symlink_metadata().is_ok() {
            return Self::Exists(path);
        }
        let folders = GITHUB_FOLDERS.map(|folder| root.join(folder));
        let is_other = |folder: &&PathBuf| folder.symlink_metadata().is_ok_and(|found| !found.is_dir());
        if let Some(folder) = folders.iter().find(is_other) {
            return Self::Left(format!("{} is not a folder", folder.display()));
        }
        let missing = folders.into_iter().filter(|folder| !folder.exists());
        Self::Missing(NewCiFile {
            path,
            folders: missing.collect(),
        })
    }
}

impl NewCiFile {
    /// Creates the file. Fails if it exists by now.
    pub(crate) fn create(&self) -> io::Result<()> {
        let (folder, name) = RealFolder::of_file(&self.path, true)?;
        folder.create(&name, GITHUB_TEMPLATE.as_bytes())
    }

    /// Returns true if these are the file and folders of the repository. A record can come from elsewhere.
    pub(crate) fn is_of(&self, repository: &Repository) -> bool {
        repository.work_dir().is_some_and(|root| {
            let known = GITHUB_FOLDERS.map(|folder| root.join(folder));
            self.path == root.join(GITHUB_FILE) && self.folders.iter().all(|folder| known.contains(folder))
        })
    }

    /// Returns true if the file has the content with which it was created.
    pub(crate) fn is_unchanged(&self) -> bool {
        let is_file = self.path.symlink_metadata().is_ok_and(|found| found.is_file());
        is_file && matches!(read_small_file(&self.path), Ok(Some(text)) if text == GITHUB_TEMPLATE.as_bytes())
    }

    /// Removes the file, and the folders that were created with it if they are empty. Returns false if the file has been
    /// changed since it was created.
    pub(crate) fn remove(&self) -> io::Result<bool> {
        let (folder, name) = RealFolder::of_file(&self.path, false)?;
        let mut text = Vec::new();
        let limit = GITHUB_TEMPLATE.len() as u64 + 1;
        folder.file(&name)?.take(limit).read_to_end(&mut text)?;
        if text != GITHUB_TEMPLATE.as_bytes() {
            return Ok(false);
        }
        folder.remove(&name)?;
        for folder in self.folders.iter().rev() {
            let removed = RealFolder::of_file(folder, false).and_then(|(folder, name)| folder.remove_folder(&name));
            if removed.is_err() {
                // The folder contains other files by now.
                break;
            }
        }
        Ok(true)
    }
}

/// Returns true if a line of a CI file has the command, not in a comment.
fn runs_command(line: &str) -> bool {
    line.split('#').next().is_some_and(|code| code.contains(COMMAND))
}
