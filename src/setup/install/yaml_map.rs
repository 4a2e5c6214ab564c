//! Adds and removes the entry of a server in a YAML file that also contains other settings. All other bytes remain
//! unchanged.
//!
//! Only a part of YAML is understood: mappings and lists in block style, with values that end on their line, and block
//! scalars. It covers what programs write. A file with anything else (anchors, tags, strings or brackets over several
//! lines, several documents, tabs) is refused, because a line may have another meaning then.

#[cfg(test)]
mod tests;

use std::ops::Range;

use serde_json::Value;

use super::entry::{Difference, Entry, check, difference, merged, take_out};
use super::yaml_text::fields;
use super::{Edited, TextError};
use crate::config::lines::{line_end, line_number, newline, split_mark};

/// Limit on mappings inside each other.
const MAX_DEPTH: u8 = 64;

/// A line that is neither blank nor a comment, with the lines of its block scalar.
#[derive(Debug)]
struct Line {
    start: usize,
    end: usize,
    indent: usize,
    /// The column of the key, or of the last `-` if there is no key. Lines of a block scalar are indented deeper.
    depth: usize,
    is_item: bool,
    key: Option<String>,
    /// The rest of the line without a comment.
    value: Range<usize>,
    /// True if the value is a block scalar, whose lines may follow.
    is_open: bool,
}

/// Parses the whole text. Returns `None` if it is empty.
pub(super) fn value(text: &str) -> Result<Option<Entry>, TextError> {
    let lines = lines(text)?;
    match lines.first() {
        Some(first) if first.indent > 0 => Err(unknown(text, first.start)),
        Some(_) => mapping(text, &lines, MAX_DEPTH).map(Some),
        None => Ok(None),
    }
}

/// Writes `entry` under `name` to the mapping `section`. In an existing entry, only the fields that describe how to
/// connect to the server change, and those of `required` that are missing.
pub(super) fn put(text: &str, section: &str, name: &str, entry: &Entry, required: &Entry) -> Result<Edited, TextError> {
    let mut expected = value(text)?.unwrap_or_default();
    let made_section = !expected.contains_key(section);
    let servers = expected.entry(section).or_insert_with(|| Entry::new().into());
    // A key without a value.
    if servers.is_null() {
        *servers = Entry::new().into();
    }
    let servers = servers.as_object_mut().ok_or_else(|| other_shape(section))?;
    let is_new = !servers.contains_key(name);
    let server = servers.entry(name).or_insert_with(|| Entry::new().into());
    let found = server.as_object_mut().ok_or_else(|| other_shape(name))?;
    let missing = required.iter().filter(|(field, _)| !found.contains_key(*field));
    let fields = missing.chain(entry);
    let wanted: Entry = fields.map(|(field, value)| (field.clone(), value.clone())).collect();
    let edited = if is_new {
        insert(text, section, name, wanted.clone())?
    } else {
        change(text, [section, name], difference(found, &wanted))?
    };
    *found = merged(found, &wanted);
    Ok(Edited {
        text: checked(text, edited, &expected, name)?,
        made_section,
    })
}

/// Removes the entry `name` from the mapping `section`, and also the mapping if it is empty then and `with_section` is
/// true. Returns `None` if there is no such entry.
pub(super) fn take(text: &str, section: &str, name: &str, with_section: bool) -> Result<Option<String>, TextError> {
    let mut expected = value(text)?.unwrap_or_default();
    let Some(is_last) = take_out(&mut expected, section, name) else {
        return Ok(None);
    };
    let mut less = without(text, &[section, name])?;
    if is_last && with_section {
        expected.shift_remove(section);
        less = without(&less, &[section])?;
    } else if is_last {
        // A key without a value would be null.
        let at = pair(&lines(&less)?, &[section]).map_or(0, |found| found[0].value.start);
        less.insert_str(at, " {}");
    }
    checked(text, less, &expected, name).map(Some)
}

/// Returns the lines of a server with its section.
pub(super) fn block(section: &str, name: &str, entry: Entry) -> String {
    let servers = Entry::from_iter([(name.to_owned(), entry.into())]);
    written(section, servers.into(), 0)
}

/// Returns the lines of a pair.
fn written(key: &str, value: Value, indent: usize) -> String {
    let mut text = String::new();
    fields(&Entry::from_iter([(key.to_owned(), value)]), indent, &mut text);
    text
}

fn insert(text: &str, section: &str, name: &str, entry: Entry) -> Result<String, TextError> {
    let lines = lines(text)?;
    let Some(found) = pair(&lines, &[section]) else {
        return Ok(with_lines(text, text.len(), &block(section, name, entry)));
    };
    let indent = found.get(1).map_or(2, |first| first.indent);
    let text = with_lines(text, end(found), &written(name, entry.into(), indent));
    Ok(spliced(&text, found[0].value.clone(), ""))
}

/// Changes those fields of a server that differ.
fn change(text: &str, [section, name]: [&str; 2], difference: Difference) -> Result<String, TextError> {
    let mut text = text.to_owned();
    for (field, value) in difference.set {
        let lines = lines(&text)?;
        let server = pair(&lines, &[section, name]).filter(|server| server.len() > 1);
        let server = server.ok_or_else(|| not_editable(name))?;
        let new = written(field, value.clone(), server[1].indent);
        text = match pair(&lines, &[section, name, field]) {
            Some(old) => with_value(&text, old, &new),
            None => with_lines(&text, end(server), &new),
        };
    }
    let mut removed = difference.remove.into_iter();
    removed.try_fold(text, |text, field| without(&text, &[section, name, field]))
}

/// Replaces the value of a pair by that of `new`, the lines of another pair with the same key. A comment after the key
/// or its value stays.
fn with_value(text: &str, old: &[Line], new: &str) -> String {
    let (first, rest) = new.split_once('\n').unwrap_or((new, ""));
    let inline = first.split_once(':').map_or("", |(_, inline)| inline);
    let text = spliced(text, line_end(text, old[0].value.end)..end(old), "");
    let at = line_end(&text, old[0].value.end);
    spliced(&with_lines(&text, at, rest), old[0].value.clone(), inline)
}

/// Inserts lines at the start of a line, or at the end of the text.
fn with_lines(text: &str, at: usize, lines: &str) -> String {
    let newline = newline(text);
    let before = split_mark(&text[..at]).1;
    let is_start = before.is_empty() || before.ends_with('\n');
    let start = if is_start || lines.is_empty() { "" } else { newline };
    spliced(text, at..at, &format!("{start}{}", lines.replace('\n', newline)))
}

/// Removes the lines of a pair.
fn without(text: &str, path: &[&str]) -> Result<String, TextError> {
    let lines = lines(text)?;
    let found = pair(&lines, path).ok_or_else(|| not_editable(&path.join(".")))?;
    Ok(spliced(text, found[0].start..end(found), ""))
}

fn spliced(text: &str, range: Range<usize>, new: &str) -> String {
    format!("{}{new}{}", &text[..range.start], &text[range.end..])
}

/// Returns the end of the last line of a pair.
fn end(pair: &[Line]) -> usize {
    pair.last().map_or(0, |last| last.end)
}

/// Returns the lines of the pair at a path.
fn pair<'l>(lines: &'l [Line], path: &[&str]) -> Option<&'l [Line]> {
    let (key, rest) = path.split_first()?;
    let found = pairs(lines).find(|pair| pair[0].key.as_deref() == Some(key))?;
    if rest.is_empty() {
        Some(found)
    } else {
        pair(&found[1..], rest)
    }
}

/// Splits the lines of a mapping into pairs. The items of a list may be as far to the left as its key.
fn pairs(lines: &[Line]) -> impl Iterator<Item = &[Line]> {
    let indent = lines.first().map_or(0, |first| first.indent);
    lines.chunk_by(move |_, next| next.indent > indent || (next.is_item && next.indent == indent))
}

fn mapping(text: &str, lines: &[Line], depth: u8) -> Result<Entry, TextError> {
    let depth = depth.checked_sub(1).ok_or_else(|| unknown(text, lines[0].start))?;
    let mut entry = Entry::new();
    for pair in pairs(lines) {
        let (head, inner) = (&pair[0], &pair[1..]);
        let is_aligned = !head.is_item && head.indent == lines[0].indent;
        let is_pair = is_aligned && (inner.is_empty() || head.value.is_empty());
        let key = head.key.clone().filter(|key| is_pair && !entry.contains_key(key));
        let key = key.ok_or_else(|| unknown(text, head.start))?;
        let is_plain = |item: &Line| item.is_item && item.key.is_none() && item.indent == item.depth && !item.is_open;
        let value = match inner.first() {
            None if head.is_open => text[head.value.start..head.end].into(),
            None => decoded(&text[head.value.clone()]),
            Some(first) if !first.is_item => mapping(text, inner, depth)?.into(),
            Some(_) if inner.iter().all(is_plain) => {
                inner.iter().map(|item| decoded(&text[item.value.clone()])).collect()
            }
            // A list of other values is compared as it is written.
            Some(_) => text[head.value.end..end(pair)].trim_end().into(),
        };
        entry.insert(key, value);
    }
    Ok(entry)
}

fn decoded(written: &str) -> Value {
    let written = written.trim();
    let single = written.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    match (single, written) {
        (Some(single), _) => single.replace("''", "'").into(),
        (None, "" | "~") => Value::Null,
        _ => serde_json::from_str(written).unwrap_or_else(|_| written.into()),
    }
}

fn lines(text: &str) -> Result<Vec<Line>, TextError> {
    let mut lines: Vec<Line> = Vec::new();
    let (mut end, mut is_in_block) = (split_mark(text).0.len(), false);
    for raw in split_mark(text).1.split_inclusive('\n') {
        let start = end;
        end += raw.len();
        let line = raw.strip_suffix("\r\n").or(raw.strip_suffix('\n')).unwrap_or(raw);
        // Parsers may end a line at these characters.
        let is_break = |c: char| (c.is_control() && c != '\t') || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}');
        if line.contains(is_break) {
            return Err(unknown(text, start));
        }
        let body = line.trim_start_matches(' ');
        let indent = line.len() - body.len();
        let last = lines.last_mut();
        let may_follow = last
            .as_ref()
            .is_none_or(|last| last.value.is_empty() || indent <= last.depth);
        if let Some(last) = last.filter(|_| is_in_block) {
            is_in_block = body.is_empty() || !may_follow;
            if is_in_block && (!body.is_empty() || text[last.value.clone()].contains('+')) {
                last.end = end;
            }
        }
        let is_blank = body.trim_end().is_empty() || body.starts_with('#') || (body == "---" && lines.is_empty());
        if !is_in_block && !is_blank {
            let next = Line::read(line, start..end).filter(|_| may_follow);
            let next = next.ok_or_else(|| unknown(text, start))?;
            is_in_block = next.is_open;
            lines.push(next);
        }
    }
    // A line ending after a block scalar would change its value.
    match lines.last() {
        Some(last) if last.is_open && !text.ends_with('\n') => Err(unknown(text, last.start)),
        _ => Ok(lines),
    }
}

impl Line {
    /// Reads a line at a position in the text. Returns `None` if it is not understood.
    fn read(line: &str, at: Range<usize>) -> Option<Self> {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let (mut start, mut depth) = (indent, indent);
        let is_dash = |rest: &&str| rest.is_empty() || rest.starts_with(' ');
        while let Some(rest) = line[start..].strip_prefix('-').filter(is_dash) {
            depth = start;
            start = line.len() - rest.trim_start_matches(' ').len();
        }
        let is_item = start > indent;
        let mut key = None;
        if let Some(length) = key_length(&line[start..]) {
            let written = line[start..start + length].trim_end();
            key = Some(decoded(written).as_str().unwrap_or(written).to_owned());
            depth = start;
            start += length + 1;
        }
        let length = value_length(&line[start..]).filter(|_| (is_item || key.is_some()) && !line.contains('\t'))?;
        Some(Self {
            start: at.start,
            end: at.end,
            indent,
            depth,
            is_item,
            key,
            value: at.start + start..at.start + start + length,
            is_open: line[start..].trim_start().starts_with(['|', '>']),
        })
    }
}

/// Returns the length of the key at the start of a text, if there is one.
fn key_length(text: &str) -> Option<usize> {
    let length = match text.chars().next()? {
        '"' | '\'' => closed_length(text)?,
        first if first.is_alphanumeric() || first == '_' => text.find(": ").or(text.strip_suffix(':').map(str::len))?,
        _ => return None,
    };
    let rest = text[length..].strip_prefix(':')?;
    ((rest.is_empty() || rest.starts_with(' ')) && !text[..length].contains(" #")).then_some(length)
}

/// Returns the length of the value after a key or `-`, without a comment. Returns `None` if it may go on in the next
/// line, or means more than it says.
fn value_length(text: &str) -> Option<usize> {
    let value = text.trim_start_matches(' ');
    let length = match value.chars().next() {
        None | Some('#') => return Some(0),
        Some('"' | '\'' | '{' | '[') => closed_length(value)?,
        Some('&' | '*' | '!' | '%' | '@' | '`' | '?' | ':' | ',' | ']' | '}') => return None,
        Some(_) => {
            let plain = value.split(" #").next()?.trim_end();
            let is_pair = plain.contains(": ") || plain.ends_with(':') || plain.starts_with("- ") || plain == "-";
            Some(plain.len()).filter(|_| !is_pair)?
        }
    };
    let rest = &value[length..];
    let is_end = rest.trim_start().is_empty() || (rest.starts_with(' ') && rest.trim_start().starts_with('#'));
    is_end.then(|| text.len() - value.len() + length)
}

/// Returns the length of the string or brackets at the start of a text. With double quotes or inner brackets it must be
/// JSON, which is YAML too.
fn closed_length(text: &str) -> Option<usize> {
    if let Some(rest) = text.strip_prefix('\'') {
        return Some(rest.replace("''", "  ").find('\'')? + 2);
    }
    let mut json = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    if let Some(Ok(_)) = json.next() {
        return Some(json.byte_offset());
    }
    let (inner, _) = text.strip_prefix(['{', '['])?.split_once([']', '}'])?;
    (!inner.contains(['"', '\'', '{', '[', '#', '&', '*', '!'])).then_some(inner.len() + 2)
}

fn unknown(text: &str, at: usize) -> TextError {
    TextError::Broken {
        line: line_number(text, at),
        message: "YAML of this form cannot be edited, only keys and lists on lines of their own".to_owned(),
    }
}

fn other_shape(what: &str) -> TextError {
    TextError::OtherShape {
        what: what.to_owned(),
        expected: "a mapping with its keys on lines of their own",
    }
}

fn not_editable(what: &str) -> TextError {
    TextError::NotEditable { what: what.to_owned() }
}

/// Returns the edited text if it has the expected meaning. It ends with a line ending only if the text before did.
fn checked(before: &str, edited: String, expected: &Entry, what: &str) -> Result<String, TextError> {
    let is_unended = !split_mark(before).1.is_empty() && !before.ends_with('\n');
    let ended = edited.strip_suffix('\n').filter(|_| is_unended);
    let text = ended.map_or(edited.as_str(), |text| text.strip_suffix('\r').unwrap_or(text));
    check(value(text), expected, what)?;
    Ok(text.to_owned())
}
