//! `diff`: what differs between two states.

use anyhow::Result;
use serde::Serialize;
use serde_json::{Value, json};

use super::super::arguments::{Kind, Parameter};
use super::super::asked::{Asked, CURSOR, LIMIT, MAX_TOKENS, PATH, REPO};
use super::super::reply::{Body, Draft, Reply};
use super::super::tool::{Call, QUESTION_TIME, Tool, results};
use crate::extract::is_credential;
use crate::ops::{DiffBody, DiffBy, DiffQuestion, FileDiffOut, SideOut, diff, name_in};

pub(super) const TOOL: Tool = Tool {
    name: "diff",
    title: "Compare two states",
    description: "What differs between two revisions, the index or the work tree: by definition (added, removed, moved, body or \
                  signature changed), by file, or as text. Without from and to: what is not committed. No index needed.",
    own: || {
        vec![
            Parameter::new("from", Kind::Text, "default HEAD; or A..B, A...B"),
            Parameter::new("to", Kind::Text, "default WORKTREE"),
            Parameter::new("by", Kind::Choice(&["symbol", "file", "text"]), "").formerly("level"),
        ]
    },
    common: &[REPO, PATH, LIMIT, MAX_TOKENS, CURSOR],
    output,
    is_read_only: true,
    time_limit: QUESTION_TIME,
    run,
};

fn output() -> Value {
    json!({
        "from": {"type": "object"},
        "to": {"type": "object"},
        "total": {"type": "integer"},
        "results": results(&[("path", "string")]),
    })
}

#[derive(Serialize)]
struct Own<'a> {
    from: &'a SideOut,
    to: &'a SideOut,
    by: &'static str,
    total: usize,
    added_lines: u32,
    removed_lines: u32,
}

fn run(call: &Call<'_>) -> Result<Reply> {
    let asked = Asked::of(call)?;
    let desk = call.session()?;
    let revision = |name: &str| -> Result<Option<String>> {
        let Some(typed) = call.arguments.text(name) else {
            return Ok(None);
        };
        typed
            .split("..")
            .map(|side| side.trim_start_matches('.'))
            .filter(|side| !side.is_empty())
            .try_for_each(|side| desk.checked(side).map(drop))?;
        Ok(Some(typed.to_owned()))
    };
    let question = DiffQuestion {
        from: revision("from")?,
        to: revision("to")?,
        by: match call.arguments.text("by") {
            Some("file") => DiffBy::File,
            Some("text") => DiffBy::Text,
            _ => DiffBy::Symbol,
        },
        paths: asked.paths.clone(),
    };
    let (mut body, mut provenance) = diff(&desk.workspace, &question, call.ctx.interrupt)?;
    let n_all = body.files.len();
    let is_shown = |path: &str| !is_credential(path.as_bytes());
    body.files
        .retain(|file| is_shown(&file.path) && file.from_path.as_deref().is_none_or(is_shown));
    let n_hidden = n_all - body.files.len();
    if n_hidden > 0 {
        provenance.also_note(format!(
            "{n_hidden} files are not shown: by their names they hold credentials"
        ));
    }
    let mut draft = Draft::new(call, asked.characters);
    draft.note(&format!(
        "{} to {}: {} files, +{} -{}",
        body.from.reference, body.to.reference, body.total, body.added_lines, body.removed_lines
    ));
    let states = (body.from.state.clone(), body.to.state.clone());
    let skip = asked.n_told(&states)?;
    let limit = call
        .arguments
        .number("limit")
        .filter(|limit| *limit > 0)
        .unwrap_or(usize::MAX);
    for file in body.files.iter_mut().skip(skip).take(limit) {
        if !push(file, &mut draft) {
            break;
        }
    }
    let n_told = skip + draft.n_results();
    let next = (n_told < body.files.len()).then(|| asked.cursor(&states, n_told));
    Ok(draft.finish(&provenance, next, &own(&body)))
}

fn own(body: &DiffBody) -> Own<'_> {
    Own {
        from: &body.from,
        to: &body.to,
        by: body.by,
        total: body.total,
        added_lines: body.added_lines,
        removed_lines: body.removed_lines,
    }
}

fn push(file: &mut FileDiffOut, draft: &mut Draft) -> bool {
    let from = file.from_path.as_deref().map(|from| format!(" from {from}"));
    let lines = match (file.added_lines, file.removed_lines) {
        (Some(added), Some(removed)) => format!("+{added} -{removed}"),
        _ if file.is_unread => "not read".to_owned(),
        _ => "binary".to_owned(),
    };
    let mut line = format!("{} {}{} {lines}", file.kind, file.path, from.unwrap_or_default());
    for symbol in file.symbols.iter().flatten() {
        let from = symbol.from.as_deref().map(|from| format!(" from {from}"));
        let name = name_in(&symbol.id, &file.path);
        let events = symbol.events.join(", ");
        line.push_str(&format!(
            "\n    {events}: {} {name}{}",
            symbol.kind,
            from.unwrap_or_default()
        ));
    }
    let text = file.diff.take();
    let body = text.as_deref().map(|raw| Body {
        field: "diff",
        raw,
        first_line: None,
    });
    draft.push(file, &line, body)
}
