//! Parts of text.

/// Returns the longest start of `text` with at most `max_bytes` that ends at a character boundary.
pub fn start_of(text: &str, max_bytes: usize) -> &str {
    let mut end = max_bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_stay_whole() {
        assert_eq!(start_of("häuser", 2), "h");
        assert_eq!(start_of("häuser", 3), "hä");
        assert_eq!(start_of("abc", 9), "abc");
        assert_eq!(start_of("é", 0), "");
    }
}
