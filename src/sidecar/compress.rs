//! The one place that knows zstd.

/// Why compressed bytes could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum CompressError {
    /// The stored length is above what the caller allows.
    #[error("{declared} bytes when opened, {allowed} allowed")]
    TooLarge {
        /// What the frame says.
        declared: usize,
        /// What the caller takes.
        allowed: usize,
    },
    /// Not a zstd frame, or a damaged one.
    #[error("damaged frame")]
    Damaged(#[source] std::io::Error),
}

/// A level at which compressing costs less than parsing does.
const LEVEL: i32 = 6;

/// Compresses `bytes`; equal input gives equal output for one version of the library.
pub fn compress(bytes: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(bytes, LEVEL).expect("compressing memory into memory does not fail")
}

/// Opens a frame that holds `length` bytes, at most `allowed`.
pub fn decompress(frame: &[u8], length: usize, allowed: usize) -> Result<Vec<u8>, CompressError> {
    if length > allowed {
        return Err(CompressError::TooLarge {
            declared: length,
            allowed,
        });
    }
    let bytes = zstd::bulk::decompress(frame, length).map_err(CompressError::Damaged)?;
    if bytes.len() != length {
        let short = std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "shorter than it says");
        return Err(CompressError::Damaged(short));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn opens_what_it_closed_and_nothing_larger() {
        let text = b"fn main() {}\n".repeat(100);
        let frame = compress(&text);
        assert_eq!(decompress(&frame, text.len(), 1 << 20).unwrap(), text);
        assert!(matches!(
            decompress(&frame, text.len(), 10),
            Err(CompressError::TooLarge { .. })
        ));
        assert!(decompress(&frame[..frame.len() - 3], text.len(), 1 << 20).is_err());
        assert!(decompress(&frame, text.len() - 1, 1 << 20).is_err());
    }
}
