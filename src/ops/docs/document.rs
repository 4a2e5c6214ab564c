//! A document with what it mentions.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use super::mention::{Markup, Mention, Referent, imported, mentions};
use crate::model::RepoPath;

/// A document.
pub(super) struct Document {
    pub(super) path: RepoPath,
    pub(super) text: String,
    pub(super) mentions: Vec<Mention>,
    words: Words,
    line_ends: Vec<usize>,
    /// The names that its examples import, with the first part of the name of each module.
    imported: OnceCell<HashMap<String, String>>,
}

impl Document {
    /// Returns the document with this content; `None` if it is not UTF-8.
    pub(super) fn new(path: RepoPath, bytes: Vec<u8>, markup: Markup) -> Option<Self> {
        let text = String::from_utf8(bytes).ok()?;
        Some(Self {
            mentions: mentions(&text, markup),
            words: Words::of(&text),
            imported: OnceCell::new(),
            line_ends: memchr::memchr_iter(b'\n', text.as_bytes()).collect(),
            path,
            text,
        })
    }

    pub(super) fn text(&self, mention: &Mention) -> &str {
        &self.text[mention.range.clone()]
    }

    /// Returns the path or heading that a mention means with a range of the document.
    pub(super) fn read(&self, mention: &Mention, range: &Range<usize>) -> Cow<'_, str> {
        mention.spelling.read(&self.text[range.clone()])
    }

    /// Returns true if a name is written as a call, or as the argument of a role or directive.
    pub(super) fn is_code(&self, mention: &Mention) -> bool {
        let (before, after) = (&self.text[..mention.range.start], &self.text[mention.range.end..]);
        let before = before.trim_end_matches(['`', '~', '!']);
        after.starts_with('(') || before.ends_with([':', '}']) || before.trim_end().ends_with("::")
    }

    /// Returns the mentioned names of definitions.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let names = self
            .mentions
            .iter()
            .filter(|mention| mention.referent == Referent::Name);
        names.map(|mention| self.text(mention))
    }

    /// Returns the number of the line of a mention.
    pub(super) fn line_of(&self, mention: &Mention) -> u32 {
        self.line_ends.partition_point(|end| *end < mention.range.start) as u32 + 1
    }

    /// Returns the word at a mention, with the words before and after it.
    pub(super) fn context(&self, mention: &Mention) -> &[u64] {
        self.words.around(mention.range.start)
    }

    /// Returns the first part of the name of the module from which an example imports a name.
    pub(super) fn module_of(&self, name: &str) -> Option<&str> {
        let imported = self.imported.get_or_init(|| imported(&self.text));
        imported.get(name).map(String::as_str)
    }
}

/// The hashes of the words of a text, with where each starts.
struct Words {
    starts: Vec<usize>,
    hashes: Vec<u64>,
}

impl Words {
    fn of(text: &str) -> Self {
        let start = |word: &str| word.as_ptr() as usize - text.as_ptr() as usize;
        let words = text.split_whitespace();
        let (starts, hashes) = words.map(|word| (start(word), hash(word))).unzip();
        Self { starts, hashes }
    }

    /// Returns the word at a position, with the words before and after it.
    fn around(&self, at: usize) -> &[u64] {
        let n_before = self.starts.partition_point(|start| *start <= at);
        let last = (n_before + 1).min(self.hashes.len());
        &self.hashes[n_before.saturating_sub(2)..last]
    }
}

/// The sequences of up to three words of a text.
pub(super) struct Phrases(HashSet<u64>);

impl Phrases {
    pub(super) fn of(text: &str) -> Self {
        let words = Words::of(text).hashes;
        let phrases = (1..=3).flat_map(|n_words| words.windows(n_words));
        Self(phrases.map(hash).collect())
    }

    pub(super) fn contains(&self, words: &[u64]) -> bool {
        self.0.contains(&hash(words))
    }
}

fn hash<T: Hash + ?Sized>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Returns the part of a name before the last.
pub(super) fn qualifier(name: &str) -> Option<&str> {
    parts(name).rev().nth(1)
}

pub(super) fn parts(name: &str) -> impl DoubleEndedIterator<Item = &str> {
    name.split(['.', ':', '#', '>', '-']).filter(|part| !part.is_empty())
}

pub(super) fn last_part(name: &str) -> &str {
    parts(name).next_back().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_around_a_mention_are_its_context() {
        let text = "Call\n  `parse()`, then\nstop";
        let is_in = |at: usize, old: &str| Phrases::of(old).contains(Words::of(text).around(at));
        let at = text.find("parse").unwrap_or_default();
        assert!(is_in(at, "Do: Call `parse()`,\tthen go"));
        for other in ["Call `parse()` then", "call `parse()`, then", "`parse()`, then", ""] {
            assert!(!is_in(at, other), "{other}");
        }
        assert!(is_in(0, "x Call `parse()`, y") && is_in(text.len() - 1, "then stop"));
        assert!(Words::of("").around(0).is_empty());
    }
}
