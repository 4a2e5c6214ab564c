//! `codescout doctor` and `codescout init`

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use super::{call, project};
use crate::indexed::files_below;
use crate::support::{InTime, TestRepo};

/// Returns the findings of an area, formatted as `severity: message`.
fn about(answer: &Value, area: &str) -> Vec<String> {
    let findings = answer["findings"].as_array().unwrap().iter();
    let findings = findings.filter(|finding| finding["area"] == area);
    findings
        .map(|finding| {
            let text = |key: &str| finding[key].as_str().unwrap().to_owned();
            format!("{}: {}", text("severity"), text("message"))
        })
        .collect()
}

#[test]
fn after_init_all_is_well() {
    let repo = project();
    let before = call(&repo, &["doctor", "--json"]).expect(0).json();
    assert!(
        about(&before, "sidecar")[0].starts_with("note: no index yet"),
        "{before}"
    );
    assert!(!repo.path(".codescout").exists(), "looking makes nothing");

    let output = call(&repo, &["init", "--yes", "--without", "agents,ci"])
        .expect(0)
        .text();
    assert!(
        output.contains("next steps:") && output.contains("codescout search"),
        "{output}"
    );
    assert!(
        call(&repo, &["init", "--yes", "--without", "agents,ci"])
            .expect(0)
            .text()
            .starts_with("already done: index WORKTREE\n")
    );
    let after = call(&repo, &["doctor", "--json"]).expect(0).json();
    assert_eq!(after["well"], true);
    assert_eq!(about(&after, "index"), ["fine: up to date with HEAD"]);
    let is_mended = |finding: &Value| finding["severity"] != "warning" && finding["severity"] != "problem";
    assert!(after["findings"].as_array().unwrap().iter().all(is_mended), "{after}");
    assert!(repo.git(["status", "--porcelain"]).is_empty());
}

#[test]
fn what_is_missing_is_named_and_mended() {
    let repo = project();
    call(&repo, &["index"]).expect(0);
    repo.write("src/new.rs", "pub fn later() {}\n");
    repo.commit("later");
    repo.write(".git/info/exclude", "# nothing\n");
    let ill = call(&repo, &["doctor", "--json"]).expect(0).json();
    assert_eq!(
        about(&ill, "index"),
        ["note: HEAD is not indexed yet; the next query indexes it"]
    );
    assert!(
        about(&ill, "sidecar")
            .iter()
            .any(|finding| finding.starts_with("warning: info/exclude")),
        "{ill}"
    );

    let mended = call(&repo, &["doctor", "--fix", "--json"]).expect(0).json();
    assert_eq!(mended["mended"].as_array().unwrap().len(), 2, "{mended}");
    assert_eq!(about(&mended, "index"), ["fine: up to date with HEAD"]);
    let exclude = String::from_utf8(repo.read(".git/info/exclude")).unwrap();
    assert_eq!(exclude, "# nothing\n/.codescout/\n");
    assert_eq!(
        call(&repo, &["doctor", "--fix", "--json"]).expect(0).json()["mended"],
        Value::Array(Vec::new())
    );
}

#[test]
fn a_folder_of_another_program_is_a_problem() {
    let repo = project();
    repo.write(".codescout/project.toml", "name = 'x'\n");
    let ill = call(&repo, &["doctor", "--json"]).expect(1).json();
    assert_eq!(ill["well"], false);
    assert!(
        about(&ill, "sidecar")[0].contains("was not created by codescout"),
        "{ill}"
    );
}

#[test]
fn outside_of_a_repository_and_with_wrong_settings_it_says_so() {
    let repo = project();
    let outside = Command::new(env!("CARGO_BIN_EXE_codescout"))
        .args(["doctor", "--json", "--repo"])
        .arg(repo.beside("."))
        .output_in_time()
        .unwrap();
    assert_eq!(outside.status.code(), Some(1));
    let outside: Value = serde_json::from_slice(&outside.stdout).unwrap();
    assert!(
        about(&outside, "repository")[0].contains("not inside a git repository"),
        "{outside}"
    );

    repo.write(".codescout.toml", "[embedding]\nmodel = '/elsewhere'\n");
    let ill = call(&repo, &["doctor", "--json"]).expect(1).json();
    assert!(about(&ill, "configuration")[0].contains("embedding.model"), "{ill}");
}

#[test]
fn a_misspelt_variable_is_noticed_and_nothing_leaves() {
    let repo = project();
    let called = Command::new(env!("CARGO_BIN_EXE_codescout"))
        .args(["doctor", "--json"])
        .current_dir(repo.root())
        .env("CODESCOUT_SIDECART", "x")
        .output_in_time()
        .unwrap();
    let answer: Value = serde_json::from_slice(&called.stdout).unwrap();
    assert!(
        about(&answer, "configuration")[0].contains("CODESCOUT_SIDECART"),
        "{answer}"
    );

    let leaves = call(&repo, &["doctor", "--what-leaves", "--json"]).expect(0).json();
    assert_eq!(leaves["findings"].as_array().unwrap().len(), 1);
    assert!(
        about(&leaves, "privacy")[0].starts_with("fine: nothing leaves"),
        "{leaves}"
    );
}

fn files_of(repo: &TestRepo, store: &str) -> Vec<PathBuf> {
    let found = fs::read_dir(repo.path(".codescout").join(store)).unwrap();
    let paths: Vec<PathBuf> = found.map(|entry| entry.unwrap().path()).collect();
    assert!(!paths.is_empty());
    paths
}

#[test]
fn size_and_damage_are_told_and_mended() {
    let repo = project();
    call(&repo, &["index"]).expect(0);
    let well = call(&repo, &["doctor", "--json"]).expect(0).json();
    let has_size = |finding: &String| finding.contains(" MB: artifacts ") && finding.contains("left over ");
    assert!(about(&well, "sidecar").iter().any(has_size), "{well}");

    for store in ["lexical-v1", "snapshots-v1"] {
        for path in files_of(&repo, store) {
            match store {
                "lexical-v1" => fs::remove_file(&path).unwrap(),
                _ => fs::write(&path, "cut").unwrap(),
            }
        }
        let before = files_below(&repo.path(".codescout"));
        let status = call(&repo, &["status", "--json"]).expect(0).json();
        assert_eq!(status["index"], "damaged", "{store}");
        let ill = call(&repo, &["doctor", "--json"]).expect(1).json();
        let findings = [about(&ill, "sidecar"), about(&ill, "index")].concat();
        let is_problem = |finding: &String| finding.starts_with("problem: ");
        assert!(findings.iter().any(is_problem), "{store}: {ill}");
        assert!(
            files_below(&repo.path(".codescout")) == before,
            "{store}: looking changes nothing"
        );

        let mended = call(&repo, &["doctor", "--fix", "--json"]).expect(0).json();
        assert!(
            mended["mended"]
                .as_array()
                .unwrap()
                .iter()
                .any(|did| did.as_str().unwrap().starts_with("set ")),
            "{store}: {mended}"
        );
        assert_eq!(about(&mended, "index"), ["fine: up to date with HEAD"], "{store}");
    }
}

#[test]
fn other_settings_are_told_and_nothing_is_indexed_for_it() {
    let repo = project();
    call(&repo, &["index"]).expect(0);
    let before = files_below(&repo.path(".codescout"));
    let with_settings = |args: &[&str]| -> Value {
        let called = Command::new(env!("CARGO_BIN_EXE_codescout"))
            .args(args)
            .current_dir(repo.root())
            .env("CODESCOUT_MAX_BLOB_BYTES", "3000")
            .output_in_time()
            .unwrap();
        serde_json::from_slice(&called.stdout).unwrap()
    };
    assert_eq!(with_settings(&["status", "--json"])["index"], "other_settings");
    let answer = with_settings(&["doctor", "--json"]);
    assert!(
        about(&answer, "index")[0].starts_with("note: HEAD is indexed with other settings"),
        "{answer}"
    );
    assert!(
        files_below(&repo.path(".codescout")) == before,
        "looking changes nothing"
    );
    assert_eq!(
        call(&repo, &["status", "--json"]).expect(0).json()["index"],
        "up_to_date"
    );
}

#[test]
fn looking_leaves_what_a_writer_is_writing() {
    let repo = project();
    call(&repo, &["index"]).expect(0);
    let modified = || fs::metadata(repo.path(".codescout")).unwrap().modified().unwrap();
    let before = modified();
    call(&repo, &["doctor"]).expect(0);
    assert_eq!(modified(), before, "a file was made and removed");
}
