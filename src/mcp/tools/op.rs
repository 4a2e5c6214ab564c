//! Runs an operation as a tool.

use anyhow::Result;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::super::reply::{Reply, paged};
use super::super::tool::Call;
use crate::ops::Op;

/// Answers a call with an operation.
pub(super) fn run<O: Op + DeserializeOwned>(call: &Call<'_>) -> Result<Reply> {
    let op: O = serde_json::from_value(Value::Object(call.arguments.given().clone()))?;
    let ask = call.ask()?;
    let characters = ask.common.characters.unwrap_or_default();
    let page = op.run(&ask)?;
    Ok(paged(call, characters, page))
}
