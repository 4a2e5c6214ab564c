//! Detects that a worktree has not changed since it was last compared, so that it need not be compared again.
//!
//! The kernel records changes in each watched directory (inotify). It does so within the system call that makes the
//! change, so a change made before a query is never missed. Some changes are not recorded: writes through a memory map
//! or another hard link, changes by another machine, and changes of a global ignore file. A watch is therefore valid
//! only for a short time.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::open::Repository;

/// Time after which a watch expires even if no change was recorded.
const VALID_FOR: Duration = Duration::from_secs(5);
/// Minimum and maximum of the limit on watched directories. Within this range, the limit is an eighth of the number of
/// watches that the system allows, because all programs of the user share the watches.
const MAX_FOLDERS: (usize, usize) = (4_000, 32_000);

/// A watch over all directories of a worktree. It ends with the first change.
#[derive(Debug)]
pub struct WorktreeWatch {
    notes: notes::Notes,
    began: Instant,
}

impl WorktreeWatch {
    /// Starts to watch a worktree. Returns `None` if changes cannot be detected: there is no worktree, it contains
    /// other repositories (checked-out submodules) or too many directories, other machines may change the file system,
    /// or the system has no inotify.
    pub fn begin(repository: &Repository) -> Option<Self> {
        let root = repository.work_dir()?;
        let mut notes = notes::Notes::new(root)?;
        let mut folders = vec![root.to_owned()];
        for git_dir in [repository.git_dir(), repository.common_dir()] {
            notes.watch(git_dir)?;
            let info = git_dir.join("info");
            if info.is_dir() {
                notes.watch(&info)?;
            }
        }
        let max_folders = (notes::allowed() / 8).clamp(MAX_FOLDERS.0, MAX_FOLDERS.1);
        let mut n_folders = 0;
        while let Some(folder) = folders.pop() {
            n_folders += 1;
            if n_folders > max_folders {
                return None;
            }
            // Watch before listing, so that a directory created in between is either listed or recorded.
            notes.watch(&folder)?;
            folders.extend(folders_in(&folder, folder == root)?);
        }
        Some(Self {
            notes,
            began: Instant::now(),
        })
    }

    /// Returns true if the watch has not expired and nothing has changed since it began. Once false, the result stays
    /// false.
    pub fn holds(&self) -> bool {
        self.began.elapsed() < VALID_FOR && self.notes.are_none()
    }

    /// Makes a watch that has expired valid again. The worktree must be compared afterwards.
    pub fn renew(&mut self) {
        self.began = Instant::now();
    }

    /// Returns true if something has changed since the watch began, whether or not the watch has expired.
    pub fn saw_changes(&self) -> bool {
        !self.notes.are_none()
    }
}

/// Returns the subdirectories, except those of git and codescout. Returns `None` if the directory is another
/// repository. Does not follow symbolic links.
fn folders_in(folder: &Path, is_root: bool) -> Option<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).ok()? {
        let entry = entry.ok()?;
        let name = entry.file_name();
        if name == ".git" && !is_root {
            return None;
        }
        let is_ours = is_root && (name == ".git" || name == ".codescout");
        if !is_ours && entry.file_type().ok()?.is_dir() {
            found.push(entry.path());
        }
    }
    Some(found)
}

#[cfg(target_os = "linux")]
mod notes {
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

    /// The `statfs(2)` types of file systems that only this machine can change: ext2 to ext4, XFS, Btrfs, tmpfs,
    /// overlayfs, F2FS, ZFS.
    const LOCAL: &[u64] = &[
        0xef53,
        0x5846_5342,
        0x9123_683e,
        0x0102_1994,
        0x794c_7630,
        0xf2f5_2010,
        0x2fc1_2fc1,
    ];

    /// Returns the number of watches that the system allows per user.
    pub(super) fn allowed() -> usize {
        let text = std::fs::read_to_string("/proc/sys/fs/inotify/max_user_watches");
        text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
    }

    /// An inotify instance.
    #[derive(Debug)]
    pub(super) struct Notes(OwnedFd);

    impl Notes {
        pub(super) fn new(root: &Path) -> Option<Self> {
            let kind = rustix::fs::statfs(root).ok()?.f_type as u64 & 0xffff_ffff;
            if !LOCAL.contains(&kind) {
                return None;
            }
            inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)
                .ok()
                .map(Self)
        }

        pub(super) fn watch(&mut self, folder: &Path) -> Option<()> {
            let changes = WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::MODIFY
                | WatchFlags::ATTRIB
                | WatchFlags::MOVE
                | WatchFlags::DELETE_SELF
                | WatchFlags::MOVE_SELF
                | WatchFlags::ONLYDIR
                | WatchFlags::DONT_FOLLOW;
            inotify::add_watch(&self.0, folder, changes).ok().map(|_| ())
        }

        /// Returns true if no event is pending. Events are never read from the queue, because the first one ends the
        /// watch.
        pub(super) fn are_none(&self) -> bool {
            matches!(rustix::io::ioctl_fionread(&self.0), Ok(0))
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod notes {
    use std::path::Path;

    pub(super) fn allowed() -> usize {
        0
    }

    #[derive(Debug)]
    pub(super) struct Notes;

    impl Notes {
        pub(super) fn new(_root: &Path) -> Option<Self> {
            None
        }

        pub(super) fn watch(&mut self, _folder: &Path) -> Option<()> {
            None
        }

        pub(super) fn are_none(&self) -> bool {
            false
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]
    use std::fs;

    use super::*;
    use crate::support::TestRepo;

    /// Makes a change during a watch. Returns true if the watch is still valid afterwards.
    fn holds_after(repo: &TestRepo, change: impl FnOnce()) -> Option<bool> {
        let repository = Repository::open(repo.root()).unwrap();
        let stillness = WorktreeWatch::begin(&repository)?;
        assert!(stillness.holds());
        change();
        Some(stillness.holds())
    }

    #[test]
    fn every_change_is_noted_at_once() {
        let repo = TestRepo::new("//- src/a.rs\nfn a() {}\n//- deep/er/b.rs\nfn b() {}\n");
        let root = repo.root().to_owned();
        fs::create_dir(root.join("empty")).unwrap();
        let changes: Vec<Box<dyn FnOnce()>> = vec![
            Box::new(|| fs::write(root.join("src/a.rs"), "fn a() { 1 }\n").unwrap()),
            Box::new(|| fs::write(root.join("deep/er/new.rs"), "").unwrap()),
            Box::new(|| fs::write(root.join("empty/new.rs"), "").unwrap()),
            Box::new(|| fs::remove_file(root.join("deep/er/b.rs")).unwrap()),
            Box::new(|| fs::rename(root.join("src"), root.join("source")).unwrap()),
            Box::new(|| fs::create_dir(root.join("another")).unwrap()),
            Box::new(|| {
                repo.git(["add", "-A"]);
            }),
            Box::new(|| {
                repo.git(["config", "core.autocrlf", "true"]);
            }),
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let Some(holds) = holds_after(&repo, change) else {
                eprintln!("skipped: no notes on this file system");
                return;
            };
            assert!(!holds, "change {number} was not noted");
        }
        assert_eq!(
            holds_after(&repo, || drop(fs::read(root.join(".gitignore")))),
            Some(true)
        );
    }

    #[test]
    fn a_work_tree_with_a_repository_in_it_is_not_watched() {
        let repo = TestRepo::new("//- a.rs\nfn a() {}\n");
        fs::create_dir_all(repo.root().join("deep/inner")).unwrap();
        fs::write(repo.root().join("deep/inner/.git"), "gitdir: elsewhere\n").unwrap();
        let repository = Repository::open(repo.root()).unwrap();
        assert!(WorktreeWatch::begin(&repository).is_none());
    }
}
