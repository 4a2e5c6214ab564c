//! Checks codescout in one repository for problems and possible improvements.
//!
//! The checks change nothing. A finding may name a command that fixes it. A [`Remedy`] is a fix that `--fix` applies.
//! Start at [`examine`].

mod checks;
mod language_servers;
mod remedy;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::thread;

pub(crate) use remedy::Remedy;

use crate::config::{Entry, Overrides};
use crate::session::Workspace;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    /// No problem.
    Fine,
    /// Worth knowing.
    Note,
    /// Works, but could work better.
    Warning,
    /// Does not work.
    Problem,
}

impl Severity {
    /// The name in output.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// The result of a check.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    /// The area: `git`, `repository`, `sidecar`, `index`, `objects`, `hooks`, `configuration`, `embedder`, `sparse`,
    /// `reranker`, `language-servers` or `privacy`.
    pub(crate) area: &'static str,
    /// The severity.
    pub(crate) severity: Severity,
    /// The result in words.
    pub(crate) message: String,
    /// A command that fixes the problem, if there is one.
    pub(crate) mend: Option<String>,
    /// The fix that `--fix` applies, if there is one.
    pub(crate) remedy: Option<Remedy>,
}

impl Finding {
    fn new(area: &'static str, severity: Severity, message: impl Into<String>) -> Self {
        Self {
            area,
            severity,
            message: message.into(),
            mend: None,
            remedy: None,
        }
    }

    fn mended_by(mut self, command: impl Into<String>) -> Self {
        self.mend = Some(command.into());
        self
    }

    fn with(mut self, remedy: Remedy) -> Self {
        self.mend = Some(remedy.command().to_owned());
        self.remedy = Some(remedy);
        self
    }
}

/// The results of all checks, grouped by area.
#[derive(Debug)]
pub(crate) struct Report {
    /// The results.
    pub(crate) findings: Vec<Finding>,
    /// All settings. Empty if the configuration cannot be read.
    pub(crate) settings: Vec<Entry>,
}

impl Report {
    /// Returns true if there is no problem.
    pub(crate) fn is_well(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity < Severity::Problem)
    }

    /// Returns the fixes that `--fix` would apply, each once, in the order in which they must be applied.
    pub(crate) fn remedies(&self) -> Vec<Remedy> {
        let mut remedies: Vec<Remedy> = self.findings.iter().filter_map(|finding| finding.remedy).collect();
        remedies.sort_unstable();
        remedies.dedup();
        remedies
    }
}

/// Runs all checks for the repository that contains `path`. Does not wait for servers once `interrupt` is set.
pub(crate) fn examine(path: &Path, interrupt: &AtomicBool) -> Report {
    let mut findings = vec![checks::git_executable(path)];
    let workspace = match Workspace::open(path, &Overrides::default()) {
        Ok(workspace) => workspace,
        Err(error) => {
            findings.push(checks::not_opened(path, &error));
            findings.push(checks::what_leaves_unknown());
            return Report {
                findings,
                settings: Vec::new(),
            };
        }
    };
    findings.extend(checks::repository(&workspace.repository));
    findings.extend(checks::sidecar(&workspace));
    findings.extend(checks::index(&workspace));
    findings.extend(checks::objects(&workspace));
    findings.extend(checks::hooks(&workspace));
    findings.extend(checks::configuration());
    findings.extend(servers(&workspace, interrupt));
    findings.extend(language_servers::examined(&workspace));
    findings.extend(checks::what_leaves(&workspace));
    Report {
        findings,
        settings: workspace.config.entries(),
    }
}

/// Checks all servers at the same time, so that the waits do not add up.
fn servers(workspace: &Workspace, interrupt: &AtomicBool) -> Vec<Finding> {
    workspace.know_models();
    let looks: [&(dyn Fn() -> Vec<Finding> + Sync); 3] = [
        &|| checks::embedder(workspace, interrupt),
        &|| checks::sparse(workspace, interrupt),
        &|| checks::reranker(workspace, interrupt),
    ];
    thread::scope(|scope| {
        let begun: Vec<_> = looks
            .iter()
            .map(|look| {
                thread::Builder::new()
                    .name("doctor".to_owned())
                    .spawn_scoped(scope, look)
            })
            .collect();
        let found = begun.into_iter().zip(looks).flat_map(|(thread, look)| match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            // If no thread can be started, the checks run one after another.
            Err(_) => look(),
        });
        found.collect()
    })
}
