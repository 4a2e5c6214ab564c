//! Compares what documents say about code with the code and its history.
//!
//! A mention is a finding only if the history proves that it was right once: the definition, file or heading existed,
//! the document mentioned it then, and a commit has renamed or deleted it since. So names of other programs and
//! libraries need no list of exceptions.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use bstr::ByteSlice;
use serde::Serialize;

use super::super::sink::{Sink, Style};
use super::super::symbol_history::SymbolQuestion;
use super::super::target::Targets;
use super::document::{Document, Phrases, last_part, parts, qualifier};
use super::files::Files;
use super::headings::PastHeadings;
use super::link::Spelling;
use super::mention::{Markup, Mention, Referent};
use super::present::Present;
use crate::extract::{DefinitionKind, lang_of_path};
use crate::git::BlobContent;
use crate::history::{PathChange, SymbolKey};
use crate::model::{BlobId, RepoPath};
use crate::query::{is_test_path, latest_key, removals};
use crate::session::{OpError, Result};

/// Limit on the number of renames through which a file is followed.
const MAX_RENAMES: usize = 64;
/// Number of digits of a commit id in text output.
const ID_DIGITS: usize = 10;

/// A mention of something that has another name now, or is gone.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FindingOut {
    pub(super) path: String,
    line: u32,
    kind: &'static str,
    text: String,
    /// `renamed` or `gone`.
    verdict: &'static str,
    /// The present ids or paths.
    now: Vec<String>,
    /// The commit that renamed or deleted it; null for uncommitted changes.
    commit: Option<String>,
    subject: Option<String>,
    /// The text that is right now; null unless there is exactly one.
    pub(super) fix: Option<String>,
    /// True if the text was replaced.
    pub(super) fixed: bool,
    /// Why the text was not replaced, if it should have been.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) left: Option<&'static str>,
    /// The range of the text in the document.
    #[serde(skip)]
    pub(super) range: Range<usize>,
}

impl FindingOut {
    /// Notes why the text was not replaced.
    pub(super) fn leave(&mut self) {
        self.left = Some(match (self.now.as_slice(), self.kind) {
            ([], _) => "there is no new name",
            ([_], "name") => "it may mean something else, too",
            ([_], _) => "the new path cannot be written in its form",
            _ => "several names are possible",
        });
    }

    pub(super) fn render(&self, out: &mut dyn Sink) {
        out.span(Style::Path, &self.path);
        out.plain(&format!(":{}: ", self.line));
        out.span(Style::Match, &self.text);
        match self.now.as_slice() {
            [] => out.plain(" is gone"),
            now => {
                out.plain(" is now ");
                out.span(Style::Name, &now.join(" or "));
            }
        }
        match (&self.commit, &self.subject) {
            (Some(commit), Some(subject)) => {
                out.span(
                    Style::Fact,
                    &format!(" since {} {subject}", &commit[..commit.len().min(ID_DIGITS)]),
                );
            }
            _ => out.span(Style::Fact, ", not committed"),
        }
        match self.left {
            Some(why) => out.plain(&format!("; left: {why}")),
            None if self.fixed => out.plain("; fixed"),
            None => {}
        }
        out.end();
    }
}

/// A definition that a commit or an uncommitted change took away.
struct Removed {
    key: SymbolKey,
    kind: DefinitionKind,
    /// The commit; `None` for an uncommitted change.
    commit: Option<u32>,
    /// True if the commit renamed or moved it.
    goes_on: bool,
}

/// What became of something that a document mentions.
#[derive(Clone)]
struct Outcome {
    /// The commit; `None` for an uncommitted change.
    commit: Option<u32>,
    now: Vec<String>,
    fix: Option<String>,
}

/// Judges the mentions of documents.
pub(super) struct Auditor<'a> {
    targets: &'a Targets<'a>,
    present: &'a Present,
    files: Files<'a>,
    /// The definitions that were taken away, by the last part of their names.
    removed: HashMap<String, Vec<Removed>>,
    /// The keys that uncommitted changes replaced.
    own: HashMap<SymbolKey, SymbolKey>,
    /// The last parts of the names of definitions, present and past, that documents use as qualifiers.
    qualifiers: HashSet<String>,
    past_headings: HashMap<RepoPath, PastHeadings>,
    /// What became of names and paths, if documents were right about them.
    names: HashMap<String, Option<Outcome>>,
    paths: HashMap<(RepoPath, String, bool, Spelling), Option<Outcome>>,
    /// The phrases of versions of documents, by path and the commit after it.
    versions: HashMap<(RepoPath, Option<u32>), Option<Phrases>>,
}

impl<'a> Auditor<'a> {
    pub(super) fn new(targets: &'a Targets<'a>, present: &'a Present, documents: &[Document]) -> Result<Self> {
        let names: HashSet<&str> = documents.iter().flat_map(Document::names).collect();
        let words: HashSet<&str> = names.iter().map(|name| last_part(name)).collect();
        let (removed, own) = removed(targets, &words)?;
        let of_removed = || names.iter().filter(|name| removed.contains_key(last_part(name)));
        let qualifiers = of_removed().filter_map(|name| qualifier(name)).collect();
        Ok(Self {
            qualifiers: traced(targets, &qualifiers)?,
            files: Files::new(targets, &present.paths),
            targets,
            present,
            removed,
            own,
            past_headings: HashMap::new(),
            names: HashMap::new(),
            paths: HashMap::new(),
            versions: HashMap::new(),
        })
    }

    /// Returns the findings in a document.
    pub(super) fn audit(&mut self, document: &Document) -> Result<Vec<FindingOut>> {
        let mut findings = Vec::new();
        for mention in &document.mentions {
            if self.targets.ctx.is_interrupted() {
                return Err(OpError::interrupted());
            }
            let (kind, outcome) = match &mention.referent {
                Referent::Name => ("name", self.name(document, mention)?),
                Referent::Path => ("path", self.path(document, mention)?),
                Referent::Heading(_) => ("heading", self.heading(document, mention)?),
            };
            if let Some(outcome) = outcome {
                findings.push(self.finding(document, mention, kind, outcome)?);
            }
        }
        Ok(findings)
    }

    fn finding(
        &self,
        document: &Document,
        mention: &Mention,
        kind: &'static str,
        outcome: Outcome,
    ) -> Result<FindingOut> {
        let heads = self.targets.opened.history.heads(outcome.commit.as_slice())?;
        let head = outcome.commit.and_then(|commit| heads.get(&commit));
        Ok(FindingOut {
            path: document.path.to_string(),
            line: document.line_of(mention),
            kind,
            text: document.text(mention).to_owned(),
            verdict: if outcome.now.is_empty() { "gone" } else { "renamed" },
            now: outcome.now,
            commit: head.map(|head| head.id.to_string()),
            subject: head.map(|head| head.subject.clone()),
            fix: outcome.fix,
            fixed: false,
            left: None,
            range: mention.range.clone(),
        })
    }

    fn name(&mut self, document: &Document, mention: &Mention) -> Result<Option<Outcome>> {
        let text = document.text(mention);
        let outcome = match self.names.get(text) {
            Some(known) => known.clone(),
            None => {
                let outcome = self.outcome_of_name(text)?;
                self.names.insert(text.to_owned(), outcome.clone());
                outcome
            }
        };
        let outcome = outcome.filter(|outcome| !outcome.now.is_empty() || self.is_own(document, mention));
        self.if_right(document, mention, outcome)
    }

    /// Returns true if a mention can only mean code of the repository: it is no word of prose, and no example of the
    /// document imports the name from elsewhere.
    fn is_own(&self, document: &Document, mention: &Mention) -> bool {
        let text = document.text(mention);
        let is_word = text.bytes().all(|byte| byte.is_ascii_lowercase()) && !document.is_code(mention);
        let module = document.module_of(parts(text).next().unwrap_or(text));
        let is_imported = module.is_some_and(|module| !module.is_empty() && !self.files.has_part(module));
        !is_word && !is_imported
    }

    fn outcome_of_name(&self, text: &str) -> Result<Option<Outcome>> {
        let word = last_part(text);
        let Some(removed) = self.removed.get(word) else {
            return Ok(None);
        };
        let is_in_code = self.present.in_code.contains(word);
        if !is_in_code && !self.is_own_qualifier(text) {
            return Ok(None);
        }
        let is_member = |removed: &Removed| n_common(text, &removed.key.name) > 1;
        let meant = removed.iter().filter(|removed| !is_in_code || is_member(removed));
        // The last change is the one that took the name away.
        let Some(last) = meant.clone().map(Removed::order).max() else {
            return Ok(None);
        };
        let mut meant: Vec<&Removed> = meant.filter(|removed| removed.order() == last).collect();
        if meant.iter().any(|removed| is_member(removed)) {
            meant.retain(|removed| is_member(removed));
        }
        let commit = meant[0].commit;
        let now = meant
            .iter()
            .map(|removed| self.now(removed))
            .collect::<Result<Vec<_>>>()?;
        let renamed = meant
            .iter()
            .zip(&now)
            .filter_map(|(removed, now)| Some((&removed.key, now.as_ref()?)));
        let renamed: Vec<(&SymbolKey, &SymbolKey)> = renamed.collect();
        // The reader may have a variable with the same name.
        let is_variable =
            |removed: &&Removed| matches!(removed.kind, DefinitionKind::Variable | DefinitionKind::Constant);
        if renamed.is_empty() && meant.iter().all(is_variable) {
            return Ok(None);
        }
        // If other definitions have the name, only a rename proves that this one is not called so any more.
        if is_in_code && (renamed.len() < meant.len() || renamed.iter().any(|(_, now)| last_part(&now.name) == word)) {
            return Ok(None);
        }
        let mut fixes: Vec<Option<String>> = renamed.iter().map(|(old, new)| replaced(text, old, new)).collect();
        fixes.sort();
        fixes.dedup();
        // Of several definitions with one name in a file, such as overloads, it is enough to follow one.
        let is_followed = |removed: &&Removed| {
            let is_same = |key: &SymbolKey| (&key.path, &key.name) == (&removed.key.path, &removed.key.name);
            renamed.iter().any(|(old, _)| is_same(old))
        };
        let is_sure = fixes.len() == 1 && meant.iter().all(is_followed);
        let mut ids: Vec<String> = renamed.iter().map(|(_, now)| now.id()).collect();
        ids.sort();
        ids.dedup();
        Ok(Some(Outcome {
            commit,
            fix: fixes.pop().flatten().filter(|_| is_sure),
            now: ids,
        }))
    }

    /// Returns true if the qualifier of a name is a definition, file or directory that the repository has or had, or
    /// something like a variable.
    fn is_own_qualifier(&self, name: &str) -> bool {
        qualifier(name).is_none_or(|qualifier| {
            let is_variable =
                qualifier.starts_with(|c: char| c.is_lowercase()) && self.present.in_code.contains(qualifier);
            is_variable || self.files.has_part(qualifier) || self.qualifiers.contains(qualifier)
        })
    }

    /// Returns the present key of a definition that was renamed or moved.
    fn now(&self, removed: &Removed) -> Result<Option<SymbolKey>> {
        let opened = self.targets.opened;
        let recipe = self.targets.workspace.records().symbol_recipe();
        let mut key = removed.key.clone();
        if let Some(commit) = removed.commit {
            let latest = latest_key(&opened.history, &opened.reached, key, commit, recipe)?;
            let Some(latest) = latest.filter(|_| removed.goes_on) else {
                return Ok(None);
            };
            key = latest.key;
        }
        let key = self.own.get(&key).cloned().unwrap_or(key);
        if self.targets.visibility.hides(key.path.as_bytes()) {
            return Ok(None);
        }
        let file = self.targets.shapes(&key.path)?;
        let is_there = file.is_some_and(|file| file.find(&key.name, key.nth).is_some());
        Ok((is_there && key != removed.key).then_some(key))
    }

    fn path(&mut self, document: &Document, mention: &Mention) -> Result<Option<Outcome>> {
        let text = document.text(mention);
        let key = (
            document.path.clone(),
            text.to_owned(),
            mention.is_link,
            mention.spelling,
        );
        let outcome = match self.paths.get(&key) {
            Some(known) => known.clone(),
            None => {
                let outcome = self.outcome_of_path(document, mention)?;
                self.paths.insert(key, outcome.clone());
                outcome
            }
        };
        self.if_right(document, mention, outcome)
    }

    fn outcome_of_path(&self, document: &Document, mention: &Mention) -> Result<Option<Outcome>> {
        let path = document.read(mention, &mention.range);
        let Some(gone) = self.files.gone(&document.path, &path, mention.is_link)? else {
            return Ok(None);
        };
        let is_hidden = |path: &RepoPath| self.targets.visibility.hides(path.as_bytes());
        let now = gone.now.filter(|now| !is_hidden(now));
        Ok(Some(Outcome {
            commit: gone.commit,
            now: now.iter().map(ToString::to_string).collect(),
            fix: now
                .and_then(|now| gone.form.text_for(&now, &path))
                .and_then(|now| mention.spelling.write(&now, document.text(mention))),
        }))
    }

    fn heading(&mut self, document: &Document, mention: &Mention) -> Result<Option<Outcome>> {
        let Some((path, text)) = self.present.heading(document, mention) else {
            return Ok(None);
        };
        let mut past = match self.past_headings.remove(&path) {
            Some(past) => past,
            None => PastHeadings::new(self.changes(&path)?),
        };
        let commit = past.last_commit_after(&text, &|change| self.content(change));
        self.past_headings.insert(path, past);
        let outcome = commit?.map(|commit| Outcome {
            commit,
            now: Vec::new(),
            fix: None,
        });
        self.if_right(document, mention, outcome)
    }

    /// Returns the outcome if the document was right before.
    fn if_right(
        &mut self,
        document: &Document,
        mention: &Mention,
        outcome: Option<Outcome>,
    ) -> Result<Option<Outcome>> {
        let Some(outcome) = outcome else { return Ok(None) };
        Ok(self.was_right(document, mention, outcome.commit)?.then_some(outcome))
    }

    /// Returns true if the document said the same when a commit took away what it mentions. The words before and after
    /// the mention must be the same, because later text may mean something else.
    fn was_right(&mut self, document: &Document, mention: &Mention, commit: Option<u32>) -> Result<bool> {
        let at = (document.path.clone(), commit);
        if !self.versions.contains_key(&at) {
            let old = self.before(&document.path, commit)?;
            let old = old.map(|old| Phrases::of(&String::from_utf8_lossy(&old)));
            self.versions.insert(at.clone(), old);
        }
        let context = document.context(mention);
        Ok(self.versions[&at].as_ref().is_some_and(|old| old.contains(context)))
    }

    /// Returns the version of a document before a commit; the last one if there is none.
    fn before(&self, path: &RepoPath, commit: Option<u32>) -> Result<Option<Vec<u8>>> {
        let (mut path, limit) = (path.clone(), commit.unwrap_or(u32::MAX));
        for _ in 0..MAX_RENAMES {
            let changes = self.changes(&path)?;
            if let Some(last) = changes.iter().rev().find(|change| change.commit < limit) {
                return self.content(last);
            }
            match changes.into_iter().find_map(|change| change.origin) {
                Some(origin) => path = origin.path,
                None => break,
            }
        }
        Ok(None)
    }

    fn changes(&self, path: &RepoPath) -> Result<Vec<PathChange>> {
        let opened = self.targets.opened;
        let mut changes = opened.history.changes_of(path.as_bytes())?;
        changes.retain(|change| opened.reached.has(change.commit));
        Ok(changes)
    }

    fn content(&self, change: &PathChange) -> Result<Option<Vec<u8>>> {
        let Some(entry) = change.new else { return Ok(None) };
        let workspace = self.targets.workspace;
        let max_bytes = workspace.build_options().max_blob_bytes;
        Ok(
            match workspace.repository.reader().blob(BlobId(entry.oid), max_bytes)? {
                BlobContent::Content(bytes) => Some(bytes),
                _ => None,
            },
        )
    }
}

impl Removed {
    /// Returns a number that is greater for later changes.
    fn order(&self) -> u32 {
        self.commit.unwrap_or(u32::MAX)
    }
}

type RemovedByName = (HashMap<String, Vec<Removed>>, HashMap<SymbolKey, SymbolKey>);

/// Returns the definitions named by `words` that were taken away, and the keys that uncommitted changes replaced.
fn removed(targets: &Targets<'_>, words: &HashSet<&str>) -> Result<RemovedByName> {
    let opened = targets.opened;
    let recipe = targets.workspace.records().symbol_recipe();
    let is_wanted = |name: &[u8]| name.to_str().is_ok_and(|name| words.contains(last_part(name)));
    let committed = removals(&opened.history, &opened.reached, recipe, &is_wanted)?;
    let mut all: Vec<Removed> = committed
        .into_iter()
        .map(|removal| Removed {
            key: removal.key,
            kind: removal.kind,
            commit: Some(removal.commit),
            goes_on: removal.goes_on,
        })
        .collect();
    let symbols = SymbolQuestion {
        targets,
        has_diff: false,
    };
    let mut own = HashMap::new();
    for delta in symbols.own_deltas()? {
        let goes_on = delta.from.is_some();
        if goes_on || delta.events.removed {
            let key = delta.from.unwrap_or_else(|| delta.key.clone());
            if goes_on {
                own.insert(key.clone(), delta.key);
            }
            all.push(Removed {
                key,
                kind: delta.kind,
                commit: None,
                goes_on,
            });
        }
    }
    let mut by_word: HashMap<String, Vec<Removed>> = HashMap::new();
    let is_meant = |removed: &Removed| {
        is_wanted(removed.key.name.as_bytes())
            && !is_beside(&removed.key.path)
            && !targets.visibility.hides(removed.key.path.as_bytes())
    };
    for removed in all.into_iter().filter(is_meant) {
        by_word
            .entry(last_part(&removed.key.name).to_owned())
            .or_default()
            .push(removed);
    }
    Ok((by_word, own))
}

/// Returns true for documents, tests, examples and copies of other repositories. Documents do not mean what they define.
fn is_beside(path: &RepoPath) -> bool {
    const FOLDERS: [&str; 8] = [
        "vendor",
        "_vendor",
        "vendored",
        "third_party",
        "node_modules",
        "example",
        "examples",
        "docs",
    ];
    let text = path.to_text();
    let is_document = Markup::of(lang_of_path(path)).is_some();
    is_document || is_test_path(&text) || text.split('/').any(|part| FOLDERS.contains(&part))
}

/// Returns the last parts of names of definitions, present and past, that are in `wanted`.
fn traced(targets: &Targets<'_>, wanted: &HashSet<&str>) -> Result<HashSet<String>> {
    let found = RefCell::new(HashSet::new());
    let take = |name: &[u8]| {
        let word = name.to_str().ok().map(last_part).filter(|word| wanted.contains(word));
        found.borrow_mut().extend(word.map(str::to_owned));
        // The records of the definitions are not needed.
        false
    };
    if !wanted.is_empty() {
        let recipe = targets.workspace.records().symbol_recipe();
        targets.opened.history.traced_names(recipe, &take)?;
    }
    Ok(found.into_inner())
}

/// Returns the number of last parts that two names have in common.
fn n_common(a: &str, b: &str) -> usize {
    parts(a).rev().zip(parts(b).rev()).take_while(|(a, b)| a == b).count()
}

/// Returns a mention with the new name of its definition. `None` if it also names a file or container that changed.
fn replaced(text: &str, old: &SymbolKey, new: &SymbolKey) -> Option<String> {
    let n_common = n_common(text, &old.name);
    let is_alike = parts(&old.name).count() == parts(&new.name).count();
    if parts(text).count() > n_common && (old.path != new.path || !is_alike) || n_common > 1 && !is_alike {
        return None;
    }
    let (mut fixed, mut end) = (text.to_owned(), text.len());
    for (old, new) in parts(text).rev().zip(parts(&new.name).rev()).take(n_common) {
        let start = text[..end].rfind(old)?;
        fixed.replace_range(start..start + old.len(), new);
        end = start;
    }
    Some(fixed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(path: &str, name: &str) -> SymbolKey {
        SymbolKey {
            path: path.into(),
            name: name.to_owned(),
            nth: 1,
        }
    }

    #[test]
    fn a_mention_keeps_its_form() {
        let fixed = |text, old, new| replaced(text, &key("a", old), &key("a", new));
        assert_eq!(fixed("old", "A.old", "A.new").as_deref(), Some("new"));
        assert_eq!(fixed("m::A::old", "A.old", "B.new").as_deref(), Some("m::B::new"));
        assert_eq!(fixed("A.old", "A.old", "new"), None);
        assert_eq!(replaced("m.old", &key("a", "old"), &key("b", "new")), None);
    }
}
