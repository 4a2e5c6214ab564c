//! Sets aside what is damaged and makes it again from git.

use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;

use crate::sidecar::{LockError, SegmentEntry, State, Store, StoredFile, WriterLock, failpoint};
use crate::snapshot::ManifestError;

use super::progress::Progress;
use super::publish::publish_state;
use super::run::{Ingest, IngestError, Target};
use super::sweep::retire_history;
use super::verify::{Depth, Limits, Verification, VerifyError, check_content};

/// What mending did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// What was found before.
    pub before: Verification,
    /// Files that were set aside, or that were missing.
    pub n_set_aside: usize,
    /// Trees whose manifests, with all that they need, are there again.
    pub n_trees: usize,
    /// Trees that git does not have any more: what was known of them is lost.
    pub n_lost_trees: usize,
    /// What is found now.
    pub after: Verification,
}

/// Why nothing was mended, or not all.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    /// Looking for damage.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// Another writer did not finish in time, or nothing can be written here.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A damaged file cannot be moved, or a text written anew.
    #[error("cannot mend {}", .path.display())]
    Mend {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Making it again.
    #[error(transparent)]
    Ingest(#[from] IngestError),
}

impl Ingest<'_> {
    /// Looks for damage, sets it aside and makes it again. Without damage nothing is written.
    ///
    /// A damaged segment costs all of them: the numbers that it gave are not known any more, so a new epoch begins.
    /// A damaged batch of commits costs those that go on from it.
    pub fn repair(&self, depth: Depth, progress: &dyn Progress, limits: Limits<'_>) -> Result<Repair, RepairError> {
        let mut repair = Repair {
            before: self.verify(depth, progress, limits)?,
            ..Repair::default()
        };
        if repair.before.is_sound() {
            repair.after = repair.before.clone();
            return Ok(repair);
        }
        self.pass("repair.found")?;
        repair.n_set_aside = self.set_aside(depth, progress, limits)?;
        self.pass("repair.mended")?;
        for tree in repair.before.trees.clone() {
            let mut reader = self.repository.reader();
            if reader.diff_trees(None, tree).is_err() {
                repair.n_lost_trees += 1;
                continue;
            }
            let target = Target { commit: None, tree };
            if self.update(target, progress, limits.interrupt)?.interrupted {
                return Err(VerifyError::Interrupted.into());
            }
            repair.n_trees += 1;
            self.pass("repair.rebuilt")?;
        }
        // All of it: what was made again is said to be sound.
        let no_deadline = Limits {
            deadline: None,
            ..limits
        };
        repair.after = self.verify(Depth::default(), progress, no_deadline)?;
        Ok(repair)
    }

    /// Sets aside the files of segments that are not what their names say. No more than a service to who looks for the cause:
    /// nothing reads them any more.
    pub(super) fn set_damaged_aside(&self, state: &State, lock: &WriterLock) {
        for (store, file) in state.segments.iter().flat_map(SegmentEntry::files) {
            if check_content(self.sidecar, store, file).is_err()
                && let Err(error) = self.sidecar.set_aside(Some(store), OsStr::new(&file.name), lock)
            {
                tracing::debug!(name = file.name, %error, "not set aside");
            }
        }
    }

    /// Sets aside the manifest that an error is about, which may be the one that the one asked for rests on.
    pub(super) fn set_manifest_aside(&self, error: &ManifestError, lock: &WriterLock) {
        let ManifestError::File(error) = error else { return };
        if let Some(name) = error.path().file_name()
            && let Err(error) = self.sidecar.set_aside(Some(Store::Snapshots), name, lock)
        {
            tracing::debug!(name = %name.display(), %error, "not set aside");
        }
    }

    /// Publishes a state without the batches of commits that are damaged and those that go on from them, and without damaged files
    /// beside the others: they are made again when somebody asks for what they had.
    fn drop_damaged_history(&self, found: &Verification, lock: &WriterLock) -> Result<(), IngestError> {
        // A damaged state is set aside, and names nothing any more.
        let Ok(Some(mut state)) = self.sidecar.state() else {
            return Ok(());
        };
        let is_blamed = |file: &StoredFile| found.is_blamed(Store::History, &file.name);
        let before = state.history.clone();
        let first = before.iter().position(|entry| is_blamed(&entry.records));
        let dropped = state.history.split_off(first.unwrap_or(before.len()));
        for entry in &mut state.history {
            for side in [&mut entry.symbols, &mut entry.messages, &mut entry.lines] {
                side.take_if(|file| is_blamed(file));
            }
        }
        if state.history != before {
            publish_state(self.sidecar, lock, &mut state)?;
            retire_history(self.sidecar, &dropped);
        }
        Ok(())
    }

    /// Publishes a state without the damaged vectors of profiles beside the program's own: they are made again when somebody asks.
    fn drop_damaged_vectors(&self, found: &Verification, lock: &WriterLock) -> Result<(), IngestError> {
        let Ok(Some(mut state)) = self.sidecar.state() else {
            return Ok(());
        };
        let own = self.profile();
        let before = state.clone();
        for entry in &mut state.segments {
            let is_sound = |file: &StoredFile| !found.is_blamed(Store::Dense, &file.name);
            entry
                .vectors
                .retain(|vectors| vectors.profile == own || is_sound(&vectors.file));
        }
        if state != before {
            publish_state(self.sidecar, lock, &mut state)?;
        }
        Ok(())
    }

    /// Looks again now that nobody else writes: what was damaged may have been made anew meanwhile under the same name.
    fn set_aside(&self, depth: Depth, progress: &dyn Progress, limits: Limits<'_>) -> Result<usize, RepairError> {
        let lock = self.sidecar.lock_unless(self.patience, limits.interrupt)?;
        let no_deadline = Limits {
            deadline: None,
            ..limits
        };
        let found = self.verify(depth, progress, no_deadline)?;
        self.drop_damaged_history(&found, &lock)?;
        self.drop_damaged_vectors(&found, &lock)?;
        let mut n_set_aside = 0;
        for finding in &found.findings {
            let moved = self.sidecar.set_aside(finding.store, OsStr::new(&finding.name), &lock);
            match moved {
                Ok(()) => n_set_aside += 1,
                // Missing, which is what is wrong with it, or mended by somebody else.
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
            .mend_texts(&lock)
            .map_err(|source| self.mend_error(source))?;
        // Without a tree to make anew nobody else would publish one, and the segments would stay in nobody's use.
        if let (false, Ok(None)) = (found.is_sound(), self.sidecar.state()) {
            self.begin_epoch(&lock, Vec::new())?;
        }
        Ok(n_set_aside)
    }

    /// A fail point.
    fn pass(&self, name: &str) -> Result<(), RepairError> {
        failpoint::hit(name).map_err(|source| self.mend_error(source))
    }

    fn mend_error(&self, source: io::Error) -> RepairError {
        RepairError::Mend {
            path: self.sidecar.root().to_owned(),
            source,
        }
    }
}
