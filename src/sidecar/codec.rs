//! Encodes and decodes records. No other module knows the encoding.

use bincode::config::{self, Configuration, Limit, LittleEndian, Varint};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Limit on the size of a record. A greater length means damage and is rejected before any memory is allocated.
const MAX_RECORD_BYTES: usize = 256 << 20;

const CONFIG: Configuration<LittleEndian, Varint, Limit<MAX_RECORD_BYTES>> =
    config::standard().with_limit::<MAX_RECORD_BYTES>();

/// An error from decoding a record.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    /// The bytes are not a valid record.
    #[error("cannot decode record: {0}")]
    Malformed(String),
    /// More bytes follow the record.
    #[error("{0} bytes follow the record")]
    Trailing(usize),
}

/// Encodes a record. Equal values give equal bytes.
pub fn encode<T: Serialize>(record: &T) -> Vec<u8> {
    bincode::serde::encode_to_vec(record, CONFIG).expect("records are plain data below the limit")
}

/// Decodes a record. Fails unless the record uses all of `bytes`.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    let (record, n_read) =
        bincode::serde::decode_from_slice(bytes, CONFIG).map_err(|error| CodecError::Malformed(error.to_string()))?;
    match bytes.len() - n_read {
        0 => Ok(record),
        n_trailing => Err(CodecError::Trailing(n_trailing)),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn decode_undoes_encode_and_refuses_more() {
        let record = (7u32, "text".to_owned(), vec![1u8, 2, 3]);
        let mut bytes = encode(&record);
        assert_eq!(decode::<(u32, String, Vec<u8>)>(&bytes).unwrap(), record);
        bytes.push(0);
        assert!(matches!(
            decode::<(u32, String, Vec<u8>)>(&bytes),
            Err(CodecError::Trailing(1))
        ));
    }

    #[test]
    fn the_bytes_of_a_record_stay_what_they_are() {
        assert_eq!(encode(&(300u32, "ab")), [251, 44, 1, 2, b'a', b'b']);
    }
}
