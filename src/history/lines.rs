//! The lines that commits added and removed, and signatures by which most commits are ruled out.
//!
//! What a commit added and removed is what `git log -p` shows of it: against the parent, a renamed file against what it was, and
//! nothing of merges.
//!
//! A file of sections, format 1:
//!
//! ```text
//! meta         u32 number of the first commit, u32 n
//! commit_ends  n × u32: how many signatures there are up to each commit and its own
//! signatures   end to end: one for each path that a commit changed, ascending by path; none for merges
//! ends         u32 for each signature
//! ```
//!
//! A signature is that of the lines ([`Signature`]), one of no bytes where they could not be told.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use crate::git::{BlobContent, FileMode, LineHunk, ObjectError, ObjectReader, Repository, diff_lines};
use crate::index::lexical::{Signature, TrigramQuery};
use crate::model::{BlobId, Oid, RepoPath};
use crate::sidecar::{Bytes, SectionError, SectionFile, SectionWriter, Sidecar, Store};

use super::batch::{Batch, BatchError, PathRun};
use super::record::{Change, Entry, PathChange};
use super::wire::{part, put_u32, u32_at};

/// 1: the first.
pub(super) const FORMAT: u32 = 1;
/// Larger files are not compared.
const MAX_BYTES: u64 = 64 << 20;
/// git: `FIRST_FEW_BYTES`; a file with a zero byte among them is not text.
const LOOKED_AT_BYTES: usize = 8_000;

/// How two versions of a file differ.
#[derive(Clone, Debug)]
pub enum ChangedLines {
    /// By these lines.
    Lines(LineDiff),
    /// One of them is not text.
    NotText,
    /// One of them is too large to be compared, or not in the repository.
    Unknown,
}

/// Lines that were added and removed.
#[derive(Clone, Debug)]
pub struct LineDiff {
    old: Vec<u8>,
    new: Vec<u8>,
    /// Where the first line begins in which they differ, the same in both.
    from: usize,
    /// Of what follows, up to where both are equal again.
    hunks: Vec<LineHunk>,
}

/// Lines with their numbers, from 1.
pub type NumberedLines<'a> = Vec<(u32, &'a [u8])>;

impl LineDiff {
    fn of(old: Vec<u8>, new: Vec<u8>) -> Self {
        let from = common_start(&old, &new);
        let end = common_end(&old[from..], &new[from..]);
        let hunks = diff_lines(&old[from..old.len() - end], &new[from..new.len() - end]);
        Self { old, new, from, hunks }
    }

    /// The lines that are gone and those that are new.
    pub fn removed_and_added(&self) -> (NumberedLines<'_>, NumberedLines<'_>) {
        let old = self.hunks.iter().map(|hunk| hunk.old.clone());
        let new = self.hunks.iter().map(|hunk| hunk.new.clone());
        (picked(&self.old, self.from, old), picked(&self.new, self.from, new))
    }

    /// All of them, each with a line break behind it.
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

/// The lines in `ranges`, which ascend and are counted from the one that begins at `from`.
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

/// Where the first line begins that is not the same in both.
fn common_start(a: &[u8], b: &[u8]) -> usize {
    let n_equal = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    if n_equal == a.len() && n_equal == b.len() {
        return n_equal;
    }
    memchr::memrchr(b'\n', &a[..n_equal]).map_or(0, |at| at + 1)
}

/// How many bytes the whole lines have that are the same at the end of both.
fn common_end(a: &[u8], b: &[u8]) -> usize {
    let n_equal = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    let tail = &a[a.len() - n_equal..];
    memchr::memchr(b'\n', tail).map_or(0, |at| n_equal - at - 1)
}

/// For each of a commit's changes the two versions that are compared; `None` for a deletion that is the other half of a rename.
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

/// What differs between two versions of a file.
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

fn is_text(bytes: &[u8]) -> bool {
    memchr::memchr(0, &bytes[..bytes.len().min(LOOKED_AT_BYTES)]).is_none()
}

/// Nothing for what is not there; `None` for what cannot be had.
fn content(reader: &mut ObjectReader, entry: Option<Entry>) -> Result<Option<Vec<u8>>, ObjectError> {
    match entry {
        None => Ok(Some(Vec::new())),
        // As git shows it.
        Some(entry) if entry.mode == FileMode::Submodule => {
            Ok(Some(format!("Subproject commit {}\n", entry.oid).into_bytes()))
        }
        Some(entry) => match reader.blob(BlobId(entry.oid), MAX_BYTES)? {
            BlobContent::Content(bytes) => Ok(Some(bytes)),
            BlobContent::TooLarge { .. } | BlobContent::Missing | BlobContent::Damaged => Ok(None),
        },
    }
}

/// Signatures of the lines that a batch of commits added and removed, opened.
#[derive(Clone, Debug)]
pub struct LineChanges {
    base: u32,
    commit_ends: Bytes,
    signatures: Bytes,
    ends: Bytes,
}

/// Why signatures could not be made or read.
#[derive(Debug, thiserror::Error)]
pub enum LinesError {
    /// The file.
    #[error(transparent)]
    Section(#[from] SectionError),
    /// The records that it is about.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// The repository.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl LineChanges {
    /// Opens a file of the store.
    pub fn open(sidecar: &Sidecar, name: &str) -> Result<Self, LinesError> {
        Self::of(&SectionFile::open(sidecar, Store::History, name, FORMAT)?)
    }

    /// Opens bytes in memory.
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
            && n_signatures.is_some_and(|n| lines.ends.len() == n as usize * 4);
        if is_whole {
            Ok(lines)
        } else {
            Err(file.damaged("lengths of sections").into())
        }
    }

    /// The number of the first commit.
    pub fn base(&self) -> u32 {
        self.base
    }

    /// How many commits it has.
    pub fn n_commits(&self) -> u32 {
        (self.commit_ends.len() / 4) as u32
    }

    fn of_commit(&self, local: u32) -> Range<usize> {
        let end = |local: u32| u32_at(&self.commit_ends, local as usize).unwrap_or_default() as usize;
        local.checked_sub(1).map_or(0, end)..end(local)
    }

    /// Whether the commit may have added or removed a line with a match; false only if it has not.
    pub fn may_match(&self, local: u32, query: &TrigramQuery) -> bool {
        self.of_commit(local).any(|at| self.signature(at).may_match(query))
    }

    /// The same for each path that the commit changed, ascending.
    pub fn paths_that_may_match(&self, local: u32, query: &TrigramQuery) -> Vec<bool> {
        let may_match = |at| self.signature(at).may_match(query);
        self.of_commit(local).map(may_match).collect()
    }

    /// Those of one commit, as they are laid out again.
    pub(super) fn copied(&self, local: u32) -> Vec<&[u8]> {
        self.of_commit(local).map(|at| self.signature(at).0).collect()
    }

    /// Whether the repository says the same of a commit of the batch that it is about.
    pub fn is_true_of(&self, batch: &Batch, local: u32, reader: &mut ObjectReader) -> Result<bool, LinesError> {
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

    /// Compares it with the batch that it is about.
    pub fn verify(&self, batch: &Batch) -> Result<(), LinesError> {
        let damaged = |what: &str| SectionError::Damaged {
            path: "signatures of changes".into(),
            what: what.to_owned(),
        };
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

    /// The bytes of the file for a batch. `advance` is called after each changed path.
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

    /// The same from the files of batches that adjoin.
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

fn is_merge(batch: &Batch, local: u32) -> Result<bool, BatchError> {
    let mut parents = Vec::new();
    batch.parents_of(local, &mut parents)?;
    Ok(parents.len() > 1)
}

/// What the renames of a batch bind together.
struct RenameHalves<'r> {
    base: u32,
    is_merge: Vec<bool>,
    /// What a renamed file was, by commit and old path; `None` if that did not go.
    moved: HashMap<(u32, &'r [u8]), Option<Entry>>,
}

impl<'r> RenameHalves<'r> {
    fn of(batch: &Batch, runs: &'r [PathRun<'_>]) -> Result<Self, BatchError> {
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

    /// What [`compared`] says, for one change.
    fn versions(&self, path: &[u8], change: &PathChange) -> (Option<Entry>, Option<Entry>) {
        let moved = |path| self.moved.get(&(change.commit, path)).copied();
        match (&change.origin, change.new) {
            (Some(origin), new) => (moved(origin.path.as_bytes()).flatten(), new),
            (None, None) if moved(path).is_some() => (None, None),
            (None, new) => (change.old, new),
        }
    }
}

/// The signature of what differs. `last` is the version that was read last, which is mostly the next one's old one.
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

/// Lays signatures out.
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

    /// Adds those of the next commit.
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

    type Told = (Vec<(u32, String)>, Vec<(u32, String)>);

    fn told(old: &str, new: &str) -> Told {
        let diff = LineDiff::of(old.into(), new.into());
        let (removed, added) = diff.removed_and_added();
        let owned = |lines: NumberedLines<'_>| -> Vec<(u32, String)> {
            let line = |(number, line): (u32, &[u8])| (number, String::from_utf8_lossy(line).into_owned());
            lines.into_iter().map(line).collect()
        };
        (owned(removed), owned(added))
    }

    #[test]
    fn lines_are_told_with_their_numbers_on_either_side() {
        let lines = |list: &[(u32, &str)]| -> Vec<(u32, String)> {
            list.iter()
                .map(|(number, line)| (*number, (*line).to_owned()))
                .collect()
        };
        let (removed, added) = told("a\nb\nc\nd\ne\n", "a\nB\nc\nd\nx\ny\ne\n");
        assert_eq!(
            (removed, added),
            (lines(&[(2, "b")]), lines(&[(2, "B"), (5, "x"), (6, "y")]))
        );
        // What only lost its line break is another line.
        assert_eq!(told("a\nb\n", "a\nb"), (lines(&[(2, "b")]), lines(&[(2, "b")])));
        assert_eq!(told("", "x"), (lines(&[]), lines(&[(1, "x")])));
        assert_eq!(told("x\n", ""), (lines(&[(1, "x")]), lines(&[])));
        assert_eq!(told("a\na\na\n", "a\na\n"), (lines(&[(3, "a")]), lines(&[])));
        assert_eq!(told("ab\nc\n", "abc\nc\n"), (lines(&[(1, "ab")]), lines(&[(1, "abc")])));
    }
}
