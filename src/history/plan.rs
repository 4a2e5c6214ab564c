//! Selects the commits to record, and orders them so that parents come first.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::git::{ObjectError, ObjectReader};
use crate::model::CommitId;

use super::record::Boundary;

/// The commits to record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The commits to record. Parents come before their children. Unrelated commits are ordered by time, oldest first,
    /// then by id.
    pub commits: Vec<(CommitId, Boundary)>,
    /// Number of older commits that were omitted because of the limit.
    pub n_left_out: usize,
}

/// The limits on the commits to record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistoryLimit {
    /// If no commit is recorded yet, record only this many of the newest commits; 0 for no limit.
    pub max_commits: usize,
    /// If set, skip commits before this time (seconds since 1970), unless one of their parents is recorded.
    pub since: Option<i64>,
}

pub(super) struct Node {
    pub(super) id: CommitId,
    pub(super) time: i64,
    pub(super) parents: Vec<CommitId>,
    pub(super) boundary: Boundary,
}

/// Returns the commits that are reachable from `tips` and not known, within `limit`.
///
/// Stops at commits that are not in the repository and at commits in `shallow`, which must be sorted. Takes O(n log n)
/// for n commits.
pub fn plan(
    reader: &mut ObjectReader,
    tips: &[CommitId],
    is_known: &dyn Fn(CommitId) -> bool,
    shallow: &[CommitId],
    limit: HistoryLimit,
    interrupt: &AtomicBool,
) -> Result<Plan, ObjectError> {
    let (nodes, places) = gather(reader, tips, is_known, shallow, interrupt)?;
    let mut order = parents_first(&nodes, &places);
    let n_too_many = match limit.max_commits {
        0 => 0,
        most => order.len().saturating_sub(most),
    };
    let mut is_left_out = vec![false; nodes.len()];
    for (place, at) in order.iter().enumerate() {
        let node = &nodes[*at];
        // Always record a commit if a parent is recorded. So if a commit is omitted, its ancestors are omitted too.
        let has_recorded = || {
            let is_recorded = |parent: &CommitId| match places.get(parent) {
                Some(at) => !is_left_out[*at],
                None => is_known(*parent),
            };
            node.parents.iter().any(is_recorded)
        };
        is_left_out[*at] =
            place < n_too_many || (limit.since.is_some_and(|since| node.time < since) && !has_recorded());
    }
    order.retain(|at| !is_left_out[*at]);
    let n_left_out = nodes.len() - order.len();
    let commits = order
        .into_iter()
        .map(|at| {
            let node = &nodes[at];
            let is_cut = node
                .parents
                .iter()
                .any(|parent| places.get(parent).is_some_and(|at| is_left_out[*at]));
            let boundary = if is_cut { Boundary::Limit } else { node.boundary };
            (node.id, boundary)
        })
        .collect();
    Ok(Plan { commits, n_left_out })
}

fn gather(
    reader: &mut ObjectReader,
    tips: &[CommitId],
    is_known: &dyn Fn(CommitId) -> bool,
    shallow: &[CommitId],
    interrupt: &AtomicBool,
) -> Result<(Vec<Node>, HashMap<CommitId, usize>), ObjectError> {
    let mut nodes: Vec<Node> = Vec::new();
    let mut places: HashMap<CommitId, usize> = HashMap::new();
    let mut is_absent: HashMap<CommitId, bool> = HashMap::new();
    let mut waiting: Vec<CommitId> = tips.iter().rev().copied().filter(|tip| !is_known(*tip)).collect();
    while let Some(id) = waiting.pop() {
        if places.contains_key(&id) || is_absent.contains_key(&id) {
            continue;
        }
        if interrupt.load(Ordering::Relaxed) {
            return Ok((Vec::new(), HashMap::new()));
        }
        let info = match reader.commit(id) {
            Ok(info) => info,
            Err(ObjectError::Missing { .. } | ObjectError::Damaged { .. } | ObjectError::WrongKind { .. }) => {
                is_absent.insert(id, true);
                continue;
            }
            Err(error) => return Err(error),
        };
        let is_shallow = shallow.binary_search(&id).is_ok();
        let parents = if is_shallow { Vec::new() } else { info.parents };
        waiting.extend(parents.iter().rev().copied().filter(|parent| !is_known(*parent)));
        places.insert(id, nodes.len());
        nodes.push(Node {
            id,
            time: info.committer.time,
            boundary: if is_shallow { Boundary::Shallow } else { Boundary::None },
            parents,
        });
    }
    for node in &mut nodes {
        if node.parents.iter().any(|parent| is_absent.contains_key(parent)) {
            node.boundary = Boundary::Missing;
        }
    }
    Ok((nodes, places))
}

/// Returns the indices of `nodes` in an order where parents come before their children. Unrelated commits are ordered
/// by time, oldest first, then by id.
pub(super) fn parents_first(nodes: &[Node], places: &HashMap<CommitId, usize>) -> Vec<usize> {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    let mut n_waited_for = vec![0usize; nodes.len()];
    for (at, node) in nodes.iter().enumerate() {
        // If a commit lists a parent twice, it is counted twice here and when the parent is done.
        for parent in node.parents.iter().filter_map(|parent| places.get(parent)) {
            children[*parent].push(at);
            n_waited_for[at] += 1;
        }
    }
    let mut free: BinaryHeap<Reverse<(i64, CommitId, usize)>> = BinaryHeap::new();
    let key = |at: usize| Reverse((nodes[at].time, nodes[at].id, at));
    free.extend((0..nodes.len()).filter(|at| n_waited_for[*at] == 0).map(key));
    let mut order = Vec::with_capacity(nodes.len());
    while let Some(Reverse((_, _, at))) = free.pop() {
        order.push(at);
        for &child in &children[at] {
            n_waited_for[child] -= 1;
            if n_waited_for[child] == 0 {
                free.push(key(child));
            }
        }
    }
    order
}
