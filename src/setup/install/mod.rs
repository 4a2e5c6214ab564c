//! Adds codescout to the MCP configuration of coding agents, and removes it again.
//!
//! [`clients`] is the table of clients. A [`Plan`] lists the files that would change and how, without changing any;
//! [`Plan::apply`] changes them. Files are edited in place (`json_text`, `toml_text`, `yaml_text`, `block`), so that
//! comments, order, indentation and line ends stay; the result of each edit is parsed and compared with the expected
//! value. `record` keeps the original file, so that it can be restored byte for byte.
//!
//! Nothing here prints or asks; start at [`Plan::install`].

mod block;
mod clients;
mod diff;
mod entry;
mod file;
mod json_text;
mod places;
mod plan;
mod record;
mod toml_text;
mod yaml_text;

pub(crate) use clients::{Client, clients};
pub(crate) use entry::{Server, TOKEN_VARIABLE};
pub(crate) use places::{Places, Scope};
pub(crate) use plan::{Act, Change, InstallError, Part, Plan, Request, is_installed};

/// An error from editing a text.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TextError {
    /// It does not parse.
    #[error("line {line}: {message}")]
    Broken {
        /// From 1.
        line: usize,
        /// The parser's message.
        message: String,
    },
    /// It parses, but a value has the wrong type.
    #[error("{what} is not {expected}")]
    OtherShape {
        /// The value.
        what: String,
        /// The type it should have.
        expected: &'static str,
    },
    /// The edited text would have another meaning than intended.
    #[error("{what} is written in a way that cannot be edited without rewriting the file")]
    NotEditable {
        /// The value to change.
        what: String,
    },
    /// A file that codescout would own was written by something else.
    #[error("the file exists and was not written by codescout")]
    Foreign,
}

/// A text after an edit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Edited {
    /// The whole text.
    pub(crate) text: String,
    /// True if the section with the servers was added.
    pub(crate) made_section: bool,
}
