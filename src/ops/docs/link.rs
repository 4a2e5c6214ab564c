//! Reads and writes the targets of links. Nothing here knows which files exist.

use std::borrow::Cow;
use std::fmt::Write;
use std::ops::Range;

/// Limit on the length of the target of a link in bytes, which is that of paths.
pub(super) const MAX_LINK_BYTES: usize = 4 << 10;
/// Limit on the nesting of parentheses in a target, which is that of cmark.
const MAX_DEPTH: usize = 32;
/// The entities of HTML that stand for characters of paths.
const ENTITIES: [(&[u8], u8); 5] = [
    (b"&amp;", b'&'),
    (b"&lt;", b'<'),
    (b"&gt;", b'>'),
    (b"&quot;", b'"'),
    (b"&apos;", b'\''),
];

/// How a document writes a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Spelling {
    /// As it is, in backticks.
    Quoted,
    /// As it is, up to white space.
    Argument,
    /// As a URL, up to white space.
    Url,
    /// As a URL between `<` and `>`, which may contain spaces.
    Bracketed,
}

impl Spelling {
    /// Returns the path or fragment that is written as `text`. An escape that is malformed or not UTF-8 stays.
    pub(super) fn read(self, text: &str) -> Cow<'_, str> {
        if !self.is_url() || !text.contains(['%', '\\', '&']) {
            return Cow::Borrowed(text);
        }
        let (bytes, mut read, mut at) = (text.as_bytes(), Vec::new(), 0);
        while at < bytes.len() {
            let (byte, n_bytes) = escape(&bytes[at..]).unwrap_or((bytes[at], 1));
            read.push(byte);
            at += n_bytes;
        }
        String::from_utf8(read).map_or(Cow::Borrowed(text), Cow::Owned)
    }

    /// Returns the text for a path that replaces `old`, with the parts of `old` that stay as they are written there;
    /// `None` if the path cannot be written.
    pub(super) fn write(self, path: &str, old: &str) -> Option<String> {
        let is_end = |c: char| c.is_control() || "`<>".contains(c) || self == Self::Argument && c.is_whitespace();
        if !self.is_url() {
            return (!path.contains(is_end)).then(|| path.to_owned());
        }
        let is_alone = |part: &&str| destination(part, 0) == Some((0..part.len(), Self::Url)) && !part.contains(':');
        let parts = path.split('/').map(|part| {
            let mut known = old.split('/').filter(is_alone);
            let known = known.find(|old| self.read(old) == part);
            known.map_or_else(|| Cow::Owned(self.encoded(part)), Cow::Borrowed)
        });
        Some(parts.collect::<Vec<_>>().join("/"))
    }

    fn is_url(self) -> bool {
        matches!(self, Self::Url | Self::Bracketed)
    }

    /// Percent-encodes all that could end a link, or mean something else in it or around it.
    fn encoded(self, part: &str) -> String {
        let is_kept = |c: char| c.is_alphanumeric() || "-._~@+,=[]".contains(c) || self == Self::Bracketed && c == ' ';
        let mut text = String::with_capacity(part.len());
        for c in part.chars() {
            if is_kept(c) {
                text.push(c);
                continue;
            }
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                write!(text, "%{byte:02X}").expect("strings can be written");
            }
        }
        text
    }
}

/// Decodes the escape at the start of a text. Returns the byte and the length of the escape.
fn escape(text: &[u8]) -> Option<(u8, usize)> {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    match *text {
        [b'%', high, low, ..] => Some(((digit(high)? * 16 + digit(low)?) as u8, 3)),
        [b'\\', mark, ..] if mark.is_ascii_punctuation() => Some((mark, 2)),
        [b'&', ..] => {
            let entity = ENTITIES.iter().find(|(entity, _)| text.starts_with(entity))?;
            Some((entity.1, entity.0.len()))
        }
        _ => None,
    }
}

/// Returns the range of the destination of a Markdown link that begins at `at`, after white space of up to two lines.
/// `None` if it does not end or is too long.
///
/// Source: CommonMark 0.31, section 6.3. As parentheses nest to a limit, reading all destinations of a text takes
/// linear time.
pub(super) fn destination(text: &str, at: usize) -> Option<(Range<usize>, Spelling)> {
    let rest = &text.as_bytes()[at..];
    let n_blank = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    if rest[..n_blank].iter().filter(|byte| **byte == b'\n').count() > 1 {
        return None;
    }
    let (start, rest) = (at + n_blank, &rest[n_blank..]);
    let rest = &rest[..rest.len().min(MAX_LINK_BYTES + 2)];
    let (start, n_bytes, spelling) = match rest {
        [b'<', rest @ ..] => (start + 1, bracketed_length(rest)?, Spelling::Bracketed),
        _ => (start, bare_length(rest)?, Spelling::Url),
    };
    (n_bytes <= MAX_LINK_BYTES).then_some((start..start + n_bytes, spelling))
}

fn bracketed_length(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match text.get(at)? {
            b'>' => return Some(at),
            b'<' | b'\n' => return None,
            _ => at += length_at(&text[at..]),
        }
    }
}

fn bare_length(text: &[u8]) -> Option<usize> {
    let (mut at, mut depth) = (0, 0);
    loop {
        match text.get(at) {
            None | Some(0..=b' ') => return (depth == 0).then_some(at),
            Some(b')') if depth == 0 => return Some(at),
            Some(b'(') if depth == MAX_DEPTH => return None,
            Some(b'(') => depth += 1,
            Some(b')') => depth -= 1,
            _ => {}
        }
        at += length_at(&text[at..]);
    }
}

/// Returns the length of the byte or escaped mark at the start of a text.
fn length_at(text: &[u8]) -> usize {
    match text {
        [b'\\', mark, ..] if mark.is_ascii_punctuation() => 2,
        _ => 1,
    }
}

/// Returns the range of the value of an attribute of HTML whose `=` is at `at`.
pub(super) fn attribute_value(text: &str, at: usize) -> Range<usize> {
    let bytes = text.as_bytes();
    let n_blank = bytes[at + 1..].iter().take_while(|byte| byte.is_ascii_whitespace());
    let start = at + 1 + n_blank.count();
    match bytes.get(start) {
        Some(quote @ (b'"' | b'\'')) => {
            let n_bytes = memchr::memchr(*quote, &bytes[start + 1..]).unwrap_or(0);
            start + 1..start + 1 + n_bytes
        }
        _ => {
            let is_part = |byte: &&u8| !byte.is_ascii_whitespace() && **byte != b'>';
            start..start + bytes[start..].iter().take_while(is_part).count()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_ends_where_its_link_ends() {
        for (text, expected) in [
            ("a.md)", Some("a.md")),
            ("a.md \"t (x)\")", Some("a.md")),
            ("\n  a(1)(b(2)).md) c)", Some("a(1)(b(2)).md")),
            (r"a\).md)", Some(r"a\).md")),
            ("<a b>)", Some("a b")),
            (r"<a\>b (c>", Some(r"a\>b (c")),
            ("", Some("")),
            ("a(b", None),
            ("<a b", None),
            ("<a\nb>", None),
            ("\n\na", None),
        ] {
            let found = destination(text, 0).map(|(range, _)| &text[range]);
            assert_eq!(found, expected, "{text}");
        }
        let nested = |depth: usize| destination(&format!("{}{}", "(".repeat(depth), ")".repeat(depth)), 0);
        assert!(nested(MAX_DEPTH).is_some() && nested(MAX_DEPTH + 1).is_none());
        let long = |n_bytes| destination(&"é".repeat(n_bytes / 2), 0);
        assert!(long(MAX_LINK_BYTES).is_some() && long(MAX_LINK_BYTES + 2).is_none());
    }

    #[test]
    fn escapes_are_read() {
        for (text, expected) in [
            ("a%20b", "a b"),
            ("%C3%bcn", "ün"),
            (r"a\(b\_c", "a(b_c"),
            ("a&amp;b", "a&b"),
            ("100%", "100%"),
            ("%ff%20", "%ff%20"),
            ("a%+1", "a%+1"),
        ] {
            assert_eq!(Spelling::Url.read(text), expected, "{text}");
            assert_eq!(Spelling::Quoted.read(text), text);
        }
    }

    #[test]
    fn written_paths_are_read_as_they_were() {
        for path in [
            "a b/c.md",
            "a(b",
            "a)b(c",
            "<a>",
            "a\"b'c`d",
            "50% off?#1.md",
            r"a\b",
            "a&amp;b",
            "a:b",
            "ün\u{a0}x\u{301}",
            "[id].md",
            "a|b*c_d",
        ] {
            for spelling in [Spelling::Url, Spelling::Bracketed] {
                let text = spelling.write(path, "old").unwrap_or_default();
                assert_eq!(spelling.read(&text), path, "{text}");
                assert!(!text.contains(['<', '>', '"', '\'', '`', '?', '#', ':', '|']), "{text}");
                if spelling == Spelling::Url {
                    assert_eq!(destination(&text, 0), Some((0..text.len(), spelling)), "{text}");
                }
            }
        }
    }

    #[test]
    fn parts_that_stay_keep_their_spelling() {
        let url = |path, old| Spelling::Url.write(path, old);
        assert_eq!(
            url("b/ü (1).md", "a/%C3%BC%20(1).md").as_deref(),
            Some("b/%C3%BC%20(1).md")
        );
        // Parentheses are balanced only together, and a colon in the first part would be that of a scheme.
        assert_eq!(url("x/(a", "(a/b)").as_deref(), Some("x/%28a"));
        assert_eq!(url("x:y", "a/x:y").as_deref(), Some("x%3Ay"));
        assert_eq!(Spelling::Bracketed.write("a b/(c", "x/y").as_deref(), Some("a b/%28c"));
    }

    #[test]
    fn paths_outside_of_links_are_not_encoded() {
        assert_eq!(Spelling::Quoted.write("a b(c)", "x").as_deref(), Some("a b(c)"));
        assert_eq!(Spelling::Quoted.write("a`b", "x"), None);
        assert_eq!(Spelling::Argument.write("a(b)%", "x").as_deref(), Some("a(b)%"));
        assert_eq!(Spelling::Argument.write("a b", "x"), None);
    }

    #[test]
    fn values_of_attributes_have_quotes_or_none() {
        for (text, expected) in [
            ("=\"a b\" c", "a b"),
            ("= 'a\"b'>", "a\"b"),
            ("=a/b.md>", "a/b.md"),
            ("=\"a", ""),
            ("=", ""),
        ] {
            assert_eq!(&text[attribute_value(text, 0)], expected, "{text}");
        }
    }
}
