//! Finds consecutive lines of base64.

use std::ops::Range;

/// Finds lines of base64 that may be part of a key. The key's first line may be in an earlier part of the file, because
/// files are sent in parts. Other base64 data is removed too; it has no meaning for a model.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let mut end = 0;
    let lines: Vec<(usize, usize, Line)> = text
        .split_inclusive('\n')
        .map(|line| {
            let start = end;
            end += line.len();
            (start, start + line.trim_end().len(), Line::of(line))
        })
        .collect();
    let is = |at: usize, wanted: Line| lines.get(at).is_some_and(|&(_, _, kind)| kind == wanted);
    let (mut runs, mut at) = (Vec::new(), 0);
    while at < lines.len() {
        let first = at;
        while is(at, Line::Encoded) {
            at += 1;
        }
        let n_encoded = at - first;
        // The last line of a key is shorter. A part of a file may begin with it.
        if is(at, Line::Short) && (n_encoded > 0 || at == 0) {
            at += 1;
        }
        if at > first && (n_encoded > 1 || is(at, Line::KeyEnd)) {
            runs.push(lines[first].0..lines[at - 1].1);
        }
        at = at.max(first + 1);
    }
    runs
}

/// Kind of a line, without the quotes and operators of a string in code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// A long line of base64 with digits, lower and upper case.
    Encoded,
    /// Any other line of base64 characters.
    Short,
    /// The last line of a key.
    KeyEnd,
    Other,
}

impl Line {
    fn of(line: &str) -> Self {
        const MIN_ENCODED_BYTES: usize = 40;
        let code = line.trim().trim_end_matches([',', ';', '+', '\\', '.']).trim_end();
        let code = code.trim_matches(['"', '\'', '`']).trim_end_matches("\\n");
        let has = |wanted: fn(&u8) -> bool| code.as_bytes().iter().any(wanted);
        let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
        if code.starts_with("-----END ") && code.contains("PRIVATE KEY") {
            return Self::KeyEnd;
        }
        if code.is_empty() || !code.bytes().all(is_base64) {
            return Self::Other;
        }
        let is_mixed = has(u8::is_ascii_digit) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase);
        if code.len() >= MIN_ENCODED_BYTES && is_mixed {
            Self::Encoded
        } else {
            Self::Short
        }
    }
}
