//! The file of a graph of near vectors, and the search in it.
//!
//! The graph only proposes candidates: the caller scores them as a scan does. Graphs are built by [`super::hnsw`].

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::path::Path;

use super::flat::Scorer;
use crate::embed::ProfileId;
use crate::model::varint;
use crate::sidecar::{Bytes, FileError, SectionFile, SectionWriter, Sidecar, Store};

/// Format version of graph files. 1: initial.
const FORMAT: u32 = 1;
const META_BYTES: usize = 24;
/// Number of the best hubs from which a search starts.
const N_STARTS: usize = 4;

/// An immutable graph whose points are the documents 0 to n − 1 of an epoch.
///
/// Sections of the file (format 1, little endian):
/// - `hubs`: ascending u32, the points where a search starts: those of an upper layer of the HNSW.
/// - `ends`: n × u32, the end of each point's neighbours in `neighbours`.
/// - `neighbours`: the neighbours of each point on the lowest layer, ascending, as LEB128 differences.
/// - `unlinked`: ascending u32, the points that no path reaches. They are candidates in every search.
/// - `same`: pairs of u32, ascending: a point, and another document with the same vector that is not a point.
/// - `meta`: u32 n | u32 ef | 16 bytes id of the embedding profile.
#[derive(Clone, Debug)]
pub struct GraphFile {
    file: SectionFile,
    n_docs: u32,
    ef: u32,
    profile: ProfileId,
    hubs: Bytes,
    ends: Bytes,
    neighbours: Bytes,
    unlinked: Bytes,
    same: Bytes,
}

/// The content of a graph file.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) ef: u32,
    pub(super) profile: ProfileId,
    pub(super) hubs: Vec<u32>,
    /// The ascending neighbours of each document.
    pub(super) neighbours: Vec<Vec<u32>>,
    pub(super) unlinked: Vec<u32>,
    pub(super) same: Vec<(u32, u32)>,
}

impl Graph {
    /// Returns a graph with which nothing is found.
    pub(super) fn without_points(n_docs: u32) -> Self {
        Self {
            ef: 0,
            profile: ProfileId([0; 16]),
            hubs: Vec::new(),
            neighbours: vec![Vec::new(); n_docs as usize],
            unlinked: Vec::new(),
            same: Vec::new(),
        }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let numbers = |list: &[u32]| list.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
        let (mut ends, mut neighbours) = (Vec::with_capacity(self.neighbours.len() * 4), Vec::new());
        for list in &self.neighbours {
            let mut last = 0;
            for &neighbour in list {
                varint::put(&mut neighbours, u64::from(neighbour - last));
                last = neighbour;
            }
            ends.extend_from_slice(&(neighbours.len() as u32).to_le_bytes());
        }
        let same: Vec<u32> = self.same.iter().flat_map(|&(point, doc)| [point, doc]).collect();
        let mut meta = numbers(&[self.neighbours.len() as u32, self.ef]);
        meta.extend_from_slice(&self.profile.0);
        let mut file = SectionWriter::new(FORMAT);
        file.add("hubs", numbers(&self.hubs));
        file.add("ends", ends);
        file.add("neighbours", neighbours);
        file.add("unlinked", numbers(&self.unlinked));
        file.add("same", numbers(&same));
        file.add("meta", meta);
        file.finish()
    }
}

impl GraphFile {
    /// Opens the file `name` of the sidecar and verifies its checksums.
    pub fn open(sidecar: &Sidecar, name: &str) -> Result<Self, FileError> {
        Self::from_sections(SectionFile::open(sidecar, Store::Dense, name, FORMAT)?)
    }

    /// Opens a file in memory. `name` is used in error messages.
    pub fn from_bytes(name: &Path, bytes: impl Into<Bytes>) -> Result<Self, FileError> {
        Self::from_sections(SectionFile::from_bytes(name, bytes.into(), FORMAT)?)
    }

    /// Numbers may be out of range, which costs recall but causes no panic; [`Self::verify`] finds them.
    fn from_sections(file: SectionFile) -> Result<Self, FileError> {
        let meta = file.section("meta")?;
        let meta: &[u8; META_BYTES] = (*meta).try_into().map_err(|_| file.damaged("meta"))?;
        let graph = Self {
            n_docs: number_at(meta, 0).unwrap_or_default(),
            ef: number_at(meta, 1).unwrap_or_default(),
            profile: ProfileId(std::array::from_fn(|i| meta[META_BYTES - 16 + i])),
            hubs: file.section("hubs")?,
            ends: file.section("ends")?,
            neighbours: file.section("neighbours")?,
            unlinked: file.section("unlinked")?,
            same: file.section("same")?,
            file,
        };
        let is_whole = graph.ends.len() == graph.n_docs as usize * 4
            && [&graph.hubs, &graph.unlinked, &graph.same]
                .iter()
                .all(|list| list.len().is_multiple_of(4))
            && graph.same.len().is_multiple_of(8);
        if is_whole {
            Ok(graph)
        } else {
            Err(graph.file.damaged("lengths of sections"))
        }
    }

    /// Verifies the whole file and that every number is in range and in order.
    pub fn verify(&self) -> Result<(), FileError> {
        self.file.verify()?;
        let is_ascending = |list: &[u32]| list.is_sorted_by(|a, b| a < b);
        let is_sound = |list: &[u32]| is_ascending(list) && list.iter().all(|&number| number < self.n_docs);
        let mut list = Vec::new();
        let mut start = 0;
        for point in 0..self.n_docs {
            let end = number_at(&self.ends, point as usize).unwrap_or_default();
            self.neighbours_of(point, &mut list);
            if end < start || !is_sound(&list) || list.is_empty() != (start == end) {
                return Err(self.file.damaged("neighbours"));
            }
            start = end;
        }
        let lists = [&self.hubs, &self.unlinked].map(|list| numbers(list).collect::<Vec<u32>>());
        let same: Vec<[u32; 2]> = numbers(&self.same).collect::<Vec<u32>>().as_chunks::<2>().0.to_vec();
        let is_whole = start as usize == self.neighbours.len()
            && lists.iter().all(|list| is_sound(list))
            && same.is_sorted_by(|a, b| a < b)
            && same.as_flattened().iter().all(|&doc| doc < self.n_docs);
        if is_whole {
            Ok(())
        } else {
            Err(self.file.damaged("numbers of documents"))
        }
    }

    /// Returns the number of documents. The graph has those below this number.
    pub fn n_docs(&self) -> u32 {
        self.n_docs
    }

    /// Returns the embedding profile of the vectors that the graph was built from.
    pub fn profile(&self) -> ProfileId {
        self.profile
    }

    /// Returns the number of candidates with which the graph passed the trial after it was built; 0 if it failed.
    pub fn ef(&self) -> usize {
        self.ef as usize
    }

    /// Returns the number of points that are candidates in every search.
    pub(super) fn n_unlinked(&self) -> usize {
        self.unlinked.len() / 4
    }

    /// Returns candidates for the nearest documents, ascending: those that a search with `ef` candidates finds, all
    /// documents with the same vectors, and the points that cannot be reached.
    pub(super) fn candidates(&self, scorer: &Scorer<'_>, ef: usize) -> Vec<u32> {
        let mut docs: Vec<u32> = self
            .nearest(scorer, ef)
            .into_iter()
            .map(|Reverse(point)| point.doc)
            .collect();
        docs.extend(numbers(&self.unlinked));
        docs.sort_unstable();
        // Otherwise, a crafted file could repeat a point that has many equal documents.
        docs.dedup();
        let same = docs.iter().flat_map(|&point| self.same_as(point)).collect::<Vec<u32>>();
        docs.extend(same);
        docs.sort_unstable();
        docs.dedup();
        docs.retain(|&doc| doc < self.n_docs);
        docs
    }

    /// Searches the lowest layer from the best hubs: the best-first search of Malkov and Yashunin, "Efficient and robust
    /// approximate nearest neighbor search using Hierarchical Navigable Small World graphs", 2016, algorithm 2. A scan
    /// of the hubs replaces the descent through the upper layers.
    fn nearest(&self, scorer: &Scorer<'_>, ef: usize) -> BinaryHeap<Reverse<Scored>> {
        let mut seen = vec![0u64; (self.n_docs as usize).div_ceil(64)];
        let mut is_new = |doc: u32| {
            let Some(word) = seen.get_mut(doc as usize / 64) else {
                return false;
            };
            let bit = 1 << (doc % 64);
            let is_new = *word & bit == 0;
            *word |= bit;
            is_new
        };
        let hubs: Vec<u32> = numbers(&self.hubs).filter(|&hub| hub < self.n_docs).collect();
        let mut cosines = vec![0.0; hubs.len()];
        scorer.score(&hubs, &mut cosines);
        let mut starts: Vec<Scored> = scored(&hubs, &cosines).collect();
        starts.sort_unstable_by(|a, b| b.cmp(a));
        starts.truncate(N_STARTS);
        let mut kept: BinaryHeap<Reverse<Scored>> = BinaryHeap::new();
        let mut open: BinaryHeap<Scored> = BinaryHeap::new();
        for start in starts.into_iter().filter(|start| is_new(start.doc)) {
            open.push(start);
            kept.push(Reverse(start));
        }
        let mut neighbours = Vec::new();
        while let Some(point) = open.pop() {
            let floor = kept.peek().filter(|_| kept.len() >= ef).map(|worst| worst.0.cosine);
            if floor.is_some_and(|floor| point.cosine < floor) {
                break;
            }
            self.neighbours_of(point.doc, &mut neighbours);
            neighbours.retain(|&doc| is_new(doc));
            cosines.resize(neighbours.len(), 0.0);
            scorer.score(&neighbours, &mut cosines);
            for near in scored(&neighbours, &cosines) {
                if kept.len() < ef {
                    kept.push(Reverse(near));
                    open.push(near);
                } else if kept.peek().is_some_and(|worst| near.cosine > worst.0.cosine) {
                    kept.pop();
                    kept.push(Reverse(near));
                    open.push(near);
                }
            }
        }
        kept
    }

    /// Reads the neighbours of a point. Stops at damage.
    fn neighbours_of(&self, point: u32, list: &mut Vec<u32>) {
        list.clear();
        let start = point
            .checked_sub(1)
            .map_or(Some(0), |before| number_at(&self.ends, before as usize));
        let end = number_at(&self.ends, point as usize);
        let range = start.zip(end).map(|(start, end)| start as usize..end as usize);
        let mut bytes = range.and_then(|range| self.neighbours.get(range)).unwrap_or_default();
        let mut last = 0u32;
        while let Some(step) = varint::take_u32(&mut bytes) {
            last = last.wrapping_add(step);
            list.push(last);
        }
    }

    /// Returns the documents with the same vector as a point.
    fn same_as(&self, point: u32) -> impl Iterator<Item = u32> + '_ {
        let n_pairs = self.same.len() / 8;
        let first = |pair: usize| number_at(&self.same, pair * 2).unwrap_or_default();
        let (mut low, mut high) = (0, n_pairs);
        while low < high {
            let middle = low + (high - low) / 2;
            if first(middle) < point {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (low..n_pairs)
            .take_while(move |&pair| first(pair) == point)
            .filter_map(|pair| number_at(&self.same, pair * 2 + 1))
    }
}

/// A document with its cosine, ordered by cosine.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Scored {
    cosine: f32,
    doc: u32,
}

impl Eq for Scored {}

impl Ord for Scored {
    fn cmp(&self, other: &Self) -> Ordering {
        self.cosine.total_cmp(&other.cosine).then(other.doc.cmp(&self.doc))
    }
}

impl PartialOrd for Scored {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn scored<'a>(docs: &'a [u32], cosines: &'a [f32]) -> impl Iterator<Item = Scored> + 'a {
    let pairs = docs.iter().zip(cosines);
    pairs.map(|(&doc, &cosine)| Scored { cosine, doc })
}

fn number_at(raw: &[u8], at: usize) -> Option<u32> {
    let start = at.checked_mul(4)?;
    let raw = raw.get(start..start.checked_add(4)?)?;
    Some(u32::from_le_bytes(raw.try_into().ok()?))
}

fn numbers(raw: &[u8]) -> impl Iterator<Item = u32> + '_ {
    raw.as_chunks::<4>().0.iter().map(|raw| u32::from_le_bytes(*raw))
}
