//! Reads the lines that commits added and removed, and stores signatures of them. With the signatures, a search can
//! skip most commits.
//!
//! The lines are those that `git log -p` shows: the differences from the parent and, for a renamed file, from the file
//! at the old path. Merges have none.
//!
//! Section file, format 1:
//!
//! ```text
//! meta         u32 number of the first commit, u32 n: number of commits
//! commit_ends  n × u32: number of signatures up to and including each commit
//! signatures   concatenated: one for each path that a commit changed, ascending by path; none for merges
//! ends         u32 end of each signature
//! ```
//!
//! Each signature is a [`Signature`] of the changed lines of one path. It is empty if the lines are unknown.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use crate::extract::is_text;
use crate::git::{BlobContent, FileMode, LineHunk, ObjectError, ObjectReader, Repository, diff_lines};
use crate::index::lexical::{Signature, TrigramQuery};
use crate::model::{BlobId, Oid, RepoPath, explain_by};
use crate::sidecar::{Bytes, FileError, HistoryEntry, SectionFile, SectionWriter, Sidecar, Store};

use super::batch::{Batch, PathRun};
use super::record::{Change, Entry, PathChange};
use super::wire::{part, put_u32, u32_at};

/// Format version. 1: initial.
pub(super) const FORMAT: u32 = 1;
/// Size limit of compared files.
const MAX_BYTES: u64 = 64 << 20;

/// The difference between two versions of a file.
#[derive(Clone, Debug)]
pub enum ChangedLines {
    /// The changed lines.
    Lines(LineDiff),
    /// One of the versions is not text.
    NotText,
    /// One of the versions is too large or not in the repository.
    Unknown,
}

/// The lines that differ between two versions of a file.
#[derive(Clone, Debug)]
pub struct LineDiff {
    old: Vec<u8>,
    new: Vec<u8>,
    /// The byte offset of the first line that differs. It is the same in both versions.
    from: usize,
    /// The differences between `from` and the part at the end that both versions have in common.
    hunks: Vec<LineHunk>,
}

/// Lines with their numbers, 1-based.
pub type NumberedLines<'a> = Vec<(u32, &'a [u8])>;

impl LineDiff {
    fn of(old: Vec<u8>, new: Vec<u8>) -> Self {
        let from = common_start(&old, &new);
        let end = common_end(&old[from..], &new[from..]);
        let hunks = diff_lines(&old[from..old.len() - end], &new[from..new.len() - end]);
        Self { old, new, from, hunks }
    }

    /// Returns the removed lines and the added lines.
    pub fn removed_and_added(&self) -> (NumberedLines<'_>, NumberedLines<'_>) {
        let old = self.hunks.iter().map(|hunk| hunk.old.clone());
        let new = self.hunks.iter().map(|hunk| hunk.new.clone());
        (picked(&self.old, self.from, old), picked(&self.new, self.from, new))
    }

    /// Returns all removed and added lines, each followed by a line break.
    fn text(&self) -> Vec<u8> {
        let (removed, added) = self.removed_and_added();
        let mut text = Vec::new();
        for (_, line) in removed.iter().chain(&added) {
            text.extend_from_slice(line);
            text.push(b'\n');
        }
        text
    }
}

/// Returns the lines in `ranges`, which are ascending and relative to the line at byte `from`.
fn picked(text: &[u8], from: usize, ranges: impl Iterator<Item = Range<u32>>) -> NumberedLines<'_> {
    let first = memchr::memchr_iter(b'\n', &text[..from]).count() as u32;
    let mut lines = (0u32..).zip(text[from..].split(|byte| *byte == b'\n'));
    let mut found = Vec::new();
    for range in ranges {
        let of_range = lines.by_ref().skip_while(|(at, _)| *at < range.start);
        found.extend(of_range.take(range.len()).map(|(at, line)| (first + at + 1, line)));
    }
    found
}

/// Returns the byte offset of the first line that differs.
fn common_start(a: &[u8], b: &[u8]) -> usize {
    let n_equal = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    if n_equal == a.len() && n_equal == b.len() {
        return n_equal;
    }
    memchr::memrchr(b'\n', &a[..n_equal]).map_or(0, |at| at + 1)
}

/// Returns the size in bytes of the equal lines at the end of both versions.
fn common_end(a: &[u8], b: &[u8]) -> usize {
    let n_equal = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    let tail = &a[a.len() - n_equal..];
    memchr::memchr(b'\n', tail).map_or(0, |at| n_equal - at - 1)
}

/// Returns the two versions to compare for each change of a commit. Returns `None` for the deletion that is part of a
/// rename.
pub fn compared(changes: &[Change]) -> Vec<Option<(Option<Entry>, Option<Entry>)>> {
    let origins = changes.iter().filter_map(|change| Some(&change.origin.as_ref()?.path));
    let mut moved: HashMap<&RepoPath, Option<Entry>> = origins.map(|path| (path, None)).collect();
    for change in changes.iter().filter(|change| change.new.is_none()) {
        if let Some(entry) = moved.get_mut(&change.path) {
            *entry = change.old;
        }
    }
    let versions = |change: &Change| match (&change.origin, change.new) {
        (Some(origin), new) => Some((moved[&origin.path], new)),
        (None, None) if moved.contains_key(&change.path) => None,
        (None, new) => Some((change.old, new)),
    };
    changes.iter().map(versions).collect()
}

/// Compares two versions of a file.
pub fn changed_lines(
    reader: &mut ObjectReader,
    (old, new): (Option<Entry>, Option<Entry>),
) -> Result<ChangedLines, ObjectError> {
    if old.zip(new).is_some_and(|(old, new)| old.oid == new.oid) {
        return Ok(ChangedLines::Lines(LineDiff::of(Vec::new(), Vec::new())));
    }
    match (content(reader, old)?, content(reader, new)?) {
        (Some(old), Some(new)) if is_text(&old) && is_text(&new) => Ok(ChangedLines::Lines(LineDiff::of(old, new))),
        (Some(_), Some(_)) => Ok(ChangedLines::NotText),
        _ => Ok(ChangedLines::Unknown),
    }
}

/// Returns the text that git shows for a submodule.
pub fn submodule_text(commit: Oid) -> Vec<u8> {
    format!("Subproject commit {commit}\n").into_bytes()
}

/// Returns the content of an entry. It is empty if there is no entry, and `None` if the content is not available.
fn content(reader: &mut ObjectReader, entry: Option<Entry>) -> Result<Option<Vec<u8>>, ObjectError> {
    match entry {
        None => Ok(Some(Vec::new())),
        Some(entry) if entry.mode == FileMode::Submodule => Ok(Some(submodule_text(entry.oid))),
        Some(entry) => match reader.blob(BlobId(entry.oid), MAX_BYTES)? {
            BlobContent::Content(bytes) => Ok(Some(bytes)),
            BlobContent::TooLarge { .. } | BlobContent::Missing | BlobContent::Damaged => Ok(None),
        },
    }
}

/// The signatures of the lines that the commits of a batch added and removed.
#[derive(Clone, Debug)]
pub struct LineChanges {
    base: u32,
    commit_ends: Bytes,
    signatures: Bytes,
    ends: Bytes,
}

/// An error from building or reading signatures.
#[derive(Debug, thiserror::Error)]
pub enum LinesError {
    /// The file of signatures cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The repository cannot be read.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// The interrupt flag was set.
    #[error("interrupted")]
    Interrupted,
}

explain_by!(LinesError: File, Object; Interrupted);

impl LineChanges {
    /// Opens the signatures of a stored batch, if it has any.
    pub fn open(sidecar: &Sidecar, batch: &HistoryEntry) -> Result<Option<Self>, LinesError> {
        let Some(stored) = &batch.lines else {
            return Ok(None);
        };
        let file = SectionFile::open(sidecar, Store::History, &stored.name, FORMAT)?;
        let lines = Self::of(&file)?;
        if (lines.base, lines.n_commits()) == (batch.base_commit, batch.n_commits) {
            Ok(Some(lines))
        } else {
            Err(file.damaged("commits differ from the state").into())
        }
    }

    /// Opens signatures in memory.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Self, LinesError> {
        let name = Path::new("signatures of changes");
        Self::of(&SectionFile::from_bytes(name, bytes.into(), FORMAT)?)
    }

    fn of(file: &SectionFile) -> Result<Self, LinesError> {
        let meta = file.section("meta")?;
        let number = |index| u32_at(&meta, index).ok_or_else(|| file.damaged("meta"));
        let (base, n_commits) = (number(0)?, number(1)?);
        let lines = Self {
            base,
            commit_ends: file.section("commit_ends")?,
            signatures: file.section("signatures")?,
            ends: file.section("ends")?,
        };
        let n_signatures = match n_commits {
            0 => Some(0),
            n => u32_at(&lines.commit_ends, n as usize - 1),
        };
        let is_whole = lines.commit_ends.len() == n_commits as usize * 4
            && n_signatures.is_some_and(|n| lines.ends.len() == n as usize * 4)
            && (1..n_commits).all(|local| {
                let end = |local: u32| u32_at(&lines.commit_ends, local as usize);
                end(local - 1) <= end(local)
            });
        if is_whole {
            Ok(lines)
        } else {
            Err(file.damaged("lengths of sections").into())
        }
    }

    /// Returns the number of the first commit.
    pub fn base(&self) -> u32 {
        self.base
    }

    /// Returns the number of commits.
    pub fn n_commits(&self) -> u32 {
        (self.commit_ends.len() / 4) as u32
    }

    fn of_commit(&self, local: u32) -> Range<usize> {
        let end = |local: u32| u32_at(&self.commit_ends, local as usize).unwrap_or_default() as usize;
        local.checked_sub(1).map_or(0, end)..end(local)
    }

    /// Returns true if a line that the commit added or removed may match `query`. Returns false only if none does.
    pub fn may_match(&self, local: u32, query: &TrigramQuery) -> bool {
        self.of_commit(local).any(|at| self.signature(at).may_match(query))
    }

    /// Like [`Self::may_match`], but returns a result for each path that the commit changed, ascending by path.
    pub fn paths_that_may_match(&self, local: u32, query: &TrigramQuery) -> Vec<bool> {
        let may_match = |at| self.signature(at).may_match(query);
        self.of_commit(local).map(may_match).collect()
    }

    /// Returns the signatures of a commit.
    pub(super) fn copied(&self, local: u32) -> Vec<&[u8]> {
        self.of_commit(local).map(|at| self.signature(at).0).collect()
    }

    /// Computes the signatures of a commit of `batch` from the repository. Returns true if they equal the stored ones.
    pub fn matches_repository(&self, batch: &Batch, local: u32, reader: &mut ObjectReader) -> Result<bool, LinesError> {
        let changes = if is_merge(batch, local)? {
            Vec::new()
        } else {
            batch.changes_at(local)?
        };
        let versions = compared(&changes).into_iter().map(Option::unwrap_or_default);
        let made = versions.map(|versions| signature(reader, versions, &mut None));
        Ok(self.copied(local) == made.collect::<Result<Vec<_>, _>>()?)
    }

    fn signature(&self, at: usize) -> Signature<'_> {
        Signature(part(&self.signatures, &self.ends, at).unwrap_or_default())
    }

    /// Checks that the file has the correct structure for `batch`.
    pub fn verify(&self, batch: &Batch) -> Result<(), LinesError> {
        let damaged = |what: &str| FileError::damaged("signatures of changes", what);
        let (mut end, mut byte_end) = (0, 0);
        for local in 0..batch.n_commits() {
            let own = self.of_commit(local);
            let n_paths = if is_merge(batch, local)? {
                0
            } else {
                batch.touched(local)?.len()
            };
            if own != (end..end + n_paths) {
                return Err(damaged("number of signatures").into());
            }
            end = own.end;
        }
        for at in 0..end {
            let next = u32_at(&self.ends, at).unwrap_or_default();
            if next < byte_end {
                return Err(damaged("ends of signatures").into());
            }
            byte_end = next;
        }
        if byte_end as usize == self.signatures.len() {
            Ok(())
        } else {
            Err(damaged("ends of signatures").into())
        }
    }

    /// Builds the signature file of a batch. Calls `advance` after each changed path.
    pub fn build(
        batch: &Batch,
        repository: &Repository,
        advance: &(dyn Fn() + Sync),
        interrupt: &AtomicBool,
    ) -> Result<Vec<u8>, LinesError> {
        let runs = batch.runs()?;
        let halves = RenameHalves::of(batch, &runs)?;
        let of_path = |reader: &mut ObjectReader, (path, run): &PathRun<'_>| {
            let mut last = None;
            let mut signatures = Vec::with_capacity(run.len());
            for change in run.iter().filter(|change| !halves.is_merge(change.commit)) {
                if interrupt.load(Ordering::Relaxed) {
                    return Err(LinesError::Interrupted);
                }
                let versions = halves.versions(path, change);
                signatures.push((change.commit - batch.base(), signature(reader, versions, &mut last)?));
            }
            advance();
            Ok(signatures)
        };
        let reader = || {
            let mut reader = repository.reader();
            reader.keep_bases();
            reader
        };
        let made: Vec<Vec<(u32, Vec<u8>)>> = runs.par_iter().map_init(reader, of_path).collect::<Result<_, _>>()?;
        let mut by_commit = vec![Vec::new(); batch.n_commits() as usize];
        for (local, signature) in made.into_iter().flatten() {
            by_commit[local as usize].push(signature);
        }
        let mut writer = LinesWriter::new(batch.base());
        by_commit.iter().for_each(|signatures| writer.add(signatures));
        Ok(writer.finish())
    }

    /// Merges the signature files of consecutive batches.
    pub fn merged(parts: &[Self]) -> Vec<u8> {
        let mut writer = LinesWriter::new(parts.first().map_or(0, Self::base));
        for part in parts {
            for local in 0..part.n_commits() {
                writer.add(&part.copied(local));
            }
        }
        writer.finish()
    }
}

fn is_merge(batch: &Batch, local: u32) -> Result<bool, FileError> {
    let mut parents = Vec::new();
    batch.parents_of(local, &mut parents)?;
    Ok(parents.len() > 1)
}

/// The merges and the renames of a batch.
struct RenameHalves<'r> {
    base: u32,
    is_merge: Vec<bool>,
    /// The old entries of renamed files, by commit and old path. An entry is `None` if the commit did not delete the
    /// old path.
    moved: HashMap<(u32, &'r [u8]), Option<Entry>>,
}

impl<'r> RenameHalves<'r> {
    fn of(batch: &Batch, runs: &'r [PathRun<'_>]) -> Result<Self, FileError> {
        let changes = || {
            runs.iter()
                .flat_map(|(path, run)| run.iter().map(move |change| (*path, change)))
        };
        let origins =
            changes().filter_map(|(_, change)| Some((change.commit, change.origin.as_ref()?.path.as_bytes())));
        let mut moved: HashMap<_, _> = origins.map(|key| (key, None)).collect();
        for (path, change) in changes().filter(|(_, change)| change.new.is_none()) {
            if let Some(entry) = moved.get_mut(&(change.commit, path)) {
                *entry = change.old;
            }
        }
        let is_merge = (0..batch.n_commits()).map(|local| is_merge(batch, local));
        Ok(Self {
            base: batch.base(),
            is_merge: is_merge.collect::<Result<_, _>>()?,
            moved,
        })
    }

    fn is_merge(&self, commit: u32) -> bool {
        self.is_merge[(commit - self.base) as usize]
    }

    /// Returns the two versions to compare for a change, like [`compared`].
    fn versions(&self, path: &[u8], change: &PathChange) -> (Option<Entry>, Option<Entry>) {
        let moved = |path| self.moved.get(&(change.commit, path)).copied();
        match (&change.origin, change.new) {
            (Some(origin), new) => (moved(origin.path.as_bytes()).flatten(), new),
            (None, None) if moved(path).is_some() => (None, None),
            (None, new) => (change.old, new),
        }
    }
}

/// Returns the signature of the changed lines between two versions. `last` caches the version that was read last, which
/// is usually the old version of the next change.
fn signature(
    reader: &mut ObjectReader,
    (old, new): (Option<Entry>, Option<Entry>),
    last: &mut Option<(Oid, Vec<u8>)>,
) -> Result<Vec<u8>, ObjectError> {
    if old.map(|old| old.oid) == new.map(|new| new.oid) {
        return Ok(Signature::of(b""));
    }
    let kept = last.take().filter(|(oid, _)| old.is_some_and(|old| old.oid == *oid));
    let old = match kept {
        Some((_, bytes)) => Some(bytes),
        None => content(reader, old)?,
    };
    let (Some(old), Some(bytes)) = (old, content(reader, new)?) else {
        return Ok(Vec::new());
    };
    let (signature, bytes) = if is_text(&old) && is_text(&bytes) {
        let diff = LineDiff::of(old, bytes);
        (Signature::of(&diff.text()), diff.new)
    } else {
        (Signature::of(b""), bytes)
    };
    *last = new.map(|new| (new.oid, bytes));
    Ok(signature)
}

/// Writes a file of signatures.
pub(super) struct LinesWriter {
    base: u32,
    commit_ends: Vec<u8>,
    signatures: Vec<u8>,
    ends: Vec<u8>,
}

impl LinesWriter {
    pub(super) fn new(base: u32) -> Self {
        Self {
            base,
            commit_ends: Vec::new(),
            signatures: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Adds the signatures of the next commit.
    pub(super) fn add(&mut self, signatures: &[impl AsRef<[u8]>]) {
        for signature in signatures {
            self.signatures.extend_from_slice(signature.as_ref());
            put_u32(&mut self.ends, self.signatures.len() as u32);
        }
        put_u32(&mut self.commit_ends, (self.ends.len() / 4) as u32);
    }

    pub(super) fn finish(self) -> Vec<u8> {
        let mut meta = Vec::new();
        put_u32(&mut meta, self.base);
        put_u32(&mut meta, (self.commit_ends.len() / 4) as u32);
        let mut file = SectionWriter::new(FORMAT);
        file.add("meta", meta);
        file.add("commit_ends", self.commit_ends);
        file.add("signatures", self.signatures);
        file.add("ends", self.ends);
        file.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Sides = (Vec<(u32, String)>, Vec<(u32, String)>);

    fn sides(old: &str, new: &str) -> Sides {
        let diff = LineDiff::of(old.into(), new.into());
        let (removed, added) = diff.removed_and_added();
        let owned = |lines: NumberedLines<'_>| -> Vec<(u32, String)> {
            let line = |(number, line): (u32, &[u8])| (number, String::from_utf8_lossy(line).into_owned());
            lines.into_iter().map(line).collect()
        };
        (owned(removed), owned(added))
    }

    #[test]
    fn changed_lines_have_old_and_new_numbers() {
        let lines = |list: &[(u32, &str)]| -> Vec<(u32, String)> {
            list.iter()
                .map(|(number, line)| (*number, (*line).to_owned()))
                .collect()
        };
        let (removed, added) = sides("a\nb\nc\nd\ne\n", "a\nB\nc\nd\nx\ny\ne\n");
        assert_eq!(
            (removed, added),
            (lines(&[(2, "b")]), lines(&[(2, "B"), (5, "x"), (6, "y")]))
        );
        // A line that lost its line break counts as changed.
        assert_eq!(sides("a\nb\n", "a\nb"), (lines(&[(2, "b")]), lines(&[(2, "b")])));
        assert_eq!(sides("", "x"), (lines(&[]), lines(&[(1, "x")])));
        assert_eq!(sides("x\n", ""), (lines(&[(1, "x")]), lines(&[])));
        assert_eq!(sides("a\na\na\n", "a\na\n"), (lines(&[(3, "a")]), lines(&[])));
        assert_eq!(
            sides("ab\nc\n", "abc\nc\n"),
            (lines(&[(1, "ab")]), lines(&[(1, "abc")]))
        );
    }
}
