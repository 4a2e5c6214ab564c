//! Waits for changes of refs, using file system events instead of polling.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};

use super::open::Repository;
use super::operation::OPERATION_MARKS;

/// Files directly in a git directory that change when refs change.
const REF_FILES: [&str; 3] = ["HEAD", "packed-refs", "shallow"];
/// Limit on a wait in a busy repository, as a multiple of the quiet period.
const MAX_QUIETS: u32 = 20;

/// Reports changes of a repository's refs.
pub struct RefWatch {
    events: Receiver<notify::Result<Event>>,
    /// Stops the events when dropped.
    _watcher: RecommendedWatcher,
    git_dir: PathBuf,
    common_dir: PathBuf,
}

/// An error from watching refs.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The system cannot report changes, because no watches are left or the file system does not support them.
    #[error("cannot watch {}", .path.display())]
    NotWatched {
        /// The path of the directory.
        path: PathBuf,
        /// The underlying error.
        #[source]
        source: notify::Error,
    },
    /// The repository was deleted or moved.
    #[error("the repository at {} no longer exists", .path.display())]
    Gone {
        /// The path of the git directory.
        path: PathBuf,
    },
}

impl Repository {
    /// Starts to watch `HEAD`, all refs and the files of unfinished operations. Watches a few directories, but not the
    /// worktree.
    pub fn watch_refs(&self) -> Result<RefWatch, WatchError> {
        let not_watched = |path: &Path| {
            let path = path.to_owned();
            move |source| WatchError::NotWatched { path, source }
        };
        let (sender, events) = channel();
        let mut watcher = notify::recommended_watcher(sender).map_err(not_watched(self.git_dir()))?;
        let mut watch = |path: &Path, mode| watcher.watch(path, mode).map_err(not_watched(path));
        watch(self.git_dir(), RecursiveMode::NonRecursive)?;
        if self.common_dir() != self.git_dir() {
            watch(self.common_dir(), RecursiveMode::NonRecursive)?;
        }
        for name in ["refs", "reftable"] {
            let folder = self.common_dir().join(name);
            if folder.is_dir() {
                watch(&folder, RecursiveMode::Recursive)?;
            }
        }
        Ok(RefWatch {
            events,
            _watcher: watcher,
            git_dir: self.git_dir().to_owned(),
            common_dir: self.common_dir().to_owned(),
        })
    }
}

impl RefWatch {
    /// Blocks until a ref changes, and then until no ref has changed for `quiet`.
    ///
    /// File system events can be lost, so callers must compare trees to find missed changes.
    pub fn wait(&self, quiet: Duration) -> Result<(), WatchError> {
        loop {
            let event = self.events.recv().map_err(|_| self.gone())?;
            if self.is_telling(&event) {
                break;
            }
        }
        let patience = Instant::now() + quiet * MAX_QUIETS;
        let mut quiet_at = Instant::now() + quiet;
        loop {
            let left = quiet_at.min(patience).saturating_duration_since(Instant::now());
            match self.events.recv_timeout(left) {
                Ok(event) if self.is_telling(&event) => quiet_at = Instant::now() + quiet,
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return Err(self.gone()),
            }
        }
        if self.git_dir.is_dir() {
            Ok(())
        } else {
            Err(self.gone())
        }
    }

    fn gone(&self) -> WatchError {
        WatchError::Gone {
            path: self.git_dir.clone(),
        }
    }

    fn is_telling(&self, event: &notify::Result<Event>) -> bool {
        // An error, for example a full queue, means that events were lost. Treat it as a change.
        let Ok(event) = event else { return true };
        // Reading refs also causes events. Reacting to them would cause an endless loop.
        let written = AccessKind::Close(AccessMode::Write);
        let is_read = matches!(event.kind, EventKind::Access(kind) if kind != written);
        !is_read && (event.need_rescan() || event.paths.iter().any(|path| self.is_ref_path(path)))
    }

    fn is_ref_path(&self, path: &Path) -> bool {
        if path.extension().is_some_and(|ending| ending == "lock") {
            return false;
        }
        let inside = path
            .strip_prefix(&self.git_dir)
            .or_else(|_| path.strip_prefix(&self.common_dir));
        let Ok(inside) = inside else { return false };
        let Some(first) = inside.iter().next() else {
            return true;
        };
        let mut names = ["refs", "reftable"].iter().chain(&REF_FILES).chain(&OPERATION_MARKS);
        names.any(|name| first == *name)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;
    use crate::support::TestRepo;

    const QUIET: Duration = Duration::from_millis(50);
    const LONG: Duration = Duration::from_secs(20);

    /// Runs `act` during a wait. Returns true if the wait ended.
    fn wakes(repo: &TestRepo, act: impl FnOnce()) -> bool {
        let watch = Repository::open(repo.root()).unwrap().watch_refs().unwrap();
        let (woke, waiting) = channel();
        std::thread::spawn(move || woke.send(watch.wait(QUIET).is_ok()));
        act();
        waiting.recv_timeout(LONG).unwrap_or(false)
    }

    #[test]
    fn commits_resets_and_new_branches_wake() {
        let repo = TestRepo::new("//- a\none\n");
        assert!(wakes(&repo, || {
            repo.write("a", "two\n");
            repo.commit("second");
        }));
        assert!(wakes(&repo, || drop(
            repo.git(["reset", "--quiet", "--hard", "HEAD~1"])
        )));
        assert!(wakes(&repo, || drop(repo.git(["branch", "deep/er/branch"]))));
        assert!(wakes(&repo, || drop(repo.git(["pack-refs", "--all"]))));
    }

    #[test]
    fn reading_refs_and_editing_files_do_not() {
        let repo = TestRepo::new("//- a\none\n");
        let repository = Repository::open(repo.root()).unwrap();
        let watch = repository.watch_refs().unwrap();
        repository.refs().unwrap();
        repo.write("a", "two\n");
        repo.git(["status"]);
        // Wait for an event that follows the others: then all earlier events are in the queue.
        repo.git(["branch", "mark"]);
        let is_branch = |path: &PathBuf| path.ends_with("refs/heads/mark");
        loop {
            let event = watch.events.recv_timeout(LONG).unwrap();
            if event.as_ref().is_ok_and(|event| event.paths.iter().any(is_branch)) {
                break;
            }
            let is_about_branch = event.as_ref().is_ok_and(|event| {
                event
                    .paths
                    .iter()
                    .any(|path| path.starts_with(repository.common_dir().join("refs")))
            });
            assert!(is_about_branch || !watch.is_telling(&event), "{event:?}");
        }
    }

    #[test]
    fn a_removed_repository_ends_the_wait() {
        let repo = TestRepo::new("//- a\none\n");
        assert!(!wakes(&repo, || std::fs::remove_dir_all(repo.path(".git")).unwrap()));
    }
}
