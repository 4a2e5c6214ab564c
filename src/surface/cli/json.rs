//! The shapes of `--json`, as described in `docs/cli.md`.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::git::{OpenError, RevisionError};
use crate::ingest::Target;
use crate::query::{CursorError, PatternError, ReadError};
use crate::snapshot::View;
use crate::surface::open::Workspace;

/// What an answer is about; the first fields of every answer about a view.
#[derive(Debug, Serialize)]
pub(super) struct ProvenanceOut {
    repo: String,
    #[serde(rename = "ref")]
    reference: String,
    commit: Option<String>,
    tree: Option<String>,
    dirty_files: u32,
    coverage: Option<CoverageOut>,
    profile: String,
    complete: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    incomplete_because: Vec<String>,
}

#[derive(Debug, Serialize)]
struct CoverageOut {
    files: u32,
    indexed: u32,
    skipped: BTreeMap<String, u32>,
}

/// A failure.
#[derive(Debug, Serialize)]
pub(super) struct ErrorOut {
    pub(super) error: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hint: Option<String>,
}

/// An error of the command line itself, with what to do about it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(super) struct Hinted {
    /// What is wrong.
    pub(super) message: String,
    /// What to do.
    pub(super) hint: String,
}

impl ProvenanceOut {
    pub(super) fn of(view: &View) -> Self {
        let provenance = view.provenance();
        let coverage = view.coverage();
        Self {
            repo: provenance.repo.display().to_string(),
            reference: provenance.reference.clone(),
            commit: provenance.commit.map(|commit| commit.to_string()),
            tree: provenance.tree.map(|tree| tree.to_string()),
            dirty_files: provenance.n_dirty_files,
            coverage: Some(CoverageOut {
                files: coverage.n_files,
                indexed: coverage.n_indexed,
                skipped: coverage
                    .skipped
                    .into_iter()
                    .map(|(reason, n_files)| (reason.to_string(), n_files))
                    .collect(),
            }),
            profile: provenance.profile.clone(),
            complete: provenance.incomplete.is_empty(),
            incomplete_because: provenance.incomplete.clone(),
        }
    }
}

impl ProvenanceOut {
    /// Of a revision that is not indexed, so that nothing is known of its files.
    pub(super) fn not_indexed(workspace: &Workspace, reference: &str, target: Option<Target>) -> Self {
        let repository = &workspace.repository;
        let repo = repository.work_dir().unwrap_or(repository.git_dir());
        Self {
            repo: repo.display().to_string(),
            reference: reference.to_owned(),
            commit: target.and_then(|target| target.commit).map(|commit| commit.to_string()),
            tree: target.map(|target| target.tree.to_string()),
            dirty_files: 0,
            coverage: None,
            profile: workspace.embedder().profile().id().to_string(),
            complete: false,
            incomplete_because: vec!["this revision is not indexed yet".to_owned()],
        }
    }

    /// Of a revision of which no view was opened: its files are not what the answer is about.
    pub(super) fn without_view(
        workspace: &Workspace,
        reference: &str,
        target: Option<Target>,
        dirty_files: usize,
        incomplete: Vec<String>,
    ) -> Self {
        Self {
            dirty_files: dirty_files as u32,
            complete: incomplete.is_empty(),
            incomplete_because: incomplete,
            ..Self::not_indexed(workspace, reference, target)
        }
    }

    /// Files, files that are searched, and the others by reason; `None` where nothing is known.
    pub(super) fn coverage(&self) -> Option<(u32, u32, &BTreeMap<String, u32>)> {
        let coverage = self.coverage.as_ref()?;
        Some((coverage.files, coverage.indexed, &coverage.skipped))
    }

    /// The root of the repository.
    pub(super) fn repo(&self) -> &str {
        &self.repo
    }

    /// The commit, if there is one.
    pub(super) fn dirty_files(&self) -> u32 {
        self.dirty_files
    }

    pub(super) fn commit(&self) -> Option<&str> {
        self.commit.as_deref()
    }

    /// Something else that makes the answer partial.
    pub(super) fn also_incomplete(&mut self, why: String) {
        self.complete = false;
        self.incomplete_because.push(why);
    }

    /// What makes the answer partial.
    pub(super) fn incomplete_because(&self) -> &[String] {
        &self.incomplete_because
    }
}

/// What to do about an error.
pub(super) fn hint(error: &anyhow::Error) -> Option<String> {
    for cause in error.chain() {
        if let Some(error) = cause.downcast_ref::<OpenError>() {
            return error.hint();
        }
        match cause.downcast_ref::<RevisionError>() {
            Some(RevisionError::Unknown { near, .. }) if !near.is_empty() => {
                return Some(format!("did you mean {}?", near.join(" or ")));
            }
            Some(RevisionError::Ambiguous { candidates, .. }) => {
                let list: Vec<String> = candidates
                    .iter()
                    .map(|candidate| format!("{} ({})", candidate.abbreviation, candidate.description))
                    .collect();
                return Some(format!("it could be {}", list.join(", ")));
            }
            _ => {}
        }
        if let Some(error) = cause.downcast_ref::<Hinted>() {
            return Some(error.hint.clone());
        }
        match cause.downcast_ref::<CursorError>() {
            Some(CursorError::OtherSnapshot) => {
                return Some("the files have changed since; ask again without --cursor".to_owned());
            }
            Some(CursorError::OtherQuestion) => {
                return Some("repeat the call that gave it, with the same words and filters".to_owned());
            }
            Some(CursorError::Malformed) => {
                return Some("take it from next_cursor of the answer before".to_owned());
            }
            None => {}
        }
        match cause.downcast_ref::<ReadError>() {
            Some(ReadError::UnknownPath { near, .. } | ReadError::NoPart { near, .. }) if !near.is_empty() => {
                return Some(format!("did you mean {}?", near.join(" or ")));
            }
            Some(ReadError::Folder { path }) => return Some(format!("codescout outline {path}")),
            _ => {}
        }
        if let Some(PatternError::Syntax { .. }) = cause.downcast_ref() {
            return Some("to find the text as it stands, add -F (codescout grep)".to_owned());
        }
        if let Some(crate::sidecar::OpenError::Foreign { root }) = cause.downcast_ref() {
            return Some(format!(
                "move {} away, or set CODESCOUT_SIDECAR to another folder",
                root.display()
            ));
        }
    }
    None
}
