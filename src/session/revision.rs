//! Resolves revisions to commits and trees.

use super::error::Result;
use super::workspace::Workspace;
use crate::git::Head;
use crate::ingest::Target;
use crate::model::ErrorKind;
use crate::snapshot::Provenance;

/// Note for a revision that exists only in the sidecar. A snapshot remains after git deletes the commit until garbage
/// is collected, or indefinitely if it is pinned.
const VANISHED_NOTE: &str =
    "this revision is no longer in git; the answer comes from the index, and file contents may be missing";

/// Note for a repository with `refs/replace`, where git shows replacements of objects and this program shows the
/// originals.
const REPLACED_NOTE: &str = "refs/replace is ignored: the original files and commits are shown";

impl Workspace {
    /// Resolves a revision. `WORKTREE` and `INDEX` resolve to the checked-out commit. A revision that git no longer has
    /// may still be in the sidecar.
    pub fn target(&self, reference: &str) -> Result<Option<Target>> {
        Ok(self.find(reference)?.0)
    }

    /// Resolves a revision. The flag is true if the revision exists only in the sidecar.
    fn find(&self, reference: &str) -> Result<(Option<Target>, bool)> {
        match self.target_of_git(reference) {
            Err(error) if error.kind == ErrorKind::NotFound => match self.vanished(reference) {
                Some(target) => Ok((Some(target), true)),
                None => Err(error),
            },
            found => Ok((found?, false)),
        }
    }

    fn target_of_git(&self, reference: &str) -> Result<Option<Target>> {
        if matches!(reference, "WORKTREE" | "INDEX") {
            let head: Head = self.repository.head()?;
            let Some(commit) = head.commit() else {
                return Ok(None);
            };
            let tree = self.repository.reader().commit(commit)?.tree;
            return Ok(Some(Target {
                commit: Some(commit),
                tree,
            }));
        }
        let resolved = self.repository.resolve(reference)?;
        Ok(Some(Target {
            commit: resolved.commit,
            tree: resolved.tree,
        }))
    }

    /// Resolves a revision and returns the provenance for answers about it.
    pub(super) fn asked(&self, reference: &str) -> Result<(Option<Target>, Provenance)> {
        let (target, has_vanished) = self.find(reference)?;
        let reference = match (reference, self.repository.work_dir()) {
            ("WORKTREE", None) => "HEAD",
            (reference, _) => reference,
        };
        let mut provenance = self.provenance(reference, target);
        if has_vanished {
            provenance.incomplete.push(VANISHED_NOTE.to_owned());
        }
        Ok((target, provenance))
    }

    /// Returns the provenance of answers about a revision.
    pub(crate) fn provenance(&self, reference: &str, target: Option<Target>) -> Provenance {
        let repo = self.repository.place();
        Provenance {
            repo: repo.to_owned(),
            reference: reference.to_owned(),
            commit: target.and_then(|target| target.commit),
            tree: target.map(|target| target.tree),
            n_dirty_files: 0,
            profile: self.models.embedder().profile().id().to_string(),
            incomplete: self
                .repository
                .has_replacements()
                .then(|| REPLACED_NOTE.to_owned())
                .into_iter()
                .collect(),
        }
    }
}

/// Calls `attempt` again, at most twice, if it fails because of a missing object. After a branch was resolved and
/// before its tree is read, git may remove objects that the branch no longer reaches (`rebase`, then `gc --prune=now`).
pub(super) fn while_objects_vanish<T>(attempt: impl Fn() -> Result<T>) -> Result<T> {
    for _ in 0..2 {
        match attempt() {
            Err(error) if error.kind == ErrorKind::ObjectMissing => tracing::debug!("{error:#}: once more"),
            done => return done,
        }
    }
    attempt()
}
