//! Finds files that are not indexed yet and most likely match a query, by the words that they contain.
//!
//! If a query cannot wait for the index, these files are extracted in memory, so that it finds relevant files even if
//! few are indexed.

use std::cmp::Reverse;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use memchr::memmem::Finder;

use crate::artifact::SkipReason;
use crate::extract;
use crate::git::{BlobContent, Repository};
use crate::snapshot::{FileId, FileStatus, View};

use super::analyze::analyze;
use super::filter::FileFilter;
use super::path_role::is_test_path;

/// Maximum number and total size of the files extracted for one query. Extracting them takes about an eighth of a
/// second.
const MAX_FILES: usize = 32;
const MAX_BYTES: usize = 1 << 19;
/// Maximum number of query words to search for.
const MAX_WORDS: usize = 24;
/// Maximum number of occurrences counted per word and file.
const MAX_COUNTED: u32 = 20;
/// The parameters of BM25, with the same values as elsewhere.
const K1: f32 = 1.2;
const B: f32 = 0.75;
/// Weight of a word in the path, relative to a word in the content.
const IN_PATH: f32 = 2.0;
/// Words that precede a name in its definition, in most languages.
const DEFINING: &[&str] = &[
    "#define",
    "class",
    "const",
    "def",
    "enum",
    "fn",
    "func",
    "function",
    "fun",
    "impl",
    "interface",
    "let",
    "macro_rules!",
    "mod",
    "module",
    "proc",
    "static",
    "struct",
    "sub",
    "trait",
    "type",
    "typedef",
    "union",
    "val",
    "var",
];

/// The parts of a query that select files.
#[derive(Clone, Debug, Default)]
pub struct LikelyQuery {
    /// Files that the query names, in ascending order.
    pub files: Vec<FileId>,
    /// A query in words, or code.
    pub text: String,
    /// A name with exact spelling. Files that define it come first.
    pub name: Option<String>,
}

/// The files to extract first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LikelyFiles {
    /// The files, most likely first.
    pub files: Vec<FileId>,
    /// True if no other unindexed file contains the name or, without a name, any word of the query.
    pub is_all: bool,
}

/// Returns the number of files of a view that are not indexed yet.
pub fn n_not_indexed(view: &View) -> usize {
    not_indexed(view).count()
}

/// Finds the files most likely to match among those that pass `filter` and are not indexed. Reads files until the time
/// `until`: files with words of the query in their paths first, then source code, then tests, documents and data. Files
/// that were not read are ranked by their paths.
pub fn likely(
    view: &View,
    repository: &Repository,
    sought: &LikelyQuery,
    filter: &FileFilter,
    max_blob_bytes: u64,
    until: Instant,
    interrupt: &AtomicBool,
) -> LikelyFiles {
    let words = Words::of(sought);
    let passing = not_indexed(view).filter(|&file| filter.is_open() || filter.passes(view, file));
    let mut found: Vec<Candidate> = passing.map(|file| Candidate::new(view, file, sought, &words)).collect();
    found.sort_by_cached_key(Candidate::order);
    let next = AtomicUsize::new(0);
    let contents = Mutex::new(Vec::with_capacity(found.len()));
    let read = || {
        let mut reader = repository.reader();
        while Instant::now() < until && !interrupt.load(Ordering::Relaxed) {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(candidate) = found.get(at) else { break };
            let content = match view.read(candidate.file, &mut reader, max_blob_bytes) {
                Ok(BlobContent::Content(bytes)) => words.counted(&bytes),
                // A file without content cannot be extracted.
                Ok(BlobContent::Missing | BlobContent::Damaged | BlobContent::TooLarge { .. }) | Err(_) => {
                    Content::default()
                }
            };
            contents
                .lock()
                .expect("no thread panics while it holds this")
                .push((at, content));
        }
    };
    if !words.is_empty() {
        let n_threads = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 1..n_threads {
                // If no thread can be started, this thread reads all files.
                let _ = std::thread::Builder::new().spawn_scoped(scope, read);
            }
            read();
        });
    }
    for (at, content) in contents.into_inner().expect("all threads have ended") {
        found[at].content = Some(content);
    }
    best(found, &words)
}

fn not_indexed(view: &View) -> impl Iterator<Item = FileId> + '_ {
    let is_unknown = |file: &FileId| {
        let file = view.file(*file);
        file.blob.is_none() && file.entry().status == FileStatus::Skipped(SkipReason::Missing)
    };
    view.files().map(|(id, _)| id).filter(is_unknown)
}

struct Candidate {
    file: FileId,
    is_named: bool,
    class: Class,
    in_path: Vec<bool>,
    /// The matches in the file; `None` if the file was not read.
    content: Option<Content>,
}

/// The purpose of a file, judged by its path; the most relevant first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Source,
    Test,
    Document,
    Data,
}

/// The matches in a file.
#[derive(Clone, Default)]
struct Content {
    n_bytes: usize,
    counts: Vec<u32>,
    n_names: u32,
    has_definition: bool,
}

impl Candidate {
    fn new(view: &View, file: FileId, sought: &LikelyQuery, words: &Words) -> Self {
        let path = String::from_utf8_lossy(view.file(file).path);
        let language = extract::language(view.lang(file));
        let class = match language.map(|language| language.name) {
            _ if is_test_path(&path) => Class::Test,
            Some("html" | "latex" | "org") => Class::Document,
            Some(_) if language.is_some_and(extract::Language::is_prose) => Class::Document,
            Some("json" | "yaml" | "toml" | "css" | "xml") => Class::Data,
            Some(_) if language.is_some_and(extract::Language::has_structure) => Class::Source,
            _ => Class::Data,
        };
        let path = path.to_lowercase();
        Self {
            file,
            is_named: sought.files.binary_search(&file).is_ok(),
            class,
            in_path: words.stems.iter().map(|(word, _)| path.contains(word)).collect(),
            content: None,
        }
    }

    /// Returns the sort key for reading files.
    fn order(&self) -> impl Ord + use<> {
        let n_words = self.in_path.iter().filter(|is_in| **is_in).count();
        (Reverse(self.is_named), Reverse(n_words), self.class, self.file)
    }

    fn holds_anything(&self) -> bool {
        let holds = |content: &Content| content.counts.iter().any(|count| *count > 0);
        self.contains_the_name() || self.in_path.contains(&true) || self.content.as_ref().is_some_and(holds)
    }

    fn contains_the_name(&self) -> bool {
        self.is_named || self.content.as_ref().is_some_and(|content| content.n_names > 0)
    }

    fn score(&self, weights: &[f32], mean_bytes: f32) -> f32 {
        let unread = Content::default();
        let content = self.content.as_ref().unwrap_or(&unread);
        let length = 1.0 - B + B * content.n_bytes as f32 / mean_bytes;
        let of_word = |(word, weight): (usize, &f32)| {
            let count = content.counts.get(word).copied().unwrap_or(0) as f32;
            let in_path = if self.in_path[word] { IN_PATH } else { 0.0 };
            weight * (count * (K1 + 1.0) / (count + K1 * length) + in_path)
        };
        let by_words: f32 = weights.iter().enumerate().map(of_word).sum();
        let by_name = content.n_names as f32 / (content.n_names as f32 + K1 * length);
        let of_class = match self.class {
            Class::Source => 1.0,
            Class::Test | Class::Document => 0.5,
            Class::Data => 0.3,
        };
        of_class * (by_words + by_name)
    }
}

/// The lower-case stems of a query's words, and the name.
struct Words {
    stems: Vec<(String, Finder<'static>)>,
    name: Option<Finder<'static>>,
}

impl Words {
    fn of(sought: &LikelyQuery) -> Self {
        let mut stems = analyze(&sought.text).terms;
        // The stem of "retry" is "retri".
        stems
            .iter_mut()
            .for_each(|stem| stem.truncate(stem.trim_end_matches('i').len()));
        // A single letter occurs in every file.
        stems.retain(|stem| stem.len() > 1);
        stems.truncate(MAX_WORDS);
        let finder = |word: &str| Finder::new(word.as_bytes()).into_owned();
        Self {
            stems: stems.into_iter().map(|stem| (stem.clone(), finder(&stem))).collect(),
            name: sought.name.as_deref().map(finder),
        }
    }

    fn is_empty(&self) -> bool {
        self.stems.is_empty() && self.name.is_none()
    }

    fn counted(&self, bytes: &[u8]) -> Content {
        let lower = bytes.to_ascii_lowercase();
        let count =
            |(_, finder): &(String, Finder<'_>)| finder.find_iter(&lower).take(MAX_COUNTED as usize).count() as u32;
        let mut content = Content {
            n_bytes: bytes.len(),
            counts: self.stems.iter().map(count).collect(),
            ..Content::default()
        };
        for at in self.name.iter().flat_map(|name| name.find_iter(bytes)) {
            let end = at + self.name.as_ref().map_or(0, |name| name.needle().len());
            let is_part = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
            if is_part(bytes[..at].last()) || is_part(bytes.get(end)) {
                continue;
            }
            content.n_names += 1;
            let before = bytes[..at].trim_ascii_end();
            let word = before
                .iter()
                .rposition(u8::is_ascii_whitespace)
                .map_or(0, |space| space + 1);
            content.has_definition |= DEFINING.iter().any(|defining| defining.as_bytes() == &before[word..]);
        }
        content
    }
}

fn best(mut found: Vec<Candidate>, words: &Words) -> LikelyFiles {
    let read: Vec<&Content> = found
        .iter()
        .filter_map(|candidate| candidate.content.as_ref())
        .collect();
    let n_read = read.len() as f32;
    let mean_bytes = read.iter().map(|content| content.n_bytes).sum::<usize>() as f32 / n_read.max(1.0);
    let weight = |word: usize| {
        let n_with = read
            .iter()
            .filter(|content| content.counts.get(word).is_some_and(|count| *count > 0))
            .count() as f32;
        (1.0 + (n_read - n_with + 0.5) / (n_with + 0.5)).ln()
    };
    let weights: Vec<f32> = (0..words.stems.len()).map(weight).collect();
    let is_read = words.is_empty() || read.len() == found.len();
    let mean_bytes = mean_bytes.max(1.0);
    found.sort_by_cached_key(|candidate| {
        let has_definition = candidate.content.as_ref().is_some_and(|content| content.has_definition);
        let score = (candidate.score(&weights, mean_bytes) * 1e4) as u64;
        (
            Reverse(candidate.is_named),
            Reverse(has_definition),
            Reverse(score),
            candidate.order(),
        )
    });
    // If only few files were found, all of them are extracted, so that the result is complete.
    let are_few = found.len() <= MAX_FILES;
    let mut n_bytes = 0;
    let mut likely = LikelyFiles {
        is_all: is_read,
        ..LikelyFiles::default()
    };
    for candidate in found.iter().filter(|candidate| are_few || candidate.holds_anything()) {
        let size = candidate.content.as_ref().map_or(0, |content| content.n_bytes);
        let fits = likely.files.is_empty() || likely.files.len() < MAX_FILES && n_bytes + size <= MAX_BYTES;
        if fits {
            n_bytes += size;
            likely.files.push(candidate.file);
        } else {
            // If a name is given, files that contain only a word of the query do not make the result incomplete.
            likely.is_all &= words.name.is_some() && !candidate.contains_the_name();
        }
    }
    likely
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(sought: &LikelyQuery, text: &str) -> Content {
        Words::of(sought).counted(text.as_bytes())
    }

    #[test]
    fn words_are_counted_by_their_stems() {
        let sought = LikelyQuery {
            text: "where are diagnostics published".to_owned(),
            ..LikelyQuery::default()
        };
        let content = counted(&sought, "fn publish_diagnostics() {} // Diagnostic");
        assert_eq!(content.counts.iter().sum::<u32>(), 3, "{:?}", content.counts);
        let sought = LikelyQuery {
            text: "retry_f".to_owned(),
            ..LikelyQuery::default()
        };
        assert_eq!(counted(&sought, "fn retry_failed() {}").counts.iter().max(), Some(&1));
    }

    #[test]
    fn whole_names_and_definitions_are_counted() {
        let sought = LikelyQuery {
            name: Some("parse".to_owned()),
            ..LikelyQuery::default()
        };
        let used = counted(&sought, "parser.parse(); reparse(); parse_all()");
        assert_eq!((used.n_names, used.has_definition), (1, false));
        assert!(counted(&sought, "pub fn parse(x: u8) {}").has_definition);
        assert!(counted(&sought, "#define parse 1").has_definition);
    }
}
