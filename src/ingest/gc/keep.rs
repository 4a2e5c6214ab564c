//! Decides which trees to keep, and with what priority.

use std::collections::HashSet;

use crate::git::{RefKind, Root, RootKind};
use crate::model::{CommitId, TreeId};
use crate::sidecar::Pin;

/// A reason to keep a snapshot, in descending priority. If the store exceeds its size limit, snapshots of the lowest
/// priority are deleted first, but never those of the first two reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// A checked-out tree of a worktree.
    WorkTree,
    /// A pin.
    Pin,
    /// The tip of a local branch.
    Branch,
    /// Requested by this run, or created within the last day. Used only in automatic collections.
    Recent,
    /// The tip of a remote branch.
    Remote,
    /// The target of a tag.
    Tag,
    /// The target of any other ref.
    OtherRef,
    /// The stash.
    Stash,
    /// A recent reflog entry.
    Reflog,
}

impl Cause {
    /// All reasons, in order of priority.
    pub const ALL: [Self; 9] = [
        Self::WorkTree,
        Self::Pin,
        Self::Branch,
        Self::Recent,
        Self::Remote,
        Self::Tag,
        Self::OtherRef,
        Self::Stash,
        Self::Reflog,
    ];

    /// Name for output, both text and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::WorkTree => "worktree",
            Self::Pin => "pin",
            Self::Branch => "branch",
            Self::Recent => "recent",
            Self::Remote => "remote",
            Self::Tag => "tag",
            Self::OtherRef => "ref",
            Self::Stash => "stash",
            Self::Reflog => "reflog",
        }
    }

    /// Returns true if the snapshot is kept regardless of any size limit.
    pub(super) fn is_always_kept(self) -> bool {
        matches!(self, Self::WorkTree | Self::Pin)
    }

    fn of(kind: RootKind) -> Self {
        match kind {
            RootKind::WorkTree => Self::WorkTree,
            RootKind::Ref(RefKind::Branch) => Self::Branch,
            RootKind::Ref(RefKind::Remote) => Self::Remote,
            RootKind::Ref(RefKind::Tag) => Self::Tag,
            RootKind::Ref(RefKind::Other) => Self::OtherRef,
            RootKind::Stash => Self::Stash,
            RootKind::Reflog => Self::Reflog,
        }
    }
}

/// A tree to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keep {
    /// The tree.
    pub tree: TreeId,
    /// The tree's commit, if known.
    pub commit: Option<CommitId>,
    /// The reason with the highest priority.
    pub cause: Cause,
    /// The name of the ref or pin that is the reason.
    pub name: String,
    time: i64,
}

/// Lists the trees to keep, each once under its reason with the highest priority. Ordered by priority, then from newest
/// to oldest.
pub(super) fn keep_list(roots: Vec<Root>, pins: &[Pin], recent: &[(TreeId, i64)]) -> Vec<Keep> {
    let mut list: Vec<Keep> = roots
        .into_iter()
        .map(|root| Keep {
            tree: root.tree,
            commit: root.commit,
            cause: Cause::of(root.kind),
            name: root.name.to_string(),
            time: root.time,
        })
        .collect();
    list.extend(pins.iter().map(|pin| Keep {
        tree: pin.tree,
        commit: pin.commit,
        cause: Cause::Pin,
        name: pin.name.clone(),
        time: pin.pinned_at,
    }));
    list.extend(recent.iter().map(|&(tree, time)| Keep {
        tree,
        commit: None,
        cause: Cause::Recent,
        name: String::new(),
        time,
    }));
    list.sort_by(|a, b| (a.cause, b.time, &a.name, a.tree).cmp(&(b.cause, a.time, &b.name, b.tree)));
    let mut seen = HashSet::new();
    list.retain(|keep| seen.insert(keep.tree));
    list
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::model::Oid;

    fn tree(byte: u8) -> TreeId {
        TreeId(Oid::from_bytes(&[byte; 20]).unwrap())
    }

    #[test]
    fn keep_list_has_each_tree_once_by_priority() {
        let root = |kind, byte, time| Root {
            kind,
            name: format!("{kind:?}").into(),
            commit: None,
            tree: tree(byte),
            time,
        };
        let roots = vec![
            root(RootKind::Reflog, 1, 9),
            root(RootKind::Reflog, 2, 8),
            root(RootKind::Ref(RefKind::Tag), 3, 1),
            root(RootKind::Ref(RefKind::Tag), 4, 2),
            root(RootKind::Ref(RefKind::Branch), 1, 1),
            root(RootKind::Ref(RefKind::Remote), 5, 1),
            root(RootKind::WorkTree, 1, 1),
            root(RootKind::Stash, 6, 1),
            root(RootKind::Ref(RefKind::Other), 7, 1),
        ];
        let pin = Pin {
            name: "mine".to_owned(),
            commit: None,
            tree: tree(3),
            pinned_at: 0,
        };
        let list = keep_list(roots, &[pin], &[(tree(8), 1), (tree(2), 1)]);
        let found: Vec<(u8, Cause)> = list
            .iter()
            .map(|keep| (keep.tree.0.as_bytes()[0], keep.cause))
            .collect();
        let expected = [
            (1, Cause::WorkTree),
            (3, Cause::Pin),
            (8, Cause::Recent),
            (2, Cause::Recent),
            (5, Cause::Remote),
            (4, Cause::Tag),
            (7, Cause::OtherRef),
            (6, Cause::Stash),
        ];
        // Trees of equal time are ordered by id.
        let mut found = found;
        found[2..4].sort_by_key(|&(byte, _)| std::cmp::Reverse(byte));
        assert_eq!(found, expected);
        assert!(Cause::ALL.is_sorted());
    }
}
