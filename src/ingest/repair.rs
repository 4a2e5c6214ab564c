//! Sets damaged files aside and rebuilds them from git.

use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;

use crate::model::{Ctx, explain_by};
use crate::sidecar::{FileError, LockError, SegmentEntry, Sidecar, State, Store, StoredFile, WriterLock, failpoint};

use super::publish::publish_state;
use super::run::{Ingest, IngestError, Target};
use super::sweep::retire_history;
use super::verify::{Depth, Verification, VerifyError, check_content};

/// The outcome of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// The result of verifying before the repair.
    pub before: Verification,
    /// Number of damaged files set aside, including missing ones.
    pub n_set_aside: usize,
    /// Number of trees whose manifests were rebuilt, with everything that they refer to.
    pub n_trees: usize,
    /// Number of trees that git no longer has. Their index cannot be rebuilt.
    pub n_lost_trees: usize,
    /// The result of verifying after the repair.
    pub after: Verification,
}

/// An error from a repair. Part of the damage may be repaired.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    /// Verification failed.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// Another writer did not finish in time, or the sidecar cannot be written.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A damaged file cannot be moved, or a text file cannot be rewritten.
    #[error("cannot repair {}", .path.display())]
    Mend {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// Rebuilding failed.
    #[error(transparent)]
    Ingest(#[from] IngestError),
}

explain_by!(RepairError: Verify, Lock, Ingest);

impl Ingest<'_> {
    /// Verifies the sidecar, sets damaged files aside and rebuilds them. Writes nothing if there is no damage.
    ///
    /// One damaged segment invalidates all segments: the numbers that it assigned are lost, so a new epoch begins. A
    /// damaged batch of commits invalidates the batches that follow it.
    pub fn repair(&self, depth: Depth, ctx: Ctx<'_>) -> Result<Repair, RepairError> {
        let mut repair = Repair {
            before: self.verify(depth, ctx)?,
            ..Repair::default()
        };
        if repair.before.is_sound() {
            repair.after = repair.before.clone();
            return Ok(repair);
        }
        self.pass("repair.found")?;
        repair.n_set_aside = self.set_aside(depth, ctx)?;
        self.pass("repair.mended")?;
        for tree in repair.before.trees.clone() {
            let mut reader = self.repository.reader();
            if reader.diff_trees(None, tree).is_err() {
                repair.n_lost_trees += 1;
                continue;
            }
            let target = Target { commit: None, tree };
            if self.update(target, ctx)?.interrupted {
                return Err(VerifyError::Interrupted.into());
            }
            repair.n_trees += 1;
            self.pass("repair.rebuilt")?;
        }
        // Verifies without a time limit, because the result reports the rebuilt index as sound.
        repair.after = self.verify(Depth::default(), ctx.until(None))?;
        Ok(repair)
    }

    /// Sets aside damaged segment files.
    pub(super) fn set_damaged_aside(&self, state: &State, lock: &WriterLock) {
        set_damaged_aside(self.sidecar, state.segments.iter().flat_map(SegmentEntry::files), lock);
    }

    /// Sets aside the manifest that `error` is about, which may be the base of the requested one.
    pub(super) fn set_manifest_aside(&self, error: &FileError, lock: &WriterLock) {
        if let Some(name) = error.path.file_name()
            && let Err(error) = self.sidecar.set_aside(Some(Store::Snapshots), name, lock)
        {
            tracing::debug!(name = %name.display(), %error, "cannot set file aside");
        }
    }

    /// Publishes a state without damaged batches of commits, the batches that follow them, and damaged files of other
    /// batches. They are rebuilt on demand.
    fn drop_damaged_history(&self, found: &Verification, lock: &WriterLock) -> Result<(), IngestError> {
        // A damaged state is set aside and no longer lists anything.
        let Ok(Some(mut state)) = self.sidecar.state() else {
            return Ok(());
        };
        let has_finding = |file: &StoredFile| found.has_finding(Store::History, &file.name);
        let before = state.history.clone();
        let first = before.iter().position(|entry| has_finding(&entry.records));
        let dropped = state.history.split_off(first.unwrap_or(before.len()));
        for entry in &mut state.history {
            for side in [&mut entry.symbols, &mut entry.messages, &mut entry.lines] {
                side.take_if(|file| has_finding(file));
            }
        }
        if state.history != before {
            publish_state(self.sidecar, lock, &mut state)?;
            retire_history(self.sidecar, &dropped);
        }
        Ok(())
    }

    /// Publishes a state without damaged graphs, vectors of external models and facts of indexers. The vectors are
    /// computed again on demand, facts by another import.
    fn drop_damaged_extras(&self, found: &Verification, lock: &WriterLock) -> Result<(), IngestError> {
        let Ok(Some(mut state)) = self.sidecar.state() else {
            return Ok(());
        };
        let own = self.profile();
        let before = state.clone();
        for entry in &mut state.segments {
            let is_sound = |file: &StoredFile| !found.has_finding(Store::Dense, &file.name);
            entry
                .vectors
                .retain(|vectors| vectors.profile == own || is_sound(&vectors.file));
        }
        state
            .graphs
            .retain(|graph| !found.has_finding(Store::Dense, &graph.file.name));
        state
            .precise
            .retain(|entry| !found.has_finding(Store::Artifacts, &entry.file.name));
        if state != before {
            publish_state(self.sidecar, lock, &mut state)?;
        }
        Ok(())
    }

    /// Verifies again while holding the lock, because another process may have rebuilt damaged files under the same
    /// names. Returns the number of files set aside.
    fn set_aside(&self, depth: Depth, ctx: Ctx<'_>) -> Result<usize, RepairError> {
        let lock = self.sidecar.lock_unless(self.patience, ctx.interrupt)?;
        let found = self.verify(depth, ctx.until(None))?;
        self.drop_damaged_history(&found, &lock)?;
        self.drop_damaged_extras(&found, &lock)?;
        let mut n_set_aside = 0;
        for finding in &found.findings {
            let moved = self.sidecar.set_aside(finding.store, OsStr::new(&finding.name), &lock);
            match moved {
                Ok(()) => n_set_aside += 1,
                // The damage is that the file is missing, or another process has already repaired it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => n_set_aside += 1,
                Err(source) => {
                    let folder = match finding.store {
                        Some(store) => self.sidecar.folder(store),
                        None => self.sidecar.root().to_owned(),
                    };
                    let path = folder.join(&finding.name);
                    return Err(RepairError::Mend { path, source });
                }
            }
        }
        self.pass("repair.set_aside")?;
        self.sidecar
            .rewrite_texts(&lock)
            .map_err(|source| self.repair_error(source))?;
        // If there is no tree to rebuild, no other code publishes a state, and the segments would remain unused.
        if let (false, Ok(None)) = (found.is_sound(), self.sidecar.state()) {
            self.begin_epoch(&lock, Vec::new(), Vec::new())?;
        }
        Ok(n_set_aside)
    }

    /// Passes a fail point.
    fn pass(&self, name: &str) -> Result<(), RepairError> {
        failpoint::hit(name).map_err(|source| self.repair_error(source))
    }

    fn repair_error(&self, source: io::Error) -> RepairError {
        RepairError::Mend {
            path: self.sidecar.root().to_owned(),
            source,
        }
    }
}

/// Sets aside the files whose content does not match their names. The files are no longer used; they are only kept to
/// find the cause of the damage.
pub(super) fn set_damaged_aside<'f>(
    sidecar: &Sidecar,
    files: impl Iterator<Item = (Store, &'f StoredFile)>,
    lock: &WriterLock,
) {
    for (store, file) in files {
        if check_content(sidecar, store, file).is_err()
            && let Err(error) = sidecar.set_aside(Some(store), OsStr::new(&file.name), lock)
        {
            tracing::debug!(name = file.name, %error, "cannot set file aside");
        }
    }
}
