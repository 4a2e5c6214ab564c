//! Finds text that must match literally: quoted parts of a query, or a query that is not a word.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

use crate::extract::is_credential;
use crate::index::lexical::{LexicalError, normal_name, stem, words};
use crate::model::explain_by;
use crate::sidecar::FileError;
use crate::snapshot::{FileId, View};

use super::analyze::looks_like_code;
use super::filter::FileFilter;
use super::grep::{FileMatches, GrepDetail, GrepLine, GrepRequest, grep};
use super::lexical_leg::postings_in_view;
use super::pattern::{Pattern, PatternError, PatternOptions};
use super::source::Sources;

/// Maximum number of lines used for one text, the first ones by path. A text on more lines is not distinctive.
const MAX_LINES: usize = 1_000;
/// Maximum number of quoted texts.
const MAX_TEXTS: usize = 8;

/// The chunks that contain the literal texts of a query.
#[derive(Clone, Debug, Default)]
pub struct ExactText {
    n_texts: usize,
    /// Number of the texts that each document contains.
    by_doc: HashMap<u32, usize>,
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

explain_by!(ExactError: Pattern);

impl ExactText {
    /// Finds the literal texts of `query`. The search is case-sensitive unless a text is not found that way.
    pub fn find(
        query: &str,
        sources: &Sources<'_>,
        filter: &FileFilter,
        interrupt: &AtomicBool,
    ) -> Result<Self, ExactError> {
        let texts = wanted(query);
        let is_quoted_only = query.split('"').step_by(2).all(|outside| outside.trim().is_empty());
        let mut found = Self {
            is_all: !texts.is_empty() && (is_quoted_only || texts == [query.trim()]),
            n_texts: texts.len(),
            ..Self::default()
        };
        for text in texts {
            let mut is_found = |ignore_case| {
                let options = PatternOptions {
                    ignore_case,
                    ..PatternOptions::default()
                };
                found.add(request(text, options, filter)?, sources, interrupt)
            };
            if !is_found(false)? && !is_found(true)? {
                found.absent.push(text.to_owned());
            }
        }
        for word in identifiers(query) {
            if is_indexed(word, sources.view())? {
                continue;
            }
            let words = if occurs(word, sources, filter, interrupt)? {
                &mut found.unindexed_words
            } else {
                &mut found.absent_words
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
        self.by_doc
            .get(&doc)
            .map_or(0.0, |&held| held as f32 / self.n_texts as f32)
    }

    /// Returns the first line that contains a text, in a document of a file.
    pub(super) fn line(&self, doc: u32, file: FileId) -> Option<u32> {
        self.lines.get(&(doc, file)).copied()
    }

    /// Adds the documents that contain `text`. Returns true if any file contains it.
    fn add(
        &mut self,
        looked_for: GrepRequest,
        sources: &Sources<'_>,
        interrupt: &AtomicBool,
    ) -> Result<bool, ExactError> {
        let mut docs = HashSet::new();
        let mut failed = None;
        let outcome = grep(sources, &looked_for, interrupt, &mut |matches| match self.note(
            sources.view(),
            &matches,
            &mut docs,
        ) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        });
        if let Some(error) = failed {
            return Err(error.into());
        }
        for doc in docs {
            *self.by_doc.entry(doc).or_default() += 1;
        }
        self.is_cut |= outcome.next.is_some() || outcome.interrupted;
        Ok(outcome.n_files > 0)
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

/// Returns true if a file contains a word, in any case.
fn occurs(
    word: &str,
    sources: &Sources<'_>,
    filter: &FileFilter,
    interrupt: &AtomicBool,
) -> Result<bool, PatternError> {
    let options = PatternOptions {
        ignore_case: true,
        whole_words: true,
        ..PatternOptions::default()
    };
    let request = GrepRequest {
        limit: 1,
        ..request(word, options, filter)?
    };
    Ok(grep(sources, &request, interrupt, &mut |_| ControlFlow::Break(())).n_files > 0)
}

/// Returns the request for a literal text.
fn request(text: &str, options: PatternOptions, filter: &FileFilter) -> Result<GrepRequest, PatternError> {
    let options = PatternOptions {
        literal: true,
        ..options
    };
    Ok(GrepRequest {
        pattern: Pattern::new(text, options)?,
        filter: filter.clone(),
        detail: GrepDetail::Lines,
        before: 0,
        after: 0,
        limit: MAX_LINES,
        from: None,
    })
}

/// Returns the texts in double quotes. Without quotes, returns the whole query if it is one word that looks like
/// neither an identifier nor a path.
fn wanted(query: &str) -> Vec<&str> {
    let parts: Vec<&str> = query.split('"').collect();
    let n_closed = (parts.len() - 1) / 2;
    let is_text = |text: &&str| text.trim().len() > 1 && !text.contains('\n');
    let quoted = parts.iter().skip(1).step_by(2).take(n_closed).copied();
    let quoted: Vec<&str> = quoted.filter(is_text).take(MAX_TEXTS).collect();
    let word = query.trim();
    if quoted.is_empty() && is_odd(word) && is_text(&word) {
        vec![word]
    } else {
        quoted
    }
}

/// Returns the words outside quotes that look like identifiers, or the only word.
fn identifiers(query: &str) -> Vec<&str> {
    let outside = || query.split('"').step_by(2).flat_map(words).map(|(_, word)| word);
    let is_only = outside().nth(1).is_none();
    let is_identifier = |word: &&str| word.len() > 1 && (is_only || looks_like_code(word));
    outside().filter(is_identifier).take(MAX_TEXTS).collect()
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
