//! `blame`: who last changed what.

use std::ffi::OsStr;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use serde_json::{Value, json};

use super::super::arguments::{Kind, Parameter};
use super::super::asked::{Asked, CURSOR, LIMIT, MAX_TOKENS, REF, REPO};
use super::super::credentials::is_credential;
use super::super::failure::Failure;
use super::super::past::{Past, meant, reading};
use super::super::reply::{Draft, Reply};
use super::super::tool::{Call, QUESTION_TIME, Tool};
use crate::ops::{
    BlameBody, BlameBy, BlameLineOut, BlameOut, BlameQuestion, BlameTargetOut, CandidateOut, OwnerOut, SymbolBlameOut,
    Target, Targets, blame, count,
};

/// How long a call waits for commits to be recorded, where they are needed.
const PATIENCE: Duration = Duration::from_secs(6);

pub(super) const TOOL: Tool = Tool {
    name: "blame",
    title: "Tell who wrote it",
    description: "Who last changed a file, lines or a definition, and in which commit: by definition unless asked otherwise, by \
                  line, or by owner with shares. A folder is told by owner. Uncommitted lines are told as such.",
    own: &[
        Parameter::new("target", Kind::Text, "path, path:5-9, path#name or name").required(),
        Parameter::new("by", Kind::Choice(&["symbol", "line", "owner"]), ""),
        Parameter::new("ignore_revs", Kind::Texts, "commits to pass over"),
        Parameter::new("ignore_whitespace", Kind::Flag, ""),
        Parameter::new("moved", Kind::Flag, "follow lines within the file"),
        Parameter::new(
            "copied",
            Kind::Number(3),
            "follow lines from other files, 3 the farthest",
        ),
        Parameter::new("all_changes", Kind::Flag, "also mere moves, renames and reformatting"),
    ],
    common: &[REF, REPO, LIMIT, MAX_TOKENS, CURSOR],
    output,
    is_read_only: true,
    time_limit: QUESTION_TIME,
    run,
};

fn output() -> Value {
    json!({"target": {"type": "object"}, "by": {"type": "string"}})
}

#[derive(Serialize)]
struct Own<'a> {
    target: &'a BlameTargetOut,
    by: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    basis: Option<&'static str>,
    candidates: &'a [CandidateOut],
    total: usize,
}

fn run(call: &Call<'_>) -> Result<Reply> {
    let asked = Asked::of(call)?;
    let question = BlameQuestion {
        by: match call.arguments.text("by") {
            Some("symbol") => Some(BlameBy::Symbol),
            Some("line") => Some(BlameBy::Line),
            Some("owner") => Some(BlameBy::Owner),
            _ => None,
        },
        counts_moves: call.arguments.flag("all_changes"),
        ignores_blanks: call.arguments.flag("ignore_whitespace"),
        follows_moves: call.arguments.flag("moved"),
        follows_copies: call.arguments.number("copied").unwrap_or(0) as u8,
        ignored: call.arguments.texts("ignore_revs"),
        // A file that lists commits is named on the command line alone.
        ignore_files: Vec::new(),
    };
    // Files are blamed by git itself; only folders and what is gone need all commits.
    let mut past = Past::of(call, &asked.reference, Duration::ZERO)?;
    let mut answered = answer(call, &past, &question)?;
    if answered.is_none() {
        past = Past::of(call, &asked.reference, PATIENCE)?;
        answered = answer(call, &past, &question)?;
    }
    let Some(body) = answered else {
        let told = past.gap()?.unwrap_or_default();
        return Err(Failure::new(told, "ask again in a while; a file can be asked about meanwhile").into());
    };
    let mut draft = Draft::new(call, asked.characters);
    if body.target.kind == "many" {
        draft.note("the name means several definitions; ask for one by its id:");
        for candidate in &body.candidates {
            draft.note(&format!("{} {} line {}", candidate.id, candidate.kind, candidate.line));
        }
    }
    if let Some(basis) = body.basis_sentence() {
        draft.note(basis);
    }
    let rows = rows(&body);
    let skip = asked.n_told(past.state())?;
    // Lines are short: without a limit the size of the answer is limit enough.
    let limit = call
        .arguments
        .number("limit")
        .filter(|limit| *limit > 0)
        .unwrap_or(usize::MAX);
    let page = rows.iter().skip(skip).take(limit);
    for (facts, text) in page {
        if !draft.push(facts, text, None) {
            break;
        }
    }
    let n_told = skip + draft.n_results();
    let next = (n_told < rows.len()).then(|| asked.cursor(past.state(), n_told));
    let own = Own {
        target: &body.target,
        by: body.by,
        basis: body.basis,
        candidates: &body.candidates,
        total: rows.len(),
    };
    let mut provenance = past.provenance(
        call.workspace()?,
        [past.opened.notes.clone(), body.incomplete.clone()].concat(),
    );
    body.notes.iter().for_each(|note| provenance.also_note(note.clone()));
    Ok(draft.finish(&provenance, next, &own))
}

/// What is known; none if commits have to be recorded first.
fn answer(call: &Call<'_>, past: &Past, question: &BlameQuestion) -> Result<Option<BlameBody>> {
    let workspace = call.workspace()?;
    let targets = Targets {
        workspace,
        opened: &past.opened,
        uncommitted: &past.uncommitted,
        reference: &past.reference,
        definitions: &|name| meant(call, name),
        reading: reading(call),
    };
    let typed = call.arguments.text("target").unwrap_or_default();
    let found = targets.find(OsStr::new(typed))?;
    if found.path().is_some_and(|path| is_credential(path.as_bytes())) {
        return Err(Failure::hidden(typed).into());
    }
    if past.recording.is_some() && matches!(found, Target::Folder(_) | Target::Unknown(..)) {
        return Ok(None);
    }
    blame(&targets, found, question).map(Some)
}

fn rows(body: &BlameBody) -> Vec<(Value, String)> {
    let lines = body.lines.iter().flatten().map(|line| row(line, line_text(line)));
    let symbols = body.symbols.iter().flatten();
    let symbols = symbols.map(|symbol| row(symbol, symbol_text(symbol)));
    let owners = body.owners.iter().flatten().map(|owner| row(owner, owner_text(owner)));
    lines.chain(symbols).chain(owners).collect()
}

fn row(facts: &impl Serialize, text: String) -> (Value, String) {
    (serde_json::to_value(facts).unwrap_or_default(), text)
}

fn commit_text(commit: &BlameOut) -> String {
    let day = &commit.date[..commit.date.len().min(10)];
    format!("{} {day} {}", &commit.commit[..12], commit.author.name)
}

fn line_text(line: &BlameLineOut) -> String {
    let commit = line.commit.as_ref().map_or("not committed".to_owned(), commit_text);
    let from = line.from_path.as_deref().map(|path| format!(" {path}"));
    format!("{commit}{} {:>5}: {}", from.unwrap_or_default(), line.line, line.text)
}

fn symbol_text(symbol: &SymbolBlameOut) -> String {
    let last = match &symbol.last {
        Some(last) => format!("{} {}", commit_text(last), last.subject),
        None => symbol.not_committed(),
    };
    let share = |owner: &OwnerOut| format!("{} {:.0} %", owner.name, owner.share * 100.0);
    let owners: Vec<String> = symbol.owners.iter().take(3).map(share).collect();
    let whose = match symbol.commits {
        0 => String::new(),
        n => format!("\n    {}; {}", count(n, "commit"), owners.join(", ")),
    };
    format!(
        "{}-{} {} {}\n    {last}{whose}",
        symbol.start_line, symbol.end_line, symbol.kind, symbol.name
    )
}

fn owner_text(owner: &OwnerOut) -> String {
    format!(
        "{:>6} {:>5.1} % {} <{}> {} commits, last {}",
        owner.count,
        owner.share * 100.0,
        owner.name,
        owner.email,
        owner.commits,
        &owner.last[..owner.last.len().min(10)]
    )
}
