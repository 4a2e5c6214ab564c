//! Changes one setting in a settings file. All other lines remain unchanged.

use std::io;
use std::path::{Path, PathBuf};

use super::file::{self, FileError};
use super::settings::{InvalidValue, SettingInfo};
use super::toml_text::{with_value, without};

/// An error from changing a setting.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The setting does not exist.
    #[error("unknown setting {key:?}")]
    UnknownKey {
        /// The key as given.
        key: String,
    },
    /// The value is not valid for the setting.
    #[error(transparent)]
    Value(#[from] InvalidValue),
    /// The setting is not on a line of its own, so no line can be removed.
    #[error("{key} is not on a line of its own in {}: remove it by hand", .path.display())]
    NotALine {
        /// The key.
        key: String,
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be read or has errors.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file cannot be written.
    #[error("cannot write {}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

/// A change of a file.
#[derive(Debug)]
pub struct Edited {
    /// The text before the change; `None` if there was no file.
    pub before: Option<String>,
    /// The text after it.
    pub after: String,
}

/// Sets `key` to `value` in the file at `path`. Creates the file if it does not exist. Replaces the file atomically.
pub fn set(path: &Path, key: &str, value: &str) -> Result<Edited, EditError> {
    let literal = info_of(key)?.literal(value)?;
    let before = text_of(path)?;
    let after = with_setting(before.as_deref().unwrap_or_default(), key, Some(&literal));
    write(path, &after)?;
    Ok(Edited { before, after })
}

/// Removes `key` from the file at `path`. Returns `None` if it was not set there.
pub fn unset(path: &Path, key: &str) -> Result<Option<Edited>, EditError> {
    info_of(key)?;
    let before = text_of(path)?;
    let text = before.as_deref().unwrap_or_default();
    if !is_set(text, key) {
        return Ok(None);
    }
    let after = with_setting(text, key, None);
    if is_set(&after, key) {
        let (key, path) = (key.to_owned(), path.to_owned());
        return Err(EditError::NotALine { key, path });
    }
    write(path, &after)?;
    Ok(Some(Edited { before, after }))
}

/// Returns the text of a file, or `None` if the file does not exist.
fn text_of(path: &Path) -> Result<Option<String>, EditError> {
    // A file with errors is not edited.
    Ok(file::read_linked(path)?.map(|(_, text)| text))
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

/// Splits a key into its table and its name in the table.
fn split(key: &str) -> (&str, &str) {
    key.split_once('.').unwrap_or(("", key))
}

fn info_of(key: &str) -> Result<&'static SettingInfo, EditError> {
    SettingInfo::of(key).ok_or_else(|| EditError::UnknownKey { key: key.to_owned() })
}

/// Returns the text with `literal` as the value of the key; if `literal` is `None`, without the key.
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
        let mut found: Vec<_> = settings
            .iter()
            .map(|(_, key, text)| (key.as_str(), text.to_str().unwrap()))
            .collect();
        found.sort_unstable();
        assert_eq!(
            found,
            [
                ("embedding.model", "/models/a \"b\""),
                ("index.max_blob_bytes", "7"),
                ("search.limit", "20")
            ]
        );
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
        assert!(unset(&path, "search.limit").unwrap().is_none() && !path.exists());
        std::fs::write(&path, "# mine\n[search]\nlimit = 3 # few\n\n[gc]\nauto = false\n").unwrap();
        assert!(unset(&path, "gc.reflog_days").unwrap().is_none());
        assert!(unset(&path, "search.limit").unwrap().is_some());
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
            ("gc.auto", "1"),
            ("embedding.encoding", "zip"),
            ("qdrant.prefix", "a/b"),
            ("history.since", "yesterday"),
            ("rerank.key_file", "key"),
        ] {
            assert!(matches!(set(nowhere, key, value), Err(EditError::Value(_))), "{key}");
        }
        assert_eq!(
            set(nowhere, "search.limit", "abc").unwrap_err().to_string(),
            "invalid value \"abc\" for search.limit: expected an integer"
        );
    }
}
