//! Finds values in code and settings of any language.

use std::ops::Range;

use super::name::sounds_secret;

/// Minimum length of a secret in quotes. Shorter texts are punctuation or abbreviations.
const MIN_LITERAL_BYTES: usize = 4;
/// Minimum length of a secret without quotes. Shorter words are usually names in code.
const MIN_WORD_BYTES: usize = 6;
/// Maximum depth of nested brackets. Handwritten code does not exceed it.
const MAX_DEPTH: usize = 32;

/// Determines which words without quotes count as secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// Only words that do not look like names: `a1b2c3d4`, `hunter22`.
    Random,
    /// Words that do not look like names, numbers, and words with dashes.
    NotName,
    /// Any word that is not an expression.
    Any,
}

/// Finds the string literals of the expression at `at`, up to the end of the statement or entry, or the end of the
/// enclosing brackets or string.
///
/// Includes literals in brackets and arguments of constructors (`Some("…")`, `new Password("…")`), but not keys in
/// braces. An argument of another call or an index is included only if it does not look like a name, because
/// `getenv("…")` names a variable. `within` is the quote that is open at `at`.
pub(super) fn literals(text: &str, at: usize, within: Option<u8>) -> Vec<Range<usize>> {
    let mut scanner = Scanner::new(text, at, within);
    while scanner.step() {}
    scanner.found
}

/// Finds the string literals of the arguments at `at`, up to the closing bracket.
pub(super) fn arguments(text: &str, at: usize, within: Option<u8>) -> Vec<Range<usize>> {
    let mut scanner = Scanner::new(text, at, within);
    scanner.groups.push(Group::Values);
    while scanner.step() && !scanner.groups.is_empty() {}
    scanner.found
}

/// Returns true if a literal begins at `at`, perhaps after a prefix (`b"…"`, `@"…"`).
pub(super) fn is_literal(text: &str, at: usize) -> bool {
    let literal = form!(r#"\A(?:[&@$]|[bBrRuUfFlL8]{1,2}#*)?\\?["'`]"#);
    literal.is_match(&text[at..])
}

/// Finds the lines of a YAML block scalar whose header is at `at`, or of a here-document. Lines of a block scalar are
/// indented by more than `column`, the column of its key.
pub(super) fn block(text: &str, at: usize, column: usize) -> Option<Range<usize>> {
    let header = form!(r#"\A(?:[|>][0-9+-]{0,2}[ \t]*(?:#[^\n]*)?|<<[-~]?\\?["']?(\w+)[^\n]*)\r?\n"#);
    let header = header.captures(&text[at..])?;
    let start = at + header[0].len();
    let belongs = |line: &&str| match header.get(1) {
        Some(end) => line.trim() != end.as_str(),
        None => line.trim().is_empty() || line.len() - line.trim_start().len() > column,
    };
    let n_bytes: usize = text[start..]
        .split_inclusive('\n')
        .take_while(belongs)
        .map(str::len)
        .sum();
    let lines = text[start..start + n_bytes].trim_end();
    let indent = lines.len() - lines.trim_start().len();
    (!lines.trim().is_empty()).then_some(start + indent..start + lines.len())
}

/// Finds the content of a Lua long string at `at`, `[[…]]`, if the content is a secret.
pub(super) fn long_string(text: &str, at: usize, trust: Trust) -> Option<Range<usize>> {
    let brackets = form!(r#"\A\[=*\[([^\[\]"',]{4,})\]=*\]"#);
    let content = brackets.captures(&text[at..])?.get(1)?;
    let is_meant = trust != Trust::Random || is_random_word(content.as_str());
    is_meant.then_some(at + content.start()..at + content.end())
}

/// Finds the word at `at` if it is a secret.
pub(super) fn word(text: &str, at: usize, within: Option<u8>, trust: Trust) -> Option<Range<usize>> {
    let is_end = |c: char| c.is_whitespace() || within.is_some_and(|quote| c == char::from(quote));
    let whole = &text[at..text[at..].find(is_end).map_or(text.len(), |n_bytes| at + n_bytes)];
    // In a string, `\n` is a line break.
    let whole = match within {
        Some(_) => whole.split("\\n").next().unwrap_or(whole),
        None => whole,
    };
    let word = whole.trim_end_matches([',', ';', ')', ']', '}', '\\', '*']);
    let after = text[at + word.len()..].trim_start();
    let is_statement = trust != Trust::Any && whole[word.len()..].contains([';', ')']);
    let is_in_code = is_statement && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
        || word.ends_with('!') && after.starts_with(['{', '[']);
    if is_in_code || word.is_empty() || is_literal(text, at) || is_code(word) || is_reference(word) {
        return None;
    }
    is_secret(word, trust).then_some(at..at + word.len())
}

/// Returns true if the rest of the line is a single word and not the name of a type, as in YAML and properties files.
pub(super) fn is_entry(text: &str, at: usize) -> bool {
    let type_name = form!(
        r"^(?:[A-Z]\w*|str|string|bool|boolean|bytes?|char|any|number|int|integer|object|array|text|null|none|nil|undefined|unknown|true|false|required|optional)\??$"
    );
    let word = text[at..line_end(text, at)].trim_end();
    word.len() >= MIN_WORD_BYTES
        && word
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-!@#%^*+~?=$".contains(&byte))
        && !type_name.is_match(word)
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
        r"^(?:\w+ )?(?:(?:\$(?:[A-Z_]+|[a-z_]+)|[$#]\{[\w.]+\}|\$\{\w+:?\?[^}]*\}?|\$?\{\{[^{}]*\}\}|\$\([^()]*\)|\{[A-Za-z_.()\[\]]*\}|<[A-Za-z _-]+>|%\(\w+\)s|%[sdv]|%[A-Z_]+%)[:/@ .-]?)+$"
    );
    text.contains(['$', '{', '<', '%']) && reference.is_match(text)
}

/// Returns the end of the line that contains `at`, without its line break.
pub(super) fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |n_bytes| at + n_bytes)
}

fn is_secret(word: &str, trust: Trust) -> bool {
    let is_number = || word.bytes().all(|byte| byte.is_ascii_digit());
    match trust {
        Trust::Any => word.len() >= MIN_LITERAL_BYTES && !(sounds_secret(word) && is_name(word)),
        Trust::NotName => word.len() >= MIN_WORD_BYTES && (is_number() || word.contains('-')) || is_random(word),
        Trust::Random => is_random(word),
    }
}

/// Returns true for a single word that looks random.
pub(super) fn is_random_word(text: &str) -> bool {
    let text = text.trim_matches(['\\', '"', '\'']);
    is_random(text) && !text.contains(char::is_whitespace) && !is_code(text) && !is_reference(text)
}

/// Returns true for a word of letters with digits or signs that cannot be a name.
fn is_random(word: &str) -> bool {
    let is_sign = |byte: u8| b"!@#%^*+~?/=".contains(&byte);
    word.len() >= MIN_WORD_BYTES
        && word.bytes().any(|byte| byte.is_ascii_alphabetic())
        && word.bytes().any(|byte| byte.is_ascii_digit() || is_sign(byte))
        && !is_name(word)
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
        return !word.starts_with(may_begin) || word.contains("://");
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

/// Kind of a bracket's content.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    Values,
    /// Keys with values.
    Braces,
    /// Arguments of a call, an index, or the body of a function.
    Arguments,
}

/// Scans an expression for literals.
struct Scanner<'t> {
    text: &'t str,
    at: usize,
    within: Option<u8>,
    /// The last byte that is not white space.
    last: u8,
    /// Open brackets.
    groups: Vec<Group>,
    found: Vec<Range<usize>>,
}

impl<'t> Scanner<'t> {
    fn new(text: &'t str, at: usize, within: Option<u8>) -> Self {
        Self {
            text,
            at,
            within,
            last: b'=',
            groups: Vec::new(),
            found: Vec::new(),
        }
    }

    /// Advances by a byte, a literal or a comment. Returns false at the end of the expression.
    fn step(&mut self) -> bool {
        let Some(&byte) = self.text.as_bytes().get(self.at) else {
            return false;
        };
        let is_outside = self.groups.is_empty();
        match byte {
            b'"' | b'\'' | b'`' => return self.quote(byte),
            b'(' | b'[' | b'{' if self.groups.len() == MAX_DEPTH => return false,
            b'(' | b'[' | b'{' => {
                let group = self.group(byte);
                self.groups.push(group);
            }
            b')' | b']' | b'}' if self.groups.pop().is_none() => return false,
            b',' | b';' if is_outside => return false,
            b'\n' if is_outside => {
                if !self.goes_on() {
                    return false;
                }
                let rest = &self.text[self.at..];
                self.at += rest.len() - rest.trim_start().len();
                return true;
            }
            b'#' | b'/' if self.is_comment() => {
                self.at = line_end(self.text, self.at);
                return true;
            }
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            self.last = byte;
        }
        self.at += 1;
        true
    }

    fn quote(&mut self, quote: u8) -> bool {
        if self.closes(quote) {
            return false;
        }
        match literal(self.text, self.at) {
            Some(content) => {
                self.at = content.end;
                // A literal may end with three quotes.
                while self
                    .text
                    .as_bytes()
                    .get(self.at)
                    .is_some_and(|&byte| byte == b'\\' || byte == quote)
                {
                    self.at += 1;
                }
                if self.counts(&self.text[content.clone()]) {
                    self.found.push(content);
                }
            }
            // Two backticks end an inline literal of reStructuredText.
            None if quote == b'`' && n_equal(&self.text.as_bytes()[self.at..]) == 2 => return false,
            // Two quotes are an empty literal; three may begin a block of Markdown.
            None => self.at += n_equal(&self.text.as_bytes()[self.at..]),
        }
        self.last = quote;
        true
    }

    /// Returns true if the quote at the current position ends the string that contains the expression.
    fn closes(&self, quote: u8) -> bool {
        let next = self.text[self.at + 1..].chars().next();
        self.within == Some(quote)
            && !self.text[..self.at].ends_with('\\')
            && next.is_none_or(|c| c.is_whitespace() || ",;:)]}+.%>\\/".contains(c))
    }

    fn counts(&self, content: &str) -> bool {
        let after = self.text[self.at..].trim_start();
        let is_key = after.starts_with("=>") || self.groups.last() == Some(&Group::Braces) && after.starts_with(':');
        if is_key || content.len() < MIN_LITERAL_BYTES || is_reference(content) {
            return false;
        }
        !self.groups.contains(&Group::Arguments) || is_encoded(content)
    }

    /// Returns the kind of group that the bracket at the current position opens.
    fn group(&self, bracket: u8) -> Group {
        let constructor = form!(r"(?:\bnew\s+[\w.:]+|(?:^|[^\w.])[A-Z]\w*(?:::\w+)?|\[\]byte)(?:<[^<>()]*>)?$");
        let before = &self.text[..self.at];
        let is_head = |c: char| c.is_alphanumeric() || "_)]>?".contains(c) || c == '!' && bracket == b'(';
        match bracket {
            b'{' if matches!(self.last, b')' | b'>') => Group::Arguments,
            b'{' => Group::Braces,
            _ if !before.ends_with(is_head) => Group::Values,
            b'(' if constructor.is_match(last_bytes(before, 80)) => Group::Values,
            _ => Group::Arguments,
        }
    }

    /// Returns true if the expression continues after the line break at the current position.
    fn goes_on(&self) -> bool {
        let next = self.text[self.at..].trim_start();
        let is_literal = |text: &str| text.starts_with(['"', '\'', '`']);
        b"=:+|?\\&(".contains(&self.last) && is_literal(next)
            || next.starts_with(['+', '?', '|', '&'])
            || next.strip_prefix("- ").is_some_and(is_literal)
    }

    fn is_comment(&self) -> bool {
        let rest = &self.text[self.at..];
        let is_first = || self.text[..self.at].ends_with(char::is_whitespace);
        rest.starts_with("//") || is_first() && rest.starts_with("# ")
    }
}

/// Returns the content of the literal that begins at `at`. `None` for an empty literal, an apostrophe and a lifetime.
/// An unclosed literal extends to the end of the text.
fn literal(text: &str, at: usize) -> Option<Range<usize>> {
    let (before, rest) = text.as_bytes().split_at(at);
    let quote = rest[0];
    let n_quotes = n_equal(rest);
    let n_hashes = before.iter().rev().take_while(|&&byte| byte == b'#').count();
    let prefix = &before[..before.len() - n_hashes];
    let is_empty = n_quotes == 2
        || n_quotes > 2 && quote == b'`'
        || n_quotes == 1 && quote != b'`' && matches!(rest.get(1), None | Some(b'\n'));
    if is_empty || quote != b'"' && is_apostrophe(prefix) {
        return None;
    }
    let is_escaped = before.ends_with(b"\\");
    let (n_open, closing) = match n_quotes {
        1 => (
            1,
            [vec![b'\\'; usize::from(is_escaped)], vec![quote], vec![b'#'; n_hashes]].concat(),
        ),
        _ => (3, vec![quote; 3]),
    };
    let is_raw = is_escaped || n_hashes > 0 || prefix.ends_with(b"@") || prefix.ends_with(b"r");
    let start = at + n_open;
    Some(start..start + content_bytes(&text.as_bytes()[start..], &closing, is_raw))
}

/// Returns the number of leading bytes that equal the first byte.
fn n_equal(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|&byte| Some(byte) == bytes.first()).count()
}

/// Returns the number of bytes before the closing quotes. A doubled quote is part of the content, and unless the
/// literal is raw, so is a quote after a backslash.
fn content_bytes(rest: &[u8], closing: &[u8], is_raw: bool) -> usize {
    let mut at = 0;
    while let Some(&byte) = rest.get(at) {
        let is_double = closing.len() == 1 && rest[at..].starts_with(&[closing[0]; 2]);
        at += match byte {
            b'\\' if !is_raw => 2,
            _ if is_double => 2,
            _ if rest[at..].starts_with(closing) => return at,
            _ => 1,
        };
    }
    rest.len()
}

/// Returns true if a quote after these bytes does not open a literal: `don't`, `&'a str`, `Cow<'_, str>`.
pub(super) fn is_apostrophe(before: &[u8]) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let n_prefix = before.iter().rev().take_while(|byte| is_word(byte)).count();
    let prefix = &before[before.len() - n_prefix..];
    matches!(before.last(), Some(b'&' | b'<'))
        || n_prefix > 2
        || !prefix.iter().all(|byte| b"bBrRuUfFlL8".contains(byte))
}
