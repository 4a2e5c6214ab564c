//! The provenance of answers: repository, revision and completeness.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::artifact::SkipReason;
use crate::ingest::Target;
use crate::model::count::count;
use crate::session::Workspace;
use crate::snapshot::{Linked, Provenance, View, linked_folder};

/// The provenance of an answer. Its fields come first in every answer about a view.
#[derive(Debug, Serialize)]
pub(crate) struct ProvenanceOut {
    repo: String,
    #[serde(rename = "ref")]
    reference: String,
    commit: Option<String>,
    tree: Option<String>,
    /// Number of files that differ from the commit; null if they were not compared.
    dirty_files: Option<u32>,
    coverage: Option<CoverageOut>,
    profile: String,
    /// The linked repositories that the answer includes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    linked: Vec<LinkedOut>,
    complete: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    incomplete_because: Vec<String>,
    /// True if the answer is incomplete because files are being indexed or commits are being recorded.
    #[serde(skip)]
    is_building: bool,
    /// Remarks that do not make the answer incomplete.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

/// Maximum number of linked repositories that remarks name.
const MAX_NAMED: usize = 8;

/// A linked repository. The paths of its files begin with its name: `sdk:/src/lib.rs`.
#[derive(Debug, Serialize)]
struct LinkedOut {
    name: String,
    repo: String,
    #[serde(rename = "ref")]
    reference: String,
    commit: Option<String>,
    dirty_files: u32,
}

impl LinkedOut {
    fn of(linked: &Linked) -> Self {
        let Provenance {
            repo,
            reference,
            commit,
            n_dirty_files,
            ..
        } = &linked.provenance;
        Self {
            name: linked.name.clone(),
            repo: repo.display().to_string(),
            reference: reference.clone(),
            commit: commit.map(|commit| commit.to_string()),
            dirty_files: *n_dirty_files,
        }
    }

    fn to_text(&self) -> String {
        let commit = self.commit.as_deref().map_or("no commit", |commit| &commit[..10]);
        let dirty = match self.dirty_files {
            0 => String::new(),
            n_files => format!(", {} not committed", count(n_files, "file")),
        };
        format!(
            "{}: is {} at {} ({commit}{dirty})",
            self.name, self.repo, self.reference
        )
    }
}

#[derive(Debug, Serialize)]
struct CoverageOut {
    files: u32,
    indexed: u32,
    /// Number of files of which the parser did not understand a part, if they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    parse_errors: Option<usize>,
    /// Number of those that were not parsed, by reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    unparsed: BTreeMap<&'static str, usize>,
    skipped: BTreeMap<String, u32>,
}

/// Returns the reason why an answer without `n_files` missing files is incomplete.
fn missing(n_files: u32) -> String {
    let are = if n_files == 1 { "is" } else { "are" };
    format!(
        "{} {are} missing or damaged in git and not searched; run codescout doctor for a fix",
        count(n_files, "file")
    )
}

impl ProvenanceOut {
    /// Returns the provenance of an answer from a view.
    pub(crate) fn of(view: &View) -> Self {
        let provenance = view.provenance();
        let coverage = view.coverage();
        let withheld = (view.n_withheld() > 0).then(|| ("credentials".to_owned(), view.n_withheld()));
        let n_missing = coverage.skipped.get(&SkipReason::Missing).copied();
        let incomplete: Vec<String> = provenance
            .incomplete
            .iter()
            .cloned()
            .chain(n_missing.map(missing))
            .collect();
        let linked: Vec<LinkedOut> = view.linked().iter().map(LinkedOut::of).collect();
        Self {
            repo: provenance.repo.display().to_string(),
            reference: provenance.reference.clone(),
            commit: provenance.commit.map(|commit| commit.to_string()),
            tree: provenance.tree.map(|tree| tree.to_string()),
            dirty_files: Some(provenance.n_dirty_files),
            coverage: Some(CoverageOut {
                files: coverage.n_files + view.n_withheld(),
                indexed: coverage.n_indexed,
                parse_errors: None,
                unparsed: BTreeMap::new(),
                skipped: coverage
                    .skipped
                    .iter()
                    .map(|(reason, n_files)| (reason.to_string(), *n_files))
                    .chain(withheld)
                    .collect(),
            }),
            profile: provenance.profile.clone(),
            complete: incomplete.is_empty(),
            incomplete_because: incomplete,
            is_building: false,
            notes: match linked.len() {
                0..=MAX_NAMED => linked.iter().map(LinkedOut::to_text).collect(),
                n_linked => vec![format!("files of {n_linked} repositories are included")],
            },
            linked,
        }
    }

    /// Returns the provenance of an answer that does not depend on the files of a revision, and is therefore always
    /// complete.
    pub(crate) fn beside(workspace: &Workspace, reference: &str, target: Option<Target>) -> Self {
        Self {
            complete: true,
            incomplete_because: Vec::new(),
            ..Self::not_indexed(workspace, reference, target)
        }
    }

    /// Returns the provenance of an answer about a revision that is not indexed.
    pub(crate) fn not_indexed(workspace: &Workspace, reference: &str, target: Option<Target>) -> Self {
        let repository = &workspace.repository;
        let repo = repository.place();
        Self {
            repo: repo.display().to_string(),
            reference: reference.to_owned(),
            commit: target.and_then(|target| target.commit).map(|commit| commit.to_string()),
            tree: target.map(|target| target.tree.to_string()),
            dirty_files: None,
            coverage: None,
            profile: workspace.models.embedder().profile().id().to_string(),
            linked: Vec::new(),
            complete: false,
            incomplete_because: vec!["this revision is not indexed yet".to_owned()],
            is_building: false,
            notes: Vec::new(),
        }
    }

    /// Returns the provenance of an answer about a revision without opening its view. `dirty_files` is the number of
    /// files that differ from the commit; `None` if they were not compared.
    pub(crate) fn without_view(
        workspace: &Workspace,
        reference: &str,
        target: Option<Target>,
        dirty_files: impl Into<Option<usize>>,
        incomplete: Vec<String>,
    ) -> Self {
        Self {
            dirty_files: dirty_files.into().map(|n_files| n_files as u32),
            complete: incomplete.is_empty(),
            incomplete_because: incomplete,
            ..Self::not_indexed(workspace, reference, target)
        }
    }

    /// Returns the number of files, the number of searched files, and the number of skipped files for each reason.
    /// `None` if these are unknown.
    pub(crate) fn coverage(&self) -> Option<(u32, u32, &BTreeMap<String, u32>)> {
        let coverage = self.coverage.as_ref()?;
        Some((coverage.files, coverage.indexed, &coverage.skipped))
    }

    /// Adds the number of files with parse errors, and of those that were not parsed by reason.
    pub(crate) fn count_errors(&mut self, n_files: usize, unparsed: BTreeMap<&'static str, usize>) {
        if let Some(coverage) = &mut self.coverage {
            coverage.parse_errors = Some(n_files);
            coverage.unparsed = unparsed;
        }
    }

    /// Returns the number of files that were not parsed, by reason.
    pub(crate) fn unparsed(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let counts = self.coverage.iter().flat_map(|coverage| &coverage.unparsed);
        counts.map(|(reason, n_files)| (*reason, *n_files))
    }

    /// Returns the number of files with parse errors, if they were counted.
    pub(crate) fn parse_errors(&self) -> Option<usize> {
        self.coverage.as_ref()?.parse_errors
    }

    /// Adds to a row of an answer the linked repository that its path is in.
    pub(crate) fn add_repo(&self, row: &mut Value) {
        let path = row.get("path").and_then(Value::as_str).unwrap_or_default();
        let is_in = |linked: &&LinkedOut| path.starts_with(&linked_folder(&linked.name));
        if let Some(linked) = self.linked.iter().find(is_in) {
            row["repo"] = linked.name.clone().into();
        }
    }

    /// Returns the revision as given.
    pub(crate) fn reference(&self) -> &str {
        &self.reference
    }

    /// Reports files that are not indexed yet under that reason. A view that contains only a list of files counts them
    /// as missing.
    pub(crate) fn still_building(&mut self) {
        if let Some(coverage) = &mut self.coverage
            && let Some(n_files) = coverage.skipped.remove("missing")
        {
            coverage.skipped.insert("not_indexed_yet".to_owned(), n_files);
            self.incomplete_because.retain(|why| *why != missing(n_files));
            self.complete = self.incomplete_because.is_empty();
        }
    }

    /// Returns the root of the repository.
    pub(crate) fn repo(&self) -> &str {
        &self.repo
    }

    /// Returns the number of files that differ from the commit; `None` if they were not compared.
    pub(crate) fn dirty_files(&self) -> Option<u32> {
        self.dirty_files
    }

    /// Returns the id of the commit, if there is one.
    pub(crate) fn commit(&self) -> Option<&str> {
        self.commit.as_deref()
    }

    /// Adds a reason why the answer is incomplete.
    pub(crate) fn also_incomplete(&mut self, why: String) {
        self.complete = false;
        self.incomplete_because.push(why);
    }

    /// Adds a reason why the answer is incomplete that ends by itself: something is being indexed or recorded.
    pub(crate) fn also_building(&mut self, why: String) {
        self.is_building = true;
        self.also_incomplete(why);
    }

    /// Returns true if the same question has a better answer soon.
    pub(crate) fn is_building(&self) -> bool {
        self.is_building
    }

    /// Adds what another answer lacks, and the remarks on it.
    pub(crate) fn also(&mut self, other: Self) {
        self.is_building |= other.is_building;
        for why in other.incomplete_because {
            if !self.incomplete_because.contains(&why) {
                self.also_incomplete(why);
            }
        }
        let new = other.notes.into_iter().filter(|note| !self.notes.contains(note));
        self.notes.extend(new.collect::<Vec<_>>());
    }

    /// Adds a remark that does not make the answer incomplete.
    pub(crate) fn also_note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Returns the remarks that do not make the answer incomplete.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the reasons why the answer is incomplete.
    pub(crate) fn incomplete_because(&self) -> &[String] {
        &self.incomplete_because
    }
}
