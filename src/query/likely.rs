//! Finds files that are not indexed yet and most likely match a query, by the words that they contain.
//!
//! If a query cannot wait for the index, these files are extracted in memory, so that it finds relevant files even if
//! few are indexed.

use std::cmp::Reverse;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use memchr::memmem::Finder;
use rayon::iter::{ParallelBridge, ParallelIterator};

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

/// Finds the files most likely to match among those that pass `filter` and are not indexed: those that the query names,
/// those that define the name, then by the number of different words. Reads files until the time `until`: files with
/// words of the query in their paths first, then source code, then tests, documents and data. Files that were not read
/// are ranked by their paths.
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
    let is_in_time = |_: &_| !words.is_empty() && Instant::now() < until && !interrupt.load(Ordering::Relaxed);
    let read: Vec<(usize, Content)> = found
        .iter()
        .enumerate()
        .take_while(is_in_time)
        .par_bridge()
        .map_init(
            || repository.reader(),
            |reader, (at, candidate)| match view.read(candidate.file, reader, max_blob_bytes) {
                Ok(BlobContent::Content(bytes)) => (at, words.found_in(&bytes)),
                // A file without content cannot be extracted.
                Ok(BlobContent::Missing | BlobContent::Damaged | BlobContent::TooLarge { .. }) | Err(_) => {
                    (at, Content::default())
                }
            },
        )
        .collect();
    let is_read = words.is_empty() || read.len() == found.len();
    for (at, content) in read {
        found[at].add(content);
    }
    best(found, is_read, words.name.is_some())
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
    /// For each word of the query, whether the path or the content has it.
    has_word: Vec<bool>,
    content: Content,
}

/// The purpose of a file, judged by its path; the most relevant first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Source,
    Test,
    Document,
    Data,
}

/// The matches in the content of a file.
#[derive(Default)]
struct Content {
    n_bytes: usize,
    has_word: Vec<bool>,
    has_name: bool,
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
        Self {
            file,
            is_named: sought.files.binary_search(&file).is_ok(),
            class,
            has_word: words.found_in(path.as_bytes()).has_word,
            content: Content::default(),
        }
    }

    fn add(&mut self, content: Content) {
        self.has_word
            .iter_mut()
            .zip(&content.has_word)
            .for_each(|(has, also)| *has |= also);
        self.content = content;
    }

    /// Returns the sort key among files with the same definitions.
    fn order(&self) -> impl Ord + use<> {
        let n_words = self.has_word.iter().filter(|has| **has).count();
        (Reverse(self.is_named), Reverse(n_words), self.class, self.file)
    }

    fn has_anything(&self) -> bool {
        self.has_name() || self.has_word.contains(&true)
    }

    fn has_name(&self) -> bool {
        self.is_named || self.content.has_name
    }
}

/// The lower-case stems of a query's words, and the name.
struct Words {
    stems: Vec<Finder<'static>>,
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
            stems: stems.iter().map(|stem| finder(stem)).collect(),
            name: sought.name.as_deref().map(finder),
        }
    }

    fn is_empty(&self) -> bool {
        self.stems.is_empty() && self.name.is_none()
    }

    fn found_in(&self, bytes: &[u8]) -> Content {
        let lower = bytes.to_ascii_lowercase();
        let mut content = Content {
            n_bytes: bytes.len(),
            has_word: self.stems.iter().map(|stem| stem.find(&lower).is_some()).collect(),
            ..Content::default()
        };
        for at in self.name.iter().flat_map(|name| name.find_iter(bytes)) {
            let end = at + self.name.as_ref().map_or(0, |name| name.needle().len());
            let is_part = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
            if is_part(bytes[..at].last()) || is_part(bytes.get(end)) {
                continue;
            }
            content.has_name = true;
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

fn best(mut found: Vec<Candidate>, is_read: bool, has_name: bool) -> LikelyFiles {
    found.sort_by_cached_key(|candidate| {
        let content = &candidate.content;
        let is_defined = (Reverse(content.has_definition), Reverse(content.has_name));
        (Reverse(candidate.is_named), is_defined, candidate.order())
    });
    // If only few files were found, all of them are extracted, so that the result is complete.
    let are_few = found.len() <= MAX_FILES;
    let mut n_bytes = 0;
    let mut likely = LikelyFiles {
        is_all: is_read,
        ..LikelyFiles::default()
    };
    for candidate in found.iter().filter(|candidate| are_few || candidate.has_anything()) {
        let size = candidate.content.n_bytes;
        let fits = likely.files.is_empty() || likely.files.len() < MAX_FILES && n_bytes + size <= MAX_BYTES;
        if fits {
            n_bytes += size;
            likely.files.push(candidate.file);
        } else {
            // If a name is given, files that contain only a word of the query do not make the result incomplete.
            likely.is_all &= has_name && !candidate.has_name();
        }
    }
    likely
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(sought: &LikelyQuery, text: &str) -> Content {
        Words::of(sought).found_in(text.as_bytes())
    }

    #[test]
    fn words_are_found_by_their_stems() {
        let sought = LikelyQuery {
            text: "where are diagnostics published".to_owned(),
            ..LikelyQuery::default()
        };
        let n_words = |text: &str| found(&sought, text).has_word.into_iter().filter(|has| *has).count();
        assert_eq!(n_words("fn publish_diagnostics() {}"), 2);
        assert_eq!(n_words("// Diagnostic, diagnostics"), 1);
        let sought = LikelyQuery {
            text: "retry_f".to_owned(),
            ..LikelyQuery::default()
        };
        assert!(found(&sought, "fn retry_failed() {}").has_word.contains(&true));
    }

    #[test]
    fn whole_names_and_definitions_are_found() {
        let sought = LikelyQuery {
            name: Some("parse".to_owned()),
            ..LikelyQuery::default()
        };
        let used = found(&sought, "parser.parse(); reparse(); parse_all()");
        assert!(used.has_name && !used.has_definition);
        assert!(!found(&sought, "reparse(); parse_all()").has_name);
        assert!(found(&sought, "pub fn parse(x: u8) {}").has_definition);
        assert!(found(&sought, "#define parse 1").has_definition);
    }
}
