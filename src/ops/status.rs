//! `status`: reports what is indexed of a revision, and if it is up to date.

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::ask::{Ask, FileSelection};
use super::gc::CausesOut;
use super::op::{NoRows, Op, Page, PageOf};
use super::provenance::ProvenanceOut;
use super::question::{About, Question};
use super::sink::{Recorded, Sink};
use crate::extract::{self, Unparsed};
use crate::history::{Boundary, History};
use crate::ingest::Target;
use crate::model::count::count;
use crate::query::withheld;
use crate::remote::Endpoint;
use crate::session::{Build, Edits, Freshness, Result, Session, SizesOut, Workspace, sizes};
use crate::sidecar::{FileErrorKind, HistoryEntry, Sidecar, State};
use crate::snapshot::{FileId, FileStatus, SnapshotStore, View};

/// Value of the field `index` if everything is indexed.
const UP_TO_DATE: &str = "up_to_date";
/// Number of digits of a commit id in text output.
const ID_DIGITS: usize = 12;

/// The request.
#[derive(Clone, Debug, Default, Serialize, Deserialize, clap::Args, schemars::JsonSchema)]
#[serde(default)]
#[command(after_help = "Examples:
  codescout status
  codescout status --ref v1.2.0 --json
  codescout status --bytes             show what uses how much space")]
pub(crate) struct Status {
    /// Show disk usage; reads the file list of every snapshot
    #[arg(long)]
    #[schemars(description = "")]
    pub(crate) bytes: bool,
}

/// The fields of the answer.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Facts {
    sidecar: String,
    /// One of `none`, `behind`, `other_settings`, `damaged` and `up_to_date`.
    index: &'static str,
    languages: Vec<LanguageOut>,
    segments: usize,
    blobs: u32,
    chunks: u32,
    snapshots: usize,
    bytes: Option<SizesOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vectors: Option<VectorsOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sparse_vectors: Option<VectorsOut>,
    history: Option<HistoryStatus>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    graphs: Vec<GraphOut>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    precise: Vec<PreciseOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    causes: Option<CausesOut>,
    /// The files of each language by whether they are indexed.
    #[serde(skip)]
    pub(crate) coverage: Vec<LanguageCoverage>,
    /// Running builds of this server.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    building: Vec<String>,
}

/// A graph of vectors.
#[derive(Debug, Serialize)]
struct GraphOut {
    profile: String,
    chunks: u32,
    used: bool,
}

/// The facts of an indexer.
#[derive(Debug, Serialize)]
struct PreciseOut {
    indexer: String,
    files: u32,
    bytes: u64,
}

impl Op for Status {
    type Facts = Facts;
    type Row = NoRows;

    fn run(&self, ask: &Ask<'_>) -> Result<PageOf<Self>> {
        let workspace = &*ask.session.workspace;
        let reference = ask.session.checked(&ask.common.reference)?;
        let target = workspace.target(reference)?;
        let mut provenance = ProvenanceOut::not_indexed(workspace, reference, target);
        let mut facts = Facts::of(workspace, target)?;
        facts.building = building(ask.session);
        if self.bytes {
            facts.causes = workspace.survey()?.as_ref().map(CausesOut::of);
        }
        if facts.index == UP_TO_DATE {
            // Uncommitted changes are extracted only if their chunks are counted.
            let has_vectors = workspace.models.added().is_some() || workspace.models.remote_sparse().is_some();
            let edits = if has_vectors { Edits::Extracted } else { Edits::Listed };
            let selection = FileSelection::default();
            let about = About {
                build: Build::Never,
                edits,
                ..About::files(&selection)
            };
            let question = Question::new(ask, &about)?;
            provenance = question.provenance();
            let (n_files, unparsed) = with_errors(question.view())?;
            provenance.count_errors(n_files, unparsed);
            facts.coverage = coverage(question.view());
            facts.languages = languages(&facts.coverage);
            facts.count_vectors(workspace, question.view());
        }
        let text = Recorded::of(|out| {
            render_revision(&provenance, out);
            facts.render(out);
        });
        Ok(Page::single(provenance, facts, text))
    }
}

/// Returns the number of files with parse errors, and of those that were not parsed by reason.
fn with_errors(view: &View) -> Result<(usize, BTreeMap<&'static str, usize>)> {
    let files: Vec<FileId> = view.files().map(|(file, _)| file).collect();
    let errors = |file: &FileId| -> Result<Option<Option<Unparsed>>> {
        let facts = view.extraction(*file).transpose()?;
        Ok(facts
            .filter(|facts| facts.n_parse_errors > 0)
            .map(|facts| facts.unparsed))
    };
    let found = files.par_iter().map(errors).collect::<Result<Vec<_>>>()?;
    let found: Vec<Option<Unparsed>> = found.into_iter().flatten().collect();
    let mut unparsed = BTreeMap::new();
    for reason in found.iter().flatten() {
        *unparsed.entry(reason.text()).or_default() += 1;
    }
    Ok((found.len(), unparsed))
}

/// Describes the running builds.
fn building(session: &Session) -> Vec<String> {
    let jobs = session.jobs.all().into_iter();
    let running = jobs.filter(|job| job.is_running());
    let described = running.map(|job| {
        let advance = job.advance();
        let seconds = advance.elapsed.as_secs_f64();
        format!("{} {}, {seconds:.0} s", job.reference, advance.to_text())
    });
    described.collect()
}

/// Writes a line with a name and its value.
fn field(out: &mut dyn Sink, name: &str, text: &str) {
    out.line(&format!("{name:<11} {text}"));
}

/// Writes the repository, the commit and the number of files.
fn render_revision(provenance: &ProvenanceOut, out: &mut dyn Sink) {
    let commit = provenance.commit().map_or("no commit", |commit| &commit[..ID_DIGITS]);
    field(out, "repository", provenance.repo());
    field(out, "commit", commit);
    if let Some(n_dirty) = provenance.dirty_files() {
        let differ = if n_dirty == 1 { "differs" } else { "differ" };
        field(
            out,
            "changed",
            &format!("{} {differ} from the commit", count(n_dirty, "file")),
        );
    }
    if let Some((files, indexed, skipped)) = provenance.coverage() {
        let skipped: Vec<String> = skipped
            .iter()
            .map(|(reason, n_files)| format!("{n_files} {reason}"))
            .collect();
        let left_out = match skipped.len() {
            0 => String::new(),
            _ => format!("; not indexed: {}", skipped.join(", ")),
        };
        let errors = match provenance.parse_errors() {
            None | Some(0) => String::new(),
            Some(n_files) => format!("; {n_files} with parse errors"),
        };
        let unparsed: String = provenance
            .unparsed()
            .map(|(reason, n_files)| format!("; {n_files} of these not parsed ({reason})"))
            .collect();
        let text = format!("{files}, {indexed} of them searched by content{left_out}{errors}{unparsed}");
        field(out, "files", &text);
    }
}

impl Facts {
    /// Describes what is stored for `target`.
    fn of(workspace: &Workspace, target: Option<Target>) -> Result<Self> {
        let mut facts = Self {
            sidecar: workspace.storage.root().display().to_string(),
            index: "none",
            ..Self::default()
        };
        let sidecar = workspace.storage.open()?;
        let state = match sidecar.as_ref().map(Sidecar::state).transpose() {
            Err(error) if matches!(error.kind, FileErrorKind::Damaged(_)) => {
                facts.index = "damaged";
                None
            }
            state => state?.flatten(),
        };
        if let (Some(sidecar), Some(state)) = (sidecar, state) {
            let snapshots = SnapshotStore::new(&sidecar, state.epoch, state.recipe);
            facts.index = match target.map(|target| workspace.freshness(target.tree)).transpose()? {
                // The snapshot was deleted meanwhile.
                Some(Freshness::Missing) => "none",
                Some(Freshness::Behind) => "behind",
                Some(Freshness::OtherSettings) => "other_settings",
                Some(Freshness::Damaged(_)) => "damaged",
                Some(Freshness::UpToDate) | None => UP_TO_DATE,
            };
            facts.segments = state.segments.len();
            facts.blobs = state.n_blobs();
            facts.chunks = state.n_docs();
            facts.snapshots = snapshots.trees()?.len();
            facts.bytes = Some(sizes(&sidecar, &state)?);
            facts.history = HistoryStatus::of(workspace, &sidecar, &state);
            let precise = state.precise.into_iter().map(|entry| PreciseOut {
                indexer: entry.tool,
                files: entry.n_documents,
                bytes: entry.file.length,
            });
            facts.precise = precise.collect();
            let graphs = state.graphs.into_iter();
            facts.graphs = graphs
                .map(|graph| GraphOut {
                    profile: graph.profile,
                    chunks: graph.n_docs,
                    used: graph.ef > 0,
                })
                .collect();
        }
        Ok(facts)
    }

    fn render(&self, out: &mut dyn Sink) {
        let state = match self.index {
            "none" => "nothing is indexed yet; the first search builds the index, or run codescout index",
            "behind" => "this revision is not indexed yet; the next search indexes it, or run codescout index",
            "other_settings" => "built with other settings; the next search rebuilds it, or: codescout index",
            "damaged" => "damaged; the next search rebuilds it, or: codescout verify --repair",
            _ => "up to date",
        };
        field(out, "index", state);
        if !self.building.is_empty() {
            field(out, "building", &self.building.join("; "));
        }
        field(out, "sidecar", &self.sidecar);
        if !self.languages.is_empty() {
            let languages = self.languages.iter();
            let languages = languages.map(|language| format!("{} {}", language.name, language.files));
            field(out, "languages", &languages.collect::<Vec<_>>().join(", "));
        }
        if let Some(bytes) = &self.bytes {
            let content = [
                count(self.blobs, "blob"),
                count(self.chunks, "chunk"),
                count(self.segments, "segment"),
                count(self.snapshots, "snapshot"),
            ];
            field(out, "content", &content.join(", "));
            field(out, "size", &bytes.to_text());
        }
        if let Some(vectors) = &self.vectors {
            field(out, "vectors", &vectors.to_text());
        }
        if let Some(vectors) = &self.sparse_vectors {
            field(out, "sparse", &vectors.to_text());
        }
        if let Some(history) = &self.history {
            field(out, "history", &history.to_text());
        }
        for graph in &self.graphs {
            let unused = if graph.used {
                ""
            } else {
                "; not used, because it finds too few of the nearest"
            };
            let text = format!("{} of {}{unused}", graph.chunks, count(self.chunks, "vector"));
            field(out, "graph", &text);
        }
        for facts in &self.precise {
            let text = format!("facts of {} about {}", facts.indexer, count(facts.files, "file"));
            field(out, "precise", &text);
        }
        if let Some(causes) = &self.causes {
            causes.render(out);
        }
    }

    /// Counts the chunks of a view that have vectors of external models.
    fn count_vectors(&mut self, workspace: &Workspace, view: &View) {
        let segments = view.segments();
        let server = workspace.models.remote().map(|model| &model.options().endpoint);
        self.vectors = workspace
            .models
            .added()
            .map(|model| VectorsOut::of(&model.profile().model, server, view, |doc| segments.has_added(doc)));
        self.sparse_vectors = workspace.models.remote_sparse().map(|model| {
            let options = model.options();
            VectorsOut::of(&options.model, Some(&options.endpoint), view, |doc| {
                segments.has_sparse(doc)
            })
        });
    }
}

/// The recorded commits.
#[derive(Debug, Serialize)]
struct HistoryStatus {
    commits: u32,
    /// Number of commits that definitions were traced through.
    traced: u32,
    bytes: u64,
    /// Number of commits whose messages searches use for ranking.
    messages: u32,
    /// Number of commits whose parents were not recorded because of a limit.
    limited_at: usize,
}

impl HistoryStatus {
    fn of(workspace: &Workspace, sidecar: &Sidecar, state: &State) -> Option<Self> {
        // A damaged record is rebuilt by the next query about history.
        let history = History::open(sidecar, &state.history).ok()?;
        let boundaries = history.boundaries().ok()?;
        let with_messages = state.history.iter().filter(|entry| entry.messages.is_some());
        let status = Self {
            commits: history.n_commits(),
            traced: history.n_traced(workspace.records().symbol_recipe()),
            bytes: state.history.iter().map(HistoryEntry::n_bytes).sum(),
            messages: with_messages.map(|entry| entry.n_commits).sum(),
            limited_at: boundaries.iter().filter(|(_, why)| *why == Boundary::Limit).count(),
        };
        (status.commits > 0).then_some(status)
    }

    /// Describes the recorded commits in one line.
    fn to_text(&self) -> String {
        let limit = match self.limited_at {
            0 => "",
            _ => {
                "; older ones are not recorded (history.max_commits, history.since, or until codescout index --history)"
            }
        };
        let Self {
            commits,
            traced,
            bytes,
            messages,
            ..
        } = self;
        let messages = match messages {
            _ if messages == commits => String::new(),
            n => format!(", messages of the newest {n} (codescout index adds the others)"),
        };
        format!(
            "{}{messages}, definitions traced through {traced}, {:.1} MB{limit}",
            count(*commits, "commit"),
            *bytes as f64 / 1e6
        )
    }
}

/// The vectors of an external model.
#[derive(Debug, Serialize)]
struct VectorsOut {
    model: String,
    /// Host and port of the model's server.
    server: Option<String>,
    /// Number of chunks of the revision that have a vector.
    chunks: u64,
    /// Number of chunks without a vector.
    missing: u64,
    /// Number of chunks that get no vector, because they are in changed files or in files with credentials.
    withheld: u64,
}

impl VectorsOut {
    fn of(model: &str, server: Option<&Endpoint>, view: &View, has: impl Fn(u32) -> bool) -> Self {
        let live = view.live().to_bitmap();
        let secret = withheld(view);
        let mut counts = Self {
            model: model.to_owned(),
            server: server.map(Endpoint::host),
            chunks: 0,
            missing: 0,
            withheld: 0,
        };
        let is_stored = |doc| {
            view.segments()
                .of_doc(doc)
                .is_some_and(|(segment, _)| !segment.is_in_memory)
        };
        for doc in &live {
            let count = if has(doc) {
                &mut counts.chunks
            } else if is_stored(doc) && !secret.contains(doc) {
                &mut counts.missing
            } else {
                &mut counts.withheld
            };
            *count += 1;
        }
        counts
    }

    /// Describes the vectors in one line.
    fn to_text(&self) -> String {
        let by = match &self.server {
            Some(host) => format!("{} at {host}", self.model),
            None => self.model.clone(),
        };
        let missing = match self.missing {
            0 => String::new(),
            missing => format!("; {missing} have no vector yet (run codescout index)"),
        };
        let withheld = match self.withheld {
            0 => String::new(),
            withheld => format!("; {withheld} are not sent to other models"),
        };
        format!("{} by {by}{missing}{withheld}", count(self.chunks, "chunk"))
    }
}

/// A language with the number of searched files.
#[derive(Debug, Serialize)]
struct LanguageOut {
    name: &'static str,
    files: u32,
}

/// The files of a language.
#[derive(Debug, Default)]
pub(crate) struct LanguageCoverage {
    pub(crate) name: &'static str,
    /// Number of files that are indexed.
    pub(crate) indexed: u32,
    /// Number of files that are not, by reason.
    pub(crate) skipped: BTreeMap<String, u32>,
}

/// Returns the languages of the files, those with the most indexed files first.
fn coverage(view: &View) -> Vec<LanguageCoverage> {
    let mut languages: BTreeMap<&'static str, LanguageCoverage> = BTreeMap::new();
    for (id, file) in view.files() {
        let name = extract::language(view.lang(id)).map_or("text", |language| language.name);
        let of_language = languages.entry(name).or_default();
        of_language.name = name;
        match file.entry().status {
            FileStatus::Skipped(reason) => *of_language.skipped.entry(reason.to_string()).or_default() += 1,
            FileStatus::Indexed { .. } => of_language.indexed += 1,
        }
    }
    let mut languages: Vec<LanguageCoverage> = languages.into_values().collect();
    languages.sort_by_key(|language| std::cmp::Reverse(language.indexed));
    languages
}

/// Returns the languages of the searched files, most files first.
fn languages(coverage: &[LanguageCoverage]) -> Vec<LanguageOut> {
    let language = |language: &LanguageCoverage| LanguageOut {
        name: language.name,
        files: language.indexed,
    };
    let indexed = coverage.iter().filter(|language| language.indexed > 0);
    indexed.map(language).collect()
}
