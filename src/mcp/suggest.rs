//! Suggests a working call after a failed one.

use serde_json::{Map, Value, json};

use super::tool::{Call, Effect};
use super::tools::TOOLS;
use crate::model::{Misspelt, NameKind};
use crate::session::OpError;

/// Adds the call that the caller may have meant: with a misspelt name corrected, without an argument that is refused, or
/// a call of another tool.
pub(super) fn with_call(call: &Call<'_>, error: OpError) -> OpError {
    if error.retry.is_some() || error.is_interrupted() {
        return error;
    }
    let misspelt = error.misspelt.as_deref();
    let corrected = misspelt.and_then(|misspelt| retry(call, misspelt));
    match corrected.or_else(|| instead(call.tool, call.arguments.given(), &error.message)) {
        Some(retry) => error.with_retry(retry),
        None => error,
    }
}

/// Returns a call that avoids what the message refuses. It never changes files.
fn instead(tool: &str, given: &Map<String, Value>, message: &str) -> Option<Value> {
    let call = |tool: &str, name: &str, value: &str| call_of(tool, Map::from_iter([(name.to_owned(), value.into())]));
    if let Some(path) = message.strip_prefix("expect is missing for ") {
        return call("read", "target", path);
    }
    let is_safe = TOOLS
        .iter()
        .any(|known| known.name == tool && known.effect != Effect::Writes);
    let refused = given
        .iter()
        .find(|(name, value)| !PLACES.contains(&name.as_str()) && is_refused(name, value, message));
    if let (Some((name, _)), true) = (refused, is_safe) {
        let others = given.iter().filter(|(other, _)| *other != name);
        return call_of(
            tool,
            others.map(|(name, value)| (name.clone(), value.clone())).collect(),
        );
    }
    let (name, place) = PLACES
        .iter()
        .find_map(|name| Some((*name, given.get(*name)?.as_str()?)))?;
    let path = place.split(':').next().unwrap_or(place);
    match name {
        _ if message.contains("is a folder") || message.starts_with("invalid position") => call("outline", "at", path),
        _ if message.contains("past the end") && is_safe => {
            let mut whole = given.clone();
            whole.insert(name.to_owned(), path.into());
            call_of(tool, whole)
        }
        "target" | "at" | "name" if message.contains(place) => call("search", "query", place),
        _ => None,
    }
}

/// The parameters without which a call makes no sense.
const PLACES: &[&str] = &["target", "at", "name", "id", "query", "op", "to", "from"];

/// Returns true if the message is about an argument: it begins with its name, or quotes its value.
fn is_refused(name: &str, value: &Value, message: &str) -> bool {
    let quotes = |value: &Value| {
        value
            .as_str()
            .is_some_and(|text| message.contains(&format!("{text:?}")))
    };
    let about = match name {
        "mode" => "regular expression",
        "lines" => "line",
        name => name,
    };
    let is_named = message.strip_prefix("invalid ").unwrap_or(message).starts_with(about);
    is_named || quotes(value) || value.as_array().is_some_and(|values| values.iter().any(quotes))
}

fn retry(call: &Call<'_>, misspelt: &Misspelt) -> Option<Value> {
    if misspelt.what == NameKind::Revision && misspelt.near.is_empty() {
        return Some(json!({"tool": "status", "arguments": {"op": "refs"}}));
    }
    let names: &[&str] = match misspelt.what {
        NameKind::Revision => &["ref", "refs", "from", "to", "ignore_revs"],
        NameKind::Path => &["target", "at"],
        NameKind::Language => &["lang"],
        NameKind::DefinitionKind => &["kind"],
    };
    let given = call.arguments.given();
    let (name, value) = names
        .iter()
        .find_map(|name| Some((name, corrected(given.get(*name)?, misspelt)?)))?;
    call_with(call, name, value)
}

/// Returns an argument with the first of the near names in place of the misspelt one, or without it if there are none;
/// `None` if the argument does not contain it.
fn corrected(argument: &Value, misspelt: &Misspelt) -> Option<Value> {
    match argument {
        Value::String(text) => replaced(text, &misspelt.given, misspelt.near.first()?).map(Value::from),
        Value::Array(items) => {
            let at = items.iter().position(|item| item == &misspelt.given)?;
            let near = misspelt.near.first().map(|near| Value::from(near.as_str()));
            let mut items = items.clone();
            items.splice(at..=at, near);
            Some(items.into())
        }
        _ => None,
    }
}

/// Replaces a name in `a..b`, `path:line` and the like.
fn replaced(text: &str, name: &str, by: &str) -> Option<String> {
    let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let mut splits = text
        .match_indices(name)
        .map(|(at, _)| (&text[..at], &text[at + name.len()..]));
    let (before, after) =
        splits.find(|(before, after)| !before.ends_with(is_of_name) && !after.starts_with(is_of_name))?;
    Some(format!("{before}{by}{after}"))
}

/// Returns the call with an argument replaced, or `None` if it is too long to repeat. An empty list is left out.
fn call_with(call: &Call<'_>, name: &str, value: Value) -> Option<Value> {
    let mut arguments: Map<String, Value> = call.arguments.given().clone();
    match value {
        Value::Array(items) if items.is_empty() => arguments.remove(name),
        value => arguments.insert(name.to_owned(), value),
    };
    call_of(call.tool, arguments)
}

/// Returns a call, or `None` if it is too long to repeat.
pub(super) fn call_of(tool: &str, arguments: Map<String, Value>) -> Option<Value> {
    const MAX_BYTES: usize = 1_000;
    let call = json!({"tool": tool, "arguments": arguments});
    (call.to_string().len() <= MAX_BYTES).then_some(call)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corrected_to(argument: Value, given: &str, near: &[&str]) -> Option<Value> {
        let misspelt = Misspelt {
            what: NameKind::Revision,
            given: given.to_owned(),
            near: near.iter().map(|&name| name.to_owned()).collect(),
        };
        corrected(&argument, &misspelt)
    }

    #[test]
    fn only_the_misspelt_name_is_replaced() {
        for (argument, given, right) in [
            (json!("mian"), "mian", json!("main")),
            (json!("an..HEAD~2"), "an", json!("main..HEAD~2")),
            (json!("man..an"), "an", json!("man..main")),
            (json!("./lexr.rs:3-5"), "lexr.rs", json!("./main:3-5")),
            (json!(["dev", "mian", "v1"]), "mian", json!(["dev", "main", "v1"])),
        ] {
            assert_eq!(
                corrected_to(argument.clone(), given, &["main", "other"]),
                Some(right),
                "{argument}"
            );
        }
        assert_eq!(corrected_to(json!("dev"), "mian", &["main"]), None);
        assert_eq!(
            corrected_to(json!(["rust", "klingon"]), "klingon", &[]),
            Some(json!(["rust"]))
        );
    }

    #[test]
    fn a_refused_argument_is_left_out_and_a_place_is_sought() {
        for (tool, given, message, expected) in [
            (
                "search",
                json!({"query": "x(", "mode": "regex"}),
                "invalid regular expression at character 2",
                json!({"tool": "search", "arguments": {"query": "x("}}),
            ),
            (
                "search",
                json!({"query": "x", "path": ["["]}),
                "invalid path pattern: [",
                json!({"tool": "search", "arguments": {"query": "x"}}),
            ),
            (
                "search",
                json!({"query": "x", "ref": ""}),
                "\"\" is not a ref",
                json!({"tool": "search", "arguments": {"query": "x"}}),
            ),
            (
                "read",
                json!({"target": "src"}),
                "\"src\" is a folder",
                json!({"tool": "outline", "arguments": {"at": "src"}}),
            ),
            (
                "blame",
                json!({"target": "a.py:900"}),
                "line 900 is past the end of \"a.py\" (9 lines)",
                json!({"tool": "blame", "arguments": {"target": "a.py"}}),
            ),
            (
                "edit",
                json!({"edits": []}),
                "expect is missing for a.py",
                json!({"tool": "read", "arguments": {"target": "a.py"}}),
            ),
            // An edit is not repeated with less.
            (
                "rename",
                json!({"target": "f", "new_name": "g", "accept": ["x:1"]}),
                "\"x:1\" matches no candidate of f",
                json!({"tool": "search", "arguments": {"query": "f"}}),
            ),
        ] {
            let given = given.as_object().cloned().unwrap_or_default();
            assert_eq!(instead(tool, &given, message), Some(expected), "{message}");
        }
    }
}
