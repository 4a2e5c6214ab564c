//! An open snapshot, optionally with uncommitted changes: its files, its documents and the places where each document
//! occurs.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use blake3::Hasher;
use roaring::RoaringBitmap;

use crate::artifact::SkipReason;
use crate::extract::Extraction;
use crate::git::{BlobContent, ObjectError, ObjectReader};
use crate::index::Segments;
use crate::model::{BlobId, CommitId, Lang, TreeId, without_placeholders};
use crate::sidecar::FileError;

use super::joined::{Linked, linked_folder};
use super::manifest::{FileEntry, FileStatus, Manifest, ManifestWriter};
use super::recent::RecentBlobs;

/// The number of a file in a view, from 0 in path order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// The origin of a view, and notes about its limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The root of the repository: its worktree, or the git directory if it is bare.
    pub repo: PathBuf,
    /// The requested revision: `WORKTREE`, `INDEX` or a revision as typed.
    pub reference: String,
    /// The commit; `None` before the first commit.
    pub commit: Option<CommitId>,
    /// The tree of the commit.
    pub tree: Option<TreeId>,
    /// Number of files that differ from the tree.
    pub n_dirty_files: u32,
    /// The id of the embedding profile whose vectors are used.
    pub profile: String,
    /// Reasons why search results are incomplete. Empty if they are complete.
    pub incomplete: Vec<String>,
}

impl Provenance {
    /// Returns true for a tree that was named without a commit.
    pub(crate) fn is_tree(&self) -> bool {
        self.commit.is_none() && !matches!(self.reference.as_str(), "WORKTREE" | "INDEX")
    }
}

/// Counts of searched and skipped files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Number of files.
    pub n_files: u32,
    /// Number of files whose content is searched.
    pub n_indexed: u32,
    /// Number of skipped files for each reason.
    pub skipped: BTreeMap<SkipReason, u32>,
}

/// A file and a chunk of it. The same document can occur in several places of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The file.
    pub file: FileId,
    /// The index of the chunk in the file's blob.
    pub chunk: u32,
}

/// The set of documents in a view.
#[derive(Clone, Debug, Default)]
pub struct LiveDocs {
    bits: Vec<u64>,
    /// Number of documents.
    pub n_docs: u32,
    /// Total number of words in the documents.
    pub n_tokens: u64,
}

impl LiveDocs {
    /// Returns true if the document is in the view.
    pub fn contains(&self, doc: u32) -> bool {
        self.bits
            .get(doc as usize / 64)
            .is_some_and(|word| word & (1 << (doc % 64)) != 0)
    }

    /// Returns the document numbers as a bitmap.
    pub fn to_bitmap(&self) -> RoaringBitmap {
        let bytes: Vec<u8> = self.bits.iter().flat_map(|word| word.to_le_bytes()).collect();
        RoaringBitmap::from_lsb0_bytes(0, &bytes)
    }

    fn with_capacity(n_docs: u32) -> Self {
        Self {
            bits: vec![0; (n_docs as usize).div_ceil(64)],
            ..Self::default()
        }
    }

    /// Adds a document. Returns true if the set did not contain it.
    fn insert(&mut self, doc: u32, n_tokens: u32) -> bool {
        let Some(word) = self.bits.get_mut(doc as usize / 64) else {
            return false;
        };
        let bit = 1 << (doc % 64);
        if *word & bit != 0 {
            return false;
        }
        *word |= bit;
        self.n_docs += 1;
        self.n_tokens += u64::from(n_tokens);
        true
    }
}

/// What ranking needs to know of each document in a view, in one place, because documents are looked up at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DocEntry {
    /// Number of words in the document.
    pub n_tokens: u32,
    file: u32,
}

impl DocEntry {
    const NOT_IN_VIEW: u32 = u32::MAX;
    const IN_SEVERAL: u32 = u32::MAX - 1;

    /// Returns the only place's file. Returns `None` if there are several places.
    pub fn only_file(self) -> Option<FileId> {
        (self.file != Self::IN_SEVERAL).then_some(FileId(self.file))
    }
}

/// Selects the documents of a view over the files of many commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Documents {
    /// All documents of the files.
    All,
    /// Only the documents that are not in the original view.
    Gone,
}

/// A file of a view, by reference.
#[derive(Clone, Copy, Debug)]
pub struct ViewFile<'a> {
    /// Path from the root of the tree.
    pub path: &'a [u8],
    /// The number of the file's blob, or `None` if the file is skipped.
    pub blob: Option<u32>,
    manifest: &'a Manifest,
    index: u32,
}

impl ViewFile<'_> {
    /// Returns the manifest entry of the file.
    pub fn entry(&self) -> FileEntry {
        self.manifest.entry(self.index)
    }
}

/// An immutable, consistent view of one state of the repository. Holds its segments and manifests open.
#[derive(Clone, Debug)]
pub struct View {
    pub(super) provenance: Provenance,
    segments: Segments,
    layers: Vec<Manifest>,
    files: Vec<FileRef>,
    live: LiveDocs,
    docs: Vec<DocEntry>,
    places: Places,
    n_file_tokens: Vec<u32>,
    pub(super) unsaved: Arc<HashMap<BlobId, Vec<u8>>>,
    recent: Arc<RecentBlobs>,
    pub(super) n_withheld: u32,
    pub(super) linked: Arc<[Linked]>,
    /// For each file, its position by path in its repository. Empty if that is its number.
    pub(super) positions: Arc<[u32]>,
    coverage: OnceLock<Coverage>,
}

#[derive(Clone, Copy, Debug)]
struct FileRef {
    layer: u8,
    index: u32,
}

impl View {
    /// Creates a view by applying each manifest in `layers` on top of the previous ones. `unsaved` contains the
    /// contents of blobs that git does not have.
    pub fn new(
        provenance: Provenance,
        segments: Segments,
        layers: Vec<Manifest>,
        unsaved: HashMap<BlobId, Vec<u8>>,
    ) -> Self {
        let mut files = Vec::new();
        for (number, layer) in layers.iter().enumerate() {
            files = lay_over(&layers, files, layer, number as u8);
        }
        let mut view = Self {
            provenance,
            live: LiveDocs::default(),
            docs: Vec::new(),
            places: Places::default(),
            n_file_tokens: Vec::new(),
            segments,
            layers,
            files,
            unsaved: Arc::new(unsaved),
            recent: Arc::default(),
            n_withheld: 0,
            linked: Arc::default(),
            positions: Arc::default(),
            coverage: OnceLock::new(),
        };
        view.number_documents(|_| true);
        view
    }

    /// Creates a view of other files, for example those of many commits, with the same segments. `files` must be in
    /// path order. A path may occur several times with different blobs. With [`Documents::Gone`], the new view has only
    /// the documents that are not in this view.
    pub fn with_files(&self, files: &[FileEntry], documents: Documents) -> Result<Self, FileError> {
        let mut view = self.listing(files, self.segments.clone())?;
        view.number_documents(|doc| documents == Documents::All || !self.live.contains(doc));
        Ok(view)
    }

    /// Creates a view of other files and segments whose documents are not numbered yet.
    pub(super) fn listing(&self, files: &[FileEntry], segments: Segments) -> Result<Self, FileError> {
        let mut writer = ManifestWriter::new([0; 16], self.layers.first().map_or(0, Manifest::recipe), None);
        files.iter().for_each(|file| writer.push(file));
        let manifest = Manifest::from_bytes(Path::new("files in memory"), writer.finish())?;
        Ok(Self {
            provenance: self.provenance.clone(),
            live: LiveDocs::default(),
            docs: Vec::new(),
            places: Places::default(),
            n_file_tokens: Vec::new(),
            segments,
            files: (0..manifest.n_files())
                .map(|index| FileRef { layer: 0, index })
                .collect(),
            layers: vec![manifest],
            unsaved: Arc::clone(&self.unsaved),
            recent: Arc::clone(&self.recent),
            n_withheld: 0,
            linked: Arc::default(),
            positions: Arc::default(),
            coverage: OnceLock::new(),
        })
    }

    /// Returns a view with another manifest on top. `segments` are those of this view and further ones, and `unsaved`
    /// contains blobs that git does not have.
    pub fn with_layer(&self, segments: Segments, layer: Manifest, mut unsaved: HashMap<BlobId, Vec<u8>>) -> Self {
        unsaved.extend(self.unsaved.iter().map(|(blob, bytes)| (*blob, bytes.clone())));
        let layers = self.layers.iter().cloned().chain([layer]).collect();
        Self::new(self.provenance.clone(), segments, layers, unsaved)
    }

    /// Removes the files whose path satisfies `is_withheld`. Queries then cannot find, count or compare their contents.
    pub fn without(mut self, is_withheld: impl Fn(&[u8]) -> bool) -> Self {
        let Self { files, layers, .. } = &mut self;
        let n_files = files.len();
        files.retain(|file| !is_withheld(layers[usize::from(file.layer)].path(file.index)));
        if files.len() < n_files {
            self.n_withheld += (n_files - self.files.len()) as u32;
            self.coverage = OnceLock::new();
            self.number_documents(|_| true);
        }
        self
    }

    /// Returns the origin of the view: its repository, revision and commit.
    pub fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    /// Returns the segments. The blob and document numbers of the view refer to them.
    pub fn segments(&self) -> &Segments {
        &self.segments
    }

    /// Returns the documents of the view.
    pub fn live(&self) -> &LiveDocs {
        &self.live
    }

    /// Returns the number of files, including skipped ones.
    pub fn n_files(&self) -> u32 {
        self.files.len() as u32
    }

    /// Returns the number of files that [`Self::without`] removed.
    pub fn n_withheld(&self) -> u32 {
        self.n_withheld
    }

    /// Returns all files in path order.
    pub fn files(&self) -> impl ExactSizeIterator<Item = (FileId, ViewFile<'_>)> {
        (0..self.n_files()).map(|number| (FileId(number), self.file(FileId(number))))
    }

    /// Returns the file with this id.
    pub fn file(&self, id: FileId) -> ViewFile<'_> {
        let FileRef { layer, index } = self.files[id.0 as usize];
        let manifest = &self.layers[usize::from(layer)];
        ViewFile {
            path: manifest.path(index),
            blob: manifest.blob(index),
            manifest,
            index,
        }
    }

    /// Returns the file at `path`.
    pub fn find(&self, path: &[u8]) -> Option<FileId> {
        self.files
            .binary_search_by(|file| self.layers[usize::from(file.layer)].path(file.index).cmp(path))
            .ok()
            .map(|number| FileId(number as u32))
    }

    /// Returns true if a path begins with `folder`, which ends with a slash.
    pub fn has_below(&self, folder: &[u8]) -> bool {
        let path = |file: &FileRef| self.layers[usize::from(file.layer)].path(file.index);
        let first = self.files.partition_point(|file| path(file) < folder);
        self.files.get(first).is_some_and(|file| path(file).starts_with(folder))
    }

    /// Returns the file at a path given as text, in which placeholders replace bytes that are not UTF-8. The slash behind
    /// the name of a linked repository may be missing.
    pub fn find_text(&self, path: &str) -> Option<FileId> {
        let whole = self.linked.iter().find_map(|linked| {
            let below = path.strip_prefix(&*linked.name)?.strip_prefix(':')?;
            Some(linked_folder(&linked.name) + below.trim_start_matches('/'))
        });
        self.find(&without_placeholders(whole.as_deref().unwrap_or(path)))
    }

    /// Returns the key that orders the places of equal results: by path, as if all files were in one repository.
    pub fn order(&self, place: Place) -> (u32, u32) {
        let number = place.file.0;
        let position = self.positions.get(number as usize).copied();
        (position.unwrap_or(number), place.chunk)
    }

    /// Returns the places of a document in the [order](Self::order) of equal results. Empty if the document is not in the view.
    pub fn places(&self, doc: u32) -> &[Place] {
        self.places.of(doc)
    }

    /// Returns the document numbers of a file's chunks, in order.
    pub fn docs(&self, id: FileId) -> impl Iterator<Item = u32> + '_ {
        self.file(id)
            .blob
            .and_then(|blob| self.segments.of_blob(blob))
            .into_iter()
            .flat_map(|(segment, local)| segment.docs(local))
    }

    /// Returns what ranking needs to know of a document. Returns `None` if it is not in the view.
    #[inline]
    pub fn doc(&self, doc: u32) -> Option<DocEntry> {
        let entry = *self.docs.get(doc as usize)?;
        (entry.file != DocEntry::NOT_IN_VIEW).then_some(entry)
    }

    /// Returns the number of words in a file.
    pub fn n_tokens(&self, id: FileId) -> u32 {
        self.n_file_tokens[id.0 as usize]
    }

    /// Returns the language that a file was parsed as. For a skipped file, returns the language of its path.
    pub fn lang(&self, id: FileId) -> Lang {
        let file = self.file(id);
        file.blob
            .and_then(|blob| self.segments.of_blob(blob))
            .and_then(|(segment, local)| segment.artifacts.lang(local))
            .unwrap_or_else(|| file.entry().lang)
    }

    /// Reads the extraction of a file, without the references. Returns `None` if the file is skipped.
    pub fn extraction(&self, id: FileId) -> Option<Result<Extraction, FileError>> {
        self.segments.extraction(self.file(id).blob?)
    }

    /// Reads the content of a file from git or, if git does not have it, as it was on disk when the view was created.
    /// For a symbolic link, returns the path of the target.
    pub fn read(&self, id: FileId, reader: &mut ObjectReader, max_bytes: u64) -> Result<BlobContent, ObjectError> {
        let blob = BlobId(self.file(id).entry().oid);
        match self.unsaved.get(&blob) {
            Some(bytes) if bytes.len() as u64 > max_bytes => Ok(BlobContent::TooLarge {
                size: bytes.len() as u64,
            }),
            Some(bytes) => Ok(BlobContent::Content(bytes.clone())),
            None => {
                if let Some(bytes) = self.recent.get(blob).filter(|bytes| bytes.len() as u64 <= max_bytes) {
                    return Ok(BlobContent::Content(bytes));
                }
                let read = match self.linked_of(id) {
                    Some(linked) => linked.repository.reader().blob(blob, max_bytes)?,
                    None => reader.blob(blob, max_bytes)?,
                };
                if let BlobContent::Content(bytes) = &read {
                    self.recent.keep(blob, bytes);
                }
                Ok(read)
            }
        }
    }

    /// Returns the counts of searched and skipped files.
    pub fn coverage(&self) -> &Coverage {
        self.coverage.get_or_init(|| self.count_files())
    }

    fn count_files(&self) -> Coverage {
        let mut coverage = Coverage {
            n_files: self.n_files(),
            ..Coverage::default()
        };
        for (_, file) in self.files() {
            match file.blob {
                Some(_) => coverage.n_indexed += 1,
                None => {
                    if let FileStatus::Skipped(reason) = file.entry().status {
                        *coverage.skipped.entry(reason).or_default() += 1;
                    }
                }
            }
        }
        coverage
    }

    /// Returns a digest of all paths, modes and ids, and of the skip reasons. It depends only on the files and the
    /// recipe, so it is equal in all clones.
    pub fn digest(&self) -> [u8; 32] {
        let mut hasher = Hasher::new();
        hasher.update(b"codescout snapshot 1\0");
        hasher.update(&self.layers.first().map_or(0, Manifest::recipe).to_le_bytes());
        for (_, file) in self.files() {
            let entry = file.entry();
            let status = match entry.status {
                FileStatus::Indexed { .. } => 0,
                FileStatus::Skipped(reason) => reason as u8,
            };
            hasher.update(&(entry.path.as_bytes().len() as u32).to_le_bytes());
            hasher.update(entry.path.as_bytes());
            hasher.update(&[entry.mode as u8, status]);
            hasher.update(&entry.lang.0.to_le_bytes());
            hasher.update(entry.oid.as_bytes());
        }
        *hasher.finalize().as_bytes()
    }

    pub(super) fn number_documents(&mut self, is_wanted: impl Fn(u32) -> bool) {
        let mut pairs = Vec::new();
        self.live = LiveDocs::with_capacity(self.segments.n_docs());
        let nowhere = DocEntry {
            n_tokens: 0,
            file: DocEntry::NOT_IN_VIEW,
        };
        self.docs = vec![nowhere; self.segments.n_docs() as usize];
        self.n_file_tokens = vec![0; self.files.len()];
        for number in 0..self.n_files() {
            let file = FileId(number);
            let Some(blob) = self.file(file).blob else {
                continue;
            };
            let Some((segment, local)) = self.segments.of_blob(blob) else {
                continue;
            };
            for (chunk, doc) in segment.docs(local).enumerate().filter(|(_, doc)| is_wanted(*doc)) {
                let n_tokens = self.segments.doc_meta(doc).map_or(0, |meta| meta.n_tokens);
                let is_new = self.live.insert(doc, n_tokens);
                if let Some(entry) = self.docs.get_mut(doc as usize) {
                    entry.n_tokens = n_tokens;
                    entry.file = if is_new { number } else { DocEntry::IN_SEVERAL };
                }
                self.n_file_tokens[number as usize] += n_tokens;
                let chunk = chunk as u32;
                pairs.push((doc, Place { file, chunk }));
            }
        }
        if !self.positions.is_empty() {
            pairs.sort_by_key(|(_, place)| self.order(*place));
        }
        self.places = Places::new(&pairs, self.segments.n_docs());
    }
}

/// Applies the manifest `top`, which is layer number `layer`, to the files of the layers below it.
fn lay_over(layers: &[Manifest], below: Vec<FileRef>, top: &Manifest, layer: u8) -> Vec<FileRef> {
    let mut merged = Vec::with_capacity(below.len() + top.n_files() as usize);
    let mut added = (0..top.n_files()).peekable();
    let mut removed = (0..top.n_removed()).peekable();
    for file in below {
        let path = layers[usize::from(file.layer)].path(file.index);
        while let Some(index) = added.next_if(|&index| top.path(index) < path) {
            merged.push(FileRef { layer, index });
        }
        while removed.next_if(|&index| top.removed(index) < path).is_some() {}
        if let Some(index) = added.next_if(|&index| top.path(index) == path) {
            merged.push(FileRef { layer, index });
        } else if removed.next_if(|&index| top.removed(index) == path).is_none() {
            merged.push(file);
        }
    }
    merged.extend(added.map(|index| FileRef { layer, index }));
    merged
}

/// The places of each document. The places of document `d` are `list[starts[d]..starts[d + 1]]`.
#[derive(Clone, Debug, Default)]
struct Places {
    starts: Vec<u32>,
    list: Vec<Place>,
}

impl Places {
    /// Groups `pairs`, which are in order, by document with a counting sort.
    fn new(pairs: &[(u32, Place)], n_docs: u32) -> Self {
        let mut starts = vec![0u32; n_docs as usize + 1];
        let in_range = || pairs.iter().filter(|(doc, _)| *doc < n_docs);
        for (doc, _) in in_range() {
            starts[*doc as usize + 1] += 1;
        }
        for doc in 0..n_docs as usize {
            starts[doc + 1] += starts[doc];
        }
        let nowhere = Place {
            file: FileId(0),
            chunk: 0,
        };
        let mut next = starts.clone();
        let mut list = vec![nowhere; starts.last().map_or(0, |&end| end as usize)];
        for (doc, place) in in_range() {
            list[next[*doc as usize] as usize] = *place;
            next[*doc as usize] += 1;
        }
        Self { starts, list }
    }

    fn of(&self, doc: u32) -> &[Place] {
        match (self.starts.get(doc as usize), self.starts.get(doc as usize + 1)) {
            (Some(&start), Some(&end)) => &self.list[start as usize..end as usize],
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::git::FileMode;
    use crate::model::{Oid, RepoPath};

    fn manifest(paths: &[&str], removed: &[&str]) -> Manifest {
        let mut writer = ManifestWriter::new([0; 16], 1, None);
        for path in paths {
            writer.push(&FileEntry {
                path: RepoPath::from(*path),
                mode: FileMode::File,
                oid: Oid::from_bytes(&[paths.len() as u8; 20]).unwrap(),
                lang: Lang::TEXT,
                status: FileStatus::Skipped(SkipReason::Binary),
            });
        }
        removed.iter().for_each(|path| writer.remove(&RepoPath::from(*path)));
        Manifest::from_bytes(Path::new("sample"), writer.finish()).unwrap()
    }

    fn view(layers: Vec<Manifest>) -> View {
        let provenance = Provenance {
            repo: PathBuf::new(),
            reference: "HEAD".to_owned(),
            commit: None,
            tree: None,
            n_dirty_files: 0,
            profile: String::new(),
            incomplete: Vec::new(),
        };
        View::new(provenance, Segments::default(), layers, HashMap::new())
    }

    fn paths(view: &View) -> Vec<String> {
        view.files()
            .map(|(_, file)| String::from_utf8_lossy(file.path).into_owned())
            .collect()
    }

    #[test]
    fn top_layer_adds_replaces_and_removes() {
        let layers = vec![
            manifest(&["b", "d", "f", "h"], &[]),
            manifest(&["a", "d", "e", "z"], &["b", "c", "h"]),
        ];
        let view = view(layers);
        assert_eq!(paths(&view), ["a", "d", "e", "f", "z"]);
        assert_eq!(view.find(b"e"), Some(FileId(2)));
        assert_eq!(view.find(b"h"), None);
    }

    #[test]
    fn withheld_files_are_unknown() {
        let view = view(vec![manifest(&["a", "b", "c"], &[])]).without(|path| path == b"b");
        assert_eq!(paths(&view), ["a", "c"]);
        assert_eq!((view.find(b"b"), view.n_files(), view.n_withheld()), (None, 2, 1));
        assert_eq!(view.coverage().n_files, 2);
    }

    #[test]
    fn a_difference_and_the_whole_have_one_digest() {
        let same = |path: &str| manifest(&[path], &[]);
        let whole = view(vec![same("a")]);
        let difference = view(vec![manifest(&["b"], &[]), manifest(&["a"], &["b"])]);
        assert_eq!(whole.digest(), difference.digest());
        assert_ne!(whole.digest(), view(vec![same("c")]).digest());
    }

    #[test]
    fn places_are_found_by_document() {
        let place = |file, chunk| Place {
            file: FileId(file),
            chunk,
        };
        let places = Places::new(&[(2, place(0, 0)), (0, place(0, 1)), (2, place(1, 0))], 3);
        assert_eq!(places.of(2), [place(0, 0), place(1, 0)]);
        assert_eq!(places.of(1), []);
        assert_eq!(places.of(9), []);
    }
}
