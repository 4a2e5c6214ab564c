//! Finds the documents in which words of a query stand side by side as in the query, as those of a pasted message do.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::RandomState;
use rayon::prelude::*;

use crate::index::lexical::{Signature, TrigramQuery, for_each_word, is_stop_word, push_lower, words};
use crate::snapshot::FileId;

use super::analyze::Analysis;
use super::candidates::Scope;
use super::hit::Opened;
use super::lexical_leg::LexicalLeg;
use super::request::SearchError;
use super::search::Searcher;
use super::source::Source;

/// Maximum number of documents that are read, best by BM25 first.
const MAX_READ: usize = 24;
/// Maximum number of words of the query that are compared.
const MAX_WORDS: usize = 200;
/// Maximum number of places of one word in the query that are compared. A query can repeat a word without end.
const MAX_PLACES: usize = 8;
/// Number of telling words side by side that make a message rather than a coincidence.
const MIN_MESSAGE: usize = 4;
/// Number of telling words without which the values in a message count as words of it.
const MIN_BESIDE_VALUES: usize = 3;

/// The words of a query in one document.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Verbatim {
    /// Share of the query's idf in runs of words that stand in the document as in the query.
    pub(super) share: f32,
    /// Number of telling words in the longest run.
    n_telling: usize,
    /// The offset in the file of the longest run.
    pub(super) at: usize,
}

impl Verbatim {
    /// True if a run has many telling words.
    fn is_long(&self) -> bool {
        self.n_telling >= MIN_MESSAGE
    }

    /// True if a run has many telling words, or all of them are in runs.
    fn is_message(&self) -> bool {
        self.is_long() || self.n_telling >= 2 && self.share > 0.999
    }
}

/// The documents that contain the message in a query.
#[derive(Debug, Default)]
pub(super) struct Pasted {
    pub(super) by_doc: HashMap<u32, Verbatim>,
    /// True if the message has values, which need not be in the documents.
    pub(super) has_values: bool,
}

/// The words of a query with their weights; function words and the values of a message weigh nothing.
struct Wanted {
    has_values: bool,
    words: Vec<(String, f32)>,
    by_word: HashMap<String, Vec<usize>, RandomState>,
}

impl Wanted {
    fn new(text: &str, weight: impl Fn(&str) -> f32) -> Self {
        let values = values(text);
        let mut is_value = Vec::new();
        let mut wanted: Vec<(String, f32)> = Vec::new();
        for (at, word) in words(text).take(MAX_WORDS) {
            let lower = word.to_lowercase();
            let weight = if is_stop_word(&lower) { 0.0 } else { weight(&lower) };
            wanted.push((lower, weight));
            is_value.push(values.iter().any(|value| value.contains(&at)));
        }
        // Code has a placeholder where a message has a value.
        let beside_values = wanted
            .iter()
            .zip(&is_value)
            .filter(|((_, weight), is_value)| *weight > 0.0 && !**is_value);
        let has_values = beside_values.count() >= MIN_BESIDE_VALUES && is_value.contains(&true);
        if has_values {
            for ((_, weight), _) in wanted.iter_mut().zip(is_value).filter(|(_, is_value)| *is_value) {
                *weight = 0.0;
            }
        }
        let mut by_word: HashMap<String, Vec<usize>, RandomState> = HashMap::default();
        for (at, (word, _)) in wanted.iter().enumerate() {
            let places = by_word.entry(word.clone()).or_default();
            if places.len() < MAX_PLACES {
                places.push(at);
            }
        }
        Self {
            has_values,
            words: wanted,
            by_word,
        }
    }

    /// The telling words in order, each with the condition on files that contain it.
    fn telling(&self) -> Vec<TrigramQuery> {
        let telling = self.words.iter().filter(|(_, weight)| *weight > 0.0);
        // Signatures ignore the case of ASCII letters only.
        let condition = |word: &str| {
            if word.is_ascii() {
                TrigramQuery::of_literal(word.as_bytes())
            } else {
                TrigramQuery::Any
            }
        };
        telling.map(|(word, _)| condition(word)).collect()
    }

    /// The condition on files that contain two neighbours side by side. A telling word must be one of them.
    fn condition(&self) -> TrigramQuery {
        let pairs = self.words.windows(2).filter(|pair| pair[0].1 + pair[1].1 > 0.0);
        let pairs = pairs.map(|pair| TrigramQuery::of_literal(format!("{} {}", pair[0].0, pair[1].0).as_bytes()));
        TrigramQuery::either(pairs.collect())
    }

    /// Finds the runs in a text that starts at `start`.
    fn find(&self, text: &str, start: usize) -> Verbatim {
        // For each word of the query, the number of words up to it that also stand before the current one, with the
        // offset of the first of them.
        let mut ending: Vec<(usize, usize, usize)> = Vec::new();
        let mut is_held = vec![false; self.words.len()];
        let mut best = (0, 0, start);
        let mut lower = String::new();
        for (offset, word) in plain_words(text) {
            lower.clear();
            push_lower(&mut lower, word);
            let places = self.by_word.get(&lower).map_or(&[][..], Vec::as_slice);
            let next: Vec<(usize, usize, usize)> = places
                .iter()
                .map(|&place| {
                    let before = ending.iter().find(|(at, _, _)| at + 1 == place);
                    let (length, first) = before.map_or((0, offset), |(_, length, first)| (*length, *first));
                    (place, length + 1, first)
                })
                .collect();
            for &(place, length, first) in &next {
                let run = place + 1 - length..=place;
                let n_telling = self.words[run.clone()]
                    .iter()
                    .filter(|(_, weight)| *weight > 0.0)
                    .count();
                if n_telling >= 2 || n_telling == 1 && length >= MIN_MESSAGE {
                    is_held[run].fill(true);
                    if (n_telling, length) > (best.0, best.1) {
                        best = (n_telling, length, start + first);
                    }
                }
            }
            ending = next;
        }
        let all: f32 = self.words.iter().map(|(_, weight)| weight).sum();
        let held = self.words.iter().zip(&is_held).filter(|(_, is_held)| **is_held);
        let share = held.map(|((_, weight), _)| weight).sum::<f32>() / all.max(f32::MIN_POSITIVE);
        Verbatim {
            share,
            n_telling: best.0,
            at: best.2,
        }
    }
}

/// Returns the ranges of the values in a message: quoted text, paths and tokens with digits.
fn values(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(opening) = text[at..].find(['"', '\'', '`']).map(|offset| at + offset) {
        let quote = &text[opening..=opening];
        at = opening + 1;
        // An apostrophe in a word is no quote.
        if text[..opening].ends_with(char::is_alphanumeric) {
            continue;
        }
        if let Some(closing) = text[at..].find(quote).map(|offset| at + offset)
            && !text[at..closing].contains('\n')
        {
            found.push(at..closing);
            at = closing + 1;
        }
    }
    let tokens = text
        .split_whitespace()
        .filter(|token| token.contains(['/', '\\']) || token.contains(|character: char| character.is_ascii_digit()));
    found.extend(tokens.map(|token| {
        let start = token.as_ptr() as usize - text.as_ptr() as usize;
        start..start + token.len()
    }));
    found
}

/// Returns the words of a source text with their offsets. The letter of an escape such as `\n` is no part of a word.
fn plain_words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    words(text).filter_map(move |(at, word)| {
        let is_escape = text[..at].ends_with('\\') && word.starts_with(['n', 't', 'r', 'x', 'u']);
        let rest = if is_escape { &word[1..] } else { word };
        (!rest.is_empty()).then_some((at + word.len() - rest.len(), rest))
    })
}

/// Returns true if a file may contain enough telling words side by side for a message.
fn may_hold_message(signature: Signature<'_>, telling: &[TrigramQuery]) -> bool {
    let mut n_held = 0;
    telling.iter().any(|word| {
        n_held = if signature.may_match(word) { n_held + 1 } else { 0 };
        n_held == telling.len().min(MIN_MESSAGE)
    })
}

impl Searcher<'_> {
    /// Finds the messages in the documents that contain many words of the query. With `only_long`, only those with many
    /// telling words count.
    pub(super) fn verbatim(
        &self,
        text: &str,
        only_long: bool,
        (analysis, lexical, by_words): (&Analysis, &LexicalLeg, &[u32]),
        scope: &Scope,
        opened: &mut Opened,
    ) -> Result<Pasted, SearchError> {
        let Some(sources) = self.sources else {
            return Ok(Pasted::default());
        };
        let idf: HashMap<&str, f32> = analysis
            .terms
            .iter()
            .map(String::as_str)
            .zip(lexical.idf.iter().copied())
            .collect();
        let wanted = Wanted::new(text, |word| {
            let mut weight = 0.0_f32;
            for_each_word(word, &mut |term: &str| {
                weight = weight.max(idf.get(term).copied().unwrap_or_default())
            });
            weight
        });
        let telling = wanted.telling();
        if telling.len() < if only_long { MIN_MESSAGE } else { 2 } {
            return Ok(Pasted::default());
        }
        let condition = wanted.condition();
        let may_hold = |file: FileId| {
            let blob = self
                .view
                .file(file)
                .blob
                .and_then(|blob| self.view.segments().of_blob(blob));
            blob.is_some_and(|(segment, local)| {
                let signature = segment.lexical.signature(local);
                may_hold_message(signature, &telling) && signature.may_match(&condition)
            })
        };
        let mut by_file: BTreeMap<FileId, Vec<(u32, u32)>> = BTreeMap::new();
        let places = by_words
            .iter()
            .filter_map(|&doc| Some((doc, scope.places(self.view, doc).next()?)));
        for (doc, place) in places.filter(|(_, place)| may_hold(place.file)).take(MAX_READ) {
            by_file.entry(place.file).or_default().push((doc, place.chunk));
        }
        let by_file: Vec<(FileId, Vec<(u32, u32)>)> = by_file.into_iter().collect();
        let read = |reader: &mut super::source::SourceReader<'_>, file: FileId| match reader.read(file) {
            Ok(Source::Bytes(bytes)) => Some(Arc::new(bytes)),
            _ => None,
        };
        let texts: Vec<_> = by_file
            .par_iter()
            .map_init(|| sources.reader(), |reader, (file, _)| read(reader, *file))
            .collect();
        let mut by_doc = HashMap::new();
        for ((file, docs), text) in by_file.into_iter().zip(texts) {
            let (Some(text), Some(blob)) = (text, self.view.file(file).blob) else {
                continue;
            };
            let extraction = opened.extraction(self.view, blob)?;
            for (doc, chunk) in docs {
                let Some(range) = extraction
                    .chunks
                    .get(chunk as usize)
                    .map(|chunk| chunk.range.as_usize())
                else {
                    continue;
                };
                let part = String::from_utf8_lossy(text.get(range.clone()).unwrap_or_default());
                let verbatim = wanted.find(&part, range.start);
                if verbatim.is_long() || !only_long && verbatim.is_message() {
                    by_doc.insert(doc, verbatim);
                }
            }
            opened.texts.insert(file, Some(text));
        }
        Ok(Pasted {
            has_values: wanted.has_values && !by_doc.is_empty(),
            by_doc,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(query: &str, text: &str) -> Verbatim {
        Wanted::new(query, |_| 1.0).find(text, 0)
    }

    #[test]
    fn words_side_by_side_are_found() {
        let text = "a = 1\n# Supports key rotation: the newest\n";
        let found = find("key rotation", text);
        assert!(found.is_message() && found.share == 1.0);
        assert!(text[found.at..].starts_with("key rotation"));
        assert_eq!(find("rotation key", text).share, 0.0);
        assert!(!find("key rotation of secrets", text).is_message());
    }

    #[test]
    fn placeholders_escapes_and_line_breaks_are_skipped() {
        let text = "raise Error(\"cannot open lock file {path}:\\n\"\n    \"another process holds it\")";
        let found = find("error: cannot open lock file /tmp/x: another process holds it", text);
        assert!(found.is_message(), "{found:?}");
        assert!(text[found.at..].starts_with("Error(\"cannot open"));
    }

    #[test]
    fn values_need_not_be_in_the_file() {
        let text = "throw `Failed to resolve import ${url} from ${importer}. Does the file exist?`";
        let found = find(
            "Failed to resolve import \"./foo\" from \"src/main.ts\". Does the file exist?",
            text,
        );
        assert!(found.is_message(), "{found:?}");
        let found = find(
            "can't read 3 of 17 rows in shard table",
            "can't read %d of %d rows in shard table",
        );
        assert!(found.is_message(), "{found:?}");
        assert!(!find("rows \"shard table\"", "rows of it").is_message());
    }

    #[test]
    fn function_words_alone_are_no_message() {
        assert_eq!(
            find("is it in the file", "it is in the other one; is it in the end").share,
            0.0
        );
    }
}
