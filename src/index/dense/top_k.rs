//! Selects the highest of many scores.

use std::cmp::Ordering;

/// Collects the `k` best `(document, score)` pairs. Pairs must be offered by ascending document number; equal scores
/// are ordered by document number.
#[derive(Debug)]
pub(in crate::index) struct TopK {
    k: usize,
    kept: Vec<(u32, f32)>,
    /// Pairs with this score or a lower one can no longer be among the best.
    floor: f32,
}

impl TopK {
    pub(in crate::index) fn new(k: usize) -> Self {
        let floor = if k == 0 { f32::INFINITY } else { f32::NEG_INFINITY };
        Self {
            k,
            kept: Vec::new(),
            floor,
        }
    }

    /// Offers the next pair. The score must be finite.
    #[inline(always)]
    pub(in crate::index) fn offer(&mut self, doc: u32, score: f32) {
        if score > self.floor {
            self.keep(doc, score);
        }
    }

    /// Returns the best pairs, best first.
    pub(in crate::index) fn finish(self) -> Vec<(u32, f32)> {
        best(self.kept, self.k)
    }

    /// Collects up to 2 `k` pairs, then removes the worse half. This is cheaper than a heap if `k` is small compared
    /// with the number of documents, and never more expensive than sorting all pairs.
    fn keep(&mut self, doc: u32, score: f32) {
        self.kept.push((doc, score));
        if self.kept.len() >= self.k.saturating_mul(2).max(64) {
            self.kept.select_nth_unstable_by(self.k - 1, best_first);
            self.kept.truncate(self.k);
            self.floor = self.kept[self.k - 1].1;
        }
    }
}

/// Returns the `k` best pairs of `all`, best first. Equal scores are ordered by document number.
pub(in crate::index) fn best(mut all: Vec<(u32, f32)>, k: usize) -> Vec<(u32, f32)> {
    if k < all.len() {
        all.select_nth_unstable_by(k, best_first);
        all.truncate(k);
    }
    all.sort_unstable_by(best_first);
    all
}

fn best_first(a: &(u32, f32), b: &(u32, f32)) -> Ordering {
    b.1.total_cmp(&a.1).then(a.0.cmp(&b.0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(crate::support::properties(256))]

        #[test]
        fn top_k_matches_sorting(scores in prop::collection::vec(-5i8..5, 0..600), k in 0usize..300) {
            let all: Vec<(u32, f32)> = (0..).zip(scores.iter().map(|&score| f32::from(score))).collect();
            let mut top = TopK::new(k);
            all.iter().for_each(|&(doc, score)| top.offer(doc, score));
            let mut sorted = all;
            sorted.sort_by(best_first);
            sorted.truncate(k);
            prop_assert_eq!(top.finish(), sorted);
        }
    }

    #[test]
    fn k_may_exceed_the_number_of_scores() {
        let mut top = TopK::new(usize::MAX);
        (0..200).for_each(|doc| top.offer(doc, 1.0));
        assert_eq!(top.finish().len(), 200);
    }
}
