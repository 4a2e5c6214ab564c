//! Suggests a working call after a failed one.

use serde_json::{Map, Value, json};

use super::tool::Call;
use crate::model::{Misspelt, NameKind};
use crate::session::OpError;

/// Adds the call that the caller may have meant, if a name is misspelt.
pub(super) fn with_call(call: &Call<'_>, error: OpError) -> OpError {
    let misspelt = error.misspelt.as_deref().filter(|_| error.retry.is_none());
    match misspelt.and_then(|misspelt| retry(call, misspelt)) {
        Some(retry) => error.with_retry(retry),
        None => error,
    }
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
}
