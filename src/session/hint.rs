//! Suggests what to do after an error.

use super::error::OpError;
use crate::config::{ConfigError, Origin};
use crate::git::{ObjectError, OpenError, RevisionError};
use crate::ingest::IngestError;
use crate::query::{CursorError, PatternError, ReadError, SearchError};

/// The front end that displays a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrontEnd {
    /// The command line.
    Shell,
    /// An MCP client.
    Tools,
}

impl FrontEnd {
    fn pick(self, shell: &str, tools: &str) -> String {
        match self {
            Self::Shell => shell,
            Self::Tools => tools,
        }
        .to_owned()
    }
}

/// Returns a suggestion for what to do after an error.
pub(crate) fn hint(error: &anyhow::Error, front_end: FrontEnd) -> Option<String> {
    for cause in error.chain() {
        if let Some(error) = cause.downcast_ref::<OpenError>() {
            return error.hint();
        }
        match cause.downcast_ref::<RevisionError>() {
            Some(RevisionError::Unknown { near, .. }) if !near.is_empty() => {
                return Some(format!("did you mean {}?", near.join(" or ")));
            }
            Some(RevisionError::Ambiguous { candidates, .. }) => {
                let list: Vec<String> = candidates
                    .iter()
                    .map(|candidate| format!("{} ({})", candidate.abbreviation, candidate.description))
                    .collect();
                return Some(format!("it could be {}", list.join(", ")));
            }
            _ => {}
        }
        let object = match cause.downcast_ref::<IngestError>() {
            Some(IngestError::Object(error)) => Some(error),
            _ => cause.downcast_ref::<ObjectError>(),
        };
        if let Some(ObjectError::BeyondLimit { .. }) = object {
            return Some(front_end.pick(
                "codescout read PATH --ref REVISION reads one file without listing the tree; so do outline, blame and diff",
                "read with a path and a ref reads one file without listing the tree; so do blame and diff",
            ));
        }
        if let Some(ConfigError::Server {
            key,
            origin: Origin::File(_),
            ..
        }) = cause.downcast_ref()
        {
            return Some(format!(
                "codescout config set {key} VALUE, or: codescout config unset {key}"
            ));
        }
        match cause.downcast_ref() {
            Some(ConfigError::NotTrusted { path, .. }) => {
                return Some(format!(
                    "if you wrote it: codescout config trust; else delete {}, it may have come with the repository",
                    path.display()
                ));
            }
            Some(ConfigError::NotForRepositories { .. }) => {
                return Some("take it out of the file; for yourself: codescout config set KEY VALUE, or with --user for all your repositories".to_owned());
            }
            Some(ConfigError::NotRecorded { .. }) => {
                return Some("set it for all your repositories: codescout config set --user KEY VALUE".to_owned());
            }
            _ => {}
        }
        if let Some(error) = cause.downcast_ref::<OpError>() {
            return error.hint.clone();
        }
        match cause.downcast_ref::<CursorError>() {
            Some(CursorError::OtherSnapshot) => {
                return Some(front_end.pick(
                    "the files have changed since; ask again without --cursor",
                    "the files have changed since; ask again without cursor",
                ));
            }
            Some(CursorError::OtherQuestion) => {
                return Some("repeat the call that gave it, with the same words and filters".to_owned());
            }
            Some(CursorError::Malformed) => {
                return Some("take it from next_cursor of the answer before".to_owned());
            }
            None => {}
        }
        if let Some(SearchError::OtherOrder { .. }) = cause.downcast_ref() {
            return Some(front_end.pick(
                "ask again later, or from the beginning, without --cursor",
                "ask again later, or from the beginning, without cursor",
            ));
        }
        match cause.downcast_ref::<ReadError>() {
            Some(ReadError::UnknownPath { near, .. } | ReadError::NoPart { near, .. }) if !near.is_empty() => {
                return Some(format!("did you mean {}?", near.join(" or ")));
            }
            Some(ReadError::Folder { path }) => {
                return Some(front_end.pick(
                    &format!("codescout outline {path}"),
                    &format!("outline with path {path:?} shows what is in it"),
                ));
            }
            _ => {}
        }
        if let Some(PatternError::Syntax { .. }) = cause.downcast_ref() {
            return Some(front_end.pick(
                "to find the text as it stands, add -F (codescout grep)",
                "put a backslash before each of the characters . + * ? ( ) [ ] { } ^ $ | that stand for themselves",
            ));
        }
        if let Some(error) = cause.downcast_ref::<crate::sidecar::OpenError>() {
            return error.hint();
        }
        if let Some(crate::sidecar::StateError::Damaged { .. }) = cause.downcast_ref() {
            return Some("the next search rebuilds the index, or: codescout verify --repair".to_owned());
        }
        if let Some(crate::sidecar::StateError::Format { .. }) = cause.downcast_ref() {
            return Some("use the build that wrote it, or delete the folder: nothing but time is lost".to_owned());
        }
    }
    None
}
