//! Records which settings files and tokens this user wrote or approved.
//!
//! A checkout or an archive can contain any file, including `.codescout/config.toml`. So servers, keys and tokens in such
//! a file are used only if its path and content are recorded in a folder of the user, where a checkout cannot write.

use std::io;
use std::path::{Path, PathBuf};

use super::env::Environment;
use super::file;
use super::resolve::{ConfigError, first_key};
use super::settings::Scope;
use crate::git::read_small_file;

/// The record. It contains one small file for each settings file, named by a hash of the settings file's path. Its
/// content is the hash of the settings file's content.
#[derive(Clone, Debug)]
pub(super) struct Trusted {
    folder: Option<PathBuf>,
}

impl Trusted {
    pub(super) fn new(environment: &Environment) -> Self {
        Self {
            folder: environment.trusted.clone(),
        }
    }

    /// Returns true if the file at `path` is recorded with this content.
    pub(super) fn contains(&self, path: &Path, text: &str) -> bool {
        let recorded = self.record_of(path).and_then(std::fs::read_to_string);
        recorded.is_ok_and(|recorded| recorded.lines().next() == Some(&hash_of(text)))
    }

    /// Records the file at `path` with this content.
    fn add(&self, path: &Path, text: &str) -> io::Result<()> {
        let record = self.record_of(path)?;
        if let Some(folder) = record.parent() {
            std::fs::create_dir_all(folder)?;
        }
        // The path in the entry is only for human readers.
        let entry = format!("{}\n{}\n", hash_of(text), path.display());
        crate::sidecar::write_atomic(&record, entry.as_bytes())
    }

    fn record_of(&self, path: &Path) -> io::Result<PathBuf> {
        let no_home = || io::Error::new(io::ErrorKind::NotFound, "neither HOME nor XDG_STATE_HOME is set");
        let folder = self.folder.as_ref().ok_or_else(no_home)?;
        let path = std::fs::canonicalize(path)?;
        Ok(folder.join(blake3::hash(path.as_os_str().as_encoded_bytes()).to_hex().as_str()))
    }
}

fn hash_of(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// Returns the first key that requires trust in `text`, if that is not recorded as the content of the file at `path`.
/// Returns `None` if the file may be used.
pub fn untrusted_key(path: &Path, text: &str, environment: &Environment) -> Result<Option<String>, ConfigError> {
    let settings = file::check(path, text)?;
    let is_trusted = Trusted::new(environment).contains(path, text);
    Ok(first_key(&settings, |scope| scope == Scope::User).filter(|_| !is_trusted))
}

/// Returns true if the file at `path` is recorded with its current content.
pub fn is_trusted(path: &Path, environment: &Environment) -> bool {
    let Ok(Some(bytes)) = read_small_file(path) else {
        return false;
    };
    str::from_utf8(&bytes).is_ok_and(|text| Trusted::new(environment).contains(path, text))
}

/// Records the current content of the file at `path` as written or approved by this user.
pub fn trust(path: &Path, environment: &Environment) -> Result<(), ConfigError> {
    let text = std::fs::read_to_string(path);
    let not_recorded = |source| ConfigError::NotRecorded {
        path: path.to_owned(),
        source,
    };
    trust_text(path, &text.map_err(not_recorded)?, environment)
}

/// Records `text` as the content of the file at `path` that this user wrote or approved. What is in the file is not read:
/// somebody may have replaced it.
pub fn trust_text(path: &Path, text: &str, environment: &Environment) -> Result<(), ConfigError> {
    Trusted::new(environment)
        .add(path, text)
        .map_err(|source| ConfigError::NotRecorded {
            path: path.to_owned(),
            source,
        })
}
