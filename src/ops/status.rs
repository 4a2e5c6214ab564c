//! What is indexed of a revision.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;

use crate::extract;
use crate::history::{Boundary, History};
use crate::index::RowKind;
use crate::ingest::Target;
use crate::query::withheld;
use crate::remote::Endpoint;
use crate::session::{Freshness, SizesOut, Workspace, sizes};
use crate::sidecar::{HistoryEntry, Sidecar, State};
use crate::snapshot::{SnapshotStore, View};

/// What the sidecar holds.
#[derive(Debug, Serialize)]
pub(crate) struct StatusBody {
    pub(crate) sidecar: String,
    /// `none`, `behind`, `other_settings`, `damaged`, `up_to_date`
    pub(crate) index: &'static str,
    pub(crate) languages: Vec<LanguageOut>,
    pub(crate) segments: usize,
    pub(crate) blobs: u32,
    pub(crate) chunks: u32,
    pub(crate) snapshots: usize,
    pub(crate) bytes: Option<SizesOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) vectors: Option<VectorsOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sparse_vectors: Option<VectorsOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) shared: Option<SharedOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) shared_sparse: Option<SharedOut>,
    pub(crate) history: Option<HistoryStatus>,
}

/// What is recorded of commits.
#[derive(Debug, Serialize)]
pub(crate) struct HistoryStatus {
    pub(crate) commits: u32,
    /// Those that definitions were traced through.
    pub(crate) traced: u32,
    pub(crate) bytes: u64,
    /// Commits whose parents were left out by a limit.
    pub(crate) limited_at: usize,
}

impl HistoryStatus {
    fn of(workspace: &Workspace, sidecar: &Sidecar, state: &State) -> Option<Self> {
        // What is damaged is recorded anew when it is asked for.
        let history = History::open(sidecar, &state.history).ok()?;
        let boundaries = history.boundaries().ok()?;
        let status = Self {
            commits: history.n_commits(),
            traced: history.n_traced(workspace.symbol_recipe()),
            bytes: state.history.iter().map(HistoryEntry::n_bytes).sum(),
            limited_at: boundaries.iter().filter(|(_, why)| *why == Boundary::Limit).count(),
        };
        (status.commits > 0).then_some(status)
    }

    /// In one line.
    pub(crate) fn told(&self) -> String {
        let limit = match self.limited_at {
            0 => "",
            _ => "; older ones are not recorded (history.max_commits, history.since)",
        };
        let Self {
            commits, traced, bytes, ..
        } = self;
        format!(
            "{commits} commits, definitions traced through {traced}, {:.1} MB{limit}",
            *bytes as f64 / 1e6
        )
    }
}

/// How far the vectors are that one model beside the built-in one makes.
#[derive(Debug, Serialize)]
pub(crate) struct VectorsOut {
    pub(crate) model: String,
    /// Host and port, if it is asked over a network.
    pub(crate) server: Option<String>,
    /// Chunks of the revision that have one.
    pub(crate) chunks: u64,
    /// Those that have none and could.
    pub(crate) missing: u64,
    /// Those that have none because they are given to nobody: of files that are changed, or hold secrets by their names.
    pub(crate) withheld: u64,
    /// Host and port of where they are kept, if that is not here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kept_at: Option<String>,
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
            kept_at: None,
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

    /// In one line.
    pub(crate) fn told(&self) -> String {
        let by = match &self.server {
            Some(host) => format!("{} at {host}", self.model),
            None => self.model.clone(),
        };
        let missing = match self.missing {
            0 => String::new(),
            missing => format!("; {missing} have none: codescout index"),
        };
        let withheld = match self.withheld {
            0 => String::new(),
            withheld => format!("; {withheld} are given to no other model"),
        };
        let kept = match &self.kept_at {
            Some(host) => format!(", kept at {host} and not here"),
            None => String::new(),
        };
        format!("{} chunks by {by}{kept}{missing}{withheld}", self.chunks)
    }
}

impl StatusBody {
    /// Counts the chunks of a view that have vectors of the models that are in use beside the built-in one.
    pub(crate) fn count_vectors(&mut self, workspace: &Workspace, view: &View) {
        let segments = view.segments();
        let server = workspace.remote_model().map(|model| &model.options().endpoint);
        let kept_at = workspace.sharing_host();
        let kept_at = kept_at.filter(|_| workspace.keeps_away(RowKind::Dense));
        let there = kept_at.as_ref().and_then(|_| workspace.there(RowKind::Dense).ok()?);
        let there = there.filter(|there| there.epoch == segments.epoch());
        let is_there = |doc| {
            let there = there.as_ref();
            there.is_some_and(|there| there.docs.contains(doc) || there.empty.contains(doc))
        };
        self.vectors = workspace.added_model().map(|model| VectorsOut {
            kept_at,
            ..VectorsOut::of(&model.profile().model, server, view, |doc| {
                segments.has_added(doc) || is_there(doc)
            })
        });
        self.sparse_vectors = workspace.remote_sparse().map(|model| {
            let options = model.options();
            VectorsOut::of(&options.model, Some(&options.endpoint), view, |doc| {
                segments.has_sparse(doc)
            })
        });
    }
}

impl StatusBody {
    /// Counts the chunks of a view whose vectors are known to be shared.
    pub(crate) fn count_shared(&mut self, workspace: &Workspace, view: &View) -> Result<()> {
        self.shared = shared(workspace, view, RowKind::Dense)?;
        self.shared_sparse = shared(workspace, view, RowKind::Sparse)?;
        Ok(())
    }
}

/// How many vectors are where clones share them, as far as this one knows.
#[derive(Debug, Serialize)]
pub(crate) struct SharedOut {
    /// Host and port.
    pub(crate) server: String,
    /// Chunks of the revision whose vectors are there.
    pub(crate) chunks: u64,
    /// The others, less those that have no vector or are given to nobody.
    pub(crate) missing: u64,
}

impl SharedOut {
    /// In one line; `what` is shared.
    pub(crate) fn told(&self, what: &str) -> String {
        let missing = match self.missing {
            0 => String::new(),
            missing => format!("; {missing} are not: codescout index"),
        };
        format!("{} {what} by {}{missing}", self.chunks, self.server)
    }
}

/// What is known to be shared of a view, if anything of a kind is to be.
fn shared(workspace: &Workspace, view: &View, kind: RowKind) -> Result<Option<SharedOut>> {
    let is_made = kind == RowKind::Dense || workspace.remote_sparse().is_some();
    let Some(server) = workspace.sharing_host().filter(|_| is_made) else {
        return Ok(None);
    };
    let live = view.live().to_bitmap();
    let there = workspace.there(kind)?;
    let there = there.filter(|there| there.epoch == view.segments().epoch());
    let (docs, empty) = there.map(|there| (there.docs, there.empty)).unwrap_or_default();
    Ok(Some(SharedOut {
        server,
        chunks: live.intersection_len(&docs),
        missing: (live - docs - empty - withheld(view)).len(),
    }))
}

/// How many files of a language are searched.
#[derive(Debug, Serialize)]
pub(crate) struct LanguageOut {
    pub(crate) name: &'static str,
    pub(crate) files: u32,
}

/// What is indexed of `target`; the languages are those of a view, which is not looked at here.
pub(crate) fn status_body(workspace: &Workspace, target: Option<Target>) -> Result<StatusBody> {
    let mut body = StatusBody {
        sidecar: workspace.sidecar_root().display().to_string(),
        index: "none",
        languages: Vec::new(),
        segments: 0,
        blobs: 0,
        chunks: 0,
        snapshots: 0,
        bytes: None,
        history: None,
        vectors: None,
        sparse_vectors: None,
        shared: None,
        shared_sparse: None,
    };
    if let Some((sidecar, Some(state))) = workspace.sidecar()? {
        let snapshots = SnapshotStore::new(&sidecar, state.epoch, state.recipe);
        body.index = match target.map(|target| workspace.freshness(target.tree)).transpose()? {
            // Deleted since.
            Some(Freshness::Missing) => "none",
            Some(Freshness::Behind) => "behind",
            Some(Freshness::OtherSettings) => "other_settings",
            Some(Freshness::Damaged(_)) => "damaged",
            Some(Freshness::UpToDate) | None => "up_to_date",
        };
        body.segments = state.segments.len();
        body.blobs = state.n_blobs();
        body.chunks = state.n_docs();
        body.snapshots = snapshots.trees()?.len();
        body.bytes = Some(sizes(&sidecar, &state)?);
        body.history = HistoryStatus::of(workspace, &sidecar, &state);
    }
    Ok(body)
}

/// The languages of the files that are searched, the most files first.
pub(crate) fn languages(view: &View) -> Vec<LanguageOut> {
    let mut n_files: BTreeMap<&'static str, u32> = BTreeMap::new();
    for (id, file) in view.files() {
        if file.blob.is_some() {
            let name = extract::language(view.lang(id)).map_or("text", |language| language.name);
            *n_files.entry(name).or_default() += 1;
        }
    }
    let mut languages: Vec<LanguageOut> = n_files
        .into_iter()
        .map(|(name, files)| LanguageOut { name, files })
        .collect();
    languages.sort_by(|a, b| (b.files, a.name).cmp(&(a.files, b.name)));
    languages
}
