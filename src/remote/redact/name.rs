//! Finds names that suggest secrets: `DB_PASSWORD`, `apiKey`, `x-auth-token`.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// How likely the value of a name is to be a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Strength {
    /// Contains a word for a secret, but does not end in it: `password_file`, `tokenizer`.
    Mentions,
    /// Ends in a word that also means other things: `token`, `auth`, `access_key`.
    Weak,
    /// Ends in a word for a password.
    Strong,
}

/// A name in a text.
#[derive(Clone, Copy)]
pub(super) struct Name<'t> {
    pub(super) text: &'t str,
    pub(super) start: usize,
    pub(super) strength: Strength,
}

impl Name<'_> {
    pub(super) fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// Returns true for a name in upper case, like that of an environment variable: `DB_PASSWORD`.
    pub(super) fn is_upper(&self) -> bool {
        !self.text.bytes().any(|byte| byte.is_ascii_lowercase())
    }
}

const STRONG: &str = r"(?i:(?:pass(?:word|wd|wort|phrase|code)?|pwd|psw|secret|cred(?:ential)?)s?[0-9]*$|(?:^|[^a-z]|bind|root|user|db)pw[0-9]*$|(?:^|[^a-z])psk$|^masterauth$|FOREIGN$)|(?:[a-z]Pw[0-9]*$)";
/// Words for a password in other languages.
const FOREIGN: &str = r"(?:парол[ья]|contrase[nñ]a|senha|mot_?de_?passe|kennwort|wachtwoord|has[lł]o|şifre|sifre|l[öo]senord|heslo|jelsz[óo]|salasana|adgangskode|密码|密碼|パスワード|비밀번호)";
const KEYS: &str = r"(?:api|access|account|auth|private|encryption|crypto|cipher|aes|hmac|jwt|cookie|secret|signing|master|shared|storage|service|session|ssh|client)[_.-]?key(?:[_.-]?data)?";
const WEAK: &str =
    r"(?i:(?:token|KEYS|auth|authorization)s?[0-9]*$|(?:^|[^a-z])(?:gh|github|gitlab|azure|ado|npm)_?pat$)";
const MENTIONS: &str = r"(?i:password|passwd|passphrase|secret|token|credential|authorization|KEYS|(?:^|[_.-])(?:(?-i:PASS)|pwd|pw|auth)(?:[_.-]|$))|(?:[a-z](?:Pass|Pwd|Pw)[A-Z])|(?:^|[^a-z])(?i:seed|priv_?key)$|Seed$";

static STRENGTHS: LazyLock<[(Strength, Regex); 3]> = LazyLock::new(|| {
    let compiled =
        |form: &str| Regex::new(&form.replace("KEYS", KEYS).replace("FOREIGN", FOREIGN)).expect("the forms are tested");
    [
        (Strength::Strong, compiled(STRONG)),
        (Strength::Weak, compiled(WEAK)),
        (Strength::Mentions, compiled(MENTIONS)),
    ]
});

fn strength(name: &str) -> Option<Strength> {
    let is = |(_, form): &&(Strength, Regex)| form.is_match(name);
    STRENGTHS.iter().find(is).map(|&(strength, _)| strength)
}

pub(super) fn sounds_secret(name: &str) -> bool {
    strength(name).is_some()
}

/// Returns the names in `text` that suggest secrets, in order. Dots and dashes count as parts of a name. O(n) for n
/// bytes.
pub(super) fn names(text: &str) -> impl Iterator<Item = Name<'_>> {
    // Every form above contains one of these texts.
    let hints = form!(
        "(?i:pass|pwd|psw|psk|pw|secret|token|cred|auth|key|(?:h|hub|lab|azure|ado|npm)_?pat|seed|парол|contrase|senha|kennwort|wachtwoord|has[lł]o|[sş]ifre|senord|heslo|jelsz|salasana|adgangskode|密码|密碼|パスワード|비밀번호)"
    );
    let mut end = 0;
    hints.find_iter(text).filter_map(move |hint| {
        if hint.start() < end {
            return None;
        }
        let range = identifier(text, end, hint.range());
        end = range.end;
        let (start, text) = (range.start, &text[range]);
        strength(text).map(|strength| Name { text, start, strength })
    })
}

/// Returns the identifier around `part`, starting at `from` or later.
fn identifier(text: &str, from: usize, part: Range<usize>) -> Range<usize> {
    let is_part = |c: &char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
    let (before, after) = (&text[from..part.start], &text[part.end..]);
    let n_before: usize = before.chars().rev().take_while(is_part).map(char::len_utf8).sum();
    let n_after: usize = after.chars().take_while(is_part).map(char::len_utf8).sum();
    let before = before[before.len() - n_before..].trim_start_matches(['.', '-']);
    let after = after[..n_after].trim_end_matches(['.', '-']);
    part.start - before.len()..part.end + after.len()
}
