//! Finds the words of code that are a name, also those that the facts of a file do not have.

use tree_sitter::{Node, Tree};

use super::rules::{Grammar, Zone};
use crate::model::ByteRange;

/// A word of code that is a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// Its range.
    pub range: ByteRange,
    /// Its kind.
    pub kind: WordKind,
}

/// The kind of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum WordKind {
    /// An identifier.
    Name,
    /// A field and the variable with its value: `{ name }`.
    Shorthand,
    /// The same in a pattern, which binds the variable.
    ShorthandPattern,
    /// The field in `{ name: variable }`, in a pattern.
    PatternKey,
    /// The name of an argument.
    Label,
    /// A string, or the name in a format string.
    String,
    /// A string in `__all__`, which names what a module exports.
    Exported,
}

impl WordKind {
    /// Returns the kind with the given number.
    pub fn from_number(number: u8) -> Option<Self> {
        [
            Self::Name,
            Self::Shorthand,
            Self::ShorthandPattern,
            Self::PatternKey,
            Self::Label,
            Self::String,
            Self::Exported,
        ]
        .into_iter()
        .find(|kind| *kind as u8 == number)
    }
}

/// Returns the words that are `name`, in source order. Comments and longer strings have none.
pub(super) fn words(tree: &Tree, src: &[u8], name: &str, grammar: &Grammar) -> Vec<Word> {
    let mut words = Vec::new();
    let mut cursor = tree.walk();
    let mut outer: Vec<Node<'_>> = Vec::new();
    loop {
        let node = cursor.node();
        if node.child_count() == 0 {
            let text = src.get(node.start_byte()..node.end_byte()).unwrap_or_default();
            let place = (outer.last().map_or("", Node::kind), cursor.field_name());
            if text == name.as_bytes() {
                let range = ByteRange::new(node.start_byte() as u32, node.end_byte() as u32);
                let zone = grammar.zone.zip(outer.last());
                let around = outer.iter().rev().nth(1).map_or("", Node::kind);
                let kind = match zone.and_then(|(find, parent)| find(node, *parent, around, src)) {
                    Some(Zone::Label) => Some(WordKind::Label),
                    _ => kind_of(node, place, &outer, src),
                };
                words.extend(kind.map(|kind| Word { range, kind }));
            } else if node.kind() == "string_content" {
                words.extend(formatted(text, name, node.start_byte()));
            }
        }
        if cursor.goto_first_child() {
            outer.push(node);
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return words;
            }
            outer.pop();
        }
    }
}

fn kind_of(node: Node<'_>, (parent, field): (&str, Option<&str>), outer: &[Node<'_>], src: &[u8]) -> Option<WordKind> {
    Some(match (node.kind(), parent) {
        ("shorthand_property_identifier_pattern" | "shorthand_field_identifier", _) => WordKind::ShorthandPattern,
        ("shorthand_property_identifier", _) | (_, "shorthand_field_initializer") => WordKind::Shorthand,
        (_, "pair_pattern") if field == Some("key") => WordKind::PatternKey,
        (_, "keyword_argument") if field == Some("name") => WordKind::Label,
        ("statement_identifier" | "label_name", _) | (_, "lifetime" | "label") => return None,
        (kind, _) if kind.contains("comment") || kind.contains("doc") => return None,
        (kind, _) if kind.contains("content") || kind.contains("string") || kind.contains("fragment") => {
            let lists = |node: &Node<'_>| {
                node.kind().ends_with("assignment") && src[node.start_byte()..].starts_with(b"__all__")
            };
            if outer.iter().rev().take(6).any(lists) {
                WordKind::Exported
            } else {
                WordKind::String
            }
        }
        _ if !node.is_named() => return None,
        _ => WordKind::Name,
    })
}

/// Returns the places of `{name}` and `{name:…}` in a format string of Rust.
fn formatted(text: &[u8], name: &str, start: usize) -> impl Iterator<Item = Word> {
    let sought = format!("{{{name}");
    let ends = |at: &usize| matches!(text.get(at + sought.len()), Some(b'}' | b':'));
    let found: Vec<usize> = memchr::memmem::find_iter(text, &sought).filter(ends).collect();
    found.into_iter().map(move |at| {
        let first = (start + at + 1) as u32;
        let range = ByteRange::new(first, first + sought.len() as u32 - 1);
        Word {
            range,
            kind: WordKind::String,
        }
    })
}
