//! Tests that no file crashes the process or takes too long, regardless of its language. Parsers may crash, in a worker.
//!
//! A child process extracts the texts, so that a crash fails the test and is reported with the text and the language.
//! By default, each language is tested with a part of the texts, so that all languages together cover all texts, and
//! texts that once crashed or hung are always tested. With `CODESCOUT_LONG_TESTS` each text is extracted in each
//! language at 700 KB, and the slowest are printed; use a release build.

mod namesakes;
mod patterns;

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

use codescout::artifact::{Extractor, use_workers};
use codescout::extract::{self, Options, Unparsed};

use crate::support::InTime;
use patterns::PATTERNS;

/// The variable with the child's job: a language, the size of each text, the index of the first text, and the step
/// between texts. Without a step, the texts that were once fatal are extracted.
const JOB: &str = "CODESCOUT_HOSTILE_FILES";
const CHILD: &str = "hostile_files::extracts_what_the_environment_names";

/// Maximum time of one text of 700 KB: somewhat more than the limit on the CPU time of a worker. Not measured in a
/// default run.
const MAX_TIME: Duration = Duration::from_secs(30);

/// Languages and texts that once crashed the process or took seconds or minutes.
const ONCE_FATAL: [(&str, &str); 10] = [
    ("python", "comment openers"),
    ("python", "back slashes"),
    ("python", "stairs with a string"),
    ("ruby", "doctypes"),
    ("ruby", "closed heredocs in a heredoc"),
    ("ruby", "long heredoc word"),
    ("html", "tag lines"),
    ("html", "distinct tags"),
    ("swift", "hash run"),
    ("cpp", "half closed generics"),
];

#[test]
#[expect(clippy::print_stderr, reason = "the long form reports figures")]
fn no_text_in_any_language_ends_the_process_or_keeps_it_busy() {
    let is_long = crate::support::is_long();
    let mut died = Vec::new();
    let mut slowest: BTreeMap<u128, String> = BTreeMap::new();
    let languages = extract::languages().filter(|language| language.has_structure());
    for (at, language) in languages.enumerate() {
        let (size, step) = if is_long { (700_000, 1) } else { (600, 8) };
        let mut jobs = vec![(size, at % step, step)];
        if !is_long && ONCE_FATAL.iter().any(|(fatal, _)| *fatal == language.name) {
            jobs.push((40_000, 0, 0));
        }
        for (size, mut from, step) in jobs {
            while let Some((index, name)) = run(language.name, size, from, step, &mut slowest) {
                died.push(format!("{name} in {}", language.name));
                from = index + step.max(1);
            }
        }
    }
    if is_long {
        for (micros, what) in slowest.iter().rev().take(30) {
            eprintln!("{:.3} s: {what}", *micros as f64 / 1e6);
        }
    }
    assert!(died.is_empty(), "the process ended at {died:#?}");
    let slow: Vec<_> = slowest.split_off(&MAX_TIME.as_micros()).into_iter().collect();
    assert!(!is_long || slow.is_empty(), "too many microseconds: {slow:#?}");
}

/// Extracts texts in a child process. Returns the text at which it crashed.
fn run(
    language: &str,
    size: usize,
    from: usize,
    step: usize,
    slowest: &mut BTreeMap<u128, String>,
) -> Option<(usize, String)> {
    let child = Command::new(std::env::current_exe().unwrap())
        .args([CHILD, "--exact", "--nocapture"])
        .env(JOB, format!("{language} {size} {from} {step}"))
        .output_in_time()
        .unwrap();
    let printed = String::from_utf8_lossy(&child.stdout);
    let mut last = None;
    for line in printed.lines() {
        if let Some((index, name)) = line.strip_prefix("> ").and_then(|line| line.split_once(' ')) {
            last = Some((index.parse().unwrap(), name.to_owned()));
        } else if let (Some(ended), Some((_, name))) = (line.strip_prefix("= "), &last) {
            let (micros, reason) = ended.split_once(' ').unwrap();
            slowest.insert(micros.parse().unwrap(), format!("{name} in {language}: {reason}"));
        }
    }
    if child.status.success() {
        return None;
    }
    Some(last.unwrap_or_else(|| panic!("{child:?}")))
}

/// The child process of [`run`]. Does nothing in an ordinary run.
#[test]
#[expect(clippy::print_stdout, reason = "the parent reads it")]
fn extracts_what_the_environment_names() {
    let Ok(job) = std::env::var(JOB) else { return };
    let parts: Vec<&str> = job.split(' ').collect();
    let language = parts[0].to_owned();
    let lang = extract::by_name(&language).unwrap();
    let [size, from, step] = [1, 2, 3].map(|at| parts[at].parse::<usize>().unwrap());
    // The thread has the smallest stack of all threads that extract.
    let work = move || {
        use_workers(env!("CARGO_BIN_EXE_codescout").into());
        let mut extractor = Extractor::new(Options::default());
        let is_due = |index: usize, name: &str| match step {
            0 => ONCE_FATAL.contains(&(language.as_str(), name)),
            _ => index % step == from % step,
        };
        for (index, (name, shape)) in PATTERNS.iter().enumerate().skip(from) {
            if !is_due(index, name) {
                continue;
            }
            println!("> {index} {name}");
            let bytes = patterns::bytes(shape, size);
            let start = Instant::now();
            let extraction = extractor.extract(&bytes, lang);
            let reason = extraction.unparsed.map_or("parsed", Unparsed::text);
            println!("= {} {reason}", start.elapsed().as_micros());
            assert_ne!(extraction.unparsed, Some(Unparsed::NoProcess));
            let covered = extraction.chunks.iter().fold(0, |covered, chunk| {
                assert!(chunk.range.start <= covered, "a gap before {chunk:?}");
                covered.max(chunk.range.end)
            });
            assert_eq!(covered as usize, bytes.len());
        }
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(work).unwrap();
    thread.join().unwrap();
}
