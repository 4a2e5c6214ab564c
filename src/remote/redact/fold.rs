//! Replaces characters that look like ASCII, or are invisible, so that the forms need not name them.

/// Cyrillic and Greek letters that look like Latin ones, with those.
/// Limit on the neighbouring letters of this kind.
const MAX_LOOKALIKES: usize = 16;
const LOOKALIKES: &str = "аaеeоoрpсcхxуyѕsіiјjοoαa";

/// Returns the plain form of a text with the position in the text of each byte and of the end, if it differs.
pub(super) fn folded(text: &str) -> Option<(String, Vec<usize>)> {
    let unusual = form!(
        "[\u{a0}\u{ad}\u{200b}-\u{203f}\u{2060}\u{3000}\u{feff}\u{ff00}-\u{ff5e}«»→\x0b\x1b]|\r[^\n]|\\\\u00|[A-Za-z][а-ѿο]|[а-ѿο][A-Za-z]"
    );
    let is_control = |byte: u8| matches!(byte, b'\x0b' | b'\x1b' | b'\r');
    let is_plain = text.is_ascii() && !text.bytes().any(is_control) && !text.contains("\\u00");
    if is_plain || !unusual.is_match(text) {
        return None;
    }
    let (mut folded, mut origins, mut at) = (String::with_capacity(text.len()), Vec::new(), 0);
    while let Some(first) = text[at..].chars().next() {
        let (plain, n_bytes) = plain(text, at, first);
        folded.extend(plain);
        origins.resize(folded.len(), at);
        at += n_bytes;
    }
    origins.push(at);
    Some((folded, origins))
}

/// Returns the plain form of the character `c` at `at`, if it is visible, and the number of bytes that it replaces.
fn plain(text: &str, at: usize, c: char) -> (Option<char>, usize) {
    let ansi = form!(r"\A\x1b\[[0-9;]*[A-Za-z]");
    let escape = form!(r"\A\\u00([2-7][0-9a-fA-F])");
    let rest = &text[at..];
    let is_latin = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphabetic());
    let is_plain = |c: &char| c.is_ascii() || !LOOKALIKES.contains(*c);
    let before = || text[..at].chars().rev().take(MAX_LOOKALIKES).find(is_plain);
    let after = || rest.chars().take(MAX_LOOKALIKES).find(is_plain);
    let is_mixed = || is_latin(before()) || is_latin(after());
    let found = match c {
        '\x1b' => return (None, ansi.find(rest).map_or(1, |code| code.len())),
        '\\' => {
            let code = escape
                .captures(rest)
                .and_then(|code| u8::from_str_radix(&code[1], 16).ok());
            return code.map_or((Some(c), 1), |code| (Some(char::from(code)), 6));
        }
        '\r' if !rest.starts_with("\r\n") => Some('\n'),
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' => None,
        '\u{a0}' | '\u{3000}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\x0b' => Some(' '),
        '‘' | '’' => Some('\''),
        '“' | '”' | '«' | '»' => Some('"'),
        '→' => Some('='),
        '–' | '—' => Some('-'),
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0),
        _ if !c.is_ascii() && is_mixed() => {
            let pair = LOOKALIKES.chars().skip_while(|like| *like != c).nth(1);
            Some(pair.filter(char::is_ascii).unwrap_or(c))
        }
        _ => Some(c),
    };
    (found, c.len_utf8())
}
