//! Reads the mailmap settings and detects grafts and replaced objects.

use std::path::PathBuf;

use super::command::git;
use super::open::{RefStorage, Repository};

/// The values of `mailmap.blob` and `mailmap.file`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfiguredMailmaps {
    /// A blob, given as `revision:path` or by its id.
    pub blob: Option<String>,
    /// The path of a mailmap file, which may not exist.
    pub file: Option<PathBuf>,
}

impl Repository {
    /// Returns the configured mailmaps. Ignores a `mailmap.file` setting in a configuration that git does not trust.
    pub fn configured_mailmaps(&self) -> ConfiguredMailmaps {
        let local = self.local();
        let config = local.config_snapshot();
        let file = config.trusted_path("mailmap.file").ok().flatten();
        ConfiguredMailmaps {
            blob: config.string("mailmap.blob").map(|name| name.to_string()),
            file: file.map(|path| self.place().join(path)),
        }
    }

    /// Returns a note for the user if grafts or replaced objects make git show another history. This module ignores
    /// both.
    pub fn rewritten_history(&self) -> Option<String> {
        let grafts = std::fs::metadata(self.common_dir().join("info/grafts"));
        let has_grafts = grafts.is_ok_and(|meta| meta.len() > 0);
        let has_replacements = self.has_replacements();
        let what = match (has_grafts, has_replacements) {
            (false, false) => return None,
            (true, false) => "grafts (info/grafts)",
            (false, true) => "replaced objects (refs/replace)",
            (true, true) => "grafts (info/grafts) and replaced objects (refs/replace)",
        };
        Some(format!("this repository has {what}, which are ignored in history"))
    }

    /// Returns true if the repository has replaced objects (`refs/replace`). git shows the replacements; this module
    /// does not.
    pub fn has_replacements(&self) -> bool {
        if self.places.refs == RefStorage::Reftable {
            let printed = git(self, "for-each-ref", &["--count=1", "refs/replace/"]);
            return printed.is_ok_and(|printed| !printed.is_empty());
        }
        let local = self.local();
        let Ok(platform) = local.references() else { return false };
        let found = platform.prefixed("refs/replace/");
        found.is_ok_and(|mut refs| refs.next().is_some())
    }
}
