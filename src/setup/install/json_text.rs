//! Adds and removes the entry of a server, or an item of a list (`list`), in JSON with comments and trailing commas. All
//! other bytes remain unchanged.
//!
//! `jsonc-parser` reports the position of each value, and the text is edited there. Its own editor (`cst`) is not
//! suitable: it spreads objects over several lines and removes comments next to a field.

mod document;
pub(super) mod list;
#[cfg(test)]
mod tests;

use serde_json::Value;

use self::document::{Member, Node, parse, parse_unambiguous};
use super::entry::{Entry, difference, merged};
use super::{Edited, TextError, entry};
use crate::config::lines::{indentation, line_end, line_start, newline, split_mark};

/// Parses the whole text. Returns `None` if it is empty.
pub(super) fn value(text: &str) -> Result<Option<Value>, TextError> {
    Ok(parse(text)?.map(|root| root.value()))
}

/// Returns true if the text contains only fields of a new file.
pub(super) fn is_leftover(text: &str, template: &Entry) -> bool {
    let Ok(Some(root)) = parse(text) else {
        return text.trim().is_empty();
    };
    let Value::Object(fields) = root.value() else {
        return false;
    };
    let mut between = split_mark(text).1.to_owned();
    for member in root.members() {
        between = between.replacen(&text[member.start..member.value.span().end], "", 1);
    }
    let is_plain = between
        .chars()
        .all(|c| c.is_whitespace() || matches!(c, '{' | ',' | '}'));
    is_plain && fields.iter().all(|(key, value)| template.get(key) == Some(value))
}

/// Writes `entry` under `name` to the object at the path `section`, which is not empty. Creates what is missing of the
/// path. In an existing entry, only the fields that describe how to connect to the server change. An empty text gets the
/// fields of `template` first. Fails if a key on the way or in the entry is repeated.
pub(super) fn put(
    text: &str,
    section: &[&str],
    name: &str,
    entry: &Entry,
    template: &Entry,
) -> Result<Edited, TextError> {
    let path: Vec<&str> = section.iter().copied().chain([name]).collect();
    let Some(root) = parse_unambiguous(text, &path)? else {
        return Ok(Edited {
            text: put_root(text, section[0], nested(&section[1..], name, entry), template),
            made_section: true,
        });
    };
    let mut expected = object(root.value(), "the file")?;
    let made_section = !descend(&root, section).1.is_empty();
    let servers = section.iter().try_fold(&mut expected, |fields, key| {
        let value = fields.entry(*key).or_insert_with(|| Value::Object(Entry::new()));
        value.as_object_mut().ok_or_else(|| other_shape(key))
    })?;
    let found = servers.get(name).cloned();
    let wanted = match &found {
        Some(found) => merged(found.as_object().ok_or_else(|| other_shape(name))?, entry),
        None => entry.clone(),
    };
    servers.insert(name.to_owned(), Value::Object(wanted));

    let text = match descend(&root, section) {
        (found, [missing, rest @ ..]) => insert(text, found, Some(missing), &nested(rest, name, entry)),
        (servers, []) if found.is_none() => insert(text, servers, Some(name), &Value::Object(entry.clone())),
        _ => change(text, section, name, entry)?,
    };
    check(&text, &expected, name)?;
    Ok(Edited { text, made_section })
}

/// Follows a path of keys as far as it exists. Returns the last value, and the keys that are missing.
fn descend<'n, 'k>(node: &'n Node, path: &'k [&'k str]) -> (&'n Node, &'k [&'k str]) {
    let next = path
        .split_first()
        .and_then(|(key, rest)| Some((node.member(key)?, rest)));
    next.map_or((node, path), |(member, rest)| descend(&member.value, rest))
}

/// Returns a blank text with the fields of `template` and the section.
fn put_root(blank: &str, section: &str, value: Value, template: &Entry) -> String {
    let (mark, blank) = split_mark(blank);
    let mut root = template.clone();
    root.insert(section.to_owned(), value);
    let newline = newline(blank);
    let pretty = Style::of("").pretty(&Value::Object(root), "");
    format!("{mark}{}{newline}", pretty.replace('\n', newline))
}

/// Removes the entry `name` from the object at the path `section`. If `with_section` is true, also removes the objects of
/// the path that are empty then. Returns `None` if there is no such entry.
pub(super) fn take(text: &str, section: &[&str], name: &str, with_section: bool) -> Result<Option<String>, TextError> {
    let Some(mut text) = take_at(text, section, name)? else {
        return Ok(None);
    };
    for depth in (0..section.len()).rev().take_while(|_| with_section) {
        let (path, key) = (&section[..depth], section[depth]);
        let is_empty = parse(&text)?.is_some_and(|root| match descend(&root, &section[..=depth]) {
            (found, []) => text[found.span()] == *"{}",
            _ => false,
        });
        if is_empty && let Some(less) = take_at(&text, path, key)? {
            text = less;
        }
    }
    Ok(Some(text))
}

/// Removes the field `name` from the object at the path `section`. Returns `None` if there is no such field.
fn take_at(text: &str, section: &[&str], name: &str) -> Result<Option<String>, TextError> {
    let Some(root) = parse(text)? else { return Ok(None) };
    let mut expected = object(root.value(), "the file")?;
    let fields = section
        .iter()
        .try_fold(&mut expected, |fields, key| fields.get_mut(*key)?.as_object_mut());
    if fields.and_then(|fields| fields.shift_remove(name)).is_none() {
        return Ok(None);
    }
    let (fields, _) = descend(&root, section);
    let Some(index) = fields.index(name) else {
        return Ok(None);
    };
    let text = remove(text, fields, index);
    check(&text, &expected, name)?;
    Ok(Some(text))
}

/// Returns the value at the start of the path `section` if it has nothing but the entry.
pub(super) fn nested(section: &[&str], name: &str, entry: &Entry) -> Value {
    let keys = section.iter().copied().chain([name]);
    keys.rev().fold(Value::Object(entry.clone()), |value, key| {
        Value::Object(Entry::from_iter([(key.to_owned(), value)]))
    })
}

fn check(text: &str, expected: &Entry, what: &str) -> Result<(), TextError> {
    let found = value(text).and_then(|found| found.map(|found| object(found, "the file")).transpose());
    entry::check(found, expected, what)
}

fn object(value: Value, what: &str) -> Result<Entry, TextError> {
    match value {
        Value::Object(fields) => Ok(fields),
        _ => Err(other_shape(what)),
    }
}

fn other_shape(what: &str) -> TextError {
    TextError::OtherShape {
        what: what.to_owned(),
        expected: "an object",
    }
}

/// Changes the fields that differ. Each edit changes positions, so the text is parsed again after it.
fn change(text: &str, section: &[&str], name: &str, wanted: &Entry) -> Result<String, TextError> {
    let mut text = text.to_owned();
    loop {
        let not_editable = || TextError::NotEditable { what: name.to_owned() };
        let root = parse(&text)?.ok_or_else(not_editable)?;
        let entry = &descend(&root, section).0.member(name).ok_or_else(not_editable)?.value;
        let found = object(entry.value(), name)?;
        let difference = difference(&found, wanted);
        text = if let Some((field, value)) = difference.set.first() {
            match entry.member(field) {
                Some(member) => replace(&text, &member.value, value),
                None => insert(&text, entry, Some(field), value),
            }
        } else if let Some(index) = difference.remove.first().and_then(|field| entry.index(field)) {
            remove(&text, entry, index)
        } else {
            return Ok(text);
        };
    }
}

/// The formatting style of a file.
struct Style {
    newline: &'static str,
    /// One level of indentation.
    unit: String,
}

impl Style {
    fn of(text: &str) -> Self {
        // Uses the line of a field, because comments may be indented differently.
        let indented = text
            .lines()
            .find(|line| line.starts_with([' ', '\t']) && line.trim_start().starts_with('"'));
        let unit = indented.map_or("  ", |line| {
            &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
        });
        Self {
            newline: newline(text),
            unit: if unit.starts_with('\t') {
                "\t".to_owned()
            } else {
                unit.to_owned()
            },
        }
    }

    /// Formats a value on several lines; lists of scalars are on one line. All lines but the first begin with `indent`.
    fn pretty(&self, value: &Value, indent: &str) -> String {
        let inner = format!("{indent}{}", self.unit);
        let newline = self.newline;
        let member = |key: Option<&str>, value: &Value| {
            format!("{newline}{inner}{}{}", label(key, " "), self.pretty(value, &inner))
        };
        let (open, members, close): (_, Vec<String>, _) = match value {
            Value::Object(fields) if !fields.is_empty() => {
                let fields = fields.iter().map(|(key, value)| member(Some(key.as_str()), value));
                ('{', fields.collect(), '}')
            }
            Value::Array(items) if items.iter().any(Value::is_object) => {
                ('[', items.iter().map(|item| member(None, item)).collect(), ']')
            }
            _ => return inline(value, " "),
        };
        format!("{open}{}{newline}{indent}{close}", members.join(","))
    }
}

/// Formats a value on one line, with `gap` after commas and colons.
fn inline(value: &Value, gap: &str) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| inline(item, gap)).collect();
            format!("[{}]", items.join(&format!(",{gap}")))
        }
        Value::Object(fields) => {
            let fields = fields.iter();
            let fields =
                fields.map(|(key, value)| format!("{}:{gap}{}", Value::from(key.as_str()), inline(value, gap)));
            let fields: Vec<String> = fields.collect();
            format!("{{{}}}", fields.join(&format!(",{gap}")))
        }
        scalar => scalar.to_string(),
    }
}

/// Replaces the value of `node`.
fn replace(text: &str, node: &Node, value: &Value) -> String {
    let span = node.span();
    let value = Style::of(text).pretty(value, indentation(text, span.start));
    format!("{}{value}{}", &text[..span.start], &text[span.end..])
}

/// Adds a field at the end of `object`, or without a key an item at the end of a list.
fn insert(text: &str, object: &Node, key: Option<&str>, value: &Value) -> String {
    match object.members().last() {
        Some(last) if text[object.span()].contains('\n') => insert_line(text, object, last, key, value),
        Some(last) => insert_beside(text, last, key, value),
        None => insert_first(text, object, key, value),
    }
}

/// Returns the text before the value of a field, with `gap` after the colon.
fn label(key: Option<&str>, gap: &str) -> String {
    key.map_or(String::new(), |key| format!("{}:{gap}", Value::from(key)))
}

/// Adds a field on a new line, after the last field and the comment on its line.
fn insert_line(text: &str, object: &Node, last: &Member, key: Option<&str>, value: &Value) -> String {
    let style = Style::of(text);
    let own_line = &text[line_start(text, last.start)..last.start];
    let indent = if own_line.trim().is_empty() {
        own_line.to_owned()
    } else {
        format!("{}{}", indentation(text, object.span().start), style.unit)
    };
    let end = last.value.span().end;
    let (comma, comma_after) = if last.comma.is_some() { ("", ",") } else { (",", "") };
    let at = after_comment(text, last.comma.map_or(end, |comma| comma + 1));
    format!(
        "{}{comma}{}{}{indent}{}{}{comma_after}{}",
        &text[..end],
        &text[end..at],
        style.newline,
        label(key, " "),
        style.pretty(value, &indent),
        &text[at..],
    )
}

/// Adds a field on the line of the last field, with the same spacing.
fn insert_beside(text: &str, last: &Member, key: Option<&str>, value: &Value) -> String {
    let span = last.value.span();
    let is_tight = key.is_some() && !text[last.start..span.start].ends_with(' ');
    let gap = if is_tight { "" } else { " " };
    let field = format!(",{gap}{}{}", label(key, gap), inline(value, gap));
    format!("{}{field}{}", &text[..span.end], &text[span.end..])
}

fn insert_first(text: &str, object: &Node, key: Option<&str>, value: &Value) -> String {
    let span = object.span();
    let (before, inner, after) = (
        &text[..span.start + 1],
        &text[span.start + 1..span.end - 1],
        &text[span.end - 1..],
    );
    let label = label(key, " ");
    if text[..span.start].contains('{') && !text.trim().contains('\n') {
        let kept = if inner.trim().is_empty() { "" } else { inner };
        return format!("{before}{kept}{label}{}{after}", inline(value, " "));
    }
    let style = Style::of(text);
    let outer = indentation(text, span.start);
    let indent = format!("{outer}{}", style.unit);
    let newline = style.newline;
    format!(
        "{before}{}{newline}{indent}{label}{}{newline}{outer}{after}",
        inner.trim_end(),
        style.pretty(value, &indent)
    )
}

/// Returns the end of the white space and comments that follow byte `at` on its line.
fn after_comment(text: &str, at: usize) -> usize {
    let mut end = at;
    loop {
        let rest = text[end..].trim_start_matches([' ', '\t']);
        let start = text.len() - rest.len();
        if rest.starts_with("//") {
            let line = rest.lines().next().unwrap_or(rest);
            return start + line.len();
        }
        match rest.strip_prefix("/*").and_then(|comment| comment.find("*/")) {
            Some(length) if !rest[..length].contains('\n') => end = start + length + 4,
            _ => return end,
        }
    }
}

/// Removes field or item `index` of `object` with its comma, and the lines that become empty.
fn remove(text: &str, object: &Node, index: usize) -> String {
    let members = object.members();
    let member = &members[index];
    let span = object.span();
    let value_end = member.value.span().end;
    let end = member.comma.map_or(value_end, |comma| comma + 1);
    let before_comma = member.comma.map_or("", |comma| &text[value_end..comma]);
    let inner = [
        &text[span.start + 1..member.start],
        before_comma,
        &text[end..span.end - 1],
    ]
    .concat();
    if members.len() == 1 && inner.trim().is_empty() {
        return format!("{}{}", &text[..span.start + 1], &text[span.end - 1..]);
    }
    if !before_comma.trim().is_empty() {
        // Keeps a comment between the value and its comma.
        return format!("{}{before_comma}{}", &text[..member.start], &text[end..]);
    }
    let (start, end) = widened(text, member.start, end);
    match index.checked_sub(1).and_then(|previous| members[previous].comma) {
        // If the last field has no comma, the comma before it is removed.
        Some(comma) if member.comma.is_none() => {
            format!("{}{}{}", &text[..comma], &text[comma + 1..start], &text[end..])
        }
        _ => format!("{}{}", &text[..start], &text[end..]),
    }
}

/// Extends a span by the surrounding white space. If nothing else is on its lines, extends it to whole lines.
fn widened(text: &str, start: usize, end: usize) -> (usize, usize) {
    let n_blanks = |text: &str| text.len() - text.trim_start_matches([' ', '\t']).len();
    let line = line_start(text, start);
    let is_alone = text[line..start].trim().is_empty() && text[end..line_end(text, end)].trim().is_empty();
    if is_alone && line > 0 {
        // Removes the line ending before the field and keeps the one after it, as the reverse of `insert_line`.
        let before = &text[..line - 1];
        let before = before.strip_suffix('\r').unwrap_or(before);
        (before.len(), end + n_blanks(&text[end..]))
    } else if text[..end].ends_with(',') {
        (start, end + n_blanks(&text[end..]))
    } else {
        (text[..start].trim_end_matches([' ', '\t']).len(), end)
    }
}
