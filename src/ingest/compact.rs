//! Keeps segments few: every update adds one, so neighbouring small ones are merged now and then.
//!
//! Merged segments cover the same numbers (see `merge_segments`), so manifests stay valid and the epoch does not change. The
//! new files are written first, then the state that names them: killed between the two, the old state stands.
//!
//! Policy: a run at the end of a stretch of small segments is merged when it has at least [`MIN_RUN`] of them and its first is
//! no larger than the others together. What is rewritten as the first of a run thus at least doubles: a document is
//! rewritten O(log n) times, and sizes fall geometrically from front to back, so that there are O(log n) segments.

use std::ops::Range;
use std::time::Duration;

use crate::index::{MergeError, Segment, Segments, merge_segments};
use crate::sidecar::{SegmentEntry, Sidecar, State, WriterLock};

use super::added::{CarryError, carry_added};
use super::publish::{PublishError, pass, publish_state, store_segment};
use super::sweep::{Grace, retire, sweep};

/// Fewer segments than this are not worth rewriting.
const MIN_RUN: usize = 8;
/// No run with more bytes in its files is merged, which bounds the work of one update. About 64 MB of text.
pub(super) const MAX_MERGED_BYTES: u64 = 24 << 20;
/// An hour, but not more than what is in use; a small sidecar may keep more.
pub(super) const GRACE: Grace = Grace {
    period: Duration::from_secs(3600),
    min_bytes: 16 << 20,
};

/// Why segments were not compacted; what was there before still is.
#[derive(Debug, thiserror::Error)]
pub(super) enum CompactError {
    #[error(transparent)]
    Merge(#[from] MergeError),
    #[error(transparent)]
    Publish(#[from] PublishError),
    #[error(transparent)]
    Carry(#[from] CarryError),
}

/// Merges one run of segments if there is one to merge, and clears away files that have been out of use for long.
///
/// `segments` are those of `state`, which is the published one. Returns how many segments became one. A failure is logged only:
/// nothing but speed and space depends on success.
pub(super) fn tidy(
    sidecar: &Sidecar,
    lock: &WriterLock,
    state: &mut State,
    segments: &Segments,
    profile: &str,
) -> usize {
    let n_merged = compact(sidecar, lock, state, segments, profile).unwrap_or_else(|error| {
        tracing::warn!(%error, "segments were not merged");
        0
    });
    match sweep(sidecar, state, GRACE, lock) {
        Ok(n_removed) => tracing::debug!(n_merged, n_removed, "tidied"),
        Err(error) => tracing::warn!(%error, "old files were not removed"),
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

/// Writes the files of a merged run; no state names them yet.
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

/// The run to merge, by the sizes of all segments: at the end of the last stretch without large ones that has one.
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

/// Whether a segment stays as it is.
fn is_large(size: u64) -> bool {
    size > MAX_MERGED_BYTES / 2
}

/// Where the longest run begins that may be merged.
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
