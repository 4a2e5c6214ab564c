//! Edits TOML text without changing any other byte.
//!
//! `toml_parser` reports the position of each statement, and the text is edited there. `toml_edit` is not suitable: it
//! prints the document with its own line endings, without a byte order mark, with dotted keys in a different order, and
//! without the comments above a removed statement. All functions expect valid TOML.

use std::ops::Range;

use toml_parser::Source;
use toml_parser::parser::{Event, EventKind, parse_document};

use super::lines::{append, line_end, line_start, newline, without_lines};

/// The header of a table, or a key and its value.
#[derive(Debug)]
struct Statement {
    span: Range<usize>,
    /// The range of the value; `None` for a header.
    value: Option<Range<usize>>,
    /// All keys from the root, including those of the table's header.
    path: Vec<String>,
}

impl Statement {
    fn is_within(&self, path: &[&str]) -> bool {
        self.path.len() >= path.len() && self.path.iter().zip(path).all(|(found, part)| found == part)
    }
}

/// Sets `field` in `table` to `literal` and returns the new text. Replaces an existing value, or else adds the field
/// after the last field of the table, or else adds a new table.
pub(crate) fn with_value(text: &str, table: &[&str], field: &str, literal: &str) -> String {
    let whole = [table, &[field]].concat();
    let found = statements(text);
    let old = found.iter().find(|statement| statement.path == whole);
    if let Some(value) = old.and_then(|statement| statement.value.clone()) {
        return format!("{}{literal}{}", &text[..value.start], &text[value.end..]);
    }
    // A value may consist of several statements. They are replaced by one.
    let text = without(text, &whole);
    let found = statements(&text);
    let Some(header) = position_of_header(&found, table) else {
        return with_table(&text, table, [(field.to_owned(), literal.to_owned())]);
    };
    let at = section_end(&text, &found[header..]);
    let newline = newline(&text);
    let before = if text[..at].ends_with('\n') { "" } else { newline };
    let setting = format!("{before}{} = {literal}{newline}", quoted_key(field));
    format!("{}{setting}{}", &text[..at], &text[at..])
}

/// Returns the text with a new table. The table is added after the last table with the same first key, or else at the
/// end.
pub(crate) fn with_table(text: &str, path: &[&str], fields: impl IntoIterator<Item = (String, String)>) -> String {
    let keys: Vec<String> = path.iter().map(|key| quoted_key(key)).collect();
    let mut table = format!("[{}]\n", keys.join("."));
    for (field, literal) in fields {
        table += &format!("{} = {literal}\n", quoted_key(&field));
    }
    let found = statements(text);
    let is_neighbour = |statement: &Statement| statement.value.is_none() && statement.is_within(&path[..1]);
    let neighbour = found.iter().rposition(is_neighbour);
    let at = neighbour.map_or(text.len(), |header| section_end(text, &found[header..]));
    append(&text[..at], &table) + &text[at..]
}

/// Returns the text without all statements below `path`.
pub(crate) fn without(text: &str, path: &[&str]) -> String {
    let found = statements(text);
    let mut text = text.to_owned();
    let mut index = found.len();
    // Removes the last statement first, so that the positions of earlier statements remain valid.
    while let Some(last) = found[..index].iter().rposition(|statement| statement.is_within(path)) {
        let mut first = last;
        while found[first].value.is_some() && first > 0 && found[first - 1].is_within(path) {
            first -= 1;
        }
        let (start, end) = (
            line_start(&text, found[first].span.start),
            line_end(&text, found[last].span.end),
        );
        text = if found[first].value.is_none() {
            without_lines(&text, start, end)
        } else {
            format!("{}{}", &text[..start], &text[end..])
        };
        index = first;
    }
    text
}

/// Returns true if the text has a header for exactly this table.
pub(crate) fn has_header(text: &str, path: &[&str]) -> bool {
    position_of_header(&statements(text), path).is_some()
}

fn position_of_header(statements: &[Statement], path: &[&str]) -> Option<usize> {
    let is_it = |statement: &Statement| statement.value.is_none() && statement.path == path;
    statements.iter().position(is_it)
}

/// Returns the end of the last line of the table whose header is the first statement.
fn section_end(text: &str, from_header: &[Statement]) -> usize {
    let rest = from_header[1..].iter();
    let last = rest.take_while(|statement| statement.value.is_some()).last();
    line_end(text, last.unwrap_or(&from_header[0]).span.end)
}

fn statements(text: &str) -> Vec<Statement> {
    let source = Source::new(text);
    let mut events: Vec<Event> = Vec::new();
    parse_document(&source.lex().into_vec(), &mut events, &mut ());
    let mut statements = Vec::new();
    let (mut table, mut path) = (Vec::new(), Vec::new());
    let (mut start, mut value_start, mut depth) = (None, None, 0_usize);
    for event in events {
        let span = event.span();
        match event.kind() {
            EventKind::StdTableOpen | EventKind::ArrayTableOpen => {
                start = Some(span.start());
                table.clear();
            }
            EventKind::SimpleKey if depth == 0 => {
                start.get_or_insert(span.start());
                let mut key = String::new();
                if let Some(raw) = source.get(event) {
                    raw.decode_key(&mut key, &mut ());
                }
                path.push(key);
            }
            EventKind::StdTableClose | EventKind::ArrayTableClose => {
                table = std::mem::take(&mut path);
                statements.push(Statement {
                    span: start.take().unwrap_or(span.start())..span.end(),
                    value: None,
                    path: table.clone(),
                });
            }
            EventKind::ArrayOpen | EventKind::InlineTableOpen => {
                value_start.get_or_insert(span.start());
                depth += 1;
            }
            kind @ (EventKind::ArrayClose | EventKind::InlineTableClose | EventKind::Scalar) => {
                depth = depth.saturating_sub(usize::from(kind != EventKind::Scalar));
                if depth == 0 {
                    let value = value_start.take().unwrap_or(span.start())..span.end();
                    statements.push(Statement {
                        span: start.take().unwrap_or(value.start)..value.end,
                        value: Some(value),
                        path: [table.clone(), std::mem::take(&mut path)].concat(),
                    });
                }
            }
            _ => {}
        }
    }
    statements
}

fn quoted_key(key: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !key.is_empty() && key.chars().all(is_bare) {
        key.to_owned()
    } else {
        toml::Value::from(key).to_string()
    }
}
