//! Tests many small commits: the number of segments stays small, and merging changes no answer.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use codescout::config::Overrides;
use codescout::ingest::Outcome;
use codescout::model::Ctx;
use codescout::query::{FileFilter, Mode, Request, Searcher};
use codescout::session::Workspace;
use codescout::sidecar::{Sidecar, State, Store};
use codescout::snapshot::View;

use crate::indexed::seen;
use crate::support::{TestRepo, is_long};

static NEVER: AtomicBool = AtomicBool::new(false);
const MAX_SEGMENTS: usize = 16;
const QUERIES: [&str; 6] = [
    "module_2",
    "area of the square",
    "step_0",
    "where are circles scaled",
    "retry after failure",
    "Shape",
];

fn n_commits() -> usize {
    if is_long() { 300 } else { 120 }
}

/// Returns the file that commit `number` writes. Some files are new, some are changed, and some have a text that
/// occurred before.
fn file(number: usize) -> (String, String) {
    let module = number % 40;
    let revision = if number % 7 == 3 { number % 3 } else { number };
    let text = format!(
        "/// Scales circles and squares, revision {revision}.\npub fn module_{module}(shape: Shape) -> f64 {{\n    \
         step_{revision}(shape.area())\n}}\n\n/// The area of the square with number {revision}.\nfn step_{revision}(side: f64) \
         -> f64 {{\n    // retry after failure number {revision}\n    side * side\n}}\n"
    );
    (format!("src/module_{module}.rs"), text)
}

/// Creates a repository with a sequence of commits that write one file each.
fn repository() -> TestRepo {
    let repo = TestRepo::empty();
    let mut stream = Vec::new();
    for number in 0..n_commits() {
        let (path, text) = file(number);
        stream.extend_from_slice(b"commit refs/heads/line\n");
        stream.extend_from_slice(format!("committer A <a@example.com> {} +0000\n", 1_700_000_000 + number).as_bytes());
        stream.extend_from_slice(b"data 0\n");
        stream.extend_from_slice(format!("M 100644 inline {path}\ndata {}\n{text}\n", text.len()).as_bytes());
    }
    repo.git_with_input(["fast-import", "--quiet"], &stream);
    repo
}

fn open(repo: &TestRepo, sidecar: PathBuf) -> Arc<Workspace> {
    let overrides = Overrides {
        sidecar: Some(sidecar),
        ..Overrides::default()
    };
    Arc::new(Workspace::open(repo.root(), &overrides).unwrap())
}

fn index(workspace: &Workspace, reference: &str) -> Outcome {
    let target = workspace.target(reference).unwrap().unwrap();
    workspace.ingest(target, Ctx::silent(&NEVER)).unwrap()
}

fn view(workspace: &Arc<Workspace>, reference: &str) -> View {
    let opened = seen(workspace, reference).unwrap();
    assert_eq!(opened.ingested.n_new_blobs, 0, "everything is known");
    opened.view.clone()
}

/// Returns the hits of all queries with their scores, by location.
fn answers(workspace: &Workspace, view: &View) -> Vec<(String, Vec<(String, f32)>)> {
    let searcher = Searcher::new(view, workspace.models.embedder(), workspace.models.own()).unwrap();
    let mut answers = Vec::new();
    for mode in [Mode::Auto, Mode::Hybrid, Mode::Semantic, Mode::Keyword] {
        for query in QUERIES {
            let request = Request {
                query: query.to_owned(),
                mode,
                filter: FileFilter::default(),
                limit: 10,
                ..Request::default()
            };
            let found = searcher.search(&request).unwrap();
            let hits = found.hits.iter().map(|hit| {
                let places: Vec<String> = hit
                    .places
                    .iter()
                    .map(|place| {
                        format!(
                            "{} {:?}",
                            String::from_utf8_lossy(view.file(place.file).path),
                            place.range
                        )
                    })
                    .collect();
                (places.join(", "), hit.score)
            });
            answers.push((format!("{mode:?} {query}"), hits.collect()));
        }
    }
    answers
}

fn state(sidecar: &Path) -> State {
    Sidecar::open(sidecar).unwrap().state().unwrap().unwrap()
}

/// Sets the modification time of every segment file back, so that unused files are old.
fn age_files(sidecar: &Path) {
    let opened = Sidecar::open(sidecar).unwrap();
    for store in [Store::Artifacts, Store::Lexical, Store::Dense] {
        for entry in std::fs::read_dir(opened.folder(store)).unwrap() {
            let file = std::fs::File::options()
                .append(true)
                .open(entry.unwrap().path())
                .unwrap();
            let before = std::time::SystemTime::now() - std::time::Duration::from_secs(2 * 3600);
            file.set_modified(before).unwrap();
        }
    }
}

fn n_files(sidecar: &Path) -> usize {
    let opened = Sidecar::open(sidecar).unwrap();
    [Store::Artifacts, Store::Lexical, Store::Dense]
        .map(|store| std::fs::read_dir(opened.folder(store)).unwrap().count())
        .iter()
        .sum()
}

#[test]
fn many_commits_leave_few_segments_and_the_same_answers() {
    let repo = repository();
    let sidecar = repo.beside("grown");
    let grown = open(&repo, sidecar.clone());

    // A view opened early holds files that are later replaced many times.
    let n_commits = n_commits();
    let early = format!("line~{}", n_commits - 6);
    index(&grown, &early);
    let held = view(&grown, &early);
    let early_answers = answers(&grown, &held);
    let early_docs: Vec<_> = (0..held.segments().n_docs())
        .map(|doc| held.segments().doc_meta(doc))
        .collect();
    let epoch = state(&sidecar).epoch;

    let (mut most, mut n_merges) = (0, 0);
    for back in (0..n_commits - 6).rev() {
        let outcome = index(&grown, &format!("line~{back}"));
        n_merges += usize::from(outcome.n_merged_segments > 0);
        most = most.max(state(&sidecar).segments.len());
        if back % 50 == 0 {
            age_files(&sidecar);
        }
    }
    assert!(most <= MAX_SEGMENTS, "{most} segments");
    assert!(n_merges >= n_commits / 15, "{n_merges} merges");
    assert_eq!(state(&sidecar).epoch, epoch);

    // The old view, the old manifest on merged segments, and the old numbers all remain valid.
    assert_eq!(answers(&grown, &held), early_answers);
    let reopened = view(&grown, &early);
    assert_eq!(answers(&grown, &reopened), early_answers);
    let numbered: Vec<_> = (0..early_docs.len() as u32)
        .map(|doc| reopened.segments().doc_meta(doc))
        .collect();
    assert_eq!(numbered, early_docs);

    // Compares with a sidecar that was built in one run.
    let middle = format!("line~{}", n_commits / 2);
    for (at, reference) in ["line", &middle, &early].into_iter().enumerate() {
        let fresh = open(&repo, repo.beside(&format!("fresh{at}")));
        index(&fresh, reference);
        let expected = answers(&fresh, &view(&fresh, reference));
        assert_eq!(answers(&grown, &view(&grown, reference)), expected, "{reference}");
        for (query, hits) in &expected {
            assert!(!hits.is_empty(), "{query} at {reference}");
        }
    }
}

#[test]
fn what_is_out_of_use_is_removed_in_the_end() {
    let repo = repository();
    let sidecar = repo.beside("grown");
    let grown = open(&repo, sidecar.clone());
    let n_commits = n_commits();
    for back in (n_commits - 30..n_commits).rev() {
        index(&grown, &format!("line~{back}"));
    }
    let in_use = state(&sidecar).segments.len();
    assert!(n_files(&sidecar) > 3 * in_use, "replaced files wait for readers");
    std::fs::write(sidecar.join("lexical-v1").join("of-somebody-else"), "x").unwrap();

    age_files(&sidecar);
    index(&grown, &format!("line~{}", n_commits - 31));
    assert_eq!(n_files(&sidecar), 3 * state(&sidecar).segments.len() + 1);
    let held = view(&grown, &format!("line~{}", n_commits - 31));
    assert_eq!(answers(&grown, &held).len(), 4 * QUERIES.len());
}
