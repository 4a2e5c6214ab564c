//! The parameters of a call that are common to all operations.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::extract::DefinitionKind;
use crate::model::{Hint, NameKind};
use crate::query::{CursorKey, FileFilter, FilterError, Tests, kind_by_name, kind_names, nearest};
use crate::session::{CallCtx, OpError, Opens, Result, Session, Visibility, Workspace};

use super::op::{Op, PageOf};
use super::paths::pattern;

/// Maximum number of results of one answer over MCP.
pub(crate) const MAX_LIMIT: usize = 1_000;
/// Number of characters that count as a token.
pub(crate) const CHARACTERS_PER_TOKEN: usize = 4;

/// A call of an operation: the repository, the context of the call, and the parameters common to all operations.
pub(crate) struct Ask<'a> {
    /// The repository.
    pub(crate) session: &'a Session,
    /// Progress, interruption and time limits.
    pub(crate) call: CallCtx<'a>,
    /// Opens linked repositories.
    pub(crate) opens: &'a dyn Opens,
    /// The shared parameters.
    pub(crate) common: Common,
}

/// Parameters common to all operations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Common {
    /// The revision.
    pub(crate) reference: String,
    /// Maximum number of results, 0 for all; `None` for the operation's default.
    pub(crate) limit: Option<usize>,
    /// The cursor of an earlier answer to continue; `None` for the first page.
    pub(crate) cursor: Option<String>,
    /// The amount of text per result.
    pub(crate) detail: Detail,
    /// Determines what to do while the index is being built.
    pub(crate) stale: Stale,
    /// Maximum size of the answer in characters, if the client limits it.
    pub(crate) characters: Option<usize>,
    /// The request as text. Cursors are valid only for the same request.
    pub(crate) question: String,
}

/// The amount of text per result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Detail {
    /// Only the location.
    Ids,
    /// The location and the signature.
    Outline,
    /// The first lines.
    #[default]
    Preview,
    /// The whole text.
    Full,
    /// The results with what is needed to understand them, within the size of the answer.
    Pack,
}

/// Determines what to do while the index is being built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stale {
    /// Answers from the files that are available, with a note.
    #[default]
    Warn,
    /// Returns an error.
    Error,
    /// Answers from the last complete state, with a note.
    Ignore,
}

/// Options that select files.
#[derive(Clone, Debug, Default, Serialize, Deserialize, clap::Args, schemars::JsonSchema)]
#[serde(default)]
pub(crate) struct FileSelection {
    /// Include only this directory or files that match this glob; a leading `!` excludes; repeatable
    #[arg(short, long = "path", short_alias = 'g', alias = "glob", value_name = "GLOB", value_parser = path_text())]
    #[schemars(description = "globs, !glob")]
    pub(crate) path: Vec<String>,
    /// Include only files in this language; repeatable
    #[arg(long = "lang", short_alias = 't', alias = "type", value_name = "LANG")]
    #[schemars(description = "")]
    pub(crate) lang: Vec<String>,
    /// Include test code: any (yes), no, or only
    #[arg(long, value_enum, default_value_t)]
    #[schemars(description = "")]
    pub(crate) tests: WithTests,
    /// Include only files of this package; with +deps also of the packages that it needs; repeatable
    #[arg(long = "package", value_name = "NAME", hide_short_help = true)]
    #[serde(rename = "package", skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub(crate) packages: Vec<String>,
    /// Include linked repositories too (see `codescout config`): all, or the links and scopes with these names
    #[arg(long, value_name = "NAMES", num_args = 0..=1, require_equals = true, value_delimiter = ',',
        default_missing_value = "*", hide_short_help = true)]
    #[serde(rename = "repos", skip_serializing_if = "Vec::is_empty")]
    #[schemars(description = "linked; * for all")]
    pub(crate) linked: Vec<String>,
}

impl FileSelection {
    /// Returns the filter for paths of any revision.
    pub(crate) fn filter(&self, workspace: &Workspace) -> Result<FileFilter, FilterError> {
        let paths: Vec<String> = self.path.iter().map(|path| pattern(workspace, path)).collect();
        FileFilter::new(&paths, &self.lang, self.tests.to_query())
    }

    /// Describes the selection in words.
    pub(crate) fn to_text(&self) -> String {
        let tests = match self.tests {
            WithTests::Any => "",
            WithTests::No => "no",
            WithTests::Only => "only",
        };
        let options = [
            ("path", self.path.join(", ")),
            ("lang", self.lang.join(", ")),
            ("package", self.packages.join(", ")),
            ("tests", tests.to_owned()),
        ];
        let given = options.iter().filter(|(_, values)| !values.is_empty());
        let given: Vec<String> = given.map(|(name, values)| format!("{name} {values}")).collect();
        given.join(" and ")
    }
}

/// Whether test code is included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WithTests {
    /// All code
    #[default]
    Any,
    /// Only non-test code
    No,
    /// Only tests
    Only,
}

impl WithTests {
    /// Converts the option to that of the query module.
    pub(crate) fn to_query(self) -> Tests {
        match self {
            Self::Any => Tests::Any,
            Self::No => Tests::No,
            Self::Only => Tests::Only,
        }
    }
}

/// The option that selects kinds of definitions.
#[derive(Clone, Debug, Default, Serialize, Deserialize, clap::Args, schemars::JsonSchema)]
#[serde(default)]
pub(crate) struct KindSelection {
    /// Include only definitions of this kind: function, class, ...; repeatable
    #[arg(short, long = "kind", value_name = "KIND")]
    #[schemars(description = "function, class, ...")]
    pub(crate) kind: Vec<String>,
}

impl KindSelection {
    /// Returns the kinds.
    pub(crate) fn kinds(&self) -> Result<Vec<DefinitionKind>> {
        let known = |name: &String| {
            kind_by_name(name).ok_or_else(|| {
                let near = nearest(name, kind_names());
                let hint = match near.as_slice() {
                    [] => format!("kinds are {}", kind_names().collect::<Vec<_>>().join(", ")).into(),
                    near => Hint::did_you_mean(near),
                };
                OpError::new(format!("unknown kind {name}"), hint).for_misspelt(NameKind::DefinitionKind, name, near)
            })
        };
        self.kind.iter().map(known).collect()
    }
}

/// Creates a parser of arguments that may contain a path. Bytes that are not UTF-8 are replaced by special characters
/// that can be converted back.
pub(crate) fn path_text() -> impl clap::builder::TypedValueParser<Value = String> {
    use std::os::unix::ffi::OsStrExt;

    use clap::builder::{OsStringValueParser, TypedValueParser};

    use crate::model::with_placeholders;
    OsStringValueParser::new().map(|typed| with_placeholders(typed.as_bytes()).into_owned())
}

impl<'a> Ask<'a> {
    /// Returns the same call for another revision.
    pub(crate) fn at(&self, reference: &str) -> Ask<'a> {
        Ask {
            session: self.session,
            call: self.call,
            opens: self.opens,
            common: Common {
                reference: reference.to_owned(),
                ..self.common.clone()
            },
        }
    }

    /// Returns the same call for at most `limit` results.
    pub(crate) fn limited(&self, limit: usize) -> Ask<'a> {
        self.limited_to(Some(limit))
    }

    /// Returns the same call for at most `limit` results, or the usual number of them.
    pub(crate) fn limited_to(&self, limit: Option<usize>) -> Ask<'a> {
        Ask {
            session: self.session,
            call: self.call,
            opens: self.opens,
            common: Common {
                limit,
                ..self.common.clone()
            },
        }
    }

    /// Returns the same question, which ends after `time` with the part of the history that is read by then.
    pub(crate) fn hurried(&self, time: Duration) -> Ask<'a> {
        Ask {
            call: CallCtx {
                ctx: self.call.ctx.until(Some(Instant::now() + time)),
                ..self.call
            },
            ..self.at(&self.common.reference)
        }
    }

    /// Runs an operation in the linked repository that `target` names: `sdk:src/lib.rs`. `of` makes the operation for the
    /// target in that repository. Returns `None` if the target names no linked repository.
    pub(crate) fn in_linked<O: Op>(&self, target: &str, of: impl FnOnce(String) -> O) -> Result<Option<PageOf<O>>> {
        let Some((session, rest, reference)) = self.session.linked_target(target, self.opens)? else {
            return Ok(None);
        };
        let mut common = self.common.clone();
        if common.reference == "WORKTREE" {
            common.reference = reference;
        }
        let ask = Ask {
            session: &session,
            call: self.call,
            opens: self.opens,
            common,
        };
        of(rest.to_owned()).run(&ask).map(Some)
    }

    /// Determines whether files with credentials are visible.
    pub(crate) fn visibility(&self) -> Visibility {
        self.session.visibility
    }

    /// Returns the maximum number of results, or `default` if the call sets none.
    pub(crate) fn limit(&self, default: usize) -> usize {
        match (self.common.limit, self.common.characters) {
            (None, _) => default,
            (Some(0), None) => usize::MAX,
            (Some(0), Some(_)) => MAX_LIMIT,
            (Some(limit), _) => limit,
        }
    }

    /// Returns the number of results on earlier pages. `state` is the data that the answer depends on.
    pub(crate) fn n_before(&self, state: impl Debug) -> Result<usize> {
        match &self.common.cursor {
            Some(cursor) => Ok(self.key(state).read(cursor)?.0 as usize),
            None => Ok(0),
        }
    }

    /// Returns the key that makes cursors valid only for this request and `state`, the data that the answer depends on.
    pub(crate) fn key(&self, state: impl Debug) -> CursorKey {
        CursorKey::of_state(&format!("{state:?}"), &self.common.question)
    }
}
