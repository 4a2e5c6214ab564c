//! Reads `core.hooksPath`, which names the directory of git hooks.

use std::path::PathBuf;

use super::open::Repository;

/// The value of `core.hooksPath`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HooksPath {
    /// The directory. `~` and relative paths are resolved as in git.
    pub path: PathBuf,
    /// The configuration that sets the value.
    pub origin: HooksPathOrigin,
}

/// The kind of configuration that sets `core.hooksPath`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HooksPathOrigin {
    /// The configuration of the repository or of a worktree.
    Repository,
    /// The user's or the system's configuration. Every repository on this machine uses the directory.
    Machine,
}

impl Repository {
    /// Returns the value that `core.hooksPath` had when the repository was opened. Returns `None` if it is not set: git
    /// then uses the directory `hooks` in the common directory. Ignores settings from the environment.
    pub fn hooks_path(&self) -> Option<HooksPath> {
        let local = self.local();
        let config = local.config_snapshot();
        let sections = config.plumbing().sections_by_name("core").into_iter().flatten();
        let setters = sections.filter(|section| section.header().subsection_name().is_none());
        let source = setters
            .filter(|section| section.value("hooksPath").is_some())
            .map(|section| section.meta().source)
            .last()?;
        // A key without a value disables hooks, as an empty value does in git.
        let path = config.trusted_path("core.hooksPath").ok().flatten().unwrap_or_default();
        let base = self.place();
        Some(HooksPath {
            path: base.join(path),
            origin: match source {
                gix::config::Source::Local | gix::config::Source::Worktree => HooksPathOrigin::Repository,
                _ => HooksPathOrigin::Machine,
            },
        })
    }

    /// Returns true if hooks are configured with `hook.<name>.command`. Newer git versions run them in addition to
    /// those in the directory.
    pub fn has_configured_hooks(&self) -> bool {
        let local = self.local();
        let config = local.config_snapshot();
        config
            .plumbing()
            .sections_by_name("hook")
            .is_some_and(|mut sections| sections.next().is_some())
    }
}
