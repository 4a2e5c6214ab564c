//! Writes a batch of commit records.

use std::collections::{BTreeMap, HashMap};

use bstr::{BStr, ByteSlice};
use serde::{Deserialize, Serialize};

use crate::git::Person;
use crate::model::{Oid, RepoPath};
use crate::sidecar::{SectionWriter, compress, encode};

use super::record::{Change, CommitData, Entry, Who};
use super::wire::{put_i64, put_u32, put_varint};

/// Format version. 1: initial.
pub(super) const FORMAT: u32 = 1;
/// The number of a parent that is not recorded.
pub(super) const NO_COMMIT: u32 = u32::MAX;
/// Number of commits per block of heads.
pub(super) const HEADS_PER_BLOCK: usize = 64;
/// Number of commits per block of bodies. Blocks are larger because bodies are read either singly or all at once.
pub(super) const BODIES_PER_BLOCK: usize = 128;
/// Length limit of the part of a message that is stored in the head: the first paragraph. The rest is stored in the
/// body.
const MAX_SUBJECT_BYTES: usize = 512;

/// The flags of a change.
pub(super) const OLD_IS_LAST_NEW: u8 = 1;
pub(super) const OLD_IS_GIVEN: u8 = 2;
pub(super) const HAS_NEW: u8 = 4;
pub(super) const IS_COMBINED: u8 = 8;
pub(super) const HAS_ORIGIN: u8 = 16;

/// The displayed metadata of a commit, except its id and the committer's time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StoredHead {
    pub(super) author: u32,
    pub(super) committer: u32,
    pub(super) author_time: i64,
    pub(super) author_offset: i32,
    pub(super) committer_offset: i32,
    pub(super) encoding: Option<Vec<u8>>,
    pub(super) subject: Vec<u8>,
}

/// Collects commits in the order of their numbers and writes a batch file. The same commits give the same bytes.
#[derive(Debug)]
pub struct BatchWriter {
    base: u32,
    id_bytes: usize,
    ids: Vec<Oid>,
    flags: Vec<u8>,
    times: Vec<u8>,
    parents: Vec<u8>,
    parent_ends: Vec<u8>,
    people: HashMap<Who, u32>,
    people_list: Vec<(Vec<u8>, Vec<u8>)>,
    heads: Vec<StoredHead>,
    bodies: Vec<Vec<u8>>,
    changes: BTreeMap<RepoPath, Vec<(u32, Change)>>,
    n_changes: u32,
}

impl BatchWriter {
    /// Starts an empty batch whose first commit has the number `base`.
    pub fn new(base: u32) -> Self {
        Self {
            base,
            id_bytes: 20,
            ids: Vec::new(),
            flags: Vec::new(),
            times: Vec::new(),
            parents: Vec::new(),
            parent_ends: Vec::new(),
            people: HashMap::new(),
            people_list: Vec::new(),
            heads: Vec::new(),
            bodies: Vec::new(),
            changes: BTreeMap::new(),
            n_changes: 0,
        }
    }

    /// Adds the next commit. `parents` are the numbers of its parents, or `None` for parents that are not recorded.
    pub fn add(&mut self, data: CommitData, parents: &[Option<u32>]) {
        let local = self.ids.len() as u32;
        self.id_bytes = data.id.0.as_bytes().len();
        self.ids.push(data.id.0);
        self.flags.push(data.boundary as u8 | u8::from(data.is_unknown) << 4);
        put_i64(&mut self.times, data.committer.time);
        for parent in parents {
            put_u32(&mut self.parents, parent.unwrap_or(NO_COMMIT));
        }
        put_u32(&mut self.parent_ends, (self.parents.len() / 4) as u32);
        let (subject, body) = split_message(data.message.as_bstr());
        let head = StoredHead {
            author: self.person(&data.author),
            committer: self.person(&data.committer),
            author_time: data.author.time,
            author_offset: data.author.utc_offset,
            committer_offset: data.committer.utc_offset,
            encoding: data.encoding.map(Vec::from),
            subject: subject.to_vec(),
        };
        self.heads.push(head);
        self.bodies.push(body.to_vec());
        self.n_changes += data.changes.len() as u32;
        for change in data.changes {
            self.changes
                .entry(change.path.clone())
                .or_default()
                .push((local, change));
        }
    }

    /// Returns the number of commits added so far.
    pub fn n_commits(&self) -> u32 {
        self.ids.len() as u32
    }

    /// Returns the number of changed paths added so far.
    pub fn n_changes(&self) -> u32 {
        self.n_changes
    }

    fn person(&mut self, person: &Person) -> u32 {
        let who = Who {
            name: person.name.clone(),
            email: person.email.clone(),
        };
        let list = &mut self.people_list;
        *self.people.entry(who).or_insert_with_key(|who| {
            list.push((who.name.to_vec(), who.email.to_vec()));
            list.len() as u32 - 1
        })
    }

    /// Returns the content of the file.
    pub fn finish(mut self) -> Vec<u8> {
        // The origin of a rename must have a path number even if no commit of the batch changed the path.
        let origins: Vec<RepoPath> = self
            .changes
            .values()
            .flatten()
            .filter_map(|(_, change)| Some(change.origin.as_ref()?.path.clone()))
            .collect();
        for origin in origins {
            self.changes.entry(origin).or_default();
        }
        let mut file = SectionWriter::new(FORMAT);
        let mut meta = Vec::new();
        for number in [self.base, self.ids.len() as u32, self.n_changes, self.id_bytes as u32] {
            put_u32(&mut meta, number);
        }
        file.add("meta", meta);
        let mut by_id: Vec<u32> = (0..self.ids.len() as u32).collect();
        by_id.sort_unstable_by_key(|local| self.ids[*local as usize]);
        file.add("ids", self.ids.iter().flat_map(|id| id.as_bytes().to_vec()).collect());
        file.add("by_id", by_id.iter().flat_map(|local| local.to_le_bytes()).collect());
        file.add("flags", std::mem::take(&mut self.flags));
        file.add("times", std::mem::take(&mut self.times));
        file.add("parents", std::mem::take(&mut self.parents));
        file.add("parent_ends", std::mem::take(&mut self.parent_ends));
        file.add("people", encode(&self.people_list));
        add_blocks(
            &mut file,
            "heads",
            "head_blocks",
            self.heads.chunks(HEADS_PER_BLOCK).map(|block| encode(&block)),
        );
        add_blocks(
            &mut file,
            "bodies",
            "body_blocks",
            self.bodies.chunks(BODIES_PER_BLOCK).map(|block| encode(&block)),
        );
        self.add_changes(&mut file);
        file.finish()
    }

    fn add_changes(&self, file: &mut SectionWriter) {
        let numbers: HashMap<&RepoPath, u64> = self.changes.keys().zip(0..).collect();
        let (mut paths, mut path_ends) = (Vec::new(), Vec::new());
        let (mut runs, mut run_ends) = (Vec::new(), Vec::new());
        let mut touched: Vec<Vec<u64>> = vec![Vec::new(); self.ids.len()];
        for (path, changes) in &self.changes {
            paths.extend_from_slice(path.as_bytes());
            put_u32(&mut path_ends, paths.len() as u32);
            let mut run = RunWriter::default();
            for (local, change) in changes {
                touched[*local as usize].push(numbers[path]);
                let origin = change
                    .origin
                    .as_ref()
                    .map(|origin| (numbers[&origin.path], origin.similarity));
                run.add(*local, change, origin);
            }
            runs.extend_from_slice(&run.out);
            put_u32(&mut run_ends, runs.len() as u32);
        }
        let (mut touched_bytes, mut touched_ends) = (Vec::new(), Vec::new());
        for of_commit in touched {
            let mut last = 0;
            for number in of_commit {
                put_varint(&mut touched_bytes, number - last);
                last = number;
            }
            put_u32(&mut touched_ends, touched_bytes.len() as u32);
        }
        file.add("paths", paths);
        file.add("path_ends", path_ends);
        file.add("runs", runs);
        file.add("run_ends", run_ends);
        file.add("touched", touched_bytes);
        file.add("touched_ends", touched_ends);
    }
}

fn add_blocks(
    file: &mut SectionWriter,
    name: &'static str,
    table_name: &'static str,
    blocks: impl Iterator<Item = Vec<u8>>,
) {
    let (mut bytes, mut table) = (Vec::new(), Vec::new());
    for block in blocks {
        bytes.extend_from_slice(&compress(&block));
        put_u32(&mut table, bytes.len() as u32);
        put_u32(&mut table, block.len() as u32);
    }
    file.add(name, bytes);
    file.add(table_name, table);
}

/// Splits a message into the first paragraph, up to a length limit, and the rest.
fn split_message(message: &BStr) -> (&[u8], &[u8]) {
    let end = message.find(b"\n\n").unwrap_or(message.len());
    message.split_at(end.min(MAX_SUBJECT_BYTES))
}

/// Writes the changes of a path, ascending by commit number.
#[derive(Default)]
struct RunWriter {
    out: Vec<u8>,
    last_local: u32,
    /// The ids in the order in which they were written.
    ids: Vec<Oid>,
    last_new: Option<Entry>,
}

impl RunWriter {
    fn add(&mut self, local: u32, change: &Change, origin: Option<(u64, u8)>) {
        put_varint(&mut self.out, u64::from(local - self.last_local));
        self.last_local = local;
        let mut flags = match change.old {
            None => 0,
            old if old == self.last_new => OLD_IS_LAST_NEW,
            Some(_) => OLD_IS_GIVEN,
        };
        flags |= if change.new.is_some() { HAS_NEW } else { 0 };
        flags |= if change.is_combined { IS_COMBINED } else { 0 };
        flags |= if origin.is_some() { HAS_ORIGIN } else { 0 };
        self.out.push(flags);
        if let (OLD_IS_GIVEN, Some(old)) = (flags & 3, change.old) {
            self.entry(old);
        }
        if let Some(new) = change.new {
            self.entry(new);
        }
        if let Some((path, similarity)) = origin {
            put_varint(&mut self.out, path);
            self.out.push(similarity);
        }
        if change.new.is_some() {
            self.last_new = change.new;
        }
    }

    /// Writes the mode and the id of an entry. If the run already contains the id, writes a reference to it instead.
    fn entry(&mut self, entry: Entry) {
        let back = self.ids.iter().rev().position(|id| *id == entry.oid);
        let reference = back.map_or(0, |back| back as u64 + 1);
        put_varint(&mut self.out, reference << 2 | u64::from(entry.mode.number()));
        if back.is_none() {
            self.out.extend_from_slice(entry.oid.as_bytes());
            self.ids.push(entry.oid);
        }
    }
}
