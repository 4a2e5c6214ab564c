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

/// Stands for names of secrets in the forms.
const NAME: &str = "NAME";
const NAMES: &str = r"(?:pass(?:word|wd|phrase)|secret|token|api_?-?key|access_?-?key|account_?-?key|auth_?-?key|private_?-?key|encryption_?-?key|signing_?-?key|credentials?)";

/// How the text of a form's first group is told from other text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// The form alone.
    Always,
    /// A letter together with a digit or a sign that no name has: what stands without quotes may be a name in code.
    Mixed,
}

/// Forms, the first group of each is the secret.
const FORMS: &[(&str, Rule)] = &[
    // A private key, also one that was cut off at the end of the text.
    (
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----([\s\S]*?)(?:-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|\z)",
        Rule::Always,
    ),
    // Tokens with a known beginning: clouds, forges, registries, payment, mail, chat, models.
    (
        r"\b((?:AKIA|ASIA|AGPA|AIDA|AROA|ABIA|ACCA)[A-Z0-9]{16}|LTAI[A-Za-z0-9]{16,24}|AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,}|do[opr]_v1_[a-f0-9]{64}|dapi[a-f0-9]{32}|hv[sbr]\.[A-Za-z0-9_-]{24,}|[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}|pscale_[a-z]+_[A-Za-z0-9_.=-]{30,}|sbp_[a-f0-9]{40}|tskey-[a-z]+-[A-Za-z0-9-]{16,})",
        Rule::Always,
    ),
    (
        r"\b(gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{40,}|gl(?:pat|ptt|rt|dt|soat|ft|imt|cbt|agent)-[A-Za-z0-9_-]{20,}|ATATT3[A-Za-z0-9_=-]{60,}|ATBB[A-Za-z0-9]{28,}|npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{32,}|rubygems_[a-f0-9]{48}|cio[A-Za-z0-9]{32}\b|dckr_pat_[A-Za-z0-9_-]{20,}|sntry[su]_[A-Za-z0-9_+/=-]{40,}|glsa_[A-Za-z0-9]{32}_[a-f0-9]{8}|NRAK-[A-Z0-9]{27}|PMAK-[a-f0-9]{24}-[a-f0-9]{34}|lin_api_[A-Za-z0-9]{32,}|ntn_[A-Za-z0-9]{40,})",
        Rule::Always,
    ),
    (
        r"\b(xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}|xapp-\d-[A-Z0-9]+-\d+-[a-f0-9]{20,}|[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}|\d{8,10}:[A-Za-z0-9_-]{35}\b|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|(?:SK|AC)[0-9a-f]{32}\b|key-[0-9a-f]{32}\b|[0-9a-f]{32}-us\d{1,2}\b)",
        Rule::Always,
    ),
    (
        r"\b(sk-[A-Za-z0-9_-]{20,}|[srp]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{24,}|sq0(?:atp|csp)-[A-Za-z0-9_-]{22,}|shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}|hf_[A-Za-z0-9]{30,}|gsk_[A-Za-z0-9]{40,}|r8_[A-Za-z0-9]{30,}|xai-[A-Za-z0-9]{40,}|pplx-[A-Za-z0-9]{40,}|AGE-SECRET-KEY-1[A-Z0-9]{50,}|[A-Za-z0-9_~.-]{3}8Q~[A-Za-z0-9_~.-]{31,34})",
        Rule::Always,
    ),
    (
        r"\b(eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,})",
        Rule::Always,
    ),
    (
        r"(?:hooks\.slack\.com/(?:services|workflows|triggers)|discord(?:app)?\.com/api/webhooks/\d+)/([A-Za-z0-9/_-]{30,})",
        Rule::Always,
    ),
    // Connection strings and signed addresses of Azure.
    (
        r#"(?i)\b(?:AccountKey|SharedAccessKey|SharedAccessSignature)=([^;\s"'<>&]{16,})|[?&]sig=([A-Za-z0-9%+/=_-]{20,})"#,
        Rule::Always,
    ),
    (r#"(?i); ?(?:password|pwd)=([^;\s"'$<{]{4,})"#, Rule::Always),
    // The password of an address, of curl, of .netrc and .npmrc.
    (r"[A-Za-z][A-Za-z0-9+.-]*://[^\s:/@]*:([^\s/@]{3,})@", Rule::Always),
    (
        r#"\b(?:curl|wget|http)\b[^\n]*?\s(?:-u|--user|--proxy-user|-a)[\s=]*["']?[^\s:"'$]+:([^\s"'$<{]{3,})"#,
        Rule::Always,
    ),
    (r"\bmachine\s+\S+\s+login\s+\S+\s+password\s+(\S{4,})", Rule::Always),
    (r"(?m)[:_]_(?:authToken|auth|password)\s*=\s*([^\s$]{8,})", Rule::Always),
    // name = "value" in code, NAME=value in the environment. Short values and those that only name something else are left.
    (
        r#"(?i)(?:NAME|client_?-?secret|pass)[A-Za-z0-9_-]*["']?\s*(?::\s*[&A-Za-z][A-Za-z0-9_<>&' ]{0,30}=|:=|=>|[:=])\s*(?:[brufl]{1,2}|@)?["']([^"'\s$<{(]{8,})["']"#,
        Rule::Always,
    ),
    (
        r#"(?m)^\s*(?:export\s+)?[A-Z0-9_]*(?:PASSWORD|PASSWD|SECRET|TOKEN|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY)[A-Z0-9_]*=([^\s$<{("']{8,})\s*$"#,
        Rule::Always,
    ),
    (
        r#"(?im)^\s*(?:export|env|arg|set|setx|setenv|declare -x)\s(?:[^\n]*\s)?[a-z0-9_]*NAME[a-z0-9_]*[= ]["']?([^\s"'$<{(]{6,})"#,
        Rule::Mixed,
    ),
    // name: value in YAML, name = value in ini files and properties.
    (
        r#"(?im)^\s*(?:-\s+)?["']?[a-z0-9_.-]*NAME[a-z0-9_-]*["']?\s*[:=]\s*([^\s"'`$<{(\[|>&*,;][^\s"'`(){}\[\]<>,;]{5,})\s*(?:[#;][^\n]*)?$"#,
        Rule::Mixed,
    ),
    (r#"(?i)--NAME[= ]["']?([^\s"'$<{(-][^\s"'$<{(]{7,})"#, Rule::Mixed),
    // <password>value</password> and <add key="ApiKey" value="…"/>.
    (
        r#"(?i)<[a-z0-9_.:-]*NAME[a-z0-9_.-]*(?:\s[^<>]*)?>\s*([^<>\s$]{6,})\s*</"#,
        Rule::Mixed,
    ),
    (
        r#"(?i)\b(?:key|name)\s*=\s*["'][^"']*NAME[^"']*["']\s+value\s*=\s*["']([^"'$<{]{6,})["']"#,
        Rule::Mixed,
    ),
    (
        r#"(?i)\b(?:proxy-)?authorization["']?\s*[:=,]\s*["']?(?:bearer|basic|token)\s+([A-Za-z0-9+/_.=~-]{8,})"#,
        Rule::Always,
    ),
    (
        r#"(?i)\bx-(?:api-?key|auth-?token|vault-token)["']?\s*[:=,]\s*["']?([A-Za-z0-9+/_.=~-]{8,})"#,
        Rule::Mixed,
    ),
];

impl Rule {
    fn allows(self, secret: &str) -> bool {
        let is_sign = |byte: u8| b"!@#%^*+~?/=".contains(&byte);
        self == Self::Always
            || secret.bytes().any(|byte| byte.is_ascii_alphabetic())
                && secret.bytes().any(|byte| byte.is_ascii_digit() || is_sign(byte))
                && !is_name(secret)
    }
}

/// Whether it may be a name in code: words of letters with dots or underscores between them, digits at the end of a word at most
/// (`self.token2`, `tokens.utf8`), or a path.
fn is_name(text: &str) -> bool {
    let is_word = |word: &str| {
        let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
        letters.bytes().all(|byte| byte.is_ascii_alphabetic()) && word.len() - letters.len() <= 2
    };
    let text = text.trim_end_matches([':', '?', '.']);
    text.contains("::") || text.split(['.', '_', '/', '-']).all(is_word)
}

/// Made when the first text leaves: most calls send none.
static COMPILED: LazyLock<Vec<(Regex, Rule)>> = LazyLock::new(|| {
    let compiled = |&(form, rule): &(&str, Rule)| {
        (
            Regex::new(&form.replace(NAME, NAMES)).expect("the forms are tested"),
            rule,
        )
    };
    FORMS.iter().map(compiled).collect()
});

/// The text without the secrets that are known by their form, and how many there were.
pub(super) fn redact(text: &str) -> (Cow<'_, str>, usize) {
    let mut redacted = Cow::Borrowed(text);
    let mut n_found = 0;
    for (form, rule) in &*COMPILED {
        let found: Vec<(usize, usize)> = form
            .captures_iter(&redacted)
            .filter_map(|captures| captures.get(1).or(captures.get(2)))
            .filter(|secret| !secret.as_str().contains(MARK) && !secret.is_empty() && rule.allows(secret.as_str()))
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

    /// Secrets are put together from parts, so that no scanner takes this file for one that has them.
    #[test]
    fn no_known_form_passes() {
        let any = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4y5Z6";
        let hex = "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0";
        let upper = "Q1W2E3R4T5Y6U7I8O9P0A1S2D3F4G5H6J7K8L9Z0X1C2V3B4N5M6Q7W8E9R0";
        let (phrase, short) = ("s3cr3t-Passw0rd", "hunter2!");
        let tokens = [
            format!("{}{}", "AKIA", &upper[..16]),
            format!("{}{}", "LTAI", &any[..20]),
            format!("{}{}", "AIza", &any[..35]),
            format!("{}.{any}", "ya29"),
            format!("{}-{}", "GOCSPX", &any[..28]),
            format!("{}_v1_{hex}", "dop"),
            format!("{}{}", "dapi", &hex[..32]),
            format!("{}.{}", "hvs", &any[..30]),
            format!("{}.{}.{any}{any}", &any[..14], "atlasv1"),
            format!("{}_{}", "ghp", &any[..36]),
            format!("{}_{any}", "github_pat"),
            format!("{}-{}", "glpat", &any[..20]),
            format!("{}-{}", "glrt", &any[..20]),
            format!("{}_{}", "npm", &any[..36]),
            format!("{}-{any}", "pypi"),
            format!("{}_pat_{}", "dckr", &any[..27]),
            format!("{}-{}-{}", "xoxb", &hex[..12], &any[..24]),
            format!("{}{}.{}.{}", "M", &any[..23], &any[..6], &any[..38]),
            format!("{}:{}", "123456789", &any[..35]),
            format!("{}.{}.{}", "SG", &any[..22], &any[..43]),
            format!("{}{}", "SK", &hex[..32]),
            format!("{}{}", "AC", &hex[..32]),
            format!("{}-{}", "key", &hex[..32]),
            format!("{}-{any}", "sk-proj"),
            format!("{}-{any}", "sk-ant-api03"),
            format!("{}_live_{}", "sk", &any[..24]),
            format!("{}_{}", "whsec", &any[..32]),
            format!("{}_{}", "shpat", &hex[..32]),
            format!("{}_{}", "hf", &any[..34]),
            format!("{}_{}", "gsk", &any[..48]),
            format!("{}-1{upper}", "AGE-SECRET-KEY"),
            format!("{}8Q~{}", &any[..3], &any[..34]),
            format!("{}.{}.{any}", "eyJhbGciOiJIUzI1NiJ9", "eyJzdWIiOiIxMjM0"),
        ];
        for token in &tokens {
            for text in [
                token.clone(),
                format!("let client = connect(\"{token}\");"),
                format!("# see {token}\n"),
            ] {
                assert!(!redacted(&text).contains(token.as_str()), "{}", redacted(&text));
            }
        }
        for (text, secret) in [
            (format!("password: {phrase}\n"), phrase),
            (format!("db:\n  db_password: {phrase} # prod\n"), phrase),
            (format!("- api-key: {any}\n"), any),
            (format!("[db]\npassword = {short}\n"), short),
            (format!("aws_secret_access_key={any}\n"), any),
            (format!("spring.datasource.password={phrase}\n"), phrase),
            (format!("export DB_PASSWORD={phrase}\n"), phrase),
            (format!("export db_password='{phrase}'\n"), phrase),
            (format!("ENV API_TOKEN {phrase}\n"), phrase),
            (format!("ENV PORT=80 API_TOKEN={phrase} A=b\n"), phrase),
            (format!("ARG NPM_TOKEN={phrase}\n"), phrase),
            (format!("<password>{phrase}</password>"), phrase),
            (format!("<server.secret id=\"1\">{phrase}</server.secret>"), phrase),
            (format!("<add key=\"ApiKey\" value=\"{phrase}\" />"), phrase),
            (format!("curl -u admin:{short} https://example.com"), short),
            (format!("curl -sS --user 'admin:{short}' https://example.com"), short),
            (format!("SECRET = b\"{phrase}\""), phrase),
            (format!("secret = rb'{phrase}'"), phrase),
            (format!("AccountName=a;AccountKey={any}==;EndpointSuffix=b"), any),
            (format!("Endpoint=sb://a/;SharedAccessKey={any}="), any),
            (format!("https://a.blob.core.windows.net/b?sv=1&sig={any}%3D"), any),
            (format!("Server=a;User Id=b;Password={short};"), short),
            (
                format!("https://hooks.slack.com/services/{}/{}/{}", "T00", "B00", any),
                any,
            ),
            (format!("https://discord.com/api/webhooks/1234/{any}"), any),
            (format!("machine a.b login me password {phrase}"), phrase),
            (format!("//registry.npmjs.org/:_authToken={any}"), any),
            (format!("mongodb+srv://user:{phrase}@host/db"), phrase),
            (format!("redis://:{phrase}@host:6379"), phrase),
            (format!("headers = {{\"Authorization\": \"Bearer {any}\"}}"), any),
            (format!("-H 'X-Api-Key: {any}'"), any),
            (format!("deploy --token {any} now"), any),
        ] {
            assert!(!redacted(&text).contains(secret), "{}", redacted(&text));
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
            "password: String,\ntoken: Option<Token>,\nsecret: Secret2,",
            "password: str = Field()\n    token: SecretStr\n",
            "token = next_token\ntoken = self.tokens.utf8\nsecret = crate::secret::new2\n",
            "token: u64\nn_tokens: usize = 12345678\n",
            "secretName: my-app-secret\ntokenSecret: default/tokens\n",
            "export TOKEN\nset tokens of the parser\nENV PATH=/usr/local/bin1:$PATH\n",
            "<token>identifier</token> <password></password>",
            "curl -u $USER:$PASSWORD https://example.com",
            "docker run --token-file tokens.txt --password-stdin",
            "sk-learn and key-value and SG.module.name",
            "let at = 12345678:9; AC and SK",
            "AVeryLongNameOfAClassThatSomebodyHasWrittenInJava\nAnotherVeryLongNameOfAClassThatSomebodyHasWritten",
        ] {
            assert_eq!(redacted(text), text);
        }
    }
}
