//! Where a repository says that names and addresses are corrected, and where it says that its history is another.

use std::path::PathBuf;

use super::command::git;
use super::open::{RefStorage, Repository};

/// What `mailmap.blob` and `mailmap.file` name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfiguredMailmaps {
    /// `revision:path`, or the id of a blob.
    pub blob: Option<String>,
    /// A file, which need not be there.
    pub file: Option<PathBuf>,
}

impl Repository {
    /// The mailmaps that the configuration names. One in a configuration that git would not trust is none.
    pub fn configured_mailmaps(&self) -> ConfiguredMailmaps {
        let local = self.local();
        let config = local.config_snapshot();
        let file = config.trusted_path("mailmap.file").ok().flatten();
        ConfiguredMailmaps {
            blob: config.string("mailmap.blob").map(|name| name.to_string()),
            file: file.map(|path| self.place().join(path)),
        }
    }

    /// Says so if git would tell another history than the one that commits tell: grafts and replaced objects are not looked at.
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
        Some(format!(
            "this repository has {what}: history is told as the commits themselves have it"
        ))
    }

    /// Whether there are replaced objects (`refs/replace`): git shows others in their place, which are not looked at here.
    pub fn has_replacements(&self) -> bool {
        if self.places.refs == RefStorage::Reftable {
            let printed = git(self.git_dir(), "for-each-ref", &["--count=1", "refs/replace/"]);
            return printed.is_ok_and(|printed| !printed.is_empty());
        }
        let local = self.local();
        let Ok(platform) = local.references() else { return false };
        let found = platform.prefixed("refs/replace/");
        found.is_ok_and(|mut refs| refs.next().is_some())
    }
}
