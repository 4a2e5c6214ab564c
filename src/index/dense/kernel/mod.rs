//! Integer dot products of code rows. The sums are the same on every processor.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod portable;

/// Selects the rows that a kernel processes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pick<'a> {
    /// A range of `len` rows that starts at `first`.
    Run { first: usize, len: usize },
    /// A list of row numbers.
    List(&'a [u32]),
}

impl Pick<'_> {
    pub(super) fn len(self) -> usize {
        match self {
            Self::Run { len, .. } => len,
            Self::List(rows) => rows.len(),
        }
    }

    /// Returns the `i`th selected row.
    #[inline(always)]
    pub(super) fn row(self, i: usize) -> usize {
        match self {
            Self::Run { first, .. } => first + i,
            Self::List(rows) => rows[i] as usize,
        }
    }
}

/// Computes Σ code · `query` for each selected int4 row. Codes are in 0..=15. `query` contains signed bytes in
/// -127..=127 in the order of the codes: first those for the low halves of a row's bytes, then those for the high
/// halves. Panics if a row is outside `codes`.
pub(super) fn int4(codes: &[u8], query: &[u8], rows: Pick<'_>, sums: &mut [i32]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: this processor has AVX2.
        return unsafe { avx2::int4(codes, query, rows, sums) };
    }
    portable::int4(codes, query, rows, sums);
}

/// Computes Σ code · `query` for each selected int8 row. The components of `query` must be so small that no sum
/// overflows i32. Panics if a row is outside `codes`.
pub(super) fn int8(codes: &[u8], query: &[i16], rows: Pick<'_>, sums: &mut [i32]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: this processor has AVX2.
        return unsafe { avx2::int8(codes, query, rows, sums) };
    }
    portable::int8(codes, query, rows, sums);
}

/// Computes Σ level · level for two int4 rows of equal length.
pub(super) fn int4_pair(a: &[u8], b: &[u8]) -> i32 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: this processor has AVX2.
        return unsafe { avx2::int4_pair(a, b) };
    }
    portable::int4_pair(a, b)
}

/// Computes Σ level · level for two int8 rows of equal length.
pub(super) fn int8_pair(a: &[u8], b: &[u8]) -> i32 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: this processor has AVX2.
        return unsafe { avx2::int8_pair(a, b) };
    }
    portable::int8_pair(a, b)
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(crate::support::properties(256))]

        #[test]
        fn the_processor_does_not_change_a_sum(
            row_bytes in 1usize..300,
            codes in prop::collection::vec(any::<u8>(), 9 * 300),
            query in prop::collection::vec(any::<u8>().prop_filter("not -128", |&y| y != 0x80), 600),
            wide in prop::collection::vec(-32767i16..=32767, 300),
            list in prop::collection::vec(0u32..9, 0..20),
        ) {
            prop_assume!(is_x86_feature_detected!("avx2"));
            let codes = &codes[..9 * row_bytes];
            for rows in [Pick::Run { first: 1, len: 8 }, Pick::List(&list)] {
                let (mut fast, mut plain) = (vec![0; rows.len()], vec![0; rows.len()]);
                int4(codes, &query[..2 * row_bytes], rows, &mut fast);
                portable::int4(codes, &query[..2 * row_bytes], rows, &mut plain);
                prop_assert_eq!(&fast, &plain);
                int8(codes, &wide[..row_bytes], rows, &mut fast);
                portable::int8(codes, &wide[..row_bytes], rows, &mut plain);
                prop_assert_eq!(&fast, &plain);
            }
            let (a, b) = (&codes[..row_bytes], &codes[8 * row_bytes..]);
            prop_assert_eq!(int4_pair(a, b), portable::int4_pair(a, b));
            prop_assert_eq!(int8_pair(a, b), portable::int8_pair(a, b));
        }
    }

    #[test]
    fn extreme_codes_do_not_overflow() {
        for row_bytes in [128, 1000, 8192] {
            let rows = Pick::Run { first: 0, len: 1 };
            let mut sums = [0];
            int4(&vec![0xff; row_bytes], &vec![0x81; 2 * row_bytes], rows, &mut sums);
            assert_eq!(sums[0], -15 * 127 * 2 * row_bytes as i32);
            int8(&vec![0x80; row_bytes], &vec![2047; row_bytes], rows, &mut sums);
            assert_eq!(sums[0], -128 * 2047 * row_bytes as i32);
            assert_eq!(
                int8_pair(&vec![0x80; row_bytes], &vec![0x80; row_bytes]),
                16384 * row_bytes as i32
            );
            assert_eq!(
                int4_pair(&vec![0; row_bytes], &vec![0xff; row_bytes]),
                -225 * 2 * row_bytes as i32
            );
        }
    }
}
