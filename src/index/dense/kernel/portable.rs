//! Portable kernels, which define the results of all others.

use super::Pick;

pub(super) fn int4(codes: &[u8], query: &[u8], rows: Pick<'_>, sums: &mut [i32]) {
    let (low, high) = query.split_at(query.len() / 2);
    for (i, sum) in sums.iter_mut().enumerate().take(rows.len()) {
        *sum = int4_row(row(codes, low.len(), rows.row(i)), low, high);
    }
}

pub(super) fn int8(codes: &[u8], query: &[i16], rows: Pick<'_>, sums: &mut [i32]) {
    for (i, sum) in sums.iter_mut().enumerate().take(rows.len()) {
        *sum = int8_row(row(codes, query.len(), rows.row(i)), query);
    }
}

pub(super) fn int4_pair(a: &[u8], b: &[u8]) -> i32 {
    let level = |code: u8| 2 * i32::from(code) - 15;
    let product = |(&a, &b): (&u8, &u8)| level(a & 15) * level(b & 15) + level(a >> 4) * level(b >> 4);
    a.iter().zip(b).map(product).sum()
}

pub(super) fn int8_pair(a: &[u8], b: &[u8]) -> i32 {
    a.iter()
        .zip(b)
        .map(|(&a, &b)| i32::from(a as i8) * i32::from(b as i8))
        .sum()
}

#[inline(always)]
pub(super) fn int4_row(row: &[u8], low: &[u8], high: &[u8]) -> i32 {
    let product = |((&byte, &low), &high): ((&u8, &u8), &u8)| {
        i32::from(byte & 15) * i32::from(low as i8) + i32::from(byte >> 4) * i32::from(high as i8)
    };
    row.iter().zip(low).zip(high).map(product).sum()
}

#[inline(always)]
pub(super) fn int8_row(row: &[u8], query: &[i16]) -> i32 {
    row.iter()
        .zip(query)
        .map(|(&byte, &y)| i32::from(byte as i8) * i32::from(y))
        .sum()
}

/// Returns the codes of a row.
#[inline(always)]
pub(super) fn row(codes: &[u8], row_bytes: usize, row: usize) -> &[u8] {
    &codes[row * row_bytes..][..row_bytes]
}
