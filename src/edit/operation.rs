//! The operations of an edit as requests.

use serde::{Deserialize, Serialize};

/// One operation on a file.
#[derive(Clone, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["op", "target"]))]
pub(crate) struct Operation {
    /// What to do.
    #[schemars(description = "")]
    pub(crate) op: Verb,
    /// A file (`path`), definition, section or key (`path#Outer.name`, `path:line`), or lines (`path:10-20`).
    #[schemars(description = "path, path#Outer.name, path:line, path:10-20")]
    pub(crate) target: String,
    /// The new text.
    #[schemars(description = "")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    /// The blob id of the file as the caller has seen it, or at least its first 12 digits.
    #[schemars(description = "blob the file had when read")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) expect: Option<String>,
    /// The text that `replace_text` replaces.
    #[schemars(description = "for replace_text")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) old: Option<String>,
    /// The number of times that the old text occurs; once by default.
    #[schemars(description = "occurrences of old, default 1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) count: Option<u32>,
    /// Replaces all occurrences of the old text.
    #[schemars(description = "")]
    pub(crate) all: bool,
}

/// The kinds of operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub(crate) enum Verb {
    /// Replace a definition, a section or lines
    #[default]
    Replace,
    /// Replace the body of a definition, the value of a key or the text of a section
    ReplaceBody,
    /// Replace, add or remove the documentation of a definition
    ReplaceDoc,
    /// Replace exact text
    ReplaceText,
    /// Replace, add or remove front matter
    ReplaceFrontMatter,
    /// Insert before a definition
    InsertBefore,
    /// Insert after a definition
    InsertAfter,
    /// Insert at the end of a container or file
    InsertLast,
    /// Remove a definition with everything that belongs to it
    Remove,
    /// Create a file
    Create,
    /// Remove a file
    Delete,
}

impl Verb {
    /// Returns the name in requests.
    pub(super) fn name(self) -> String {
        serde_json::to_value(self)
            .ok()
            .and_then(|name| name.as_str().map(str::to_owned))
            .unwrap_or_default()
    }

    /// Returns true if the operation needs a text.
    pub(super) fn needs_text(self) -> bool {
        !matches!(self, Self::Remove | Self::Delete)
    }
}
