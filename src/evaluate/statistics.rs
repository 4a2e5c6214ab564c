//! Computes confidence intervals of means.

/// A mean with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Lower bound: 2.5 % of the resampled means are below it.
    pub low: f64,
    /// Upper bound: 2.5 % of the resampled means are above it.
    pub high: f64,
}

const N_RESAMPLES: usize = 2000;

/// Returns the mean over groups of each group's mean, with a bootstrap interval that resamples values within groups.
///
/// Groups are repositories and values are queries. Empty groups are ignored. The result is deterministic because the
/// resampling has a fixed seed.
///
/// Source: Efron, Tibshirani, "An Introduction to the Bootstrap", 1993, percentile intervals (§13).
pub fn bootstrap_mean(groups: &[Vec<f64>]) -> Interval {
    let groups: Vec<&Vec<f64>> = groups.iter().filter(|group| !group.is_empty()).collect();
    if groups.is_empty() {
        return Interval::default();
    }
    let mean = |values: &mut dyn Iterator<Item = f64>, n: usize| values.sum::<f64>() / n as f64;
    let over_groups = |group_mean: &mut dyn FnMut(&[f64]) -> f64| {
        groups.iter().map(|group| group_mean(group)).sum::<f64>() / groups.len() as f64
    };
    let mut random = SplitMix(1);
    let mut means: Vec<f64> = (0..N_RESAMPLES)
        .map(|_| {
            over_groups(&mut |group| {
                mean(
                    &mut (0..group.len()).map(|_| group[random.below(group.len())]),
                    group.len(),
                )
            })
        })
        .collect();
    means.sort_unstable_by(f64::total_cmp);
    Interval {
        mean: over_groups(&mut |group| mean(&mut group.iter().copied(), group.len())),
        low: means[N_RESAMPLES / 40],
        high: means[N_RESAMPLES - 1 - N_RESAMPLES / 40],
    }
}

/// Returns the mean of the differences `b − a`, with its interval. Values are paired by position.
pub fn paired_difference(a: &[Vec<f64>], b: &[Vec<f64>]) -> Interval {
    let differences: Vec<Vec<f64>> = a
        .iter()
        .zip(b)
        .map(|(a, b)| a.iter().zip(b).map(|(a, b)| b - a).collect())
        .collect();
    bootstrap_mean(&differences)
}

/// The SplitMix64 random number generator. Source: Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators", 2014.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_contains_the_mean_and_narrows_with_more_values() {
        let values = |n: usize| vec![(0..n).map(|i| (i % 2) as f64).collect::<Vec<_>>()];
        let few = bootstrap_mean(&values(10));
        let many = bootstrap_mean(&values(1000));
        assert!((few.mean - 0.5).abs() < 1e-9 && few.low < 0.5 && few.high > 0.5);
        assert!(many.high - many.low < few.high - few.low);
        assert_eq!(bootstrap_mean(&[]), Interval::default());
    }

    #[test]
    fn groups_have_equal_weight_and_differences_are_paired() {
        let a = vec![vec![0.0; 100], vec![1.0]];
        assert!((bootstrap_mean(&a).mean - 0.5).abs() < 1e-9);
        let b = vec![vec![0.25; 100], vec![1.25]];
        let difference = paired_difference(&a, &b);
        assert!((difference.mean - 0.25).abs() < 1e-9 && (difference.high - difference.low).abs() < 1e-9);
    }
}
