//! Reads files of judged queries.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// The judged queries about one repository.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judgements {
    /// The repository, as `owner/name`.
    pub repository: String,
    /// The commit for which the queries were judged.
    pub commit: String,
    /// The main language of the repository.
    pub language: String,
    /// The directory to search, or `.` for the whole repository.
    pub root: String,
    /// The queries.
    pub queries: Vec<Judged>,
}

/// A query with its relevant places.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judged {
    /// A unique id that ends in a digit.
    pub id: String,
    /// The category of the query.
    pub category: Category,
    /// The query as a user would type it.
    pub query: String,
    /// The places that answer the query.
    pub relevant: Vec<Relevant>,
}

/// The category of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Category {
    /// Describes a behaviour in plain words.
    Semantic,
    /// Asks how components interact or which component has a responsibility.
    Architecture,
    /// Names a definition.
    Symbol,
    /// The subject of a commit.
    Commit,
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Semantic => "semantic",
            Self::Architecture => "architecture",
            Self::Symbol => "symbol",
            Self::Commit => "commit",
        })
    }
}

/// A place that is relevant to a query.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Relevant {
    /// Path relative to the root of the tree.
    pub path: String,
    /// 1-based first line.
    pub start: u32,
    /// 1-based last line, inclusive.
    pub end: u32,
    /// 2 if the place answers the query, 1 if it helps.
    pub grade: u32,
}

impl Judged {
    /// Returns true if the id ends in an odd digit. Settings are tuned on queries with even ids, and results are
    /// reported on those with odd ids.
    pub fn is_odd(&self) -> bool {
        self.id.bytes().last().is_some_and(|digit| digit % 2 == 1)
    }
}

/// An error from reading judgement files.
#[derive(Debug, thiserror::Error)]
pub enum JudgementError {
    /// A file or directory cannot be read.
    #[error("cannot read {}", .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The I/O error.
        #[source]
        source: io::Error,
    },
    /// A file is not in the judgement format.
    #[error("{} is not a judgement file", .path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The parse error, with its position.
        #[source]
        source: serde_json::Error,
    },
}

/// Reads every `*.json` file in `folder`, in path order.
pub fn read_folder(folder: &Path) -> Result<Vec<Judgements>, JudgementError> {
    let io_error = |path: &Path, source| JudgementError::Io {
        path: path.to_owned(),
        source,
    };
    let entries = fs::read_dir(folder).map_err(|source| io_error(folder, source))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(|source| io_error(folder, source))?.path();
        if path.extension().is_some_and(|ending| ending == "json") {
            paths.push(path);
        }
    }
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).map_err(|source| io_error(&path, source))?;
            serde_json::from_str(&text).map_err(|source| JudgementError::Format { path, source })
        })
        .collect()
}
