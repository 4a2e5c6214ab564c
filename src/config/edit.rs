//! Changes one key of a settings file and leaves every other line as it is.

use std::io;
use std::path::{Path, PathBuf};

use super::file::{self, FileError};
use super::toml_text::{with_value, without};

/// The keys that can be set, each with what its value is.
pub const KEYS: [(&str, ValueKind); 63] = [
    ("index.max_blob_bytes", ValueKind::Number),
    ("embedding.model", ValueKind::Text),
    ("embedding.server", ValueKind::Text),
    ("embedding.api", ValueKind::Text),
    ("embedding.key_file", ValueKind::Text),
    ("embedding.key_variable", ValueKind::Text),
    ("embedding.proxy", ValueKind::Text),
    ("embedding.revision", ValueKind::Text),
    ("embedding.query_prefix", ValueKind::Text),
    ("embedding.document_prefix", ValueKind::Text),
    ("embedding.dimensions", ValueKind::Number),
    ("embedding.encoding", ValueKind::Text),
    ("embedding.batch", ValueKind::Number),
    ("embedding.in_flight", ValueKind::Number),
    ("embedding.timeout_s", ValueKind::Number),
    ("embedding.query_timeout_ms", ValueKind::Number),
    ("sparse.server", ValueKind::Text),
    ("sparse.key_file", ValueKind::Text),
    ("sparse.key_variable", ValueKind::Text),
    ("sparse.proxy", ValueKind::Text),
    ("sparse.model", ValueKind::Text),
    ("sparse.revision", ValueKind::Text),
    ("sparse.batch", ValueKind::Number),
    ("sparse.in_flight", ValueKind::Number),
    ("sparse.timeout_s", ValueKind::Number),
    ("sparse.query_timeout_ms", ValueKind::Number),
    ("sparse.weight_percent", ValueKind::Number),
    ("rerank.server", ValueKind::Text),
    ("rerank.key_file", ValueKind::Text),
    ("rerank.key_variable", ValueKind::Text),
    ("rerank.proxy", ValueKind::Text),
    ("rerank.api", ValueKind::Text),
    ("rerank.model", ValueKind::Text),
    ("rerank.candidates", ValueKind::Number),
    ("rerank.batch", ValueKind::Number),
    ("rerank.timeout_ms", ValueKind::Number),
    ("qdrant.server", ValueKind::Text),
    ("qdrant.key_file", ValueKind::Text),
    ("qdrant.key_variable", ValueKind::Text),
    ("qdrant.proxy", ValueKind::Text),
    ("qdrant.prefix", ValueKind::Text),
    ("qdrant.repository", ValueKind::Text),
    ("qdrant.shards", ValueKind::Number),
    ("qdrant.replication", ValueKind::Number),
    ("qdrant.write_consistency", ValueKind::Number),
    ("qdrant.read_consistency", ValueKind::Text),
    ("qdrant.compression", ValueKind::Text),
    ("qdrant.on_disk", ValueKind::Switch),
    ("qdrant.exact", ValueKind::Switch),
    ("qdrant.scan_below", ValueKind::Number),
    ("qdrant.keep_local", ValueKind::Switch),
    ("qdrant.in_flight", ValueKind::Number),
    ("qdrant.timeout_s", ValueKind::Number),
    ("qdrant.query_timeout_ms", ValueKind::Number),
    ("search.limit", ValueKind::Number),
    ("gc.auto", ValueKind::Switch),
    ("gc.reflog_days", ValueKind::Number),
    ("gc.max_bytes", ValueKind::Size),
    ("gc.dead_percent", ValueKind::Number),
    ("gc.deleted_files", ValueKind::Number),
    ("serve.roots", ValueKind::Text),
    ("history.max_commits", ValueKind::Number),
    ("history.since", ValueKind::Text),
];

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// A whole number below 2³².
    Number,
    /// A number of bytes, which may be larger.
    Size,
    /// `true` or `false`.
    Switch,
    /// Text, as a path.
    Text,
}

/// Why a setting was not changed.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// There is no such setting.
    #[error("unknown setting {key:?}")]
    UnknownKey {
        /// As it was given.
        key: String,
    },
    /// The value is not of its kind.
    #[error("invalid value {value:?} for {key}: expected an integer")]
    NotANumber {
        /// The key.
        key: String,
        /// As it was given.
        value: String,
    },
    /// The value is neither of two.
    #[error("{value:?} is neither true nor false, as {key} is")]
    NotASwitch {
        /// The key.
        key: String,
        /// As it was given.
        value: String,
    },
    /// It is set in a form that no line can be taken out of.
    #[error("{key} does not stand on a line of its own in {}: take it out by hand", .path.display())]
    NotALine {
        /// The key.
        key: String,
        /// The file.
        path: PathBuf,
    },
    /// The file is there and not in order.
    #[error(transparent)]
    File(#[from] FileError),
    /// It cannot be written.
    #[error("cannot write {}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// Sets `key` to `value` in the file at `path`, which is made if it is not there. The file changes as a whole or not at all.
pub fn set(path: &Path, key: &str, value: &str) -> Result<(), EditError> {
    let literal = literal(key, value)?;
    let text = text_of(path)?;
    write(path, &with_setting(&text, key, Some(&literal)))
}

/// Takes `key` out of the file at `path`; whether it was there.
pub fn unset(path: &Path, key: &str) -> Result<bool, EditError> {
    kind_of(key)?;
    let text = text_of(path)?;
    if !is_set(&text, key) {
        return Ok(false);
    }
    let changed = with_setting(&text, key, None);
    if is_set(&changed, key) {
        let (key, path) = (key.to_owned(), path.to_owned());
        return Err(EditError::NotALine { key, path });
    }
    write(path, &changed)?;
    Ok(true)
}

/// What a file says; nothing if it is not there.
fn text_of(path: &Path) -> Result<String, EditError> {
    // A file that cannot be used now would be none the better for one line more or less.
    Ok(file::read_linked(path)?.map(|(_, text)| text).unwrap_or_default())
}

fn write(path: &Path, text: &str) -> Result<(), EditError> {
    file::check(path, text)?;
    crate::sidecar::write_atomic(path, text.as_bytes()).map_err(io_error(path))
}

fn io_error(path: &Path) -> impl Fn(io::Error) -> EditError {
    let path = path.to_owned();
    move |source| EditError::Io {
        path: path.clone(),
        source,
    }
}

fn is_set(text: &str, key: &str) -> bool {
    let (table, name) = split(key);
    let tables: toml::Table = text.parse().unwrap_or_default();
    tables.get(table).is_some_and(|table| table.get(name).is_some())
}

/// A key's table and its name there.
fn split(key: &str) -> (&str, &str) {
    key.split_once('.').unwrap_or(("", key))
}

fn kind_of(key: &str) -> Result<ValueKind, EditError> {
    let known = KEYS.iter().find(|(known, _)| *known == key);
    let unknown = || EditError::UnknownKey { key: key.to_owned() };
    known.map(|(_, kind)| *kind).ok_or_else(unknown)
}

/// The value as it is written in TOML.
fn literal(key: &str, value: &str) -> Result<String, EditError> {
    match kind_of(key)? {
        ValueKind::Text => Ok(toml::Value::String(value.to_owned()).to_string()),
        ValueKind::Switch => match value.parse::<bool>() {
            Ok(switch) => Ok(switch.to_string()),
            Err(_) => Err(EditError::NotASwitch {
                key: key.to_owned(),
                value: value.to_owned(),
            }),
        },
        kind => {
            // TOML has signed numbers.
            let largest = if kind == ValueKind::Size {
                i64::MAX as u64
            } else {
                u32::MAX.into()
            };
            match value.parse::<u64>().ok().filter(|number| *number <= largest) {
                Some(number) => Ok(number.to_string()),
                None => Err(EditError::NotANumber {
                    key: key.to_owned(),
                    value: value.to_owned(),
                }),
            }
        }
    }
}

/// Returns the text with `literal` as the value of the key, or without the key.
fn with_setting(text: &str, key: &str, literal: Option<&str>) -> String {
    let (table, name) = split(key);
    match literal {
        Some(literal) => with_value(text, &[table], name, literal),
        None => without(text, &[table, name]),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn other_lines_stay_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        let text = "# mine\n[index] # sizes\nmax_blob_bytes = 5\n\n[search]\nlimit = 3\n";
        std::fs::write(&path, text).unwrap();
        set(&path, "index.max_blob_bytes", "7").unwrap();
        set(&path, "embedding.model", "/models/a \"b\"").unwrap();
        let found = std::fs::read_to_string(&path).unwrap();
        let expected = "# mine\n[index] # sizes\nmax_blob_bytes = 7\n\n[search]\nlimit = 3\n\n[embedding]\nmodel = ";
        assert!(found.starts_with(expected), "{found}");
        set(&path, "search.limit", "20").unwrap();
        let (settings, _) = file::read(&path).unwrap().unwrap();
        assert_eq!(
            (settings.search.limit, settings.index.max_blob_bytes),
            (Some(20), Some(7))
        );
        assert_eq!(settings.embedding.model, Some(PathBuf::from("/models/a \"b\"")));
    }

    #[test]
    fn lines_keep_their_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        std::fs::write(&path, "# mine\r\n[search]\r\nlimit = 3\r\n").unwrap();
        set(&path, "search.limit", "7").unwrap();
        set(&path, "gc.auto", "false").unwrap();
        let found = std::fs::read_to_string(&path).unwrap();
        let expected = "# mine\r\n[search]\r\nlimit = 7\r\n\r\n[gc]\r\nauto = false\r\n";
        assert_eq!(found, expected);
    }

    #[test]
    fn dotted_keys_and_values_over_several_lines_are_edited_in_place() {
        let text = "search.limit = 3 # few\ngc.auto = true\n[serve]\nroots = \"\"\"\n[gc]\nauto\"\"\"\n";
        let more = with_setting(text, "search.limit", Some("7"));
        assert_eq!(more, text.replace("3 # few", "7 # few"));
        let less = with_setting(&more, "gc.auto", None);
        assert_eq!(less, more.replace("gc.auto = true\n", ""));
        let roots = with_setting(&less, "serve.roots", Some("\"/a\""));
        assert_eq!(roots, "search.limit = 7 # few\n[serve]\nroots = \"/a\"\n");
        assert_eq!(
            with_setting(&roots, "serve.roots", None),
            "search.limit = 7 # few\n[serve]\n"
        );
    }

    #[test]
    fn one_line_is_taken_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        assert!(!unset(&path, "search.limit").unwrap() && !path.exists());
        std::fs::write(&path, "# mine\n[search]\nlimit = 3 # few\n\n[gc]\nauto = false\n").unwrap();
        assert!(!unset(&path, "gc.reflog_days").unwrap());
        assert!(unset(&path, "search.limit").unwrap());
        let found = std::fs::read_to_string(&path).unwrap();
        assert_eq!(found, "# mine\n[search]\n\n[gc]\nauto = false\n");
        assert!(matches!(
            unset(&path, "search.limits"),
            Err(EditError::UnknownKey { .. })
        ));
        let inline = "gc = { auto = false }\n";
        std::fs::write(&path, inline).unwrap();
        assert!(matches!(unset(&path, "gc.auto"), Err(EditError::NotALine { .. })));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), inline);
    }

    #[test]
    fn a_file_is_made_and_a_broken_one_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        set(&path, "search.limit", "20").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "[search]\nlimit = 20\n");
        std::fs::write(&path, "[search\n").unwrap();
        assert!(matches!(set(&path, "search.limit", "2"), Err(EditError::File(_))));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "[search\n");
    }

    #[test]
    fn wrong_keys_and_values_are_refused() {
        let nowhere = Path::new("/nonexistent/config.toml");
        assert!(matches!(
            set(nowhere, "search.limits", "2"),
            Err(EditError::UnknownKey { .. })
        ));
        for (key, value) in [
            ("search.limit", "two"),
            ("search.limit", "5000000000"),
            ("gc.max_bytes", "-1"),
        ] {
            assert!(matches!(set(nowhere, key, value), Err(EditError::NotANumber { .. })));
        }
        assert!(matches!(
            set(nowhere, "gc.auto", "1"),
            Err(EditError::NotASwitch { .. })
        ));
    }

    #[test]
    fn every_key_is_one_that_a_file_may_have() {
        for (key, kind) in KEYS {
            let value = match kind {
                ValueKind::Number => "1",
                ValueKind::Size => "9000000000",
                ValueKind::Switch => "false",
                ValueKind::Text => "x",
            };
            let text = with_setting("", key, Some(&literal(key, value).unwrap()));
            file::check(Path::new("sample"), &text).unwrap();
        }
    }
}
