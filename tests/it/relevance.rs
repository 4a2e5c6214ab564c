//! Tests the quality of searches with judged queries about crates that `Cargo.lock` pins. Compares the metrics with
//! those recorded in `tests/relevance`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use codescout::config::Overrides;
use codescout::evaluate::{Category, Measures, Ranked, Relevant, measure};
use codescout::extract::{Definition, Extraction};
use codescout::query::{Mode, Request, Searcher};
use codescout::session::Workspace;
use codescout::snapshot::View;
use serde::Deserialize;

use crate::indexed::seen;
use crate::support::TestRepo;

const MODES: [(Mode, &str); 3] = [
    (Mode::Keyword, "keyword"),
    (Mode::Semantic, "semantic"),
    (Mode::Auto, "auto"),
];
/// Number of results per query. The metrics use ten.
const N_RESULTS: usize = 10;
const HOW_TO_ACCEPT: &str = "to accept the new figures: CODESCOUT_ACCEPT=1 cargo test --test it relevance";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JudgedCrate {
    #[serde(rename = "crate")]
    name: String,
    queries: Vec<JudgedQuery>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JudgedQuery {
    id: String,
    category: Category,
    query: String,
    relevant: Vec<JudgedDefinition>,
}

/// A definition as a whole. Its lines are located in this version of the crate.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JudgedDefinition {
    path: String,
    /// A part of the line at which its signature begins. The first matching definition is used.
    line: String,
    /// The name of the enclosing definition, if needed to identify it.
    of: Option<String>,
    grade: u32,
}

/// The mean metrics of a crate, one for each of [`MODES`].
struct Figures {
    name: String,
    version: String,
    n_queries: usize,
    by_mode: Vec<Means>,
}

#[derive(Clone, Copy, Default)]
struct Means {
    ndcg_file: f64,
    ndcg_lines: f64,
    ndcg_places: f64,
    mrr: f64,
    recall_5: f64,
}

#[test]
fn ranking_is_as_good_as_recorded() {
    let judged = judged_crates();
    let n_judged = judged.len();
    let mut figures = measured(judged);
    figures.sort_by(|a, b| a.name.cmp(&b.name));
    let is_whole = figures.len() == n_judged;
    let found = table(&figures, is_whole);
    let path = folder().join("golden.txt");
    if std::env::var_os("CODESCOUT_ACCEPT").is_some() {
        assert!(
            is_whole,
            "crates are missing on this machine: `cargo fetch` brings them"
        );
        fs::write(path, &found).unwrap();
    } else {
        compare(
            &fs::read_to_string(path).unwrap_or_default(),
            &found,
            &figures,
            is_whole,
        );
    }
    if is_whole {
        auto_is_no_worse_than_its_legs(&overall(&figures));
    }
}

#[test]
fn judgements_are_well_formed() {
    for judged in judged_crates() {
        for (index, query) in judged.queries.iter().enumerate() {
            assert_eq!(query.id, format!("{}-{}", judged.name, index + 1));
            assert!((1..=4).contains(&query.relevant.len()), "{}", query.id);
            assert!(query.relevant.iter().any(|place| place.grade == 2), "{}", query.id);
            assert!(
                query.relevant.iter().all(|place| matches!(place.grade, 1 | 2)),
                "{}",
                query.id
            );
        }
        let n_of = |category| judged.queries.iter().filter(|query| query.category == category).count();
        assert!(n_of(Category::Semantic) >= 4 && n_of(Category::Architecture) >= 2 && n_of(Category::Symbol) >= 2);
    }
}

fn auto_is_no_worse_than_its_legs(overall: &[Means]) {
    let [keyword, semantic, auto] = overall else {
        panic!("one mean for each mode");
    };
    assert!(
        auto.ndcg_file >= keyword.ndcg_file && auto.ndcg_file >= semantic.ndcg_file,
        "by file auto has {:.3}, keyword {:.3}, semantic {:.3}",
        auto.ndcg_file,
        keyword.ndcg_file,
        semantic.ndcg_file
    );
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/relevance")
}

fn judged_crates() -> Vec<JudgedCrate> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| {
            let text = fs::read(path).unwrap();
            serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        })
        .collect()
}

/// Returns the metrics of the crates that are on this machine.
fn measured(judged: Vec<JudgedCrate>) -> Vec<Figures> {
    let versions = pinned_versions();
    let threads: Vec<_> = judged
        .into_iter()
        .filter_map(|judged| {
            let version = versions
                .get(&judged.name)
                .unwrap_or_else(|| panic!("Cargo.toml no longer names {}", judged.name))
                .clone();
            match crate_source(&judged.name, &version) {
                Some(source) => Some(thread::spawn(move || figures_of(&judged, version, &source))),
                None => {
                    skip(&format!(
                        "the source of {} {version} is not on this machine",
                        judged.name
                    ));
                    None
                }
            }
        })
        .collect();
    threads
        .into_iter()
        .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
        .collect()
}

/// Prints to the terminal that something was not tested, even if the output of passing tests is captured.
fn skip(what: &str) {
    // A closed terminal is no reason to fail.
    let _ = writeln!(io::stderr(), "SKIPPED: {what}");
}

/// Returns the versions of this package's direct dependencies.
fn pinned_versions() -> BTreeMap<String, String> {
    #[derive(Deserialize)]
    struct Lock {
        package: Vec<Package>,
    }
    #[derive(Deserialize)]
    struct Package {
        name: String,
        version: String,
        #[serde(default)]
        dependencies: Vec<String>,
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.lock");
    let lock: Lock = toml::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let own = lock
        .package
        .iter()
        .find(|package| package.name == env!("CARGO_PKG_NAME"))
        .unwrap();
    own.dependencies
        .iter()
        .filter_map(|dependency| {
            // The version is included only if there are several.
            let mut words = dependency.split(' ');
            let name = words.next()?;
            let version = match words.next() {
                Some(version) => version.to_owned(),
                None => lock
                    .package
                    .iter()
                    .find(|package| package.name == name)?
                    .version
                    .clone(),
            };
            Some((name.to_owned(), version))
        })
        .collect()
}

/// Returns the folder where cargo has unpacked a crate.
fn crate_source(name: &str, version: &str) -> Option<PathBuf> {
    let home = match std::env::var_os("CARGO_HOME") {
        Some(home) => PathBuf::from(home),
        None => PathBuf::from(std::env::var_os("HOME").or_else(|| std::env::var_os("USERPROFILE"))?).join(".cargo"),
    };
    fs::read_dir(home.join("registry/src"))
        .ok()?
        .filter_map(Result::ok)
        .map(|registry| registry.path().join(format!("{name}-{version}")))
        .find(|source| source.is_dir())
}

fn figures_of(judged: &JudgedCrate, version: String, source: &Path) -> Figures {
    let repo = TestRepo::empty();
    copy_texts(source, source, &repo);
    repo.commit("start");
    let overrides = Overrides {
        sidecar: Some(repo.beside("index")),
        ..Overrides::default()
    };
    let workspace = Arc::new(Workspace::open(repo.root(), &overrides).unwrap());
    let view = seen(&workspace, "HEAD").unwrap().view.clone();
    let searcher = Searcher::new(&view, workspace.models.embedder(), workspace.models.own()).unwrap();
    let by_mode = MODES.map(|(mode, _)| {
        let measures = judged.queries.iter().map(|query| {
            let relevant: Vec<Relevant> = query
                .relevant
                .iter()
                .map(|place| located(place, &view, &repo, &query.id))
                .collect();
            measure(&answer(&searcher, &query.query, mode), &relevant)
        });
        means(&measures.collect::<Vec<_>>())
    });
    Figures {
        name: judged.name.clone(),
        version,
        n_queries: judged.queries.len(),
        by_mode: by_mode.to_vec(),
    }
}

/// Copies the text files of a crate, without files that registries add.
fn copy_texts(folder: &Path, root: &Path, repo: &TestRepo) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            copy_texts(&path, root, repo);
        } else if path.extension().is_some_and(|ending| ending == "rs" || ending == "md") {
            repo.write(path.strip_prefix(root).unwrap(), fs::read(&path).unwrap());
        }
    }
}

fn answer(searcher: &Searcher<'_>, query: &str, mode: Mode) -> Vec<Ranked> {
    let request = Request {
        query: query.to_owned(),
        mode,
        limit: N_RESULTS,
        ..Request::default()
    };
    let outcome = searcher.search(&request).unwrap();
    outcome
        .hits
        .iter()
        .filter_map(|hit| {
            let place = hit.places.first()?;
            Some(Ranked {
                path: String::from_utf8_lossy(searcher.view().file(place.file).path).into_owned(),
                lines: (place.start_line, place.end_line),
                further: hit
                    .further
                    .iter()
                    .map(|part| (part.start_line, part.end_line))
                    .collect(),
            })
        })
        .collect()
}

/// Returns the lines of a judged definition.
fn located(judged: &JudgedDefinition, view: &View, repo: &TestRepo, id: &str) -> Relevant {
    let text = repo.read(&judged.path);
    let file = view.find(judged.path.as_bytes()).unwrap();
    let extraction = view.extraction(file).unwrap().unwrap();
    let definition = extraction
        .definitions
        .iter()
        .find(|definition| is_meant(judged, definition, &extraction, &text))
        .unwrap_or_else(|| panic!("{id}: no definition in {} begins with {:?}", judged.path, judged.line));
    let line_of = |at: u32| text[..at as usize].iter().filter(|&&byte| byte == b'\n').count() as u32 + 1;
    Relevant {
        path: judged.path.clone(),
        start: line_of(definition.range.start),
        end: line_of(definition.range.end.saturating_sub(1)),
        grade: judged.grade,
    }
}

fn is_meant(judged: &JudgedDefinition, definition: &Definition, extraction: &Extraction, text: &[u8]) -> bool {
    let start = definition.signature.start as usize;
    let line_start = text[..start]
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |newline| newline + 1);
    let line = text[line_start..]
        .split(|&byte| byte == b'\n')
        .next()
        .unwrap_or_default();
    let container = definition
        .container
        .and_then(|index| extraction.definitions.get(index as usize))
        .map(|container| container.name.as_str());
    String::from_utf8_lossy(line).contains(&judged.line) && judged.of.as_deref().is_none_or(|of| container == Some(of))
}

fn means(measures: &[Measures]) -> Means {
    let mean = |pick: &dyn Fn(&Measures) -> f64| measures.iter().map(pick).sum::<f64>() / measures.len().max(1) as f64;
    Means {
        ndcg_file: mean(&|measures| measures.ndcg_file),
        ndcg_lines: mean(&|measures| measures.ndcg_lines),
        ndcg_places: mean(&|measures| measures.ndcg_places),
        mrr: mean(&|measures| measures.mrr_file),
        recall_5: mean(&|measures| measures.recall_file[1]),
    }
}

/// Returns the means over the crates' means.
fn overall(figures: &[Figures]) -> Vec<Means> {
    let n = figures.len().max(1) as f64;
    (0..MODES.len())
        .map(|mode| {
            let mean = |pick: fn(&Means) -> f64| figures.iter().map(|of| pick(&of.by_mode[mode])).sum::<f64>() / n;
            Means {
                ndcg_file: mean(|means| means.ndcg_file),
                ndcg_lines: mean(|means| means.ndcg_lines),
                ndcg_places: mean(|means| means.ndcg_places),
                mrr: mean(|means| means.mrr),
                recall_5: mean(|means| means.recall_5),
            }
        })
        .collect()
}

/// Formats the metrics as they are recorded. Includes the line over all crates only if all are available.
fn table(figures: &[Figures], is_whole: bool) -> String {
    let mut text =
        String::from("crate                          queries  mode      file   lines  places mrr    recall@5\n");
    let mut rows = |name: &str, n_queries: usize, by_mode: &[Means]| {
        for ((_, mode), means) in MODES.iter().zip(by_mode) {
            let Means {
                ndcg_file,
                ndcg_lines,
                ndcg_places,
                mrr,
                recall_5,
            } = means;
            writeln!(
                text,
                "{name:<30} {n_queries:>7}  {mode:<8}  {ndcg_file:.3}  {ndcg_lines:.3}  {ndcg_places:.3}  {mrr:.3}  {recall_5:.3}"
            )
            .unwrap();
        }
    };
    for of in figures {
        rows(&format!("{} {}", of.name, of.version), of.n_queries, &of.by_mode);
    }
    if is_whole {
        let n_queries = figures.iter().map(|of| of.n_queries).sum();
        rows("overall", n_queries, &overall(figures));
    }
    text
}

/// Fails with the lines that differ from the recorded ones. If crates are missing, compares only the available ones.
fn compare(golden: &str, found: &str, figures: &[Figures], is_whole: bool) {
    let is_of_found = |line: &&str| is_whole || figures.iter().any(|of| is_about(line, &of.name));
    let recorded: Vec<&str> = golden.lines().skip(1).filter(is_of_found).collect();
    let found: Vec<&str> = found.lines().skip(1).collect();
    if recorded == found {
        return;
    }
    let mut difference = String::new();
    for line in recorded.iter().filter(|line| !found.contains(line)) {
        writeln!(difference, "- {line}").unwrap();
    }
    for line in found.iter().filter(|line| !recorded.contains(line)) {
        writeln!(difference, "+ {line}").unwrap();
    }
    for of in figures {
        let pinned = format!("{} {} ", of.name, of.version);
        if !recorded.iter().any(|line| line.starts_with(&pinned)) {
            writeln!(difference, "the recorded figures are of another version of {}", of.name).unwrap();
        }
    }
    panic!("figures differ from tests/relevance/golden.txt\n\n{difference}\n{HOW_TO_ACCEPT}");
}

fn is_about(line: &str, name: &str) -> bool {
    line.split(' ').next() == Some(name)
}
