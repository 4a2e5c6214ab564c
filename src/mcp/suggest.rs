//! Suggests a working call after a failed one.

use anyhow::Error;
use serde_json::{Map, Value, json};

use super::tool::Call;
use crate::extract;
use crate::git::RevisionError;
use crate::query::{FilterError, ReadError, kind_by_name, kind_names, nearest};
use crate::session::{FrontEnd, OpError};

/// Converts an error to an operation error, and adds a suggested call if one is known. Returns interruptions unchanged.
pub(super) fn with_call(call: &Call<'_>, error: Error) -> Error {
    let mut failure = match error.downcast_ref::<OpError>() {
        Some(failure) => failure.clone(),
        None if error.root_cause().to_string() == "interrupted" => return error,
        None => OpError::of(&error, FrontEnd::Tools),
    };
    if failure.retry.is_none() {
        failure.retry = retry(call, &error, &mut failure.hint);
    }
    failure.into()
}

fn retry(call: &Call<'_>, error: &Error, hint: &mut Option<String>) -> Option<Value> {
    for cause in error.chain() {
        if let Some(RevisionError::Unknown { near, .. }) = cause.downcast_ref() {
            let Some(near) = near.first() else {
                hint.get_or_insert("status op=refs lists branches and tags".to_owned());
                return Some(json!({"tool": "status", "arguments": {"op": "refs"}}));
            };
            return again(call, "ref", near);
        }
        if let Some(FilterError::Lang { name }) = cause.downcast_ref() {
            let known = nearest(name, extract::languages().map(|language| language.name));
            let Some(near) = known.first() else {
                hint.get_or_insert("status lists the known languages; without lang all are searched".to_owned());
                return without(call, "lang");
            };
            hint.get_or_insert(format!("did you mean {}?", known.join(" or ")));
            return again(call, "lang", near);
        }
        if let Some(ReadError::UnknownPath { near, .. }) = cause.downcast_ref() {
            let near = near.first()?;
            let named = ["target", "at"]
                .into_iter()
                .find(|name| call.arguments.text(name).is_some())?;
            return again(call, named, near);
        }
    }
    let unknown_kind = |kind: &&String| kind_by_name(kind).is_none();
    let kinds = call.arguments.texts("kind");
    let near = nearest(kinds.iter().find(unknown_kind)?, kind_names());
    again(call, "kind", near.first()?)
}

/// Returns the same call with one argument replaced.
fn again(call: &Call<'_>, name: &str, value: &str) -> Option<Value> {
    let mut arguments = call.arguments.given().clone();
    let is_list = arguments.get(name).is_some_and(Value::is_array);
    let value = if is_list { json!([value]) } else { value.into() };
    arguments.insert(name.to_owned(), value);
    told(call, arguments)
}

fn without(call: &Call<'_>, name: &str) -> Option<Value> {
    let mut arguments = call.arguments.given().clone();
    arguments.remove(name);
    told(call, arguments)
}

/// Returns the call as JSON, or `None` if it is too long to repeat.
fn told(call: &Call<'_>, arguments: Map<String, Value>) -> Option<Value> {
    const MAX_BYTES: usize = 1_000;
    let call = json!({"tool": call.tool, "arguments": arguments});
    (call.to_string().len() <= MAX_BYTES).then_some(call)
}
