//! Reads a batch of commit records.
//!
//! Section file, format 1. It holds n commits, the first of which has the number `base`:
//!
//! ```text
//! meta          u32 base, u32 n, u32 changed paths, u32 bytes of an id: 20 or 32
//! ids           n ids
//! by_id         n × u32: the order of `ids`
//! flags         n × u8: low four bits the boundary, 16 if the changes are unknown or inexact renames may be missing
//! times         n × i64: the committer's seconds since 1970
//! parents       u32 numbers of parents, 2³² − 1 for an unrecorded one; parent_ends: n × u32
//! people        record: list of (name, address)
//! heads         zstd frames of 64 commits each: people, times, subject; head_blocks: u32 end, u32 decompressed length
//! bodies        zstd frames of 128 commits each: the rest of the message; body_blocks likewise
//! paths         ascending, end to end; path_ends: u32 each
//! runs          the changes of each path, ascending by commit; run_ends: u32 each
//! touched       the paths of each commit: varints, the first absolute, then differences; touched_ends: n × u32
//! ```
//!
//! A change in a run consists of: varint commits since the previous change (for the first: since `base`); u8 flags (low
//! two bits: 0 the path did not exist before, 1 the old entry is the last new entry of the run, 2 the old entry
//! follows; 4 the new entry follows; 8 differs from every parent; 16 an origin follows); the entries; the origin:
//! varint path, u8 percent. An entry is a varint (4 × reference + mode): reference 0 is followed by the id, reference k
//! repeats the kth last id of the run.

use std::path::Path;
use std::sync::OnceLock;

use bstr::BString;
use serde::de::DeserializeOwned;

use crate::git::{FileMode, Person};
use crate::model::{CommitId, Oid, RepoPath};
use crate::sidecar::{Bytes, FileError, SectionFile, Sidecar, Store, decode, decompress};

use super::record::{Boundary, Change, CommitData, CommitHead, Entry, Origin, PathChange, Who, message_text};
use super::wire::{Scan, SortedTexts, i64_at, part, u32_at};
use super::writer::{
    BODIES_PER_BLOCK, FORMAT, HAS_NEW, HAS_ORIGIN, HEADS_PER_BLOCK, IS_COMBINED, NO_COMMIT, OLD_IS_GIVEN,
    OLD_IS_LAST_NEW, StoredHead,
};

/// A commit with the numbers of its parents. A parent is `None` if it is not recorded.
pub type NumberedCommit = (CommitData, Vec<Option<u32>>);

/// A path with its changes, ascending by commit number.
pub type PathRun<'b> = (&'b [u8], Vec<PathChange>);

/// Limit on the decompressed size of a block. Real blocks of 128 messages are smaller, but a crafted message may be
/// larger.
const MAX_BLOCK_BYTES: usize = 256 << 20;

/// An open batch of commit records.
#[derive(Debug)]
pub struct Batch {
    file: SectionFile,
    base: u32,
    n_commits: u32,
    n_changes: u32,
    id_bytes: usize,
    ids: Bytes,
    by_id: Bytes,
    flags: Bytes,
    times: Bytes,
    parents: Bytes,
    parent_ends: Bytes,
    paths: SortedTexts,
    run_ends: Bytes,
    runs: Lazy,
    touched: Lazy,
    touched_ends: Lazy,
    heads: Lazy,
    head_blocks: Lazy,
    bodies: Lazy,
    body_blocks: Lazy,
    people: OnceLock<Vec<Who>>,
}

/// A section of the file that is read and verified on first use.
#[derive(Debug)]
struct Lazy {
    name: &'static str,
    bytes: OnceLock<Bytes>,
}

impl Lazy {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            bytes: OnceLock::new(),
        }
    }

    fn get(&self, file: &SectionFile) -> Result<&Bytes, FileError> {
        match self.bytes.get() {
            Some(bytes) => Ok(bytes),
            None => {
                let bytes = file.section(self.name)?;
                Ok(self.bytes.get_or_init(|| bytes))
            }
        }
    }
}

impl Batch {
    /// Opens the batch file `name` of the sidecar.
    pub fn open(sidecar: &Sidecar, name: &str) -> Result<Self, FileError> {
        Self::of(SectionFile::open(sidecar, Store::History, name, FORMAT)?)
    }

    /// Opens a batch in memory.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Self, FileError> {
        let file = SectionFile::from_bytes(Path::new("records of commits"), bytes.into(), FORMAT)?;
        Self::of(file)
    }

    fn of(file: SectionFile) -> Result<Self, FileError> {
        let meta = file.section("meta")?;
        let number = |index| u32_at(&meta, index).ok_or_else(|| file.damaged("meta"));
        let n_commits = number(1)?;
        let batch = Self {
            base: number(0)?,
            n_commits,
            n_changes: number(2)?,
            id_bytes: number(3)? as usize,
            ids: file.section("ids")?,
            by_id: file.section("by_id")?,
            flags: file.section("flags")?,
            times: file.section("times")?,
            parents: file.section("parents")?,
            parent_ends: file.section("parent_ends")?,
            paths: SortedTexts {
                bytes: file.section("paths")?,
                ends: file.section("path_ends")?,
            },
            run_ends: file.section("run_ends")?,
            runs: Lazy::new("runs"),
            touched: Lazy::new("touched"),
            touched_ends: Lazy::new("touched_ends"),
            heads: Lazy::new("heads"),
            head_blocks: Lazy::new("head_blocks"),
            bodies: Lazy::new("bodies"),
            body_blocks: Lazy::new("body_blocks"),
            people: OnceLock::new(),
            file,
        };
        let n = n_commits as usize;
        let is_whole = matches!(batch.id_bytes, 20 | 32)
            && batch.ids.len() == n * batch.id_bytes
            && batch.by_id.len() == n * 4
            && batch.flags.len() == n
            && batch.times.len() == n * 8
            && batch.parent_ends.len() == n * 4
            && batch.run_ends.len() == batch.paths.ends.len();
        if is_whole {
            Ok(batch)
        } else {
            Err(batch.damaged("lengths of sections"))
        }
    }

    /// Verifies every section and every record of the file.
    pub fn verify(&self) -> Result<(), FileError> {
        self.file.verify()?;
        let commits = self.commits()?;
        for (local, (data, _)) in (0..).zip(&commits) {
            self.boundary(local)?;
            if self.number(data.id) != Some(self.base + local) {
                return Err(self.damaged("by_id"));
            }
            if self.touched(local)?.len() != data.changes.len() {
                return Err(self.damaged("touched"));
            }
        }
        Ok(())
    }

    /// Returns the number of the first commit.
    pub fn base(&self) -> u32 {
        self.base
    }

    /// Returns the number of commits in the batch.
    pub fn n_commits(&self) -> u32 {
        self.n_commits
    }

    /// Returns the number of changed paths, summed over all commits.
    pub fn n_changes(&self) -> u32 {
        self.n_changes
    }

    /// Returns the number of distinct paths, including paths that are only the origin of a rename.
    pub fn n_paths(&self) -> u32 {
        self.paths.len() as u32
    }

    /// Returns the path with this number.
    pub fn path(&self, number: u32) -> Option<&[u8]> {
        self.paths.get(number as usize)
    }

    pub(super) fn path_number(&self, path: &[u8]) -> Option<u32> {
        self.paths.find(path).map(|number| number as u32)
    }

    /// Returns the number of paths that a commit changed.
    pub(super) fn n_touched(&self, local: u32) -> Result<usize, FileError> {
        let bytes = self.touched_bytes(local)?;
        // Each number ends with a byte below 128.
        Ok(bytes.iter().filter(|byte| **byte < 0x80).count())
    }

    /// Returns true if a commit changed more than `n` paths.
    pub(super) fn touches_more_than(&self, local: u32, n: usize) -> Result<bool, FileError> {
        let bytes = self.touched_bytes(local)?;
        Ok(bytes.iter().filter(|byte| **byte < 0x80).nth(n).is_some())
    }

    pub(super) fn damaged(&self, what: &str) -> FileError {
        self.file.damaged(what)
    }

    /// Returns the id of a commit.
    pub fn id(&self, local: u32) -> Result<CommitId, FileError> {
        let start = local as usize * self.id_bytes;
        let raw = self.ids.get(start..start + self.id_bytes);
        let oid = raw.and_then(|raw| Oid::from_bytes(raw).ok());
        Ok(CommitId(oid.ok_or_else(|| self.damaged("ids"))?))
    }

    /// Returns the number of a commit in this batch. Returns `None` if the batch does not contain the commit.
    pub fn number(&self, id: CommitId) -> Option<u32> {
        let (mut low, mut high) = (0, self.n_commits as usize);
        while low < high {
            let middle = low + (high - low) / 2;
            let local = u32_at(&self.by_id, middle)?;
            let found = self.id(local).ok()?;
            match found.cmp(&id) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Some(self.base + local),
            }
        }
        None
    }

    /// Appends the numbers of a commit's parents to `into`. A parent is `None` if it is not recorded.
    pub fn parents_of(&self, local: u32, into: &mut Vec<Option<u32>>) -> Result<(), FileError> {
        let bounds = || {
            let start = match local {
                0 => 0,
                _ => u32_at(&self.parent_ends, local as usize - 1)?,
            };
            Some(start..u32_at(&self.parent_ends, local as usize)?)
        };
        for index in bounds().ok_or_else(|| self.damaged("parent_ends"))? {
            let parent = u32_at(&self.parents, index as usize).ok_or_else(|| self.damaged("parents"))?;
            if parent != NO_COMMIT && parent >= self.base + local {
                return Err(self.damaged("a parent does not precede its child"));
            }
            into.push((parent != NO_COMMIT).then_some(parent));
        }
        Ok(())
    }

    /// Returns the committer's time, in seconds since 1970.
    pub fn time(&self, local: u32) -> Result<i64, FileError> {
        i64_at(&self.times, local as usize).ok_or_else(|| self.damaged("times"))
    }

    /// Returns the reason why parents of the commit are not recorded, or [`Boundary::None`] if all are.
    pub fn boundary(&self, local: u32) -> Result<Boundary, FileError> {
        let flags = self.flags.get(local as usize).copied();
        let boundary = flags.and_then(|flags| Boundary::from_number(flags & 15));
        boundary.ok_or_else(|| self.damaged("flags"))
    }

    /// Returns true if the recorded changes of a commit may be incomplete.
    pub fn is_unknown(&self, local: u32) -> bool {
        self.flags.get(local as usize).is_some_and(|flags| flags & 16 != 0)
    }

    fn block(&self, bytes: &Lazy, table: &Lazy, index: usize) -> Result<Vec<u8>, FileError> {
        let (bytes, table) = (bytes.get(&self.file)?, table.get(&self.file)?);
        let frame = || {
            let start = match index {
                0 => 0,
                _ => u32_at(table, 2 * index - 2)?,
            };
            let frame = bytes.get(start as usize..u32_at(table, 2 * index)? as usize)?;
            Some((frame, u32_at(table, 2 * index + 1)? as usize))
        };
        let (frame, length) = frame().ok_or_else(|| self.damaged("table of blocks"))?;
        decompress(frame, length, MAX_BLOCK_BYTES).map_err(|error| self.damaged(&format!("block: {error}")))
    }

    fn decode<T: DeserializeOwned>(&self, record: &[u8]) -> Result<T, FileError> {
        decode(record).map_err(|error| self.damaged(&error.to_string()))
    }

    fn people(&self) -> Result<&[Who], FileError> {
        if let Some(people) = self.people.get() {
            return Ok(people);
        }
        let list: Vec<(Vec<u8>, Vec<u8>)> = self.decode(&self.file.section("people")?)?;
        let people = list.into_iter().map(|(name, email)| Who {
            name: BString::from(name),
            email: BString::from(email),
        });
        Ok(self.people.get_or_init(|| people.collect()))
    }

    /// Decodes the block that contains the head of a commit. Also returns the number of the block's first commit in the
    /// batch.
    pub(super) fn heads_of_block(&self, local: u32) -> Result<(u32, Vec<CommitHead>), FileError> {
        let index = local as usize / HEADS_PER_BLOCK;
        let stored: Vec<StoredHead> = self.decode(&self.block(&self.heads, &self.head_blocks, index)?)?;
        let first = (index * HEADS_PER_BLOCK) as u32;
        let heads = stored
            .into_iter()
            .zip(first..)
            .map(|(head, local)| self.head_of(local, head));
        Ok((first, heads.collect::<Result<_, _>>()?))
    }

    fn head_of(&self, local: u32, stored: StoredHead) -> Result<CommitHead, FileError> {
        let people = self.people()?;
        let who = |index: u32| {
            people
                .get(index as usize)
                .cloned()
                .ok_or_else(|| self.damaged("people"))
        };
        let subject = message_text(&stored.subject, stored.encoding.as_deref());
        Ok(CommitHead {
            id: self.id(local)?,
            author: who(stored.author)?,
            committer: who(stored.committer)?,
            author_time: stored.author_time,
            author_offset: stored.author_offset,
            commit_time: self.time(local)?,
            subject: subject
                .split('\n')
                .map(str::trim_end)
                .collect::<Vec<_>>()
                .join(" ")
                .trim()
                .to_owned(),
            boundary: self.boundary(local)?,
            is_unknown: self.is_unknown(local),
        })
    }

    /// Returns the message of a commit.
    pub fn message(&self, local: u32) -> Result<String, FileError> {
        let stored: Vec<StoredHead> =
            self.decode(&self.block(&self.heads, &self.head_blocks, local as usize / HEADS_PER_BLOCK)?)?;
        let bodies: Vec<Vec<u8>> =
            self.decode(&self.block(&self.bodies, &self.body_blocks, local as usize / BODIES_PER_BLOCK)?)?;
        let head = stored
            .get(local as usize % HEADS_PER_BLOCK)
            .ok_or_else(|| self.damaged("heads"))?;
        let body = bodies
            .get(local as usize % BODIES_PER_BLOCK)
            .ok_or_else(|| self.damaged("bodies"))?;
        let message = [head.subject.as_slice(), body.as_slice()].concat();
        Ok(message_text(&message, head.encoding.as_deref()))
    }

    /// Returns the messages of all commits, in commit order.
    pub fn messages(&self) -> Result<Vec<String>, FileError> {
        let mut messages = Vec::with_capacity(self.n_commits as usize);
        for first in (0..self.n_commits as usize).step_by(BODIES_PER_BLOCK) {
            messages.extend(self.messages_of_block(first as u32)?.1);
        }
        Ok(messages)
    }

    /// Decodes the messages of the block that contains a commit. Also returns the number of the block's first commit in
    /// the batch.
    pub fn messages_of_block(&self, local: u32) -> Result<(u32, Vec<String>), FileError> {
        let index = local as usize / BODIES_PER_BLOCK;
        let bodies: Vec<Vec<u8>> = self.decode(&self.block(&self.bodies, &self.body_blocks, index)?)?;
        let first = index * BODIES_PER_BLOCK;
        let mut stored: Vec<StoredHead> = Vec::with_capacity(bodies.len());
        for at in (first..first + bodies.len()).step_by(HEADS_PER_BLOCK) {
            let block = self.block(&self.heads, &self.head_blocks, at / HEADS_PER_BLOCK)?;
            stored.extend(self.decode::<Vec<StoredHead>>(&block)?);
        }
        let text = |(head, body): (StoredHead, Vec<u8>)| {
            message_text(&[head.subject, body].concat(), head.encoding.as_deref())
        };
        Ok((first as u32, stored.into_iter().zip(bodies).map(text).collect()))
    }

    /// Returns the changes of a path, ascending by commit number.
    pub fn changes_of(&self, path: &[u8]) -> Result<Vec<PathChange>, FileError> {
        match self.paths.find(path) {
            Some(number) => self.run(number),
            None => Ok(Vec::new()),
        }
    }

    pub(super) fn run(&self, number: usize) -> Result<Vec<PathChange>, FileError> {
        let run = part(self.runs.get(&self.file)?, &self.run_ends, number).ok_or_else(|| self.damaged("run_ends"))?;
        let mut reader = RunReader {
            batch: self,
            scan: Scan::new(run),
            local: 0,
            ids: Vec::new(),
            last_new: None,
        };
        let mut changes = Vec::new();
        while !reader.scan.is_over() {
            changes.push(reader.next().ok_or_else(|| self.damaged("a run of changes"))?);
        }
        Ok(changes)
    }

    /// Returns the paths that a commit changed, in ascending order.
    pub fn touched(&self, local: u32) -> Result<Vec<RepoPath>, FileError> {
        let numbers = self.touched_numbers(local)?;
        let path = |number: usize| self.paths.get(number).map(RepoPath::new);
        let paths: Option<Vec<RepoPath>> = numbers.into_iter().map(path).collect();
        paths.ok_or_else(|| self.damaged("touched"))
    }

    /// Returns the changes of a commit, ascending by path.
    pub fn changes_at(&self, local: u32) -> Result<Vec<Change>, FileError> {
        let numbers = self.touched_numbers(local)?.into_iter();
        let change = |number: usize| {
            let path = self.paths.get(number).ok_or_else(|| self.damaged("touched"))?;
            let run = self.run(number)?;
            let at = run.binary_search_by_key(&(self.base + local), |change| change.commit);
            let change = run[at.map_err(|_| self.damaged("touched"))?].clone();
            Ok(Change {
                path: RepoPath::new(path),
                old: change.old,
                new: change.new,
                origin: change.origin,
                is_combined: change.is_combined,
            })
        };
        numbers.map(change).collect()
    }

    /// Returns all paths with their changes, ascending by path. Paths that are only the origin of a rename have no
    /// changes.
    pub fn runs(&self) -> Result<Vec<PathRun<'_>>, FileError> {
        let run = |number| {
            let path = self.paths.get(number).ok_or_else(|| self.damaged("paths"))?;
            Ok((path, self.run(number)?))
        };
        (0..self.paths.len()).map(run).collect()
    }

    fn touched_bytes(&self, local: u32) -> Result<&[u8], FileError> {
        let ends = self.touched_ends.get(&self.file)?;
        let bytes = part(self.touched.get(&self.file)?, ends, local as usize);
        bytes.ok_or_else(|| self.damaged("touched_ends"))
    }

    fn touched_numbers(&self, local: u32) -> Result<Vec<usize>, FileError> {
        let mut scan = Scan::new(self.touched_bytes(local)?);
        let (mut numbers, mut last) = (Vec::new(), 0usize);
        while !scan.is_over() {
            let step = scan.varint().ok_or_else(|| self.damaged("touched"))?;
            last = last.saturating_add(step as usize);
            numbers.push(last);
        }
        Ok(numbers)
    }

    /// Returns the paths that start with `beginning`, in ascending order. Includes paths that are only the origin of a
    /// rename.
    pub fn paths_from(&self, beginning: &[u8]) -> impl Iterator<Item = &[u8]> {
        let from = self.paths.lower_bound(beginning);
        let paths = (from..self.paths.len()).map_while(|at| self.paths.get(at));
        paths.take_while(move |path| path.starts_with(beginning))
    }

    /// Decodes all commits, with the numbers of their parents instead of the ids.
    pub fn commits(&self) -> Result<Vec<NumberedCommit>, FileError> {
        let mut changes: Vec<Vec<Change>> = vec![Vec::new(); self.n_commits as usize];
        for number in 0..self.paths.len() {
            let path = RepoPath::new(self.paths.get(number).ok_or_else(|| self.damaged("paths"))?);
            for change in self.run(number)? {
                let of_commit = changes.get_mut((change.commit - self.base) as usize);
                of_commit.ok_or_else(|| self.damaged("runs"))?.push(Change {
                    path: path.clone(),
                    old: change.old,
                    new: change.new,
                    origin: change.origin,
                    is_combined: change.is_combined,
                });
            }
        }
        let mut commits = Vec::with_capacity(changes.len());
        for (index, block) in changes.chunks(BODIES_PER_BLOCK).enumerate() {
            let bodies: Vec<Vec<u8>> = self.decode(&self.block(&self.bodies, &self.body_blocks, index)?)?;
            let mut stored: Vec<StoredHead> = Vec::new();
            let heads_first = index * BODIES_PER_BLOCK / HEADS_PER_BLOCK;
            for at in heads_first..heads_first + block.len().div_ceil(HEADS_PER_BLOCK) {
                stored.extend(self.decode::<Vec<StoredHead>>(&self.block(&self.heads, &self.head_blocks, at)?)?);
            }
            for ((head, body), changes) in stored.into_iter().zip(bodies).zip(block) {
                let local = commits.len() as u32;
                commits.push(self.decode_commit(local, head, body, changes.clone())?);
            }
        }
        if commits.len() == self.n_commits as usize {
            Ok(commits)
        } else {
            Err(self.damaged("blocks"))
        }
    }

    fn decode_commit(
        &self,
        local: u32,
        head: StoredHead,
        body: Vec<u8>,
        changes: Vec<Change>,
    ) -> Result<NumberedCommit, FileError> {
        let mut parents = Vec::new();
        self.parents_of(local, &mut parents)?;
        let people = self.people()?;
        let person = |index: u32, time: i64, utc_offset: i32| {
            let who = people
                .get(index as usize)
                .cloned()
                .ok_or_else(|| self.damaged("people"))?;
            Ok(Person {
                name: who.name,
                email: who.email,
                time,
                utc_offset,
            })
        };
        let data = CommitData {
            id: self.id(local)?,
            parents: Vec::new(),
            author: person(head.author, head.author_time, head.author_offset)?,
            committer: person(head.committer, self.time(local)?, head.committer_offset)?,
            message: BString::from([head.subject, body].concat()),
            encoding: head.encoding.map(BString::from),
            boundary: self.boundary(local)?,
            is_unknown: self.is_unknown(local),
            changes,
        };
        Ok((data, parents))
    }
}

struct RunReader<'b> {
    batch: &'b Batch,
    scan: Scan<'b>,
    local: u32,
    ids: Vec<Oid>,
    last_new: Option<Entry>,
}

impl RunReader<'_> {
    fn next(&mut self) -> Option<PathChange> {
        self.local = self.local.checked_add(u32::try_from(self.scan.varint()?).ok()?)?;
        if self.local >= self.batch.n_commits {
            return None;
        }
        let flags = self.scan.byte()?;
        let old = match flags & 3 {
            0 => None,
            OLD_IS_LAST_NEW => Some(self.last_new?),
            OLD_IS_GIVEN => Some(self.entry()?),
            _ => return None,
        };
        let new = match flags & HAS_NEW {
            0 => None,
            _ => Some(self.entry()?),
        };
        let origin = match flags & HAS_ORIGIN {
            0 => None,
            _ => Some(Origin {
                path: RepoPath::new(self.batch.paths.get(self.scan.varint()? as usize)?),
                similarity: self.scan.byte()?,
            }),
        };
        self.last_new = new.or(self.last_new);
        Some(PathChange {
            commit: self.batch.base + self.local,
            old,
            new,
            origin,
            is_combined: flags & IS_COMBINED != 0,
        })
    }

    fn entry(&mut self) -> Option<Entry> {
        let number = self.scan.varint()?;
        let oid = match (number >> 2) as usize {
            0 => {
                let oid = Oid::from_bytes(self.scan.bytes(self.batch.id_bytes)?).ok()?;
                self.ids.push(oid);
                oid
            }
            back => *self.ids.get(self.ids.len().checked_sub(back)?)?,
        };
        Some(Entry {
            mode: FileMode::of_number((number & 3) as u8),
            oid,
        })
    }
}
