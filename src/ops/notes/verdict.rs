//! Determines whether a note still holds: what became of the definitions that it is about.

use std::collections::HashSet;

use serde::Serialize;

use super::file::Anchor;
use crate::git::{BlobContent, ObjectReader, hash_blob};
use crate::history::{FileShapes, SymbolKey, SymbolVersion};
use crate::model::{BlobId, RepoPath};
use crate::ops::symbol_history::{SymbolChangeOut, SymbolQuestion, text_of};
use crate::session::Result;

/// Number of digits of the hash of a definition's text.
const HASH_DIGITS: usize = 16;
/// Limit on the commits that are listed for a definition.
const MAX_COMMITS: usize = 10;
/// Limit on the definitions that are examined as successors of one that is gone.
const MAX_SUCCESSORS: usize = 20;

/// What became of a definition since a note about it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// It is the same, but for its formatting.
    Fresh,
    /// Nothing is known: the note does not say what it was, or the record of commits is incomplete.
    Unknown,
    /// Its text has changed.
    Changed,
    /// It has another name or is in another file.
    Moved,
    /// It was deleted.
    Gone,
}

impl Verdict {
    /// The name in output.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Unknown => "unknown",
            Self::Changed => "changed",
            Self::Moved => "moved",
            Self::Gone => "gone",
        }
    }
}

/// A definition that a note is about, and what became of it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct AnchorOut {
    /// The id that the note has.
    pub(super) id: String,
    /// What became of it.
    pub(super) verdict: Verdict,
    /// Its present id, if it is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) now: Option<String>,
    /// The commits that changed, moved or deleted it, the newest first; at most ten.
    pub(super) commits: Vec<CommitOut>,
    /// True if an uncommitted edit changed, moved or deleted it.
    pub(super) uncommitted: bool,
    /// True if a definition that moved was also edited.
    #[serde(skip)]
    pub(super) is_edited: bool,
}

/// A commit.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct CommitOut {
    /// The id.
    pub(super) commit: String,
    /// The first line of the message.
    pub(super) subject: String,
}

/// What the history of a definition says about an anchor.
#[derive(Clone, Default)]
struct Walk {
    /// The commits that changed it since, the newest first.
    commits: Vec<u32>,
    /// True if the history leads to the anchored text or name.
    is_reached: bool,
    /// True if a change was one of the text, rather than of its name, place or formatting.
    is_edited: bool,
    /// True if a change was one of the formatting.
    formats: bool,
    /// True if not all of the history is known.
    is_partial: bool,
    /// True if the revision has the definition.
    is_there: bool,
    /// The commit that deleted it, if it is not there.
    deleted_by: Option<u32>,
}

/// Judges the anchors of notes at one revision.
pub(super) struct Judge<'a> {
    pub(super) symbols: SymbolQuestion<'a>,
}

impl Judge<'_> {
    /// Returns an anchor for the present text of a definition; `None` if the revision does not have it.
    pub(super) fn anchor(&self, key: &SymbolKey) -> Result<Option<Anchor>> {
        let Some(file) = self.symbols.targets.shapes(&key.path)? else {
            return Ok(None);
        };
        let hash = hash_in(&file, key);
        Ok(hash.map(|text| Anchor {
            id: key.id(),
            blob: hash_blob(self.symbols.targets.workspace.repository.object_format(), &file.bytes)
                .0
                .to_string(),
            text,
        }))
    }

    /// Determines what became of the definition of an anchor.
    pub(super) fn judge(&self, anchor: &Anchor) -> Result<AnchorOut> {
        let targets = self.symbols.targets;
        let mut out = AnchorOut {
            id: anchor.id.clone(),
            verdict: Verdict::Unknown,
            now: None,
            commits: Vec::new(),
            uncommitted: false,
            is_edited: true,
        };
        let Some(key) = targets.symbol_of_file(&RepoPath::new(anchor.id.as_bytes()))? else {
            return Ok(out);
        };
        let present = self.anchor(&key)?;
        if anchor.text.is_empty() {
            return Ok(out);
        }
        if present.as_ref().is_some_and(|present| present.text == anchor.text) {
            out.verdict = Verdict::Fresh;
            return Ok(out);
        }
        let own = self.symbols.uncommitted(&key)?;
        let is_content = |change: &SymbolChangeOut| change.events != ["formatting"];
        let formats = own
            .as_ref()
            .is_some_and(|own| own.change.as_ref().is_some_and(|change| !is_content(change)));
        out.uncommitted = own
            .as_ref()
            .is_some_and(|own| own.change.as_ref().is_some_and(is_content) || !own.is_there);
        let committed = own.map_or_else(|| key.clone(), |own| own.committed);
        let walk = self.walk(&committed, anchor, &key)?;
        if present.is_some() && walk.is_reached {
            // The text is another one. Without a change of the formatting, it came from the other side of a merge.
            let is_same = walk.commits.is_empty() && !out.uncommitted && (formats || walk.formats);
            out.verdict = if is_same { Verdict::Fresh } else { Verdict::Changed };
            out.commits = self.commits(&walk.commits)?;
            return Ok(out);
        }
        if let Some((now, walk)) = self.successor(&key, anchor)? {
            out.verdict = Verdict::Moved;
            out.now = Some(now.id());
            out.uncommitted = walk.commits.is_empty();
            out.is_edited = walk.is_edited;
            out.commits = self.commits(&walk.commits)?;
            return Ok(out);
        }
        out.uncommitted &= walk.deleted_by.is_none();
        (out.verdict, out.commits) = match (present, walk.deleted_by) {
            (Some(_), _) => (Verdict::Changed, self.commits(&walk.commits)?),
            (None, Some(commit)) => (Verdict::Gone, self.commits(&[commit])?),
            (None, None) if out.uncommitted => (Verdict::Gone, Vec::new()),
            (None, None) => (Verdict::Unknown, Vec::new()),
        };
        let is_cut = walk.is_partial || !self.symbols.targets.opened.history.boundaries()?.is_empty();
        if is_cut && !out.uncommitted && walk.deleted_by.is_none() {
            (out.verdict, out.commits) = (Verdict::Unknown, Vec::new());
        }
        Ok(out)
    }

    /// Follows a definition back to the text of an anchor.
    fn walk(&self, from: &SymbolKey, anchor: &Anchor, anchored: &SymbolKey) -> Result<Walk> {
        let life = self.symbols.life(from)?;
        let mut reader = self.symbols.targets.workspace.repository.reader();
        let mut walk = Walk {
            commits: Vec::new(),
            is_reached: false,
            is_edited: false,
            formats: false,
            is_partial: life.n_missing + life.n_unread > 0,
            is_there: life.is_there,
            deleted_by: life
                .changes
                .first()
                .filter(|change| change.events.removed)
                .map(|change| change.commit),
        };
        let mut renamed = None;
        for change in &life.changes {
            if change.key == *anchored && self.is_text(change.new.as_ref(), anchor, &mut reader)? {
                walk.is_reached = true;
                return Ok(walk);
            }
            walk.is_edited |= change.events.is_of_content();
            walk.formats |= change.events.formatting;
            if change.events.is_of_content() || change.from.is_some() {
                walk.commits.push(change.commit);
            }
            if self.is_text(change.old.as_ref(), anchor, &mut reader)? {
                walk.is_reached = true;
                return Ok(walk);
            }
            // The version that the anchor was made from may never have been committed.
            if change.from.as_ref() == Some(anchored) && *from != *anchored {
                let is_reached = true;
                renamed.get_or_insert_with(|| Walk {
                    is_reached,
                    ..walk.clone()
                });
            }
        }
        if let Some(walk) = renamed {
            return Ok(walk);
        }
        // A definition that was there all the time has no change that leads to the anchor.
        walk.is_reached = life.changes.is_empty() && life.is_there;
        Ok(walk)
    }

    /// Finds the definition that an anchored one has become, with what changed it since.
    fn successor(&self, key: &SymbolKey, anchor: &Anchor) -> Result<Option<(SymbolKey, Walk)>> {
        let targets = self.symbols.targets;
        for change in targets.uncommitted.iter().filter(|change| change.new.is_some()) {
            let Some(file) = targets.shapes(&change.path)? else {
                continue;
            };
            let mut keys = file.shapes.iter().map(|shape| shape.key(&change.path));
            if let Some(now) = keys.find(|now| hash_in(&file, now).as_ref() == Some(&anchor.text)) {
                return Ok(Some((now, Walk::default())));
            }
        }
        let (mut open, mut seen) = (vec![key.clone()], HashSet::new());
        while let Some(at) = open.pop().filter(|_| seen.len() < MAX_SUCCESSORS) {
            if !seen.insert(at.clone()) {
                continue;
            }
            if at != *key {
                let walk = self.walk(&at, anchor, key)?;
                // An uncommitted edit may have deleted it.
                if walk.is_there && walk.is_reached && self.anchor(&at)?.is_some() {
                    return Ok(Some((at, walk)));
                }
            }
            open.extend(self.moved_to(&at)?);
        }
        Ok(None)
    }

    /// Returns the keys that commits moved a definition to.
    fn moved_to(&self, key: &SymbolKey) -> Result<Vec<SymbolKey>> {
        let removals = self.symbols.life(key)?.changes;
        let removals = removals
            .iter()
            .filter(|change| change.events.removed && change.key == *key);
        let removals: Vec<u32> = removals.map(|change| change.commit).take(MAX_SUCCESSORS).collect();
        let mut reader = self.symbols.targets.workspace.repository.reader();
        self.symbols.targets.lives(&mut reader, |lives| {
            let moved = removals.iter().map(|commit| lives.moved_to(key, *commit));
            Ok(moved.collect::<Result<Vec<_>, _>>()?.concat())
        })
    }

    fn is_text(&self, version: Option<&SymbolVersion>, anchor: &Anchor, reader: &mut ObjectReader) -> Result<bool> {
        let Some(version) = version else { return Ok(false) };
        let max_bytes = self.symbols.targets.workspace.build_options().max_blob_bytes;
        Ok(match reader.blob(BlobId(version.oid), max_bytes)? {
            BlobContent::Content(bytes) => hash(&text_of(&bytes, version.start_line, version.end_line)) == anchor.text,
            _ => false,
        })
    }

    fn commits(&self, numbers: &[u32]) -> Result<Vec<CommitOut>> {
        let numbers = &numbers[..numbers.len().min(MAX_COMMITS)];
        let heads = self.symbols.targets.opened.history.heads(numbers)?;
        let out = numbers.iter().filter_map(|number| heads.get(number));
        Ok(out
            .map(|head| CommitOut {
                commit: head.id.to_string(),
                subject: head.subject.clone(),
            })
            .collect())
    }
}

fn hash_in(file: &FileShapes, key: &SymbolKey) -> Option<String> {
    let (first, last) = file.lines_of(file.find(&key.name, key.nth)?.range);
    Some(hash(&text_of(&file.bytes, first, last)))
}

fn hash(text: &[u8]) -> String {
    blake3::hash(text).to_hex()[..HASH_DIGITS].to_owned()
}
