//! Judged queries as files.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// The queries about one repository.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judgements {
    /// `owner/name`
    pub repository: String,
    /// The commit that the places are true of.
    pub commit: String,
    /// The repository's main language.
    pub language: String,
    /// Only this folder is searched; `.` for all.
    pub root: String,
    /// The queries.
    pub queries: Vec<Judged>,
}

/// A query with its answers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judged {
    /// Unique; ends in a number.
    pub id: String,
    /// What kind of question it is.
    pub category: Category,
    /// As a person types it.
    pub query: String,
    /// The places that answer it.
    pub relevant: Vec<Relevant>,
}

/// What kind of question a query is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Category {
    /// A behaviour in plain words.
    Semantic,
    /// How parts fit, where a responsibility lies.
    Architecture,
    /// A name.
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

/// A place that answers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Relevant {
    /// From the root of the tree.
    pub path: String,
    /// 1-based first line.
    pub start: u32,
    /// 1-based last line, inclusive.
    pub end: u32,
    /// 2: answers it; 1: helps.
    pub grade: u32,
}

impl Judged {
    /// Whether the number at the end of the id is odd: settings are tuned on the even ones and reported on these.
    pub fn is_odd(&self) -> bool {
        self.id.bytes().last().is_some_and(|digit| digit % 2 == 1)
    }
}

/// Why there are no judgements.
#[derive(Debug, thiserror::Error)]
pub enum JudgementError {
    /// A file or folder cannot be read.
    #[error("cannot read {}", .path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file is not of the format.
    #[error("{} is not a file of judgements", .path.display())]
    Format {
        /// Which.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: serde_json::Error,
    },
}

/// Every `*.json` of a folder, by name.
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
