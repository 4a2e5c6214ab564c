//! AVX2 kernels. Each function returns the same result as the function of the same name in `portable`.
//!
//! Scans process four rows at a time, so that one reduction computes four sums.

use std::arch::x86_64::{
    __m256i, _mm_add_epi32, _mm_loadu_si128, _mm_storeu_si128, _mm256_add_epi16, _mm256_add_epi32, _mm256_and_si256,
    _mm256_castsi256_si128, _mm256_cvtepi8_epi16, _mm256_extracti128_si256, _mm256_hadd_epi32, _mm256_loadu_si256,
    _mm256_madd_epi16, _mm256_maddubs_epi16, _mm256_set1_epi8, _mm256_set1_epi16, _mm256_setzero_si256,
    _mm256_slli_epi16, _mm256_srli_epi16, _mm256_sub_epi8,
};

use super::{Pick, portable};

/// Number of bytes in a vector register.
const WIDTH: usize = 32;

/// Number of products of a code and a query component that can be added in pairs without overflowing 16 bits: 8 · 2 ·
/// 15 · 127 < 2^15. One register of codes gives two such pairs.
const PAIRS_BEFORE_WIDENING: usize = 8;

#[target_feature(enable = "avx2")]
pub(super) fn int4(codes: &[u8], query: &[u8], rows: Pick<'_>, sums: &mut [i32]) {
    let row_bytes = query.len() / 2;
    let (low, high) = query.split_at(row_bytes);
    let sums = &mut sums[..rows.len()];
    let (fours, rest) = sums.as_chunks_mut::<4>();
    for (i, four) in fours.iter_mut().enumerate() {
        let at = |j| portable::row(codes, row_bytes, rows.row(4 * i + j));
        store_totals(int4_four([at(0), at(1), at(2), at(3)], low, high), four);
    }
    let done = 4 * fours.len();
    for (i, sum) in rest.iter_mut().enumerate() {
        let row = portable::row(codes, row_bytes, rows.row(done + i));
        *sum = total(int4_four([row; 4], low, high)[0]);
    }
    let tail = row_bytes / WIDTH * WIDTH;
    if tail < row_bytes {
        for (i, sum) in sums.iter_mut().enumerate() {
            let row = portable::row(codes, row_bytes, rows.row(i));
            *sum += portable::int4_row(&row[tail..], &low[tail..], &high[tail..]);
        }
    }
}

#[target_feature(enable = "avx2")]
pub(super) fn int8(codes: &[u8], query: &[i16], rows: Pick<'_>, sums: &mut [i32]) {
    let row_bytes = query.len();
    let sums = &mut sums[..rows.len()];
    let (fours, rest) = sums.as_chunks_mut::<4>();
    for (i, four) in fours.iter_mut().enumerate() {
        let at = |j| portable::row(codes, row_bytes, rows.row(4 * i + j));
        store_totals(int8_four([at(0), at(1), at(2), at(3)], query), four);
    }
    let done = 4 * fours.len();
    for (i, sum) in rest.iter_mut().enumerate() {
        let row = portable::row(codes, row_bytes, rows.row(done + i));
        *sum = total(int8_four([row; 4], query)[0]);
    }
    let tail = row_bytes / (WIDTH / 2) * (WIDTH / 2);
    if tail < row_bytes {
        for (i, sum) in sums.iter_mut().enumerate() {
            let row = portable::row(codes, row_bytes, rows.row(i));
            *sum += portable::int8_row(&row[tail..], &query[tail..]);
        }
    }
}

#[target_feature(enable = "avx2")]
pub(super) fn int4_pair(a: &[u8], b: &[u8]) -> i32 {
    let fifteen = _mm256_set1_epi8(15);
    let ones = _mm256_set1_epi16(1);
    let (a_parts, b_parts) = (a.as_chunks::<WIDTH>(), b.as_chunks::<WIDTH>());
    let mut sum = _mm256_setzero_si256();
    for (a, b) in a_parts.0.iter().zip(b_parts.0) {
        let ((a_low, a_high), (b_low, b_high)) = (nibbles(load(a)), nibbles(load(b)));
        // (2a - 15)(2b - 15) = 2a(2b - 15) - 15(2b - 15). The first factor of `maddubs` is unsigned, the second signed.
        let level = |codes: __m256i| _mm256_sub_epi8(_mm256_slli_epi16::<1>(codes), fifteen);
        let (b_low, b_high) = (level(b_low), level(b_high));
        let products = |a: __m256i, b: __m256i| {
            let double = _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_slli_epi16::<1>(a), b), ones);
            let bias = _mm256_madd_epi16(_mm256_maddubs_epi16(fifteen, b), _mm256_set1_epi16(-1));
            _mm256_add_epi32(double, bias)
        };
        sum = _mm256_add_epi32(sum, _mm256_add_epi32(products(a_low, b_low), products(a_high, b_high)));
    }
    total(sum) + portable::int4_pair(a_parts.1, b_parts.1)
}

#[target_feature(enable = "avx2")]
pub(super) fn int8_pair(a: &[u8], b: &[u8]) -> i32 {
    let (a_parts, b_parts) = (a.as_chunks::<{ WIDTH / 2 }>(), b.as_chunks::<{ WIDTH / 2 }>());
    let mut sum = _mm256_setzero_si256();
    for (a, b) in a_parts.0.iter().zip(b_parts.0) {
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(load_widened(a), load_widened(b)));
    }
    total(sum) + portable::int8_pair(a_parts.1, b_parts.1)
}

/// Returns partial sums of four int4 rows, using only full registers.
#[inline]
#[target_feature(enable = "avx2")]
fn int4_four(rows: [&[u8]; 4], low: &[u8], high: &[u8]) -> [__m256i; 4] {
    let ones = _mm256_set1_epi16(1);
    let [a, b, c, d] = rows.map(|row| row.as_chunks::<WIDTH>().0);
    let (low, high) = (low.as_chunks::<WIDTH>().0, high.as_chunks::<WIDTH>().0);
    let n = low.len();
    let (a, b, c, d, high) = (&a[..n], &b[..n], &c[..n], &d[..n], &high[..n]);
    let mut sums = [_mm256_setzero_si256(); 4];
    let mut first = 0;
    while first < n {
        let last = n.min(first + PAIRS_BEFORE_WIDENING / 2);
        let mut narrow = [_mm256_setzero_si256(); 4];
        for i in first..last {
            let (low, high) = (load(&low[i]), load(&high[i]));
            for (narrow, codes) in narrow.iter_mut().zip([&a[i], &b[i], &c[i], &d[i]]) {
                let (low_codes, high_codes) = nibbles(load(codes));
                *narrow = _mm256_add_epi16(*narrow, _mm256_maddubs_epi16(low_codes, low));
                *narrow = _mm256_add_epi16(*narrow, _mm256_maddubs_epi16(high_codes, high));
            }
        }
        for (sum, narrow) in sums.iter_mut().zip(narrow) {
            *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(narrow, ones));
        }
        first = last;
    }
    sums
}

/// Returns partial sums of four int8 rows, using only full registers.
#[inline]
#[target_feature(enable = "avx2")]
fn int8_four(rows: [&[u8]; 4], query: &[i16]) -> [__m256i; 4] {
    let [a, b, c, d] = rows.map(|row| row.as_chunks::<{ WIDTH / 2 }>().0);
    let query = query.as_chunks::<{ WIDTH / 2 }>().0;
    let n = query.len();
    let (a, b, c, d) = (&a[..n], &b[..n], &c[..n], &d[..n]);
    let mut sums = [_mm256_setzero_si256(); 4];
    for i in 0..n {
        let query = load_wide(&query[i]);
        for (sum, codes) in sums.iter_mut().zip([&a[i], &b[i], &c[i], &d[i]]) {
            *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(load_widened(codes), query));
        }
    }
    sums
}

/// Returns the low four bits and the high four bits of each byte.
#[inline]
#[target_feature(enable = "avx2")]
fn nibbles(codes: __m256i) -> (__m256i, __m256i) {
    let fifteen = _mm256_set1_epi8(15);
    (
        _mm256_and_si256(codes, fifteen),
        _mm256_and_si256(_mm256_srli_epi16::<4>(codes), fifteen),
    )
}

/// Returns the sum of all eight lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn total(lanes: __m256i) -> i32 {
    let mut four = [0; 4];
    store_totals(
        [
            lanes,
            _mm256_setzero_si256(),
            _mm256_setzero_si256(),
            _mm256_setzero_si256(),
        ],
        &mut four,
    );
    four[0]
}

/// Stores the sum of the lanes of each register.
#[inline]
#[target_feature(enable = "avx2")]
fn store_totals([a, b, c, d]: [__m256i; 4], totals: &mut [i32; 4]) {
    let pairs = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
    let four = _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256::<1>(pairs));
    // SAFETY: `totals` is 16 writable bytes; the store needs no alignment.
    unsafe { _mm_storeu_si128(totals.as_mut_ptr().cast(), four) };
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(bytes: &[u8; WIDTH]) -> __m256i {
    // SAFETY: `bytes` is 32 readable bytes; the load needs no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_wide(numbers: &[i16; WIDTH / 2]) -> __m256i {
    // SAFETY: `numbers` is 32 readable bytes; the load needs no alignment.
    unsafe { _mm256_loadu_si256(numbers.as_ptr().cast()) }
}

/// Loads sixteen signed bytes as 16-bit numbers.
#[inline]
#[target_feature(enable = "avx2")]
fn load_widened(bytes: &[u8; WIDTH / 2]) -> __m256i {
    // SAFETY: `bytes` is 16 readable bytes; the load needs no alignment.
    _mm256_cvtepi8_epi16(unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) })
}
