//! Finds secrets by their own form, or by the URL or command that contains them.

use std::ops::Range;
use std::sync::LazyLock;

use regex::{Match, Regex};

use super::value::{is_random_word, is_reference, last_bytes, line_end};
use crate::model::start_of;

/// Placeholder in a form for an argument of a command.
const ARGUMENT: &str = "ARGUMENT";
const ARGUMENT_FORM: &str = r#"\\?(?:"([^"\n]{4,})"|'([^'\n]{4,})'|([^\s"'\\-][^\s"']{3,}))"#;
/// Placeholder in a form for the arguments that precede the secret. A backslash continues a line.
const ARGUMENTS: &str = "ARGS";
const ARGUMENTS_FORM: &str = r"(?:[^\n]|\\\r?\n)*?\s";

/// Regular expressions of secrets. The capture group that matches is the secret. `\b` is compiled as ASCII, for which
/// the regex crate has a faster engine.
const FORMS: &[&str] = &[
    // A private key, which may be truncated at the end of the text.
    r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----([\s\S]*?)(?:-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|\z)",
    // Tokens with a known prefix, for clouds, code hosting, package registries, payment, mail, chat and models.
    r"\b((?:AKIA|ASIA|AGPA|AIDA|AROA|ABIA|ACCA)[A-Z0-9]{16}|LTAI[A-Za-z0-9]{16,24}|AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,}|do[opr]_v1_[a-f0-9]{64}|dapi[a-f0-9]{32}|hv[sbr]\.[A-Za-z0-9_-]{24,}|pscale_[a-z]+_[A-Za-z0-9_.=-]{30,}|sbp_[a-f0-9]{40}|tskey-[a-z]+-[A-Za-z0-9-]{16,})",
    r"\b(gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{40,}|gl(?:pat|ptt|rt|dt|soat|ft|imt|cbt|agent)-[A-Za-z0-9_-]{20,}|ATATT3[A-Za-z0-9_=-]{60,}|ATBB[A-Za-z0-9]{28,}|npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{32,}|rubygems_[a-f0-9]{48}|cio[A-Za-z0-9]{32}\b|dckr_pat_[A-Za-z0-9_-]{20,}|sntry[su]_[A-Za-z0-9_+/=-]{40,}|glsa_[A-Za-z0-9]{32}_[a-f0-9]{8}|NRAK-[A-Z0-9]{27}|PMAK-[a-f0-9]{24}-[a-f0-9]{34}|lin_api_[A-Za-z0-9]{32,}|ntn_[A-Za-z0-9]{40,})",
    r"\b(xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Z0-9]+-[0-9]+-[a-f0-9]{20,}|[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|(?:SK|AC)[0-9a-f]{32}\b|key-[0-9a-f]{32}\b)",
    r"\b(sk-[A-Za-z0-9_-]{20,}|[srp]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{24,}|sq0(?:atp|csp)-[A-Za-z0-9_-]{22,}|shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}|hf_[A-Za-z0-9]{30,}|gsk_[A-Za-z0-9]{40,}|r8_[A-Za-z0-9]{30,}|xai-[A-Za-z0-9]{40,}|pplx-[A-Za-z0-9]{40,}|AGE-SECRET-KEY-1[A-Z0-9]{50,})",
    r"\b(secret_[A-Za-z0-9]{43}|f(?:o1|m1[ar]|m2)_[A-Za-z0-9_+/=-]{20,}|dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{20,}|pul-[a-f0-9]{40}|vc[apickr]_[A-Za-z0-9]{24,}|sb_secret_[A-Za-z0-9_-]{20,}|figd_[A-Za-z0-9_-]{20,}|pat[A-Za-z0-9]{14}\.[a-f0-9]{64}|pat-[a-z]{2}[0-9]-[a-f0-9-]{36}|xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}|bkua_[a-f0-9]{40}|CCIPAT_[A-Za-z0-9]+_[a-f0-9]{40}|dt0c01\.[A-Z0-9]{24}\.[A-Z0-9]{64}|v1\.0-[a-f0-9]{24}-[a-f0-9]{100,}|(?:CLOJARS|rdme|shippo_(?:live|test))_[a-f0-9]{40,}|AKCp[A-Za-z0-9]{60,})",
    r"\b([0-9]{8,10}:[A-Za-z0-9_-]{35}\b|[0-9a-f]{32}-us[0-9]{1,2}\b|[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}|[A-Za-z0-9_~.-]{3}8Q~[A-Za-z0-9_~.-]{31,34})",
    r"\b(eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,})",
    r"(?:hooks\.slack\.com/(?:services|workflows|triggers)|discord(?:app)?\.com/api/(?:v[0-9]+/)?webhooks/[0-9]+|office\.com/webhook(?:b2)?)/([A-Za-z0-9/_@-]{20,})",
    // A private key of PuTTY.
    r"\bPrivate-Lines: *[0-9]+\s+([\s\S]*?)(?:Private-MAC|\z)",
    r"\bPrivate-MAC: *(\S+)",
    // Hashes of passwords.
    r"(\$(?:[1567y]|2[abxy]?|gy|apr1|argon2(?:id|i|d)|pbkdf2[a-z0-9-]*|scrypt)\$(?:[A-Za-z0-9./=,+-]*\$){0,3}[A-Za-z0-9./=+-]{20,})",
    // The key in a section of a settings file.
    r#"(?i)["'](?:jwt|hmac|aes|encryption|signing)\w*["']\s*:\s*\{[^{}]{0,300}?["']\w*key["']\s*:\s*["']([^"'\n]{4,})["']"#,
    // Signed URLs of Azure.
    r#"(?:SharedAccessSignature=|[?&]sig=)([^;\s"'<>&]{16,})"#,
    // Passwords in URLs (but not port numbers), and in connection strings of Oracle and Go.
    r#"(?:https?|wss?)://[^\s:/@]*:[0-9]{1,5}[/?#]|://[^\s:/@]*:([^\s"`]{3,})@"#,
    r#"jdbc:oracle:[a-z]+:[^\s/"']+/([^\s"']{3,})@"#,
    r#"\b[A-Za-z0-9_.-]+:([^\s"'`]{3,})@(?:tcp|unix)\("#,
    // Words from which a wallet is made, and twelve or more words of such a length without any shorter one.
    r#"(?i)\b\w*(?:mnemonic|(?:seed|recovery|backup)[_ -]?(?:phrase|words?))["'`\]]*\s*(?:[:=]+|=>)\s*["'`]?((?:[a-z]{3,8}[ \t]+){11,23}[a-z]{3,8})\b"#,
    r#"["'`]((?:[a-z]{3,8} ){11}(?:(?:[a-z]{3,8} ){3}){0,4}[a-z]{3,8})["'`]"#,
    // PowerShell.
    r#"(?i)\bConvertTo-SecureString(?:[ \t]+-(?:AsPlainText|Force|String|Key[ \t]+\S+))*[ \t]+(?:"([^"\n]{4,})"|'([^'\n]{4,})'|([^\s"'$(-][^\s"']{3,}))"#,
    // Arguments of commands.
    r"\bcurl\bARGS(?:-[A-Za-z]{0,8}[uU]|--user|--proxy-user)[\s=]*ARGUMENT",
    r"\bhttps?\sARGS-a[\s=]+ARGUMENT",
    r"\b(?:mysql|mariadb)[a-z-]*\bARGS-pARGUMENT",
    r"\bmongo[a-z]*\bARGS-p\s+ARGUMENT",
    r"\bsshpass\s+-p\s*ARGUMENT",
    r"\b(?:docker|podman|helm|oras|skopeo|buildah|oc|az)\b[^\n]*\blogin\bARGS(?:-p|--password)[\s=]*ARGUMENT",
    r"\bredis-cli\bARGS-a\s+ARGUMENT",
    r"\bmachine\s+\S+\s+login\s+\S+\s+password\s+(\S{4,})",
    r#"(?i)\bidentified\s+(?:with\s+\S+\s+)?by\s+(?:password\s+)?["']([^"'\n]+)["']"#,
    r#"(?i)\bauthorization["']?\s*\]?(?:\s*[:=,]\s*\\?["']?|\s+\\?["'])(?:basic|bearer|token|api-?key|key|digest|negotiate|oauth|jwt|ssws)\s+([^\s"'`$<{\\]{4,})"#,
];

/// Forms that ordinary text can have too. Their values are secrets only if they do not look like words.
const AMBIGUOUS_FORMS: &[&str] = &[
    // A line of `.pgpass`.
    r"(?m)^[\w.*/-]+:(?:[0-9]{4,5}|\*):[^:\s]+:[^:\s]+:([^:\s]{4,})\r?$",
    r#"(?i)\bcookie["']?\s*[:,]\s*\\?["']?(?:[^\n"']{0,200};\s*)?[\w.-]*(?:sid|sess|auth|token|id|csrf|remember)[\w.-]*=([^\s;"'`$<{\\]{8,})"#,
];
/// Forms in the lines around a word that [`HINTS`] matches. Searching all text for them takes several times as long.
const NEAR_FORMS: &[&str] = &[
    // A name and its value on two lines.
    r#"(?i)\w*(?:password|passwd|pwd|secret|api_?key)["'`]?[ \t]*\r?\n[ \t]*(?:[:+.?|]?=|=>|:)[ \t]*["'`]([^"'`\n]{4,})["'`]"#,
    r#"(?i)["']([^"'\n]{4,})["']\s*\|\s*ConvertTo-SecureString\b"#,
];
/// Like [`NEAR_FORMS`], if the value does not look like words.
const AMBIGUOUS_NEAR_FORMS: &[&str] = &[
    // The comment behind a literal names it.
    r#"(?im)["'`]([^\s"'`]{6,})["'`][^"'`\n]{0,40}?(?:[^:]//|#|/\*|--|;)\s*(?:\w+\s+){0,4}(?:password|passwd|passphrase|secret|api[ _-]?key|token|credentials?)\s*(?:[,.;)]|\*/|$)"#,
    // A name and its value on two lines, also in a table.
    r"(?im)^[^\w\n]{0,8}[\w ._-]{0,40}(?:password|passwd|passphrase|secret|api[ _-]?key|token)[^\w\n]{0,4}\r?\n(?:[ \t]*\r?\n)?[^\w\n]{0,8}?([^\s<>]{8,})[ \t]*\r?$",
    r"(?i)(?:password|passwd|secret|api[ _-]?key|token)\s*:?\s*</\w+>\s*<\w+[^<>]*>\s*([^\s<>]{6,})\s*<",
    // The last argument of a call that logs in.
    r#"(?i)(?:log_?in|log_?on|sign_?in|authenticate|connect\w*|credentials?|auth)\s*\(\s*(?:(?:[^()"'\n]{1,60}|[^()"'\n]{0,20}["'][^"'\n]*["']\s*),\s*){1,4}["']([^\s"']{6,})["']"#,
];
/// What every form near a word contains.
const HINTS: &str = r"(?i-u)(?:password|passwd|passphrase|pwd|secret|api[ _-]?key|token|credential|securestring|(?:log_?in|log_?on|sign_?in|authenticate|connect[a-z]*|auth)[ \t]*[(])";
/// Limit on the text before and behind such a word.
const NEAR_BYTES: usize = 300;
/// A JSON Web Key.
const JSON_WEB_KEY: &str = r#"\{[^{}]*["']kty["'][^{}]*"#;
/// A private member of a JSON Web Key.
const PRIVATE_MEMBER: &str = r#"["'](?:d|p|q|dp|dq|qi|k)["']\s*:\s*["']([A-Za-z0-9_=-]{8,})["']"#;

/// Compiled on first use, because most calls send no text.
static COMPILED: LazyLock<Vec<Regex>> = LazyLock::new(|| FORMS.iter().chain(AMBIGUOUS_FORMS).map(compiled).collect());
static HINTS_FORM: LazyLock<Regex> = LazyLock::new(|| compiled(&HINTS));
static COMPILED_NEAR: LazyLock<Vec<Regex>> =
    LazyLock::new(|| NEAR_FORMS.iter().chain(AMBIGUOUS_NEAR_FORMS).map(compiled).collect());

fn compiled(form: &&str) -> Regex {
    let form = form.replace(ARGUMENT, ARGUMENT_FORM).replace(ARGUMENTS, ARGUMENTS_FORM);
    Regex::new(&form.replace(r"\b", r"(?-u:\b)")).expect("the forms are tested")
}

pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let mut found = matches(&COMPILED, FORMS.len(), text);
    found.extend(members_of_keys(text));
    let mut end = 0;
    for hint in HINTS_FORM.find_iter(text) {
        if hint.start() < end {
            continue;
        }
        let window = lines_around(text, hint.range());
        end = line_end(text, hint.end());
        let near = matches(&COMPILED_NEAR, NEAR_FORMS.len(), &text[window.clone()]).into_iter();
        found.extend(near.map(|secret| window.start + secret.start..window.start + secret.end));
    }
    found
}

/// Returns the values of forms. Those of the forms after the first `n_sure` count only if they do not look like words.
fn matches(forms: &'static [Regex], n_sure: usize, text: &str) -> Vec<Range<usize>> {
    let (sure, ambiguous) = forms.split_at(n_sure);
    let secrets_of = |form: &'static Regex| {
        form.captures_iter(text)
            .filter_map(|captures| captures.iter().skip(1).flatten().next())
            .filter(|secret| !secret.is_empty() && !is_reference(secret.as_str()) && !is_prose(secret.as_str()))
            .map(|secret| secret.range())
    };
    let is_random = |secret: &Range<usize>| is_random_word(&text[secret.clone()]);
    let ambiguous = ambiguous.iter().flat_map(secrets_of).filter(is_random);
    sure.iter().flat_map(secrets_of).chain(ambiguous).collect()
}

/// Returns true for many words with some that are not used for wallets.
fn is_prose(text: &str) -> bool {
    const COMMON: [&str; 12] = [
        "and", "are", "for", "from", "has", "into", "not", "the", "was", "which", "with", "without",
    ];
    text.split(' ').count() > 11 && text.split(' ').any(|word| COMMON.contains(&word))
}

/// Returns the line of a word with the three lines behind it, as far as they are not too long.
fn lines_around(text: &str, word: Range<usize>) -> Range<usize> {
    let before = last_bytes(&text[..word.start], NEAR_BYTES);
    let start = word.start - before.len() + before.rfind('\n').map_or(0, |newline| newline + 1);
    let behind = start_of(&text[word.end..], NEAR_BYTES);
    let n_bytes: usize = behind.split_inclusive('\n').take(4).map(str::len).sum();
    start..word.end + n_bytes
}

fn members_of_keys(text: &str) -> impl Iterator<Item = Range<usize>> {
    let members_of = |key: Match<'_>| {
        let members = form!(PRIVATE_MEMBER).captures_iter(key.as_str());
        let members = members.filter_map(|member| member.get(1).map(|value| value.range()));
        let members = members.map(|range| key.start() + range.start..key.start() + range.end);
        members.collect::<Vec<_>>()
    };
    form!(JSON_WEB_KEY).find_iter(text).flat_map(members_of)
}
