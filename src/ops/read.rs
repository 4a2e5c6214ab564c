//! The text of a file, or of parts of it.

use std::borrow::Cow;

use serde::Serialize;

use super::Hinted;
use crate::extract;
use crate::model::{quoted, typed};
use crate::query::{PartQuery, ReadOutcome, parse_lines};
use crate::session::Workspace;
use crate::snapshot::View;

/// A file, read.
#[derive(Debug, Serialize)]
pub(crate) struct ReadBody {
    pub(crate) path: String,
    pub(crate) blob: String,
    pub(crate) language: &'static str,
    pub(crate) symlink: bool,
    pub(crate) bytes: usize,
    pub(crate) lines: u32,
    pub(crate) results: Vec<PartOut>,
}

/// A part of it, as text.
#[derive(Debug, Serialize)]
pub(crate) struct PartOut {
    pub(crate) start_line: u32,
    pub(crate) end_line: u32,
    pub(crate) start_byte: usize,
    pub(crate) end_byte: usize,
    pub(crate) title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    pub(crate) lossy: bool,
}

/// Lines as they were typed.
pub(crate) fn lines_query(typed: &str) -> Result<PartQuery, Hinted> {
    parse_lines(typed).ok_or_else(|| Hinted {
        message: format!("{typed:?} are not lines"),
        hint: "write 5, 5-9 or 5-; the first line is 1".to_owned(),
    })
}

/// A target as it was typed, perhaps quoted; an absolute path below the work tree's root as from there.
pub(crate) fn inside<'t>(workspace: &Workspace, target: &'t str) -> Cow<'t, str> {
    let root = workspace.repository.work_dir().and_then(|root| root.to_str());
    let below = |path: &str| Some(path.strip_prefix(root?)?.strip_prefix('/')?.len());
    match typed(target) {
        Cow::Borrowed(path) => Cow::Borrowed(below(path).map_or(path, |n_bytes| &path[path.len() - n_bytes..])),
        Cow::Owned(path) => Cow::Owned(
            below(&path)
                .map_or(&*path, |n_bytes| &path[path.len() - n_bytes..])
                .to_owned(),
        ),
    }
}

/// What was read, written out.
pub(crate) fn read_body(view: &View, outcome: &ReadOutcome) -> ReadBody {
    let file = view.file(outcome.file);
    let parts = outcome.parts.iter().map(|part| {
        let bytes = outcome.bytes.get(part.range.clone()).unwrap_or_default();
        let text = String::from_utf8_lossy(bytes);
        PartOut {
            start_line: part.start_line,
            end_line: part.end_line,
            start_byte: part.range.start,
            end_byte: part.range.end,
            title: part.title.clone(),
            lossy: matches!(text, std::borrow::Cow::Owned(_)),
            text: Some(text.into_owned()),
        }
    });
    ReadBody {
        path: quoted(file.path).into_owned(),
        blob: file.entry().oid.to_string(),
        language: extract::language(view.lang(outcome.file)).map_or("text", |language| language.name),
        symlink: outcome.is_link,
        bytes: outcome.bytes.len(),
        lines: outcome.n_lines,
        results: parts.collect(),
    }
}
