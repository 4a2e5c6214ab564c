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

/// Returns the end of the comments at the start of a file that concern the file: an interpreter, an encoding, a
/// licence. Comments of documentation belong to what follows them.
pub(super) fn head_of(bytes: &[u8]) -> usize {
    let (mut at, mut head) = (bom_len(bytes), bom_len(bytes));
    while at < bytes.len() {
        let line = bytes[at..line_end(bytes, at)].trim_ascii();
        let end = if line.is_empty() {
            at = next_line(bytes, at);
            continue;
        } else if line.starts_with(b"#!") && !line.starts_with(b"#![")
            || has_word(line, &MAGIC_WORDS) && is_remark(line)
        {
            next_line(bytes, at)
        } else {
            end_of_remark(bytes, at)
        };
        let is_of_file =
            |block: &[u8]| block.starts_with(b"#!") || has_word(block, &MAGIC_WORDS) || has_word(block, &LICENCE_WORDS);
        if end == at || !is_of_file(&bytes[at..end]) {
            break;
        }
        (at, head) = (end, end);
    }
    head
}

/// Marks of comments up to the end of the line.
const LINE_MARKS: [&[u8]; 4] = [b"//", b"#", b"--", b";"];
/// Marks around comments.
const BLOCK_MARKS: [(&[u8], &[u8]); 4] = [(b"/*", b"*/"), (b"<!--", b"-->"), (b"(*", b"*)"), (b"{-", b"-}")];
/// Words of a line that programs read.
const MAGIC_WORDS: [&str; 4] = ["-*-", "coding:", "coding=", "frozen_string_literal"];
const LICENCE_WORDS: [&str; 4] = ["copyright", "license", "licence", "spdx"];

fn has_word(text: &[u8], words: &[&str]) -> bool {
    let text = String::from_utf8_lossy(text).to_ascii_lowercase();
    words.iter().any(|word| text.contains(word))
}

/// Returns true for a line with a comment up to its end that is no documentation.
fn is_remark(line: &[u8]) -> bool {
    let others: [&[u8]; 3] = [b"///", b"//!", b"#["];
    LINE_MARKS.iter().any(|mark| line.starts_with(mark)) && !others.iter().any(|mark| line.starts_with(mark))
}

/// Returns the end of the lines of the comment at `at`, or `at` if there is none.
fn end_of_remark(bytes: &[u8], at: usize) -> usize {
    let marks = BLOCK_MARKS.iter().find(|(open, _)| bytes[at..].starts_with(open));
    if let Some((open, close)) = marks {
        let end = memchr::memmem::find(&bytes[at + open.len()..], close);
        let end = end.map_or(at, |end| at + open.len() + end + close.len());
        let is_alone = end > at && bytes[end..line_end(bytes, end)].trim_ascii().is_empty();
        return if is_alone { next_line(bytes, end) } else { at };
    }
    let mut end = at;
    while end < bytes.len() && is_remark(&bytes[end..line_end(bytes, end)]) {
        end = next_line(bytes, end);
    }
    end
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
/// line feeds, and there is none at the end. `old` is the text that it replaces.
///
/// The white space that all lines start with is replaced by `indent`. If the first line is cut where its code starts,
/// and the others are indented as in the file, only the first line changes. Further indentation is converted between
/// tabs and blanks if the text has only the other one. Lines that lack the common white space stay as they are:
/// directives, and labels and texts at the margin.
pub(super) fn fitted(text: &str, indent: &str, unit: &str, old: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let text = without_blank_ends(&text);
    let lines: Vec<&str> = text.split('\n').collect();
    let filled: Vec<&str> = lines.iter().copied().filter(|line| !line.trim().is_empty()).collect();
    let Some((first, rest)) = filled.split_first() else {
        return String::new();
    };
    let is_known = is_known(rest, indent, old);
    if lead(first).is_empty() && (is_known || is_cut(first, rest, indent)) {
        return format!("{indent}{text}");
    }
    if is_known && lead(first) == indent {
        return text.to_owned();
    }
    let common = std::iter::once(first)
        .chain(rest.iter().filter(|line| !is_directive(line)))
        .map(|line| lead(line))
        .reduce(common_start)
        .unwrap_or_default();
    let deeper: Vec<&str> = filled
        .iter()
        .filter_map(|line| line.strip_prefix(common))
        .map(lead)
        .collect();
    let width = |lead: &&str| Some(lead.len()).filter(|n_blanks| *n_blanks > 1);
    let conversion = match unit {
        "\t" if !deeper.iter().any(|lead| lead.contains('\t')) => {
            deeper.iter().filter_map(width).min().map(Conversion::ToTabs)
        }
        "\t" => None,
        unit => (!deeper.iter().any(|lead| lead.contains(' '))).then_some(Conversion::ToBlanks(unit)),
    };
    let fit = |line: &&str| {
        let Some(line) = line.strip_prefix(common).filter(|line| !line.trim().is_empty()) else {
            return (*line).to_owned();
        };
        let deeper = lead(line);
        format!("{indent}{}{}", converted(deeper, conversion), &line[deeper.len()..])
    };
    lines.iter().map(fit).collect::<Vec<_>>().join("\n")
}

/// Returns true if lines of a text are those that it replaces, so that their indentation is right.
fn is_known(rest: &[&str], indent: &str, old: &str) -> bool {
    let old: std::collections::HashSet<&str> = old.lines().collect();
    // A line at the margin, such as a closing brace, says nothing about the indentation of others.
    let n_same = rest
        .iter()
        .filter(|line| !lead(line).is_empty() && old.contains(**line))
        .count();
    let n_shifted = rest
        .iter()
        .filter(|line| old.contains(&*format!("{indent}{line}")))
        .count();
    n_same > 0 && (indent.is_empty() || n_same > n_shifted)
}

/// Returns true if the first line starts at its code and the others are indented as in a file where the place has the
/// indentation `indent`: all are deeper, or the first of those that are not closes what the first line opens, or follows
/// it at the same level.
fn is_cut(first: &str, rest: &[&str], indent: &str) -> bool {
    let Some(last) = rest.last().filter(|_| !indent.is_empty()) else {
        return false;
    };
    let mut code = rest.iter().filter(|line| !is_directive(line));
    let is_inside = code.clone().all(|line| lead(line).starts_with(indent)) && code.clone().next().is_some();
    let is_next = |line: &&str| is_closer(&line[indent.len()..]) || !opens(first);
    last.strip_prefix(indent).is_some_and(is_closer)
        || is_inside && code.find(|line| lead(line) == indent).is_none_or(is_next)
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

/// The way in which the indentation of a text is converted.
#[derive(Clone, Copy)]
enum Conversion<'a> {
    /// Each run of so many blanks becomes a tab.
    ToTabs(usize),
    /// Each tab becomes this unit.
    ToBlanks(&'a str),
}

fn converted(deeper: &str, conversion: Option<Conversion<'_>>) -> String {
    match conversion {
        Some(Conversion::ToTabs(width)) => "\t".repeat(deeper.len() / width) + &" ".repeat(deeper.len() % width),
        Some(Conversion::ToBlanks(unit)) => unit.repeat(deeper.len()),
        None => deeper.to_owned(),
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
            assert_eq!(fitted(text, indent, unit, ""), fits, "{text:?}");
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
