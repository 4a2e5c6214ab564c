//! Variable-length numbers: seven bits per byte, lowest first, with the top bit set on all bytes except the last.

/// Appends a number.
pub(crate) fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Takes a number from the start of `bytes`. Returns `None` if they end early or the number has more than 64 bits.
pub(crate) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for (at, &byte) in bytes.iter().enumerate().take(10) {
        if at == 9 && byte > 1 {
            return None;
        }
        number |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            *bytes = &bytes[at + 1..];
            return Some(number);
        }
    }
    None
}

/// Takes a number below 2³².
pub(crate) fn take_u32(bytes: &mut &[u8]) -> Option<u32> {
    take(bytes)?.try_into().ok()
}
