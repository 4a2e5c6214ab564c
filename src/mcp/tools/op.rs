//! Runs an operation as a tool.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::super::reply::{Reply, paged};
use super::super::tool::Call;
use crate::ops::{self, Op};
use crate::session::Result;

/// Answers a call by running an operation.
pub(in crate::mcp) fn run<O: Op + DeserializeOwned>(call: &Call<'_>) -> Result<Reply> {
    answer(call, &request::<O>(call)?)
}

/// Answers a call by running the operation that its parameter `op` selects.
pub(super) fn run_selected(call: &Call<'_>, name: &str, op: &impl Op) -> Result<Reply> {
    let mut reply = answer(call, op)?;
    if let Some(structured) = &mut reply.structured {
        structured.insert("op".to_owned(), name.into());
    }
    Ok(reply)
}

/// Returns the request that the arguments of a call describe.
pub(super) fn request<O: DeserializeOwned>(call: &Call<'_>) -> Result<O> {
    Ok(serde_json::from_value(Value::Object(call.arguments.given().clone()))?)
}

fn answer(call: &Call<'_>, op: &impl Op) -> Result<Reply> {
    let ask = call.ask()?;
    let characters = ask.common.characters.unwrap_or_default();
    let page = ops::answered(op, &ask)?;
    Ok(paged(call, characters, page))
}
