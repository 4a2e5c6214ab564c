//! Measures the cost of updates as the number of commits grows, and the cost of queries in an open index.
//!
//! ```text
//! cargo bench --bench update                               # 300 commits of one file in a made-up repository
//! cargo bench --bench update -- updates CLONE [N]          # the last N (default 300) commits of CLONE, one after the other
//! cargo bench --bench update -- queries CLONE QUERIES      # QUERIES has one query a line; asked at HEAD, in one process
//! ```
//!
//! CLONE is any repository; `updates` uses a temporary sidecar and does not change the clone's own; `queries` uses the
//! sidecar in `CODESCOUT_SIDECAR`. The figures in the documents come from clones of git, rust-analyzer and ripgrep.
//! Times are medians and 99th percentiles; they do not include git's work, because the commits exist already.

#![expect(clippy::print_stdout, reason = "a bench reports on the terminal")]
#![expect(clippy::unwrap_used, reason = "a bench may stop")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use codescout::config::Overrides;
use codescout::ingest::Outcome;
use codescout::model::Ctx;
use codescout::query::{Mode, Request, Searcher};
use codescout::session::{CallCtx, Session, ViewRequest, Workspace};
use codescout::sidecar::{Sidecar, Store};
use codescout::snapshot::View;

static NEVER: AtomicBool = AtomicBool::new(false);
const COMMITS: usize = 300;
/// The queries run after each series of updates.
const PROBES: [&str; 3] = ["parse the configuration", "error handling", "new"];

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [] => made_up(),
        ["updates", clone] => updates(clone.as_ref(), COMMITS),
        ["updates", clone, n] => updates(clone.as_ref(), n.parse().unwrap()),
        ["queries", clone, list] => queries(clone.as_ref(), list.as_ref()),
        _ => println!("see the head of tests/bench/update.rs for what can be asked"),
    }
}

fn made_up() {
    let folder = tempfile::tempdir().unwrap();
    let git = |arguments: &[&str], input: &[u8]| {
        let mut command = Command::new("git");
        let mut child = command
            .current_dir(folder.path())
            .args(arguments)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        assert!(child.wait().unwrap().success());
    };
    git(&["init", "--quiet", "--initial-branch=line"], b"");
    let mut stream = Vec::new();
    for number in 0..=COMMITS {
        let text: String = (0..30)
            .map(|item| {
                let revision = if item == 7 { number } else { item };
                format!("/// Parses part {item}.\nfn parse_{item}_{revision}() {{\n    next({revision});\n}}\n\n")
            })
            .collect();
        let path = format!("src/module_{}.rs", number % 40);
        let time = 1_700_000_000 + number;
        writeln!(
            stream,
            "commit refs/heads/line\ncommitter A <a@example.com> {time} +0000\ndata 0"
        )
        .unwrap();
        writeln!(stream, "M 100644 inline {path}\ndata {}\n{text}", text.len()).unwrap();
    }
    git(&["fast-import", "--quiet"], &stream);
    updates(folder.path(), COMMITS);
}

fn updates(clone: &Path, n_commits: usize) {
    let folder = tempfile::tempdir().unwrap();
    let sidecar = folder.path().join("sidecar");
    let overrides = Overrides {
        sidecar: Some(sidecar.clone()),
        ..Overrides::default()
    };
    let workspace = Arc::new(Workspace::open(clone, &overrides).unwrap());
    let first = index(&workspace, &format!("HEAD~{n_commits}"));
    println!(
        "first: {} blobs in {:.2} s",
        first.n_new_blobs,
        first.elapsed.as_secs_f64()
    );
    report(&workspace, &sidecar, &format!("HEAD~{n_commits}"));

    let (mut plain, mut merging) = (Vec::new(), Vec::new());
    let (mut n_blobs, mut n_bytes) = (0, 0);
    for back in (0..n_commits).rev() {
        let outcome = index(&workspace, &format!("HEAD~{back}"));
        n_blobs += outcome.n_new_blobs;
        n_bytes += outcome.n_text_bytes;
        match outcome.n_merged_segments {
            0 => plain.push(outcome.elapsed),
            _ => merging.push(outcome.elapsed),
        }
    }
    println!(
        "{n_commits} updates: {n_blobs} new blobs, {:.1} MB of text",
        n_bytes as f64 / 1e6
    );
    println!("  without merging {}", spread(&mut plain));
    println!("  with merging    {}", spread(&mut merging));
    report(&workspace, &sidecar, "HEAD");
}

fn index(workspace: &Workspace, reference: &str) -> Outcome {
    let target = workspace.target(reference).unwrap().unwrap();
    workspace.ingest(target, Ctx::silent(&NEVER)).unwrap()
}

/// Opens a view in a new session, as a new process would.
fn view(workspace: &Arc<Workspace>, reference: &str) -> View {
    let session = Session::for_command(Arc::clone(workspace));
    let call = CallCtx::unlimited(Ctx::silent(&NEVER));
    session.view(ViewRequest::of(reference), &call).unwrap().0.view.clone()
}

/// Prints the number of segments, the bytes in use, and the time for opening the index and searching.
fn report(workspace: &Arc<Workspace>, sidecar: &Path, reference: &str) {
    let state = Sidecar::open(sidecar).unwrap().state().unwrap().unwrap();
    let lengths = state.segments.iter().map(|entry| {
        let vectors: u64 = entry.vectors.iter().map(|vectors| vectors.file.length).sum();
        entry.artifacts.length + entry.lexical.length + vectors
    });
    let used: u64 = lengths.sum();
    let on_disk: u64 = [Store::Artifacts, Store::Lexical, Store::Dense]
        .iter()
        .flat_map(|&store| std::fs::read_dir(Sidecar::open(sidecar).unwrap().folder(store)).unwrap())
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    let mut opening = Vec::new();
    let mut asking = Vec::new();
    for round in 0..12 {
        let started = Instant::now();
        let view = view(workspace, reference);
        let searcher = Searcher::new(&view, workspace.models.embedder(), workspace.models.own()).unwrap();
        opening.push(started.elapsed());
        let request = Request {
            query: PROBES[round % PROBES.len()].to_owned(),
            limit: 10,
            ..Request::default()
        };
        let started = Instant::now();
        searcher.search(&request).unwrap();
        asking.push(started.elapsed());
    }
    println!(
        "  {} segments, {:.1} MB in use, {:.1} MB with what waits to be removed",
        state.segments.len(),
        used as f64 / 1e6,
        on_disk as f64 / 1e6
    );
    println!("  opening {}", spread(&mut opening));
    println!("  asking  {}", spread(&mut asking));
}

fn queries(clone: &Path, list: &Path) {
    let workspace = Arc::new(Workspace::open(clone, &Overrides::default()).unwrap());
    let view = view(&workspace, "HEAD");
    let started = Instant::now();
    let searcher = Searcher::new(&view, workspace.models.embedder(), workspace.models.own()).unwrap();
    println!(
        "{:<52} {:.1} ms, {} documents",
        "searcher over an open view",
        started.elapsed().as_secs_f64() * 1e3,
        view.live().n_docs
    );
    let list = std::fs::read_to_string(list).unwrap();
    for mode in [Mode::Auto, Mode::Keyword, Mode::Semantic] {
        let mut times = Vec::new();
        for round in 0..4 {
            for query in list.lines() {
                let request = Request {
                    query: query.to_owned(),
                    mode,
                    limit: 10,
                    ..Request::default()
                };
                let started = Instant::now();
                searcher.search(&request).unwrap();
                // The first round warms the page cache and is not measured.
                if round > 0 {
                    times.push(started.elapsed());
                }
            }
        }
        println!("{:<52} {}", format!("query, warm, {mode:?}"), spread(&mut times));
    }
}

fn spread(times: &mut [Duration]) -> String {
    if times.is_empty() {
        return "none".to_owned();
    }
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * 1e3;
    format!("{:.1} ms, p99 {:.1} ms, {} times", at(50), at(99), times.len())
}
