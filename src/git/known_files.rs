//! Caches the contents of worktree files between comparisons.
//!
//! The index stores stat data only for files that equal the staged version. Without this cache, every comparison would
//! read all changed and untracked files again and list all directories. The cache is separate because the index belongs
//! to the user and must not be written.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gix::index::entry::Stat;
use rayon::prelude::*;

use super::beneath::Root;
use super::disk_file::WorkTreeReader;
use super::index::Tracked;
use super::open::Repository;
use super::scan::{Listings, Scan, index_stat};
use super::tree::FileMode;
use super::worktree::{OnDisk, WorkTreeError};
use crate::model::{Oid, RepoPath};

/// Minimum age at which stat data reliably reveal later changes. A younger file can change again without a change of
/// its times, because the clocks of file systems are coarse.
const SETTLED_AFTER: Duration = Duration::from_secs(3);

/// A cache of file contents and directory listings of one worktree. Stat data determine if an entry is still valid. An
/// empty cache is always valid.
#[derive(Clone)]
pub struct KnownFiles {
    settled_after: Duration,
    files: HashMap<RepoPath, KnownFile>,
    listings: Listings,
    /// The files that determine how contents are converted, with their stat data. A change invalidates all cached
    /// contents.
    rules: Vec<(Vec<u8>, Option<Stat>)>,
}

#[derive(Clone)]
struct KnownFile {
    stat: Stat,
    /// The index entry, which affects the conversion of line endings.
    tracked: Option<(FileMode, Oid)>,
    content: OnDisk,
}

/// A file that may have changed, so that its content must be compared.
pub(super) struct Candidate<'t> {
    pub(super) path: &'t [u8],
    pub(super) tracked: Option<&'t Tracked<'t>>,
    /// The stat data, if already known.
    pub(super) stat: Option<Stat>,
}

impl Candidate<'_> {
    fn entry(&self) -> Option<(FileMode, Oid)> {
        self.tracked.map(|tracked| (tracked.mode, tracked.oid))
    }
}

/// The content of a [`Candidate`].
#[derive(Clone)]
pub(super) struct Content {
    pub(super) on_disk: OnDisk,
    /// The stat data from before the file was read; `None` if the file does not exist.
    pub(super) stat: Option<Stat>,
}

impl Default for KnownFiles {
    fn default() -> Self {
        Self {
            settled_after: SETTLED_AFTER,
            files: HashMap::new(),
            listings: Listings::new(),
            rules: Vec::new(),
        }
    }
}

impl KnownFiles {
    pub(super) fn listings(&self) -> &Listings {
        &self.listings
    }

    /// Stores those directory listings of a scan that can be reused.
    pub(super) fn remember_listings(&mut self, root: &Root, scan: &mut Scan) {
        let listed = std::mem::take(&mut scan.listed);
        if listed.is_empty() || !root.keeps_folder_times() {
            return;
        }
        let now = SystemTime::now();
        for (folder, listing) in listed {
            if age(&listing.stat, now) > self.settled_after {
                self.listings.insert(folder, listing);
            } else {
                self.listings.remove(&folder);
            }
        }
        // The map still contains the listings of deleted directories, so clear it when it becomes too large.
        if self.listings.len() > 2 * scan.n_folders {
            self.listings.clear();
        }
    }

    /// Discards all cached contents if a file that determines conversions has changed.
    pub(super) fn check_rules(
        &mut self,
        repository: &Repository,
        root: &Root,
        candidates: &[Candidate<'_>],
        tracked: &[Tracked<'_>],
    ) {
        let in_tree = tracked
            .iter()
            .map(|file| file.path)
            .chain(candidates.iter().map(|candidate| candidate.path));
        let mut rules: Vec<(Vec<u8>, Option<Stat>)> = in_tree
            .filter(|path| is_attributes_file(path))
            .map(|path| (path.to_owned(), stat_beneath(root, path)))
            .collect();
        for name in ["info/attributes", "config", "config.worktree"] {
            let stat = rustix::fs::stat(repository.common_dir().join(name))
                .ok()
                .map(|found| index_stat(&found));
            rules.push((Path::new("/").join(name).into_os_string().into_encoded_bytes(), stat));
        }
        if self.rules != rules {
            self.files.clear();
            self.rules = rules;
        }
    }

    /// Returns the content of each candidate, reading only files that are not cached. Then removes all other files from
    /// the cache.
    pub(super) fn contents(
        &mut self,
        candidates: &[Candidate<'_>],
        reader: &WorkTreeReader,
        max_bytes: u64,
        interrupt: &AtomicBool,
    ) -> Result<Vec<Content>, WorkTreeError> {
        let mut contents: Vec<Option<Content>> = candidates
            .iter()
            .map(|candidate| self.recall(candidate, reader))
            .collect();
        let missing: Vec<usize> = (0..contents.len()).filter(|at| contents[*at].is_none()).collect();
        let read = read_all(candidates, &missing, reader, max_bytes, interrupt)?;
        missing
            .iter()
            .zip(read)
            .for_each(|(at, content)| contents[*at] = Some(content));
        let contents: Vec<Content> = contents.into_iter().flatten().collect();
        self.remember(candidates, &contents);
        Ok(contents)
    }

    fn recall(&self, candidate: &Candidate<'_>, reader: &WorkTreeReader) -> Option<Content> {
        // Copying the path is cheap compared with reading the file.
        let known = self.files.get(&RepoPath::new(candidate.path))?;
        let stat = candidate.stat.or_else(|| stat_beneath(reader.root(), candidate.path))?;
        (known.stat == stat && known.tracked == candidate.entry()).then(|| Content {
            on_disk: known.content.clone(),
            stat: Some(stat),
        })
    }

    fn remember(&mut self, candidates: &[Candidate<'_>], contents: &[Content]) {
        let now = SystemTime::now();
        let settled = candidates.iter().zip(contents).filter_map(|(candidate, content)| {
            if !matches!(content.on_disk, OnDisk::File { .. }) {
                return None;
            }
            let stat = content.stat.filter(|stat| age(stat, now) > self.settled_after)?;
            let known = KnownFile {
                stat,
                tracked: candidate.entry(),
                content: content.on_disk.clone(),
            };
            Some((RepoPath::new(candidate.path), known))
        });
        self.files = settled.collect();
    }
}

fn read_all(
    candidates: &[Candidate<'_>],
    positions: &[usize],
    reader: &WorkTreeReader,
    max_bytes: u64,
    interrupt: &AtomicBool,
) -> Result<Vec<Content>, WorkTreeError> {
    // A reader caches the attributes of a directory, so each reader gets a contiguous range of paths.
    let n_runs = if positions.len() < 16 {
        1
    } else {
        rayon::current_num_threads() * 4
    };
    let run_len = positions.len().div_ceil(n_runs).max(1);
    let runs: Vec<(&[usize], WorkTreeReader)> = positions.chunks(run_len).map(|run| (run, reader.clone())).collect();
    let read_run = |(run, mut reader): (&[usize], WorkTreeReader)| -> Vec<Content> {
        let going_on = run.iter().take_while(|_| !interrupt.load(Ordering::Relaxed));
        going_on
            .map(|at| read_one(&candidates[*at], &mut reader, max_bytes))
            .collect()
    };
    let contents: Vec<Content> = runs.into_par_iter().map(read_run).flatten_iter().collect();
    if contents.len() < positions.len() {
        return Err(WorkTreeError::Interrupted);
    }
    Ok(contents)
}

fn read_one(candidate: &Candidate<'_>, reader: &mut WorkTreeReader, max_bytes: u64) -> Content {
    let tracked_mode = candidate.tracked.map(|tracked| tracked.mode);
    match reader.read_with_stat(candidate.path, tracked_mode, max_bytes) {
        Ok((file, stat)) => Content {
            on_disk: OnDisk::File {
                mode: file.mode,
                blob: file.blob,
            },
            stat: Some(stat),
        },
        Err(unread) => Content {
            on_disk: OnDisk::Unread(unread),
            stat: candidate.stat,
        },
    }
}

fn is_attributes_file(path: &[u8]) -> bool {
    path.strip_suffix(b".gitattributes")
        .is_some_and(|folder| folder.is_empty() || folder.ends_with(b"/"))
}

fn stat_beneath(root: &Root, path: &[u8]) -> Option<Stat> {
    root.stat_of(path).ok().map(|found| index_stat(&found))
}

/// Returns the time since the file was last changed, or zero if its times are in the future.
fn age(stat: &Stat, now: SystemTime) -> Duration {
    let time_of = |time: gix::index::entry::stat::Time| UNIX_EPOCH + Duration::new(time.secs.into(), time.nsecs);
    let last_touched = time_of(stat.mtime).max(time_of(stat.ctime));
    now.duration_since(last_touched).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::git::WorkTreeChanges;
    use crate::support::TestRepo;

    fn look(repo: &TestRepo, known: &mut KnownFiles) -> WorkTreeChanges {
        let repository = Repository::discover(repo.root()).unwrap();
        repository
            .work_tree_changes(1000, known, &AtomicBool::new(false))
            .unwrap()
    }

    fn edited() -> TestRepo {
        let repo = TestRepo::new(
            "
            //- tracked.txt
            text
        ",
        );
        repo.write("tracked.txt", "a\r\nb\r\n");
        repo.write("untracked.txt", "a\r\nb\r\n");
        repo
    }

    /// Replaces the cached contents, so that a test can detect which files were read again.
    fn falsify(known: &mut KnownFiles) {
        known.files.values_mut().for_each(|file| file.content = OnDisk::Absent);
    }

    #[test]
    fn files_that_have_settled_are_not_read_again() {
        let repo = edited();
        let mut known = KnownFiles {
            settled_after: Duration::ZERO,
            ..KnownFiles::default()
        };
        let first = look(&repo, &mut known);
        assert_eq!(known.files.len(), 2);
        assert_eq!(look(&repo, &mut known), first);
        falsify(&mut known);
        assert_ne!(look(&repo, &mut known), first);
        repo.write("tracked.txt", "a\r\nb\r\n");
        repo.write("untracked.txt", "a\r\nb\r\n");
        assert_eq!(look(&repo, &mut known), first);
    }

    #[test]
    fn folders_are_listed_again_when_something_comes_or_goes() {
        let repo = TestRepo::new(
            "
            //- a/tracked.txt
            text
            //- b/tracked.txt
            text
        ",
        );
        let mut known = KnownFiles {
            settled_after: Duration::ZERO,
            ..KnownFiles::default()
        };
        let is_as_fresh = |known: &mut KnownFiles| {
            let found = look(&repo, known);
            assert_eq!(found, look(&repo, &mut KnownFiles::default()));
            found.changes.len()
        };
        assert_eq!(is_as_fresh(&mut known), 0);
        repo.write("a/new.txt", "new");
        assert_eq!(is_as_fresh(&mut known), 1);
        repo.git(["rm", "--quiet", "--cached", "b/tracked.txt"]);
        repo.write("b/tracked.txt", "other");
        assert_eq!(is_as_fresh(&mut known), 2);
        repo.git(["add", "--all"]);
        assert_eq!(is_as_fresh(&mut known), 2);
        std::fs::remove_dir_all(repo.path("a")).unwrap();
        assert_eq!(is_as_fresh(&mut known), 2);
    }

    #[test]
    fn young_files_are_read_again() {
        let repo = edited();
        let mut known = KnownFiles::default();
        look(&repo, &mut known);
        assert_eq!(known.files.len(), 0);
    }

    #[test]
    fn changed_conversion_rules_invalidate_all_files() {
        let changes: [fn(&TestRepo); 3] = [
            |repo| repo.write(".git/info/attributes", "*.txt text\n"),
            |repo| repo.write(".gitattributes", "*.txt text\n"),
            |repo| drop(repo.git(["config", "core.eol", "lf"])),
        ];
        for change in changes {
            let repo = edited();
            let mut known = KnownFiles {
                settled_after: Duration::ZERO,
                ..KnownFiles::default()
            };
            look(&repo, &mut known);
            falsify(&mut known);
            change(&repo);
            assert_eq!(look(&repo, &mut known), look(&repo, &mut KnownFiles::default()));
        }
    }

    #[test]
    fn changed_index_entry_invalidates_its_file() {
        let repo = edited();
        let mut known = KnownFiles {
            settled_after: Duration::ZERO,
            ..KnownFiles::default()
        };
        look(&repo, &mut known);
        known.files.remove(&RepoPath::from("untracked.txt"));
        falsify(&mut known);
        repo.git(["add", "--intent-to-add", "untracked.txt"]);
        repo.git(["update-index", "--force-remove", "tracked.txt"]);
        assert_eq!(look(&repo, &mut known), look(&repo, &mut KnownFiles::default()));
    }
}
