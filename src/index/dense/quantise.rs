//! Converts vectors to small integers.
//!
//! A unit vector x is stored as integers q and a factor f, so that f · (q · y) estimates x · y for any y. With f = 1 /
//! (q · x), the estimate is unbiased: it is exact in the direction of x, and the remainder of q has no preferred
//! direction (Gao, Long, "RaBitQ", SIGMOD 2024). For the same reason, the step of the integers minimises the angle
//! between q and x instead of the error.

use std::ops::RangeInclusive;

use super::half;

/// The number of bits per component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Quantisation {
    /// Sixteen odd levels from -15 to 15, stored in four bits each.
    ///
    /// The default, because it takes half the space of `Int8` without a measurable loss in ranking. Over 70,000 chunks
    /// of git and rust-analyzer with commit subjects as queries, 0.90 of the true top 10 were in the top 10, and in
    /// each of 800 queries the whole top 10 was in the top 50. NDCG@10 by file over 24 repositories changed by -0.001 ±
    /// 0.001 for 2,734 commit subjects and by -0.004 ± 0.003 for 432 judged queries. A random rotation before
    /// quantisation improved recall by 0.016 but did not improve NDCG.
    #[default]
    Int4,
    /// Levels from -127 to 127. Recall@10 on the same data is 0.99.
    Int8,
}

impl Quantisation {
    /// Returns the number of bits per component, as stored in file headers.
    pub fn bits(self) -> u32 {
        match self {
            Self::Int4 => 4,
            Self::Int8 => 8,
        }
    }

    pub(super) fn from_bits(bits: u32) -> Option<Self> {
        [Self::Int4, Self::Int8]
            .into_iter()
            .find(|quantisation| quantisation.bits() == bits)
    }

    /// Returns the size of one vector's codes in bytes.
    pub fn row_bytes(self, dim: usize) -> usize {
        match self {
            Self::Int4 => dim.div_ceil(2),
            Self::Int8 => dim,
        }
    }

    /// Returns the range of factors that [`encode`] can return for these codes: 1 / (|q| · cos(q, x)) for a unit vector
    /// x.
    ///
    /// Assumes a cosine of 1 for Int8. None of the levels of Int4 is 0, so there the cosine is smallest if x has a
    /// single nonzero component: then q is 15 in that component and 1 in all others.
    pub(super) fn factor_range(self, row: &[u8], dim: usize) -> RangeInclusive<f32> {
        let square = |level: i8| i32::from(level) * i32::from(level);
        let (squares, largest): (i32, f32) = match self {
            Self::Int4 => {
                let low: i32 = row.iter().map(|byte| square(level(byte & 15))).sum();
                let high = &row[..dim - row.len()];
                let high: i32 = high.iter().map(|byte| square(level(byte >> 4))).sum();
                (low + high, ((dim + 224) as f32).sqrt() / 15.0)
            }
            Self::Int8 => (row.iter().map(|&byte| square(byte as i8)).sum(), 1.0),
        };
        let length = (squares as f32).sqrt();
        (1.0 - ROUNDING) / length..=largest * (1.0 + ROUNDING) / length
    }
}

/// Upper bound of the relative error of rounding a factor to a half.
const ROUNDING: f32 = 1.0 / 512.0;

/// Appends the codes of `unit` to `codes`. Returns the factor as a half, which is 0 for the zero vector.
///
/// `unit` must have unit length or be zero. In Int4, byte j contains component j in the low four bits and component j +
/// row_bytes in the high four bits, each as (level + 15) / 2. Int8 uses two's complement.
pub(super) fn encode(quantisation: Quantisation, unit: &[f32], codes: &mut Vec<u8>) -> u16 {
    let largest = unit.iter().fold(0f32, |largest, x| largest.max(x.abs()));
    let step = match quantisation {
        _ if largest == 0.0 => 0.0,
        Quantisation::Int4 => best_int4_step(unit, largest),
        Quantisation::Int8 => largest / 127.0,
    };
    let inverse = if step > 0.0 { 1.0 / step } else { 0.0 };
    let agreement: f32 = match quantisation {
        Quantisation::Int4 => {
            let low = unit.len().div_ceil(2);
            codes.extend((0..low).map(|j| {
                let high = unit.get(j + low).map_or(0, |&x| nibble(x * inverse));
                nibble(unit[j] * inverse) | high << 4
            }));
            unit.iter().map(|&x| x * f32::from(level(nibble(x * inverse)))).sum()
        }
        Quantisation::Int8 => {
            codes.extend(unit.iter().map(|&x| byte(x * inverse) as u8));
            // Use the length of q instead of q · x. They differ by less than the precision of a half. This way, a row
            // that is read and quantised again is bit-identical.
            let squares = unit.iter().map(|&x| i32::from(byte(x * inverse)).pow(2));
            (squares.sum::<i32>() as f32).sqrt()
        }
    };
    if agreement > 0.0 {
        half::encode(1.0 / agreement)
    } else {
        0
    }
}

/// Writes the `dim` levels of a row to `levels`.
pub(super) fn decode(quantisation: Quantisation, row: &[u8], levels: &mut [f32]) {
    match quantisation {
        Quantisation::Int4 => {
            let (low, high) = levels.split_at_mut(row.len());
            for (x, &byte) in low.iter_mut().zip(row) {
                *x = f32::from(level(byte & 15));
            }
            for (x, &byte) in high.iter_mut().zip(row) {
                *x = f32::from(level(byte >> 4));
            }
        }
        Quantisation::Int8 => {
            for (x, &byte) in levels.iter_mut().zip(row) {
                *x = f32::from(byte as i8);
            }
        }
    }
}

/// Returns the odd level for a code in 0..=15.
fn level(code: u8) -> i8 {
    2 * code as i8 - 15
}

/// Returns the code of the nearest level. `steps` is the component divided by the step.
#[inline(always)]
fn nibble(steps: f32) -> u8 {
    (steps + 8.0).clamp(0.0, 15.0) as u8
}

#[inline(always)]
fn byte(steps: f32) -> i8 {
    steps.round().clamp(-127.0, 127.0) as i8
}

/// Candidates for the step, as fractions of the step that just covers the largest component. The best candidate is
/// used. With 15 levels, clipping a few large components improves the angle. Four times as many candidates did not
/// improve recall.
const STEP_CHOICES: [f32; 8] = [0.4, 0.48, 0.56, 0.64, 0.72, 0.8, 0.88, 0.96];

/// Returns the step with the smallest angle between `unit` and its levels.
fn best_int4_step(unit: &[f32], largest: f32) -> f32 {
    let mut best = (f32::MIN, largest / 7.5);
    for choice in STEP_CHOICES {
        let step = largest / 7.5 * choice;
        let cosine = cosine_with_levels(unit, 1.0 / step);
        if cosine > best.0 {
            best = (cosine, step);
        }
    }
    best.1
}

/// Returns cos(x, q) times the length of x. Uses eight separate sums, so that the compiler can vectorise the loop and
/// the result is the same on every machine.
fn cosine_with_levels(unit: &[f32], inverse_step: f32) -> f32 {
    let (mut dot, mut square) = ([0f32; 8], [0f32; 8]);
    for part in unit.chunks(8) {
        for ((dot, square), &x) in dot.iter_mut().zip(&mut square).zip(part) {
            let level = f32::from(level(nibble(x * inverse_step)));
            *dot += x * level;
            *square += level * level;
        }
    }
    dot.iter().sum::<f32>() / square.iter().sum::<f32>().sqrt()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(crate::support::properties(256))]

        #[test]
        fn estimates_are_near(
            raw in prop::collection::vec(-1f32..1.0, 33..80),
            other in prop::collection::vec(-1f32..1.0, 80),
        ) {
            let unit = unit(&raw);
            for (quantisation, tolerance) in [(Quantisation::Int4, 0.16), (Quantisation::Int8, 0.012)] {
                let mut codes = Vec::new();
                let factor = half::decode(encode(quantisation, &unit, &mut codes));
                prop_assert_eq!(codes.len(), quantisation.row_bytes(unit.len()));
                let mut levels = vec![0.0; unit.len()];
                decode(quantisation, &codes, &mut levels);
                let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
                prop_assert!((factor * dot(&levels, &unit) - 1.0).abs() < 1e-3);
                let y = self::unit(&other[..unit.len()]);
                prop_assert!((factor * dot(&levels, &y) - dot(&unit, &y)).abs() < tolerance);
            }
        }
    }

    proptest! {
        #![proptest_config(crate::support::properties(256))]

        #[test]
        fn eight_bits_that_are_read_and_written_again_are_the_same(raw in prop::collection::vec(-1f32..1.0, 1..400)) {
            let mut codes = Vec::new();
            let factor = encode(Quantisation::Int8, &unit(&raw), &mut codes);
            let mut levels = vec![0.0; raw.len()];
            decode(Quantisation::Int8, &codes, &mut levels);
            // Vector stores normalise vectors again, with their own arithmetic.
            let again = unit(&unit(&levels));
            let mut codes_again = Vec::new();
            prop_assert_eq!(encode(Quantisation::Int8, &again, &mut codes_again), factor);
            prop_assert_eq!(codes_again, codes);
        }
    }

    proptest! {
        #![proptest_config(crate::support::properties(256))]

        #[test]
        fn factors_are_in_the_range_of_their_codes(
            mut raw in prop::collection::vec(-1f32..1.0, 1..600),
            power in 0i32..9,
            spikes in 0usize..3,
        ) {
            // Generates vectors from those with similar components to those with a few large ones.
            raw.iter_mut().for_each(|x| *x = x.powi(2 * power + 1));
            let n = raw.len();
            (0..spikes).for_each(|at| raw[at * 7 % n] += 30.0);
            for quantisation in [Quantisation::Int4, Quantisation::Int8] {
                let mut codes = Vec::new();
                let factor = half::decode(encode(quantisation, &unit(&raw), &mut codes));
                let range = quantisation.factor_range(&codes, n);
                prop_assert!(factor == 0.0 || range.contains(&factor), "{factor} {range:?}");
                prop_assert!(!range.contains(&(2.0 * factor)) || (quantisation, n > 450) == (Quantisation::Int4, true));
                prop_assert!(!range.contains(&(factor / 2.0)) || (quantisation, n > 450) == (Quantisation::Int4, true));
            }
        }
    }

    #[test]
    fn the_factor_of_a_single_component_is_in_range() {
        for (quantisation, dim) in [
            (Quantisation::Int4, 1),
            (Quantisation::Int4, 257),
            (Quantisation::Int8, 1 << 14),
        ] {
            let mut unit = vec![0.0; dim];
            unit[dim / 2] = 1.0;
            let mut codes = Vec::new();
            let factor = half::decode(encode(quantisation, &unit, &mut codes));
            assert!(
                quantisation.factor_range(&codes, dim).contains(&factor),
                "{quantisation:?} {dim}"
            );
        }
    }

    fn unit(raw: &[f32]) -> Vec<f32> {
        let norm = raw.iter().map(|x| x * x).sum::<f32>().sqrt();
        raw.iter().map(|x| x / norm).collect()
    }

    #[test]
    fn the_zero_vector_has_factor_zero() {
        for quantisation in [Quantisation::Int4, Quantisation::Int8] {
            let mut codes = Vec::new();
            assert_eq!(encode(quantisation, &[0.0; 5], &mut codes), 0);
            assert_eq!(codes.len(), quantisation.row_bytes(5));
        }
    }

    #[test]
    fn the_searched_step_is_at_least_as_good_as_the_plain_one() {
        let mut raw = vec![0.05f32; 64];
        raw[3] = 0.9;
        let unit = unit(&raw);
        let largest = unit[3];
        let searched = cosine_with_levels(&unit, 1.0 / best_int4_step(&unit, largest));
        assert!(searched >= cosine_with_levels(&unit, 7.5 / largest));
    }
}
