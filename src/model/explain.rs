//! The parts of an error that callers and users act on.

use std::error::Error;
use std::io;

/// An error that can occur while a request is answered.
pub trait Explain: Error {
    /// Returns the kind of error, the next step and the misspelt name, as far as there are any.
    fn explain(&self) -> Explanation {
        Explanation::default()
    }
}

/// The parts of an error besides its message.
#[derive(Clone, Debug, Default)]
pub struct Explanation {
    /// The kind.
    pub kind: ErrorKind,
    /// The next step.
    pub hint: Hint,
    /// The name that does not exist, if that is the error.
    pub misspelt: Option<Misspelt>,
}

/// The kinds of errors that callers handle differently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorKind {
    /// Any other error.
    #[default]
    Failed,
    /// The caller interrupted the work.
    Interrupted,
    /// There is no such revision, repository or file.
    NotFound,
    /// An object that git should have is missing.
    ObjectMissing,
    /// Stored data is damaged.
    Damaged,
    /// Another process was faster.
    Raced,
    /// A bundle is of another build or another repository.
    OtherOrigin,
    /// A bundle does not take that much data.
    TooLarge,
    /// This clone lacks data that others have.
    Incomplete,
    /// The operating system refused.
    System(io::ErrorKind),
}

/// The next step after an error. Its wording may depend on the front end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hint {
    /// For the command line.
    pub shell: Option<String>,
    /// For tools.
    pub tools: Option<String>,
}

/// A name that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misspelt {
    /// The kind of name.
    pub what: NameKind,
    /// The name as given.
    pub given: String,
    /// Existing names that resemble it, best first.
    pub near: Vec<String>,
}

/// The kinds of names that can be misspelt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// A revision.
    Revision,
    /// The path of a file.
    Path,
    /// A language.
    Language,
    /// A kind of definition.
    DefinitionKind,
}

/// Implements [`Explain`] for an enum. The variants before the semicolon hold errors that explain themselves, the one
/// after it is an interruption.
macro_rules! explain_by {
    ($error:ty $(: $($variant:ident),+)? $(; $interrupted:ident)?) => {
        impl $crate::model::Explain for $error {
            fn explain(&self) -> $crate::model::Explanation {
                match self {
                    $($(Self::$variant(error) => $crate::model::Explain::explain(error),)+)?
                    $(Self::$interrupted => $crate::model::Explanation::of_kind($crate::model::ErrorKind::Interrupted),)?
                    #[allow(unreachable_patterns, reason = "some enums have no other variants")]
                    _ => $crate::model::Explanation::default(),
                }
            }
        }
    };
}
pub(crate) use explain_by;

impl Explanation {
    /// Explains an error that only has a kind.
    pub fn of_kind(kind: ErrorKind) -> Self {
        Self {
            kind,
            ..Self::default()
        }
    }

    /// Explains an error that only has a hint.
    pub fn hinting(hint: impl Into<Hint>) -> Self {
        Self {
            hint: hint.into(),
            ..Self::default()
        }
    }

    /// Explains a name that does not exist. The hint is the names that resemble it.
    pub fn misspelt(what: NameKind, given: &str, near: &[String]) -> Self {
        Self {
            hint: Hint::did_you_mean(near),
            misspelt: Some(Misspelt {
                what,
                given: given.to_owned(),
                near: near.to_vec(),
            }),
            ..Self::default()
        }
    }
}

impl Hint {
    /// Creates a hint whose wording depends on the front end.
    pub fn each(shell: impl Into<String>, tools: impl Into<String>) -> Self {
        Self {
            shell: Some(shell.into()),
            tools: Some(tools.into()),
        }
    }

    /// Suggests existing names; empty if there are none.
    pub fn did_you_mean(near: &[String]) -> Self {
        match near {
            [] => Self::default(),
            near => format!("did you mean {}?", near.join(" or ")).into(),
        }
    }

    /// Adds the wording for tools, if there is none.
    #[must_use]
    pub fn or_for_tools(mut self, hint: &str) -> Self {
        self.tools.get_or_insert_with(|| hint.to_owned());
        self
    }
}

impl From<String> for Hint {
    fn from(hint: String) -> Self {
        Self::each(hint.clone(), hint)
    }
}

impl From<&str> for Hint {
    fn from(hint: &str) -> Self {
        Self::each(hint, hint)
    }
}
