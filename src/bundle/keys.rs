//! Encodes the list of blobs in a bundle, with a few bytes per blob. A receiver can decide from the list whether to
//! download the bundle.

use crate::artifact::ArtifactKey;
use crate::model::{BlobId, Lang, Oid};

/// Bytes of the language number that follows each id.
const LANG_BYTES: usize = 2;

/// Encodes `keys`, sorted by their bytes: one byte with the length of an id, then for each key its id and its language
/// as `u16`, little-endian.
pub fn encode_keys(keys: &[ArtifactKey]) -> Vec<u8> {
    let mut sorted = keys.to_vec();
    sorted.sort_unstable();
    let id_bytes = sorted.first().map_or(0, |key| key.blob.0.as_bytes().len());
    let mut bytes = vec![id_bytes as u8];
    for key in sorted {
        bytes.extend_from_slice(key.blob.0.as_bytes());
        bytes.extend_from_slice(&key.lang.0.to_le_bytes());
    }
    bytes
}

/// Decodes keys. Returns `None` if `bytes` is not a valid key list.
pub fn decode_keys(bytes: &[u8]) -> Option<Vec<ArtifactKey>> {
    let (&id_bytes, keys) = bytes.split_first()?;
    let width = usize::from(id_bytes) + LANG_BYTES;
    if !matches!(id_bytes, 0 | 20 | 32) || !keys.len().is_multiple_of(width) {
        return None;
    }
    let key = |raw: &[u8]| {
        let (id, lang) = raw.split_at(usize::from(id_bytes));
        Some(ArtifactKey {
            blob: BlobId(Oid::from_bytes(id).ok()?),
            lang: Lang(u16::from_le_bytes(lang.try_into().ok()?)),
        })
    };
    keys.chunks_exact(width).map(key).collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn keys_round_trip_sorted_and_invalid_bytes_are_rejected() {
        let key = |byte: u8, lang| ArtifactKey {
            blob: BlobId(Oid::from_bytes(&[byte; 20]).unwrap()),
            lang: Lang(lang),
        };
        let bytes = encode_keys(&[key(9, 1), key(3, 700)]);
        assert_eq!(decode_keys(&bytes).unwrap(), [key(3, 700), key(9, 1)]);
        assert_eq!(decode_keys(&encode_keys(&[])).unwrap(), []);
        for bad in [&b""[..], &bytes[..bytes.len() - 1], &[7, 1, 2], &[0, 1]] {
            assert_eq!(decode_keys(bad), None);
        }
    }
}
