//! Errors of requests, with a hint and a call that would work instead.

use serde::Serialize;
use serde_json::Value;

use super::hint::{FrontEnd, hint};

/// An error of a request.
#[derive(Clone, Debug, Serialize, thiserror::Error)]
#[error("{message}")]
pub(crate) struct OpError {
    /// The error message.
    #[serde(rename = "error")]
    pub(crate) message: String,
    /// A suggestion for what to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
    /// An MCP call that would work.
    #[serde(rename = "try", skip_serializing_if = "Option::is_none")]
    pub(crate) retry: Option<Value>,
}

impl OpError {
    /// Creates an error with a hint.
    pub(crate) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: Some(hint.into()),
            retry: None,
        }
    }

    /// Creates the error for a path that is hidden because its name suggests credentials.
    pub(crate) fn hidden(path: &str) -> Self {
        Self::new(
            format!("{path:?} is not shown: by its name it holds credentials"),
            "ask the user to read it, if it has to be",
        )
    }

    /// Adds an MCP call that would work.
    pub(crate) fn with_retry(self, retry: Value) -> Self {
        Self {
            retry: Some(retry),
            ..self
        }
    }

    /// Converts any error and adds a hint if there is one.
    pub(crate) fn of(error: &anyhow::Error, front_end: FrontEnd) -> Self {
        if let Some(error) = error.chain().find_map(|cause| cause.downcast_ref::<Self>()) {
            return error.clone();
        }
        Self {
            message: format!("{error:#}"),
            hint: hint(error, front_end),
            retry: None,
        }
    }

    /// Formats the error for a language model.
    pub(crate) fn to_text(&self) -> String {
        let mut text = format!("error: {}", self.message);
        if let Some(hint) = &self.hint {
            text.push_str(&format!("\nhint: {hint}"));
        }
        if let Some(retry) = &self.retry {
            text.push_str(&format!("\ntry: {retry}"));
        }
        text
    }
}
