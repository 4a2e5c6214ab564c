//! Compresses and decompresses bytes. No other module uses zstd.

use std::cell::RefCell;

use zstd::bulk::Decompressor;

/// An error from decompressing a frame.
#[derive(Debug, thiserror::Error)]
pub enum CompressError {
    /// The declared length exceeds the caller's limit.
    #[error("decompressed size {declared} exceeds the limit of {allowed} bytes")]
    TooLarge {
        /// The decompressed length that the frame declares.
        declared: usize,
        /// The caller's limit.
        allowed: usize,
    },
    /// The bytes are not a zstd frame, or the frame is damaged.
    #[error("damaged compressed data")]
    Damaged(#[source] std::io::Error),
}

/// The largest accepted window size of a streamed frame, as a power of 2. Frames written by this module need less.
const MAX_WINDOW_LOG: u32 = 27;
/// Compression level for data that is compressed once and sent many times.
const SENT_LEVEL: i32 = 9;

/// Compression level for stored data. At this level, compressing a blob costs less than parsing it.
const LEVEL: i32 = 6;

thread_local! {
    /// Cached because creating a decompressor costs as much as decompressing a small frame.
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Compresses `bytes`. The same version of zstd always gives the same output for the same input.
pub fn compress(bytes: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(bytes, LEVEL).expect("compressing memory into memory does not fail")
}

/// Decompresses a frame that contains exactly `length` bytes. Fails if `length` exceeds `allowed`.
pub fn decompress(frame: &[u8], length: usize, allowed: usize) -> Result<Vec<u8>, CompressError> {
    if length > allowed {
        return Err(CompressError::TooLarge {
            declared: length,
            allowed,
        });
    }
    let opened = DECOMPRESSOR.with_borrow_mut(|decompressor| match decompressor {
        Some(decompressor) => decompressor.decompress(frame, length),
        None => decompressor.insert(Decompressor::new()?).decompress(frame, length),
    });
    let bytes = opened.map_err(CompressError::Damaged)?;
    if bytes.len() != length {
        let short = std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "shorter than declared");
        return Err(CompressError::Damaged(short));
    }
    Ok(bytes)
}

/// Compresses `bytes` and writes them to `to` as one frame. The same version of zstd always gives the same output for
/// the same input.
pub fn compress_into(bytes: &[u8], to: impl std::io::Write) -> std::io::Result<()> {
    let mut encoder = zstd::stream::write::Encoder::new(to, SENT_LEVEL)?;
    encoder.set_pledged_src_size(Some(bytes.len() as u64))?;
    std::io::Write::write_all(&mut encoder, bytes)?;
    encoder.finish()?;
    Ok(())
}

/// Decompresses the frame in `from` to `to`. Fails if the content does not have exactly `length` bytes. Never writes
/// more than `length` + 1 bytes, whatever length the frame declares.
pub fn decompress_from(
    from: &mut impl std::io::BufRead,
    length: u64,
    to: &mut impl std::io::Write,
) -> Result<(), CompressError> {
    let damaged = |what| CompressError::Damaged(std::io::Error::new(std::io::ErrorKind::InvalidData, what));
    let mut decoder = zstd::stream::read::Decoder::with_buffer(&mut *from)
        .map_err(CompressError::Damaged)?
        .single_frame();
    decoder.window_log_max(MAX_WINDOW_LOG).map_err(CompressError::Damaged)?;
    let mut limited = std::io::Read::take(&mut decoder, length + 1);
    let n_bytes = std::io::copy(&mut limited, to).map_err(CompressError::Damaged)?;
    if n_bytes != length {
        return Err(damaged("the decompressed length is wrong"));
    }
    drop(decoder);
    if from.fill_buf().map_err(CompressError::Damaged)?.is_empty() {
        Ok(())
    } else {
        Err(damaged("trailing bytes after the frame"))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn round_trips_up_to_the_size_limit() {
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

    #[test]
    fn streams_must_match_their_declared_length() {
        let text = b"fn main() {}\n".repeat(10_000);
        let mut frame = Vec::new();
        compress_into(&text, &mut frame).unwrap();
        let open = |frame: &[u8], length| {
            let mut back = Vec::new();
            decompress_from(&mut &*frame, length, &mut back).map(|()| back)
        };
        let length = text.len() as u64;
        assert_eq!(open(&frame, length).unwrap(), text);
        assert!(open(&frame, length - 1).is_err() && open(&frame, length + 1).is_err());
        assert!(open(&frame[..frame.len() - 1], length).is_err());
        assert!(open(&[&frame[..], b"x"].concat(), length).is_err());
        assert!(open(&[&frame[..], &frame[..]].concat(), length).is_err());
    }
}
