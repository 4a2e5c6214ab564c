//! Merges small batches, so that the number of batches is limited.

use crate::sidecar::FileError;

use super::batch::Batch;
use super::symbol_batch::{SymbolBatch, TracedPaths, symbol_batch_bytes};
use super::writer::BatchWriter;

/// Number of consecutive batches in a size class that triggers a merge.
const RUN: usize = 8;
/// Maximum number of commits in a merged batch.
const MAX_COMMITS: u32 = 1 << 15;

/// Returns how many batches at the end of the list should be merged into one. `sizes` contains the number of commits of
/// each batch. Returns `None` if no batches should be merged.
///
/// The sizes of adjacent classes differ by a factor of eight. So each record is rewritten O(log n) times, and there are
/// O(log n) small batches.
pub fn mergeable(sizes: &[u32]) -> Option<usize> {
    let class = |size: u32| size.max(1).ilog2() / 3;
    let last = class(*sizes.last()?);
    let run = sizes.iter().rev().take_while(|size| class(**size) <= last).count();
    let n_commits = |n: usize| sizes.iter().rev().take(n).map(|size| u64::from(*size)).sum::<u64>();
    let fits = (RUN..=run).rev().find(|n| n_commits(*n) <= u64::from(MAX_COMMITS))?;
    Some(fits)
}

/// Merges `batches`, which must have consecutive commit numbers. Returns the content of the merged batch file.
pub fn merged(batches: &[&Batch]) -> Result<Vec<u8>, FileError> {
    let mut writer = BatchWriter::new(batches.first().map_or(0, |first| first.base()));
    for batch in batches {
        for (data, parents) in batch.commits()? {
            writer.add(data, &parents);
        }
    }
    Ok(writer.finish())
}

/// Merges the symbol records of batches that were merged to `whole`. The result contains the newest commits up to the
/// first gap. Returns `None` if it would contain no commits.
pub fn merged_symbols(parts: &[(&Batch, Option<&SymbolBatch>)], whole: &Batch) -> Result<Option<Vec<u8>>, FileError> {
    let Some(recipe) = parts.last().and_then(|(_, symbols)| Some(symbols.as_ref()?.recipe())) else {
        return Ok(None);
    };
    let mut first = whole.n_commits();
    let mut newest = Vec::new();
    for (batch, symbols) in parts.iter().rev() {
        let Some(symbols) = symbols.filter(|symbols| symbols.recipe() == recipe && symbols.belongs_to(batch)) else {
            break;
        };
        let offset = batch.base() - whole.base();
        first = offset + symbols.first();
        newest.push((*batch, symbols, offset));
        if symbols.first() > 0 {
            break;
        }
    }
    let mut paths = TracedPaths::new();
    for (batch, symbols, offset) in newest.into_iter().rev() {
        for (number, mut changes) in symbols.all(batch)? {
            let number = batch.path(number).and_then(|path| whole.path_number(path));
            changes.iter_mut().for_each(|change| change.local += offset);
            if let Some(number) = number {
                paths.entry(number).or_default().extend(changes);
            }
        }
    }
    Ok(Some(symbol_batch_bytes(whole, first, recipe, &paths)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_small_neighbouring_batches_are_merged() {
        assert_eq!(mergeable(&[]), None);
        assert_eq!(mergeable(&[1; 7]), None);
        assert_eq!(mergeable(&[1; 8]), Some(8));
        assert_eq!(mergeable(&[30_000, 1, 1, 1, 1, 1, 1, 1, 1]), Some(8));
        assert_eq!(mergeable(&[30_000, 1, 1, 1, 1, 1, 1, 1]), None);
        assert_eq!(mergeable(&[4096; 8]), Some(8));
        assert_eq!(mergeable(&[32_768; 9]), None);
    }

    #[test]
    fn merging_keeps_the_number_of_batches_small() {
        let mut sizes: Vec<u32> = Vec::new();
        let mut n_written = 0u64;
        for _ in 0..5_000 {
            sizes.push(1);
            while let Some(n) = mergeable(&sizes) {
                let merged: u32 = sizes.drain(sizes.len() - n..).sum();
                n_written += u64::from(merged);
                sizes.push(merged);
            }
            assert!(sizes.len() <= 40, "{sizes:?}");
        }
        assert!(n_written <= 5 * 5_000, "{n_written}");
    }
}
