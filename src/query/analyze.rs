//! Classifies a query as a name or as a description, and extracts its terms.

use std::collections::HashSet;

use crate::index::lexical::{for_each_word, is_stop_word, normal_name, words};

/// Words that name a kind of definition, such as `function`, and are not part of a definition's name.
const KIND_WORDS: &[&str] = &[
    "class",
    "const",
    "constant",
    "constructor",
    "def",
    "enum",
    "field",
    "fn",
    "func",
    "function",
    "impl",
    "interface",
    "macro",
    "method",
    "module",
    "object",
    "property",
    "protocol",
    "struct",
    "trait",
    "type",
    "variable",
];
/// Maximum number of words in a name. A longer query is prose even without function words.
const MAX_NAME_WORDS: usize = 5;

/// The result of analyzing a query.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Analysis {
    /// The terms to look up, without duplicates. Function words are omitted unless the query has nothing else.
    pub(super) terms: Vec<String>,
    /// Names that a definition may have, normalized by [`normal_name`]: all words of the query joined, and words that
    /// look like identifiers.
    pub(super) names: Vec<NameQuery>,
    /// True if the query is a name rather than a description.
    pub(super) is_name: bool,
}

/// A name to search for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NameQuery {
    /// The bare name, normalized by [`normal_name`].
    pub(super) name: String,
    /// The bare name as typed.
    pub(super) typed: String,
    /// The container given in the query: `Parser` in `Parser::parse`.
    pub(super) container: Option<String>,
}

pub(super) fn analyze(query: &str) -> Analysis {
    let plain: Vec<&str> = words(query).map(|(_, word)| word).collect();
    let is_function_word = |word: &&str| is_stop_word(&word.to_lowercase());
    let n_function_words = plain.iter().filter(|word| is_function_word(word)).count();
    let telling: Vec<&str> = plain.iter().copied().filter(|word| !is_function_word(word)).collect();
    let telling = if telling.is_empty() { plain.clone() } else { telling };

    let paths = identifier_paths(query);
    let is_name = !plain.is_empty()
        && n_function_words == 0
        && (telling.len() <= MAX_NAME_WORDS && !query.contains(['?', ',']) || paths.len() == telling.len());
    let mut names = paths;
    let bare: Vec<&str> = telling
        .iter()
        .copied()
        .filter(|word| !KIND_WORDS.contains(&word.to_lowercase().as_str()))
        .collect();
    let bare = if bare.is_empty() { telling.clone() } else { bare };
    if is_name {
        let joined = NameQuery {
            name: normal_name(&bare.concat()),
            typed: bare.concat(),
            container: None,
        };
        let is_known = names
            .iter()
            .any(|known: &NameQuery| known.name == joined.name && known.container.is_none());
        if !is_known && !joined.name.is_empty() {
            names.push(joined);
        }
        // `nodetraversor traverse`: the last word may be a member of the name before it.
        if let [container @ .., last] = bare.as_slice()
            && !container.is_empty()
        {
            names.push(NameQuery {
                name: normal_name(last),
                typed: (*last).to_owned(),
                container: Some(normal_name(&container.concat())),
            });
        }
    }
    let mut terms = Vec::new();
    let mut seen = HashSet::new();
    let searched = if is_name && !bare.is_empty() { &bare } else { &telling };
    for word in searched {
        for_each_word(word, &mut |term: &str| {
            if !seen.contains(term) {
                seen.insert(term.to_owned());
                terms.push(term.to_owned());
            }
        });
    }
    if is_name && bare.len() > 1 {
        let joined = normal_name(&bare.concat());
        if !terms.contains(&joined) {
            terms.push(joined);
        }
    }
    Analysis { terms, names, is_name }
}

/// Finds names written as code: `snake_case`, `camelCase`, `Type::method`, `object.field`, `Type#method`, `call()`.
fn identifier_paths(query: &str) -> Vec<NameQuery> {
    let is_trim = |c: char| !(c.is_alphanumeric() || c == '_');
    let mut found = Vec::new();
    for token in query.split_whitespace() {
        let called = token.trim_end_matches([',', '?', ';', ':', '.']).ends_with("()");
        let token = token.trim_matches(is_trim);
        let segments: Vec<&str> = token
            .split([':', '.', '#', '-', '>', '/'])
            .filter(|segment| !segment.is_empty())
            .collect();
        let is_word = |segment: &&str| segment.chars().all(|c| c.is_alphanumeric() || c == '_');
        if segments.is_empty() || !segments.iter().all(is_word) {
            continue;
        }
        // In prose, words may be joined by a hyphen or slash too.
        let is_path = segments.len() > 1 && !["/", "-"].iter().any(|joint| token.replace("->", "").contains(joint));
        if !(is_path || called || segments.len() == 1 && looks_like_code(segments[0])) {
            continue;
        }
        let name = normal_name(segments[segments.len() - 1]);
        let container = (segments.len() > 1).then(|| normal_name(segments[segments.len() - 2]));
        if !name.is_empty() {
            found.push(NameQuery {
                name,
                typed: segments[segments.len() - 1].to_owned(),
                container,
            });
        }
    }
    found
}

/// Returns true if a word has an inner `_` or a capital after a lower-case letter, and is therefore unlikely to be
/// prose.
pub(super) fn looks_like_code(word: &str) -> bool {
    let inner = word.trim_matches('_');
    inner.contains('_')
        || inner
            .as_bytes()
            .windows(2)
            .any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(query: &str) -> Vec<(String, Option<String>)> {
        analyze(query)
            .names
            .into_iter()
            .map(|n| (n.name, n.container))
            .collect()
    }

    #[test]
    fn names_are_known_in_every_spelling() {
        let one = |name: &str| vec![(name.to_owned(), None)];
        assert_eq!(names("parse_query"), one("parsequery"));
        assert_eq!(names("ParseQuery"), one("parsequery"));
        assert_eq!(
            names("OwnerFilter::from_string")[0],
            ("fromstring".to_owned(), Some("ownerfilter".to_owned()))
        );
        assert_eq!(
            names("invalid argument error class")[0],
            ("invalidargumenterror".to_owned(), None)
        );
        assert_eq!(
            names("weakable map")[1],
            ("map".to_owned(), Some("weakable".to_owned()))
        );
    }

    #[test]
    fn a_word_for_a_kind_can_be_a_name() {
        assert_eq!(names("Macro"), [("macro".to_owned(), None)]);
    }

    #[test]
    fn prose_is_not_a_name() {
        let analysis = analyze("where is a failed upload retried");
        assert!(!analysis.is_name && analysis.names.is_empty());
        assert_eq!(analysis.terms, ["fail", "upload", "retri"]);
        assert_eq!(
            names("how does parse_query handle quotes"),
            [("parsequery".to_owned(), None)]
        );
    }

    #[test]
    fn function_words_alone_are_searched() {
        assert_eq!(analyze("what is this").terms, ["what", "is", "this"]);
        assert!(analyze("… ?!").terms.is_empty());
    }
}
