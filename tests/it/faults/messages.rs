//! Tests killing runs that make an index, between its files and the messages of its commits, which rank these files.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;

use serde_json::Value;

use super::{copy_of, program, succeed};
use crate::support::{InTime as _, TestRepo};

/// The word that only a message has.
const QUERY: [&str; 3] = ["search", "--json", "where is the quokka migration explained"];

fn project() -> TestRepo {
    let repo = TestRepo::empty();
    for (n, animal) in ["wombat", "quokka", "numbat", "dingo"].iter().enumerate() {
        repo.write(
            format!("part{n}.py"),
            format!("def handle_{n}(packet):\n    return packet.drop({n})  # migration path\n"),
        );
        repo.commit(&format!("explain the {animal} migration path"));
    }
    repo
}

fn json(root: &Path, args: &[&str]) -> Value {
    serde_json::from_slice(&program(root, args).output_in_time().unwrap().stdout).unwrap()
}

/// Returns the paths of the results of [`QUERY`], best first.
fn ranking(root: &Path) -> Vec<String> {
    let answer = json(root, &QUERY);
    let results = answer["results"].as_array().unwrap().iter();
    results
        .map(|found| found["path"].as_str().unwrap().to_owned())
        .collect()
}

/// Runs a command in copies of a repository, killed at each write of a kind of file in turn, until it is not killed any
/// more. Calls `check` after each.
fn killed_at_each(repo: &TestRepo, command: &[&str], kind: &str, check: impl Fn(&Path, &str)) -> usize {
    let copy = repo.beside("copy");
    for n in 1.. {
        copy_of(repo.root(), &copy);
        let place = format!("write.{kind}.renamed:{n}=kill");
        let output = program(&copy, command)
            .env("CODESCOUT_FAIL_AT", &place)
            .output_in_time()
            .unwrap();
        check(&copy, &format!("{command:?} killed at {place}"));
        if output.status.signal() != Some(9) {
            return n - 1;
        }
    }
    unreachable!("a command writes finitely many files")
}

#[test]
fn what_a_kill_leaves_ranks_alike_or_verify_says_what_completes_it() {
    let repo = project();
    let made = repo.beside("made");
    copy_of(repo.root(), &made);
    succeed(&made, &["index", "--history"]);
    succeed(&made, &["export", "with.bundle", "HEAD", "--history"]);
    succeed(&made, &["export", "without.bundle", "HEAD"]);
    let expected = ranking(&made);
    assert_eq!(expected.first().map(String::as_str), Some("part1.py"));
    for name in ["with.bundle", "without.bundle"] {
        fs::rename(made.join(name), repo.path(".git").join(name)).unwrap();
    }
    for (command, n_kills) in [
        (&["index"][..], 5),
        (&["index", "--history"], 7),
        (&["import", ".git/with.bundle"], 4),
        (&["import", ".git/without.bundle"], 5),
    ] {
        let check = |root: &Path, after: &str| {
            let verified = json(root, &["verify", "--json"]);
            let is_partial =
                verified["checked"]["snapshots"] == 0 || verified["hint"].to_string().contains("codescout index");
            // A search adds what is missing, so it asks a copy.
            let asked = root.with_extension("asked");
            copy_of(root, &asked);
            assert!(is_partial || ranking(&asked) == expected, "{after}: {verified}");
            succeed(root, &["index"]);
            let verified = json(root, &["verify", "--json"]);
            let checked = &verified["checked"];
            assert_eq!(
                (
                    &checked["commits"],
                    &checked["commits_without_messages"],
                    &verified["hint"]
                ),
                (&4.into(), &0.into(), &Value::Null),
                "{after}"
            );
            assert_eq!(ranking(root), expected, "{after}");
        };
        let n_killed: usize = ["state", "snap", "hist", "msg"]
            .map(|kind| killed_at_each(&repo, command, kind, check))
            .iter()
            .sum();
        assert!(n_killed >= n_kills, "{command:?}: only {n_killed} kills");
    }
}

#[test]
fn imported_commits_are_never_without_messages() {
    let repo = project();
    let made = repo.beside("made");
    copy_of(repo.root(), &made);
    succeed(&made, &["index", "--history"]);
    succeed(&made, &["export", "with.bundle", "HEAD", "--history"]);
    fs::rename(made.join("with.bundle"), repo.path(".git/with.bundle")).unwrap();
    let has_messages = |root: &Path, after: &str| {
        let verified = json(root, &["verify", "--json"]);
        assert_eq!(
            verified["checked"]["commits_without_messages"], 0,
            "{after}: {verified}"
        );
    };
    assert!(killed_at_each(&repo, &["import", ".git/with.bundle"], "state", has_messages) >= 3);
}

#[test]
fn a_private_note_that_is_being_written_is_the_old_or_the_new_one() {
    let repo = project();
    let root = repo.root();
    let write = |text: &'static str| ["memory", "write", "own", "--private", "--text", text];
    succeed(root, &write("first"));
    for (command, kind) in [
        (&write("second")[..], "sum"),
        (&write("second"), "md"),
        (&["memory", "forget", "own"], "sum"),
    ] {
        killed_at_each(&repo, command, kind, |copy, after| {
            let verified = json(copy, &["verify", "--json"]);
            assert_eq!(verified["health"], "sound", "{after}: {verified}");
            let listed = json(copy, &["memory", "--json"]);
            assert!(listed["results"][0]["changed_outside"].is_null(), "{after}: {listed}");
            succeed(copy, &write("third"));
        });
    }
}
