//! Classifies a query as a name or as a description, and extracts its terms.

use std::collections::HashSet;

use super::printed::{PrintedName, printed_names};
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
/// Number of segments of a qualified name, from the last, whose words are searched. Those before are packages.
const MAX_TERM_SEGMENTS: usize = 3;

/// Words before a name in a printed form that are no part of it.
const LEADING: &[&str] = &[
    "async",
    "await",
    "new",
    "private",
    "protected",
    "public",
    "static",
    "virtual",
    "void",
];

/// The result of analyzing a query.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Analysis {
    /// The terms to look up, without duplicates. Function words are omitted unless the query has nothing else.
    pub(super) terms: Vec<String>,
    /// The number of terms, from the first, that are words of the query. The others are made of several words.
    pub(super) n_words: usize,
    /// Names that a definition may have, normalized by [`normal_name`]: words that look like identifiers and, of few
    /// words, all joined.
    pub(super) names: Vec<NameQuery>,
    /// The form of the query.
    pub(super) form: Form,
    /// True for a few words without function words.
    pub(super) is_short: bool,
    /// All words of a few with function words, joined. If a definition has this name, it is meant.
    pub(super) whole: Option<NameQuery>,
}

/// The forms of queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A name, as code or a program writes it.
    Name,
    /// A few words without function words: a name if a definition has it, else a description.
    Words,
    /// A description.
    Prose,
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
    /// True if words were only assumed to form this name. Definitions outside the container are no evidence for it.
    pub(super) is_guess: bool,
}

impl NameQuery {
    fn new(typed: &str, container: Option<&str>, is_guess: bool) -> Self {
        Self {
            name: normal_name(typed),
            typed: typed.to_owned(),
            container: container.map(normal_name),
            is_guess,
        }
    }
}

pub(super) fn analyze(query: &str) -> Analysis {
    let printed = printed_names(query);
    let is_leading = |name: &PrintedName| !name.is_code && LEADING.contains(&name.segments[0].as_str());
    let n_leading = printed.iter().take_while(|name| is_leading(name)).count();
    let printed = if n_leading < printed.len() {
        &printed[n_leading..]
    } else {
        &printed[..]
    };
    let is_kind = |name: &PrintedName| !name.is_code && KIND_WORDS.contains(&name.segments[0].to_lowercase().as_str());
    let (code, plain): (Vec<&PrintedName>, Vec<&PrintedName>) = printed.iter().partition(|name| name.is_code);
    let mut names = Vec::new();
    code.iter().for_each(|name| add_names(name, &mut names));
    if !code.is_empty() && plain.iter().all(|name| is_kind(name)) {
        let segments = code
            .iter()
            .flat_map(|name| name.segments.iter().rev().take(MAX_TERM_SEGMENTS).rev());
        let terms = terms_of(segments.map(String::as_str));
        return Analysis {
            n_words: terms.len(),
            terms,
            names,
            form: Form::Name,
            is_short: true,
            whole: None,
        };
    }

    let words: Vec<&str> = words(query).map(|(_, word)| word).collect();
    let is_function_word = |word: &&str| is_stop_word(&word.to_lowercase());
    let telling: Vec<&str> = words.iter().copied().filter(|word| !is_function_word(word)).collect();
    // A mark can belong to a name: `Response success?`.
    let is_question = query.contains('?') && words.len() > 2;
    let is_few = words.len() <= MAX_NAME_WORDS && !is_question && !query.contains(',');
    let has_function_words = telling.len() < words.len();
    if !is_few || telling.is_empty() {
        names.extend(members(printed));
        let telling = if telling.is_empty() { words } else { telling };
        return Analysis {
            names,
            ..described(&telling)
        };
    }
    if has_function_words {
        names.extend(members(printed));
        return Analysis {
            names,
            whole: Some(NameQuery::new(&words.concat(), None, false)),
            ..described(&telling)
        };
    }
    let bare: Vec<&str> = telling
        .iter()
        .copied()
        .filter(|word| !KIND_WORDS.contains(&word.to_lowercase().as_str()))
        .collect();
    let bare = if bare.is_empty() { telling } else { bare };
    let joined = NameQuery::new(&bare.concat(), None, false);
    if !names
        .iter()
        .any(|known: &NameQuery| known.name == joined.name && known.container.is_none())
    {
        names.push(joined);
    }
    // `nodetraversor traverse`: the last word may be a member of the name before it.
    if let [container @ .., last] = bare.as_slice()
        && !container.is_empty()
    {
        names.push(NameQuery::new(last, Some(&container.concat()), true));
    }
    if let (Some(mark @ ('?' | '!')), Some((last, container))) =
        (query.trim_end().chars().next_back(), bare.split_last())
    {
        let is_member = !container.is_empty();
        let container = container.concat();
        names.push(NameQuery::new(
            &format!("{last}{mark}"),
            is_member.then_some(&container),
            is_member,
        ));
    }
    let mut terms = terms_of(bare.iter().copied());
    let n_words = terms.len();
    let joined = normal_name(&bare.concat());
    if bare.len() > 1 && !terms.contains(&joined) {
        terms.push(joined);
    }
    Analysis {
        terms,
        n_words,
        names,
        form: Form::Words,
        is_short: true,
        whole: None,
    }
}

impl Analysis {
    /// Decides that the query of a few words is a description, because no definition has it as its name.
    pub(super) fn as_description(&self, query: &str) -> Self {
        let is_telling = |word: &&str| !is_stop_word(&word.to_lowercase());
        let telling: Vec<&str> = words(query).map(|(_, word)| word).filter(is_telling).collect();
        Self {
            names: self.names.clone(),
            is_short: self.is_short,
            ..described(&telling)
        }
    }

    /// Decides that the query is the name that all its words form, if that is the name of a definition.
    pub(super) fn as_whole(&self) -> Option<Self> {
        let whole = self.whole.clone()?;
        Some(Self {
            names: vec![whole],
            form: Form::Words,
            ..self.clone()
        })
    }

    /// True if the query is a name, not a description.
    pub(super) fn is_name(&self) -> bool {
        self.form != Form::Prose
    }
}

fn described(telling: &[&str]) -> Analysis {
    let terms = terms_of(telling.iter().copied());
    Analysis {
        n_words: terms.len(),
        terms,
        names: Vec::new(),
        form: Form::Prose,
        is_short: false,
        whole: None,
    }
}

/// Returns the terms of words, without duplicates.
fn terms_of<'w>(words: impl Iterator<Item = &'w str>) -> Vec<String> {
    let (mut terms, mut seen) = (Vec::new(), HashSet::new());
    for word in words {
        for_each_word(word, &mut |term: &str| {
            if !seen.contains(term) {
                seen.insert(term.to_owned());
                terms.push(term.to_owned());
            }
        });
    }
    terms
}

/// Adds the names that a definition of a printed name may have.
fn add_names(printed: &PrintedName, names: &mut Vec<NameQuery>) {
    let is_numbered = |segment: &str| {
        segment
            .strip_prefix("func")
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let segments: Vec<&str> = printed.segments.iter().map(String::as_str).collect();
    // Functions without a name in Go: `run.func1`.
    let n_numbered = segments.iter().rev().take_while(|segment| is_numbered(segment)).count();
    let segments = if n_numbered < segments.len() {
        &segments[..segments.len() - n_numbered]
    } else {
        &segments[..]
    };
    // The method that runs an asynchronous one in C#.
    let segments = match segments {
        [outer @ .., "MoveNext"] if !outer.is_empty() => outer,
        all => all,
    };
    let Some((last, outer)) = segments.split_last() else {
        return;
    };
    let container = outer.last().copied();
    let mut add = |name: &str| {
        if !normal_name(name).is_empty() {
            names.push(NameQuery::new(name, container, false));
        }
    };
    add(last);
    // A mark may belong to the sentence, and an accessor to its property.
    let bare = last.trim_end_matches(['?', '!', '=']);
    if bare.len() < last.len() {
        add(bare);
    }
    if let (Some(property), true) = (
        last.strip_prefix("get_").or(last.strip_prefix("set_")),
        container.is_some(),
    ) {
        add(property);
    }
}

/// Returns the members that a sentence names with their type: `parse_args of Command`, `Command's parse_args`.
fn members(printed: &[PrintedName]) -> Vec<NameQuery> {
    let last = |name: &PrintedName| name.segments.last().cloned().unwrap_or_default();
    let is_type = |name: &PrintedName| last(name).starts_with(char::is_uppercase);
    let mut found = Vec::new();
    for at in 0..printed.len() {
        let word = |offset: usize| printed.get(at + offset).map(last).unwrap_or_default();
        let is_kind = KIND_WORDS.contains(&word(1).as_str());
        let joint = if is_kind { 2 } else { 1 };
        if ["of", "in", "from", "on"].contains(&word(joint).as_str()) {
            let skipped = usize::from(["the", "class", "a"].contains(&word(joint + 1).as_str()));
            if let Some(of) = printed.get(at + joint + 1 + skipped).filter(|of| is_type(of)) {
                found.push(NameQuery::new(&word(0), Some(&last(of)), true));
            }
        } else if is_type(&printed[at]) {
            // The `s` of a genitive is a word of its own.
            let member = if word(1) == "s" { word(2) } else { word(1) };
            if !member.is_empty() && !is_stop_word(&member) {
                found.push(NameQuery::new(&member, Some(&word(0)), true));
            }
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
        assert!(analysis.form == Form::Prose && analysis.names.is_empty());
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
