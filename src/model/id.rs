//! Ids: git object ids in both object formats, and the key of a chunk.

use std::fmt;

/// A git object id: 20 bytes in the SHA-1 object format, 32 in SHA-256.
///
/// Ids are ordered by their bytes and printed as lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Oid {
    bytes: [u8; 32],
    len: u8,
}

/// An error from converting text or bytes to an object id.
#[derive(Debug, thiserror::Error)]
pub enum OidError {
    /// The input has neither 20 nor 32 bytes.
    #[error("invalid object id: {0} bytes, expected 20 or 32")]
    Length(usize),
    /// The text contains a character outside `[0-9a-fA-F]`.
    #[error("invalid object id {0:?}: not hexadecimal")]
    NotHex(String),
}

impl Oid {
    /// Converts the raw bytes of an id, 20 or 32.
    pub fn from_bytes(raw: &[u8]) -> Result<Self, OidError> {
        if raw.len() != 20 && raw.len() != 32 {
            return Err(OidError::Length(raw.len()));
        }
        let mut bytes = [0; 32];
        bytes[..raw.len()].copy_from_slice(raw);
        Ok(Self {
            bytes,
            len: raw.len() as u8,
        })
    }

    /// Parses 40 or 64 hexadecimal digits.
    pub fn from_hex(text: &str) -> Result<Self, OidError> {
        let not_hex = || OidError::NotHex(text.to_owned());
        if !text.is_ascii() {
            return Err(not_hex());
        }
        let raw = (0..text.len() / 2)
            .map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).map_err(|_| not_hex()))
            .collect::<Result<Vec<u8>, _>>()?;
        if text.len() % 2 == 1 {
            return Err(not_hex());
        }
        Self::from_bytes(&raw)
    }

    /// Returns the raw bytes, 20 or 32.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Returns true if the lower-case hexadecimal form of the id begins with `digits`.
    pub fn begins_with_hex(&self, digits: &str) -> bool {
        let nibble = |at: usize| {
            let byte = self.as_bytes().get(at / 2)?;
            char::from_digit(u32::from(if at.is_multiple_of(2) { byte >> 4 } else { byte & 15 }), 16)
        };
        digits.chars().enumerate().all(|(at, digit)| nibble(at) == Some(digit))
    }

    /// Returns the first `n_digits` hexadecimal digits, for display.
    pub fn short(&self, n_digits: usize) -> String {
        let mut hex = self.to_string();
        hex.truncate(n_digits);
        hex
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Oid({self})")
    }
}

macro_rules! oid_newtype {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub Oid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

oid_newtype!(
    /// Identifies the bytes of one file version.
    BlobId
);
oid_newtype!(
    /// Identifies one directory version, or the root tree of a commit.
    TreeId
);
oid_newtype!(
    /// Identifies one commit.
    CommitId
);

/// Identifies a chunk by the first 16 bytes of a BLAKE3 hash over its text, language, kind, container and symbol.
///
/// If two blobs contain the same function, its chunk has the same key in both, so it is indexed and embedded once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkKey(pub [u8; 16]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_round_trips_in_both_object_formats() {
        for hex in ["ab".repeat(20), "0f".repeat(32)] {
            let id = Oid::from_hex(&hex).expect("valid");
            assert_eq!(id.to_string(), hex);
            assert!(id.begins_with_hex("") && id.begins_with_hex(&hex[..5]) && id.begins_with_hex(&hex));
            assert!(!id.begins_with_hex("1") && !id.begins_with_hex(&format!("{hex}0")));
        }
    }

    #[test]
    fn other_lengths_and_letters_are_refused() {
        for bad in ["", "abc", "zz", &"a".repeat(41), &"ü".repeat(20)] {
            assert!(Oid::from_hex(bad).is_err(), "{bad}");
        }
    }
}
