//! Signatures of bundles. Only this module knows the algorithm, Ed25519 (RFC 8032).

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_PAD_INDIFFERENT;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

/// Prefix of the signed bytes, so that a signature is valid only for bundles.
const CONTEXT: &[u8] = b"codescout bundle 1\0";
/// The DER bytes that precede the key in a public key written by `openssl pkey -pubout` (RFC 8410).
const SPKI_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

pub(super) const PUBLIC_BYTES: usize = 32;
pub(super) const SIGNATURE_BYTES: usize = 64;

/// A private key that signs bundles.
pub struct SigningKey(Ed25519KeyPair);

/// A public key that verifies bundles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey(pub [u8; PUBLIC_BYTES]);

/// An error from reading a key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The text is not a private key.
    #[error(
        "not an Ed25519 private key in PEM format (create one with `openssl genpkey -algorithm ed25519 -out FILE`)"
    )]
    Private,
    /// The text is not a public key.
    #[error("not a public key: expected 64 hexadecimal digits or a PEM file written by `openssl pkey -pubout`")]
    Public,
}

impl SigningKey {
    /// Reads the PEM text written by `openssl genpkey -algorithm ed25519`.
    pub fn from_pem(text: &str) -> Result<Self, KeyError> {
        let der = decode_pem(text, "PRIVATE").ok_or(KeyError::Private)?;
        let key = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).map_err(|_| KeyError::Private)?;
        Ok(Self(key))
    }

    /// Returns the corresponding public key.
    pub fn public(&self) -> PublicKey {
        let bytes = self.0.public_key().as_ref();
        PublicKey(bytes.try_into().expect("public keys have 32 bytes"))
    }

    pub(super) fn sign(&self, hash: &[u8; 32]) -> [u8; SIGNATURE_BYTES] {
        let signature = self.0.sign(&[CONTEXT, hash].concat());
        signature.as_ref().try_into().expect("signatures have 64 bytes")
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.public())
    }
}

impl PublicKey {
    /// Parses 64 hexadecimal digits or the PEM text of a public key.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        let der = decode_pem(text, "PUBLIC");
        let bytes = match der {
            Some(der) => der.strip_prefix(&SPKI_PREFIX).map(<[u8]>::to_vec),
            None => from_hex(text),
        };
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok()).ok_or(KeyError::Public)?;
        Ok(Self(bytes))
    }

    pub(super) fn is_valid_signature(&self, hash: &[u8; 32], signature: &[u8]) -> bool {
        let key = UnparsedPublicKey::new(&ED25519, self.0);
        key.verify(&[CONTEXT, hash].concat(), signature).is_ok()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Decodes the PEM text (RFC 7468) of a key to DER.
fn decode_pem(text: &str, which: &str) -> Option<Vec<u8>> {
    let (_, rest) = text.split_once(&format!("-----BEGIN {which} KEY-----"))?;
    let (body, _) = rest.split_once(&format!("-----END {which} KEY-----"))?;
    STANDARD_PAD_INDIFFERENT
        .decode(body.split_whitespace().collect::<String>())
        .ok()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let pairs = digits.len().is_multiple_of(2).then(|| digits.chunks_exact(2))?;
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    /// The example key of RFC 8410, section 10.
    const PRIVATE: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n";
    const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n";

    #[test]
    fn signature_is_valid_for_one_key_and_hash() {
        let key = SigningKey::from_pem(PRIVATE).unwrap();
        let signature = key.sign(&[7; 32]);
        assert!(key.public().is_valid_signature(&[7; 32], &signature));
        assert!(!key.public().is_valid_signature(&[8; 32], &signature));
        assert!(!PublicKey([9; 32]).is_valid_signature(&[7; 32], &signature));
    }

    #[test]
    fn keys_of_openssl_are_read() {
        let public = PublicKey::parse(PUBLIC).unwrap();
        assert_eq!(SigningKey::from_pem(PRIVATE).unwrap().public(), public);
        assert_eq!(PublicKey::parse(&format!("{public}\n")).unwrap(), public);
        let other = "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----";
        for bad in ["", "abc", &"g".repeat(64), other, PRIVATE] {
            assert!(PublicKey::parse(bad).is_err(), "{bad}");
        }
        assert!(SigningKey::from_pem(PUBLIC).is_err());
    }
}
