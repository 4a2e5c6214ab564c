//! Finds known names that resemble an unknown one.

use strsim::{levenshtein, osa_distance};

/// Maximum number of names returned.
const MAX_NEAR: usize = 3;
/// Maximum edit distance between similar names.
const MAX_EDITS: usize = 3;

/// Collects the candidates most similar to a name, best first. A candidate is similar if it contains the name or
/// differs in few letters.
#[derive(Clone, Debug)]
pub struct Near {
    given: String,
    wanted: String,
    /// The distance without and with regard to case, and the name.
    found: Vec<((usize, usize), String)>,
}

impl Near {
    /// Creates a collector for a name as given.
    pub fn new(wanted: &str) -> Self {
        Self {
            given: wanted.to_owned(),
            wanted: wanted.to_lowercase(),
            found: Vec::new(),
        }
    }

    /// Considers one candidate.
    pub fn see(&mut self, candidate: &str) {
        let max = (self.wanted.chars().count() / 4 + 1).min(MAX_EDITS);
        if candidate.chars().count() > 4 * self.wanted.chars().count() + 40 {
            return;
        }
        let lower = candidate.to_lowercase();
        let distance = match edits(&self.wanted, &lower, max) {
            Some(distance) => distance,
            None if self.wanted.len() > 2 && lower.contains(&self.wanted) => max + 1,
            None => return,
        };
        let with_case = levenshtein(&self.given, candidate);
        self.found.push(((distance, with_case), candidate.to_owned()));
        if self.found.len() > 64 * MAX_NEAR {
            self.settle();
        }
    }

    /// Returns the most similar candidates, without duplicates.
    pub fn best(mut self) -> Vec<String> {
        self.settle();
        self.found.into_iter().map(|(_, name)| name).collect()
    }

    fn settle(&mut self) {
        self.found
            .sort_unstable_by(|a, b| (a.0, a.1.len(), &a.1).cmp(&(b.0, b.1.len(), &b.1)));
        self.found.dedup();
        self.found.truncate(MAX_NEAR);
    }
}

/// Returns the names of a list that are most similar to `wanted`.
pub fn nearest<'a>(wanted: &str, candidates: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut near = Near::new(wanted);
    candidates.for_each(|candidate| near.see(candidate));
    near.best()
}

/// Returns the number of letters to add, remove, replace or swap with the next to get from one text to another, or
/// `None` if it is greater than `max`.
pub(super) fn edits(a: &str, b: &str, max: usize) -> Option<usize> {
    let is_near = a.chars().count().abs_diff(b.chars().count()) <= max;
    is_near.then(|| osa_distance(a, b)).filter(|&distance| distance <= max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_are_forgiven() {
        let known = ["parse_query", "parse_queries", "write", "index.max_blob_bytes"];
        assert_eq!(
            nearest("parse_qurey", known.into_iter()),
            ["parse_query", "parse_queries"]
        );
        assert_eq!(nearest("max_blob", known.into_iter()), ["index.max_blob_bytes"]);
        let spellings = ["parse_query", "ParseQuery", "PARSE_QUERY"];
        assert_eq!(nearest("ParseQeury", spellings.into_iter())[0], "ParseQuery");
        assert_eq!(nearest("zebra", known.into_iter()), Vec::<String>::new());
    }
}
