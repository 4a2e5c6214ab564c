//! Helper functions that several languages use to read the text of nodes.

use tree_sitter::Node;

use crate::extract::rules::{Named, range_of};
use crate::extract::types::{Arity, DefinitionKind, Import, ImportedName};
use crate::extract::walk::{Cx, children};
use crate::model::ByteRange;

/// Returns the range of a string literal without prefix and quotes.
pub(super) fn unquoted(cx: &Cx<'_, '_>, node: Node<'_>) -> ByteRange {
    let range = range_of(node);
    let text = cx.slice(range);
    let inner = text.trim_start_matches(|c: char| c.is_ascii_alphabetic() || c == '@' || c == '$' || c == '#');
    let inner = if inner.starts_with(['"', '\'', '`']) {
        inner
    } else {
        text
    };
    let start = text.len() - inner.trim_start_matches(['"', '\'', '`']).len();
    let end = inner.trim_end_matches(['"', '\'', '`', '#']).len() + (text.len() - inner.len());
    if start >= end {
        return ByteRange::new(range.end, range.end);
    }
    ByteRange::new(range.start + start as u32, range.start + end as u32)
}

/// Counts the parameters that are children of `list`. Those with a default value behind a `=` are optional. One that ends
/// with `...` or has the modifier `vararg` takes any number of arguments.
pub(super) fn parameters_in(cx: &Cx<'_, '_>, list: Node<'_>) -> Arity {
    let mut cursor = list.walk();
    let (mut n, mut n_optional, mut is_variadic) = (0, 0, false);
    for child in list.children(&mut cursor) {
        match child.kind() {
            "parameter" => {
                n += 1;
                is_variadic |= cx.text(child).ends_with("...");
            }
            "=" => n_optional += 1,
            "parameter_modifiers" => is_variadic |= cx.text(child).contains("vararg"),
            _ => {}
        }
    }
    Arity::variadic(n, n_optional, usize::from(is_variadic))
}

/// Returns the first child whose kind ends with `_type`.
pub(super) fn type_in(node: Node<'_>) -> Option<Node<'_>> {
    children(node).into_iter().find(|child| child.kind().ends_with("_type"))
}

/// Returns true if `name` is spelled like a constant: `MAX_TRIES`, `K8S`.
pub(super) fn is_screaming(name: &str) -> bool {
    name.len() > 1
        && name.bytes().any(|byte| byte.is_ascii_uppercase())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_' || byte == b'$')
}

/// Returns [`DefinitionKind::Constant`] for a name spelled like a constant, otherwise [`DefinitionKind::Variable`].
pub(super) fn variable_kind(name: &str) -> DefinitionKind {
    if is_screaming(name) {
        DefinitionKind::Constant
    } else {
        DefinitionKind::Variable
    }
}

/// Creates a variable or a constant named by `node`, depending on the spelling of the name.
pub(super) fn variable(cx: &Cx<'_, '_>, node: Node<'_>) -> Named {
    Named::at(node).of(variable_kind(cx.text(node)))
}

/// Returns `text` without surrounding white space and quotes.
pub(super) fn without_quotes(text: &str) -> &str {
    text.trim().trim_matches(['"', '\'', '`'])
}

/// Creates an imported name.
pub(super) fn imported(name: &str, alias: Option<&str>) -> ImportedName {
    ImportedName {
        name: name.to_owned(),
        alias: alias.map(str::to_owned),
    }
}

/// Creates an import of a whole module.
pub(super) fn import_of(module: &str, node: Node<'_>) -> Import {
    Import {
        module: module.to_owned(),
        names: Vec::new(),
        is_reexport: false,
        range: range_of(node),
        scope: None,
    }
}

/// Replaces everything in `text` except white space by spaces.
pub(super) fn blank(text: &mut [u8]) {
    for byte in text.iter_mut().filter(|byte| !byte.is_ascii_whitespace()) {
        *byte = b' ';
    }
}

/// Returns true if a quoted text can be a type of Python. Two words without punctuation between them are prose.
pub(crate) fn is_quoted_type(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_prose = |pair: &[&str]| pair[0].ends_with(is_word) && pair[1].starts_with(is_word);
    let is_known = |c: char| is_word(c) || c.is_whitespace() || ".,|[]()".contains(c);
    let is_call = |before: &str| before.ends_with(is_word);
    let mut before_parentheses = text.rsplit('(').skip(1);
    !words.is_empty()
        && text.chars().all(is_known)
        && !words.windows(2).any(is_prose)
        && !before_parentheses.any(is_call)
}

/// Returns true for a letter, digit or underscore of ASCII.
pub(super) fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Returns true for a part of a name.
pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
