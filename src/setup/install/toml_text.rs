//! Adds and removes the entry of a server in TOML.

use serde_json::Value;

use super::entry::{Entry, check, difference, merged, take_out};
use super::{Edited, TextError};
use crate::config::lines::line_number;
use crate::config::toml_text::{has_header, with_table, with_value, without};

/// Parses the whole text. Returns `None` if it is empty.
pub(super) fn value(text: &str) -> Result<Option<Entry>, TextError> {
    let table: toml::Table =
        toml::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| broken(text, &error))?;
    match serde_json::to_value(table) {
        Ok(Value::Object(fields)) if !fields.is_empty() => Ok(Some(fields)),
        _ => Ok(None),
    }
}

/// Writes `entry` to the table `section.name`. In an existing table, only the fields that describe how to connect to
/// the server change.
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
        None => (with_table(text, &whole, literals(entry)), entry.clone()),
        Some(Value::Object(found)) => {
            let wanted = merged(&found, entry);
            let text = if has_header(text, &whole) {
                change(text, &whole, &found, entry)
            } else {
                with_table(&without(text, &whole), &whole, literals(&wanted))
            };
            (text, wanted)
        }
        Some(_) => return Err(other_shape(name)),
    };
    servers.insert(name.to_owned(), Value::Object(wanted));
    check(value(&text), &expected, name)?;
    Ok(Edited { text, made_section })
}

/// Removes the table `section.name` and its subtables. Returns `None` if there is no such table.
pub(super) fn take(text: &str, section: &str, name: &str) -> Result<Option<String>, TextError> {
    let mut expected = value(text)?.unwrap_or_default();
    let Some(is_last) = take_out(&mut expected, section, name) else {
        return Ok(None);
    };
    let text = without(text, &[section, name]);
    // A section without a header disappears with its last table.
    if is_last && !value(&text)?.is_some_and(|fields| fields.contains_key(section)) {
        expected.shift_remove(section);
    }
    check(value(&text), &expected, name)?;
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

fn literals(entry: &Entry) -> impl Iterator<Item = (String, String)> {
    entry.iter().map(|(field, value)| (field.clone(), literal(value)))
}

fn literal(value: &Value) -> String {
    match toml::Value::try_from(value) {
        Ok(value) => value.to_string(),
        // An entry has no values that TOML cannot represent. If it had, `check` would report an error.
        Err(_) => String::new(),
    }
}

/// Changes those fields of a table that differ.
fn change(text: &str, path: &[&str], found: &Entry, entry: &Entry) -> String {
    let difference = difference(found, entry);
    let mut text = text.to_owned();
    for field in difference.remove {
        text = without(&text, &[path, &[field]].concat());
    }
    for (field, value) in difference.set {
        text = with_value(&text, path, field, &literal(value));
    }
    text
}

#[cfg(test)]
mod tests;
