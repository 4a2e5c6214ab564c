//! Vector arithmetic on rows of signed bytes.
//!
//! Each function has one portable implementation, which is compiled a second time with AVX2 on x86-64. Both versions
//! apply the same operations to each component in the same order, and sums over components use eight fixed lanes. So
//! results are bit-identical on every machine. (Rust never fuses a multiplication and an addition automatically.)

/// Adds `weight · row` to `sum` for each `(token, weight)` in `terms`, in order.
///
/// `rows` is `[n_tokens, dim]` signed bytes and `sum` has `dim` components. Panics if a token is outside `rows`.
pub(super) fn add_rows(rows: &[u8], terms: &[(u32, f32)], sum: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: this processor has AVX2.
        return unsafe { add_rows_avx2(rows, terms, sum) };
    }
    add_rows_body(rows, terms, sum);
}

/// Returns the dot product of a row and a vector of the same length.
pub(super) fn dot(row: &[u8], vector: &[f32]) -> f32 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: this processor has AVX2.
        return unsafe { dot_avx2(row, vector) };
    }
    dot_body(row, vector)
}

/// Returns, for each row, the dot product with `one` and the dot product with itself.
pub(super) fn dots_and_squares(rows: &[u8], one: &[u8]) -> Vec<(i32, i32)> {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: this processor has AVX2.
        return unsafe { dots_and_squares_avx2(rows, one) };
    }
    dots_and_squares_body(rows, one)
}

/// Scales `vector` to unit length and returns its previous length. Does not change the zero vector.
pub(super) fn normalise(vector: &mut [f32]) -> f32 {
    let norm = norm(vector);
    if norm > 0.0 {
        for x in vector {
            *x /= norm;
        }
    }
    norm
}

/// Returns the length of a vector.
pub(super) fn norm(vector: &[f32]) -> f32 {
    let mut lanes = [0.0; LANES];
    for part in vector.chunks(LANES) {
        for (lane, x) in lanes.iter_mut().zip(part) {
            *lane += x * x;
        }
    }
    lanes.iter().sum::<f32>().sqrt()
}

const LANES: usize = 8;

/// Number of components whose sums stay in registers while rows are added.
const BLOCK: usize = 64;

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn add_rows_avx2(rows: &[u8], terms: &[(u32, f32)], sum: &mut [f32]) {
    add_rows_body(rows, terms, sum);
}

#[inline(always)]
fn add_rows_body(rows: &[u8], terms: &[(u32, f32)], sum: &mut [f32]) {
    let dim = sum.len();
    let mut first = 0;
    let mut blocks = sum.chunks_exact_mut(BLOCK);
    for block in &mut blocks {
        let mut partial = [0.0; BLOCK];
        partial.copy_from_slice(block);
        for &(token, weight) in terms {
            let part = &rows[token as usize * dim + first..][..BLOCK];
            for (x, &byte) in partial.iter_mut().zip(part) {
                *x += weight * f32::from(byte as i8);
            }
        }
        block.copy_from_slice(&partial);
        first += BLOCK;
    }
    let rest = blocks.into_remainder();
    for &(token, weight) in terms {
        let part = &rows[token as usize * dim + first..][..rest.len()];
        for (x, &byte) in rest.iter_mut().zip(part) {
            *x += weight * f32::from(byte as i8);
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn dot_avx2(row: &[u8], vector: &[f32]) -> f32 {
    dot_body(row, vector)
}

#[inline(always)]
fn dot_body(row: &[u8], vector: &[f32]) -> f32 {
    let mut lanes = [0.0; LANES];
    for (bytes, xs) in row.chunks(LANES).zip(vector.chunks(LANES)) {
        for ((lane, &byte), x) in lanes.iter_mut().zip(bytes).zip(xs) {
            *lane += f32::from(byte as i8) * x;
        }
    }
    lanes.iter().sum()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn dots_and_squares_avx2(rows: &[u8], one: &[u8]) -> Vec<(i32, i32)> {
    dots_and_squares_body(rows, one)
}

#[inline(always)]
fn dots_and_squares_body(rows: &[u8], one: &[u8]) -> Vec<(i32, i32)> {
    let product = |a: u8, b: u8| i32::from(a as i8) * i32::from(b as i8);
    rows.chunks_exact(one.len().max(1))
        .map(|row| {
            let dot = row.iter().zip(one).map(|(&a, &b)| product(a, b)).sum();
            (dot, row.iter().map(|&a| product(a, a)).sum())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(crate::support::properties(256))]

        #[test]
        fn the_processor_does_not_change_a_bit(
            dim in 1usize..150,
            bytes in prop::collection::vec(any::<u8>(), 150 * 4),
            terms in prop::collection::vec((0u32..4, -3.0f32..3.0), 0..20),
        ) {
            let rows = &bytes[..4 * dim];
            let (mut fast, mut plain) = (vec![0.0; dim], vec![0.0; dim]);
            add_rows(rows, &terms, &mut fast);
            add_rows_body(rows, &terms, &mut plain);
            prop_assert_eq!(bits(&fast), bits(&plain));
            prop_assert_eq!(dot(&rows[..dim], &plain).to_bits(), dot_body(&rows[..dim], &plain).to_bits());
            prop_assert_eq!(dots_and_squares(rows, &rows[..dim]), dots_and_squares_body(rows, &rows[..dim]));
        }
    }

    fn bits(vector: &[f32]) -> Vec<u32> {
        vector.iter().map(|x| x.to_bits()).collect()
    }

    #[test]
    fn rows_add_up() {
        let rows = [1u8, 2, 255, 254, 10, 20];
        let mut sum = [0.5, 0.0];
        add_rows(&rows, &[(0, 2.0), (1, 1.0)], &mut sum);
        assert_eq!(sum, [0.5 + 2.0 - 1.0, 4.0 - 2.0]);
        assert_eq!(dots_and_squares(&rows, &[1, 1]), [(3, 5), (-3, 5), (30, 500)]);
    }

    #[test]
    fn the_zero_vector_stays() {
        let mut zero = [0.0; 3];
        assert_eq!(normalise(&mut zero), 0.0);
        assert_eq!(zero, [0.0; 3]);
    }
}
