//! Secrets are struck out of texts before these leave the machine.
//!
//! A small set of forms that are secrets with near certainty: private keys, tokens with a known beginning, passwords in addresses,
//! and long values that are assigned to names such as `password` or `api_key`. It is a net, not a wall: what looks like ordinary
//! text passes.

use std::borrow::Cow;

use regex::Regex;

/// What stands in the place of a secret.
const MARK: &str = "[secret]";

/// Forms, and which group of each is the secret.
const FORMS: &[(&str, usize)] = &[
    // A private key, also one that was cut off at the end of the text.
    (
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----([\s\S]*?)(?:-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|\z)",
        1,
    ),
    // Amazon, GitHub, GitLab, Slack, Google, OpenAI and the like, Stripe, npm, PyPI, JSON web tokens.
    (r"\b((?:AKIA|ASIA|AGPA|AIDA|AROA)[A-Z0-9]{16})\b", 1),
    (
        r"\b(gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{40,}|glpat-[A-Za-z0-9_-]{20,})",
        1,
    ),
    (r"\b(xox[abeoprs]-[A-Za-z0-9-]{10,})", 1),
    (r"\b(AIza[A-Za-z0-9_-]{35})", 1),
    (r"\b(sk-[A-Za-z0-9_-]{20,}|[sr]k_(?:live|test)_[A-Za-z0-9]{16,})", 1),
    (
        r"\b(npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{32,}|hf_[A-Za-z0-9]{30,})",
        1,
    ),
    (r"\b(eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,})", 1),
    // The password of an address.
    (r"[A-Za-z][A-Za-z0-9+.-]*://[^\s:/@]*:([^\s/@]{3,})@", 1),
    // name = "value" in code, NAME=value in the environment. Short values and those that only name something else are left.
    (
        r#"(?i)(?:pass(?:word|wd|phrase)?|secret|token|api_?-?key|access_?-?key|auth_?-?key|private_?-?key|client_?-?secret)[A-Za-z0-9_-]*["']?\s*(?::\s*[&A-Za-z][A-Za-z0-9_<>&' ]{0,30}=|:=|=>|[:=])\s*["']([^"'\s$<{(]{8,})["']"#,
        1,
    ),
    (
        r#"(?m)^\s*(?:export\s+)?[A-Z0-9_]*(?:PASSWORD|PASSWD|SECRET|TOKEN|API_?KEY|ACCESS_?KEY)[A-Z0-9_]*=([^\s$<{("']{8,})\s*$"#,
        1,
    ),
    (
        r"(?i)\bauthorization:\s*(?:bearer|basic|token)\s+([A-Za-z0-9+/_.=~-]{8,})",
        1,
    ),
];

/// Strikes secrets out of texts.
#[derive(Debug)]
pub(super) struct Redactor {
    forms: Vec<(Regex, usize)>,
}

impl Redactor {
    pub(super) fn new() -> Self {
        let compiled = |&(form, group): &(&str, usize)| (Regex::new(form).expect("the forms are tested"), group);
        Self {
            forms: FORMS.iter().map(compiled).collect(),
        }
    }

    /// The text without the secrets that are known by their form, and how many there were.
    pub(super) fn redact<'t>(&self, text: &'t str) -> (Cow<'t, str>, usize) {
        let mut redacted = Cow::Borrowed(text);
        let mut n_found = 0;
        for (form, group) in &self.forms {
            let found: Vec<(usize, usize)> = form
                .captures_iter(&redacted)
                .filter_map(|captures| captures.get(*group))
                .filter(|secret| secret.as_str() != MARK && !secret.is_empty())
                .map(|secret| (secret.start(), secret.end()))
                .collect();
            n_found += found.len();
            if !found.is_empty() {
                let mut changed = redacted.into_owned();
                for (start, end) in found.into_iter().rev() {
                    changed.replace_range(start..end, MARK);
                }
                redacted = Cow::Owned(changed);
            }
        }
        (redacted, n_found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(text: &str) -> String {
        Redactor::new().redact(text).0.into_owned()
    }

    #[test]
    fn secrets_do_not_pass() {
        let filler = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0";
        for (text, secret) in [
            (
                format!("-----BEGIN RSA PRIVATE KEY-----\nMIIE{filler}\n-----END RSA PRIVATE KEY-----"),
                "MIIE",
            ),
            (format!("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl{filler}"), "b3Bl"),
            ("id = AKIAIOSFODNN7EXAMPLE".to_owned(), "AKIAIOSFODNN7EXAMPLE"),
            (format!("git clone https://x:ghp_{filler}@github.com"), "ghp_"),
            (format!("let t = \"github_pat_{filler}_{filler}\""), "github_pat_"),
            (format!("OPENAI = 'sk-{filler}'"), "sk-"),
            (format!("stripe sk_live_{filler}"), "sk_live_"),
            (format!("jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0.{filler}"), "eyJ"),
            ("db = postgres://app:hunter2@db/prod".to_owned(), "hunter2"),
            ("password = \"correct-horse\"".to_owned(), "correct-horse"),
            (
                "const TOKEN: &'static str = \"correct-horse\";".to_owned(),
                "correct-horse",
            ),
            ("\"apiKey\": 'Zm9vYmFyYmF6'".to_owned(), "Zm9vYmFyYmF6"),
            ("client_secret => 'Zm9vYmFyYmF6'".to_owned(), "Zm9vYmFyYmF6"),
            ("export DB_PASSWORD=correcthorse".to_owned(), "correcthorse"),
            ("Authorization: Bearer abcdef123456".to_owned(), "abcdef123456"),
        ] {
            assert!(!redacted(&text).contains(secret), "{}", redacted(&text));
            assert!(redacted(&text).contains(MARK));
        }
    }

    #[test]
    fn code_about_secrets_stays() {
        for text in [
            "fn password(&self) -> Option<&str> { self.password.as_deref() }",
            "let token = lexer.next_token();",
            "token = self.stream.current\nTOKEN = value_str",
            "if token_type == \"block_begin\":",
            "password = os.environ['DB_PASSWORD']",
            "if (secret == null) throw new Error('secret is missing');",
            "token: ${{ secrets.GITHUB_TOKEN }}",
            "api_key = \"$KEY\"",
            "https://example.com:8080/a@b",
            "the risk-of-something-very-long-with-dashes",
        ] {
            assert_eq!(redacted(text), text);
        }
    }
}
