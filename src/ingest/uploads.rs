//! Vectors that are put to where clones share them as they are made, by several clones at once: each claims what it makes, so that no
//! two make the same, and takes what the others have made.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::index::Row;
use crate::index::shared::{Claim, Claimable, SharedError, SharedVectors};
use crate::model::{ChunkKey, chain};

/// A call that makes vectors may wait for its turn, and for the answer.
const TURNS: u32 = 2;
/// For what is done before and after that.
const MARGIN: Duration = Duration::from_secs(30);

/// The way there during one run. If it fails the run goes on without it: what was made is put at the end, by [`super::Sharing`].
pub(super) struct Uploads<'a> {
    shared: &'a dyn SharedVectors,
    max_rows: usize,
    lease: Duration,
    n_put: AtomicUsize,
    is_over: AtomicBool,
    /// What others have put was taken since, and what is left could not be.
    is_again: AtomicBool,
    /// Documents that others were making.
    deferred: Mutex<Vec<u32>>,
}

/// Vectors that are being made here; given back when it is dropped.
pub(super) struct Held<'a> {
    shared: &'a dyn SharedVectors,
    claim: Claim,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.shared.release(&self.claim);
    }
}

impl<'a> Uploads<'a> {
    /// For vectors of `dim` components, made by calls that take no longer than `timeout`.
    pub(super) fn new(shared: &'a dyn SharedVectors, dim: usize, timeout: Duration) -> Self {
        Self {
            shared,
            max_rows: shared.batching(dim).max_rows,
            lease: timeout * TURNS + MARGIN,
            n_put: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
            is_again: AtomicBool::new(false),
            deferred: Mutex::default(),
        }
    }

    /// Vectors that were put.
    pub(super) fn n_put(&self) -> usize {
        self.n_put.load(Ordering::Relaxed)
    }

    /// Claims documents: which of them are to be made here. All, if that cannot be told.
    pub(super) fn claim(&self, keyed: &[(u32, ChunkKey)], interrupt: &AtomicBool) -> Option<(Vec<bool>, Held<'a>)> {
        if self.is_over.load(Ordering::Relaxed) {
            return None;
        }
        let keys: Vec<ChunkKey> = keyed.iter().map(|(_, key)| *key).collect();
        let claimable = if self.is_again.load(Ordering::Relaxed) {
            Claimable::All
        } else {
            Claimable::Missing
        };
        match self.shared.claim(&keys, claimable, self.lease, interrupt) {
            Ok(claim) => {
                let others = keyed.iter().zip(&claim.ours).filter(|(_, is_ours)| !**is_ours);
                let mut deferred = self.deferred.lock().unwrap_or_else(PoisonError::into_inner);
                deferred.extend(others.map(|((doc, _), _)| *doc));
                let held = Held {
                    shared: self.shared,
                    claim,
                };
                Some((held.claim.ours.clone(), held))
            }
            Err(error) => {
                self.give_up(&error);
                None
            }
        }
    }

    /// Puts vectors.
    pub(super) fn put(&self, rows: &[(ChunkKey, Row)], interrupt: &AtomicBool) {
        for part in rows.chunks(self.max_rows) {
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            match self.shared.put(part, interrupt) {
                Ok(_) => _ = self.n_put.fetch_add(part.len(), Ordering::Relaxed),
                Err(error) => self.give_up(&error),
            }
        }
    }

    /// Documents that others had made or were making since this was last asked. From now on what is there counts no more: who asks takes
    /// it, as far as it can be used.
    pub(super) fn take_deferred(&self) -> Vec<u32> {
        self.is_again.store(true, Ordering::Relaxed);
        std::mem::take(&mut self.deferred.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Those of some documents that others are making now.
    pub(super) fn claimed(&self, keyed: &[(u32, ChunkKey)], interrupt: &AtomicBool) -> Vec<u32> {
        if self.is_over.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let keys: Vec<ChunkKey> = keyed.iter().map(|(_, key)| *key).collect();
        match self.shared.claimed(&keys, interrupt) {
            Ok(claimed) => {
                let others = keyed.iter().zip(claimed).filter(|(_, is_claimed)| *is_claimed);
                others.map(|((doc, _), _)| *doc).collect()
            }
            Err(error) => {
                self.give_up(&error);
                Vec::new()
            }
        }
    }

    fn give_up(&self, error: &SharedError) {
        if !self.is_over.swap(true, Ordering::Relaxed) && !matches!(error, SharedError::Interrupted) {
            tracing::warn!("vectors are not shared as they are made: {}", chain(error));
        }
    }
}
