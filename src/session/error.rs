//! The error of a request: message, kind, hint, and a call that would work instead.

use std::fmt::Display;
use std::io;

use serde::Serialize;
use serde_json::Value;

use crate::model::{ErrorKind, Explain, Explanation, Hint, Misspelt, NameKind, chain, without_middles};

/// The result of everything from `session` up.
pub type Result<T, E = OpError> = std::result::Result<T, E>;

/// An error of a request.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct OpError {
    /// The problem, with its causes.
    pub(crate) message: String,
    /// The kind, for callers that handle some errors differently.
    pub(crate) kind: ErrorKind,
    /// The next step.
    pub(crate) hint: Box<Hint>,
    /// The name that does not exist, if that is the problem.
    pub(crate) misspelt: Option<Box<Misspelt>>,
    /// An MCP call that would work.
    pub(crate) retry: Option<Box<Value>>,
}

/// An error as a front end shows it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ErrorOut {
    /// The problem.
    pub(crate) error: String,
    /// The next step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
    /// An MCP call that would work.
    #[serde(rename = "try", skip_serializing_if = "Option::is_none")]
    pub(crate) retry: Option<Value>,
}

impl OpError {
    /// Creates an error with a hint.
    pub(crate) fn new(message: impl Into<String>, hint: impl Into<Hint>) -> Self {
        Self::failed(message).with_hint(hint)
    }

    /// Creates an error without a hint.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            kind: ErrorKind::Failed,
            hint: Box::default(),
            misspelt: None,
            retry: None,
        }
    }

    /// Creates the error for something that does not exist, or that is not shown.
    pub(crate) fn not_found(message: impl Into<String>, hint: impl Into<Hint>) -> Self {
        Self {
            kind: ErrorKind::NotFound,
            ..Self::new(message, hint)
        }
    }

    /// Creates the error of a request that was interrupted.
    pub(crate) fn interrupted() -> Self {
        Self {
            kind: ErrorKind::Interrupted,
            ..Self::failed("interrupted")
        }
    }

    /// Creates the error of a request that was interrupted, with the state of its work.
    pub(crate) fn interrupted_with(state: &str) -> Self {
        let interrupted = Self::interrupted();
        Self {
            message: format!("{interrupted}; {state}"),
            ..interrupted
        }
    }

    /// Creates the error for a path that is hidden because its name suggests credentials.
    pub(crate) fn hidden(path: &str) -> Self {
        Self::not_found(
            format!("{path:?} is not shown: its name suggests that it contains credentials"),
            "ask the user to read it if you need its content",
        )
    }

    /// Replaces the hint.
    pub(crate) fn with_hint(self, hint: impl Into<Hint>) -> Self {
        Self {
            hint: Box::new(hint.into()),
            ..self
        }
    }

    /// Adds the name that does not exist.
    pub(crate) fn for_misspelt(self, what: NameKind, given: &str, near: Vec<String>) -> Self {
        let given = given.to_owned();
        Self {
            misspelt: Some(Box::new(Misspelt { what, given, near })),
            ..self
        }
    }

    /// Adds an MCP call that would work.
    pub(crate) fn with_retry(self, retry: Value) -> Self {
        Self {
            retry: Some(Box::new(retry)),
            ..self
        }
    }

    /// Puts what failed before the message.
    pub(crate) fn context(self, action: impl Display) -> Self {
        Self {
            message: format!("{action}: {self}"),
            ..self
        }
    }

    /// Returns true if the request was interrupted.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.kind == ErrorKind::Interrupted
    }

    /// Returns the error as the command line shows it.
    pub(crate) fn for_shell(&self) -> ErrorOut {
        ErrorOut {
            error: without_middles(&self.message),
            hint: self.hint.shell.clone(),
            retry: None,
        }
    }

    /// Returns the error as tools show it.
    pub(crate) fn for_tools(&self) -> ErrorOut {
        ErrorOut {
            error: without_middles(&self.message),
            hint: self.hint.tools.clone(),
            retry: self.retry.as_deref().cloned(),
        }
    }
}

impl<E: Explain + 'static> From<E> for OpError {
    fn from(error: E) -> Self {
        let Explanation { kind, hint, misspelt } = error.explain();
        let kind = match kind {
            ErrorKind::Failed => system_error(&error).map_or(kind, ErrorKind::System),
            kind => kind,
        };
        Self {
            message: chain(&error),
            kind,
            hint: Box::new(hint),
            misspelt: misspelt.map(Box::new),
            retry: None,
        }
    }
}

/// Returns the kind of the error of the operating system among the causes of an error.
fn system_error(error: &(dyn std::error::Error + 'static)) -> Option<io::ErrorKind> {
    let mut causes = std::iter::successors(Some(error), |cause| cause.source());
    causes.find_map(|cause| cause.downcast_ref::<io::Error>().map(io::Error::kind))
}

/// Adds what failed to an error, or creates an error for a missing value.
pub(crate) trait Context<T> {
    fn context(self, action: impl Display) -> Result<T>;

    fn with_context<D: Display>(self, action: impl FnOnce() -> D) -> Result<T>;
}

impl<T, E: Into<OpError>> Context<T> for Result<T, E> {
    fn context(self, action: impl Display) -> Result<T> {
        self.with_context(|| action)
    }

    fn with_context<D: Display>(self, action: impl FnOnce() -> D) -> Result<T> {
        self.map_err(|error| error.into().context(action()))
    }
}

impl<T> Context<T> for Option<T> {
    fn context(self, message: impl Display) -> Result<T> {
        self.with_context(|| message)
    }

    fn with_context<D: Display>(self, message: impl FnOnce() -> D) -> Result<T> {
        self.ok_or_else(|| OpError::failed(message().to_string()))
    }
}

/// Returns an error without a hint.
macro_rules! bail {
    ($($message:tt)+) => {
        return Err($crate::session::OpError::failed(format!($($message)+)))
    };
}
pub(crate) use bail;

/// Returns an error without a hint unless a condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            $crate::session::bail!($($message)+);
        }
    };
}
pub(crate) use ensure;

/// Errors that have no explanation beside their message.
macro_rules! unexplained {
    ($($error:ty),+ $(,)?) => {
        $(impl Explain for $error {})+
    };
}
unexplained!(
    io::Error,
    rayon::ThreadPoolBuildError,
    regex::Error,
    serde_json::Error,
    crate::bundle::HeaderError,
    crate::bundle::KeyError,
    crate::config::EditError,
    crate::embed::OpenError,
    crate::evaluate::JudgementError,
    crate::git::WatchError,
    crate::index::RecordsError,
    crate::model::OidError,
    crate::precise::ScipError,
    crate::remote::EndpointError,
    crate::sidecar::failpoint::NotAFailPoint,
    crate::snapshot::OverlayError,
);

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::git::{ObjectError, RevisionError};
    use crate::history::LinesError;
    use crate::ingest::{IngestError, RecordError};
    use crate::model::Oid;
    use crate::sidecar::FileError;

    #[test]
    fn kinds_and_hints_of_causes_are_kept() {
        let state = FileError::damaged("state", "checksum");
        let damaged = OpError::from(RecordError::File(state)).context("cannot index");
        assert_eq!(damaged.kind, ErrorKind::Damaged);
        assert_eq!(damaged.message, "cannot index: state is damaged: checksum");
        assert!(
            damaged
                .for_shell()
                .hint
                .is_some_and(|hint| hint.contains("verify --repair"))
        );

        let interrupted = OpError::from(RecordError::Lines(Box::new(LinesError::Interrupted)));
        assert!(interrupted.is_interrupted());

        let object = ObjectError::BeyondLimit {
            id: Oid::from_bytes(&[0; 20]).unwrap(),
            what: "entries",
            limit: 1,
        };
        let too_large = OpError::from(IngestError::Object(object));
        assert_ne!(too_large.for_shell().hint, too_large.for_tools().hint);

        let refused = io::Error::from(io::ErrorKind::PermissionDenied);
        let refused = OpError::from(FileError::read("index", refused));
        assert_eq!(refused.kind, ErrorKind::System(io::ErrorKind::PermissionDenied));
    }

    #[test]
    fn an_unknown_revision_has_similar_names() {
        let unknown = |near: &[&str], is_shallow| {
            let near = near.iter().map(|&name| name.to_owned()).collect();
            let spec = "mian".to_owned();
            OpError::from(RevisionError::Unknown { spec, near, is_shallow })
        };
        let near = unknown(&["main"], false);
        assert_eq!(near.for_shell().hint.as_deref(), Some("did you mean main?"));
        assert_eq!(
            near.misspelt.map(|misspelt| misspelt.near),
            Some(vec!["main".to_owned()])
        );
        assert_eq!(unknown(&[], false).for_shell().hint, None);
        assert!(
            unknown(&[], false)
                .for_tools()
                .hint
                .is_some_and(|hint| hint.contains("op=refs"))
        );
        assert!(
            unknown(&[], true)
                .for_shell()
                .hint
                .is_some_and(|hint| hint.contains("--unshallow"))
        );
    }
}
