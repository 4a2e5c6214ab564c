//! Finds values in code and settings, and decides whether they look like secrets.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::name::sounds_secret;

/// Minimum length of a secret in quotes. Shorter texts are punctuation or abbreviations.
const MIN_LITERAL_BYTES: usize = 4;
/// Minimum length of a secret without quotes. Shorter words are usually names in code.
const MIN_WORD_BYTES: usize = 6;
/// Maximum distance of a literal from the beginning of its expression.
const MAX_BYTES: usize = 2 << 10;
/// Maximum depth of nested brackets. Handwritten code does not exceed it.
const MAX_DEPTH: usize = 32;

/// A string literal in any language, with its content as the group that matches. One that does not end on its line
/// extends to the next quote or to the end of the text.
pub(super) const QUOTED: &str = r##"(?:\b[bBrRuUfFlLN]{1,2}|[@$])?(?:"""((?s:.)*?)(?:"""|\z)|'''((?s:.)*?)(?:'''|\z)|\\"((?:[^"\\\n]|\\\\\\"|\\[^"\n])*)\\"|\\+"((?:[^"\\\n]|\\[^"\n])*)\\+"|#"((?:[^"\n]|"[^#\n])*)"#|"((?:[^"\\\n]|\\.|"")*)"|'((?:[^'\\\n]|\\.|'')*)'|`([^`]+)(?:`|\z)|"((?:[^"\\]|\\(?s:.))*)(?:"|\z)|\bqq?\s?[{(\[<]([^{}()\[\]<>\n]+)[})\]>]|%[qQ][{(\[|]([^{}()\[\]|\n]+)[})\]|]|\[=*\[([^\[\]"',]{4,})\]=*\])"##;

/// A list of bytes or characters.
pub(super) const BYTES: &str =
    r"\A[\w\s<>\[\]:&*.!(]*[\[{(]\s*((?:(?:0x[0-9a-fA-F]{1,2}|[0-9]{1,3}|'[^'\n]'),?\s*){4,})[\]})]";

static LITERAL: LazyLock<Regex> = LazyLock::new(|| Regex::new(QUOTED).expect("the forms are tested"));
static FIRST_LITERAL: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(&format!(r"\A(?:{QUOTED})")).expect("the forms are tested"));

/// Determines which words count as secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Trust {
    Never,
    /// Only keys: long hexadecimal numbers, and words of letters and digits that change as in random words.
    Key,
    /// Only words in which letters and digits alternate: `a1b2c3`.
    Mixed,
    /// Only words that do not look like names: `a1b2c3d4`, `hunter22`.
    Random,
    /// Words that do not look like names, numbers, and words with dashes.
    NotName,
    /// Words that are alone on the rest of their line.
    Entry,
    /// Any word that is not an expression or a name such as `new_password`.
    Any,
    /// Any text that does not refer to a value.
    All,
}

impl Trust {
    /// Returns the trust with this name in a table.
    pub(super) fn of(name: &str) -> Self {
        match name {
            "key" => Self::Key,
            "mixed" => Self::Mixed,
            "random" => Self::Random,
            "notname" => Self::NotName,
            "entry" => Self::Entry,
            "any" => Self::Any,
            "all" => Self::All,
            _ => Self::Never,
        }
    }
}

/// Finds the string literals from `at` to the end of the statement or entry, or the end of the enclosing brackets.
/// With `in_brackets`, `at` is behind an opening bracket.
///
/// Includes literals in brackets and arguments of constructors (`Some("…")`, `new Password("…")`) and of calls that
/// give a default, but not keys in braces. Those of another call or an index count only if they look encoded, because
/// `getenv("…")` names a variable.
pub(super) fn literals(text: &str, at: usize, in_brackets: bool) -> Vec<Range<usize>> {
    let mut gap = Gap {
        groups: vec![b'['; usize::from(in_brackets)],
        is_open: true,
    };
    let (mut found, mut end) = (Vec::new(), at);
    while let Some((whole, content)) = next_literal(text, end) {
        if whole.start > at + MAX_BYTES || !gap.read(text, end, whole.start) || in_brackets && gap.groups.is_empty() {
            break;
        }
        // A text of several lines is a value only if nothing but signs precedes it.
        let is_direct =
            found.is_empty() && !text[end..whole.start].contains(|c: char| c.is_alphanumeric() || "/^_".contains(c));
        if text[content.clone()].contains('\n') && !is_direct {
            break;
        }
        end = whole.end;
        let after = text[end..].trim_start_matches([' ', '\t', '"', '\\']);
        let is_in_braces = gap.groups.last() == Some(&b'{');
        let is_key = after.starts_with("=>") || after.starts_with(':') && is_in_braces;
        let counts = !gap.groups.contains(&b'(') || is_encoded(&text[content.clone()]);
        if !is_key && counts && content.len() >= MIN_LITERAL_BYTES && is_meant(&text[content.clone()], Trust::All) {
            found.push(content);
        }
    }
    found
}

/// Returns the next literal with and without its quotes.
fn next_literal(text: &str, mut at: usize) -> Option<(Range<usize>, Range<usize>)> {
    loop {
        let captures = LITERAL.captures_at(text, at)?;
        let (whole, content) = (captures.get(0)?, captures.iter().skip(1).flatten().next()?);
        let before = &text.as_bytes()[..whole.start()];
        let is_fence = whole.as_str().starts_with('`') && before.ends_with(b"`");
        if is_fence || whole.as_str().starts_with('\'') && is_apostrophe(before) {
            at = whole.start() + 1;
        } else {
            return Some((whole.range(), content.range()));
        }
    }
}

/// The text between two literals of an expression.
struct Gap {
    /// Open brackets: `(` for arguments and indices, `{` for keys with values, `[` for values.
    groups: Vec<u8>,
    /// True if the expression continues on the next line.
    is_open: bool,
}

impl Gap {
    /// Reads the text from `start` to `end`. Returns false if the expression ends there.
    fn read(&mut self, text: &str, start: usize, end: usize) -> bool {
        let bytes = text.as_bytes();
        let mut at = start;
        while at < end {
            let byte = bytes[at];
            match byte {
                b'(' | b'[' | b'{' if self.groups.len() == MAX_DEPTH => return false,
                b'(' | b'[' | b'{' => self.groups.push(group(&text[..at], byte)),
                b'`' => return false,
                b')' | b']' | b'}' if self.groups.pop().is_none() => return false,
                b',' | b';' if self.groups.is_empty() => return false,
                b'\n' if self.groups.is_empty() => {
                    let next = text[at..end].trim_start();
                    if !next.is_empty() && !next.starts_with(['+', '?', '|', '&', '-', '.'])
                        || next.is_empty() && !self.is_open
                    {
                        return false;
                    }
                }
                b'#' | b'/' if text[at..end].starts_with("# ") || text[at..end].starts_with("//") => {
                    at = line_end(text, at);
                    continue;
                }
                _ => {}
            }
            if !byte.is_ascii_whitespace() {
                self.is_open = b"=:+|?\\&(.,-".contains(&byte);
            }
            at += 1;
        }
        self.is_open = false;
        true
    }
}

/// Returns the kind of group that `bracket` opens behind `before`.
fn group(before: &str, bracket: u8) -> u8 {
    let constructor = form!(
        r"(?:\bnew\s+[\w.:]+|(?:^|[^\w.])[A-Z]\w*(?:::\w+)?|\[\]byte|[\x22']\.join|unwrap_or\w*|[oO]r_?[eE]lse|default|%\s*)(?:<[^<>()]*>)?$"
    );
    let is_head = |c: char| c.is_alphanumeric() || "_)]>?%".contains(c) || c == '!' && bracket == b'(';
    match bracket {
        b'{' if before.trim_end().ends_with([')', '>']) => b'(',
        b'{' => b'{',
        _ if !before.ends_with(is_head) => b'[',
        b'(' if constructor.is_match(last_bytes(before, 80)) => b'[',
        _ => b'(',
    }
}

/// Finds the literal at `at`.
pub(super) fn literal_at(text: &str, at: usize) -> Option<Range<usize>> {
    let captures = FIRST_LITERAL.captures(&text[at..])?;
    if text[at..].starts_with('\'') && is_apostrophe(&text.as_bytes()[..at]) {
        return None;
    }
    let content = captures.iter().skip(1).flatten().next()?;
    Some(at + content.start()..at + content.end())
}

/// Finds the lines of a YAML block scalar whose header is at `at`, or of a here-document. Lines of a block scalar are
/// indented by more than `column`, the column of its key.
pub(super) fn block(text: &str, at: usize, column: usize) -> Option<Range<usize>> {
    let header = form!(r#"\A(?:[|>][0-9+-]{0,2}[ \t]*(?:#[^\n]*)?|<<[-~<]?\\?["']?([A-Za-z_]\w*)[^\n]*)\r?\n"#);
    let header = header.captures(&text[at..])?;
    let start = at + header[0].len();
    let belongs = |line: &&str| match header.get(1) {
        Some(end) => line.trim().trim_end_matches(';') != end.as_str(),
        None => line.trim().is_empty() || line.len() - line.trim_start().len() > column,
    };
    let lines = text[start..].split_inclusive('\n').take_while(belongs);
    let n_bytes: usize = lines.map(str::len).sum();
    let lines = text[start..start + n_bytes].trim_end();
    let indent = lines.len() - lines.trim_start().len();
    (!lines.trim().is_empty()).then_some(start + indent..start + lines.len())
}

/// Finds the word at `at` if it is a secret. `in_string` is true in a string literal, in which `\n`
/// is a line break.
pub(super) fn word(text: &str, at: usize, in_string: bool, trust: Trust) -> Option<Range<usize>> {
    let whole = text[at..].split(char::is_whitespace).next()?;
    let whole = if in_string { whole.split("\\n").next()? } else { whole };
    let word = whole.trim_end_matches([',', ';', ')', ']', '}', '\\', '*', '.', ':', '`', '"']);
    let after = text[at + word.len()..].trim_start_matches([' ', '\t']);
    let is_statement = trust < Trust::Entry && whole[word.len()..].contains([';', ')']);
    let is_in_code = is_statement && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
        || word.ends_with('!') && after.starts_with(['{', '[']);
    if is_in_code || word.is_empty() || FIRST_LITERAL.is_match(&text[at..]) || is_code(word) {
        return None;
    }
    let is_alone = trust != Trust::Entry || is_entry(&text[at..line_end(text, at)]);
    (is_alone && is_meant(word, trust)).then_some(at..at + word.len())
}

/// Returns true if the rest of a line is a single word and not the name of a type, as in YAML and properties files.
pub(super) fn is_entry(rest: &str) -> bool {
    let type_name = form!(
        r"^(?:[A-Z]\w*|str|string|bool|boolean|bytes?|char|any|number|int|integer|object|array|text|null|none|nil|undefined|unknown|true|false|required|optional)\??$"
    );
    let word = rest.trim_end();
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_-!@#%^*+~?=$".contains(&byte);
    word.len() >= MIN_WORD_BYTES && word.bytes().all(is_part) && !type_name.is_match(word)
}

/// Finds the rest of the line at `at`, without a trailing comment, if it has several words and is not code.
pub(super) fn words(text: &str, at: usize, has_equals: bool) -> Option<Range<usize>> {
    let code = form!(
        r#"["`]|[\w)][(\[]|[, ]\w+=\w| (?:[-=+*/?&<>]|==|!=|&&|\|\||\?\?|=>|if|else) |[({\[,;\\]$|^(?:await|new|yield|not|typeof|ref|move|lambda|function|func|fn|if|match|switch|return)\b"#
    );
    let comment = form!(r"\s(?:#|;|//|/\*)");
    let line = &text[at..line_end(text, at)];
    let line = line[..comment.find(line).map_or(line.len(), |comment| comment.start())].trim_end();
    let n_words = line.split_whitespace().count();
    if n_words < 2 || code.is_match(line) || is_reference(line) || !line.starts_with(may_begin) {
        return None;
    }
    let is_secret = has_equals || line.split_whitespace().any(is_random);
    is_secret.then_some(at..at + line.len())
}

/// Returns true for text that only refers to a value: `$NAME`, `{{ name }}`, `<your token>`, `Bearer {token}`.
pub(super) fn is_reference(text: &str) -> bool {
    let reference = form!(
        r#"^(?:\w+ )?(?:(?:\$(?:[A-Z_]+|[a-z_]+)|[$#]\{[\w.]+\}|\$\{\w+:?\?[^}]*\}?|\$?\{\{\s*[^\s{}"'][^{}]*\}\}|\$\([^()]*\)|\{[A-Za-z_.()\[\]]*\}|<[A-Za-z _-]+>|%\(\w+\)s|%[sdv]|%[A-Z_]+%)[:/@ .-]?)+$"#
    );
    text.contains(['$', '{', '<', '%']) && reference.is_match(text)
}

/// Returns true if `value` is not a reference and looks enough like a secret.
pub(super) fn is_meant(value: &str, trust: Trust) -> bool {
    let is_number = || value.bytes().all(|byte| byte.is_ascii_digit());
    let is_secret = match trust {
        Trust::Entry | Trust::Any => value.len() >= MIN_LITERAL_BYTES && !(sounds_secret(value) && is_name(value)),
        Trust::NotName => value.len() >= MIN_WORD_BYTES && (is_number() || value.contains('-')) || is_random(value),
        Trust::Mixed => is_mixed(value) && is_random_word(value),
        Trust::Random => is_random_word(value),
        Trust::All => true,
        Trust::Key => is_key(value),
        Trust::Never => false,
    };
    is_secret && !is_reference(value)
}

/// Returns true for a single word that looks random.
fn is_random_word(text: &str) -> bool {
    let text = text.trim_matches(['\\', '"', '\'']);
    is_random(text) && !text.contains(char::is_whitespace) && !is_code(text)
}

/// Returns true for a word of letters with digits or signs that cannot be a name.
fn is_random(word: &str) -> bool {
    let is_sign = |byte: u8| b"!@#%^*+~?/=".contains(&byte);
    word.len() >= MIN_WORD_BYTES
        && word.bytes().any(|byte| byte.is_ascii_alphabetic())
        && word.bytes().any(|byte| byte.is_ascii_digit() || is_sign(byte))
        && !is_name(word)
}

/// Returns true for a word in which a letter follows a digit or a digit a letter several times. Hexadecimal numbers are
/// ids and checksums.
fn is_mixed(word: &str) -> bool {
    const MIN_CHANGES: usize = 4;
    let pairs = word.as_bytes().windows(2);
    let changes = pairs.filter(|pair| {
        pair.iter().all(u8::is_ascii_alphanumeric) && pair[0].is_ascii_digit() != pair[1].is_ascii_digit()
    });
    let is_hex = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    changes.count() >= MIN_CHANGES && !word.bytes().all(is_hex)
}

fn is_key(word: &str) -> bool {
    let digits = word.trim_start_matches("0x").replace('-', "");
    let is_hex = digits.len() >= 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_number = (6..9).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_digit());
    is_number || is_hex && digits.bytes().any(|byte| byte.is_ascii_digit()) || super::random::is_random(word)
}

/// Returns true for text that looks like base64 or hexadecimal.
fn is_encoded(text: &str) -> bool {
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=_-".contains(&byte);
    text.bytes().all(is_base64) && is_random(text)
}

/// Returns true for text that may be a name in code or a path. A name consists of words of letters, each with at most
/// two digits at its end, joined by dots, underscores, slashes or dashes (`self.token2`, `tokens.utf8`). A single long
/// word with digits (`hunter2`) is not a name, unless it names a type or mentions a secret.
fn is_name(text: &str) -> bool {
    let number_type = form!("^[Uu]?(?:[Ii]nt|[Ff]loat|[iuf])[0-9]+$");
    let is_word = |word: &str| {
        let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
        letters.bytes().all(|byte| byte.is_ascii_alphabetic()) && word.len() - letters.len() <= 2
    };
    let text = text.trim_end_matches([':', '?', '.']);
    let is_one = text.bytes().all(|byte| byte.is_ascii_alphanumeric()) && text.len() >= MIN_WORD_BYTES;
    if is_one && text.ends_with(|c: char| c.is_ascii_digit()) {
        number_type.is_match(text) || sounds_secret(text) && is_word(text)
    } else {
        text.contains("::") || text.split(['.', '_', '/', '-']).all(is_word)
    }
}

/// Returns true for a part of an expression or type, such as a call, an index or a pointer. Also returns true for a
/// URL, because `forms` finds its password.
fn is_code(word: &str) -> bool {
    let is_path = |c: char| c.is_ascii_alphanumeric() || "_$.:>?!&*-".contains(c);
    let Some(bracket) = word.find(['(', '[', '<', '{']) else {
        return !word.starts_with(may_begin) || ["://", "=\"", "='"].iter().any(|mark| word.contains(mark));
    };
    let head = word[..bracket].trim_end_matches('!');
    !word.starts_with(may_begin) || word[bracket..].starts_with('(') && head.chars().all(is_path) || is_name(head)
}

/// Returns true if a value without quotes may begin with `c`.
fn may_begin(c: char) -> bool {
    !"\"'`\\<>{}()[]|&*#-,;=".contains(c)
}

/// Returns the last `n_bytes` of `text`, or all of it if it is shorter.
pub(super) fn last_bytes(text: &str, n_bytes: usize) -> &str {
    let mut start = text.len().saturating_sub(n_bytes);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// Returns the end of the line that contains `at`, without its line break.
pub(super) fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |n_bytes| at + n_bytes)
}

/// Returns true if a quote after these bytes does not open a literal: `don't`, `&'a str`, `Cow<'_, str>`.
pub(super) fn is_apostrophe(before: &[u8]) -> bool {
    matches!(before.last(), Some(b'&' | b'<' | b')' | b'_')) || before.last().is_some_and(u8::is_ascii_alphanumeric)
}
