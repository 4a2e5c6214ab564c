//! Compares reading versions of files with and without reusing the parse of the previous version, by speed and result.
//!
//! `VERSIONS_REPO=path/to/repository cargo bench --bench versions` takes the files of HEAD with the most commits
//! (`VERSIONS_FILES`, default 40), and reads up to `VERSIONS_MOST` (default 400) versions of each, from the oldest to
//! the newest and back. Each version is read alone and then with the help of the previous one. Prints both times by
//! language, and the versions for which the results differ. Times are wall-clock times, so nothing else should run on
//! the machine.
#![allow(clippy::print_stdout, reason = "a bench reports on standard output")]

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

use codescout::artifact::Extractor;
use codescout::extract::{Options, lang_of_path, language};
use codescout::history::FileShapes;
use codescout::model::RepoPath;

#[derive(Default)]
struct Row {
    n_versions: usize,
    n_bytes: usize,
    n_other: usize,
    alone: Duration,
    near: Duration,
}

fn main() {
    let Ok(repo) = std::env::var("VERSIONS_REPO") else {
        println!("VERSIONS_REPO is not set: nothing to measure");
        return;
    };
    let number = |name: &str, default: usize| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default);
    let (n_files, most) = (number("VERSIONS_FILES", 40), number("VERSIONS_MOST", 400));
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    let mut extractor = Extractor::new(Options::default());
    for path in busiest(&repo, n_files) {
        let versions = versions(&repo, &path, most);
        let path = RepoPath::from(path.as_str());
        let name = language(lang_of_path(&path)).map_or("text", |language| language.name);
        let row = rows.entry(name).or_default();
        let there = versions.iter();
        let back = versions.iter().rev().skip(1);
        let mut known: Option<FileShapes> = None;
        for bytes in there.chain(back) {
            let started = Instant::now();
            let alone = FileShapes::of(&mut extractor, &path, bytes.clone());
            row.alone += started.elapsed();
            let started = Instant::now();
            let near = match &known {
                Some(known) => FileShapes::near(&mut extractor, known, &path, bytes.clone()),
                None => FileShapes::of(&mut extractor, &path, bytes.clone()),
            };
            row.near += started.elapsed();
            row.n_versions += 1;
            row.n_bytes += bytes.len();
            let (one, other) = (to_text(&alone), to_text(&near));
            if one != other {
                row.n_other += 1;
                let at = one
                    .iter()
                    .zip(&other)
                    .position(|(a, b)| a != b)
                    .unwrap_or(one.len().min(other.len()));
                println!("{path}: {} and {} definitions", one.len(), other.len());
                println!("  alone {}", one.get(at).map_or("-", String::as_str));
                println!("  near  {}", other.get(at).map_or("-", String::as_str));
            }
            known = Some(near);
        }
    }
    println!(
        "{:<12} {:>8} {:>8} {:>9} {:>9} {:>6} {:>6}",
        "language", "versions", "kB each", "alone/s", "near/s", "ratio", "other"
    );
    for (name, row) in &rows {
        let rate = |time: Duration| row.n_versions as f64 / time.as_secs_f64();
        println!(
            "{name:<12} {:>8} {:>8} {:>9.0} {:>9.0} {:>6.1} {:>6}",
            row.n_versions,
            row.n_bytes / row.n_versions.max(1) / 1000,
            rate(row.alone),
            rate(row.near),
            rate(row.near) / rate(row.alone),
            row.n_other
        );
    }
}

/// Formats all facts about the definitions of a version.
fn to_text(file: &FileShapes) -> Vec<String> {
    let shapes = file.shapes.iter();
    let facts = shapes.map(|shape| {
        let prints = shape.prints();
        let hashes = (shape.text_fingerprint(), prints.signature, prints.body, prints.doc);
        let place = (shape.nth, shape.kind, shape.range, &shape.own);
        format!("{} {place:?} {hashes:x?} {}", shape.qualified, prints.n_tokens)
    });
    facts.collect()
}

fn git(repo: &str, arguments: &[&str]) -> Vec<u8> {
    let done = Command::new("git").arg("-C").arg(repo).args(arguments).output();
    done.map_or_else(|_| Vec::new(), |done| done.stdout)
}

/// Returns the source files of HEAD with the most commits.
fn busiest(repo: &str, n_files: usize) -> Vec<String> {
    let names = String::from_utf8_lossy(&git(repo, &["ls-tree", "-r", "--name-only", "HEAD"])).into_owned();
    let is_source =
        |name: &&str| language(lang_of_path(&RepoPath::from(*name))).is_some_and(|lang| lang.has_structure());
    let log = git(repo, &["log", "--format=", "--name-only", "HEAD"]);
    let mut counts: BTreeMap<&str, usize> = names.lines().filter(is_source).map(|name| (name, 0)).collect();
    let log = String::from_utf8_lossy(&log);
    log.lines().for_each(|name| {
        counts.entry(name).and_modify(|count| *count += 1);
    });
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
    counts
        .into_iter()
        .take(n_files)
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// Returns the versions of a file, the oldest first.
fn versions(repo: &str, path: &str, most: usize) -> Vec<Vec<u8>> {
    let limit = format!("-{most}");
    let log = git(repo, &["log", &limit, "--format=%H", "HEAD", "--", path]);
    let log = String::from_utf8_lossy(&log);
    let mut versions: Vec<Vec<u8>> = log
        .lines()
        .map(|id| git(repo, &["show", &format!("{id}:{path}")]))
        .collect();
    versions.retain(|bytes| !bytes.is_empty());
    versions.reverse();
    versions
}
