//! Reads model files in the format of `weights/FORMAT.md`. Checks all sizes and values, because a file may be damaged
//! or crafted.

use std::borrow::Cow;
use std::ops::Range;

use super::vocabulary::Vocabulary;

/// A parsed model file, whose sizes and values have been checked.
#[derive(Debug)]
pub(super) struct ModelFile {
    pub(super) dim: usize,
    pub(super) pooling: Pooling,
    pub(super) vocabulary: Vocabulary,
    /// The weight of each token in documents.
    pub(super) scale: Vec<f32>,
    /// The weight of each token in queries; `None` if it is the same as in documents.
    pub(super) query_scale: Option<Vec<f32>>,
    bytes: Cow<'static, [u8]>,
    rows: Range<usize>,
}

/// The function that is applied to the number of times `n` that a token occurs in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pooling {
    /// `n`
    Linear,
    /// `√n`
    Sqrt,
}

/// An error from parsing a model file.
#[derive(Debug, thiserror::Error)]
pub enum ModelFileError {
    /// The file does not begin with `CSEM`.
    #[error("not a codescout embedding model")]
    OtherKind,
    /// A newer version wrote the file.
    #[error("embedding model has format {found}, this build reads {SUPPORTED}")]
    OtherFormat {
        /// The format in the file.
        found: u32,
    },
    /// A size in the header is out of bounds or does not match the size of the file.
    #[error("embedding model is damaged: wrong size of {what}")]
    Size {
        /// The part of the file with the wrong size.
        what: &'static str,
    },
    /// A value is outside its valid range.
    #[error("embedding model is damaged: bad {what}")]
    Value {
        /// The part of the file with the invalid value.
        what: &'static str,
    },
}

const MAGIC: &[u8; 4] = b"CSEM";
const SUPPORTED: u32 = 1;
const HEADER_BYTES: usize = 32;
/// Bit 0 of the flags: the file contains query weights.
const HAS_QUERY_SCALE: u32 = 1;
/// Limits far above any real model. They prevent overflows in size computations.
const MAX_TOKENS: usize = 1 << 24;
const MAX_DIM: usize = 1 << 14;

/// The header of a model file, whose values have been checked.
pub(super) struct Header {
    pub(super) dim: usize,
    pub(super) pooling: Pooling,
    n_tokens: usize,
    text_bytes: usize,
    has_query_scale: bool,
}

impl Header {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, ModelFileError> {
        Self::read(&mut Parts { bytes, at: 0 })
    }

    fn read(parts: &mut Parts<'_>) -> Result<Self, ModelFileError> {
        let header = parts.take(HEADER_BYTES, "header")?;
        if &header[..4] != MAGIC {
            return Err(ModelFileError::OtherKind);
        }
        let [found, n_tokens, dim, pooling, flags, text_bytes, zero] =
            std::array::from_fn(|i| le_u32(&header[4 + 4 * i..]));
        if found != SUPPORTED {
            return Err(ModelFileError::OtherFormat { found });
        }
        if flags & !HAS_QUERY_SCALE != 0 || zero != 0 {
            return Err(ModelFileError::Value { what: "flags" });
        }
        let pooling = match pooling {
            0 => Pooling::Linear,
            1 => Pooling::Sqrt,
            _ => return Err(ModelFileError::Value { what: "pooling" }),
        };
        let (n_tokens, dim) = (n_tokens as usize, dim as usize);
        if n_tokens > MAX_TOKENS || dim == 0 || dim > MAX_DIM {
            return Err(ModelFileError::Size { what: "header" });
        }
        Ok(Self {
            dim,
            pooling,
            n_tokens,
            text_bytes: text_bytes as usize,
            has_query_scale: flags & HAS_QUERY_SCALE != 0,
        })
    }
}

impl ModelFile {
    /// Parses a model file and checks its sizes and values.
    pub(super) fn parse(bytes: Cow<'static, [u8]>) -> Result<Self, ModelFileError> {
        let mut parts = Parts { bytes: &bytes, at: 0 };
        let header = Header::read(&mut parts)?;
        let Header {
            n_tokens, dim, pooling, ..
        } = header;
        let vocabulary = read_vocabulary(parts.take(header.text_bytes, "vocabulary")?, n_tokens)?;
        let scale = read_scales(parts.take_aligned(4 * n_tokens, "scales")?)?;
        let query_scale = if !header.has_query_scale {
            None
        } else {
            Some(read_scales(parts.take_aligned(4 * n_tokens, "query scales")?)?)
        };
        parts.take_aligned(n_tokens * dim, "rows")?;
        let rows = parts.at - n_tokens * dim..parts.at;
        if rows.end != bytes.len() {
            return Err(ModelFileError::Size { what: "end" });
        }
        Ok(Self {
            dim,
            pooling,
            vocabulary,
            scale,
            query_scale,
            bytes,
            rows,
        })
    }

    /// Returns the rows of all tokens as one `[n_tokens, dim]` array of signed bytes.
    pub(super) fn rows(&self) -> &[u8] {
        &self.bytes[self.rows.clone()]
    }
}

/// A cursor over the bytes of the file.
struct Parts<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Parts<'a> {
    fn take(&mut self, n_bytes: usize, what: &'static str) -> Result<&'a [u8], ModelFileError> {
        let end = self.at.checked_add(n_bytes).ok_or(ModelFileError::Size { what })?;
        let part = self.bytes.get(self.at..end).ok_or(ModelFileError::Size { what })?;
        self.at = end;
        Ok(part)
    }

    /// Advances to the next multiple of 16, then returns the next `n_bytes`.
    fn take_aligned(&mut self, n_bytes: usize, what: &'static str) -> Result<&'a [u8], ModelFileError> {
        self.take(self.at.next_multiple_of(16) - self.at, what)?;
        self.take(n_bytes, what)
    }
}

/// Reads the vocabulary. Each entry is a length byte followed by that many ASCII bytes.
fn read_vocabulary(block: &[u8], n_tokens: usize) -> Result<Vocabulary, ModelFileError> {
    let mut text = Vec::with_capacity(block.len());
    let mut ends = Vec::with_capacity(n_tokens.min(block.len()));
    let mut rest = block;
    while let Some((&len, after)) = rest.split_first() {
        let Some((entry, after)) = after.split_at_checked(usize::from(len)) else {
            return Err(ModelFileError::Size { what: "vocabulary" });
        };
        if !entry.is_ascii() {
            return Err(ModelFileError::Value { what: "vocabulary" });
        }
        text.extend_from_slice(entry);
        ends.push(text.len() as u32);
        rest = after;
    }
    if ends.len() != n_tokens {
        return Err(ModelFileError::Size { what: "vocabulary" });
    }
    Vocabulary::new(text, ends).map_err(|_| ModelFileError::Value { what: "vocabulary" })
}

fn read_scales(block: &[u8]) -> Result<Vec<f32>, ModelFileError> {
    let scales: Vec<f32> = block.chunks_exact(4).map(|raw| f32::from_bits(le_u32(raw))).collect();
    // With this limit, the sum over any text that fits in memory is finite.
    if scales.iter().all(|scale| scale.abs() < 1e12) {
        Ok(scales)
    } else {
        Err(ModelFileError::Value { what: "scales" })
    }
}

/// Decodes a little-endian `u32` from the first four bytes.
fn le_u32(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

#[cfg(test)]
pub(super) mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use proptest::prelude::*;

    use super::*;

    /// Returns the bytes of a small model with the given tokens, for tests.
    pub(in crate::embed) fn tiny(entries: &[(&str, f32, f32, [i8; 4])]) -> Vec<u8> {
        let block: Vec<u8> = entries
            .iter()
            .flat_map(|e| [&[e.0.len() as u8][..], e.0.as_bytes()].concat())
            .collect();
        let mut file = MAGIC.to_vec();
        for word in [1, entries.len() as u32, 4, 1, 1, block.len() as u32, 0] {
            file.extend(u32::to_le_bytes(word));
        }
        file.extend(block);
        for scales in [
            entries.iter().map(|e| e.1).collect::<Vec<_>>(),
            entries.iter().map(|e| e.2).collect(),
        ] {
            file.resize(file.len().next_multiple_of(16), 0);
            file.extend(scales.iter().flat_map(|scale| scale.to_le_bytes()));
        }
        file.resize(file.len().next_multiple_of(16), 0);
        file.extend(entries.iter().flat_map(|e| e.3.map(|x| x as u8)));
        file
    }

    fn sample() -> Vec<u8> {
        tiny(&[
            ("a", 1.0, 0.5, [1, 2, 3, 4]),
            ("bc", 2.0, 1.0, [-1, 0, 0, 127]),
            ("def", 0.5, 0.5, [-127, 9, 8, 7]),
        ])
    }

    #[test]
    fn a_written_file_is_read_back() {
        let model = ModelFile::parse(sample().into()).unwrap();
        assert_eq!(
            (model.dim, model.pooling, model.vocabulary.len()),
            (4, Pooling::Sqrt, 3)
        );
        assert_eq!(model.vocabulary.entry(2), Some(&b"def"[..]));
        assert_eq!(model.scale, [1.0, 2.0, 0.5]);
        assert_eq!(model.query_scale, Some(vec![0.5, 1.0, 0.5]));
        assert_eq!(model.rows()[4..8], [255, 0, 0, 127]);
    }

    #[test]
    fn every_truncation_and_extension_is_refused() {
        let file = sample();
        for len in 0..file.len() {
            assert!(ModelFile::parse(file[..len].to_vec().into()).is_err(), "{len}");
        }
        assert!(ModelFile::parse([file, vec![0]].concat().into()).is_err());
    }

    #[test]
    fn sizes_are_checked_before_they_are_used() {
        for field in 1..7 {
            for value in [u32::MAX, u32::MAX / 2, 1 << 24, 0x4000_0001] {
                let mut file = sample();
                file[4 + 4 * field..][..4].copy_from_slice(&value.to_le_bytes());
                assert!(ModelFile::parse(file.into()).is_err(), "{field} {value}");
            }
        }
    }

    proptest! {
        #![proptest_config(crate::support::properties(256))]

        #[test]
        fn damaged_bytes_never_panic(flips in prop::collection::vec((0usize..156, 0u8..8), 1..6)) {
            let mut file = sample();
            for (at, bit) in flips {
                let at = at % file.len();
                file[at] ^= 1 << bit;
            }
            if let Ok(model) = ModelFile::parse(file.into()) {
                prop_assert_eq!(model.rows().len(), model.dim * model.vocabulary.len());
            }
        }

        #[test]
        fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = ModelFile::parse([&b"CSEM\x01\0\0\0"[..], &bytes].concat().into());
        }
    }
}
