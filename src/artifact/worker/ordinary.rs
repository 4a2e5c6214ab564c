//! Decides which texts are parsed in the process itself: starting a worker takes longer than parsing a small file.
//!
//! A text that slows a parser down or crashes a scanner is long, deeply nested, or repeats itself.

/// Limit on the size of a text. The parse stack is released with recursion, of about 100 bytes per node and at most one
/// node per byte, and a thread has a stack of 2 MB.
const MAX_BYTES: usize = 16_000;
/// Limit on the length of a line.
const MAX_LINE_BYTES: usize = 200;
/// Limit on the depth of brackets.
const MAX_DEPTH: usize = 16;
/// Limit on the white space at the start of a line.
const MAX_INDENTATION: usize = 64;
/// At least one in so many windows of four bytes is new. In 98 of 100 files of code, one in 7 is.
const MAX_BYTES_PER_WINDOW: usize = 8;

/// Returns true for most small files of code. Depends only on the text.
pub(super) fn is_ordinary(text: &[u8]) -> bool {
    text.len() <= MAX_BYTES
        && memchr::memchr(0, text).is_none()
        && std::str::from_utf8(text).is_ok()
        && text.split(|byte| *byte == b'\n').all(is_ordinary_line)
        && depth(text) <= MAX_DEPTH
        && text.len() <= MAX_BYTES_PER_WINDOW * (n_windows(text) + MAX_BYTES_PER_WINDOW)
}

fn is_ordinary_line(line: &[u8]) -> bool {
    line.len() <= MAX_LINE_BYTES && line.len() - line.trim_ascii_start().len() <= MAX_INDENTATION
}

/// Returns the greatest number of open brackets.
fn depth(text: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0usize, 0);
    for byte in text {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// Returns the number of distinct hashes of four consecutive bytes.
fn n_windows(text: &[u8]) -> usize {
    let mut seen = vec![0u64; 1 << 10];
    for window in text.windows(4) {
        let number = u32::from_le_bytes([window[0], window[1], window[2], window[3]]);
        let hash = number.wrapping_mul(0x9e37_79b1) >> 16;
        seen[hash as usize / 64] |= 1 << (hash % 64);
    }
    seen.iter().map(|bits| bits.count_ones() as usize).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_ordinary_and_repeated_deep_or_foreign_text_is_not() {
        let code = include_str!("ordinary.rs");
        assert!(is_ordinary(code.as_bytes()));
        assert!(is_ordinary(b"") && is_ordinary(b"a = 1\n") && is_ordinary(b"}\n}\n}\n}\n"));
        let not = [
            "/*\n".repeat(500),
            format!("{code}{}", "f(".repeat(17)),
            format!("{code}\n{}", "x".repeat(201)),
            format!("{code}\n{}x", " ".repeat(65)),
            format!("{code}\0"),
            code.repeat(16_000 / code.len() + 1),
        ];
        for text in not {
            assert!(!is_ordinary(text.as_bytes()), "{text}");
        }
        assert!(!is_ordinary(b"caf\xe9"));
    }
}
