//! `memory`: notes about definitions, kept as Markdown files in the repository, and whether they still hold.

mod file;
mod private;
mod verdict;

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use self::file::Note;
pub(super) use self::file::{front_matter, title};
use self::private::PrivateNotes;
use self::verdict::{AnchorOut, Judge, Verdict};
use super::ask::{Ask, FileSelection};
use super::op::{Op, Page, PageOf, Paging, Row};
use super::question::{About, Question};
use super::record::Past;
use super::sink::{Sink, Style};
use super::symbol_history::SymbolQuestion;
use super::target::{Target, Targets};
use crate::edit::is_expected;
use crate::git::{Rewrite, hash_blob};
use crate::model::{BlobId, Hint, RepoPath};
use crate::query::{Source, TargetError, nearest};
use crate::session::{OpError, Result};

/// The folder of the notes that are files of the repository.
pub(super) const FOLDER: &str = ".agents/notes/";
/// File extension of notes.
const ENDING: &str = ".md";
/// Limit on the size of a note in bytes.
const MAX_BYTES: usize = 256 << 10;
/// Limit on the number of definitions that a note is about.
const MAX_ANCHORS: usize = 50;
/// Limit on the number of suggested definitions.
const MAX_SUGGESTED: usize = 10;
/// Default maximum number of notes in a list.
const DEFAULT_LIMIT: usize = 50;
/// Time that a call waits for commits to be recorded, and for other programs that edit files.
const PATIENCE: Duration = Duration::from_secs(5);

/// The request.
#[derive(Clone, Debug, Default, Serialize, Deserialize, clap::Args, schemars::JsonSchema)]
#[serde(default)]
#[command(after_help = "Examples:
  codescout memory
  codescout memory write parser/errors --about Parser.parse --text 'Never returns an empty list.'
  codescout memory write release --text - < notes.md
  codescout memory read parser/errors
  codescout memory mend
  codescout memory forget release
  codescout search --in memory how errors are reported")]
pub(crate) struct Memory {
    /// What to do [default: list]
    #[arg(value_enum)]
    #[schemars(description = "")]
    op: Option<MemoryOp>,
    /// Name of the note, such as parser/errors; for list the start of names, for mend all notes if omitted
    #[schemars(description = "path-like")]
    name: Option<String>,
    /// Definition that the note is about: NAME, Outer.NAME or an id; repeatable
    #[arg(long, value_name = "DEFINITION")]
    #[schemars(description = "definitions it is about")]
    about: Vec<String>,
    /// Write only if the note has this blob id, or at least 12 digits of it
    #[arg(long, value_name = "BLOB")]
    #[schemars(description = "its blob, if it exists")]
    expect: Option<String>,
    /// Text of the note; - reads it from standard input
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    #[schemars(description = "Markdown")]
    pub(crate) text: Option<String>,
    /// Keep the note in the index folder of this clone instead of a file of the repository
    #[arg(long)]
    #[schemars(description = "not in git")]
    private: bool,
}

/// What to do with notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
enum MemoryOp {
    /// List notes, and whether they still hold
    List,
    /// Print a note
    Read,
    /// Write a note, in place of one with the same name
    Write,
    /// Delete a note
    Forget,
    /// Follow definitions that only moved
    Mend,
}

/// The fields of the answer.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Facts {
    /// Number of notes.
    total: usize,
    /// Definitions that the text names in backticks and that the note is not about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    suggested: Vec<String>,
}

/// A note of an answer.
#[derive(Debug, Serialize)]
pub(crate) struct NoteOut {
    name: String,
    /// The path of its file; null if it is private.
    path: Option<String>,
    title: String,
    /// The worst verdict on a definition that it is about; null if it is about none.
    verdict: Option<Verdict>,
    about: Vec<AnchorOut>,
    /// The reason why its front matter cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// True if a private note is not what codescout wrote: a person edited its file, or it is damaged.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    changed_outside: bool,
    /// The blob id of the file.
    blob: String,
    /// The text; null in lists.
    text: Option<String>,
}

/// A note as found.
struct Found {
    name: String,
    path: Option<String>,
    /// True if a private note is not what codescout wrote.
    is_changed: bool,
    text: String,
}

impl Op for Memory {
    type Facts = Facts;
    type Row = NoteOut;

    fn run(&self, ask: &Ask<'_>) -> Result<PageOf<Self>> {
        let op = match (self.op, &self.name) {
            (Some(op), _) => op,
            (None, Some(_)) => MemoryOp::Read,
            (None, None) => MemoryOp::List,
        };
        let is_for_write = self.text.is_some() || self.expect.is_some() || !self.about.is_empty();
        if op != MemoryOp::Write && is_for_write {
            return Err(OpError::new(
                "about, expect and text are for write only",
                "use write, or omit them",
            ));
        }
        let changes = matches!(op, MemoryOp::Write | MemoryOp::Forget | MemoryOp::Mend);
        if changes && ask.session.checked(&ask.common.reference)? != "WORKTREE" {
            return Err(OpError::new(
                "only notes of the worktree can be changed",
                "omit the revision",
            ));
        }
        match op {
            MemoryOp::List => self.list(ask),
            MemoryOp::Read => self.read(ask),
            MemoryOp::Write => self.write(ask),
            MemoryOp::Forget => self.forget(ask),
            MemoryOp::Mend => self.mend(ask),
        }
    }
}

impl Memory {
    fn list(&self, ask: &Ask<'_>) -> Result<PageOf<Memory>> {
        let mut found = all(ask)?;
        let start = self.name.as_deref().unwrap_or_default();
        found.retain(|found| found.name.starts_with(start));
        let past = Past::of(ask, PATIENCE)?;
        let n_before = ask.n_before(past.state())?;
        let n_notes = found.len();
        let limit = ask.limit(DEFAULT_LIMIT);
        let shown: Vec<Found> = found.into_iter().skip(n_before).take(limit.max(1)).collect();
        let rows = past.with_targets(|targets| {
            let judge = judge(targets);
            shown
                .iter()
                .map(|found| found.out(ask, &judge, false))
                .collect::<Result<Vec<_>>>()
        })?;
        let mut paging = Paging::numbered(ask.key(past.state()), n_before, rows.len(), limit);
        if n_before + rows.len() < n_notes {
            paging.end = Some(((n_before + rows.len()) as u32, 0));
        }
        let gap = past.gap()?.into_iter().collect();
        let facts = Facts {
            total: n_notes,
            ..Facts::default()
        };
        let mut page = Page::new(past.provenance(gap), facts, rows, paging);
        page.n_selected = Some(n_notes);
        if n_notes == 0 {
            page.notes.push("no notes".to_owned());
            page.hint = Some("write adds one".to_owned());
        }
        Ok(page)
    }

    fn read(&self, ask: &Ask<'_>) -> Result<PageOf<Memory>> {
        let found = self.find(ask)?;
        let mut page = answer(ask, &found, Vec::new(), true)?;
        page.notes.push(found.version(ask));
        Ok(page)
    }

    fn write(&self, ask: &Ask<'_>) -> Result<PageOf<Memory>> {
        let name = self.named()?;
        let body = self.text.clone().unwrap_or_default();
        if body.trim().is_empty() {
            return Err(OpError::new(
                "a note needs a text",
                Hint::each("give it with --text", "give it with text"),
            ));
        }
        if body.len() > MAX_BYTES || self.about.len() > MAX_ANCHORS {
            return Err(OpError::new(
                format!("a note has at most {MAX_BYTES} bytes, and is about at most {MAX_ANCHORS} definitions"),
                "write several notes",
            ));
        }
        // The text may come with front matter of its own.
        let mut note = Note::parse(&body).map_err(|problem| OpError::new(problem, "correct the front matter"))?;
        note.body = format!("{}\n", note.body.trim_end());
        let old = all(ask)?
            .into_iter()
            .find(|found| found.name == name && found.path.is_none() == self.private);
        self.check_expected(ask, old.as_ref())?;
        let before = old
            .as_ref()
            .and_then(|old| Note::parse(&old.text).ok())
            .unwrap_or_default();
        if note.others.is_empty() {
            note.others = before.others;
        }
        if note.about.is_empty() && self.about.is_empty() {
            note.about = before.about;
        }
        let past = Past::of(ask, PATIENCE)?;
        let suggested = past.with_targets(|targets| self.anchor(&mut note, targets))?;
        let found = Found {
            name: name.to_owned(),
            path: (!self.private).then(|| path_of(name)),
            is_changed: false,
            text: note.to_text(),
        };
        let before = old.as_ref().map(|old| old.text.as_str());
        store(ask, &[(&found, before, Some(&found.text))])?;
        let mut page = answer(ask, &found, suggested, false)?;
        page.notes.push(found.version(ask));
        Ok(page)
    }

    /// Fails unless the note, if it exists, has the content that the caller has seen.
    fn check_expected(&self, ask: &Ask<'_>, old: Option<&Found>) -> Result<()> {
        let name = self.named()?;
        let (old, expect) = match (old, &self.expect) {
            (Some(old), Some(expect)) => (old, expect),
            (Some(_), None) if ask.common.characters.is_some() => {
                return Err(OpError::new(
                    format!("note {name} exists, and expect is missing"),
                    "read it first and pass its blob as expect",
                ));
            }
            (None, Some(_)) => {
                return Err(OpError::new(
                    format!("no note is named {name}"),
                    "omit expect to write a new one",
                ));
            }
            (_, None) => return Ok(()),
        };
        let blob = old.blob(ask);
        if is_expected(blob, expect)? {
            return Ok(());
        }
        Err(OpError::new(
            format!("note {name} has changed: it is now blob {blob}, not {expect}"),
            Hint::each(
                "nothing was changed; read it again and pass its new blob with --expect",
                "nothing was changed; read it again and pass its new blob as expect",
            ),
        ))
    }

    /// Adds the definitions that the note is about. Returns those that it could be about, too.
    fn anchor(&self, note: &mut Note, targets: &Targets<'_>) -> Result<Vec<String>> {
        let judge = judge(targets);
        let written: Vec<String> = note.about.iter().map(|anchor| anchor.id.clone()).collect();
        note.about.clear();
        for typed in written.iter().chain(&self.about) {
            let key = match targets.find(typed.as_ref())? {
                Target::Symbol(key) => key,
                Target::Many(candidates) => {
                    let ids = candidates.into_iter().map(|candidate| candidate.id).collect();
                    let name = self.named()?;
                    let command = |id: &str| format!("memory write {name} --about {id}");
                    return Err(TargetError::ambiguous(typed, ids, command).into());
                }
                Target::Unknown(_, near) if !near.is_empty() => {
                    return Err(TargetError::unknown(typed, &near).into());
                }
                _ => return Err(no_definition(typed)),
            };
            let anchor = judge.anchor(&key)?.ok_or_else(|| no_definition(typed))?;
            if !note.about.contains(&anchor) {
                note.about.push(anchor);
            }
        }
        let mut suggested = Vec::new();
        for name in note.names() {
            if let Target::Symbol(key) = targets.find(name.as_ref())? {
                let id = key.id();
                let is_new = note.about.iter().all(|anchor| anchor.id != id) && !suggested.contains(&id);
                if is_new && suggested.len() < MAX_SUGGESTED && judge.anchor(&key)?.is_some() {
                    suggested.push(id);
                }
            }
        }
        Ok(suggested)
    }

    fn forget(&self, ask: &Ask<'_>) -> Result<PageOf<Memory>> {
        let found = self.find(ask)?;
        let mut page = answer(ask, &found, Vec::new(), false)?;
        store(ask, &[(&found, Some(&found.text), None)])?;
        page.notes.push(format!("{} is deleted", found.place()));
        Ok(page)
    }

    /// Replaces the ids of definitions that only moved.
    fn mend(&self, ask: &Ask<'_>) -> Result<PageOf<Memory>> {
        let found = match &self.name {
            Some(_) => vec![self.find(ask)?],
            None => all(ask)?,
        };
        let past = Past::of(ask, PATIENCE)?;
        let mended = past.with_targets(|targets| {
            let judge = judge(targets);
            found
                .iter()
                .map(|found| found.mended(&judge))
                .collect::<Result<Vec<_>>>()
        })?;
        let new = |(found, text): (&Found, Option<String>)| {
            Some(Found {
                name: found.name.clone(),
                path: found.path.clone(),
                is_changed: false,
                text: text?,
            })
        };
        let (old, new): (Vec<&Found>, Vec<Found>) = found
            .iter()
            .zip(mended)
            .filter_map(|(found, text)| Some((found, new((found, text))?)))
            .unzip();
        let texts = old
            .iter()
            .zip(&new)
            .map(|(old, new)| (*old, Some(old.text.as_str()), Some(new.text.as_str())));
        store(ask, &texts.collect::<Vec<_>>())?;
        let past = Past::of(ask, PATIENCE)?;
        let rows = past.with_targets(|targets| {
            let judge = judge(targets);
            new.iter()
                .map(|found| found.out(ask, &judge, false))
                .collect::<Result<Vec<_>>>()
        })?;
        let facts = Facts {
            total: rows.len(),
            ..Facts::default()
        };
        let mut page = Page::new(past.provenance(Vec::new()), facts, rows, Paging::default());
        page.is_empty = false;
        if page.rows.is_empty() {
            page.notes.push("no definition has only moved".to_owned());
        }
        Ok(page)
    }

    /// Finds the named note: that of the repository before a private one, unless `private` is given.
    fn find(&self, ask: &Ask<'_>) -> Result<Found> {
        let name = self.name.as_deref().unwrap_or_default();
        let mut all = all(ask)?;
        all.sort_by_key(|found| found.path.is_none());
        let is_meant = |found: &&Found| found.name == name && (found.path.is_none() || !self.private);
        if let Some(at) = all.iter().position(|found| is_meant(&found)) {
            return Ok(all.swap_remove(at));
        }
        let near = nearest(name, all.iter().map(|found| found.name.as_str()));
        let hint = match near.first() {
            Some(near) => format!("did you mean {near}?").into(),
            None => Hint::each("codescout memory lists the notes", "op list lists the notes"),
        };
        Err(OpError::new(format!("no note is named {name}"), hint))
    }

    fn named(&self) -> Result<&str> {
        let name = self.name.as_deref().unwrap_or_default();
        let is_part = |part: &str| {
            !part.is_empty()
                && !part.starts_with(['.', '-'])
                && part.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c))
        };
        if name.len() <= 200 && name.split('/').all(is_part) && !name.ends_with(ENDING) {
            return Ok(name);
        }
        Err(OpError::new(
            format!("not the name of a note: {name:?}"),
            "use letters, digits, - and _, with / between parts: parser/errors",
        ))
    }
}

impl Found {
    /// Names the version, as the next call of write needs it.
    fn version(&self, ask: &Ask<'_>) -> String {
        format!("{} is blob {}", self.name, self.blob(ask))
    }

    fn blob(&self, ask: &Ask<'_>) -> BlobId {
        hash_blob(ask.session.workspace.repository.object_format(), self.text.as_bytes())
    }

    /// Describes where the note is kept.
    fn place(&self) -> String {
        self.path
            .clone()
            .unwrap_or_else(|| format!("{}, a private note", self.name))
    }

    fn out(&self, ask: &Ask<'_>, judge: &Judge<'_>, has_text: bool) -> Result<NoteOut> {
        let (note, problem) = match Note::parse(&self.text) {
            Ok(note) => (note, None),
            Err(problem) => (Note::default(), Some(problem)),
        };
        let about = note.about.iter().take(MAX_ANCHORS).map(|anchor| judge.judge(anchor));
        let about = about.collect::<Result<Vec<_>>>()?;
        Ok(NoteOut {
            name: self.name.clone(),
            path: self.path.clone(),
            title: note.title(),
            verdict: about.iter().map(|anchor| anchor.verdict).max(),
            about,
            changed_outside: self.is_changed,
            blob: self.blob(ask).to_string(),
            text: has_text.then(|| {
                if problem.is_some() {
                    self.text.clone()
                } else {
                    note.body.clone()
                }
            }),
            problem,
        })
    }

    /// Returns the text with the present ids of definitions that only moved; `None` if there are none, or if the text is
    /// not what codescout wrote.
    fn mended(&self, judge: &Judge<'_>) -> Result<Option<String>> {
        let Some(mut note) = Note::parse(&self.text).ok().filter(|_| !self.is_changed) else {
            return Ok(None);
        };
        let mut has_changed = false;
        for anchor in &mut note.about {
            let out = judge.judge(anchor)?;
            let Some(now) = out.now.filter(|_| out.verdict == Verdict::Moved) else {
                continue;
            };
            let key = judge.symbols.targets.symbol_of_file(&RepoPath::from(now.as_str()))?;
            let new = key.map(|key| judge.anchor(&key)).transpose()?.flatten();
            // Of one that was also edited, the note has to be read again, so the hash stays.
            if let Some(new) = new {
                if out.is_edited {
                    anchor.id = new.id;
                } else {
                    *anchor = new;
                }
                has_changed = true;
            }
        }
        let text = || {
            let text = note.to_text();
            if self.text.contains("\r\n") {
                text.replace('\n', "\r\n")
            } else {
                text
            }
        };
        Ok(has_changed.then(text))
    }
}

impl Row for NoteOut {
    fn render(&self, out: &mut dyn Sink) {
        out.span(Style::Path, &self.name);
        if let Some(verdict) = self.verdict.filter(|verdict| *verdict != Verdict::Fresh) {
            out.span(Style::Fact, &format!(" {}", verdict.name()));
        }
        if self.path.is_none() {
            out.span(Style::Fact, " private");
        }
        out.line(&format!(": {}", self.title));
        if let Some(problem) = &self.problem {
            out.line(&format!("    not read: {problem}"));
        }
        if self.changed_outside {
            out.line("    not what codescout wrote: edited by hand or damaged; write it again to keep it");
        }
        let of_interest = |anchor: &&AnchorOut| self.text.is_some() || anchor.verdict != Verdict::Fresh;
        self.about
            .iter()
            .filter(of_interest)
            .for_each(|anchor| anchor.render(out));
        if let Some(text) = &self.text {
            out.line("");
            out.text(text);
        }
    }

    fn bodies(&mut self) -> Vec<&mut Option<String>> {
        vec![&mut self.text]
    }
}

impl AnchorOut {
    fn render(&self, out: &mut dyn Sink) {
        out.plain("    ");
        out.span(Style::Path, &self.id);
        out.plain(&format!(" {}", self.verdict.name()));
        if let Some(now) = &self.now {
            out.plain(" to ");
            out.span(Style::Path, now);
        }
        if self.uncommitted {
            out.plain(", not committed");
        }
        out.end();
        for commit in &self.commits {
            let short = &commit.commit[..commit.commit.len().min(10)];
            out.line(&format!("        {short} {}", commit.subject));
        }
    }
}

/// Describes the first note about a definition that no longer holds. Does not wait for commits to be recorded.
pub(super) fn outdated(ask: &Ask<'_>, id: &str) -> Result<Option<String>> {
    let workspace = &ask.session.workspace;
    // Most repositories have no notes.
    let folder = workspace.repository.work_dir().map(|root| root.join(FOLDER));
    if !folder.is_some_and(|folder| folder.is_dir()) && !PrivateNotes::of(workspace).exist() {
        return Ok(None);
    }
    let name = |id: &str| id.rsplit(['#', '.']).next().unwrap_or(id).to_owned();
    let (mut about, wanted) = (Vec::new(), name(id));
    for found in all(ask)? {
        let anchors = Note::parse(&found.text).map(|note| note.about).unwrap_or_default();
        let of_name = anchors.into_iter().filter(|anchor| name(&anchor.id) == wanted);
        about.extend(of_name.map(|anchor| (found.name.clone(), anchor)));
    }
    let Some(past) = Past::recorded(ask)?.filter(|_| !about.is_empty()) else {
        return Ok(None);
    };
    past.with_targets(|targets| {
        let judge = judge(targets);
        for (note, anchor) in about.iter().take(MAX_ANCHORS) {
            let judged = judge.judge(anchor)?;
            let is_meant = judged.now.as_deref().unwrap_or(&judged.id) == id;
            if is_meant && matches!(judged.verdict, Verdict::Changed | Verdict::Moved) {
                let commits = judged.commits.first().map_or_else(String::new, |commit| {
                    format!(" in {}", &commit.commit[..commit.commit.len().min(10)])
                });
                return Ok(Some(format!(
                    "note {note} no longer holds: its definition {} was {}{commits}",
                    judged.id,
                    judged.verdict.name()
                )));
            }
        }
        Ok(None)
    })
}

fn judge<'a>(targets: &'a Targets<'a>) -> Judge<'a> {
    Judge {
        symbols: SymbolQuestion {
            targets,
            has_diff: false,
        },
    }
}

fn path_of(name: &str) -> String {
    format!("{FOLDER}{name}{ENDING}")
}

fn no_definition(typed: &str) -> OpError {
    OpError::from(TargetError::unknown(typed, &[]))
        .with_hint("a note is about functions, types and other definitions with a history")
}

/// Returns all notes of the call's revision and of this clone, by name.
fn all(ask: &Ask<'_>) -> Result<Vec<Found>> {
    let selection = FileSelection::default();
    let question = Question::new(ask, &About::unindexed_files(&selection))?;
    let mut reader = question.sources().reader();
    let mut found = PrivateNotes::of(&ask.session.workspace).all()?;
    for (file, entry) in question.view().files() {
        let path = String::from_utf8_lossy(entry.path);
        let name = path.strip_prefix(FOLDER).and_then(|name| name.strip_suffix(ENDING));
        let Some(name) = name else { continue };
        if let Source::Bytes(bytes) = reader.read(file)? {
            found.push(Found {
                name: name.to_owned(),
                path: Some(path.clone().into_owned()),
                is_changed: false,
                text: text_of(&bytes),
            });
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// Returns the notes about definitions of `ids` that are no longer as they were when the note was written: the name of
/// the note, and the id.
pub(crate) fn outdated_among(ask: &Ask<'_>, ids: &BTreeSet<&str>) -> Result<Vec<(String, String)>> {
    let mut anchors = Vec::new();
    for found in all(ask)? {
        let note = Note::parse(&found.text).unwrap_or_default();
        let about = note.about.into_iter().take(MAX_ANCHORS);
        anchors.extend(
            about
                .filter(|anchor| ids.contains(anchor.id.as_str()))
                .map(|anchor| (found.name.clone(), anchor)),
        );
    }
    if anchors.is_empty() {
        return Ok(Vec::new());
    }
    let past = Past::of(ask, PATIENCE)?;
    past.with_targets(|targets| {
        let judge = judge(targets);
        let mut outdated = Vec::new();
        for (name, anchor) in anchors {
            if !matches!(judge.judge(&anchor)?.verdict, Verdict::Fresh | Verdict::Unknown) {
                outdated.push((name, anchor.id));
            }
        }
        Ok(outdated)
    })
}

/// Returns the text of a note; a broken note without its content if it cannot be one.
fn text_of(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if bytes.len() <= MAX_BYTES => text.to_owned(),
        // The front matter without an end is reported, and such a file is never written.
        _ => "---\nnot a text of up to 256 KiB\n".to_owned(),
    }
}

/// Answers with one note.
fn answer(ask: &Ask<'_>, found: &Found, suggested: Vec<String>, has_text: bool) -> Result<PageOf<Memory>> {
    let past = Past::of(ask, PATIENCE)?;
    let row = past.with_targets(|targets| found.out(ask, &judge(targets), has_text))?;
    let hint =
        (!suggested.is_empty()).then(|| format!("the text also names {}: add them with about", suggested.join(", ")));
    let provenance = past.provenance(past.gap()?.into_iter().collect());
    let facts = Facts { total: 1, suggested };
    let mut page = Page::new(provenance, facts, vec![row], Paging::default());
    page.hint = hint;
    Ok(page)
}

/// Replaces the texts of notes: the second value by the third. `None` for no note.
fn store(ask: &Ask<'_>, notes: &[(&Found, Option<&str>, Option<&str>)]) -> Result<()> {
    let workspace = &ask.session.workspace;
    if !ask.session.is_own {
        return Err(OpError::new(
            "this repository can only be read",
            "memory changes notes of the repository in which the server was started",
        ));
    }
    let mut files = Vec::new();
    for (note, from, to) in notes {
        let bytes = |text: &Option<&str>| text.map(|text| text.as_bytes().to_vec());
        match &note.path {
            Some(path) => files.push(Rewrite {
                path: path.as_bytes().to_vec(),
                from: bytes(from),
                to: bytes(to),
                mode: None,
            }),
            None => PrivateNotes::of(workspace).store(&note.name, *from, *to, ask.call.ctx.interrupt)?,
        }
    }
    if !files.is_empty() {
        let mut rewriter = workspace.rewriter(PATIENCE, ask.call.ctx.interrupt)?;
        rewriter.apply(files)?;
    }
    Ok(())
}
