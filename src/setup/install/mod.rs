//! Names this program in the configuration of the agents that people use, and takes it back.
//!
//! [`clients`] is the table of what is known about each client. A [`Plan`] says which files would change and how, without
//! changing any; [`Plan::apply`] then does it. Files are edited where the change belongs (`json_text`, `toml_text`,
//! `yaml_text`, `block`) and never written anew, so that comments, order, indentation and line ends stay; every edit is
//! parsed again before it counts. `record` keeps what was there before, so that it can be put back byte for byte.
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

/// Why a text was not edited.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TextError {
    /// It does not parse.
    #[error("line {line}: {message}")]
    Broken {
        /// From 1.
        line: usize,
        /// What the parser said.
        message: String,
    },
    /// It parses, and what is to be changed has another shape than it must have.
    #[error("{what} is not {expected}")]
    OtherShape {
        /// What was looked at.
        what: String,
        /// What it should be.
        expected: &'static str,
    },
    /// The text after the edit would not mean what it should.
    #[error("{what} is written in a way that cannot be edited without rewriting the file")]
    NotEditable {
        /// What was to be changed.
        what: String,
    },
    /// A file that would be wholly ours is somebody else's.
    #[error("it is there already and was not written by codescout")]
    Foreign,
}

/// A text after an edit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Edited {
    /// The whole text.
    pub(crate) text: String,
    /// Whether the section that holds the servers was not there before.
    pub(crate) made_section: bool,
}
