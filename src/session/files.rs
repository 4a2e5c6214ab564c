//! The known state of the files of a worktree, which later calls compare with the disk.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::error::Result;
use super::open::Session;
use crate::git::{KnownFiles, Repository, WorkTreeChanges, WorktreeWatch};
use crate::model::TreeId;

/// Time without file events before a new watch of the files is started.
const CALM: Duration = Duration::from_millis(300);

/// The last known state of the worktree's files.
#[derive(Default)]
pub(super) struct Files {
    known: KnownFiles,
    last: Option<(Instant, Arc<WorkTreeChanges>)>,
    /// A watch that was started before `last` was read. `None` after it has seen a change.
    stillness: Option<WorktreeWatch>,
    /// The time of the last change that a watch reported.
    disturbed: Option<Instant>,
}

impl Files {
    /// Returns true if the watch has seen no change since the last comparison.
    fn is_still(&mut self) -> bool {
        if self.stillness.take_if(|stillness| stillness.saw_changes()).is_some() {
            self.disturbed = Some(Instant::now());
        }
        self.stillness.as_ref().is_some_and(WorktreeWatch::holds)
    }

    /// Starts or renews a watch before a comparison, unless files have changed recently.
    fn watch(&mut self, repository: &Repository) {
        match &mut self.stillness {
            Some(stillness) => stillness.renew(),
            None if self.disturbed.is_none_or(|at| at.elapsed() > CALM) => {
                self.stillness = WorktreeWatch::begin(repository);
            }
            None => {}
        }
    }
}

impl Session {
    /// Makes the next view compare the files of the worktree, because this process has changed some.
    pub(crate) fn files_changed(&self) {
        self.files.lock().stillness = None;
    }

    /// Returns the differences between the worktree and the checked-out commit.
    pub(crate) fn work_tree_changes(&self, interrupt: &AtomicBool) -> Result<Arc<WorkTreeChanges>> {
        let tree = self.workspace.target("WORKTREE")?.map(|target| target.tree);
        self.changes(tree, interrupt)
    }

    /// Returns the changes of the worktree. The comparison is made after the call began. Calls that wait for another
    /// call's comparison share its result.
    pub(super) fn changes(&self, tree: Option<TreeId>, interrupt: &AtomicBool) -> Result<Arc<WorkTreeChanges>> {
        let asked = Instant::now();
        let mut files = self.files.lock();
        if let Some((began, changes)) = &files.last
            && *began > asked
        {
            return Ok(Arc::clone(changes));
        }
        // A branch can change without a file event. Then the tree of its commit differs from the compared one.
        if files.is_still()
            && let Some((_, changes)) = &files.last
            && changes.tree == tree
        {
            return Ok(Arc::clone(changes));
        }
        // If the comparison fails, there must be no list, because the watch is newer than the previous list.
        let last = files.last.take();
        if self.is_kept {
            files.watch(&self.workspace.repository);
        }
        let began = Instant::now();
        let found = Arc::new(self.workspace.changes(&mut files.known, interrupt)?);
        let changes = match last {
            // Returns the same list object, so that views created from it remain valid.
            Some((_, last)) if *last == *found => last,
            _ => found,
        };
        files.last = Some((began, Arc::clone(&changes)));
        Ok(changes)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::config::Overrides;
    use crate::session::Workspace;
    use crate::support::{TestRepo, wait_until};

    #[test]
    fn a_call_that_is_given_up_hides_no_edit_from_the_next() {
        let repo = TestRepo::new("\n//- a.rs\nfn a() {}\n");
        let session = Session::for_server(Workspace::open(repo.root(), &Overrides::default()).unwrap(), true);
        let changed = |is_given_up| {
            let changes = session.work_tree_changes(&AtomicBool::new(is_given_up));
            changes.map(|changes| changes.changes.len())
        };
        assert_eq!(changed(false).unwrap(), 0);
        repo.write("a.rs", "fn b() {}\n");
        // The event of the edit may arrive with a delay.
        wait_until("the edit is seen", || changed(true).is_err());
        // Simulates that enough time has passed to start another watch.
        session.files.lock().disturbed = None;
        changed(true).unwrap_err();
        assert_eq!(changed(false).unwrap(), 1);
    }
}
