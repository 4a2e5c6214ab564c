//! A repository with its index. Opens views and collects all answers that can be compared between two indexes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use anyhow::Result;
use codescout::config::Overrides;
use codescout::ingest::Outcome;
use codescout::link::{DefId, Linker, Links};
use codescout::model::{ChunkKey, Ctx, Progress, Stage};
use codescout::query::{Hit, Mode, Request, SearchOutcome};
use codescout::session::{CallCtx, SeenView, Session, ViewRequest, Workspace};
use codescout::snapshot::{Coverage, FileId, FileStatus, View};

pub(crate) static NEVER: AtomicBool = AtomicBool::new(false);

pub(crate) const MODES: [Mode; 4] = [Mode::Auto, Mode::Hybrid, Mode::Semantic, Mode::Keyword];

/// Panics if a stage reports more progress than it announced.
#[derive(Debug, Default)]
pub(crate) struct CheckedProgress(Mutex<Option<(Stage, usize, usize)>>);

impl Progress for CheckedProgress {
    fn begin(&self, stage: Stage, n_ahead: usize) {
        *self.0.lock().unwrap() = Some((stage, n_ahead, 0));
    }

    fn advance(&self, _n_bytes: u64) {
        let mut at = self.0.lock().unwrap();
        let (stage, n_ahead, n_done) = at.as_mut().expect("a stage has begun");
        *n_done += 1;
        assert!(*n_done <= *n_ahead, "{n_done} of {n_ahead} in {stage:?}");
    }

    fn end(&self) {}
}

/// A workspace for a test repository.
pub(crate) struct Indexed {
    pub(crate) workspace: Arc<Workspace>,
}

/// The files and properties of a view.
#[derive(Debug, PartialEq)]
pub(crate) struct Contents {
    digest: [u8; 32],
    coverage: Coverage,
    /// Path, mode, id, language and skip reason. Skipped files on disk have no id.
    files: Vec<String>,
}

/// The result of a search, without numbers that depend on the sidecar. Scores are compared bit by bit.
#[derive(Debug, PartialEq)]
pub(crate) struct Answer {
    asked: String,
    hits: Vec<String>,
}

/// Opens a view in a new session, as a new process would.
pub(crate) fn seen(workspace: &Arc<Workspace>, reference: &str) -> Result<Arc<SeenView>> {
    seen_until(workspace, ViewRequest::of(reference), &NEVER)
}

pub(crate) fn seen_until(
    workspace: &Arc<Workspace>,
    request: ViewRequest<'_>,
    interrupt: &AtomicBool,
) -> Result<Arc<SeenView>> {
    let session = Session::for_command(Arc::clone(workspace));
    Ok(session.view(request, &CallCtx::unlimited(Ctx::silent(interrupt)))?.0)
}

impl Indexed {
    /// Opens a workspace with the sidecar at its default location.
    pub(crate) fn new(root: &Path) -> Self {
        Self::with(root, Overrides::default()).unwrap()
    }

    /// Opens a workspace with a sidecar at `sidecar`.
    pub(crate) fn at(root: &Path, sidecar: PathBuf) -> Self {
        let overrides = Overrides {
            sidecar: Some(sidecar),
            ..Overrides::default()
        };
        Self::with(root, overrides).unwrap()
    }

    pub(crate) fn with(root: &Path, overrides: Overrides) -> Result<Self> {
        let workspace = Arc::new(Workspace::open(root, &overrides)?);
        Ok(Self { workspace })
    }

    pub(crate) fn try_open(&self, reference: &str) -> Result<Arc<SeenView>> {
        seen(&self.workspace, reference)
    }

    pub(crate) fn view(&self, reference: &str) -> View {
        self.try_open(reference).unwrap().view.clone()
    }

    /// Opens a revision and returns what had to be indexed.
    pub(crate) fn ingested(&self, reference: &str) -> Outcome {
        self.try_open(reference).unwrap().ingested.clone()
    }

    pub(crate) fn try_search(&self, view: &View, mode: Mode, query: &str) -> Result<SearchOutcome> {
        let searcher = self.workspace.searcher(view, &NEVER)?;
        Ok(searcher.search(&Request {
            query: query.to_owned(),
            mode,
            limit: 50,
            ..Request::default()
        })?)
    }

    pub(crate) fn search(&self, view: &View, mode: Mode, query: &str) -> Vec<Hit> {
        self.try_search(view, mode, query).unwrap().hits
    }

    /// Returns what each reference means, by path and position. Links the files in reverse if `is_backwards`.
    pub(crate) fn links(&self, view: &View, is_backwards: bool) -> BTreeSet<String> {
        let links = Links::new(view, &mut self.workspace.repository.reader());
        let linker = Linker::new(view, &links, &NEVER);
        let mut files: Vec<FileId> = view.files().map(|(file, _)| file).collect();
        if is_backwards {
            files.reverse();
        }
        let place = |of: &DefId| format!("{}#{}", path_of(view, of.file), of.index);
        let mut found = BTreeSet::new();
        for file in files {
            for link in linker.link_file(file).unwrap_or_default() {
                let targets: Vec<String> = link.targets.iter().map(place).collect();
                let (path, tier) = (path_of(view, file), link.tier.name());
                found.insert(format!("{path}:{} {tier} {}", link.reference, targets.join(" ")));
            }
        }
        linker.check().unwrap();
        found
    }

    /// Returns the paths of the results of a keyword search, each once, sorted.
    pub(crate) fn paths(&self, view: &View, word: &str) -> Vec<String> {
        let hits = self.search(view, Mode::Keyword, word);
        let places = hits.iter().flat_map(|hit| &hit.places);
        let mut paths: Vec<String> = places.map(|place| path_of(view, place.file)).collect();
        paths.sort();
        paths.dedup();
        paths
    }

    pub(crate) fn contents(&self, view: &View) -> Contents {
        let file = |(_, file): (_, codescout::snapshot::ViewFile<'_>)| {
            let entry = file.entry();
            let status = match entry.status {
                FileStatus::Indexed { .. } => "indexed".to_owned(),
                FileStatus::Skipped(reason) => reason.to_string(),
            };
            format!(
                "{:?} {:?} {} {} {status}",
                entry.path, entry.mode, entry.oid, entry.lang.0
            )
        };
        Contents {
            digest: view.digest(),
            coverage: view.coverage().clone(),
            files: view.files().map(file).collect(),
        }
    }

    pub(crate) fn answer(&self, view: &View, mode: Mode, query: &str) -> Result<Answer> {
        let outcome = self.try_search(view, mode, query)?;
        Ok(Answer {
            asked: format!("{mode:?} {query:?}"),
            hits: outcome.hits.iter().map(|hit| written(view, hit)).collect(),
        })
    }

    /// Returns the answers to `queries` in every mode.
    pub(crate) fn answers(&self, view: &View, queries: &[&str]) -> Vec<Answer> {
        let all = queries.iter().flat_map(|query| MODES.map(|mode| (mode, query)));
        all.map(|(mode, query)| self.answer(view, mode, query).unwrap())
            .collect()
    }
}

impl Answer {
    pub(crate) fn is_empty(&self) -> bool {
        self.hits.is_empty()
    }

    /// Fails the test at the first hit that differs.
    pub(crate) fn assert_same(&self, other: &Self, about: &str) {
        for (rank, (ours, theirs)) in self.hits.iter().zip(&other.hits).enumerate() {
            assert_eq!(ours, theirs, "hit {rank} of {}: {about}", self.asked);
        }
        assert_eq!(self, other, "{about}");
    }
}

pub(crate) fn path_of(view: &View, file: codescout::snapshot::FileId) -> String {
    String::from_utf8_lossy(view.file(file).path).into_owned()
}

fn written(view: &View, hit: &Hit) -> String {
    let places: Vec<String> = hit
        .places
        .iter()
        .map(|place| {
            let path = path_of(view, place.file);
            format!(
                "{path}:{}-{} {:?} {}",
                place.start_line, place.end_line, place.range, place.range_start_line
            )
        })
        .collect();
    format!(
        "{:08x} {} {places:?} {:?} {:?} {:?} {:?}",
        hit.score.to_bits(),
        hit.score,
        hit.kind,
        hit.lang,
        hit.symbol,
        hit.features
    )
}

/// Returns the distinct chunks of a view.
pub(crate) fn chunk_keys(view: &View) -> Vec<ChunkKey> {
    let docs = (0..view.segments().n_docs()).filter(|&doc| view.live().contains(doc));
    let mut keys: Vec<ChunkKey> = docs
        .map(|doc| {
            let (segment, local) = view.segments().of_doc(doc).unwrap();
            segment.lexical.key(local)
        })
        .collect();
    keys.sort_unstable();
    keys
}

/// Returns every file below a folder with its bytes, by relative path.
pub(crate) fn files_below(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let bytes = std::fs::read(&path).unwrap();
                found.insert(path.strip_prefix(root).unwrap().to_owned(), bytes);
            }
        }
    }
    found
}

/// Prints that a test was skipped.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
pub(crate) fn skip(why: &str) {
    eprintln!("SKIPPED: {why}");
}

/// Prints a measured value.
#[expect(clippy::print_stderr, reason = "what a long test has counted")]
pub(crate) fn tell(figure: &str) {
    eprintln!("{figure}");
}

/// A deterministic pseudorandom number generator (splitmix64, Steele et al., OOPSLA 2014).
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`, which must not be 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub(crate) fn one_of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

/// Sets a flag after a number of items.
pub(crate) struct StopAfter<'a> {
    pub(crate) n_left: AtomicUsize,
    pub(crate) flag: &'a AtomicBool,
}

impl Progress for StopAfter<'_> {
    fn begin(&self, _stage: Stage, _n_items: usize) {}

    fn advance(&self, _n_bytes: u64) {
        if self.n_left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.flag.store(true, Ordering::Relaxed);
        }
    }

    fn end(&self) {}
}
