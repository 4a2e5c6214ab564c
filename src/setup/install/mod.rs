//! Adds codescout to the MCP configuration of coding agents, with instructions, a skill, a sub-agent and hooks
//! (`extras`), and removes it again.
//!
//! [`clients`] is the table of supported clients. A [`Plan`] lists the changes of files without making them;
//! [`Plan::apply`] makes them. Files are edited in place (`json_text`, `toml_text`, `yaml_map`, `block`), so that
//! comments, order, indentation and line endings remain unchanged. The result of each edit is parsed and compared with
//! the expected value. `record` stores the original file, so that it can be restored byte for byte.
//!
//! This module does not print or ask the user. Start at [`Plan::install`].

mod block;
mod clients;
mod diff;
mod entry;
mod extras;
mod file;
mod json_text;
mod places;
mod plan;
mod record;
mod toml_text;
mod uses;
mod yaml_map;
mod yaml_text;

pub(crate) use clients::{Client, clients};
pub(crate) use entry::{Server, TOKEN_VARIABLE};
pub(crate) use places::{Places, Scope};
pub(crate) use plan::{Act, Change, InstallError, Part, Plan, Request, config_file, is_installed};
pub(crate) use uses::Uses;

/// An error from editing a text.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TextError {
    /// The text cannot be parsed.
    #[error("line {line}: {message}")]
    Broken {
        /// The 1-based line.
        line: usize,
        /// The parser's message.
        message: String,
    },
    /// The text can be parsed, but a value has the wrong type.
    #[error("{what} is not {expected}")]
    OtherShape {
        /// The value.
        what: String,
        /// The type it should have.
        expected: &'static str,
    },
    /// The edited text would not have the intended meaning.
    #[error("{what} is written in a way that cannot be edited without rewriting the file")]
    NotEditable {
        /// The value to change.
        what: String,
    },
    /// A file that only codescout should write was written by something else.
    #[error("the file exists and was not written by codescout")]
    Foreign,
}

/// A text after an edit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Edited {
    /// The whole text.
    pub(crate) text: String,
    /// True if the section for servers was added.
    pub(crate) made_section: bool,
}
