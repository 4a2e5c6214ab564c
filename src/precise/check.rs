//! Checks what an index says about a file against the text of the file.

use std::collections::{HashMap, HashSet};

use super::positions::Positions;
use super::scip::{Document, RawOccurrence, ScipError};
use super::symbol::Symbol;
use crate::model::ColumnUnit;

/// Share of the names in percent that can be something else than the index says.
const MAX_WRONG_PERCENT: usize = 10;
/// Maximum length of a name.
const MAX_WORD_BYTES: usize = 1024;
/// Number of names from which a file can consist of aliases alone, such as one that exports other files again. In another
/// text, so many places are hardly ever whole words.
const MIN_ALIASES: usize = 4;

/// A name in a file: its start, its symbol, and whether it is that of a definition.
pub type Name<'a> = (u32, &'a str, bool);

/// The facts about a file that fit its text.
#[derive(Debug, Default)]
pub struct Checked<'a> {
    /// The names with global symbols.
    pub(super) names: Vec<Name<'a>>,
    /// Number of names with local symbols, which are not kept.
    pub n_local: usize,
    /// Number of other occurrences that are not kept: they are no single word, or not the name of their symbol.
    pub n_left_out: usize,
    pub(super) n_equal: usize,
}

/// The reason why an index does not describe a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// A range is outside of the file, or its form is unknown.
    Range,
    /// The index has another text of the file, or other names are where the index says.
    Text,
}

impl<'a> Checked<'a> {
    /// Returns the number of names that are kept.
    pub fn n_names(&self) -> usize {
        self.names.len()
    }
}

/// Checks the occurrences of a document against the text of the file. The outer error means that the index is no valid
/// message.
pub fn check<'a>(document: &Document<'a>, text: &[u8]) -> Result<Result<Checked<'a>, Mismatch>, ScipError> {
    if document
        .text
        .is_some_and(|expected| !expected.is_empty() && expected != text)
    {
        return Ok(Err(Mismatch::Text));
    }
    let encodings = match document.encoding {
        Some(encoding) => vec![encoding],
        None if text.is_ascii() => vec![ColumnUnit::Utf8],
        None => ColumnUnit::ALL.to_vec(),
    };
    let mut best: Result<Checked<'a>, Mismatch> = Err(Mismatch::Range);
    for encoding in encodings {
        let checked = check_as(document, text, encoding)?;
        let is_better = match (&checked, &best) {
            (Ok(new), Ok(old)) => new.n_equal > old.n_equal,
            (Err(Mismatch::Range), _) => false,
            (_, old) => old.is_err(),
        };
        if is_better {
            best = checked;
        }
    }
    Ok(best)
}

fn check_as<'a>(
    document: &Document<'a>,
    text: &[u8],
    encoding: ColumnUnit,
) -> Result<Result<Checked<'a>, Mismatch>, ScipError> {
    let positions = Positions::new(text, encoding);
    let mut checked = Checked::default();
    let (mut n_checked, mut n_wrong) = (0, 0);
    let mut aliases: HashMap<&str, &[u8]> = HashMap::new();
    let words = words(text);
    for occurrence in document.occurrences() {
        let RawOccurrence {
            range,
            symbol,
            is_definition,
        } = occurrence?;
        let bytes = range.and_then(|[line, start, end_line, end]| {
            let (start, end) = (positions.byte(line, start)?, positions.byte(end_line, end)?);
            let written = near(text.get(start..end)?);
            // The range of an import can include its alias: `name as alias`.
            let end = written.iter().position(|byte| *byte == b' ').unwrap_or(written.len());
            Some((start, &written[..end]))
        });
        let Some((start, written)) = bytes else {
            return Ok(Err(Mismatch::Range));
        };
        if symbol.is_empty() || symbol.starts_with("local ") {
            checked.n_local += 1;
            continue;
        }
        let Some(parts) = Symbol::parse(symbol) else {
            checked.n_left_out += 1;
            continue;
        };
        let is_module = is_module(&parts);
        let is_equal = is_named(&parts, written);
        let is_word = is_word(text, start, written);
        // A file imports a symbol under one other name at most, and says what it imports.
        let mut is_alias = || is_word && !is_definition && *aliases.entry(symbol).or_insert(written) == written;
        let fits = is_equal || !is_module && is_alias();
        if fits && !is_equal && !is_mentioned(&parts, &words) {
            // A default import names nothing, so this says nothing about the text.
            checked.n_left_out += 1;
            continue;
        }
        // An operator means the method that implements it.
        if !is_module && written.iter().any(is_part) {
            n_checked += 1;
            checked.n_equal += usize::from(is_equal);
            n_wrong += usize::from(!fits);
        }
        if is_word && fits {
            checked.names.push((start as u32, symbol, is_definition));
        } else {
            checked.n_left_out += 1;
        }
    }
    let has_names = checked.n_equal * 2 >= n_checked || n_wrong == 0 && n_checked >= MIN_ALIASES;
    if !has_names || n_wrong * 100 > n_checked * MAX_WRONG_PERCENT {
        return Ok(Err(Mismatch::Text));
    }
    Ok(Ok(checked))
}

/// Returns true if names that were checked elsewhere fit a text: all are whole words, and each is the name of its symbol
/// or the symbol's one alias. The symbols have no versions.
pub fn fits(names: &[Name<'_>], text: &[u8]) -> bool {
    let mut aliases: HashMap<&str, &[u8]> = HashMap::new();
    let words = words(text);
    names.iter().all(|&(start, symbol, is_definition)| {
        let start = start as usize;
        let rest = near(text.get(start..).unwrap_or_default());
        let written = &rest[..rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len())];
        let Some(parts) = Symbol::of_key(symbol).filter(|_| is_word(text, start, written)) else {
            return false;
        };
        is_named(&parts, written)
            || !is_module(&parts)
                && !is_definition
                && is_mentioned(&parts, &words)
                && *aliases.entry(symbol).or_insert(written) == written
    })
}

/// Returns the start of a text, in which a name ends. Many names at one long word take time in proportion to their number.
fn near(text: &[u8]) -> &[u8] {
    &text[..text.len().min(MAX_WORD_BYTES)]
}

/// Returns true for a module, which has no name of its own at its start, and which an import names by a path.
fn is_module(symbol: &Symbol<'_>) -> bool {
    matches!(symbol.suffix, b'/' | b':')
}

/// Returns true if a symbol is written like this. The name of a constructor is that of its type.
fn is_named(symbol: &Symbol<'_>, written: &[u8]) -> bool {
    let written = written.strip_prefix(b"r#").unwrap_or(written);
    // scip-typescript calls a constructor `<constructor>`.
    let name = symbol.name.trim_start_matches('<').trim_end_matches('>');
    written == name.as_bytes() || symbol.suffix == b'.' && written == symbol.outer.as_bytes()
}

/// Returns true if a range contains one whole word.
fn is_word(text: &[u8], start: usize, written: &[u8]) -> bool {
    let before = start.checked_sub(1).and_then(|before| text.get(before));
    let after = text.get(start + written.len());
    !written.is_empty() && written.iter().all(is_part) && !before.is_some_and(is_part) && !after.is_some_and(is_part)
}

/// Returns true if a text with these words has the name of a symbol, or for a constructor that of its type.
fn is_mentioned(symbol: &Symbol<'_>, words: &HashSet<&[u8]>) -> bool {
    let is_constructor = matches!(&*symbol.name, "__init__" | "<constructor>");
    let name = if is_constructor { &symbol.outer } else { &symbol.name };
    words.contains(name.as_bytes())
}

/// Returns the words of a text.
fn words(text: &[u8]) -> HashSet<&[u8]> {
    text.split(|byte| !is_part(byte))
        .filter(|word| !word.is_empty())
        .collect()
}

fn is_part(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || !byte.is_ascii()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::precise::Index;
    use crate::support::scip;

    /// Checks names at the places that they have in `text` against another text.
    fn found(text: &str, names: &[(&str, usize, &str)], other: &str) -> Result<usize, Mismatch> {
        let bytes = scip::index("tool", &[scip::document("a.py", text, names)]);
        let document = Index::read(&bytes).unwrap().documents().next().unwrap().unwrap();
        let checked = check(&document, other.as_bytes()).unwrap()?;
        let without_version = |raw| Symbol::parse(raw).unwrap().key();
        let keys: Vec<String> = checked.names.iter().map(|name| without_version(name.1)).collect();
        let names: Vec<Name<'_>> = checked
            .names
            .iter()
            .zip(&keys)
            .map(|(name, key)| (name.0, &**key, name.2))
            .collect();
        assert!(fits(&names, other.as_bytes()), "what fits once fits again");
        assert!(names.is_empty() || !fits(&names, format!("x{other}").as_bytes()));
        Ok(checked.n_names())
    }

    #[test]
    fn aliases_fit_and_other_words_do_not() {
        let text = "import b as c\nc.f(); c.g(); c()\nd = 1\n";
        let names = [
            ("c", 0, "s m p 1 b."),
            ("f", 0, "s m p 1 f()."),
            ("g", 0, "s m p 1 g()."),
            ("c", 3, "s m p 1 b."),
            ("d", 0, "=s m p 1 d."),
        ];
        assert_eq!(found(text, &names, text), Ok(5));
        assert_eq!(found(text, &names, &text.replace("c()", "x()")), Err(Mismatch::Text));
        assert_eq!(found(text, &names, &text.replace("d =", "e =")), Err(Mismatch::Text));
        assert_eq!(found(text, &names, &format!("\n{text}")), Err(Mismatch::Range));
    }

    #[test]
    fn operators_are_no_other_names() {
        let text = "a == b; a == b";
        let names = [
            ("a", 0, "s m p 1 a."),
            ("a", 1, "s m p 1 a."),
            ("==", 0, "s m p 1 T#eq()."),
            ("==", 1, "s m p 1 T#eq()."),
        ];
        assert_eq!(found(text, &names, text), Ok(2));
        let other = "b == c; b == c";
        assert_eq!(found(text, &names, other), Ok(0), "nothing in it is named a");
    }

    #[test]
    fn a_file_of_aliases_fits_if_it_has_enough() {
        let text = "a b c d w x y z";
        let names = [
            ("a", 0, "s m p 1 w."),
            ("b", 0, "s m p 1 x."),
            ("c", 0, "s m p 1 y."),
            ("d", 0, "s m p 1 z."),
        ];
        assert_eq!(found(text, &names, text), Ok(4));
        assert_eq!(found(text, &names[..3], text), Err(Mismatch::Text));
    }
}
