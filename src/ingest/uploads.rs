//! Uploads vectors to the shared store while they are computed. A clone claims the documents that it embeds, so that no
//! two clones embed the same document, and fetches the vectors of the other clones.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::index::Row;
use crate::index::shared::{Claim, Claimable, SharedError, SharedVectors};
use crate::model::{ChunkKey, chain};

/// Number of request durations that a batch may take: one to wait for its permit, one for the response.
const TURNS: u32 = 2;
/// Additional time for the work before and after a request.
const MARGIN: Duration = Duration::from_secs(30);

/// The uploads of one run. After a failure, the run continues without uploads, and [`super::Sharing`] uploads the
/// vectors at the end.
pub(super) struct Uploads<'a> {
    shared: &'a dyn SharedVectors,
    max_rows: usize,
    lease: Duration,
    n_put: AtomicUsize,
    is_over: AtomicBool,
    /// True after vectors of other clones were fetched. Vectors that are still missing then could not be used.
    is_again: AtomicBool,
    /// Documents left to other clones, which were embedding them.
    deferred: Mutex<Vec<u32>>,
}

/// A claim on documents that this clone is embedding, released when dropped.
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
    /// Prepares uploads of vectors of `dim` components. Requests to the embedder take at most `timeout`.
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

    /// Number of vectors uploaded.
    pub(super) fn n_put(&self) -> usize {
        self.n_put.load(Ordering::Relaxed)
    }

    /// Claims documents. Returns a flag for each document that is true if this clone should embed it. `None` means that
    /// claiming failed and this clone should embed all.
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
                let mut deferred = self.deferred.lock();
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

    /// Uploads vectors.
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

    /// Returns and clears the documents that were left to other clones. Later claims ignore vectors already in the
    /// store, because the caller has fetched all usable ones.
    pub(super) fn take_deferred(&self) -> Vec<u32> {
        self.is_again.store(true, Ordering::Relaxed);
        std::mem::take(&mut self.deferred.lock())
    }

    /// Returns the documents that other clones are embedding now.
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
            tracing::warn!("cannot share vectors while embedding: {}", chain(error));
        }
    }
}
