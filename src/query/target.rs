//! Finds the definitions that a target as typed can mean: a name, an id or a position.

use crate::extract::DefinitionKind;
use crate::link::Linker;
use crate::model::{Explain, Explanation, Hint};
use crate::snapshot::View;

use super::definition::FoundDefinition;
use super::filter::FileFilter;
use super::read::{ReadError, split_position, unknown_path};
use super::source::Sources;
use super::symbols::{SymbolError, SymbolOutcome, SymbolQuery, SymbolRequest, symbols};

/// Maximum number of definitions with one name that an operation answers for.
pub const MAX_MEANT: usize = 5;
/// The note on definitions that were found although their names are spelt differently.
pub const OTHER_SPELLING: &str = "no exact match; these definitions differ only in spelling";
/// Maximum number of ids that an error lists.
const MAX_LISTED: usize = 10;

/// An error from looking up a target.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// Several definitions have the name.
    #[error("{name} is ambiguous: {} definitions", ids.len())]
    Ambiguous {
        /// The name as given.
        name: String,
        /// The ids of the definitions.
        ids: Vec<String>,
        /// The command with the first id, without the name of the program.
        command: String,
        /// True if the answer lists the definitions, so that the hint need not.
        is_listed: bool,
    },
    /// No definition has the name.
    #[error("no {what} named {name:?}{}", in_file(.file.as_ref()))]
    Unknown {
        /// What the name can be of: `definition`, or `file or definition`.
        what: &'static str,
        /// The name as given.
        name: String,
        /// The file that was searched; `None` for all.
        file: Option<String>,
        /// Similar names.
        near: Vec<String>,
    },
    /// There is no definition at the position.
    #[error("no definition at {path}:{line}")]
    Nowhere {
        /// The path.
        path: String,
        /// Line, 1-based.
        line: u32,
    },
    /// The text is not a position.
    #[error("invalid position {place:?}")]
    NotAPlace {
        /// The text as given.
        place: String,
    },
}

fn in_file(file: Option<&String>) -> String {
    file.map(|file| format!(" in {file}")).unwrap_or_default()
}

impl TargetError {
    /// Creates the error for a name that no definition has.
    pub fn unknown(name: &str, near: &[String]) -> Self {
        Self::Unknown {
            what: "definition",
            name: name.to_owned(),
            file: None,
            near: near.to_vec(),
        }
    }

    /// Creates the error for a name that no definition of a file has.
    pub fn unknown_in(file: &str, name: &str, near: &[String]) -> Self {
        Self::Unknown {
            what: "definition",
            name: name.to_owned(),
            file: Some(file.to_owned()),
            near: near.to_vec(),
        }
    }

    /// Creates the error for the path or name of nothing.
    pub fn unknown_path(name: &str, near: &[String]) -> Self {
        Self::Unknown {
            what: "file or definition",
            name: name.to_owned(),
            file: None,
            near: near.to_vec(),
        }
    }

    /// Creates the error for a name of several definitions. `command` is the command for one of them.
    pub fn ambiguous(name: &str, ids: Vec<String>, command: impl Fn(&str) -> String) -> Self {
        let first = ids.first().map(String::as_str).unwrap_or_default();
        Self::Ambiguous {
            name: name.to_owned(),
            command: command(first),
            ids,
            is_listed: false,
        }
    }

    /// Omits the definitions from the hint, because the answer lists them.
    #[must_use]
    pub fn listed(mut self) -> Self {
        if let Self::Ambiguous { is_listed, .. } = &mut self {
            *is_listed = true;
        }
        self
    }
}

impl Explain for TargetError {
    fn explain(&self) -> Explanation {
        Explanation::hinting(match self {
            Self::Ambiguous {
                ids,
                command,
                is_listed,
                ..
            } => {
                let others: Vec<&str> = ids.iter().skip(1).take(MAX_LISTED - 1).map(String::as_str).collect();
                let others = match (is_listed, others.as_slice()) {
                    (true, _) | (_, []) => String::new(),
                    (false, others) => format!("; others: {}", others.join(", ")),
                };
                let first = ids.first().map(String::as_str).unwrap_or_default();
                Hint::each(
                    format!("choose one, for example: codescout {command}{others}"),
                    format!("choose one, for example: {first}{others}"),
                )
            }
            Self::Unknown { near, .. } if !near.is_empty() => Hint::did_you_mean(near),
            Self::Unknown { file: Some(path), .. } | Self::Nowhere { path, .. } => Hint::each(
                format!("codescout outline {path} lists its definitions"),
                format!("outline {path} lists its definitions"),
            ),
            Self::Unknown {
                what: "definition",
                name,
                ..
            } => Hint::each(
                format!("try codescout search {name}, or codescout grep {name}"),
                "use search to find it by meaning, or in mode regex to find it as text",
            ),
            Self::Unknown { .. } => "give a path, path:lines, path#name or the name of a definition".into(),
            Self::NotAPlace { .. } => "write path:line or path:line:column, both counted from 1".into(),
        })
    }
}

/// Parses a target: a position in a file of the view, a name or an id. Its path is relative to the repository root.
pub fn parse_target(view: &View, typed: &str) -> SymbolQuery {
    let place = split_position(typed).and_then(|(path, line, column)| Some((view.find_text(path)?, line, column)));
    match place {
        Some((file, line, column)) => SymbolQuery::At { file, line, column },
        None => SymbolQuery::Named(typed.to_owned()),
    }
}

/// Parses a position, `path:line` or `path:line:column`. Its path is relative to the repository root.
pub fn parse_place(view: &View, place: &str) -> Result<SymbolQuery, PlaceError> {
    let Some((path, line, column)) = split_position(place) else {
        let place = place.to_owned();
        return Err(TargetError::NotAPlace { place }.into());
    };
    let file = view.find_text(path).ok_or_else(|| unknown_path(view, path))?;
    Ok(SymbolQuery::At { file, line, column })
}

/// An error from parsing a position.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// The text is not a position.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// There is no such file.
    #[error(transparent)]
    Read(#[from] ReadError),
}

crate::model::explain_by!(PlaceError: Target, Read);

/// Finds the definitions that a target can mean, of those that are `wanted`: code before code inside functions and
/// tests. Minor ones do not make a name ambiguous.
pub fn meant(
    sources: &Sources<'_>,
    query: SymbolQuery,
    linker: Option<&Linker<'_>>,
    wanted: impl Fn(&FoundDefinition) -> bool,
) -> Result<SymbolOutcome, SymbolError> {
    let named = match &query {
        SymbolQuery::Named(id) if id.contains('#') && !id.contains('~') => Some(id.clone()),
        _ => None,
    };
    let found = |query| {
        let request = SymbolRequest {
            query,
            filter: FileFilter::default(),
            kinds: Vec::new(),
        };
        let mut outcome = symbols(sources, &request, linker)?;
        outcome.definitions.retain(&wanted);
        Ok::<_, SymbolError>(outcome)
    };
    let mut outcome = found(query)?;
    let is_clause = outcome.definitions.iter().all(|one| one.kind == DefinitionKind::Module);
    if let Some(id) = named.filter(|_| is_clause && !outcome.definitions.is_empty()) {
        // The clause `package main` has the name of the function `main`, which is meant.
        let second = found(SymbolQuery::Named(format!("{id}~2")))?;
        if second.definitions.iter().any(|one| !is_minor(one)) {
            outcome = second;
        }
    }
    drop_minor(&mut outcome.definitions);
    Ok(outcome)
}

/// Removes minor definitions, unless there are no others.
pub fn drop_minor(definitions: &mut Vec<FoundDefinition>) {
    if !definitions.iter().all(is_minor) {
        definitions.retain(|found| !is_minor(found));
    }
}

/// Returns true for blocks that extend a type, modules, headings and data.
pub fn is_minor(found: &FoundDefinition) -> bool {
    matches!(
        found.kind,
        DefinitionKind::Impl | DefinitionKind::Module | DefinitionKind::Section
    ) || found.kind.is_data()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_list_the_other_definitions() {
        let ids: Vec<String> = (0..12).map(|n| format!("a.rs#f~{n}")).collect();
        let error = TargetError::ambiguous("f", ids, |id| format!("rename {id} g"));
        assert_eq!(error.to_string(), "f is ambiguous: 12 definitions");
        let hint = error.explain().hint.shell.unwrap_or_default();
        assert!(
            hint.starts_with("choose one, for example: codescout rename a.rs#f~0 g; others: a.rs#f~1, "),
            "{hint}"
        );
        assert!(hint.ends_with("a.rs#f~9"), "{hint}");
        let hint = error.listed().explain().hint.tools;
        assert_eq!(hint.as_deref(), Some("choose one, for example: a.rs#f~0"));
    }

    #[test]
    fn unknown_names_have_one_text() {
        let unknown = TargetError::unknown("f", &["g".to_owned()]);
        assert_eq!(unknown.to_string(), "no definition named \"f\"");
        assert_eq!(unknown.explain().hint.shell.as_deref(), Some("did you mean g?"));
        let of_file = TargetError::unknown_in("a.rs", "f", &[]);
        assert_eq!(of_file.to_string(), "no definition named \"f\" in a.rs");
        assert_eq!(
            TargetError::unknown_path("f", &[]).to_string(),
            "no file or definition named \"f\""
        );
    }
}
