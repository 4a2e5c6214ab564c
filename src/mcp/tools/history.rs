//! `history`: what became of a definition, a file, a folder or lines.

use std::ffi::OsStr;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use serde_json::{Value, json};

use super::super::arguments::{Kind, Parameter};
use super::super::asked::{Asked, CURSOR, DETAIL, Detail, LIMIT, MAX_TOKENS, REF, REPO};
use super::super::reply::{Draft, Reply};
use super::super::tool::{Call, QUESTION_TIME, Tool};
use crate::extract::is_credential;
use crate::ops::{
    CandidateOut, ChangeOut, CochangeOut, EntryOut, HistoryBody, HistoryOp, HistoryQuestion, LastSeenOut, Past,
    SymbolChangeOut, TargetOut, history,
};
use crate::session::OpError;

/// How long a call waits for commits to be recorded.
const PATIENCE: Duration = Duration::from_secs(6);
/// What the facts of a commit and a change take, beside a difference.
const FACTS_CHARACTERS: usize = 700;

pub(super) const TOOL: Tool = Tool {
    name: "history",
    title: "Tell the past",
    description: "The life of a definition, file, folder or lines across edits, renames and moves: log, when it was introduced, \
                  when last seen, what was deleted below it, what changes together with it. detail=full tells the changes.",
    own: || {
        vec![
            Parameter::new("target", Kind::Text, "name, path#name, path, path:5-9; also gone ones"),
            Parameter::new(
                "op",
                Kind::Choice(&["log", "introduced", "last_seen", "deleted", "cochange"]),
                "",
            ),
            Parameter::new("since", Kind::Text, "2024-02-29 or 30d"),
            Parameter::new("until", Kind::Text, ""),
            Parameter::new("author", Kind::Text, "regex"),
        ]
    },
    common: &[REF, REPO, LIMIT, MAX_TOKENS, CURSOR, DETAIL],
    output,
    is_read_only: true,
    time_limit: QUESTION_TIME,
    run,
};

fn output() -> Value {
    json!({"target": {"type": "object"}, "total": {"type": "integer"}})
}

#[derive(Serialize)]
struct Own<'a> {
    op: &'static str,
    target: &'a TargetOut,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    near: &'a [String],
    candidates: &'a [CandidateOut],
    total: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_seen: &'a Option<LastSeenOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cochange: &'a Option<CochangeOut>,
}

fn run(call: &Call<'_>) -> Result<Reply> {
    let asked = Asked::of(call)?;
    let (name, op) = op(call);
    let target = call.arguments.text("target").unwrap_or_default();
    if target.is_empty() && op != HistoryOp::Deleted {
        return Err(OpError::new(
            "target is missing",
            "give a path, path:lines, path#name or the name of a definition; . is the whole repository",
        )
        .with_retry(json!({"tool": "history", "arguments": {"target": "."}}))
        .into());
    }
    let ask = call.ask()?;
    let past = Past::of(&ask, PATIENCE)?;
    let skip = asked.n_told(past.state())?;
    let question = HistoryQuestion {
        op,
        since: call.arguments.text("since").map(str::to_owned),
        until: call.arguments.text("until").map(str::to_owned),
        author: call.arguments.text("author").map(str::to_owned),
        skips_formatting: false,
        has_diff: asked.detail == Detail::Full,
        skip,
        limit: asked.limit,
    };
    let mut body = life(&past, target, &question)?;
    let n_of_page = body.results.len();
    let mut incomplete = std::mem::take(&mut body.incomplete);
    incomplete.extend(past.gap()?);
    let mut draft = Draft::new(call, asked.characters);
    say(&body, op, &mut draft);
    let n_told = tell(&mut body.results, asked.detail, &mut draft);
    let has_more = n_told < n_of_page || skip + n_told < body.total && is_paged(op);
    let next = has_more.then(|| asked.cursor(past.state(), skip + n_told));
    let own = Own {
        op: name,
        target: &body.target,
        near: &body.near,
        candidates: &body.candidates,
        total: body.total,
        last_seen: &body.last_seen,
        cochange: &body.cochange,
    };
    Ok(draft.finish(&past.provenance(incomplete), next, &own))
}

fn op(call: &Call<'_>) -> (&'static str, HistoryOp) {
    match call.arguments.text("op") {
        Some("introduced") => ("introduced", HistoryOp::Introduced),
        Some("last_seen") => ("last_seen", HistoryOp::LastSeen),
        Some("deleted") => ("deleted", HistoryOp::Deleted),
        Some("cochange") => ("cochange", HistoryOp::Cochange),
        _ => ("log", HistoryOp::Log),
    }
}

/// Whether there are as many results as `total` says.
fn is_paged(op: HistoryOp) -> bool {
    matches!(op, HistoryOp::Log | HistoryOp::Deleted)
}

/// What is known of the past of something, less what holds credentials.
pub(super) fn life(past: &Past<'_>, target: &str, asked: &HistoryQuestion) -> Result<HistoryBody> {
    let mut body = past.with_targets(|targets| {
        let found = match asked.op {
            HistoryOp::Deleted => targets.find_gone(OsStr::new(target))?,
            _ => targets.find(OsStr::new(target))?,
        };
        history(targets, found, asked)
    })?;
    let is_shown = |path: &str| !is_credential(path.as_bytes());
    let is_shown_id = |id: &str| is_shown(id) && id.match_indices('#').all(|(at, _)| is_shown(&id[..at]));
    body.near.retain(|near| is_shown_id(near));
    body.candidates.retain(|candidate| is_shown(&candidate.path));
    body.results
        .retain(|entry| entry.symbol.as_ref().is_none_or(|symbol| is_shown_id(&symbol.id)));
    for entry in &mut body.results {
        let is_shown = |change: &ChangeOut| is_shown(&change.path) && change.from_path.as_deref().is_none_or(is_shown);
        entry.changes.retain(is_shown);
    }
    if let Some(cochange) = &mut body.cochange {
        cochange.files.retain(|file| is_shown(&file.path));
    }
    Ok(body)
}

/// What is told before the commits.
fn say(body: &HistoryBody, op: HistoryOp, draft: &mut Draft) {
    let TargetOut {
        kind,
        path,
        present,
        was,
    } = &body.target;
    if let Some(was) = was {
        draft.note(&format!("{was:?} is now {path}"));
    }
    match *kind {
        "unknown" => {
            draft.note(&body.nowhere());
            if !body.near.is_empty() {
                draft.hint(format!("did you mean {}?", body.near.join(" or ")));
            }
        }
        "many" => {
            draft.note("the name means several definitions; ask for one by its id:");
            for candidate in &body.candidates {
                draft.note(&format!("{} {} line {}", candidate.id, candidate.kind, candidate.line));
            }
        }
        "folder" if op == HistoryOp::Deleted => draft.note(&format!("{} files are no longer there", body.total)),
        "folder" if path.is_empty() => draft.note(&format!("the whole repository: {} commits", body.total)),
        kind => {
            let gone = if *present { "" } else { ", no longer there" };
            draft.note(&format!("{kind} {path}{gone}: {} commits", body.total));
        }
    }
    if let Some(last) = &body.last_seen {
        draft.note(&last.sentence(12));
    }
    for file in body.cochange.iter().flat_map(|found| &found.files) {
        draft.note(&format!(
            "{:>6} {:>5.1} % {}",
            file.support,
            file.confidence * 100.0,
            file.path
        ));
    }
}

/// Tells commits as long as they fit; how many did.
fn tell(entries: &mut [EntryOut], detail: Detail, draft: &mut Draft) -> usize {
    for number in 0..entries.len() {
        let (before, entry) = entries[..=number].split_at_mut(number);
        let entry = &mut entry[0];
        let heading = entry.heading(before.last());
        let mut is_cut = false;
        if detail == Detail::Full && number == 0 {
            for diff in diffs(entry) {
                let shown = draft.fitting(diff, FACTS_CHARACTERS).len();
                is_cut |= shown < diff.len();
                diff.truncate(shown);
            }
        }
        let mut text = match detail {
            Detail::Ids => head(entry),
            _ => line(entry),
        };
        if let Some(heading) = heading {
            text = format!("{heading}\n{text}");
        }
        if draft.has_text() {
            diffs(entry).for_each(|diff| text.push_str(&format!("\n{}", diff.trim_end())));
        }
        if !draft.has_structure() {
            strip(entry);
        }
        let mut facts = serde_json::to_value(&*entry).unwrap_or_default();
        if is_cut {
            facts["truncated"] = true.into();
            text.push_str("\n    (cut here: ask with a larger max_tokens)");
        }
        if !draft.push(&facts, &text, None) {
            return number;
        }
    }
    entries.len()
}

fn diffs(entry: &mut EntryOut) -> impl Iterator<Item = &mut String> {
    let of_symbol = entry.symbol.iter_mut().filter_map(|symbol| symbol.diff.as_mut());
    of_symbol.chain(entry.changes.iter_mut().filter_map(|change| change.diff.as_mut()))
}

fn strip(entry: &mut EntryOut) {
    entry.changes.iter_mut().for_each(|change| change.diff = None);
    if let Some(symbol) = &mut entry.symbol {
        symbol.diff = None;
    }
}

fn head(entry: &EntryOut) -> String {
    let commit = entry.commit.as_deref().map_or("not committed", |commit| &commit[..12]);
    let date = entry.date.as_deref().map_or("", |date| &date[..date.len().min(10)]);
    let who = entry.author.as_ref().map_or("", |author| author.name.as_str());
    let subject = entry.subject.as_deref().unwrap_or_default();
    format!("{commit} {date} {who}: {subject}")
        .trim_end_matches([':', ' '])
        .to_owned()
}

/// A commit with what it did, in a few lines.
pub(super) fn line(entry: &EntryOut) -> String {
    let mut text = head(entry);
    if let Some(symbol) = &entry.symbol {
        text.push_str(&format!("\n    {}", symbol_line(symbol)));
    }
    for change in &entry.changes {
        let from = change.from_path.as_deref().map(|from| format!(" from {from}"));
        text.push_str(&format!(
            "\n    {} {}{}",
            change.kind,
            change.path,
            from.unwrap_or_default()
        ));
    }
    text
}

fn symbol_line(symbol: &SymbolChangeOut) -> String {
    let place = symbol.new.as_ref().or(symbol.old.as_ref());
    let place = place.map(|version| format!(":{}-{}", version.start_line, version.end_line));
    let from = symbol.from.as_deref().map(|from| format!(" from {from}"));
    let doubt = if symbol.confidence < 0.995 && symbol.from.is_some() {
        format!(" ({:.0} % sure)", symbol.confidence * 100.0)
    } else {
        String::new()
    };
    format!(
        "{} {}{}{}{doubt}",
        symbol.events.join(", "),
        symbol.id,
        place.unwrap_or_default(),
        from.unwrap_or_default()
    )
}
