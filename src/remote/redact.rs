//! Secrets are struck out of texts before these leave the machine.
//!
//! A small set of forms that are secrets with near certainty: private keys, tokens with a known beginning, passwords in addresses,
//! and long values that are assigned to names such as `password` or `api_key`. It is a net, not a wall: what looks like ordinary
//! text passes.

use std::borrow::Cow;
use std::sync::LazyLock;

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

/// Made when the first text leaves: most calls send none.
static COMPILED: LazyLock<Vec<(Regex, usize)>> = LazyLock::new(|| {
    let compiled = |&(form, group): &(&str, usize)| (Regex::new(form).expect("the forms are tested"), group);
    FORMS.iter().map(compiled).collect()
});

/// The text without the secrets that are known by their form, and how many there were.
pub(super) fn redact(text: &str) -> (Cow<'_, str>, usize) {
    let mut redacted = Cow::Borrowed(text);
    let mut n_found = 0;
    for (form, group) in &*COMPILED {
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
    let runs = encoded_runs(&redacted);
    n_found += runs.len();
    for (start, end) in runs.into_iter().rev() {
        redacted.to_mut().replace_range(start..end, MARK);
    }
    (redacted, n_found)
}

/// Lines of base64 that follow one another: the inside of a key whose first line stands in an earlier part of the file, since files
/// leave in parts. Other data that is written so says nothing either.
fn encoded_runs(text: &str) -> Vec<(usize, usize)> {
    let mut end = 0;
    let lines: Vec<(usize, usize, Line)> = text
        .split_inclusive('\n')
        .map(|line| {
            let start = end;
            end += line.len();
            (start, start + line.trim_end().len(), Line::of(line))
        })
        .collect();
    let is = |at: usize, wanted: Line| lines.get(at).is_some_and(|&(_, _, kind)| kind == wanted);
    let (mut runs, mut at) = (Vec::new(), 0);
    while at < lines.len() {
        let first = at;
        while is(at, Line::Encoded) {
            at += 1;
        }
        let n_encoded = at - first;
        // The last line of a key is shorter; a part may begin with it.
        if is(at, Line::Short) && (n_encoded > 0 || at == 0) {
            at += 1;
        }
        if at > first && (n_encoded > 1 || is(at, Line::KeyEnd)) {
            runs.push((lines[first].0, lines[at - 1].1));
        }
        at = at.max(first + 1);
    }
    runs
}

/// What a line looks like, without what a string in code has around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// Base64, long and mixed as no word is.
    Encoded,
    /// Nothing that base64 does not have.
    Short,
    /// The last of a key.
    KeyEnd,
    Other,
}

impl Line {
    fn of(line: &str) -> Self {
        const MIN_ENCODED_BYTES: usize = 40;
        let code = line.trim().trim_end_matches([',', ';', '+', '\\', '.']).trim_end();
        let code = code.trim_matches(['"', '\'', '`']).trim_end_matches("\\n");
        let has = |wanted: fn(&u8) -> bool| code.as_bytes().iter().any(wanted);
        let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
        if code.starts_with("-----END ") && code.contains("PRIVATE KEY") {
            return Self::KeyEnd;
        }
        if code.is_empty() || !code.bytes().all(is_base64) {
            return Self::Other;
        }
        let is_mixed = has(u8::is_ascii_digit) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase);
        match code.len() >= MIN_ENCODED_BYTES && is_mixed {
            true => Self::Encoded,
            false => Self::Short,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(text: &str) -> String {
        redact(text).0.into_owned()
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
    fn a_key_that_is_cut_into_parts_does_not_pass() {
        let line = |number: u32| format!("{number:02}IEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj");
        let quoted = |number: u32| format!("    \"{}\\n\" +\n", line(number));
        let key = |of: &dyn Fn(u32) -> String| {
            let body: String = (10..60).map(of).collect();
            format!(
                "-----BEGIN RSA PRIVATE KEY-----\n{body}Zm9vYmFyYg==\n-----END RSA PRIVATE KEY-----\nfn after() {{}}\n"
            )
        };
        for key in [key(&|number| line(number) + "\n"), key(&quoted)] {
            for cut in (0..key.len()).step_by(7) {
                for part in [&key[..cut], &key[cut..]] {
                    let left = redacted(part);
                    // At most the line that is cut, which is less than a tenth of the key.
                    let n_left = left.matches("IEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj").count();
                    assert!(n_left <= 1, "cut at {cut}: {left}");
                }
            }
            assert!(redacted(&key).ends_with("-----END RSA PRIVATE KEY-----\nfn after() {}\n"));
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
            "end\n-----END OF FILE-----\nconst END: &str = \"-----END PRIVATE KEY-----\";",
            "AVeryLongNameOfAClassThatSomebodyHasWrittenInJava\nAnotherVeryLongNameOfAClassThatSomebodyHasWritten",
        ] {
            assert_eq!(redacted(text), text);
        }
    }
}
