//! What is told when a call has no answer.

use serde::Serialize;
use serde_json::Value;

use crate::session::{Door, hint};

/// An expected failure: an ordinary result that says what is wrong and what to do.
#[derive(Clone, Debug, Serialize, thiserror::Error)]
#[error("{error}")]
pub(super) struct Failure {
    /// What is wrong.
    pub(super) error: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hint: Option<String>,
    /// A call that would work.
    #[serde(rename = "try", skip_serializing_if = "Option::is_none")]
    pub(super) retry: Option<Value>,
}

impl Failure {
    /// One with a hint.
    pub(super) fn new(error: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            error: error.into(),
            hint: Some(hint.into()),
            retry: None,
        }
    }

    /// What is not shown.
    pub(super) fn hidden(what: &str) -> Self {
        Self::new(
            format!("{what:?} is not shown: by its name it holds credentials"),
            "ask the user to read it, if it has to be",
        )
    }

    /// With a call that would work.
    pub(super) fn with_retry(mut self, retry: Value) -> Self {
        self.retry = Some(retry);
        self
    }

    /// What an error says to a caller of tools.
    pub(super) fn of(error: &anyhow::Error) -> Self {
        if let Some(failure) = error.chain().find_map(|cause| cause.downcast_ref::<Self>()) {
            return failure.clone();
        }
        Self {
            error: format!("{error:#}"),
            hint: hint(error, Door::Tools),
            retry: None,
        }
    }

    /// As text.
    pub(super) fn to_text(&self) -> String {
        let mut text = format!("error: {}", self.error);
        if let Some(hint) = &self.hint {
            text.push_str(&format!("\nhint: {hint}"));
        }
        if let Some(retry) = &self.retry {
            text.push_str(&format!("\ntry: {retry}"));
        }
        text
    }
}
