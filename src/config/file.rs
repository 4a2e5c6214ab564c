//! Reads settings files, which are TOML. Unknown keys are errors.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use toml::Spanned;

use super::lines::line_number;
use super::settings::{NAMED, SETTINGS, SettingInfo};
use crate::sidecar::Owners;

/// Maximum size of a settings file. Real ones are much smaller.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The settings in a file: rows of the table, keys, and values as text.
pub(super) type Settings = Vec<(&'static SettingInfo, String, OsString)>;

/// An error from reading a settings file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file cannot be read.
    #[error("cannot read {}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The file is too large to be a settings file.
    #[error("{} has {n_bytes} bytes; a settings file has at most {MAX_FILE_BYTES}", .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The size of the file in bytes.
        n_bytes: u64,
    },
    /// The file is not TOML, or contains an unknown key or an invalid value.
    #[error("{}: {message}", .path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The position and the error.
        message: String,
    },
}

/// Reads a settings file. Returns the settings and the text of the file, or `None` if there is no file or it is a
/// symbolic link.
pub(super) fn read(path: &Path) -> Result<Option<(Settings, String)>, FileError> {
    read_where(path, std::fs::symlink_metadata(path))
}

/// Like [`read`], but warns about a file that this user may not read, and ignores it.
pub(super) fn read_if_allowed(path: &Path) -> Result<Option<(Settings, String)>, FileError> {
    match read(path) {
        Err(FileError::Io { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => {
            tracing::warn!("cannot read {}: its settings are ignored", path.display());
            Ok(None)
        }
        found => found,
    }
}

/// Returns true, with a warning, if a file belongs neither to this user nor to root nor to the owner of its folder.
pub(super) fn is_of_another_user(path: &Path) -> bool {
    let owner = |path: &Path| Some(std::fs::symlink_metadata(path).ok()?.uid());
    let own = Owners::current_user_and(path.parent().and_then(owner));
    let is_foreign = owner(path).is_some_and(|owner| !own.contain(owner));
    if is_foreign {
        tracing::warn!("{} belongs to another user and is ignored", path.display());
    }
    is_foreign
}

/// Like [`read`], for the user's own file, which may be a symbolic link.
pub(super) fn read_linked(path: &Path) -> Result<Option<(Settings, String)>, FileError> {
    read_where(path, std::fs::metadata(path))
}

fn read_where(path: &Path, found: io::Result<std::fs::Metadata>) -> Result<Option<(Settings, String)>, FileError> {
    let io_error = |source| FileError::Io {
        path: path.to_owned(),
        source,
    };
    let metadata = match found {
        Ok(metadata) if metadata.is_file() => metadata,
        Ok(_) => return Ok(None),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(io_error(error)),
    };
    if metadata.len() > MAX_FILE_BYTES {
        return Err(FileError::TooLarge {
            path: path.to_owned(),
            n_bytes: metadata.len(),
        });
    }
    let text = std::fs::read_to_string(path).map_err(io_error)?;
    Ok(Some((check(path, &text)?, text)))
}

/// Parses the settings in `text`. `path` is used in error messages.
pub(super) fn check(path: &Path, text: &str) -> Result<Settings, FileError> {
    parse(text).map_err(|message| FileError::Syntax {
        path: path.to_owned(),
        message,
    })
}

fn parse(text: &str) -> Result<Settings, String> {
    let sections: BTreeMap<String, BTreeMap<String, Spanned<toml::Value>>> =
        toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
    let mut settings = Vec::new();
    for (section, values) in sections {
        if !SETTINGS.iter().chain(NAMED).any(|setting| setting.section() == section) {
            return Err(format!("unknown section [{section}]"));
        }
        for (name, value) in values {
            let at_line = |message: String| format!("line {}: {message}", line_number(text, value.span().start));
            let key = format!("{section}.{name}");
            let setting = SettingInfo::of(&key).ok_or_else(|| at_line(format!("unknown setting {key:?}")))?;
            let text = setting
                .text_of(value.get_ref())
                .map_err(|error| at_line(error.to_string()))?;
            settings.push((setting, key, text));
        }
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn unknown_keys_and_wrong_types_are_errors() {
        let settings = parse("[index]\nmax_blob_bytes = 0x1_0").unwrap();
        assert_eq!(
            (settings[0].1.as_str(), &*settings[0].2),
            ("index.max_blob_bytes", "16".as_ref())
        );
        for (text, message) in [
            ("[index]\nmax_blob = 5", "line 2: unknown setting \"index.max_blob\""),
            ("[serve]\n", ""),
            ("[severs]\n", "unknown section [severs]"),
            (
                "[search]\n\nlimit = '5'",
                "line 3: invalid value \"5\" for search.limit: expected an integer",
            ),
            (
                "[gc]\nauto = 1",
                "line 2: invalid value 1 for gc.auto: expected true or false",
            ),
            (
                "gc.max_bytes = -1",
                "line 1: invalid value -1 for gc.max_bytes: expected a number of bytes",
            ),
        ] {
            assert_eq!(parse(text).err().unwrap_or_default(), message);
        }
        assert!(parse("command = 'x'").unwrap_err().contains("line 1"));
    }
}
