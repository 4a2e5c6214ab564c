//! The last commit that contains the target, and the one that deleted it.

use serde::Serialize;

use super::question::Question;
use super::rows::ID_DIGITS;
use crate::session::Result;

/// The last commit that contains the target.
#[derive(Debug, Serialize)]
pub(super) struct LastSeenOut {
    present: bool,
    commit: Option<String>,
    deleted_by: Option<String>,
}

impl LastSeenOut {
    pub(super) fn sentence(&self) -> String {
        let short = |commit: &Option<String>| {
            let id = commit.as_deref().unwrap_or("-");
            id[..id.len().min(ID_DIGITS)].to_owned()
        };
        match (self.present, &self.commit, &self.deleted_by) {
            (true, commit, _) => format!("present in {}", short(commit)),
            (false, Some(_), None) => format!("last present in {}; its deletion is not committed", short(&self.commit)),
            (false, commit, by) => format!("last present in {}, deleted in {}", short(commit), short(by)),
        }
    }
}

impl Question<'_> {
    /// Returns the last commit that contains the target. The commit `gone` deleted it, or its deletion is uncommitted
    /// if `is_taken` is true.
    pub(super) fn last_seen(&self, is_present: bool, is_taken: bool, gone: Option<u32>) -> Result<LastSeenOut> {
        let opened = self.targets.opened;
        let id = |number: Option<u32>| number.map(|number| opened.history.id(number)).transpose();
        let commit = if is_present || is_taken {
            opened.target.and_then(|target| target.commit)
        } else {
            id(gone.and_then(|number| opened.history.parents(number).first().copied().flatten()))?
        };
        Ok(LastSeenOut {
            present: is_present,
            commit: commit.map(|id| id.to_string()),
            deleted_by: id(gone)?.map(|id| id.to_string()),
        })
    }
}
