//! Finds names that suggest secrets: `DB_PASSWORD`, `apiKey`, `x-auth-token`.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// The likelihood that the value of a name is a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Strength {
    /// Ends in a word for something that can be a key or an id: `app_key`, `keys`, `salt`.
    Key,
    /// Contains a word for a secret, but does not end in it: `password_file`, `tokenizer`.
    Mentions,
    /// Ends in a word that also means other things: `token`, `auth`, `access_key`.
    Weak,
    /// Ends in a word for a password.
    Strong,
}

impl Strength {
    /// Returns the strength with this name in a table.
    pub(super) fn of(name: &str) -> Self {
        match name {
            "strong" => Self::Strong,
            "weak" => Self::Weak,
            _ => Self::Mentions,
        }
    }
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

/// Words for a password, secret or private key in other languages. None is a part of another word.
const FOREIGN: &str = r"(?:парол|секрет|ключ_?(?:апи|api)|contrase[nñ]i?a|clave|secreto|senha|segredo|palavra_?(?:passe|chave)|chave_?(?:api|secreta|privada)|mot_?de_?passe|de passe|(?-u:\b)mdp(?-u:\b)|cl[eé]f?_?(?:api|secr[eè]te|priv[eé]e)|geheim(?:nis|e)?|zugangsdaten|kennwort|schl(?:ü|ue)ssel|parol[aă](?:_?chiave)?|segreto|chiave_?(?:api|segreta|privata)|wachtwoord|l[öo]senord|passord|adgangskode|kodeord|salasana|tunnussana|has[lł]o|heslo|tajemstv[ií]|jelsz[óo]|[sş]ifre|κωδικ[όο]ς|συνθηματικό|m[ậa]t_?kh[ẩa]u|kata_?sandi|密码|密碼|口令|密钥|密鑰|(?-u:\b)mima(?-u:\b)|パスワード|暗証番号|秘密鍵|비밀번호|암호|كلمة_?(?:المرور|السر)|סיסמ[הא]|पासवर्ड|รหัสผ่าน)";
const STRONG: &str = r"(?i:(?:pass(?:word|wd|wort|[_-]?phrase|code|w)?|p(?:ass|s)?s?wr?d|psw|secret|cred(?:ential)?)s?_?[0-9]*$|(?:^|[^a-z]|bind|root|user|db)pw[0-9]*$|(?:^|[^a-z])(?:psk|totp|pepper|(?:access|unlock|pin)_?code|mnemonic|bearer|(?:seed|recovery|backup)[_-]?(?:phrase|words))$|^masterauth$|(?:^|[^a-z])FOREIGN)|(?:[a-z]Pw[0-9]*$)";
const KEYS: &str = r"(?:api|hex|access|account|app|auth|private|encryption|crypto|cipher|aes|hmac|jwt|cookie|secret|signing|license|master|consumer|subscription|shared|storage|service|session|ssh|client)[_.-]?key(?:[_.-]?data)?";
const WEAK: &str = r"(?i:(?:token|KEYS|auth|authorization|_pin)s?[0-9]*$|(?:^|[^a-z])(?:auth|api|encryption)_?salt$|(?:^|[^a-z])(?:gh|github|gitlab|azure|ado|npm)_?pat$)";
const MENTIONS: &str = r"(?i:password|passwd|passphrase|secret|token|credential|authorization|KEYS|(?:^|[_.-])(?:(?-i:PASS)|pwd|pw|auth)(?:[_.-]|$))|(?:[a-z](?:Pass|Pwd|Pw)[A-Z])|(?:^|[^a-z])(?i:seed|priv_?key)$|Seed$";
const KEY: &str = r"(?i:(?:^|[^a-z])(?:keys?|salt|sk|pin|accounts|dsn|sas)$)|[a-z]Keys?$";

static STRENGTHS: LazyLock<[(Strength, Regex); 4]> = LazyLock::new(|| {
    let compiled =
        |form: &str| Regex::new(&form.replace("KEYS", KEYS).replace("FOREIGN", FOREIGN)).expect("the forms are tested");
    [
        (Strength::Strong, compiled(STRONG)),
        (Strength::Weak, compiled(WEAK)),
        (Strength::Mentions, compiled(MENTIONS)),
        (Strength::Key, compiled(KEY)),
    ]
});

/// Every form above contains one of these texts.
static HINTS: LazyLock<Regex> = LazyLock::new(|| {
    let hints = r"(?i:(?-u:pass|pwd|ps?s?wr?d|psw|psk|pw|secret|token|cred|auth|key|(?:h|hub|lab|azure|ado|npm)_?pat|seed|salt|totp|pepper|code|mnemonic|recovery|backup|bearer|(?:\b|_)(?:sk|pin|accounts|dsn|sas)\b)|FOREIGN)";
    Regex::new(&hints.replace("FOREIGN", FOREIGN)).expect("the forms are tested")
});

fn strength(name: &str) -> Option<Strength> {
    let is = |(_, form): &&(Strength, Regex)| form.is_match(name);
    STRENGTHS.iter().find(is).map(|&(strength, _)| strength)
}

pub(super) fn sounds_secret(name: &str) -> bool {
    strength(name).is_some_and(|strength| strength > Strength::Key)
}

/// Returns the names in `text` that suggest secrets, in order. Dots and dashes count as parts of a name. O(n) for n
/// bytes.
pub(super) fn names(text: &str) -> impl Iterator<Item = Name<'_>> {
    let mut end = 0;
    HINTS.find_iter(text).filter_map(move |hint| {
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
