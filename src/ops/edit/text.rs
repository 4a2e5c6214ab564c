//! Fits given text to its place in a file: indentation, line endings, blank lines.

use std::ops::Range;

/// The indentation of a level if a file shows none.
const DEFAULT_UNIT: &str = "    ";
/// Number of lines that are examined to find the unit of indentation.
const MAX_LINES: usize = 2_000;
const BOM: &[u8] = b"\xef\xbb\xbf";

/// Returns the number of bytes of a byte order mark at the start of a file.
pub(super) fn bom_len(bytes: &[u8]) -> usize {
    if bytes.starts_with(BOM) { BOM.len() } else { 0 }
}

/// Returns the start of the line that contains the byte at `at`.
pub(super) fn line_start(bytes: &[u8], at: usize) -> usize {
    let start = memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |newline| newline + 1);
    start.max(bom_len(bytes).min(at))
}

/// Returns the end of the line that contains the byte at `at`, before its line ending.
pub(super) fn line_end(bytes: &[u8], at: usize) -> usize {
    let end = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |newline| at + newline);
    if end > at && end < bytes.len() && bytes[end - 1] == b'\r' {
        end - 1
    } else {
        end
    }
}

/// Returns the start of the line after the one that contains the byte at `at`.
pub(super) fn next_line(bytes: &[u8], at: usize) -> usize {
    memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |newline| at + newline + 1)
}

/// Returns the line ending at a place: that of the line before, else of the next line, else a line feed.
pub(super) fn newline_at(bytes: &[u8], at: usize) -> &'static str {
    let newline = memchr::memrchr(b'\n', &bytes[..at]).or_else(|| memchr::memchr(b'\n', &bytes[at..]).map(|n| at + n));
    match newline {
        Some(newline) if newline > 0 && bytes[newline - 1] == b'\r' => "\r\n",
        _ => "\n",
    }
}

/// Returns `text` with the given line ending.
pub(super) fn with_newlines(text: &str, newline: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', newline)
}

/// Returns the white space at the start of a line.
pub(super) fn lead(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// Returns the indentation of the line that contains the byte at `at`.
pub(super) fn indent_at(bytes: &[u8], at: usize) -> String {
    let line = &bytes[line_start(bytes, at)..];
    line.iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t'))
        .map(|byte| char::from(*byte))
        .collect()
}

/// Returns the indentation of one level in a file: a tab, or the smallest difference of two or more blanks by which a
/// line is deeper than the one before.
pub(super) fn unit_of(bytes: &[u8]) -> String {
    let (mut n_tabs, mut steps, mut before) = (0, [0; 9], 0);
    for line in bytes.split(|byte| *byte == b'\n').take(MAX_LINES) {
        if line.trim_ascii().is_empty() {
            continue;
        }
        n_tabs += usize::from(line[0] == b'\t');
        let indent = line.iter().take_while(|byte| **byte == b' ').count();
        if let Some(count) = indent.checked_sub(before).and_then(|step| steps.get_mut(step)) {
            *count += 1;
        }
        before = indent;
    }
    let common = (2..9)
        .max_by_key(|step| (steps[*step], 9 - step))
        .filter(|step| steps[*step] > 0);
    match common {
        _ if n_tabs > steps[1..].iter().sum() => "\t".to_owned(),
        Some(step) => " ".repeat(step),
        None => DEFAULT_UNIT.to_owned(),
    }
}

/// Returns `text` without blank lines around it, indented for a place where lines start with `indent`. Line endings are
/// line feeds, and there is none at the end.
///
/// The white space that all lines start with is replaced by `indent`. If the first line is cut where its code starts,
/// and the others are indented as in the file, only the first line changes. Further indentation is converted between
/// tabs and blanks if the file uses the other one. Lines that lack the common white space stay as they are: directives,
/// and labels and texts at the margin.
pub(super) fn fitted(text: &str, indent: &str, unit: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let text = without_blank_ends(&text);
    let lines: Vec<&str> = text.split('\n').collect();
    let filled: Vec<&str> = lines.iter().copied().filter(|line| !line.trim().is_empty()).collect();
    let Some((first, rest)) = filled.split_first() else {
        return String::new();
    };
    if is_cut(first, rest, indent) {
        return format!("{indent}{text}");
    }
    let common = std::iter::once(first)
        .chain(rest.iter().filter(|line| !is_directive(line)))
        .map(|line| lead(line))
        .reduce(common_start)
        .unwrap_or_default();
    let step = filled
        .iter()
        .filter_map(|line| line.strip_prefix(common))
        .map(lead)
        .filter(|deeper| !deeper.contains('\t'))
        .map(str::len)
        .filter(|n_blanks| *n_blanks > 1)
        .min();
    let fit = |line: &&str| {
        let Some(line) = line.strip_prefix(common).filter(|line| !line.trim().is_empty()) else {
            return (*line).to_owned();
        };
        let deeper = lead(line);
        format!("{indent}{}{}", converted(deeper, unit, step), &line[deeper.len()..])
    };
    lines.iter().map(fit).collect::<Vec<_>>().join("\n")
}

/// Returns true if the first line starts at its code and the others are indented as in a file where the place has the
/// indentation `indent`.
fn is_cut(first: &str, rest: &[&str], indent: &str) -> bool {
    let Some(last) = rest.last().filter(|_| !indent.is_empty() && lead(first).is_empty()) else {
        return false;
    };
    let is_closed = last.strip_prefix(indent).is_some_and(is_closer);
    let is_level = rest.first().is_some_and(|line| lead(line) == indent) && !opens(first);
    let is_deeper = |line: &&str| lead(line).starts_with(indent) && lead(line).len() > indent.len();
    let is_inside = |line: &&str| lead(line).starts_with(indent);
    let mut code = rest.iter().filter(|line| !is_directive(line)).peekable();
    is_closed || code.peek().is_some() && (code.clone().all(is_deeper) || is_level && code.all(is_inside))
}

/// Returns true for a line that has no indentation wherever it is, as directives of C.
fn is_directive(line: &&&str) -> bool {
    line.starts_with('#')
}

/// Returns true if the next line is expected to be deeper. Comments, attributes and decorators open nothing.
fn opens(line: &str) -> bool {
    let line = line.trim_end();
    !line.starts_with(['/', '#', '@', '*', '-', '"', '[', '(', '<'])
        && (line.ends_with(['{', '(', '[', ':', ',', '=', '>', '|']) || line.ends_with("do"))
}

/// Returns true for a line that closes a construct.
pub(super) fn is_closer(line: &str) -> bool {
    let is_word = |word: &str| {
        line.strip_prefix(word)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    };
    line.starts_with(['}', ')', ']']) || line.starts_with("</") || is_word("end")
}

/// Converts indentation of blanks to tabs or the reverse, if the file's unit is the other one. `step` is the width of a
/// level in blanks.
fn converted(deeper: &str, unit: &str, step: Option<usize>) -> String {
    match step {
        Some(step) if unit == "\t" && !deeper.contains('\t') => {
            "\t".repeat(deeper.len() / step) + &" ".repeat(deeper.len() % step)
        }
        _ if unit != "\t" && deeper.bytes().all(|byte| byte == b'\t') => unit.repeat(deeper.len()),
        _ => deeper.to_owned(),
    }
}

fn common_start<'t>(one: &'t str, other: &'t str) -> &'t str {
    let n = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    &one[..n]
}

/// Returns `text` without blank lines at its start and white space at its end.
pub(super) fn without_blank_ends(text: &str) -> &str {
    let text = text.trim_end();
    let first = text.find(|c: char| !c.is_whitespace()).unwrap_or(0);
    &text[text[..first].rfind('\n').map_or(0, |newline| newline + 1)..]
}

/// Returns the part of a byte range without white space at its ends.
pub(super) fn trimmed(bytes: &[u8], range: Range<usize>) -> Range<usize> {
    let text = &bytes[range.clone()];
    let start = range.end - text.trim_ascii_start().len();
    start..(start + bytes[start..range.end].trim_ascii_end().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_fitted_to_the_indentation_of_its_place() {
        for (text, indent, unit, fits) in [
            ("a {\n  b\n}", "    ", "    ", "    a {\n      b\n    }"),
            (
                "\n\n        a {\n            b\n        }\n\n",
                "    ",
                "    ",
                "    a {\n        b\n    }",
            ),
            ("a {\n        b\n    }", "    ", "    ", "    a {\n        b\n    }"),
            ("def a():\n    b", "    ", "    ", "    def a():\n        b"),
            ("/// x:\n    a: 1,", "    ", "    ", "    /// x:\n    a: 1,"),
            (
                "def a():\n        b\n\n        c",
                "    ",
                "    ",
                "    def a():\n        b\n\n        c",
            ),
            (
                "a {\r\n    b {\r\n        c\r\n    }\r\n}\r\n",
                "\t",
                "\t",
                "\ta {\n\t\tb {\n\t\t\tc\n\t\t}\n\t}",
            ),
            ("a {\n\tb\n}", "", "  ", "a {\n  b\n}"),
            (" ", "  ", "  ", ""),
        ] {
            assert_eq!(fitted(text, indent, unit), fits, "{text:?}");
        }
    }

    #[test]
    fn the_unit_of_indentation_is_found() {
        for (text, unit) in [
            ("a\n  b\n    c\n  d\n", "  "),
            ("a\n    b\n", "    "),
            ("a\n\tb\n\t\tc\n", "\t"),
            ("a\nb\n", "    "),
            ("/*\n * x\n */\na {\n   b\n}\n", "   "),
        ] {
            assert_eq!(unit_of(text.as_bytes()), unit, "{text:?}");
        }
    }

    #[test]
    fn line_endings_are_those_around_a_place() {
        let mixed = b"\xef\xbb\xbfa\r\nb\nc";
        assert_eq!([3, 6, 8].map(|at| newline_at(mixed, at)), ["\r\n", "\r\n", "\n"]);
        assert_eq!(
            (line_start(mixed, 4), line_end(mixed, 3), next_line(mixed, 3)),
            (3, 4, 6)
        );
        assert_eq!(newline_at(b"a", 1), "\n");
    }
}
