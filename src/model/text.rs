//! Parts of text.

/// Maximum length of a line of a message in bytes.
const MAX_ECHO_BYTES: usize = 2_000;

/// Returns the longest start of `text` with at most `max_bytes` that ends at a character boundary.
pub fn start_of(text: &str, max_bytes: usize) -> &str {
    let mut end = max_bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Leaves out the middle of each line that is longer than [`MAX_ECHO_BYTES`]. A message can repeat what was typed.
pub fn without_middles(text: &str) -> String {
    let shorten = |line: &str| {
        if line.len() <= MAX_ECHO_BYTES {
            return line.to_owned();
        }
        let mut end = line.len() - MAX_ECHO_BYTES / 4;
        while !line.is_char_boundary(end) {
            end += 1;
        }
        format!("{} … {}", start_of(line, MAX_ECHO_BYTES / 2), &line[end..])
    };
    text.split('\n').map(shorten).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_lines_lose_their_middle() {
        let long = format!("no file has {}é: try another", "ä".repeat(40_000));
        let short = without_middles(&format!("a b\n{long}\nc"));
        assert!(short.len() < 2 * MAX_ECHO_BYTES, "{}", short.len());
        assert!(
            short.starts_with("a b\nno file has ä") && short.ends_with("é: try another\nc"),
            "{short}"
        );
    }

    #[test]
    fn characters_stay_whole() {
        assert_eq!(start_of("häuser", 2), "h");
        assert_eq!(start_of("häuser", 3), "hä");
        assert_eq!(start_of("abc", 9), "abc");
        assert_eq!(start_of("é", 0), "");
    }
}
