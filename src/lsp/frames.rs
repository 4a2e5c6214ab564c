//! The base protocol of language servers: a header with `Content-Length`, then that many bytes.
//!
//! Some servers write logs to standard output. So lines before a header are skipped, up to a limit.

use std::io::{self, BufRead, Read, Write};

/// Limit on one message.
const MAX_BODY: usize = 64 << 20;
/// Limit on one line of a header.
const MAX_LINE: u64 = 64 << 10;
/// Limit on everything before the body of one message.
const MAX_HEADER: usize = 1 << 20;

const LENGTH: &str = "content-length:";

/// Reads the body of the next message. Returns `None` at the end.
pub(super) fn read_body(from: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut length = None;
    let mut n_read = 0;
    loop {
        let mut line = Vec::new();
        from.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)?;
        n_read += line.len();
        if line.is_empty() {
            return Ok(None);
        }
        if n_read > MAX_HEADER {
            return Err(invalid("it writes something else than messages to standard output"));
        }
        let line = String::from_utf8_lossy(&line).to_ascii_lowercase();
        if let Some(at) = line.rfind(LENGTH) {
            length = line[at + LENGTH.len()..].trim().parse::<usize>().ok();
        } else if line.trim().is_empty()
            && let Some(length) = length
        {
            return body(from, length).map(Some);
        }
    }
}

fn body(from: &mut impl BufRead, length: usize) -> io::Result<Vec<u8>> {
    if length > MAX_BODY {
        return Err(invalid("it sent a message that is too large"));
    }
    // Grows while it is read, because the length may be a lie.
    let mut body = Vec::new();
    from.take(length as u64).read_to_end(&mut body)?;
    if body.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(body)
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// Writes a message.
pub(super) fn write_body(to: &mut impl Write, body: &[u8]) -> io::Result<()> {
    write!(to, "Content-Length: {}\r\n\r\n", body.len())?;
    to.write_all(body)?;
    to.flush()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use std::io::BufReader;

    use super::*;

    fn bodies(bytes: &[u8]) -> Vec<io::Result<String>> {
        let mut from = BufReader::with_capacity(3, bytes);
        let mut found = Vec::new();
        loop {
            match read_body(&mut from) {
                Ok(Some(body)) => found.push(Ok(String::from_utf8(body).unwrap())),
                Ok(None) => return found,
                Err(error) => {
                    found.push(Err(error));
                    return found;
                }
            }
        }
    }

    #[test]
    fn logs_between_messages_are_skipped() {
        let mut bytes = b"starting ...\n\nContent-Type: x\r\n".to_vec();
        write_body(&mut bytes, b"{}").unwrap();
        bytes.extend(b"loaded: 12content-length: 3\r\nContent-Type: y\r\n\r\nabc");
        let found: Vec<_> = bodies(&bytes).into_iter().map(Result::unwrap).collect();
        assert_eq!(found, ["{}", "abc"]);
    }

    proptest::proptest! {
        #![proptest_config(crate::support::properties(256))]
        #[test]
        fn damaged_messages_do_no_harm(
            body in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..40),
            at in 0..60usize,
            byte in proptest::prelude::any::<u8>(),
        ) {
            let mut bytes = Vec::new();
            write_body(&mut bytes, &body).unwrap();
            let mut damaged = bytes.clone();
            damaged.iter_mut().skip(at).take(1).for_each(|old| *old = byte);
            let mut from = BufReader::with_capacity(3, &bytes[..]);
            assert_eq!(read_body(&mut from).unwrap().unwrap(), body);
            let mut from = BufReader::with_capacity(3, &damaged[..]);
            while let Ok(Some(_)) = read_body(&mut from) {}
        }
    }

    #[test]
    fn endless_logs_long_messages_and_cut_ones_are_errors() {
        let endless = b"log line\n".repeat(MAX_HEADER / 8);
        for bytes in [
            &endless[..],
            b"Content-Length: 99999999999\r\n\r\n{}",
            b"Content-Length: 3\r\n\r\n{}",
        ] {
            assert!(matches!(bodies(bytes)[..], [Err(_)]));
        }
        assert!(bodies(b"Content-Length: x\r\n\r\n{}").is_empty());
    }
}
