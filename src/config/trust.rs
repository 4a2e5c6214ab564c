//! Which settings files beside repositories this user wrote or approved.
//!
//! A checkout or an archive can hold any file, also one where a sidecar stands. So what such a file says of servers and keys counts only if
//! its path and its content are recorded in a folder of the user's own, which neither can write to.

use std::io;
use std::path::{Path, PathBuf};

use super::env::Environment;
use super::file;
use super::resolve::{ConfigError, first_key};
use super::settings::Scope;

/// The record of settings files: one small file for each, named by its path, that holds the hash of its content.
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

    /// Whether the file at `path` was recorded when it had this content.
    pub(super) fn contains(&self, path: &Path, text: &str) -> bool {
        let recorded = self.record_of(path).and_then(std::fs::read_to_string);
        recorded.is_ok_and(|recorded| recorded.lines().next() == Some(&hash_of(text)))
    }

    /// Records the file at `path` with the content that it has.
    fn add(&self, path: &Path) -> io::Result<()> {
        let text = std::fs::read_to_string(path)?;
        let record = self.record_of(path)?;
        if let Some(folder) = record.parent() {
            std::fs::create_dir_all(folder)?;
        }
        // The path is for people.
        let entry = format!("{}\n{}\n", hash_of(&text), path.display());
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

/// The key by which the file at `path` names a server, a key or a root without being recorded as this user's; `None` if it may be used.
pub fn untrusted_key(path: &Path, environment: &Environment) -> Result<Option<&'static str>, ConfigError> {
    let Some((settings, text)) = file::read(path)? else {
        return Ok(None);
    };
    let is_trusted = Trusted::new(environment).contains(path, &text);
    Ok(first_key(&settings, |scope| scope == Scope::User).filter(|_| !is_trusted))
}

/// Records the file at `path`, as it is, as one that this user wrote or approved.
pub fn trust(path: &Path, environment: &Environment) -> Result<(), ConfigError> {
    Trusted::new(environment)
        .add(path)
        .map_err(|source| ConfigError::NotRecorded {
            path: path.to_owned(),
            source,
        })
}
