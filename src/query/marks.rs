//! Finds the parts of a line that a query looks for, to highlight them.

use std::collections::HashSet;

use super::analyze::analyze;
use super::pattern::Pattern;
use crate::index::lexical::{for_each_word, words};

/// The parts of a line that a query looks for.
#[derive(Clone, Debug)]
pub enum Marks {
    /// The matches of a pattern.
    Matches(Pattern),
    /// Words with one of these terms.
    Words(HashSet<String>),
}

impl Marks {
    /// Marks the words of a ranked query.
    pub fn of_query(query: &str) -> Self {
        Self::Words(analyze(query).terms.into_iter().collect())
    }

    /// Returns the parts of a line as byte ranges, in order.
    pub fn spans(&self, line: &str) -> Vec<(u32, u32)> {
        let terms = match self {
            Self::Words(terms) => terms,
            Self::Matches(pattern) => {
                // A pattern can match a part of a character.
                let is_text = |(start, end): &(u32, u32)| line.get(*start as usize..*end as usize).is_some();
                return pattern.spans(line.as_bytes()).into_iter().filter(is_text).collect();
            }
        };
        let is_meant = |word: &str| {
            let mut is_meant = false;
            for_each_word(word, &mut |term: &str| is_meant |= terms.contains(term));
            is_meant
        };
        let meant = words(line).filter(|(_, word)| is_meant(word));
        meant.map(|(at, word)| (at as u32, (at + word.len()) as u32)).collect()
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::query::PatternOptions;

    fn marked(marks: &Marks, line: &'static str) -> Vec<&'static str> {
        let spans = marks.spans(line).into_iter();
        spans.map(|(start, end)| &line[start as usize..end as usize]).collect()
    }

    #[test]
    fn words_are_marked_in_every_form() {
        let marks = Marks::of_query("where is a failed upload retried");
        let line = "retry_upload(file) // a retry is for uploads that fail";
        assert_eq!(marked(&marks, line), ["retry_upload", "retry", "uploads", "fail"]);
    }

    #[test]
    fn matches_of_a_pattern_are_marked() {
        let pattern = Pattern::new("fn \\w+", PatternOptions::default()).unwrap();
        assert_eq!(
            marked(&Marks::Matches(pattern), "pub fn a() { fn b() {} }"),
            ["fn a", "fn b"]
        );
    }
}
