//! The open segments of a sidecar. Finds blobs and documents by number or key.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use blake3::Hasher;

use crate::artifact::{ArtifactFile, ArtifactKey};
use crate::embed::ProfileId;
use crate::extract::Extraction;
use crate::model::{ChunkKey, explain_by};
use crate::sidecar::{Bytes, FileError, SegmentEntry, Sidecar, State};

use super::build::SegmentData;
use super::dense::{GraphFile, VectorFile};
use super::lexical::{DocMeta, LexicalError, LexicalSegment};
use super::rows::RowFile;
use super::sparse::SparseFile;

/// An open segment, which contains the index of a batch of blobs.
#[derive(Clone, Debug)]
pub struct Segment {
    /// The number of the segment's first blob.
    pub base_blob: u32,
    /// The number of the segment's first document.
    pub base_doc: u32,
    /// The artifacts of the blobs.
    pub artifacts: ArtifactFile,
    /// The lexical index of the documents.
    pub lexical: LexicalSegment,
    /// The vectors of the built-in model; `None` if the segment has none.
    pub vectors: Option<VectorFile>,
    /// Dense vectors of an external embedding profile. `None` if no such profile is in use or no vectors exist yet. A
    /// row with weight 0 is a placeholder.
    pub added: Option<VectorFile>,
    /// Sparse vectors. `None` if they are not in use or none exist yet.
    pub sparse: Option<SparseFile>,
    /// True if the segment exists only in the memory of this process.
    pub is_in_memory: bool,
    /// For each document number in the artifacts, the number in [`Segments::joined`] indexes. `None` if they are equal.
    numbers: Option<Arc<[u32]>>,
}

/// The segments of an index, ordered by number. Immutable and cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Segments {
    list: Arc<Vec<Arc<Segment>>>,
    epoch: [u8; 16],
    graphs: Arc<Vec<GraphFile>>,
}

/// An error from opening a segment.
#[derive(Debug, thiserror::Error)]
pub enum SegmentError {
    /// A file is unreadable.
    #[error(transparent)]
    File(#[from] FileError),
    /// The lexical index is unreadable.
    #[error(transparent)]
    Lexical(#[from] LexicalError),
    /// The parts of a segment do not match one another.
    #[error("segment {base_blob}+{base_doc}: {what}")]
    Inconsistent {
        /// The number of the segment's first blob.
        base_blob: u32,
        /// The number of the segment's first document.
        base_doc: u32,
        /// The mismatch between the parts.
        what: &'static str,
    },
}

explain_by!(SegmentError: File, Lexical);

impl SegmentError {
    /// Returns true if a file does not exist. A writer can replace and remove files after the state was read.
    pub fn is_gone(&self) -> bool {
        match self {
            Self::File(error) | Self::Lexical(LexicalError::File(error)) => error.is_gone(),
            Self::Lexical(LexicalError::Tantivy(_)) | Self::Inconsistent { .. } => false,
        }
    }
}

impl Segment {
    /// Opens the files of a published segment, including its vectors of `profile` if they exist.
    pub fn open(sidecar: &Sidecar, entry: &SegmentEntry, profile: &str) -> Result<Self, SegmentError> {
        let artifacts = ArtifactFile::open(sidecar, &entry.artifacts.name)?;
        let lexical = LexicalSegment::open(sidecar, &entry.lexical.name)?;
        let vectors = entry
            .vectors
            .iter()
            .find(|vectors| vectors.profile == profile)
            .map(|vectors| VectorFile::open(sidecar, &vectors.file.name))
            .transpose()?;
        let segment = Self {
            base_blob: entry.base_blob,
            base_doc: entry.base_doc,
            artifacts,
            lexical,
            vectors,
            added: None,
            sparse: None,
            is_in_memory: false,
            numbers: None,
        };
        segment.check(entry.n_blobs, entry.n_docs)?;
        Ok(segment)
    }

    /// Opens a segment in memory.
    pub fn from_data(data: SegmentData) -> Result<Self, SegmentError> {
        let numbers = (data.n_blobs, data.n_docs);
        let files = [data.artifacts, data.lexical, data.vectors].map(Bytes::from_vec);
        let segment = Self::from_files((data.base_blob, data.base_doc), files)?;
        segment.check(numbers.0, numbers.1)?;
        Ok(segment)
    }

    /// Opens a segment from the contents of its artifact, lexical and vector file. `first` contains the numbers of its
    /// first blob and its first document.
    pub fn from_files(first: (u32, u32), [artifacts, lexical, vectors]: [Bytes; 3]) -> Result<Self, SegmentError> {
        let name = Path::new("segment in memory");
        let segment = Self {
            base_blob: first.0,
            base_doc: first.1,
            artifacts: ArtifactFile::from_bytes(name, artifacts)?,
            lexical: LexicalSegment::from_bytes(name, lexical)?,
            vectors: Some(VectorFile::from_bytes(name, vectors)?),
            added: None,
            sparse: None,
            is_in_memory: true,
            numbers: None,
        };
        segment.check(segment.artifacts.n_blobs(), segment.lexical.n_docs())?;
        Ok(segment)
    }

    /// Returns the document numbers of a blob's chunks, in order.
    pub fn docs(&self, blob: u32) -> impl Iterator<Item = u32> + '_ {
        let number = |doc: u32| match &self.numbers {
            Some(numbers) => numbers.get(doc as usize).copied().unwrap_or(u32::MAX),
            None => doc,
        };
        self.artifacts.docs(blob).map(number)
    }

    /// Returns the rows of `profile` if [`Segments::with_added`] has opened them.
    pub fn rows(&self, profile: ProfileId) -> Option<RowFile> {
        let dense = self.added.clone().map(RowFile::Dense);
        let sparse = self.sparse.clone().map(RowFile::Sparse);
        dense.into_iter().chain(sparse).find(|rows| rows.profile() == profile)
    }

    /// Returns the total size of the segment's files in bytes.
    pub fn n_bytes(&self) -> usize {
        let vectors = self.vectors.as_ref().map_or(0, VectorFile::n_bytes);
        (self.artifacts.n_bytes() + self.lexical.n_bytes() + vectors) as usize
    }

    /// Verifies every byte of the segment and checks that its parts match one another.
    pub fn verify(&self) -> Result<(), SegmentError> {
        self.lexical.verify()?;
        // A document of an earlier segment is not checked.
        let n_bytes = |doc: u32| {
            let local = doc
                .checked_sub(self.base_doc)
                .filter(|local| *local < self.lexical.n_docs())?;
            Some(self.lexical.meta(local).n_bytes as usize)
        };
        self.artifacts
            .verify_each(|doc, length| n_bytes(doc).is_none_or(|n_bytes| n_bytes == length))?;
        if let Some(vectors) = &self.vectors {
            vectors.verify()?;
        }
        let inconsistent = |what| SegmentError::Inconsistent {
            base_blob: self.base_blob,
            base_doc: self.base_doc,
            what,
        };
        if self.lexical.n_signatures() != self.artifacts.n_blobs() {
            return Err(inconsistent("number of signatures differs"));
        }
        let mut is_named = vec![false; self.lexical.n_docs() as usize];
        for doc in (0..self.artifacts.n_blobs()).flat_map(|blob| self.artifacts.docs(blob)) {
            // Blobs may refer to documents of earlier segments, but never to documents of later ones.
            if let Some(local) = doc.checked_sub(self.base_doc) {
                *is_named
                    .get_mut(local as usize)
                    .ok_or_else(|| inconsistent("document of a later segment"))? = true;
            }
        }
        if is_named.iter().all(|&is_named| is_named) {
            Ok(())
        } else {
            Err(inconsistent("document without a blob"))
        }
    }

    fn check(&self, n_blobs: u32, n_docs: u32) -> Result<(), SegmentError> {
        let inconsistent = |what| SegmentError::Inconsistent {
            base_blob: self.base_blob,
            base_doc: self.base_doc,
            what,
        };
        if self.artifacts.n_blobs() != n_blobs {
            return Err(inconsistent("number of blobs differs"));
        }
        if self.lexical.n_docs() != n_docs {
            return Err(inconsistent("number of documents differs"));
        }
        match &self.vectors {
            Some(vectors) if vectors.len() != n_docs => Err(inconsistent("number of vectors differs")),
            _ => Ok(()),
        }
    }
}

/// Opens the graph of a profile's vectors. Logs and ignores a file that cannot be read, because searches work without.
fn graph_of(sidecar: &Sidecar, state: &State, profile: &str) -> Option<GraphFile> {
    let mut entries = state.graphs.iter().filter(|graph| graph.epoch == state.epoch);
    let entry = entries.find(|graph| graph.profile == profile)?;
    match GraphFile::open(sidecar, &entry.file.name) {
        Ok(graph) if graph.n_docs() == entry.n_docs && graph.profile().to_string() == profile => Some(graph),
        Ok(_) => {
            tracing::warn!(
                name = entry.file.name,
                "all vectors are compared, because the graph is of others"
            );
            None
        }
        Err(error) => {
            tracing::warn!(
                "all vectors are compared, because their graph cannot be used: {error}; run codescout verify --repair"
            );
            None
        }
    }
}

impl Segments {
    /// Opens the segments of `state`.
    pub fn open(sidecar: &Sidecar, state: &State, profile: &str) -> Result<Self, SegmentError> {
        let list = state
            .segments
            .iter()
            .map(|entry| Segment::open(sidecar, entry, profile).map(Arc::new))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            list: Arc::new(list),
            epoch: state.epoch,
            graphs: Arc::new(graph_of(sidecar, state, profile).into_iter().collect()),
        })
    }

    /// Opens the segments of `state`. If a writer has removed some of their files meanwhile, opens the segments of the
    /// newest state instead. Does not try again.
    ///
    /// A newer state of the same epoch and recipe has the same numbers and possibly more. If the newest state has
    /// another epoch or recipe, returns the first error.
    pub fn open_newest(sidecar: &Sidecar, state: &State, profile: &str) -> Result<Self, SegmentError> {
        let gone = match Self::open(sidecar, state, profile) {
            Err(error) if error.is_gone() => error,
            opened => return opened,
        };
        match sidecar.state() {
            Ok(Some(newest)) if (newest.epoch, newest.recipe) == (state.epoch, state.recipe) => {
                Self::open(sidecar, &newest, profile)
            }
            _ => Err(gone),
        }
    }

    /// Opens the segments of `state`, a later state of the same epoch. Does not reopen segments that are already open.
    pub fn reopen(&self, sidecar: &Sidecar, state: &State, profile: &str) -> Result<Self, SegmentError> {
        let opened = |entry: &SegmentEntry| match self.same_as(entry) {
            Some(segment) => Ok(Arc::clone(segment)),
            None => Segment::open(sidecar, entry, profile).map(Arc::new),
        };
        let list = state.segments.iter().map(opened).collect::<Result<_, _>>()?;
        Ok(Self {
            list: Arc::new(list),
            epoch: state.epoch,
            graphs: Arc::new(graph_of(sidecar, state, profile).into_iter().collect()),
        })
    }

    /// Returns these segments with the rows of one more profile, if `state` lists any. `state` must have the same
    /// epoch.
    ///
    /// Logs and ignores files that cannot be read: their rows can be computed again, and searches work without them.
    pub fn with_added(&self, sidecar: &Sidecar, state: &State, profile: &str) -> Self {
        let mut list = (*self.list).clone();
        for entry in &state.segments {
            let Some(file) = entry.vectors.iter().find(|vectors| vectors.profile == profile) else {
                continue;
            };
            let Some(segment) = self.position_of(entry).map(|at| &mut list[at]) else {
                continue;
            };
            match RowFile::open(sidecar, &file.file.name) {
                Ok(rows) if rows.len() == entry.n_docs => {
                    let segment = Arc::make_mut(segment);
                    match rows {
                        RowFile::Dense(vectors) => segment.added = Some(vectors),
                        RowFile::Sparse(vectors) => segment.sparse = Some(vectors),
                    }
                }
                Ok(_) => tracing::warn!(name = file.file.name, "ignoring vectors: wrong number of rows"),
                Err(error) => tracing::warn!(name = file.file.name, %error, "ignoring vectors"),
            }
        }
        let mut graphs = (*self.graphs).clone();
        graphs.extend(graph_of(sidecar, state, profile));
        Self {
            list: Arc::new(list),
            epoch: self.epoch,
            graphs: Arc::new(graphs),
        }
    }

    /// Returns the open segment with the numbers of `entry`. Within an epoch, equal numbers mean the same segment.
    fn same_as(&self, entry: &SegmentEntry) -> Option<&Arc<Segment>> {
        Some(&self.list[self.position_of(entry)?])
    }

    fn position_of(&self, entry: &SegmentEntry) -> Option<usize> {
        let at = self
            .list
            .partition_point(|segment| (segment.base_blob, segment.base_doc) < (entry.base_blob, entry.base_doc));
        let numbers = (entry.base_blob, entry.n_blobs, entry.base_doc, entry.n_docs);
        let is_same = self.list.get(at).is_some_and(|segment| {
            let (n_blobs, n_docs) = (segment.artifacts.n_blobs(), segment.lexical.n_docs());
            (segment.base_blob, n_blobs, segment.base_doc, n_docs) == numbers
        });
        is_same.then_some(at)
    }

    /// Returns true if the document has a dense vector of the profile that [`Self::with_added`] opened.
    pub fn has_added(&self, doc: u32) -> bool {
        let weight = |(segment, local): (&Segment, u32)| segment.added.as_ref().map(|added| added.weight(local));
        self.of_doc(doc).and_then(weight).is_some_and(|weight| weight > 0.0)
    }

    /// Returns true if the document has a sparse vector.
    pub fn has_sparse(&self, doc: u32) -> bool {
        let has = |(segment, local): (&Segment, u32)| segment.sparse.as_ref().map(|sparse| sparse.has(local));
        self.of_doc(doc).and_then(has).unwrap_or(false)
    }

    /// Returns these segments with one more segment, whose numbers must follow.
    pub fn with(&self, segment: Segment) -> Self {
        debug_assert_eq!((segment.base_blob, segment.base_doc), (self.n_blobs(), self.n_docs()));
        let mut list = (*self.list).clone();
        list.push(Arc::new(segment));
        Self {
            list: Arc::new(list),
            epoch: self.epoch,
            graphs: Arc::clone(&self.graphs),
        }
    }

    /// Joins the indexes of several repositories. The numbers of each follow those of the ones before it. A document that
    /// several of them contain has the number that it has in the first of these, if it is live there, which the functions
    /// tell.
    pub fn joined(parts: &[(&Self, &dyn Fn(u32) -> bool)]) -> Self {
        let (mut known, mut epochs) = (HashMap::new(), Hasher::new());
        let mut joined = Self::default();
        for (part, is_live) in parts {
            let (base_blob, base_doc) = (joined.n_blobs(), joined.n_docs());
            let mut numbers = Vec::with_capacity(part.n_docs() as usize);
            for segment in part.iter() {
                for local in 0..segment.lexical.n_docs() {
                    let doc = base_doc + segment.base_doc + local;
                    numbers.push(if is_live(segment.base_doc + local) {
                        *known.entry(segment.lexical.key(local)).or_insert(doc)
                    } else {
                        doc
                    });
                }
            }
            let numbers: Arc<[u32]> = numbers.into();
            let moved = part.iter().map(|segment| Segment {
                base_blob: base_blob + segment.base_blob,
                base_doc: base_doc + segment.base_doc,
                numbers: Some(Arc::clone(&numbers)),
                ..segment.clone()
            });
            Arc::make_mut(&mut joined.list).extend(moved.map(Arc::new));
            epochs.update(&part.epoch);
        }
        joined.epoch.copy_from_slice(&epochs.finalize().as_bytes()[..16]);
        joined
    }

    /// Returns the first `n` segments.
    pub fn first(&self, n: usize) -> Self {
        Self {
            list: Arc::new(self.list.iter().take(n).cloned().collect()),
            epoch: self.epoch,
            graphs: Arc::clone(&self.graphs),
        }
    }

    /// Returns the graph of the vectors of a profile, if there is one.
    pub fn graph(&self, profile: ProfileId) -> Option<GraphFile> {
        self.graphs.iter().find(|graph| graph.profile() == profile).cloned()
    }

    /// Returns the total size of the segments that exist only in the memory of this process, in bytes.
    pub fn n_bytes_in_memory(&self) -> usize {
        let in_memory = self.list.iter().filter(|segment| segment.is_in_memory);
        in_memory.map(|segment| segment.n_bytes()).sum()
    }

    /// Returns the segments in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &Segment> {
        self.list.iter().map(Arc::as_ref)
    }

    /// Returns the epoch of the numbers. It is all zeros if nothing is stored.
    pub fn epoch(&self) -> [u8; 16] {
        self.epoch
    }

    /// Returns the number of blobs.
    pub fn n_blobs(&self) -> u32 {
        self.list
            .last()
            .map_or(0, |last| last.base_blob + last.artifacts.n_blobs())
    }

    /// Returns the number of documents.
    pub fn n_docs(&self) -> u32 {
        self.list.last().map_or(0, |last| last.base_doc + last.lexical.n_docs())
    }

    /// Returns the number of the blob with this key.
    pub fn find_blob(&self, key: ArtifactKey) -> Option<u32> {
        // Start with the newest segment, because blobs of small updates are looked up most.
        self.list
            .iter()
            .rev()
            .find_map(|segment| Some(segment.base_blob + segment.artifacts.find(key)?))
    }

    /// Returns the number of the document with this key.
    pub fn find_doc(&self, key: ChunkKey) -> Option<u32> {
        self.list
            .iter()
            .rev()
            .find_map(|segment| Some(segment.base_doc + segment.lexical.find(key)?))
    }

    /// Returns the segment that contains a blob, and the number of the blob in the segment.
    pub fn of_blob(&self, blob: u32) -> Option<(&Segment, u32)> {
        let after = self.list.partition_point(|segment| segment.base_blob <= blob);
        let segment = self.list.get(after.checked_sub(1)?)?;
        let local = blob - segment.base_blob;
        (local < segment.artifacts.n_blobs()).then_some((segment, local))
    }

    /// Returns the segment that contains a document, and the number of the document in the segment.
    pub fn of_doc(&self, doc: u32) -> Option<(&Segment, u32)> {
        let after = self.list.partition_point(|segment| segment.base_doc <= doc);
        let segment = self.list.get(after.checked_sub(1)?)?;
        let local = doc - segment.base_doc;
        (local < segment.lexical.n_docs()).then_some((segment, local))
    }

    /// Returns the metadata of a document. Returns `None` if the number is not assigned.
    pub fn doc_meta(&self, doc: u32) -> Option<DocMeta> {
        let (segment, local) = self.of_doc(doc)?;
        Some(segment.lexical.meta(local))
    }

    /// Reads the extraction of a blob, without the references. Returns `None` if the number is not assigned.
    pub fn extraction(&self, blob: u32) -> Option<Result<Extraction, FileError>> {
        let (segment, local) = self.of_blob(blob)?;
        Some(segment.artifacts.extraction(local))
    }
}
