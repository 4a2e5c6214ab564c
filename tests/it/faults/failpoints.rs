//! Killed and refused at every named place.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, SystemTime};

use codescout::sidecar::failpoint;

use super::{Told, check_sound, copy_of, for_all, history, program, stderr, succeed, temporaries, told_by};
use crate::support::TestRepo;

/// What is done to a copy of a repository; together they reach every place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Scenario {
    /// A setting, then the first index.
    First,
    /// An update that merges segments, clears away what others left, and records commits.
    Update,
}

const SCENARIOS: [Scenario; 2] = [Scenario::First, Scenario::Update];

impl Scenario {
    fn commands(self) -> &'static [&'static [&'static str]] {
        match self {
            Self::First => &[&["config", "set", "search.limit", "7"], &["index"]],
            Self::Update => &[&["index", "--history"]],
        }
    }
}

/// The repositories that scenarios start from, and what they answer.
struct Start {
    repo: TestRepo,
    revisions: Vec<String>,
    expected: Told,
}

impl Start {
    fn new() -> Self {
        let (repo, commits) = history(9);
        let revisions = vec![commits[8].clone(), commits[2].clone()];
        let expected = told_by(repo.root(), Some(repo.beside("sidecar")), &revisions);
        copy_of(repo.root(), &repo.beside("first"));
        for commit in &commits[..7] {
            succeed(repo.root(), &["index", commit]);
        }
        leave_behind(&repo.path(".codescout"));
        copy_of(repo.root(), &repo.beside("update"));
        Self {
            repo,
            revisions,
            expected,
        }
    }

    fn template(&self, scenario: Scenario) -> PathBuf {
        self.repo.beside(match scenario {
            Scenario::First => "first",
            Scenario::Update => "update",
        })
    }

    /// Runs a scenario in a copy, up to the first command that fails.
    fn run(&self, scenario: Scenario, copy: &Path, variable: (&str, &str)) -> Output {
        copy_of(&self.template(scenario), copy);
        let mut last = None;
        for command in scenario.commands() {
            let output = program(copy, command).env(variable.0, variable.1).output().unwrap();
            let is_done = output.status.success();
            let printed = last.map_or(Vec::new(), |last: Output| last.stderr);
            last = Some(Output {
                stderr: [printed, output.stderr.clone()].concat(),
                ..output
            });
            if !is_done {
                break;
            }
        }
        last.unwrap()
    }
}

/// A half-written file of a killed writer, and an old segment file that no state names.
fn leave_behind(sidecar: &Path) {
    fs::write(sidecar.join("lexical-v1/.writing-old"), "half").unwrap();
    let orphan = sidecar.join(format!("artifacts-v1/{}.art", "0".repeat(32)));
    fs::write(&orphan, "old").unwrap();
    let file = fs::File::options().append(true).open(orphan).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(9000))
        .unwrap();
}

/// The places that each scenario passes.
fn passed(start: &Start) -> BTreeMap<Scenario, BTreeSet<String>> {
    let pass = |scenario| {
        let output = start.run(
            scenario,
            &start.repo.beside("passed"),
            ("CODESCOUT_LOG", "codescout::failpoint=trace"),
        );
        assert!(output.status.success(), "{}", stderr(&output));
        let names = stderr(&output);
        let names = names.lines().filter_map(|line| line.split("hit ").nth(1));
        (scenario, names.map(|name| name.trim().to_owned()).collect())
    };
    SCENARIOS.into_iter().map(pass).collect()
}

#[test]
fn every_place_is_on_the_list_and_reached() {
    let start = Start::new();
    let passed: BTreeSet<String> = passed(&start).into_values().flatten().collect();
    let listed: BTreeSet<String> = failpoint::names().into_iter().collect();
    assert_eq!(listed.len(), failpoint::names().len(), "a name stands twice");
    let unreached: Vec<&String> = listed.difference(&passed).collect();
    assert!(unreached.is_empty(), "no scenario reaches {unreached:?}");
    let unlisted: Vec<&String> = passed.difference(&listed).collect();
    assert!(
        unlisted.is_empty(),
        "src/sidecar/failpoint/mod.rs does not list {unlisted:?}"
    );
}

#[test]
fn every_place_in_the_source_is_on_the_list() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut unlisted = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let Ok(text) = fs::read_to_string(&path) else { continue };
            let calls = ["failpoint::hit(\"", " pass(\""].map(|call| text.split(call).skip(1));
            for call in calls.into_iter().flatten() {
                let name = call.split('"').next().unwrap();
                if !failpoint::PLACES.contains(&name) && !path.ends_with("failpoint/mod.rs") {
                    unlisted.push(format!("{}: {name}", path.display()));
                }
            }
        }
    }
    assert!(unlisted.is_empty(), "{unlisted:#?}");
}

#[test]
fn killed_at_every_place_nothing_is_lost() {
    let start = Start::new();
    let passed = passed(&start);
    let cases: Vec<(Scenario, &String)> = passed
        .iter()
        .flat_map(|(scenario, names)| names.iter().map(|name| (*scenario, name)))
        .collect();
    let (base, revisions, expected) = (&start.repo.beside("k"), &start.revisions, &start.expected);
    fs::create_dir(base).unwrap();
    let templates = SCENARIOS.map(|scenario| start.template(scenario));
    for_all(&cases, |at, (scenario, name)| {
        let copy = base.join(at.to_string());
        let armed = format!("{name}=kill");
        let output = run_armed(&templates[*scenario as usize], *scenario, &copy, &armed);
        let about = format!("killed at {name} in {scenario:?}");
        assert_eq!(output.status.signal(), Some(9), "{about}: {}", stderr(&output));
        check_sound(&copy, revisions, expected, &about);
        fs::remove_dir_all(copy).unwrap();
    });
}

#[test]
fn refused_at_every_place_it_says_so_or_does_without() {
    let start = Start::new();
    let passed = passed(&start);
    let names = failpoint::names();
    let cases: Vec<(Scenario, &String)> = names
        .iter()
        .map(|name| {
            // In the first index a failure may meet the exclude line, which is only about what git shows.
            let scenario = SCENARIOS.into_iter().rfind(|scenario| passed[scenario].contains(name));
            (scenario.unwrap_or_else(|| panic!("{name} is not reached")), name)
        })
        .collect();
    let (base, revisions, expected) = (&start.repo.beside("e"), &start.revisions, &start.expected);
    fs::create_dir(base).unwrap();
    let templates = SCENARIOS.map(|scenario| start.template(scenario));
    for_all(&cases, |at, (scenario, name)| {
        let (errno, said) = [
            ("eio", "Input/output error"),
            ("enospc", "No space left on device"),
            ("emfile", "Too many open files"),
        ][at % 3];
        let copy = base.join(at.to_string());
        let output = run_armed(
            &templates[*scenario as usize],
            *scenario,
            &copy,
            &format!("{name}={errno}"),
        );
        let (about, text) = (format!("{errno} at {name} in {scenario:?}"), stderr(&output));
        match output.status.code() {
            Some(0) => assert!(may_be_done_without(name), "{about}: nobody was told"),
            Some(2) => assert!(text.contains(said) && text.contains(".codescout"), "{about}: {text}"),
            other => panic!("{about}: {other:?}: {text}"),
        }
        if name.starts_with("write.") {
            assert_eq!(temporaries(&copy), Vec::<PathBuf>::new(), "{about}");
        }
        check_sound(&copy, revisions, expected, &about);
        fs::remove_dir_all(copy).unwrap();
    });
}

/// Merging and clearing away are only about speed and space, the exclude line only about what `git status` shows.
fn may_be_done_without(name: &str) -> bool {
    let harmless = ["compact.", "sweep.", "write.exclude."];
    // Whoever makes the folder at the same time may have made it whole.
    harmless.iter().any(|start| name.starts_with(start)) || matches!(name, "write.FORMAT.renamed" | "write.FORMAT.done")
}

fn run_armed(template: &Path, scenario: Scenario, copy: &Path, armed: &str) -> Output {
    copy_of(template, copy);
    let mut last = None;
    for command in scenario.commands() {
        let output = program(copy, command).env("CODESCOUT_FAIL_AT", armed).output().unwrap();
        let is_done = output.status.success();
        last = Some(output);
        if !is_done {
            break;
        }
    }
    last.unwrap()
}
