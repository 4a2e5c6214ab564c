//! Tests killing the program and failing its operations at every fail point.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use codescout::sidecar::failpoint;

use super::scenarios::{SCENARIOS, Scenario, Start, is_done};
use super::{for_all, stderr, temporaries};
use crate::support::is_long;

/// Returns the fail points that each scenario passes.
fn passed(start: &Start) -> BTreeMap<Scenario, BTreeSet<String>> {
    let pass = |scenario: Scenario| {
        let (template, copy) = (start.template(scenario), start.repo.beside("passed"));
        let output = scenario.run(&template, &copy, LOG);
        let text = stderr(&output);
        assert!(is_done(&output), "{scenario:?}: {text}");
        (scenario, places_in(&text))
    };
    SCENARIOS.into_iter().map(pass).collect()
}

/// Returns every fail point with each scenario that passes it. A default run has one scenario for each fail point, chosen
/// so that all scenarios have about the same number of fail points.
fn cases(passed: &BTreeMap<Scenario, BTreeSet<String>>) -> Vec<(Scenario, &String)> {
    let mut scenarios_at: BTreeMap<&String, Vec<Scenario>> = BTreeMap::new();
    for (scenario, names) in passed {
        for name in names {
            scenarios_at.entry(name).or_default().push(*scenario);
        }
    }
    let mut fail_points: Vec<(&String, Vec<Scenario>)> = scenarios_at.into_iter().collect();
    fail_points.sort_by_key(|(_, scenarios)| scenarios.len());
    let mut n_cases = [0; SCENARIOS.len()];
    let mut cases = Vec::new();
    for (name, mut scenarios) in fail_points {
        if !is_long() {
            scenarios.sort_by_key(|scenario| n_cases[*scenario as usize]);
            scenarios.truncate(1);
        }
        for scenario in scenarios {
            n_cases[scenario as usize] += 1;
            cases.push((scenario, name));
        }
    }
    cases
}

/// The variable that makes a run log the fail points it passes.
pub(super) const LOG: (&str, &str) = ("CODESCOUT_LOG", "codescout::failpoint=trace");

/// Returns the fail points in the log of a run.
pub(super) fn places_in(log: &str) -> BTreeSet<String> {
    let names = log.lines().filter_map(|line| line.split("hit ").nth(1));
    names.map(|name| name.trim().to_owned()).collect()
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
    let cases = cases(&passed);
    let (base, outlook) = (&start.repo.beside("k"), &start.outlook);
    fs::create_dir(base).unwrap();
    let templates = SCENARIOS.map(|scenario| start.template(scenario));
    for_all(&cases, |at, (scenario, name)| {
        let copy = base.join(at.to_string());
        let armed = format!("{name}=kill");
        let output = scenario.run(
            &templates[*scenario as usize],
            &copy,
            ("CODESCOUT_FAIL_AT", armed.as_str()),
        );
        let about = format!("killed at {name} in {scenario:?}");
        assert_eq!(output.status.signal(), Some(9), "{about}: {}", stderr(&output));
        scenario.check(&copy, outlook, &about);
        fs::remove_dir_all(copy).unwrap();
    });
}

#[test]
fn refused_at_every_place_it_says_so_or_does_without() {
    let start = Start::new();
    let mut passed = passed(&start);
    // Other scenarios pass all fail points of the first index run except that of the exclude line, so the first run is
    // tested only at those that no other scenario passes.
    let first = passed.remove(&Scenario::First).unwrap();
    let of_others: BTreeSet<String> = passed.values().flatten().cloned().collect();
    passed.insert(Scenario::First, first.difference(&of_others).cloned().collect());
    let cases = cases(&passed);
    let (base, outlook) = (&start.repo.beside("e"), &start.outlook);
    fs::create_dir(base).unwrap();
    let templates = SCENARIOS.map(|scenario| start.template(scenario));
    for_all(&cases, |at, (scenario, name)| {
        let (errno, said) = [
            ("eio", "Input/output error"),
            ("enospc", "No space left on device"),
            ("emfile", "Too many open files"),
        ][at % 3];
        let copy = base.join(at.to_string());
        let armed = format!("{name}={errno}");
        let output = scenario.run(
            &templates[*scenario as usize],
            &copy,
            ("CODESCOUT_FAIL_AT", armed.as_str()),
        );
        let (about, text) = (format!("{errno} at {name} in {scenario:?}"), stderr(&output));
        match output.status.code() {
            Some(0) if is_in_log(&copy, said) => {}
            // An index is complete without the messages of commits.
            Some(0) if text.contains("commit messages are not recorded") && text.contains(said) => {}
            Some(0 | 1) => assert!(may_be_done_without(name), "{about}: no message: {text}"),
            // An edit names the file of the worktree.
            Some(2) if *scenario == Scenario::Edit => assert!(text.contains(said), "{about}: {text}"),
            Some(2) => assert!(text.contains(said) && text.contains(".codescout"), "{about}: {text}"),
            other => panic!("{about}: {other:?}: {text}"),
        }
        if name.starts_with("write.") {
            assert_eq!(temporaries(&copy), Vec::<PathBuf>::new(), "{about}");
        }
        scenario.check(&copy, outlook, &about);
        fs::remove_dir_all(copy).unwrap();
    });
}

/// Returns true if a hook, whose output nobody sees, has written the text to its log.
fn is_in_log(copy: &Path, said: &str) -> bool {
    let log = fs::read_to_string(copy.join(".codescout/log/hooks.log")).unwrap_or_default();
    log.lines()
        .any(|line| line.contains("\"failed\"") && line.contains(said))
}

/// Returns true if a run may succeed although this step failed. Merging and cleaning up affect only speed and space,
/// the exclude line only the output of `git status`. A hook is optional, and entries missing from its log or list of
/// tips are checked again later.
fn may_be_done_without(name: &str) -> bool {
    let harmless = [
        "compact.",
        "hooks.",
        "sweep.",
        "write.exclude.",
        "write.log.",
        "write.tips.",
    ];
    // Another process that created the folder at the same time may have completed it.
    harmless.iter().any(|start| name.starts_with(start)) || matches!(name, "write.FORMAT.renamed" | "write.FORMAT.done")
}
