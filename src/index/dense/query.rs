//! Converts query vectors to the integers that the kernels use.

use super::dense_index::DenseError;
use super::half;
use super::kernel::{self, Pick};
use super::quantise::Quantisation;
use super::vectors::VectorFile;

/// A unit query vector, quantised for rows of one quantisation.
#[derive(Debug)]
pub(super) struct Query {
    codes: Codes,
    /// The factor of the integer sums. Each row has an additional factor.
    scale: f32,
}

#[derive(Debug)]
enum Codes {
    /// Components in the order of an int4 row's codes, padded with zeros. `bias` = 15 · Σ y converts a sum of codes to
    /// a sum of levels: Σ (2u - 15) y = 2 Σ u y - bias.
    Int4 { y: Vec<u8>, bias: i32 },
    /// Components that are so small that no sum over a row overflows i32.
    Int8 { y: Vec<i16> },
}

impl Query {
    /// Quantises `unit`, which must have unit length.
    pub(super) fn new(unit: &[f32], quantisation: Quantisation) -> Self {
        match quantisation {
            Quantisation::Int4 => {
                let (scale, bias, y) = Self::in_bytes(unit, quantisation);
                Self {
                    codes: Codes::Int4 { y, bias },
                    scale,
                }
            }
            Quantisation::Int8 => {
                let most = (i32::MAX / (128 * unit.len().max(1) as i32)).min(32_767);
                let (scale, y) = rounded(unit, most as f32);
                Self {
                    codes: Codes::Int8 {
                        y: y.map(|x| x as i16).collect(),
                    },
                    scale,
                }
            }
        }
    }

    /// Returns the scale, the bias and one signed byte per component, in the order of a row's codes. This precision is
    /// sufficient for int4 rows and for searching a graph of int8 rows.
    pub(super) fn in_bytes(unit: &[f32], quantisation: Quantisation) -> (f32, i32, Vec<u8>) {
        let (scale, y) = rounded(unit, 127.0);
        let mut y: Vec<u8> = y.map(|x| x as i8 as u8).collect();
        let bias = 15 * y.iter().map(|&y| i32::from(y as i8)).sum::<i32>();
        if quantisation == Quantisation::Int4 {
            y.resize(2 * quantisation.row_bytes(unit.len()), 0);
        }
        (scale, bias, y)
    }

    /// Writes the cosines of the selected rows to `cosines`. Panics if a row is outside the file.
    pub(super) fn cosines(&self, vectors: &VectorFile, rows: Pick<'_>, cosines: &mut [f32]) {
        let mut sums = [0; BLOCK_ROWS];
        let sums = &mut sums[..rows.len()];
        match &self.codes {
            Codes::Int4 { y, bias } => {
                kernel::int4(vectors.codes(), y, rows, sums);
                sums.iter_mut().for_each(|sum| *sum = 2 * *sum - bias);
            }
            Codes::Int8 { y } => kernel::int8(vectors.codes(), y, rows, sums),
        }
        let factors = vectors.factors();
        match rows {
            Pick::Run { first, len } => self.scale(sums, factors.run(first, len), cosines),
            Pick::List(rows) => self.scale(sums, rows.iter().map(|&row| factors.get(row as usize)), cosines),
        }
    }

    fn scale(&self, sums: &[i32], factors: impl Iterator<Item = u16>, cosines: &mut [f32]) {
        for ((cosine, &sum), factor) in cosines.iter_mut().zip(sums).zip(factors) {
            *cosine = sum as f32 * (half::decode(factor) * self.scale);
        }
    }
}

/// Rounds the components to integers from -`most` to `most`. Returns the value of one step, and the integers.
fn rounded(unit: &[f32], most: f32) -> (f32, impl Iterator<Item = f32> + '_) {
    let largest = unit.iter().fold(f32::MIN_POSITIVE, |largest, x| largest.max(x.abs()));
    let scale = largest / most;
    (scale, unit.iter().map(move |x| (x / scale).round()))
}

/// The maximum number of rows per call of [`Query::cosines`].
pub(super) const BLOCK_ROWS: usize = 256;

/// Scales `query` to unit length. Returns `None` for the zero vector.
pub(super) fn unit_query(query: &[f32]) -> Result<Option<Vec<f32>>, DenseError> {
    if query.iter().any(|x| !x.is_finite()) {
        return Err(DenseError::NotFinite);
    }
    let norm = query.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt();
    Ok((norm > 0.0).then(|| query.iter().map(|&x| (f64::from(x) / norm) as f32).collect()))
}
