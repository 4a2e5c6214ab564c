//! Handles line endings and indentation in texts that are edited in place.

/// Returns the line ending of the first line, or `\n` if there is none.
pub(crate) fn newline(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// Splits off the byte order mark that some Windows editors write at the start of a file.
pub(crate) fn split_mark(text: &str) -> (&str, &str) {
    let length = if text.starts_with('\u{feff}') {
        '\u{feff}'.len_utf8()
    } else {
        0
    };
    text.split_at(length)
}

/// Returns the 1-based number of the line that contains byte `at`.
pub(crate) fn line_number(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

/// Returns the start of the line that contains byte `at`.
pub(crate) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// Returns the end of the line that contains byte `at`, including its line ending.
pub(crate) fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |newline| at + newline + 1)
}

/// Returns the indentation of the line that contains byte `at`.
pub(crate) fn indentation(text: &str, at: usize) -> &str {
    let line = &text[line_start(text, at)..];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// Appends `addition` to the text, after an empty line. `addition` consists of whole lines with `\n`; its line endings
/// are converted to those of the text.
pub(crate) fn append(text: &str, addition: &str) -> String {
    let newline = newline(text);
    let mut whole = text.to_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        whole.push_str(newline);
    }
    if !(split_mark(text).1.is_empty() || ends_with_empty_line(&whole)) {
        whole.push_str(newline);
    }
    whole + &addition.replace('\n', newline)
}

/// Returns the text without the whole lines from `start` to `end`, and without an empty line before them.
pub(crate) fn without_lines(text: &str, start: usize, end: usize) -> String {
    let mut before = &text[..start];
    if ends_with_empty_line(before) {
        before = before.strip_suffix('\n').unwrap_or(before);
        before = before.strip_suffix('\r').unwrap_or(before);
    }
    format!("{before}{}", &text[end..])
}

fn ends_with_empty_line(text: &str) -> bool {
    text.ends_with("\n\n") || text.ends_with("\n\r\n")
}
