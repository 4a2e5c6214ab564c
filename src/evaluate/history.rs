//! Samples judged queries from the history of a repository.

use crate::git::{CommitInfo, ObjectError, ObjectReader};
use crate::model::{CommitId, TreeId};

use super::judgements::{Category, Judged, Relevant};

/// Selects the commits that become queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryOptions {
    /// Maximum number of queries. They are spread evenly over the suitable commits.
    pub sample: usize,
    /// Maximum number of commits to walk along first parents.
    pub max_commits: usize,
    /// Maximum number of files a commit may change. Larger commits are too broad to serve as a query.
    pub max_files: usize,
}

impl Default for HistoryOptions {
    /// Samples 200 of the last 5,000 commits with at most 4 changed files each.
    fn default() -> Self {
        Self {
            sample: 200,
            max_commits: 5_000,
            max_files: 4,
        }
    }
}

/// Minimum number of words in a commit subject. Shorter subjects are too vague.
const MIN_SUBJECT_WORDS: usize = 4;

/// Turns commits into judged queries. The subject is the query, the files that the commit changed are the answer, and
/// the tree of its parent is searched. Returns the parent, its tree and the query for each sampled commit.
pub fn sample_history(
    reader: &mut ObjectReader,
    tip: CommitId,
    options: &HistoryOptions,
) -> Result<Vec<(CommitId, TreeId, Judged)>, ObjectError> {
    let mut qualified = Vec::new();
    let mut next = Some(tip);
    for _ in 0..options.max_commits {
        let Some(id) = next else { break };
        // In a shallow clone, the history ends at a missing commit.
        let Ok(info) = reader.commit(id) else { break };
        next = info.parents.first().copied();
        if let (Some(parent), [_]) = (next, info.parents.as_slice())
            && let Ok(before) = reader.commit(parent)
            && let Some(judged) = judge(reader, id, &info, before.tree, options)?
        {
            qualified.push((parent, before.tree, judged));
        }
    }
    let step = qualified.len().div_ceil(options.sample.max(1)).max(1);
    Ok(qualified.into_iter().step_by(step).collect())
}

fn judge(
    reader: &mut ObjectReader,
    id: CommitId,
    info: &CommitInfo,
    before: TreeId,
    options: &HistoryOptions,
) -> Result<Option<Judged>, ObjectError> {
    let message = String::from_utf8_lossy(&info.message);
    let subject = message.lines().next().unwrap_or_default().trim();
    let is_telling = subject.split_whitespace().count() >= MIN_SUBJECT_WORDS
        && !["Merge ", "Revert ", "Bump ", "Release "]
            .iter()
            .any(|start| subject.starts_with(start));
    if !is_telling {
        return Ok(None);
    }
    let changes = reader.diff_trees(Some(before), info.tree)?;
    // A file that the commit adds cannot be found in the parent.
    let relevant: Vec<Relevant> = changes
        .iter()
        .filter(|change| change.old.is_some())
        .map(|change| Relevant {
            path: change.path.to_string(),
            start: 1,
            end: u32::MAX,
            grade: 1,
        })
        .collect();
    let is_answerable = !relevant.is_empty() && changes.len() <= options.max_files;
    Ok(is_answerable.then(|| Judged {
        id: id.to_string(),
        category: Category::Commit,
        query: subject.to_owned(),
        relevant,
    }))
}
