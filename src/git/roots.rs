//! What keeps trees alive: refs, what is checked out in each work tree, the stash, and where refs pointed lately.

use std::collections::HashMap;

use bstr::{BStr, BString, ByteSlice};

use super::command::{CommandError, git};
use super::object_id::from_gix;
use super::open::{RefStorage, Repository};
use super::reader::ObjectReader;
use super::refs::{RefError, RefKind, printed_oid};
use crate::model::{CommitId, TreeId};

const STASH: &[u8] = b"refs/stash";

/// One reason for which git still has a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// What the reason is.
    pub kind: RootKind,
    /// The ref, or `HEAD`.
    pub name: BString,
    /// The commit; `None` for a ref that names a tree.
    pub commit: Option<CommitId>,
    /// Its tree.
    pub tree: TreeId,
    /// Seconds since 1970-01-01T00:00Z: when the commit was made; of an entry of a reflog, when it was written.
    pub time: i64,
}

/// What kind of reason keeps a tree, the strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RootKind {
    /// It is checked out in a work tree of the family.
    WorkTree,
    /// A ref points to it.
    Ref(RefKind),
    /// It is an entry of the stash, which git keeps until it is dropped.
    Stash,
    /// A ref pointed to it lately.
    Reflog,
}

/// An entry of a reflog.
struct LogEntry {
    /// The ref.
    name: BString,
    commit: CommitId,
    time: i64,
}

impl Repository {
    /// Everything that keeps a tree alive: what is checked out in each work tree, every ref, the whole stash, and what `HEAD` of each
    /// work tree and every ref came to point to at `reflog_since` (seconds since 1970) or later.
    ///
    /// What names an object that is not here, or one that has no tree, is left out. Costs one object for each distinct commit.
    pub fn roots(&self, reflog_since: i64) -> Result<Vec<Root>, RefError> {
        let mut found = RootsFound {
            reader: self.reader(),
            trees: HashMap::new(),
            list: Vec::new(),
        };
        for commit in self.work_tree_heads()? {
            found.add(RootKind::WorkTree, b"HEAD".as_bstr(), commit, None);
        }
        let mut logged = self.head_names();
        for each in self.refs()? {
            let is_stash = each.name == STASH;
            match each.commit {
                Some(commit) => {
                    let kind = match is_stash {
                        true => RootKind::Stash,
                        false => RootKind::Ref(each.kind),
                    };
                    found.add(kind, each.name.as_bstr(), commit, None);
                }
                None => found.add_tree(self, each.kind, each.name.as_bstr()),
            }
            logged.push(each.name);
        }
        for LogEntry { name, commit, time } in self.logs(&logged)? {
            let (kind, since) = match name == STASH {
                true => (RootKind::Stash, i64::MIN),
                false => (RootKind::Reflog, reflog_since),
            };
            if time >= since {
                found.add(kind, name.as_bstr(), commit, Some(time));
            }
        }
        Ok(found.list)
    }

    /// `HEAD` of each work tree, as names that hold in all of them.
    fn head_names(&self) -> Vec<BString> {
        let listed = std::fs::read_dir(self.common_dir().join("worktrees"));
        let names = listed.into_iter().flatten().flatten().map(|entry| entry.file_name());
        let mut heads: Vec<BString> = names
            .filter_map(|name| Some(BString::from(format!("worktrees/{}/HEAD", name.to_str()?))))
            .collect();
        heads.push(BString::from("main-worktree/HEAD"));
        heads
    }

    /// The entries of the logs of all `names`: `HEAD` of each work tree, and every ref.
    fn logs(&self, names: &[BString]) -> Result<Vec<LogEntry>, RefError> {
        if self.places.refs == RefStorage::Files {
            return Ok(names.iter().flat_map(|name| self.log_of_file(name)).collect());
        }
        let is_head = |name: &&BString| !name.starts_with(b"refs/");
        let mut all: Vec<&str> = names
            .iter()
            .filter(is_head)
            .filter_map(|name| name.to_str().ok())
            .collect();
        all.insert(0, "--all");
        match self.log_of_reftable(&all) {
            // One name without a log, or one lost commit, spoils the call for all.
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

    fn log_of_file(&self, name: &BString) -> Vec<LogEntry> {
        let mut buffer = vec![0; 4096];
        let Ok(Some(lines)) = self.local().refs.reflog_iter_rev(name.as_bstr(), &mut buffer) else {
            return Vec::new();
        };
        lines
            .filter_map(Result::ok)
            .filter(|line| !line.new_oid.is_null())
            .map(|line| LogEntry {
                name: name.clone(),
                commit: CommitId(from_gix(&line.new_oid)),
                time: line.signature.time.seconds,
            })
            .collect()
    }

    fn log_of_reftable(&self, names: &[&str]) -> Result<Vec<LogEntry>, CommandError> {
        let mut arguments = vec![
            "--walk-reflogs",
            "--no-patch",
            "--no-color",
            "--format=%H %gD",
            "--date=unix",
        ];
        // Names of refs do not begin with a dash.
        arguments.extend(names);
        arguments.push("--");
        let printed = git(self.git_dir(), "log", &arguments)?;
        Ok(printed.lines().filter_map(printed_entry).collect())
    }
}

/// `<id> <ref>@{<seconds>}`
fn printed_entry(line: &[u8]) -> Option<LogEntry> {
    let (id, selector) = line.split_once_str(" ")?;
    let (name, time) = selector.strip_suffix(b"}")?.rsplit_once_str("@{")?;
    Some(LogEntry {
        name: name.into(),
        commit: CommitId(printed_oid(id).ok()?),
        time: time.to_str().ok()?.parse().ok()?,
    })
}

/// Roots as they are found, with the trees of the commits seen so far; `None` for one that cannot be read.
struct RootsFound {
    reader: ObjectReader,
    trees: HashMap<CommitId, Option<(TreeId, i64)>>,
    list: Vec<Root>,
}

impl RootsFound {
    fn add(&mut self, kind: RootKind, name: &BStr, commit: CommitId, time: Option<i64>) {
        let reader = &mut self.reader;
        let known = self.trees.entry(commit).or_insert_with(|| {
            let info = reader.commit(commit).ok()?;
            Some((info.tree, info.committer.time))
        });
        if let Some((tree, made)) = *known {
            self.list.push(Root {
                kind,
                name: name.to_owned(),
                commit: Some(commit),
                tree,
                time: time.unwrap_or(made),
            });
        }
    }

    /// A ref that leads to no commit may lead to a tree.
    fn add_tree(&mut self, repository: &Repository, kind: RefKind, name: &BStr) {
        let resolved = name.to_str().ok().and_then(|name| repository.resolve(name).ok());
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
