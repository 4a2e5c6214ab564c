//! Finds secrets by their own form, or by the URL or command that contains them.

use std::ops::Range;
use std::sync::LazyLock;

use regex::{Match, Regex};

use super::value::{is_random_word, is_reference};

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
/// A JSON Web Key.
const JSON_WEB_KEY: &str = r#"\{[^{}]*["']kty["'][^{}]*"#;
/// A private member of a JSON Web Key.
const PRIVATE_MEMBER: &str = r#"["'](?:d|p|q|dp|dq|qi|k)["']\s*:\s*["']([A-Za-z0-9_=-]{8,})["']"#;

/// Compiled on first use, because most calls send no text.
static COMPILED: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let compiled = |form: &&str| {
        let form = form.replace(ARGUMENT, ARGUMENT_FORM).replace(ARGUMENTS, ARGUMENTS_FORM);
        Regex::new(&form.replace(r"\b", r"(?-u:\b)")).expect("the forms are tested")
    };
    FORMS.iter().chain(AMBIGUOUS_FORMS).map(compiled).collect()
});

pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let secrets_of = |form: &'static Regex| {
        form.captures_iter(text)
            .filter_map(|captures| captures.iter().skip(1).flatten().next())
            .filter(|secret| !secret.is_empty() && !is_reference(secret.as_str()))
            .map(|secret| secret.range())
    };
    let is_random = |secret: &Range<usize>| is_random_word(&text[secret.clone()]);
    let (forms, forms_of_more) = COMPILED.split_at(FORMS.len());
    let of_more = forms_of_more.iter().flat_map(secrets_of).filter(is_random);
    let known = forms.iter().flat_map(secrets_of);
    known.chain(of_more).chain(members_of_keys(text)).collect()
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
