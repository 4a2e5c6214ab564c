//! Where git looks for hooks.

use std::path::PathBuf;

use super::open::Repository;

/// What `core.hooksPath` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HooksPath {
    /// The folder, `~` and relative paths resolved as git does.
    pub path: PathBuf,
    /// Who says so.
    pub origin: HooksPathOrigin,
}

/// Which configuration sets `core.hooksPath`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HooksPathOrigin {
    /// The repository's own, or one of its work trees'.
    Repository,
    /// The user's or the system's: every repository of this machine uses the folder.
    Machine,
}

impl Repository {
    /// What `core.hooksPath` says; `None` if git uses the `hooks` folder of the common directory. As it was when the
    /// repository was opened; settings that come through the environment have no say.
    pub fn hooks_path(&self) -> Option<HooksPath> {
        let local = self.local();
        let config = local.config_snapshot();
        let sections = config.plumbing().sections_by_name("core").into_iter().flatten();
        let setters = sections.filter(|section| section.header().subsection_name().is_none());
        let source = setters
            .filter(|section| section.value("hooksPath").is_some())
            .map(|section| section.meta().source)
            .last()?;
        // A value that names no path switches hooks off, as the empty one does in git.
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

    /// Whether hooks are configured by `hook.<name>.command`, which newer git runs beside those in the folder.
    pub fn has_configured_hooks(&self) -> bool {
        let local = self.local();
        let config = local.config_snapshot();
        config
            .plumbing()
            .sections_by_name("hook")
            .is_some_and(|mut sections| sections.next().is_some())
    }
}
