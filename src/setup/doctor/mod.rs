//! What is wrong, or could be better, with codescout in one repository, and what mends it.
//!
//! Looking changes nothing. Each finding names the command that mends it; [`Remedy`] is what `--fix` may do by itself.
//! Start at [`examine`].

mod checks;
mod qdrant;
mod remedy;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::thread;

pub(crate) use remedy::Remedy;

use crate::config::{Entry, Overrides};
use crate::session::Workspace;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    /// As it should be.
    Fine,
    /// Worth knowing.
    Note,
    /// Works, but not as well as it could.
    Warning,
    /// Does not work.
    Problem,
}

impl Severity {
    /// The word for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    /// What it is about: `git`, `repository`, `sidecar`, `index`, `objects`, `hooks`, `configuration`, `embedder`, `sparse`, `reranker`,
    /// `qdrant`, `privacy`.
    pub(crate) area: &'static str,
    /// How much it matters.
    pub(crate) severity: Severity,
    /// What was found.
    pub(crate) message: String,
    /// The command that mends it.
    pub(crate) mend: Option<String>,
    /// What `--fix` does about it.
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

/// Everything that was looked at, by area.
#[derive(Debug)]
pub(crate) struct Report {
    /// What was found.
    pub(crate) findings: Vec<Finding>,
    /// Every setting: key, value, origin. Empty if the configuration cannot be read.
    pub(crate) settings: Vec<Entry>,
}

impl Report {
    /// Whether nothing is in the way of using the program.
    pub(crate) fn is_well(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity < Severity::Problem)
    }

    /// What `--fix` would do, each thing once, in the order in which it has to be done.
    pub(crate) fn remedies(&self) -> Vec<Remedy> {
        let mut remedies: Vec<Remedy> = self.findings.iter().filter_map(|finding| finding.remedy).collect();
        remedies.sort_unstable();
        remedies.dedup();
        remedies
    }
}

/// Looks at everything that concerns the repository that `path` lies in; once the flag is set no server is waited for.
pub(crate) fn examine(path: &Path, interrupt: &AtomicBool) -> Report {
    let mut findings = vec![checks::git_executable(path)];
    let workspace = match Workspace::open(path, &Overrides::default()) {
        Ok(workspace) => workspace,
        Err(error) => {
            findings.push(checks::not_opened(&error));
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
    findings.extend(checks::what_leaves(&workspace));
    Report {
        findings,
        settings: workspace.config.entries(),
    }
}

/// Looks at all servers side by side: who waits for one waits for none of the others.
fn servers(workspace: &Workspace, interrupt: &AtomicBool) -> Vec<Finding> {
    workspace.know_models();
    let looks: [&(dyn Fn() -> Vec<Finding> + Sync); 4] = [
        &|| checks::embedder(workspace, interrupt),
        &|| checks::sparse(workspace, interrupt),
        &|| checks::reranker(workspace, interrupt),
        &|| qdrant::examined(workspace, interrupt),
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
            // Where no thread can be started it takes longer.
            Err(_) => look(),
        });
        found.collect()
    })
}
