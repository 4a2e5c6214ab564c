//! Measures the speed of extraction on one core, and the sizes of chunks.
//!
//! `EXTRACT_DIR=path/to/checkout cargo bench --bench extract` reads every text file below the folder into memory,
//! extracts each once to warm up, then `EXTRACT_ROUNDS` times (default 3), and prints the best round by language. Times
//! are CPU times of the thread if the system reports them, so that other work on the machine does not count.
#![allow(clippy::print_stdout, reason = "a bench reports on standard output")]

#[path = "../support/cpu_time.rs"]
mod cpu_time;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use codescout::extract::{Content, Extractor, Options, classify, detect, language};
use codescout::model::{Lang, RepoPath};

use cpu_time::cpu_time;

struct Sample {
    lang: Lang,
    bytes: Vec<u8>,
}

#[derive(Default)]
struct Row {
    n_files: usize,
    n_bytes: usize,
    n_chunks: usize,
    n_definitions: usize,
    n_references: usize,
    n_broken: usize,
    time: Duration,
}

fn main() {
    let Some(root) = std::env::var_os("EXTRACT_DIR").map(PathBuf::from) else {
        println!("EXTRACT_DIR is not set: nothing to measure");
        return;
    };
    let n_rounds = std::env::var("EXTRACT_ROUNDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(3);
    let mut samples: BTreeMap<&str, Vec<Sample>> = BTreeMap::new();
    for sample in read_all(&root) {
        samples
            .entry(language(sample.lang).map_or("text", |language| language.name))
            .or_default()
            .push(sample);
    }
    let mut extractor = Extractor::new(Options::default());
    let mut best: Option<BTreeMap<&str, Row>> = None;
    for _ in 0..=n_rounds {
        let rows = round(&mut extractor, &samples);
        if best.as_ref().is_none_or(|best| total(&rows).time < total(best).time) {
            best = Some(rows);
        }
    }
    let Some(rows) = best else { return };
    println!(
        "{:<18} {:>6} {:>8} {:>7} {:>8} {:>8} {:>6} {:>7}",
        "language", "files", "kB", "MB/s", "B/chunk", "defs", "refs", "broken"
    );
    rows.iter().for_each(|(name, row)| print_row(name, row));
    print_row("all", &total(&rows));
}

/// Extracts every sample once, grouped by language, because clocks are too coarse for single files.
fn round(extractor: &mut Extractor, samples: &BTreeMap<&'static str, Vec<Sample>>) -> BTreeMap<&'static str, Row> {
    let mut of_language = |samples: &Vec<Sample>| {
        let start = cpu_time();
        let mut row = Row::default();
        for sample in samples {
            let extraction = extractor.extract(&sample.bytes, sample.lang);
            row.n_files += 1;
            row.n_bytes += sample.bytes.len();
            row.n_chunks += extraction.chunks.len();
            row.n_definitions += extraction.definitions.len();
            row.n_references += extraction.references.len();
            row.n_broken += usize::from(extraction.n_parse_errors > 0);
        }
        row.time = cpu_time().saturating_sub(start);
        row
    };
    samples
        .iter()
        .map(|(name, samples)| (*name, of_language(samples)))
        .collect()
}

fn total(rows: &BTreeMap<&str, Row>) -> Row {
    rows.values().fold(Row::default(), |sum, row| Row {
        n_files: sum.n_files + row.n_files,
        n_bytes: sum.n_bytes + row.n_bytes,
        n_chunks: sum.n_chunks + row.n_chunks,
        n_definitions: sum.n_definitions + row.n_definitions,
        n_references: sum.n_references + row.n_references,
        n_broken: sum.n_broken + row.n_broken,
        time: sum.time + row.time,
    })
}

fn print_row(name: &str, row: &Row) {
    println!(
        "{name:<18} {:>6} {:>8} {:>7.1} {:>8} {:>8} {:>6} {:>7}",
        row.n_files,
        row.n_bytes / 1_000,
        row.n_bytes as f64 / 1e6 / row.time.as_secs_f64().max(1e-9),
        row.n_bytes / row.n_chunks.max(1),
        row.n_definitions,
        row.n_references,
        row.n_broken,
    );
}

fn read_all(root: &Path) -> Vec<Sample> {
    let mut todo = vec![root.to_owned()];
    let mut samples = Vec::new();
    while let Some(folder) = todo.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => todo.push(entry.path()),
                Ok(kind) if kind.is_file() => samples.extend(read(root, &entry.path())),
                _ => {}
            }
        }
    }
    samples
}

fn read(root: &Path, path: &Path) -> Option<Sample> {
    let bytes = std::fs::read(path).ok()?;
    if classify(&bytes, 1 << 20) != Content::Text {
        return None;
    }
    let name = path.strip_prefix(root).ok()?.to_str()?;
    Some(Sample {
        lang: detect(&RepoPath::from(name), &bytes),
        bytes,
    })
}
