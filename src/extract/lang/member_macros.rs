//! Finds macros between the members of C++ classes, which the grammar takes for the type of the next member, and macros
//! that open a namespace.

use std::ops::Range;

use super::cpp::after_arguments;
use super::text::{is_screaming, is_word_byte};

/// Returns ranges to replace by spaces, and what to put at their start: words in capital letters that begin a member
/// and end the line, also with arguments (`Q_OBJECT`, `GENERATED_BODY()`), labels of Qt, and words in capital letters
/// above a type outside of brackets (`LIBRARY_NAMESPACE_BEGIN`).
pub(super) fn find(text: &[u8]) -> Vec<(Range<usize>, &'static [u8])> {
    let mut scan = Scan {
        text,
        at: 0,
        open: Vec::new(),
        start: None,
        found: Vec::new(),
    };
    while let Some(&byte) = text.get(scan.at) {
        scan.step(byte);
    }
    scan.found
}

struct Scan<'a> {
    text: &'a [u8],
    at: usize,
    /// For each open bracket, true if it is that of a class.
    open: Vec<bool>,
    /// The start of the current statement or member, after its first token.
    start: Option<usize>,
    found: Vec<(Range<usize>, &'static [u8])>,
}

impl Scan<'_> {
    fn step(&mut self, byte: u8) {
        let rest = &self.text[self.at..];
        let is_in_class = self.open.last() == Some(&true);
        match byte {
            b'/' if rest.starts_with(b"//") => self.at = line_end(self.text, self.at),
            b'/' if rest.starts_with(b"/*") => {
                self.at += memchr::memmem::find(rest, b"*/").map_or(rest.len(), |end| end + 2);
            }
            b'#' if self.start.is_none() => self.at = line_end(self.text, self.at),
            b'"' | b'\'' => self.literal(byte),
            b'{' => {
                let head = &self.text[self.start.unwrap_or(self.at)..self.at];
                self.enter(is_class_head(head));
                self.start = None;
            }
            b'(' | b'[' => self.enter(false),
            b')' | b']' => self.leave(),
            b'}' => {
                self.leave();
                self.start = None;
            }
            b';' => {
                self.at += 1;
                self.start = None;
            }
            b':' if is_in_class && !rest.starts_with(b"::") => self.label(),
            _ if is_word_byte(byte) => self.word(is_in_class),
            b':' if rest.starts_with(b"::") => self.at += 2,
            _ => {
                if !byte.is_ascii_whitespace() {
                    self.begin();
                }
                self.at += 1;
            }
        }
    }

    fn begin(&mut self) -> usize {
        *self.start.get_or_insert(self.at)
    }

    fn enter(&mut self, is_class: bool) {
        self.begin();
        self.open.push(is_class);
        self.at += 1;
    }

    fn leave(&mut self) {
        self.open.pop();
        self.at += 1;
    }

    /// Skips a string or a character.
    fn literal(&mut self, quote: u8) {
        let rest = &self.text[self.at + 1..];
        if quote == b'"' && self.text[..self.at].ends_with(b"R") {
            let delimiter = rest
                .iter()
                .position(|byte| *byte == b'(')
                .filter(|length| *length <= 16);
            let end = delimiter.map(|length| [b")", &rest[..length], b"\""].concat());
            let at = end
                .as_ref()
                .and_then(|end| Some(memchr::memmem::find(rest, end)? + end.len()));
            if let Some(end) = at {
                self.at += 1 + end;
                return;
            }
        }
        // `1'000` is a number, and a string ends with its line.
        let is_separator = quote == b'\''
            && self
                .at
                .checked_sub(1)
                .is_some_and(|before| is_word_byte(self.text[before]));
        let mut is_escaped = false;
        let end = rest.iter().position(|byte| {
            let ends = !is_escaped && (*byte == quote || *byte == b'\n');
            is_escaped = *byte == b'\\' && !is_escaped;
            ends
        });
        self.begin();
        self.at += if is_separator {
            1
        } else {
            end.map_or(rest.len(), |end| end + 1) + 1
        };
    }

    fn word(&mut self, is_in_class: bool) {
        let begins = self.start.is_none();
        let start = self.at;
        self.begin();
        self.at += self.text[start..]
            .iter()
            .take_while(|byte| is_word_byte(**byte))
            .count();
        let name = std::str::from_utf8(&self.text[start..self.at]).unwrap_or_default();
        if begins && self.open.is_empty() && is_screaming(name) && begins_above_type(&self.text[self.at..]) {
            self.found.push((start..self.at, b""));
            self.start = None;
        }
        if !begins || !is_in_class || !is_screaming(name) {
            return;
        }
        let Some(end) = after_arguments(self.text, self.at) else {
            return;
        };
        let (line, below) = self.text[end..].split_at(memchr::memchr(b'\n', &self.text[end..]).unwrap_or_default());
        let is_last = line.trim_ascii().is_empty() || line.trim_ascii().starts_with(b"//");
        let next = below.trim_ascii_start().first();
        if is_last && next.is_some_and(|byte| is_word_byte(*byte) || b"}~#/[".contains(byte)) {
            self.found.push((start..end, b""));
            self.at = end;
            self.start = None;
        }
    }

    /// Ends a label such as `public:`, `public slots:` and `signals:`.
    fn label(&mut self) {
        let start = self.begin();
        let words = &self.text[start..self.at];
        let length = words.iter().take_while(|byte| is_word_byte(**byte)).count();
        let (first, second) = words.split_at(length);
        match (first, second.trim_ascii()) {
            (b"public" | b"protected" | b"private", b"") => self.start = None,
            (b"public" | b"protected" | b"private", b"slots" | b"Q_SLOTS") => {
                self.found.push((start + length..self.at, b""));
                self.start = None;
            }
            (b"signals" | b"Q_SIGNALS", b"") => {
                self.found.push((start..start + length, b"public"));
                self.start = None;
            }
            _ => {}
        }
        self.at += 1;
    }
}

/// Returns the end of the line that contains `at`, or of the last line that continues it.
pub(super) fn line_end(text: &[u8], at: usize) -> usize {
    let ends = memchr::memchr_iter(b'\n', &text[at..]).map(|end| at + end);
    let goes_on = |end: usize| [&b"\\"[..], b"\\\r"].iter().any(|mark| text[..end].ends_with(mark));
    ends.into_iter().find(|end| !goes_on(*end)).unwrap_or(text.len())
}

/// Returns true if the line ends here, and the next code is a template, a type or a namespace.
fn begins_above_type(text: &[u8]) -> bool {
    let length = memchr::memchr(b'\n', text).unwrap_or(text.len());
    let (line, mut below) = text.split_at(length);
    if !line.trim_ascii().is_empty() {
        return false;
    }
    loop {
        below = below.trim_ascii_start();
        let comment = match below {
            [b'/', b'/', ..] => memchr::memchr(b'\n', below),
            [b'/', b'*', ..] => memchr::memmem::find(below, b"*/").map(|end| end + 2),
            _ => break,
        };
        below = &below[comment.unwrap_or(below.len())..];
    }
    let length = below.iter().take_while(|byte| is_word_byte(**byte)).count();
    matches!(
        &below[..length],
        b"template" | b"class" | b"struct" | b"union" | b"enum" | b"namespace"
    )
}

/// Returns true for the text before the brace of a class: `template <class T> class A : public B`.
fn is_class_head(mut head: &[u8]) -> bool {
    loop {
        head = head.trim_ascii_start();
        let length = head.iter().take_while(|byte| is_word_byte(**byte)).count();
        let (word, rest) = head.split_at(length);
        head = match word {
            b"class" | b"struct" | b"union" => break,
            b"template" => after_angles(rest),
            b"typedef" | b"static" | b"const" | b"export" | b"friend" => rest,
            _ if std::str::from_utf8(word).is_ok_and(is_screaming) => rest,
            _ => return false,
        };
    }
    !head.contains(&b'=') && !head.trim_ascii_end().ends_with(b")")
}

/// Returns the text after the parameters of a template.
fn after_angles(text: &[u8]) -> &[u8] {
    let mut depth = 0;
    let end = text.iter().position(|byte| {
        depth += i32::from(*byte == b'<') - i32::from(*byte == b'>');
        depth == 0 && *byte == b'>'
    });
    end.map_or(&[], |end| &text[end + 1..])
}
