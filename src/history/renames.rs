//! Detects the files that a commit renamed, with git's rules.
//!
//! Source: git's `diffcore-rename.c` and `diffcore-delta.c`. Files with equal content are matched first, then files
//! with the same name, then the most similar pairs. The minimum similarity is one half, which is git's default. The
//! limit on the number of compared pairs is also git's default.

use std::collections::{HashMap, HashSet};

use crate::extract::is_text;
use crate::git::{BlobContent, FileMode, ObjectError, ObjectReader};
use crate::model::{BlobId, Oid, RepoPath};

use super::record::{Change, Entry, Origin};

/// The score of equal files. git: `MAX_SCORE`.
const MAX_SCORE: u64 = 60_000;
/// The minimum score of a match. git: `DEFAULT_RENAME_SCORE`.
const MIN_SCORE: u64 = 30_000;
/// The minimum score for matching files with the same name before all pairs are compared.
const MIN_NAMESAKE_SCORE: u64 = 45_000;
/// Limit on the number of compared files. If there are more pairs than its square, only files with equal content or the
/// same name are compared. This is git's `diff.renameLimit`.
const RENAME_LIMIT: usize = 1_000;
/// Size limit of compared files. Larger files match only if their content is equal. git has no such limit.
const MAX_BYTES: u64 = 4 << 20;
/// Number of candidates per added file. git: `NUM_CANDIDATE_PER_DST`.
const CANDIDATES_PER_TARGET: usize = 4;

/// Sets the origin of each added file in `changes` that was renamed. Returns false if a file that should be compared is
/// missing or damaged.
pub(super) fn find_renames(reader: &mut ObjectReader, changes: &mut [Change]) -> Result<bool, ObjectError> {
    let is_file = |entry: &Option<Entry>| entry.as_ref().is_some_and(|entry| entry.mode != FileMode::Submodule);
    let pick = |is_wanted: &dyn Fn(&Change) -> bool| -> Vec<usize> {
        (0..changes.len()).filter(|&at| is_wanted(&changes[at])).collect()
    };
    let sources = pick(&|change| change.new.is_none() && is_file(&change.old));
    let targets = pick(&|change| change.old.is_none() && is_file(&change.new));
    if sources.is_empty() || targets.is_empty() {
        return Ok(true);
    }
    let mut finder = Finder {
        reader,
        changes,
        sources,
        targets,
        found: Vec::new(),
        sketches: HashMap::new(),
        has_read_all: true,
    };
    finder.equal_content();
    finder.namesakes()?;
    finder.most_similar()?;
    let (found, has_read_all) = (std::mem::take(&mut finder.found), finder.has_read_all);
    for (source, target, score) in found {
        changes[target].origin = Some(Origin {
            path: changes[source].path.clone(),
            similarity: (score * 100 / MAX_SCORE) as u8,
        });
    }
    Ok(has_read_all)
}

/// Returns true if all files can be read that are compared to find the origins of the remaining added files.
pub fn has_compared_files(reader: &mut ObjectReader, changes: &[Change]) -> bool {
    let origins = changes.iter().filter_map(|change| Some(&change.origin.as_ref()?.path));
    let origins: HashSet<&RepoPath> = origins.collect();
    let compared = changes.iter().filter_map(|change| match (change.old, change.new) {
        (None, Some(new)) if change.origin.is_none() => Some(new),
        (Some(old), None) if !origins.contains(&change.path) => Some(old),
        _ => None,
    });
    let compared: Vec<BlobId> = compared
        .filter(|entry| is_regular(*entry))
        .map(|entry| BlobId(entry.oid))
        .collect();
    reader.has_blobs(&compared, MAX_BYTES)
}

struct Finder<'a> {
    reader: &'a mut ObjectReader,
    changes: &'a [Change],
    /// The indices of deleted files that have not been matched.
    sources: Vec<usize>,
    /// The indices of added files that have no origin.
    targets: Vec<usize>,
    found: Vec<(usize, usize, u64)>,
    sketches: HashMap<Oid, Option<Sketch>>,
    /// False if a file was missing or damaged.
    has_read_all: bool,
}

impl Finder<'_> {
    fn before(&self, at: usize) -> Entry {
        self.changes[at].old.expect("sources were there before")
    }

    fn now(&self, at: usize) -> Entry {
        self.changes[at].new.expect("targets are there now")
    }

    fn has_one_name(&self, source: usize, target: usize) -> bool {
        self.changes[source].path.file_name() == self.changes[target].path.file_name()
    }

    fn take(&mut self, source: usize, target: usize, score: u64) {
        self.found.push((source, target, score));
        self.sources.retain(|other| *other != source);
        self.targets.retain(|other| *other != target);
    }

    fn equal_content(&mut self) {
        let mut by_oid: HashMap<Oid, Vec<usize>> = HashMap::new();
        for &source in &self.sources {
            by_oid.entry(self.before(source).oid).or_default().push(source);
        }
        let mut taken = Vec::new();
        for &target in &self.targets {
            let entry = self.now(target);
            let Some(sources) = by_oid.get_mut(&entry.oid) else {
                continue;
            };
            let fits = |source: &usize| {
                let old = self.before(*source);
                (is_regular(old) && is_regular(entry)) || old.mode == entry.mode
            };
            let best = sources
                .iter()
                .position(|source| fits(source) && self.has_one_name(*source, target))
                .or_else(|| sources.iter().position(fits));
            if let Some(best) = best {
                taken.push((sources.remove(best), target));
            }
        }
        let is_taken_source: HashSet<usize> = taken.iter().map(|(source, _)| *source).collect();
        let is_taken_target: HashSet<usize> = taken.iter().map(|(_, target)| *target).collect();
        self.sources.retain(|source| !is_taken_source.contains(source));
        self.targets.retain(|target| !is_taken_target.contains(target));
        self.found
            .extend(taken.into_iter().map(|(source, target)| (source, target, MAX_SCORE)));
    }

    /// Matches files that have the same name, if the name is unique among both deleted and added files.
    fn namesakes(&mut self) -> Result<(), ObjectError> {
        let only = |all: &[usize]| {
            let mut by_name: HashMap<Vec<u8>, Option<usize>> = HashMap::new();
            for &at in all {
                let name = self.changes[at].path.file_name().to_vec();
                by_name.entry(name).and_modify(|only| *only = None).or_insert(Some(at));
            }
            by_name
        };
        let (sources, targets) = (only(&self.sources), only(&self.targets));
        let mut pairs: Vec<(usize, usize)> = sources
            .into_iter()
            .filter_map(|(name, source)| Some((source?, (*targets.get(&name)?)?)))
            .collect();
        pairs.sort_unstable();
        for (source, target) in pairs {
            let score = self.similarity(source, target, MIN_NAMESAKE_SCORE)?;
            if score >= MIN_NAMESAKE_SCORE {
                self.take(source, target, score);
            }
        }
        Ok(())
    }

    fn most_similar(&mut self) -> Result<(), ObjectError> {
        if self.sources.is_empty()
            || self.sources.len().saturating_mul(self.targets.len()) > RENAME_LIMIT * RENAME_LIMIT
        {
            return Ok(());
        }
        let (sources, targets) = (self.sources.clone(), self.targets.clone());
        let mut scored: Vec<(u64, bool, usize, usize)> = Vec::new();
        for &target in &targets {
            let mut of_target = Vec::new();
            for &source in &sources {
                let score = self.similarity(source, target, MIN_SCORE)?;
                if score >= MIN_SCORE {
                    of_target.push((score, self.has_one_name(source, target), source, target));
                }
            }
            of_target.sort_by_key(|pair| std::cmp::Reverse((pair.0, pair.1)));
            scored.extend(of_target.into_iter().take(CANDIDATES_PER_TARGET));
        }
        scored.sort_by_key(|pair| std::cmp::Reverse((pair.0, pair.1)));
        for (score, _, source, target) in scored {
            if self.sources.contains(&source) && self.targets.contains(&target) {
                self.take(source, target, score);
            }
        }
        Ok(())
    }

    /// Returns the share of the source that the target contains, scaled to `MAX_SCORE`. Returns 0 if the share cannot
    /// reach `min`.
    fn similarity(&mut self, source: usize, target: usize, min: u64) -> Result<u64, ObjectError> {
        let (old, new) = (self.before(source), self.now(target));
        if !is_regular(old) || !is_regular(new) {
            return Ok(0);
        }
        self.sketch(old.oid)?;
        self.sketch(new.oid)?;
        let (Some(Some(old)), Some(Some(new))) = (self.sketches.get(&old.oid), self.sketches.get(&new.oid)) else {
            return Ok(0);
        };
        let larger = old.n_bytes.max(new.n_bytes);
        let difference = larger - old.n_bytes.min(new.n_bytes);
        if old.n_bytes == 0 || larger * (MAX_SCORE - min) < difference * MAX_SCORE {
            return Ok(0);
        }
        Ok(old.shared(new) * MAX_SCORE / larger)
    }

    fn sketch(&mut self, oid: Oid) -> Result<(), ObjectError> {
        if self.sketches.contains_key(&oid) {
            return Ok(());
        }
        let sketch = match self.reader.blob(BlobId(oid), MAX_BYTES)? {
            BlobContent::Content(bytes) => Some(Sketch::of(&bytes)),
            BlobContent::TooLarge { .. } => None,
            BlobContent::Missing | BlobContent::Damaged => {
                self.has_read_all = false;
                None
            }
        };
        self.sketches.insert(oid, sketch);
        Ok(())
    }
}

fn is_regular(entry: Entry) -> bool {
    matches!(entry.mode, FileMode::File | FileMode::Executable)
}

/// The number of bytes for each hash of a line. Longer lines are split into pieces of 64 bytes.
struct Sketch {
    n_bytes: u64,
    /// Ascending by hash.
    by_hash: Vec<(u32, u32)>,
}

/// Number of different hashes. git: `HASHBASE`.
const HASHES: u32 = 107_927;
const PIECE_BYTES: u32 = 64;

impl Sketch {
    fn of(bytes: &[u8]) -> Self {
        let is_text = is_text(bytes);
        let mut by_hash: Vec<(u32, u32)> = Vec::with_capacity(bytes.len() / 32);
        let (mut a, mut b, mut n) = (0u32, 0u32, 0u32);
        for (at, &byte) in bytes.iter().enumerate() {
            if is_text && byte == b'\r' && bytes.get(at + 1) == Some(&b'\n') {
                continue;
            }
            let before = a;
            a = (a << 7) ^ (b >> 25);
            b = (b << 7) ^ (before >> 25);
            a = a.wrapping_add(u32::from(byte));
            n += 1;
            if n >= PIECE_BYTES || byte == b'\n' {
                by_hash.push((a.wrapping_add(b.wrapping_mul(0x61)) % HASHES, n));
                (a, b, n) = (0, 0, 0);
            }
        }
        if n > 0 {
            by_hash.push((a.wrapping_add(b.wrapping_mul(0x61)) % HASHES, n));
        }
        by_hash.sort_unstable();
        by_hash.dedup_by(|next, first| {
            let is_same = next.0 == first.0;
            first.1 += if is_same { next.1 } else { 0 };
            is_same
        });
        by_hash.shrink_to_fit();
        Self {
            n_bytes: bytes.len() as u64,
            by_hash,
        }
    }

    fn shared(&self, other: &Self) -> u64 {
        let (mut mine, mut theirs) = (self.by_hash.iter().peekable(), other.by_hash.iter().peekable());
        let mut shared = 0;
        while let (Some(one), Some(two)) = (mine.peek(), theirs.peek()) {
            match one.0.cmp(&two.0) {
                std::cmp::Ordering::Less => drop(mine.next()),
                std::cmp::Ordering::Greater => drop(theirs.next()),
                std::cmp::Ordering::Equal => {
                    shared += u64::from(one.1.min(two.1));
                    mine.next();
                    theirs.next();
                }
            }
        }
        shared
    }
}
