//! Computes the points of a view: one for each chunk and each file.

use std::collections::HashMap;

use serde_json::json;

use super::record::KnownPoints;
use crate::extract::language;
use crate::index::lexical::bm25::Params;
use crate::index::lexical::{LexicalError, for_each_term, normal_name};
use crate::model::{Lang, with_placeholders};
use crate::query::{Count, Statistics, term_number};
use crate::remote::{Point, PointId, PointVector, Words};
use crate::snapshot::{FileId, View};

/// How words of a file are weighted. The mean length is fixed, so that a file's weights depend on the file alone.
const FILE: Params = Params { k1: 1.2, b: 0.6 };
const MEAN_FILE_TOKENS: f32 = 1_000.0;
/// Weight of a word in the name of a definition, as in the ranking.
const NAME_WEIGHT: f32 = 3.0;
/// Maximum number of defined names of a file that can be found.
const MAX_NAMES: usize = 512;
/// Number of files that a chunk is in, as far as a point lists them.
pub(super) const MAX_PATHS: usize = 3;

/// What a point is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Chunk(u32),
    File(FileId),
}

/// The points of a view.
pub(super) struct Points<'v> {
    view: &'v View,
    name: String,
    groups: Vec<String>,
    /// What each point is made of, by id.
    sources: HashMap<PointId, Source>,
    /// The digest of each point.
    pub(super) known: KnownPoints,
}

fn lang_name(lang: Lang) -> &'static str {
    language(lang).map_or("", |language| language.name)
}

/// Returns the id of a point of a repository.
fn id(name: &str, kind: &str, key: &[u8]) -> PointId {
    let mut hasher = blake3::Hasher::new_derive_key("codescout fleet point");
    for part in [name.as_bytes(), kind.as_bytes(), key] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let hash = hasher.finalize();
    std::array::from_fn(|at| hash.as_bytes()[at])
}

/// Returns the id of the point of the repository itself.
pub(super) fn id_of_repository(name: &str) -> PointId {
    id(name, "repository", &[])
}

/// Returns the point of the repository itself, which shows at which commit the others are.
pub(super) fn point_of_repository(name: &str, commit: &str) -> Point {
    Point {
        id: id_of_repository(name),
        vector: PointVector::None,
        payload: json!({ "repository": name, "commit": commit }),
    }
}

fn digest(parts: &[&[u8]]) -> u64 {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let hash = hasher.finalize();
    // 0 means unknown content.
    u64::from_le_bytes(std::array::from_fn(|at| hash.as_bytes()[at])).max(1)
}

impl<'v> Points<'v> {
    /// Lists the points of a view without computing their content.
    pub(super) fn of(view: &'v View, name: &str, groups: Vec<String>) -> Self {
        let mut points = Self {
            view,
            name: name.to_owned(),
            groups,
            sources: HashMap::new(),
            known: KnownPoints::new(),
        };
        let groups = points.groups.join(",");
        for (file, entry) in view.files().filter(|(_, entry)| entry.blob.is_some()) {
            let blob = entry.entry().oid;
            let lang = lang_name(view.lang(file));
            let digest = digest(&[blob.as_bytes(), lang.as_bytes(), groups.as_bytes()]);
            points.add(id(name, "file", entry.path), Source::File(file), digest);
        }
        for doc in view.live().to_bitmap() {
            let Some((segment, local)) = view.segments().of_doc(doc) else {
                continue;
            };
            if segment
                .vectors
                .as_ref()
                .is_some_and(|vectors| vectors.has_vector(local))
            {
                let paths = points.paths(doc).join("\n");
                let digest = digest(&[paths.as_bytes(), groups.as_bytes()]);
                points.add(
                    id(name, "chunk", &segment.lexical.key(local).0),
                    Source::Chunk(doc),
                    digest,
                );
            }
        }
        points
    }

    fn add(&mut self, id: PointId, source: Source, digest: u64) {
        self.sources.insert(id, source);
        self.known.insert(id, digest);
    }

    /// Returns the number of files and of chunks.
    pub(super) fn counts(&self) -> (u32, u32) {
        let n_files = self
            .sources
            .values()
            .filter(|source| matches!(source, Source::File(_)))
            .count();
        (n_files as u32, (self.sources.len() - n_files) as u32)
    }

    fn paths(&self, doc: u32) -> Vec<String> {
        let mut files: Vec<FileId> = self.view.places(doc).iter().map(|place| place.file).collect();
        files.dedup();
        let path = |file: &FileId| with_placeholders(self.view.file(*file).path).into_owned();
        files.iter().take(MAX_PATHS).map(path).collect()
    }

    /// Sorts ids so that those of files come first.
    pub(super) fn sort(&self, ids: &mut [PointId]) {
        ids.sort_by_key(|id| matches!(self.sources.get(id), Some(Source::Chunk(_))));
    }

    /// Computes the points with these ids.
    pub(super) fn made(&self, wanted: &[PointId]) -> Result<Vec<Point>, LexicalError> {
        let (mut files, mut made) = (Vec::new(), Vec::new());
        for id in wanted {
            match self.sources.get(id) {
                Some(Source::File(file)) => files.push((*id, *file)),
                Some(Source::Chunk(doc)) => made.extend(self.point_of_chunk(*id, *doc)),
                None => {}
            }
        }
        if !files.is_empty() {
            let words = self.words(files.iter().map(|(_, file)| *file))?;
            let of_file = files.iter().zip(words);
            made.extend(of_file.map(|((id, file), words)| self.point_of_file(*id, *file, words)));
        }
        Ok(made)
    }

    fn point_of_chunk(&self, id: PointId, doc: u32) -> Option<Point> {
        let (segment, local) = self.view.segments().of_doc(doc)?;
        let payload = json!({
            "repository": self.name,
            "group": self.groups,
            "path": self.paths(doc),
            "lang": lang_name(self.view.lang(self.view.places(doc).first()?.file)),
        });
        Some(Point {
            id,
            vector: PointVector::Meaning(segment.vectors.as_ref()?.vector(local)?),
            payload,
        })
    }

    fn point_of_file(&self, id: PointId, file: FileId, words: Words) -> Point {
        let path = with_placeholders(self.view.file(file).path);
        let extraction = self.view.extraction(file).and_then(Result::ok).unwrap_or_default();
        let mut names: Vec<String> = extraction
            .definitions
            .iter()
            .map(|definition| normal_name(&definition.name))
            .collect();
        names.sort_unstable();
        names.dedup();
        names.truncate(MAX_NAMES);
        let payload = json!({
            "repository": self.name,
            "group": self.groups,
            "path": [path],
            "lang": lang_name(self.view.lang(file)),
            "names": names,
        });
        Point {
            id,
            vector: PointVector::Words(words),
            payload,
        }
    }

    /// Returns the weighted words of files.
    fn words(&self, files: impl Iterator<Item = FileId>) -> Result<Vec<Words>, LexicalError> {
        let files: Vec<FileId> = files.collect();
        let position: HashMap<FileId, usize> = files.iter().enumerate().map(|(at, file)| (*file, at)).collect();
        let mut words: Vec<Words> = vec![Words::new(); files.len()];
        for segment in self.view.segments().iter() {
            segment.lexical.for_each_term(|term, postings| {
                let number = term_number(term);
                for posting in postings {
                    let frequency = posting.in_body as f32 + NAME_WEIGHT * posting.in_name as f32;
                    for place in self.view.places(segment.base_doc + posting.doc) {
                        if let Some(&at) = position.get(&place.file) {
                            words[at].push((number, frequency));
                        }
                    }
                }
            })?;
        }
        for (file, words) in files.iter().zip(&mut words) {
            let path = with_placeholders(self.view.file(*file).path);
            for_each_term(&path, |term| words.push((term_number(term), 1.0)));
            words.sort_by_key(|(term, _)| *term);
            words.dedup_by(|next, first| {
                let is_same = next.0 == first.0;
                if is_same {
                    first.1 += next.1;
                }
                is_same
            });
            let length = self.view.n_tokens(*file) as f32;
            for (_, weight) in words.iter_mut() {
                *weight = FILE.saturate(*weight, length, MEAN_FILE_TOKENS);
            }
        }
        Ok(words)
    }

    /// Counts the documents and files with each term.
    pub(super) fn statistics(&self) -> Result<Statistics, LexicalError> {
        let mut counts = Vec::new();
        let mut files = Vec::new();
        for segment in self.view.segments().iter() {
            segment.lexical.for_each_term(|term, postings| {
                files.clear();
                let mut n_docs = 0;
                for posting in postings {
                    let places = self.view.places(segment.base_doc + posting.doc);
                    n_docs += u32::from(!places.is_empty());
                    files.extend(places.iter().map(|place| place.file));
                }
                files.sort_unstable();
                files.dedup();
                if n_docs > 0 {
                    counts.push(Count {
                        term: term_number(term),
                        n_docs,
                        n_files: files.len() as u32,
                    });
                }
            })?;
        }
        let live = self.view.live();
        Ok(Statistics::new(
            live.n_docs.into(),
            self.view.n_files().into(),
            live.n_tokens,
            counts,
        ))
    }
}
