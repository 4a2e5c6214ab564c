//! The types of settings: parses their values from text and formats them.

use std::ffi::OsStr;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::links::Reader;
use crate::query::parse_moment;
use crate::remote::{EmbeddingApi, Encoding, Endpoint, RerankApi};

const MAX_PREFIX: usize = 64;

/// The TOML type of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Integer,
    Boolean,
    String,
}

/// A type of setting values.
pub(super) trait Value: Sized {
    const KIND: Kind = Kind::String;
    /// Follows "expected" in error messages.
    const EXPECTED: &'static str;

    /// Parses a value from an environment variable or the command line.
    fn parse(text: &OsStr) -> Option<Self>;

    /// Formats the value for `codescout config`. Returns `unset` if there is no value.
    fn shown(&self, unset: &str) -> String;
}

/// Implements [`Value`] for a type with `FromStr` and `Display`.
macro_rules! plain_value {
    ($type:ty, $kind:expr, $expected:literal) => {
        impl Value for $type {
            const KIND: Kind = $kind;
            const EXPECTED: &'static str = $expected;

            fn parse(text: &OsStr) -> Option<Self> {
                text.to_str()?.parse().ok()
            }

            fn shown(&self, _unset: &str) -> String {
                self.to_string()
            }
        }
    };
}

plain_value!(u32, Kind::Integer, "an integer");
plain_value!(u64, Kind::Integer, "a number of bytes");
plain_value!(bool, Kind::Boolean, "true or false");
plain_value!(String, Kind::String, "text");
plain_value!(
    Reader,
    Kind::String,
    "groups separated by commas, or *, and the hash of a token"
);

impl Value for PathBuf {
    const EXPECTED: &'static str = "a path";

    fn parse(text: &OsStr) -> Option<Self> {
        Some(Self::from(text))
    }

    fn shown(&self, _unset: &str) -> String {
        self.display().to_string()
    }
}

impl Value for Vec<PathBuf> {
    const EXPECTED: &'static str = "paths separated by colons";

    fn parse(text: &OsStr) -> Option<Self> {
        Some(std::env::split_paths(text).collect())
    }

    fn shown(&self, unset: &str) -> String {
        let paths: Vec<String> = self.iter().map(|path| path.display().to_string()).collect();
        if paths.is_empty() {
            unset.to_owned()
        } else {
            paths.join(":")
        }
    }
}

impl<T: Value> Value for Option<T> {
    const KIND: Kind = T::KIND;
    const EXPECTED: &'static str = T::EXPECTED;

    fn parse(text: &OsStr) -> Option<Self> {
        T::parse(text).map(Some)
    }

    fn shown(&self, unset: &str) -> String {
        self.as_ref()
            .map_or_else(|| unset.to_owned(), |value| value.shown(unset))
    }
}

/// An absolute path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbsolutePath(PathBuf);

impl Deref for AbsolutePath {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Value for AbsolutePath {
    const EXPECTED: &'static str = "an absolute path";

    fn parse(text: &OsStr) -> Option<Self> {
        Some(Self(PathBuf::from(text))).filter(|path| path.is_absolute())
    }

    fn shown(&self, _unset: &str) -> String {
        self.display().to_string()
    }
}

/// The address of a server. It is validated when the server is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address(String);

impl Deref for Address {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Value for Address {
    const EXPECTED: &'static str = "an address";

    fn parse(text: &OsStr) -> Option<Self> {
        Some(Self(text.to_str()?.to_owned()))
    }

    fn shown(&self, _unset: &str) -> String {
        // An address that contains a password is invalid, and must not be printed.
        match Endpoint::new(self) {
            Ok(_) => self.0.clone(),
            Err(_) => "not a usable address".to_owned(),
        }
    }
}

/// A program with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    text: String,
    words: Vec<String>,
}

impl CommandLine {
    /// Returns the program and its arguments.
    pub fn words(&self) -> &[String] {
        &self.words
    }
}

impl Value for CommandLine {
    const EXPECTED: &'static str =
        "a program with arguments; shell syntax has no effect: quote it, or put it in a script, such as `sh test.sh`";

    fn parse(text: &OsStr) -> Option<Self> {
        let text = text.to_str()?;
        let words = words(text).filter(|words| !words.is_empty())?;
        Some(Self {
            text: text.to_owned(),
            words,
        })
    }

    fn shown(&self, _unset: &str) -> String {
        self.text.clone()
    }
}

/// The time limit of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandTimeout(pub(super) Duration);

impl CommandTimeout {
    /// The longest one.
    pub const MAX: Duration = Duration::from_secs(3600);
}

impl Deref for CommandTimeout {
    type Target = Duration;

    fn deref(&self) -> &Duration {
        &self.0
    }
}

impl Value for CommandTimeout {
    const KIND: Kind = Kind::Integer;
    const EXPECTED: &'static str = "a number of seconds from 1 to 3600";

    fn parse(text: &OsStr) -> Option<Self> {
        let timeout = Duration::from_secs(text.to_str()?.parse().ok()?);
        (!timeout.is_zero() && timeout <= Self::MAX).then_some(Self(timeout))
    }

    fn shown(&self, _unset: &str) -> String {
        self.as_secs().to_string()
    }
}

/// Splits a command line at white space. Quotes of either kind keep text together; nothing else has a meaning. Returns
/// `None` for unquoted shell syntax, which would be expected to have one.
fn words(text: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in text.chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '|' | '&' | ';' | '<' | '>' | '$' | '`' | '\\') => return None,
            (_, _) if c.is_control() && c != '\t' => return None,
            (None, _) if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

/// Declares a text type whose values satisfy a condition.
macro_rules! checked_text {
    ($(#[$meta:meta])* $name:ident, $expected:literal, $is_valid:expr) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name(pub(super) String);

        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl Value for $name {
            const EXPECTED: &'static str = $expected;

            fn parse(text: &OsStr) -> Option<Self> {
                let is_valid: fn(&str) -> bool = $is_valid;
                Some(Self(text.to_str()?.to_owned())).filter(|text| is_valid(text))
            }

            fn shown(&self, _unset: &str) -> String {
                self.0.clone()
            }
        }
    };
}

checked_text!(
    /// The prefix of collection names. It contains no characters that must be escaped in a URL.
    Prefix,
    "at most 64 letters, digits, hyphens and underscores",
    |text| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        !text.is_empty() && text.len() <= MAX_PREFIX && text.bytes().all(is_plain)
    }
);

checked_text!(
    /// A date, or `always`.
    Since,
    "always, or a date: 2024-02-29, or 12h, 30d, 2w, 6m, 1y ago",
    |text| text == "always" || parse_moment(text, 0).is_some()
);

impl Since {
    /// Returns the time in seconds since 1970. `now` is the current time. `None` for `always`.
    pub(super) fn moment(&self, now: i64) -> Option<i64> {
        parse_moment(self, now)
    }
}

/// Implements [`Value`] for an enum whose variants have names.
macro_rules! choice {
    ($type:ident, $expected:literal, $($name:literal => $variant:ident),+) => {
        impl Value for $type {
            const EXPECTED: &'static str = $expected;

            fn parse(text: &OsStr) -> Option<Self> {
                match text.to_str()? {
                    $($name => Some(Self::$variant),)+
                    _ => None,
                }
            }

            fn shown(&self, _unset: &str) -> String {
                match self {
                    $(Self::$variant => $name,)+
                }
                .to_owned()
            }
        }
    };
}

choice!(EmbeddingApi, "openai, ollama or tei", "openai" => OpenAi, "ollama" => Ollama, "tei" => Tei);
choice!(Encoding, "float or base64", "float" => Float, "base64" => Base64);
choice!(
    RerankApi,
    "tei, infinity, cohere, jina, voyage or llamacpp",
    "tei" => Tei, "infinity" => Infinity, "cohere" => Cohere, "jina" => Jina, "voyage" => Voyage, "llamacpp" => LlamaCpp
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_split_without_a_shell() {
        let split = |text: &str| CommandLine::parse(text.as_ref()).map(|line| line.words.join("|"));
        for (text, expected) in [
            ("cargo test", Some("cargo|test")),
            ("  pytest  -k 'a and b'", Some("pytest|-k|a and b")),
            (r#"make "A=x y"z '' '$HOME'"#, Some("make|A=x yz||$HOME")),
            ("go test ./...", Some("go|test|./...")),
            ("", None),
            ("  ", None),
            ("a && b", None),
            ("a; b", None),
            ("a > b", None),
            ("a $(b)", None),
            ("a `b`", None),
            ("a 'b", None),
            ("a\nb", None),
        ] {
            assert_eq!(split(text).as_deref(), expected, "{text}");
        }
    }
}
