//! Decodes escapes, joins continued lines and replaces characters that look like ASCII or are invisible, so that the
//! forms need not name them.

/// Limit on the neighbouring letters of this kind.
const MAX_LOOKALIKES: usize = 16;
/// Cyrillic and Greek letters that look like Latin ones, with those.
const LOOKALIKES: &str = "аaеeоoрpсcхxуyѕsіiјjοoαa";
/// Character references of HTML and XML, with their characters.
const ENTITIES: &str = "quot\" apos' amp& lt< gt> equals= colon: nbsp\u{a0}";
/// An escape in a URL, in HTML or in a string, or the end of a line that continues. `%25` may escape the sign again.
const ESCAPE: &str = r"(?:%(?:25)*|\\x|\\u00)(?<hex>[2-7][0-9a-fA-F])|&(?:amp;)*(?:#[xX](?<entity_hex>[0-9a-fA-F]{2})|#(?<decimal>[0-9]{2,3})|(?<entity>[a-z]{2,6}));|\\\r?\n[ \t]*";

/// Returns the plain form of a text with the position in the text of each byte and of the end, if it differs.
pub(super) fn folded(text: &str) -> Option<(String, Vec<usize>)> {
    let unusual = form!(&format!(r"[\x0b\x1b]|\r[^\n]|{ESCAPE}"));
    let unusual_letters = form!(
        "[\u{a0}\u{ad}\u{200b}-\u{203f}\u{2060}\u{3000}\u{feff}\u{ff00}-\u{ff5e}«»→]|[A-Za-z][а-ѿο]|[а-ѿο][A-Za-z]"
    );
    if !unusual.is_match(text) && (text.is_ascii() || !unusual_letters.is_match(text)) {
        return None;
    }
    let (mut folded, mut origins, mut at) = (String::with_capacity(text.len()), Vec::new(), 0);
    while let Some(first) = text[at..].chars().next() {
        let (plain, n_bytes) = escaped(&text[at..]).unwrap_or_else(|| plain(text, at, first));
        folded.extend(plain);
        origins.resize(folded.len(), at);
        at += n_bytes;
    }
    origins.push(at);
    Some((folded, origins))
}

/// Returns the character of an escape at the start of `text`, if it is visible, and the number of bytes of the escape.
fn escaped(text: &str) -> Option<(Option<char>, usize)> {
    if !text.starts_with(['%', '&', '\\']) {
        return None;
    }
    let escape = form!(&format!(r"\A(?:{ESCAPE})")).captures(text)?;
    let number = |name: &str, radix: u32| u32::from_str_radix(escape.name(name)?.as_str(), radix).ok();
    let code = number("hex", 16)
        .or_else(|| number("entity_hex", 16))
        .or_else(|| number("decimal", 10));
    let named = |name: &str| {
        ENTITIES
            .split(' ')
            .find_map(|entity| entity.strip_prefix(name)?.chars().next())
    };
    let c = match (code, escape.name("entity")) {
        (Some(code), _) => Some(char::from_u32(code)?),
        (_, Some(name)) => Some(named(name.as_str())?),
        _ => None,
    };
    Some((c, escape[0].len()))
}

/// Returns the plain form of the character `c` at `at`, if it is visible, and the number of bytes that it replaces.
fn plain(text: &str, at: usize, c: char) -> (Option<char>, usize) {
    let ansi = form!(r"\A\x1b\[[0-9;]*[A-Za-z]");
    let rest = &text[at..];
    let is_latin = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphabetic());
    let is_plain = |c: &char| c.is_ascii() || !LOOKALIKES.contains(*c);
    let before = || text[..at].chars().rev().take(MAX_LOOKALIKES).find(is_plain);
    let after = || rest.chars().take(MAX_LOOKALIKES).find(is_plain);
    let is_mixed = || is_latin(before()) || is_latin(after());
    let found = match c {
        '\x1b' => return (None, ansi.find(rest).map_or(1, |code| code.len())),
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
