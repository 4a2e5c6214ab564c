//! The two states to compare, and the files that differ between them.

use std::collections::{BTreeMap, BTreeSet};

use super::{Diff, SideOut};
use crate::git::{FileMode, ObjectError, ObjectReader};
use crate::history::{Change, Entry, with_renames};
use crate::ingest::Target;
use crate::model::{RepoPath, TreeId, with_placeholders};
use crate::ops::ask::Ask;
use crate::ops::paths::{literal, pattern, typed_path};
use crate::query::{FileFilter, Tests};
use crate::session::{Context as _, OpError, Result, Uncommitted};

/// One of the two compared states: a tree, and the uncommitted changes on top of it.
pub(super) struct Side {
    pub(super) reference: String,
    pub(super) target: Option<Target>,
    pub(super) overlay: BTreeMap<RepoPath, Option<Entry>>,
}

impl Side {
    pub(super) fn out(&self) -> SideOut {
        let commit = self.target.and_then(|target| target.commit);
        SideOut {
            reference: self.reference.clone(),
            commit: commit.map(|commit| commit.to_string()),
        }
    }
}

impl Diff {
    /// Returns the two states to compare: `FROM` and `TO`, `A` and `B` of `A..B`, or the merge base and `B` of `A...B`.
    pub(super) fn sides(&self, ask: &Ask<'_>) -> Result<(Side, Side)> {
        let first = self.from.as_deref().unwrap_or("HEAD");
        if let Some((a, b)) = first.split_once("...").filter(|_| self.to.is_none()) {
            let (a, b) = (side(ask, or_head(a))?, side(ask, or_head(b))?);
            let commit = |side: &Side| {
                let commit = side.target.and_then(|target| target.commit);
                commit.with_context(|| format!("{} is not a commit", side.reference))
            };
            let base = ask
                .session
                .workspace
                .repository
                .merge_base(commit(&a)?, commit(&b)?)?
                .ok_or_else(|| {
                    OpError::new(
                        format!("{} and {} have no common ancestor", a.reference, b.reference),
                        format!("compare them directly: {}..{}", a.reference, b.reference),
                    )
                })?;
            return Ok((side(ask, &base.to_string())?, b));
        }
        if let Some((a, b)) = first.split_once("..").filter(|_| self.to.is_none()) {
            return Ok((side(ask, or_head(a))?, side(ask, or_head(b))?));
        }
        let last = self.to.as_deref().unwrap_or("WORKTREE");
        Ok((side(ask, first)?, side(ask, last)?))
    }

    /// Returns the selected files that differ, in path order, and the number of hidden files among them.
    pub(super) fn changes(&self, ask: &Ask<'_>, from: &Side, to: &Side) -> Result<(Vec<Change>, usize)> {
        let workspace = &ask.session.workspace;
        let mut reader = workspace.repository.reader();
        let typed = |path: &String| typed_path(workspace, path.as_ref());
        let wanted: Vec<RepoPath> = self.path.iter().map(typed).collect();
        let changes = differing(&mut reader, from, to, &wanted)?;
        let mut changes = renames_joined(with_renames(&mut reader, changes)?);
        let globs = self.path.iter().zip(&wanted).map(|(path, wanted)| {
            let is_path = changes.iter().any(|change| is_at_or_below(&change.path, wanted));
            if is_path {
                literal(&with_placeholders(wanted.as_bytes()))
            } else {
                pattern(workspace, path)
            }
        });
        let filter = FileFilter::new(&globs.collect::<Vec<_>>(), &[], Tests::Any)?;
        changes.retain(|change| filter.passes_path(change.path.as_bytes()));
        let n_all = changes.len();
        let is_hidden = |path: &RepoPath| ask.visibility().hides(path.as_bytes());
        changes.retain(|change| {
            !is_hidden(&change.path) && !change.origin.as_ref().is_some_and(|origin| is_hidden(&origin.path))
        });
        let n_hidden = n_all - changes.len();
        Ok((changes, n_hidden))
    }
}

fn or_head(reference: &str) -> &str {
    if reference.is_empty() { "HEAD" } else { reference }
}

fn side(ask: &Ask<'_>, reference: &str) -> Result<Side> {
    let reference = ask.session.checked(reference)?;
    let workspace = &ask.session.workspace;
    if is_before_first(ask, reference)? {
        return Ok(Side {
            reference: reference.to_owned(),
            target: None,
            overlay: BTreeMap::new(),
        });
    }
    // Before the first commit, `HEAD` is an empty tree.
    let target = match reference {
        "HEAD" => workspace.target("WORKTREE")?,
        reference => workspace.target(reference)?,
    };
    let uncommitted = ask.session.uncommitted(reference, ask.call.ctx.interrupt)?;
    Ok(Side {
        reference: reference.to_owned(),
        target,
        overlay: uncommitted.into_iter().map(overlaid).collect(),
    })
}

/// Returns the path and the entry of an uncommitted file. One that was not read differs from the commit as far as is known.
fn overlaid(change: Uncommitted) -> (RepoPath, Option<Entry>) {
    let unread = || Entry::unread(change.old.map_or(FileMode::File, |old| old.mode));
    let new = change.is_unread.then(unread).or(change.new);
    (change.path, new)
}

/// Returns true for the parent of a commit that has none, such as `FIRST^`.
fn is_before_first(ask: &Ask<'_>, reference: &str) -> Result<bool> {
    let child = reference
        .strip_suffix('^')
        .filter(|child| !matches!(*child, "WORKTREE" | "INDEX"));
    let Some(child) = child else {
        return Ok(false);
    };
    let workspace = &ask.session.workspace;
    let commit = workspace.target(child).ok().flatten().and_then(|target| target.commit);
    let commit = commit.map(|commit| workspace.repository.reader().commit(commit));
    Ok(commit.transpose()?.is_some_and(|commit| commit.parents.is_empty()))
}

/// Returns the files that differ, in path order. If a tree is too large to compare as a whole, returns only files at or
/// below `wanted`.
fn differing(reader: &mut ObjectReader, from: &Side, to: &Side, wanted: &[RepoPath]) -> Result<Vec<Change>> {
    let tree = |side: &Side| side.target.map(|target| target.tree);
    let mut both: BTreeMap<RepoPath, (Option<Entry>, Option<Entry>)> = BTreeMap::new();
    if let Some(new) = tree(to) {
        let differing = match reader.diff_trees(tree(from), new) {
            // In this case, renames from outside `wanted` are not detected.
            Err(ObjectError::BeyondLimit { .. }) if !wanted.is_empty() => {
                reader.diff_trees_below(tree(from), new, wanted)?
            }
            differing => differing?,
        };
        for change in differing {
            let entry = both.entry(change.path).or_default();
            entry.0 = entry.0.or(change.old.map(Into::into));
            entry.1 = entry.1.or(change.new.map(Into::into));
        }
    } else if let Some(old) = tree(from) {
        for change in reader.diff_trees(None, old)? {
            both.entry(change.path).or_default().0 = change.new.map(Into::into);
        }
    }
    let mut paths: Vec<&RepoPath> = from.overlay.keys().chain(to.overlay.keys()).collect();
    paths.sort_unstable();
    paths.dedup();
    let mut entries_of = |tree: Option<TreeId>| -> Result<BTreeMap<RepoPath, Entry>> {
        let Some(tree) = tree.filter(|_| !paths.is_empty()) else {
            return Ok(BTreeMap::new());
        };
        let found = reader.diff_trees_at(None, tree, &paths)?.into_iter();
        Ok(found
            .filter_map(|change| Some((change.path, change.new?.into())))
            .collect())
    };
    let (old, new) = (entries_of(tree(from))?, entries_of(tree(to))?);
    for path in &paths {
        let at = |side: &Side, committed: &BTreeMap<RepoPath, Entry>| match side.overlay.get(*path) {
            Some(entry) => *entry,
            None => committed.get(*path).copied(),
        };
        both.insert((*path).clone(), (at(from, &old), at(to, &new)));
    }
    let differing = both.into_iter().filter(|(_, (old, new))| old != new);
    let change = |(path, (old, new))| Change {
        path,
        old,
        new,
        origin: None,
        is_combined: false,
    };
    Ok(differing.map(change).collect())
}

/// Combines the deletion and the addition of each rename into one change under the new name.
fn renames_joined(mut changes: Vec<Change>) -> Vec<Change> {
    let gone = changes.iter().filter(|change| change.new.is_none());
    let gone: BTreeMap<RepoPath, Option<Entry>> = gone.map(|change| (change.path.clone(), change.old)).collect();
    let mut renamed = BTreeSet::new();
    for change in &mut changes {
        if let Some(origin) = &change.origin {
            change.old = gone.get(&origin.path).copied().flatten();
            renamed.insert(origin.path.clone());
        }
    }
    changes.retain(|change| change.new.is_some() || !renamed.contains(&change.path));
    changes
}

fn is_at_or_below(path: &RepoPath, folder: &RepoPath) -> bool {
    let rest = path.as_bytes().strip_prefix(folder.as_bytes());
    folder.as_bytes().is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}
