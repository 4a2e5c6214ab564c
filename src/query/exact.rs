//! Finds text that must match literally: quoted parts of a query, a query that is not a word, and text in scripts that
//! do not separate words.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::artifact::SkipReason;
use crate::extract::is_credential;
use crate::git::FileMode;
use crate::index::lexical::{LexicalError, normal_name, stem, words};
use crate::model::explain_by;
use crate::sidecar::FileError;
use crate::snapshot::{FileId, FileStatus, View};

use super::analyze::looks_like_code;
use super::filter::FileFilter;
use super::grep::{FileMatches, GrepDetail, GrepLine, GrepRequest, grep};
use super::lexical_leg::postings_in_view;
use super::pattern::{Pattern, PatternError, PatternOptions};
use super::reading::Reading;
use super::source::{Source, Sources};

/// Maximum number of lines used for one text, the first ones by path. A text on more lines is not distinctive.
const MAX_LINES: usize = 1_000;
/// Maximum number of characters whose pairs are searched.
const MAX_PAIRED: usize = 16;
/// Part of the pairs of a text that a document must contain.
const MIN_PAIRS: f32 = 0.5;
/// Maximum number and size of files that are not indexed but read for a word that no indexed file contains. Reading them
/// takes some milliseconds.
const MAX_UNINDEXED_FILES: usize = 32;
const MAX_UNINDEXED_BYTES: u64 = 1 << 20;
/// Maximum number of lines of such files that are returned.
const MAX_UNINDEXED_LINES: usize = 10;
/// Maximum length in bytes of a line of code that is searched as it is.
const MAX_LINE_OF_CODE: usize = 300;
/// Maximum number of quoted texts.
const MAX_TEXTS: usize = 8;

/// The chunks that contain the literal texts of a query.
#[derive(Clone, Debug, Default)]
pub struct ExactText {
    n_texts: usize,
    /// The sum over the texts of the part of each that a document contains: 1 for a whole text.
    by_doc: HashMap<u32, f32>,
    /// The first line that contains a text, by document and file.
    lines: HashMap<(u32, FileId), u32>,
    /// True if the query consists of literal texts only.
    is_all: bool,
    /// The texts that were not found.
    pub absent: Vec<String>,
    /// The identifiers and lone words that no file contains.
    pub absent_words: Vec<String>,
    /// The identifiers and lone words that only files contain that are not indexed.
    pub unindexed_words: Vec<String>,
    /// The identifiers and lone words that no indexed file contains, if there are too many other files to read.
    pub unknown_words: Vec<String>,
    /// Number of files that contain a text but give no hit because they are not indexed.
    pub n_unindexed: usize,
    /// Number of files that contain a text but give no hit because their names suggest credentials.
    pub n_withheld: usize,
    /// True if more lines match than were read.
    pub is_cut: bool,
}

/// An error from finding literal text.
#[derive(Debug, thiserror::Error)]
pub enum ExactError {
    /// A text is not a valid pattern.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// An artifact cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The lexical index cannot be read.
    #[error(transparent)]
    Words(#[from] LexicalError),
}

explain_by!(ExactError: File, Words, Pattern);

impl ExactText {
    /// Finds the literal texts of `query`. The search is case-sensitive unless a text is not found that way. `is_known`
    /// is true if the query gives a name or place that exists; then only quoted text is literal.
    pub(super) fn find(
        query: &str,
        reading: &Reading,
        is_known: bool,
        sources: &Sources<'_>,
        filter: &FileFilter,
        interrupt: &AtomicBool,
    ) -> Result<Self, ExactError> {
        if reading.is_trace {
            return Ok(Self::default());
        }
        let search = Search {
            sources,
            filter,
            interrupt,
        };
        let mut found = Self {
            n_texts: 1,
            ..Self::default()
        };
        if let Some(line) = line_of_code(query)
            && found.add_as(line, 1.0, false, &search)?
        {
            return Ok(found);
        }
        let texts = if is_known { quoted(query) } else { wanted(query) };
        let runs = if texts.is_empty() { unspaced(query) } else { Vec::new() };
        let is_quoted_only = query.split('"').step_by(2).all(|outside| outside.trim().is_empty());
        found = Self {
            is_all: !texts.is_empty() && (is_quoted_only || texts == [query.trim()]) || runs == [query.trim()],
            n_texts: texts.len() + runs.len(),
            ..Self::default()
        };
        for text in texts {
            if !found.add(text, 1.0, &search)? {
                found.absent.push(text.to_owned());
            }
        }
        for run in runs {
            if !found.add(run, 1.0, &search)? && !found.add_pairs(run, &search)? {
                found.absent.push(run.to_owned());
            }
        }
        for word in identifiers(query, reading) {
            if is_indexed(word, sources.view())? {
                continue;
            }
            let words = match search.occurs_unindexed(word)? {
                Some(true) => &mut found.unindexed_words,
                Some(false) => &mut found.absent_words,
                None => &mut found.unknown_words,
            };
            words.push(word.to_owned());
        }
        Ok(found)
    }

    /// Returns the documents that contain any of the texts.
    pub(super) fn docs(&self) -> impl Iterator<Item = u32> {
        self.by_doc.keys().copied()
    }

    /// Returns true if the query consists of literal texts that no document contains.
    pub(super) fn is_all_absent(&self) -> bool {
        self.is_all && self.by_doc.is_empty()
    }

    /// Returns the share of the texts that a document contains.
    pub(super) fn share(&self, doc: u32) -> f32 {
        self.by_doc.get(&doc).map_or(0.0, |held| held / self.n_texts as f32)
    }

    /// Returns the first line that contains a text, in a document of a file.
    pub(super) fn line(&self, doc: u32, file: FileId) -> Option<u32> {
        self.lines.get(&(doc, file)).copied()
    }

    /// Adds the documents that contain `text`, in any case if no file has it in this case. Returns true if any file
    /// contains it.
    fn add(&mut self, text: &str, part: f32, search: &Search<'_>) -> Result<bool, ExactError> {
        Ok(self.add_as(text, part, false, search)? || self.add_as(text, part, true, search)?)
    }

    fn add_as(&mut self, text: &str, part: f32, ignore_case: bool, search: &Search<'_>) -> Result<bool, ExactError> {
        let request = search.request(text, ignore_case)?;
        let mut docs = HashSet::new();
        let mut failed = None;
        let outcome = grep(
            search.sources,
            &request,
            search.interrupt,
            &mut |matches| match self.note(search.sources.view(), &matches, &mut docs) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            },
        );
        if let Some(error) = failed {
            return Err(error.into());
        }
        for doc in docs {
            *self.by_doc.entry(doc).or_default() += part;
        }
        self.is_cut |= outcome.next.is_some() || outcome.interrupted;
        Ok(outcome.n_files > 0)
    }

    /// Adds the documents that contain at least half of the pairs of adjacent characters in `run`, a text in a script
    /// without spaces. Returns true if there are any.
    fn add_pairs(&mut self, run: &str, search: &Search<'_>) -> Result<bool, ExactError> {
        let characters: Vec<char> = run.chars().take(MAX_PAIRED).collect();
        if characters.len() < 3 {
            return Ok(false);
        }
        let before = self.by_doc.clone();
        let pairs = characters.windows(2).map(|pair| pair.iter().collect::<String>());
        let part = 1.0 / (characters.len() - 1) as f32;
        for pair in pairs {
            self.add_as(&pair, part, false, search)?;
        }
        let held_before = |doc: &u32| before.get(doc).copied().unwrap_or_default();
        self.by_doc.retain(|doc, held| {
            let before = held_before(doc);
            if *held - before < MIN_PAIRS {
                *held = before;
            }
            *held > 0.0
        });
        Ok(self.by_doc.iter().any(|(doc, held)| *held > held_before(doc)))
    }

    fn note(&mut self, view: &View, matches: &FileMatches, docs: &mut HashSet<u32>) -> Result<(), FileError> {
        if is_credential(view.file(matches.file).path) {
            self.n_withheld += 1;
            return Ok(());
        }
        let Some(extraction) = view.extraction(matches.file) else {
            self.n_unindexed += 1;
            return Ok(());
        };
        let chunks = extraction?.chunks;
        for (chunk, doc) in chunks.iter().zip(view.docs(matches.file)) {
            let is_inside = |line: &&GrepLine| (chunk.start_line..=chunk.end_line).contains(&line.number);
            if let Some(line) = matches.lines.iter().find(is_inside) {
                docs.insert(doc);
                let first = self.lines.entry((doc, matches.file)).or_insert(line.number);
                *first = line.number.min(*first);
            }
        }
        Ok(())
    }
}

/// Returns true if an indexed document of the view contains a word, in any spelling.
fn is_indexed(word: &str, view: &View) -> Result<bool, LexicalError> {
    let n_found = |term: &str| postings_in_view(view, term).map(|postings| postings.len());
    Ok(n_found(&normal_name(word))? > 0 || n_found(&stem(&word.to_lowercase()))? > 0)
}

/// Where and until when literal text is searched.
struct Search<'a> {
    sources: &'a Sources<'a>,
    filter: &'a FileFilter,
    interrupt: &'a AtomicBool,
}

impl Search<'_> {
    /// Returns the request for a literal text.
    fn request(&self, text: &str, ignore_case: bool) -> Result<GrepRequest, PatternError> {
        let options = PatternOptions {
            ignore_case,
            literal: true,
            ..PatternOptions::default()
        };
        Ok(GrepRequest {
            pattern: Pattern::new(text, options)?,
            filter: self.filter.clone(),
            detail: GrepDetail::Lines,
            before: 0,
            after: 0,
            limit: MAX_LINES,
            from: None,
        })
    }

    /// Returns true if a text file that is not indexed contains a word, in any case. `None` if these files are too many
    /// or too large to be read for one query.
    fn occurs_unindexed(&self, word: &str) -> Result<Option<bool>, PatternError> {
        let options = PatternOptions {
            ignore_case: true,
            whole_words: true,
            literal: true,
            ..PatternOptions::default()
        };
        let pattern = Pattern::new(word, options)?;
        let mut occurs = false;
        let is_all = self.read_unindexed(is_text, |_, bytes| {
            occurs |= pattern.occurs(bytes);
            !occurs
        });
        Ok((occurs || is_all).then_some(occurs))
    }

    /// Passes the files that are not indexed and whose status `is_wanted` to `read`, until it returns false. Returns
    /// false if some were left out because they are too many or too large for one query.
    fn read_unindexed(
        &self,
        is_wanted: impl Fn(FileStatus) -> bool,
        mut read: impl FnMut(FileId, &[u8]) -> bool,
    ) -> bool {
        let view = self.sources.view();
        let mut reader = self.sources.reader();
        let (mut n_left, mut bytes_left) = (MAX_UNINDEXED_FILES, MAX_UNINDEXED_BYTES);
        let mut is_all = true;
        for (file, entry) in view.files().filter(|(_, file)| file.blob.is_none()) {
            let entry = entry.entry();
            let is_file = matches!(entry.mode, FileMode::File | FileMode::Executable);
            if !is_wanted(entry.status)
                || !is_file
                || is_credential(view.file(file).path)
                || !self.filter.passes(view, file)
            {
                continue;
            }
            if n_left == 0 || self.interrupt.load(Ordering::Relaxed) {
                return false;
            }
            n_left -= 1;
            let Ok(Source::Bytes(bytes)) = reader.read_up_to(file, bytes_left) else {
                is_all = false;
                continue;
            };
            if !read(file, &bytes) {
                return true;
            }
            bytes_left -= bytes.len() as u64;
        }
        is_all
    }
}

fn is_text(status: FileStatus) -> bool {
    !matches!(status, FileStatus::Skipped(SkipReason::Binary))
}

/// Returns, for each pattern, the files that are not indexed and match it, as far as they can be read for one query.
/// `is_wanted` selects them by the reason why they are not indexed.
pub fn unindexed_with(
    patterns: &[Pattern],
    sources: &Sources<'_>,
    filter: &FileFilter,
    is_wanted: impl Fn(SkipReason) -> bool,
    interrupt: &AtomicBool,
) -> Vec<Vec<FileId>> {
    let search = Search {
        sources,
        filter,
        interrupt,
    };
    let is_wanted = |status| matches!(status, FileStatus::Skipped(reason) if is_wanted(reason));
    let mut found = vec![Vec::new(); patterns.len()];
    if patterns.is_empty() {
        return found;
    }
    search.read_unindexed(is_wanted, |file, bytes| {
        let matching = patterns
            .iter()
            .zip(&mut found)
            .filter(|(pattern, _)| pattern.occurs(bytes));
        matching.for_each(|(_, files)| files.push(file));
        true
    });
    found
}

/// Returns the lines of files that are not indexed that contain `text`, in any case, as far as these files can be read
/// for one query.
pub(super) fn unindexed_lines(
    text: &str,
    sources: &Sources<'_>,
    filter: &FileFilter,
    interrupt: &AtomicBool,
) -> Result<Vec<(FileId, GrepLine)>, PatternError> {
    let options = PatternOptions {
        ignore_case: true,
        literal: true,
        ..PatternOptions::default()
    };
    let pattern = Pattern::new(text, options)?;
    let mut found = Vec::new();
    let search = Search {
        sources,
        filter,
        interrupt,
    };
    search.read_unindexed(is_text, |file, bytes| {
        pattern.for_each_line(bytes, |line| {
            let text = bytes[line.start..line.end].to_vec();
            let spans = pattern.spans(&text);
            found.push((
                file,
                GrepLine {
                    number: line.number,
                    text,
                    spans,
                    is_match: true,
                },
            ));
            found.len() < MAX_UNINDEXED_LINES
        });
        found.len() < MAX_UNINDEXED_LINES
    });
    Ok(found)
}

/// Returns the texts in double quotes. Without quotes, returns the whole query if it is one word that looks like
/// neither an identifier nor a path.
fn wanted(query: &str) -> Vec<&str> {
    let quoted = quoted(query);
    let word = query.trim();
    if quoted.is_empty() && is_odd(word) && is_literal(&word) {
        vec![word]
    } else {
        quoted
    }
}

/// Returns the query if it is one line of several words with the punctuation of code.
fn line_of_code(query: &str) -> Option<&str> {
    let line = query.trim();
    let has_several = words(line).nth(1).is_some();
    let is_code = line.ends_with([';', '{']) || line.contains(" = ") || line.contains('(') && line.contains(')');
    (has_several && is_code && line.len() <= MAX_LINE_OF_CODE && is_literal(&line)).then_some(line)
}

/// Returns the texts in double quotes.
fn quoted(query: &str) -> Vec<&str> {
    let parts: Vec<&str> = query.split('"').collect();
    let n_closed = (parts.len() - 1) / 2;
    let quoted = parts.iter().skip(1).step_by(2).take(n_closed).copied();
    quoted.filter(is_literal).take(MAX_TEXTS).collect()
}

fn is_literal(text: &&str) -> bool {
    text.trim().len() > 1 && !text.contains('\n')
}

/// Returns the words outside quotes and paths that look like identifiers, or the only word.
fn identifiers<'q>(query: &'q str, reading: &Reading) -> Vec<&'q str> {
    if !reading.places.is_empty() {
        return Vec::new();
    }
    let outside = || query.split('"').step_by(2).flat_map(words).map(|(_, word)| word);
    let is_only = outside().nth(1).is_none();
    let is_identifier =
        |word: &&str| word.len() > 1 && !word.contains(is_unspaced) && (is_only || looks_like_code(word));
    outside().filter(is_identifier).take(MAX_TEXTS).collect()
}

/// Returns the runs of characters of scripts that do not separate words.
fn unspaced(query: &str) -> Vec<&str> {
    let runs = query.split(|c: char| !is_unspaced(c)).filter(|run| !run.is_empty());
    runs.take(MAX_TEXTS).collect()
}

/// Returns true for characters of scripts without spaces between words: Thai, Lao, Myanmar, Khmer, Kana and Han. Source:
/// the blocks of the Unicode Standard, version 16.
fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c),
        0x0e00..=0x0eff | 0x1000..=0x109f | 0x1780..=0x17ff | 0x3005..=0x3007 | 0x3040..=0x30ff | 0x31f0..=0x31ff
        | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x3ffff)
}

fn is_odd(word: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | ':' | '#' | '(' | ')');
    let is_path = word.contains('/') && !word.starts_with('/');
    !word.contains(char::is_whitespace) && !word.contains('"') && !is_path && !word.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_code_are_literal() {
        for line in [
            "rv = self.handle(e)",
            "fn a(b: u8) -> u8 {",
            "return next;",
            "load(\"a b\", 3)",
        ] {
            assert_eq!(line_of_code(&format!("  {line}\n")), Some(line));
        }
        for other in [
            "parse()",
            "Parser.parse",
            "how is x handled (and why",
            "a;\nb;",
            "two words",
        ] {
            assert_eq!(line_of_code(other), None, "{other}");
        }
    }

    #[test]
    fn quotes_and_odd_words_are_literal() {
        assert_eq!(
            wanted(r#"why "no files were searched" is "told""#),
            ["no files were searched", "told"]
        );
        assert_eq!(wanted("--type-add"), ["--type-add"]);
        assert_eq!(wanted("/api/users"), ["/api/users"]);
        for plain in [
            "Parser::parse()",
            "a.b",
            "src/main.rs",
            "src/main-x.rs:4",
            "two-part word",
            r#"5" pipe"#,
            "x",
            r#""""#,
        ] {
            assert!(wanted(plain).is_empty(), "{plain}");
        }
    }
}
