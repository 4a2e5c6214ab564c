//! Finds the roots of garbage collection: refs, the checkouts of all worktrees, the stash and recent reflog entries.

use std::collections::HashMap;

use bstr::{BStr, BString, ByteSlice};

use super::command::{CommandError, git};
use super::object_id::from_gix;
use super::open::{RefStorage, Repository};
use super::reader::{ObjectError, ObjectReader};
use super::refs::{RefError, RefKind, printed_oid, unless_damaged};
use crate::model::{CommitId, TreeId};

const STASH: &[u8] = b"refs/stash";

/// A root of garbage collection: its tree must not be deleted from the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// The kind of the root.
    pub kind: RootKind,
    /// The name of the ref, or `HEAD`.
    pub name: BString,
    /// The commit; `None` if the ref points to a tree.
    pub commit: Option<CommitId>,
    /// The tree of the commit.
    pub tree: TreeId,
    /// The time of the commit or, for a reflog entry, of the entry, in seconds since 1970-01-01T00:00Z.
    pub time: i64,
}

/// The kinds of roots, most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RootKind {
    /// The commit checked out in a worktree.
    WorkTree,
    /// The target of a ref.
    Ref(RefKind),
    /// An entry of the stash. git does not expire these.
    Stash,
    /// A recent reflog entry.
    Reflog,
}

struct LogEntry {
    /// The name of the ref.
    name: BString,
    commit: CommitId,
    time: i64,
}

impl Repository {
    /// Returns all roots: the checkout of each worktree, all refs, the whole stash, and the reflog entries of refs and
    /// of each `HEAD` from `reflog_since` (seconds since 1970) or later.
    ///
    /// Skips objects that are missing or have no tree, but fails on an unreadable object. Reads one object per distinct
    /// commit.
    pub fn roots(&self, reflog_since: i64) -> Result<Vec<Root>, RefError> {
        let mut found = RootsFound {
            reader: self.reader(),
            trees: HashMap::new(),
            list: Vec::new(),
        };
        for commit in self.work_tree_heads()? {
            found.add(RootKind::WorkTree, b"HEAD".as_bstr(), commit, None)?;
        }
        let mut logged = self.head_names()?;
        for each in self.refs()? {
            let is_stash = each.name == STASH;
            match each.commit {
                Some(commit) => {
                    let kind = if is_stash {
                        RootKind::Stash
                    } else {
                        RootKind::Ref(each.kind)
                    };
                    found.add(kind, each.name.as_bstr(), commit, None)?;
                }
                None => found.add_tree(self, each.kind, each.name.as_bstr()),
            }
            logged.push(each.name);
        }
        for LogEntry { name, commit, time } in self.logs(&logged)? {
            let (kind, since) = if name == STASH {
                (RootKind::Stash, i64::MIN)
            } else {
                (RootKind::Reflog, reflog_since)
            };
            if time >= since {
                found.add(kind, name.as_bstr(), commit, Some(time))?;
            }
        }
        Ok(found.list)
    }

    /// Returns the reflog entries of all `names`, which are refs and the `HEAD` of each worktree.
    fn logs(&self, names: &[BString]) -> Result<Vec<LogEntry>, RefError> {
        if self.places.refs == RefStorage::Files {
            let local = self.local();
            let mut entries = Vec::new();
            for name in names {
                entries.extend(log_of_file(&local, name)?);
            }
            return Ok(entries);
        }
        let is_head = |name: &&BString| !name.starts_with(b"refs/");
        let mut all: Vec<&str> = names
            .iter()
            .filter(is_head)
            .filter_map(|name| name.to_str().ok())
            .collect();
        all.insert(0, "--all");
        match self.log_of_reftable(&all) {
            // git fails for all names if one has no reflog or refers to a missing commit, so run it for each name.
            Err(CommandError::Failed { .. }) => {
                let mut entries = Vec::new();
                for name in names.iter().filter_map(|name| name.to_str().ok()) {
                    match self.log_of_reftable(&[name]) {
                        Err(CommandError::Failed { .. }) => {}
                        found => entries.extend(found?),
                    }
                }
                Ok(entries)
            }
            found => Ok(found?),
        }
    }

    fn log_of_reftable(&self, names: &[&str]) -> Result<Vec<LogEntry>, CommandError> {
        let mut arguments = vec![
            "--walk-reflogs",
            "--no-patch",
            "--no-color",
            "--format=%H %gD",
            "--date=unix",
        ];
        // Ref names never begin with a dash.
        arguments.extend(names);
        arguments.push("--");
        let printed = git(self, "log", &arguments)?;
        Ok(printed.lines().filter_map(printed_entry).collect())
    }
}

fn log_of_file(local: &gix::Repository, name: &BString) -> Result<Vec<LogEntry>, RefError> {
    let mut buffer = vec![0; 4096];
    let mut entries = Vec::new();
    let lines = unless_damaged(local.refs.reflog_iter_rev(name.as_bstr(), &mut buffer))?.flatten();
    for line in lines.into_iter().flatten() {
        entries.extend(
            unless_damaged(line)?
                .filter(|line| !line.new_oid.is_null())
                .map(|line| LogEntry {
                    name: name.clone(),
                    commit: CommitId(from_gix(&line.new_oid)),
                    time: line.signature.time.seconds,
                }),
        );
    }
    Ok(entries)
}

/// Parses `<id> <ref>@{<seconds>}`.
fn printed_entry(line: &[u8]) -> Option<LogEntry> {
    let (id, selector) = line.split_once_str(" ")?;
    let (name, time) = selector.strip_suffix(b"}")?.rsplit_once_str("@{")?;
    Some(LogEntry {
        name: name.into(),
        commit: CommitId(printed_oid(id).ok()?),
        time: time.to_str().ok()?.parse().ok()?,
    })
}

/// Collects roots. `trees` caches the tree and the time of each commit, or `None` if the commit is missing.
struct RootsFound {
    reader: ObjectReader,
    trees: HashMap<CommitId, Option<(TreeId, i64)>>,
    list: Vec<Root>,
}

impl RootsFound {
    fn add(&mut self, kind: RootKind, name: &BStr, commit: CommitId, time: Option<i64>) -> Result<(), RefError> {
        let known = match self.trees.get(&commit) {
            Some(known) => *known,
            None => {
                let known = match self.reader.commit(commit) {
                    Ok(info) => Some((info.tree, info.committer.time)),
                    Err(error @ ObjectError::Damaged { .. }) => return Err(RefError::Damaged(Box::new(error))),
                    Err(_) => None,
                };
                self.trees.insert(commit, known);
                known
            }
        };
        if let Some((tree, made)) = known {
            self.list.push(Root {
                kind,
                name: name.to_owned(),
                commit: Some(commit),
                tree,
                time: time.unwrap_or(made),
            });
        }
        Ok(())
    }

    /// Adds a ref that does not point to a commit, if it points to a tree.
    fn add_tree(&mut self, repository: &Repository, kind: RefKind, name: &BStr) {
        let resolved = name.to_str().ok().and_then(|name| repository.resolve_ref(name));
        if let Some(resolved) = resolved {
            self.list.push(Root {
                kind: RootKind::Ref(kind),
                name: name.to_owned(),
                commit: resolved.commit,
                tree: resolved.tree,
                time: 0,
            });
        }
    }
}
