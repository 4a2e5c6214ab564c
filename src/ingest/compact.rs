//! Keeps the number of segments small. Every update adds a segment, so small adjacent segments are merged from time to
//! time.
//!
//! Merged segments cover the same numbers (see `merge_segments`), so manifests stay valid and the epoch does not
//! change. The new files are written before the state that lists them, so after a crash in between the old state is
//! still valid.
//!
//! Policy: a run at the end of a stretch of small segments is merged if it has at least [`MIN_RUN`] segments and its
//! first is no larger than the others together. So the first segment of a run at least doubles with each merge: a
//! document is rewritten O(log n) times, and sizes fall geometrically from front to back, so there are O(log n)
//! segments.

use std::ops::Range;
use std::time::Duration;

use crate::index::{MergeError, Segment, Segments, merge_segments};
use crate::sidecar::{FileError, SegmentEntry, Sidecar, State, WriterLock};

use super::added::{CarryError, carry_added};
use super::publish::{pass, publish_state, store_segment};
use super::sweep::{Grace, retire, sweep};

/// The minimum number of segments worth merging.
const MIN_RUN: usize = 8;
/// Limit on the total file size of a merged run, about 64 MB of text. Bounds the work of one update.
pub(super) const MAX_MERGED_BYTES: u64 = 24 << 20;
/// Unused files remain for one hour, or until their total exceeds the size of the files in use. Small sidecars may keep
/// more.
pub(super) const GRACE: Grace = Grace {
    period: Duration::from_secs(3600),
    min_bytes: 16 << 20,
};

/// An error from merging segments. The previous segments are unchanged.
#[derive(Debug, thiserror::Error)]
pub(super) enum CompactError {
    #[error(transparent)]
    Merge(#[from] MergeError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Carry(#[from] CarryError),
}

/// Merges one run of segments, if there is one to merge, and removes files that have been unused for long.
///
/// `segments` must be those of `state`, the published state. Returns the number of merged segments. Failures are only
/// logged, because they affect only speed and disk usage.
pub(super) fn tidy(
    sidecar: &Sidecar,
    lock: &WriterLock,
    state: &mut State,
    segments: &Segments,
    profile: &str,
) -> usize {
    let n_merged = compact(sidecar, lock, state, segments, profile).unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot merge segments");
        0
    });
    match sweep(sidecar, state, GRACE, lock) {
        Ok(n_removed) => tracing::debug!(n_merged, n_removed, "tidied"),
        Err(error) => tracing::warn!(%error, "cannot remove old files"),
    }
    n_merged
}

fn compact(
    sidecar: &Sidecar,
    lock: &WriterLock,
    state: &mut State,
    segments: &Segments,
    profile: &str,
) -> Result<usize, CompactError> {
    let sizes: Vec<u64> = state.segments.iter().map(SegmentEntry::n_bytes).collect();
    let Some(run) = next_run(&sizes) else {
        return Ok(0);
    };
    let mut merged = store_merged(sidecar, segments, run.clone(), profile)?;
    merged
        .vectors
        .extend(carry_added(sidecar, &state.segments[run.clone()], profile, |_| true)?);
    pass("compact.stored", sidecar)?;
    let n_merged = run.len();
    let replaced: Vec<SegmentEntry> = state.segments.splice(run, [merged]).collect();
    publish_state(sidecar, lock, state)?;
    pass("compact.published", sidecar)?;
    retire(sidecar, &replaced);
    pass("compact.retired", sidecar)?;
    Ok(n_merged)
}

/// Writes the files of a merged run. No state lists them yet.
fn store_merged(
    sidecar: &Sidecar,
    segments: &Segments,
    run: Range<usize>,
    profile: &str,
) -> Result<SegmentEntry, CompactError> {
    let run: Vec<&Segment> = segments.iter().skip(run.start).take(run.len()).collect();
    let merged = merge_segments(&run)?;
    pass("compact.merged", sidecar)?;
    Ok(store_segment(sidecar, &merged, profile)?)
}

/// Chooses the run to merge from the sizes of all segments. Large segments divide the list into stretches. The result
/// is the mergeable run at the end of the last stretch that has one.
fn next_run(sizes: &[u64]) -> Option<Range<usize>> {
    let mut end = sizes.len();
    while end > 0 {
        let start = sizes[..end]
            .iter()
            .rposition(|&size| is_large(size))
            .map_or(0, |large| large + 1);
        if let Some(run) = run_at_end(&sizes[start..end]) {
            return Some(start + run..end);
        }
        end = start.saturating_sub(1);
    }
    None
}

/// Returns whether a segment is too large to merge.
fn is_large(size: u64) -> bool {
    size > MAX_MERGED_BYTES / 2
}

/// Returns the start of the longest mergeable run.
fn run_at_end(sizes: &[u64]) -> Option<usize> {
    let mut found = None;
    let mut total = 0;
    for (start, &size) in sizes.iter().enumerate().rev() {
        if total + size > MAX_MERGED_BYTES {
            break;
        }
        if size <= total && sizes.len() - start >= MIN_RUN {
            found = Some(start);
        }
        total += size;
    }
    found
}

#[cfg(test)]
mod tests;
