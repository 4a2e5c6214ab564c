//! What goes with a change: notes and documents about the changed definitions, files that usually change with the
//! changed ones, and people who know them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::rows::{Consequence, DefinitionRow, DocumentSite, OwnerRow, TogetherRow};
use crate::history::Reachable;
use crate::model::{CommitId, Oid, RepoPath, typed, without_placeholders};
use crate::ops::ask::Ask;
use crate::ops::blame::owner_out;
use crate::ops::diff::{FileOut, SideOut, name_in};
use crate::ops::docs::naming;
use crate::ops::notes::outdated_among;
use crate::ops::provenance::ProvenanceOut;
use crate::ops::question::Question;
use crate::query::{Gaps, Owner, cochange, file_owners};
use crate::session::{OpenedHistory, Result};

/// Time that a call waits for commits to be recorded.
const PATIENCE: Duration = Duration::from_secs(2);
/// Maximum number of owners.
const MAX_OWNERS: usize = 3;
/// Maximum number of files that did not change with the others.
const MAX_TOGETHER: usize = 5;
/// Number of latest commits of a file whose other files are counted, and the fewest from which a habit is concluded.
const COMMITS: (usize, usize) = (30, 8);
/// The least share of these commits that also changed a file which usually changes, too.
const USUAL: f64 = 0.7;
/// Maximum number of changed files whose commits are read.
const MAX_FILES: usize = 100;
/// Maximum number of documents that are listed for a definition.
const MAX_DOCUMENTS: usize = 5;

/// What goes with a change.
#[derive(Default)]
pub(super) struct Around {
    /// Number of commits between both states, if they are known.
    pub(super) n_commits: Option<usize>,
    pub(super) together: Vec<TogetherRow>,
    pub(super) owners: Vec<OwnerRow>,
}

/// Finds what goes with the change of `files` from `old` to `new`, of which `question` has the files. Adds notes and
/// documents to `definitions`.
pub(super) fn of(
    ask: &Ask<'_>,
    question: &Question<'_>,
    (old, new): (&SideOut, &SideOut),
    files: &[FileOut],
    definitions: &mut [DefinitionRow],
    provenance: &mut ProvenanceOut,
) -> Result<Around> {
    add_notes(&ask.at(&new.reference), definitions)?;
    add_documents(question, files, definitions)?;
    let (opened, job) = ask.session.history(&new.reference, PATIENCE, &ask.call)?;
    if let Some(job) = job {
        let progress = job.advance().to_text();
        provenance.also_building(format!(
            "people and usual changes: commits are being recorded ({progress})"
        ));
    }
    for gap in Gaps::of(&opened.history, &opened.reached)?.sentences() {
        provenance.also_incomplete(format!("people and usual changes: {gap}"));
    }
    let commits = Commits::of(&opened, old);
    let both = |file: &FileOut| [Some(file.path.clone()), file.from_path.clone()];
    let paths: BTreeSet<RepoPath> = files
        .iter()
        .flat_map(both)
        .flatten()
        .map(|path| repo_path(&path))
        .collect();
    let owners = file_owners(&opened.history, &commits.before, &paths, &opened.mailmap)?;
    let owner = |owner| OwnerRow {
        kind: "owner",
        owner: owner_out(owner),
    };
    Ok(Around {
        n_commits: commits.n_new,
        together: commits.together(question, &opened, &paths)?,
        owners: owners
            .iter()
            .filter(|owner| !is_bot(owner))
            .take(MAX_OWNERS)
            .map(owner)
            .collect(),
    })
}

/// Returns true for an account of a program.
fn is_bot(owner: &Owner) -> bool {
    owner.who.name.ends_with(b"[bot]")
}

fn repo_path(path: &str) -> RepoPath {
    RepoPath::new(without_placeholders(&typed(path)))
}

/// Adds the notes that may no longer hold.
fn add_notes(ask: &Ask<'_>, definitions: &mut [DefinitionRow]) -> Result<()> {
    let ids = |row: &DefinitionRow| [Some(row.id.clone()), row.from.clone()];
    let all: Vec<String> = definitions.iter().flat_map(ids).flatten().collect();
    let outdated = outdated_among(ask, &all.iter().map(String::as_str).collect())?;
    for row in definitions {
        let is_about = |id: &String| *id == row.id || row.from.as_ref() == Some(id);
        let notes = outdated.iter().filter(|(_, id)| is_about(id));
        row.notes = notes.map(|(name, _)| name.clone()).collect();
    }
    Ok(())
}

/// Adds the places of unchanged documents that name a definition which is gone, renamed or used differently.
fn add_documents(question: &Question<'_>, files: &[FileOut], definitions: &mut [DefinitionRow]) -> Result<()> {
    let is_other = |row: &DefinitionRow| row.consequence() <= Consequence::Signature || row.events.contains(&"renamed");
    let rows: Vec<&mut DefinitionRow> = definitions.iter_mut().filter(|row| is_other(row)).collect();
    if rows.is_empty() {
        return Ok(());
    }
    // A document names a renamed definition by its former name.
    let names = rows.iter().map(|row| match &row.from {
        Some(from) if row.events.contains(&"renamed") => name_in(from, "").to_owned(),
        _ => row.name().to_owned(),
    });
    let names: Vec<String> = names.map(|name| without_number(&name).to_owned()).collect();
    let changed: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let mut of_definition: BTreeMap<usize, Vec<DocumentSite>> = BTreeMap::new();
    for named in naming(question, &names)?
        .into_iter()
        .filter(|named| !changed.contains(named.path.as_str()))
    {
        of_definition.entry(named.definition).or_default().push(DocumentSite {
            path: named.path,
            line: named.line,
        });
    }
    for (at, row) in rows.into_iter().enumerate() {
        row.documents = of_definition.remove(&at).unwrap_or_default();
        row.documents.truncate(MAX_DOCUMENTS);
    }
    Ok(())
}

/// Returns a qualified name without the number that tells namesakes apart.
pub(super) fn without_number(name: &str) -> &str {
    match name.rsplit_once('~') {
        Some((name, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => name,
    }
}

/// The commits before a change, and those of the change.
struct Commits {
    before: Reachable,
    n_new: Option<usize>,
}

impl Commits {
    fn of(opened: &OpenedHistory, old: &SideOut) -> Self {
        let number = old.commit.as_deref().and_then(|id| {
            let id = Oid::from_hex(id).ok()?;
            opened.history.number(CommitId(id))
        });
        let Some(number) = number else {
            return Self {
                before: opened.reached.clone(),
                n_new: None,
            };
        };
        let before = opened.history.reachable(&[number]);
        let is_new = |number: &u32| opened.reached.has(*number) && !before.has(*number);
        let n_new = (0..opened.history.n_commits()).filter(is_new).count();
        Self {
            before,
            n_new: Some(n_new),
        }
    }

    /// Returns the files that usually change with one of `changed`, and did not.
    fn together(
        &self,
        question: &Question<'_>,
        opened: &OpenedHistory,
        changed: &BTreeSet<RepoPath>,
    ) -> Result<Vec<TogetherRow>> {
        let (history, (most, fewest)) = (&opened.history, COMMITS);
        let mut found: BTreeMap<RepoPath, TogetherRow> = BTreeMap::new();
        for path in changed.iter().take(MAX_FILES) {
            let mut commits: Vec<u32> = history
                .changes_of(path.as_bytes())?
                .into_iter()
                .map(|change| change.commit)
                .filter(|commit| self.before.has(*commit) && history.parents(*commit).len() < 2)
                .collect();
            commits.sort_by_key(|commit| std::cmp::Reverse(history.order_of(*commit)));
            commits.truncate(most);
            if commits.len() < fewest {
                continue;
            }
            let (n_commits, others) = cochange(history, &commits, changed)?;
            for other in others {
                let is_usual = other.confidence >= USUAL && n_commits as usize >= fewest;
                if !is_usual || question.view().find_text(&other.path.to_string()).is_none() {
                    continue;
                }
                let row = TogetherRow {
                    kind: "together",
                    path: other.path.to_string(),
                    with: path.to_string(),
                    both: other.support,
                    commits: n_commits,
                };
                let share = |row: &TogetherRow| f64::from(row.both) / f64::from(row.commits);
                match found.get_mut(&other.path) {
                    Some(known) if share(known) >= share(&row) => {}
                    Some(known) => *known = row,
                    None => {
                        found.insert(other.path, row);
                    }
                }
            }
        }
        let mut rows: Vec<TogetherRow> = found.into_values().collect();
        rows.sort_by_key(|row| std::cmp::Reverse((row.both * 1000 / row.commits.max(1), row.both)));
        rows.truncate(MAX_TOGETHER);
        Ok(rows)
    }
}
