//! Edits of TOML: a table is put in or taken out, every other line stays.

use serde_json::Value;

use super::entry::{Entry, difference, merged};
use super::lines::{append, line_end, line_number, line_start, newline, without_lines};
use super::{Edited, TextError};

/// The value of the whole text; `None` if it holds nothing.
pub(super) fn value(text: &str) -> Result<Option<Entry>, TextError> {
    let table: toml::Table =
        toml::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| broken(text, &error))?;
    match serde_json::to_value(table) {
        Ok(Value::Object(fields)) if !fields.is_empty() => Ok(Some(fields)),
        _ => Ok(None),
    }
}

/// Puts `entry` into the table `section.name`. Of a table that is there already the fields that say how the server is
/// reached are changed, others stay.
pub(super) fn put(text: &str, section: &str, name: &str, entry: &Entry) -> Result<Edited, TextError> {
    let mut expected = value(text)?.unwrap_or_default();
    let made_section = !expected.contains_key(section);
    let servers = expected
        .entry(section)
        .or_insert_with(|| Value::Object(Entry::new()))
        .as_object_mut()
        .ok_or_else(|| other_shape(section))?;
    let found = servers.get(name).cloned();
    let whole = [section, name];
    let (text, wanted) = match found {
        None => (insert(text, &whole, entry)?, entry.clone()),
        Some(Value::Object(found)) => {
            let wanted = merged(&found, entry);
            let text = match header(&scan(text)?, &whole) {
                Some(_) => change(text, &whole, &found, entry)?,
                None => insert(&cut(text, &whole)?, &whole, &wanted)?,
            };
            (text, wanted)
        }
        Some(_) => return Err(other_shape(name)),
    };
    servers.insert(name.to_owned(), Value::Object(wanted));
    check(&text, &expected, name)?;
    Ok(Edited { text, made_section })
}

/// Takes the table `section.name` out, the tables inside it too; `None` if it is not there.
pub(super) fn take(text: &str, section: &str, name: &str) -> Result<Option<String>, TextError> {
    let mut expected = value(text)?.unwrap_or_default();
    let Some(Value::Object(servers)) = expected.get_mut(section) else {
        return Ok(None);
    };
    if servers.shift_remove(name).is_none() {
        return Ok(None);
    }
    let is_last = servers.is_empty();
    let text = cut(text, &[section, name])?;
    // A table that only its own tables told of is gone with them.
    if is_last && !value(&text)?.is_some_and(|fields| fields.contains_key(section)) {
        expected.shift_remove(section);
    }
    check(&text, &expected, name)?;
    Ok(Some(text))
}

fn broken(text: &str, error: &toml::de::Error) -> TextError {
    TextError::Broken {
        line: line_number(text, error.span().map_or(0, |span| span.start)),
        message: error.message().to_owned(),
    }
}

fn other_shape(what: &str) -> TextError {
    TextError::OtherShape {
        what: what.to_owned(),
        expected: "a table",
    }
}

fn check(text: &str, expected: &Entry, what: &str) -> Result<(), TextError> {
    match value(text).map(Option::unwrap_or_default) {
        Ok(found) if found == *expected => Ok(()),
        _ => Err(TextError::NotEditable { what: what.to_owned() }),
    }
}

/// A header or a key with its value.
#[derive(Debug)]
struct Statement {
    start: usize,
    /// Behind the header or value; a comment may follow on the line.
    end: usize,
    is_header: bool,
    /// All keys from the root, those of the header above included.
    path: Vec<String>,
}

/// The statements of a text that parses.
fn scan(text: &str) -> Result<Vec<Statement>, TextError> {
    let bytes = text.as_bytes();
    let mut statements: Vec<Statement> = Vec::new();
    let mut table: Vec<String> = Vec::new();
    let mut at = if text.starts_with('\u{feff}') { 3 } else { 0 };
    while let Some(byte) = bytes.get(at) {
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => at += 1,
            b'#' => at = line_end(text, at),
            b'[' => {
                let end = value_end(text, at);
                table = keys(text[at..end].trim_start_matches('[').trim_end_matches(']'))?;
                statements.push(Statement {
                    start: at,
                    end,
                    is_header: true,
                    path: table.clone(),
                });
                at = end;
            }
            _ => {
                let equals = key_end(text, at);
                let end = value_end(text, (equals + 1).min(text.len()));
                let path = [table.clone(), keys(&text[at..equals])?].concat();
                statements.push(Statement {
                    start: at,
                    end,
                    is_header: false,
                    path,
                });
                at = end;
            }
        }
    }
    Ok(statements)
}

/// Where the `=` after the key at `start` stands.
fn key_end(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = start;
    while bytes.get(at).is_some_and(|byte| *byte != b'=') {
        at = match bytes[at] {
            b'"' | b'\'' => string_end(text, at),
            _ => at + 1,
        };
    }
    at.min(text.len())
}

/// Behind the value that begins at or after `start`: at the end of its line less blanks and comment, brackets and strings
/// over several lines counted in.
fn value_end(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut end, mut depth) = (start, start, 0_usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\n' if depth == 0 => break,
            b'#' if depth == 0 => break,
            b'#' => {
                at = line_end(text, at);
                continue;
            }
            b'"' | b'\'' => {
                at = string_end(text, at);
                end = at;
                continue;
            }
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
        if !byte.is_ascii_whitespace() {
            end = at;
        }
    }
    end
}

/// Behind the string that begins at `start`.
fn string_end(text: &str, start: usize) -> usize {
    let rest = &text[start..];
    let quote = &rest[..1];
    let fence = if rest.starts_with(&quote.repeat(3)) { 3 } else { 1 };
    let bytes = rest.as_bytes();
    let mut at = fence;
    while at < bytes.len() && !rest[at..].starts_with(&quote.repeat(fence)) {
        at += match bytes[at] {
            b'\\' if quote == "\"" => 2,
            _ => 1,
        };
        while at < bytes.len() && !rest.is_char_boundary(at) {
            at += 1;
        }
    }
    // Up to two quotes may stand before the closing three.
    let n_quotes = rest.get(at..).unwrap_or_default().chars();
    let n_quotes = n_quotes.take_while(|c| quote.starts_with(*c)).count();
    let closing = if fence == 3 { n_quotes.min(5) } else { 1 };
    (start + at + closing).min(text.len())
}

/// The parts of a key, as the parser reads it.
fn keys(text: &str) -> Result<Vec<String>, TextError> {
    let not_editable = || TextError::NotEditable { what: text.to_owned() };
    let mut table: toml::Table = toml::from_str(&format!("{} = 0", text.trim())).map_err(|_| not_editable())?;
    let mut parts = Vec::new();
    loop {
        let (key, value) = std::mem::take(&mut table).into_iter().next().ok_or_else(not_editable)?;
        parts.push(key);
        match value {
            toml::Value::Table(inner) => table = inner,
            _ => return Ok(parts),
        }
    }
}

fn is_within(statement: &Statement, path: &[&str]) -> bool {
    statement.path.len() >= path.len() && statement.path.iter().zip(path).all(|(found, part)| found == part)
}

fn header<'s>(statements: &'s [Statement], path: &[&str]) -> Option<&'s Statement> {
    let is_it = |statement: &&Statement| statement.is_header && statement.path == path;
    statements.iter().find(is_it)
}

/// The table as text.
fn table(path: &[&str], entry: &Entry) -> String {
    let path: Vec<String> = path.iter().map(|key| quoted_key(key)).collect();
    let mut table = format!("[{}]\n", path.join("."));
    for (field, value) in entry {
        table += &format!("{} = {}\n", quoted_key(field), literal(value));
    }
    table
}

fn quoted_key(key: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !key.is_empty() && key.chars().all(is_bare) {
        key.to_owned()
    } else {
        toml::Value::from(key).to_string()
    }
}

fn literal(value: &Value) -> String {
    match toml::Value::try_from(value) {
        Ok(value) => value.to_string(),
        // What TOML cannot say does not occur in an entry, and `check` would find it.
        Err(_) => String::new(),
    }
}

/// The text with the table: after the last table of the same section, else at the end.
fn insert(text: &str, path: &[&str], entry: &Entry) -> Result<String, TextError> {
    let statements = scan(text)?;
    let neighbour = statements
        .iter()
        .rposition(|statement| statement.is_header && is_within(statement, &path[..1]));
    let last = neighbour.map(|header| {
        let rest = &statements[header + 1..];
        let length = rest.iter().position(|statement| statement.is_header);
        &statements[header + length.unwrap_or(rest.len())]
    });
    let at = last.map_or(text.len(), |last| line_end(text, last.end));
    Ok(append(&text[..at], &table(path, entry)) + &text[at..])
}

/// The text without everything below `path`.
fn cut(text: &str, path: &[&str]) -> Result<String, TextError> {
    let statements = scan(text)?;
    let mut text = text.to_owned();
    let mut index = statements.len();
    // From the end, so that places before stay where they are.
    while let Some(last) = statements[..index]
        .iter()
        .rposition(|statement| is_within(statement, path))
    {
        let mut first = last;
        while !statements[first].is_header && first > 0 && is_within(&statements[first - 1], path) {
            first -= 1;
        }
        let (start, end) = (
            line_start(&text, statements[first].start),
            line_end(&text, statements[last].end),
        );
        text = if statements[first].is_header {
            without_lines(&text, start, end)
        } else {
            format!("{}{}", &text[..start], &text[end..])
        };
        index = first;
    }
    Ok(text)
}

/// Changes the fields of a table that differ.
fn change(text: &str, path: &[&str], found: &Entry, entry: &Entry) -> Result<String, TextError> {
    let difference = difference(found, entry);
    let mut text = text.to_owned();
    for field in difference.remove {
        text = cut(&text, &[path, &[field]].concat())?;
    }
    for (field, value) in difference.set {
        let setting = format!("{} = {}", quoted_key(field), literal(value));
        let statements = scan(&text)?;
        let whole = [path, &[field]].concat();
        if let Some(old) = statements
            .iter()
            .find(|statement| !statement.is_header && statement.path == whole)
        {
            text.replace_range(old.start..old.end, &setting);
            continue;
        }
        // A value that is spread over several statements makes room for one.
        text = cut(&text, &whole)?;
        let statements = scan(&text)?;
        let header = header(&statements, path).ok_or_else(|| TextError::NotEditable { what: path.join(".") })?;
        let at = line_end(&text, header.end);
        let newline = newline(&text);
        let before = if text[..at].ends_with('\n') { "" } else { newline };
        text.insert_str(at, &format!("{before}{setting}{newline}"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
