//! Completions as shells request them.

use super::{PROGRAM, call, command_in, project};
use crate::support::{InTime, TestRepo};

/// The candidates for the last of these words, as the script for bash requests them.
fn candidates(repo: &TestRepo, words: &[&str]) -> Vec<String> {
    let args = [&["--", "codescout"], words].concat();
    let output = command_in(PROGRAM, repo.root(), &args)
        .env("CODESCOUT_COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", words.len().to_string())
        .env("_CLAP_IFS", "\n")
        .output_in_time()
        .unwrap();
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{words:?}: {output:?}"
    );
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn there_is_a_script_for_each_shell() {
    let nowhere = TestRepo::empty();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = call(&nowhere, &["completions", shell]).expect(0).text();
        assert!(
            script.contains("CODESCOUT_COMPLETE") && script.contains("codescout"),
            "{shell}"
        );
    }
}

#[test]
fn the_title_of_a_manual_page_names_the_command_and_the_version_of_the_program() {
    let repo = TestRepo::empty();
    let folder = repo.beside("man");
    call(&repo, &["man", folder.to_str().unwrap()]).expect(0);
    let page = std::fs::read_to_string(folder.join("codescout-run.1")).unwrap();
    let title = page.lines().find(|line| line.starts_with(".TH ")).unwrap();
    let source = concat!("\"codescout ", env!("CARGO_PKG_VERSION"), "\"");
    assert!(
        title.starts_with(".TH codescout-run 1 ") && title.contains(source),
        "{title}"
    );
}

#[test]
fn values_are_completed() {
    let repo = project();
    repo.branch("topic/one");
    // Shells would run it.
    repo.branch("topic/$(id)");
    let all = candidates(&repo, &["status", "--ref", ""]);
    assert_eq!(all, ["HEAD", "INDEX", "WORKTREE", "main", "topic/one", "v1"]);
    assert_eq!(candidates(&repo, &["diff", "main..to"]), ["main..topic/one"]);
    assert_eq!(candidates(&repo, &["diff", "main...v"]), ["main...v1"]);
    assert_eq!(candidates(&repo, &["search", "x", "--refs", "main,v"]), ["main,v1"]);
    assert_eq!(candidates(&repo, &["read", "src/le"]), ["src/lexer.rs"]);
    assert_eq!(candidates(&repo, &["grep", "x", "src/p"]), ["src/parser.rs"]);
    assert_eq!(candidates(&repo, &["search", "x", "--lang", "rus"]), ["rust"]);
    assert_eq!(candidates(&repo, &["symbol", "x", "--kind", "meth"]), ["method"]);
    assert_eq!(candidates(&repo, &["sym"]), ["symbol"]);
}

#[test]
fn no_candidate_is_a_command_of_the_shell() {
    let repo = project();
    repo.write("$(id)/$(id).pem", "");
    repo.write("ok/ok.pem", "");
    for name in ["--apply", "-q", "~root", "#all"] {
        repo.write(name, "");
    }
    for (words, expected) in [
        (
            &["status", "--repo", ""][..],
            &[".", "ok/", "src/", "tests/", "vendor/"][..],
        ),
        (&["serve", "--root", "$"], &[]),
        (&["man", "o"], &["ok/"]),
        (&["eval", "--judgements", "$"], &[]),
        (&["eval", "--judgements", "o"], &["ok/"]),
        (&["export", "x", "--sign", "ok/"], &["ok/ok.pem"]),
        (&["export", "x", "--sign", "$(id)/"], &[]),
        (&["import", "$"], &[]),
        (&["read", "--", "-"], &[]),
        (&["read", "~"], &[]),
        (&["read", "#"], &[]),
        (&["diff", "HEAD..-"], &[]),
        (&["read", "$"], &[]),
    ] {
        assert_eq!(candidates(&repo, words), expected, "{words:?}");
    }
}

#[test]
fn names_come_from_the_index_that_there_is() {
    let repo = project();
    let names: String = (0..300).map(|number| format!("fn many_{number}() {{}}\n")).collect();
    repo.write("src/many.rs", names);
    repo.commit("add many");
    assert!(candidates(&repo, &["symbol", "par"]).is_empty());
    assert!(!repo.path(".codescout").exists());
    call(&repo, &["index"]).expect(0);
    assert_eq!(candidates(&repo, &["symbol", "par"]), ["parse", "parse_is_called"]);
    assert_eq!(candidates(&repo, &["history", "Pars"]), ["Parser"]);
    assert_eq!(candidates(&repo, &["symbol", "many"]).len(), 200);
    let root = repo.root().to_str().unwrap();
    let elsewhere = TestRepo::empty();
    assert_eq!(candidates(&elsewhere, &["symbol", "--repo", root, "Pars"]), ["Parser"]);
    let joined = format!("--repo={root}");
    assert_eq!(candidates(&elsewhere, &["symbol", &joined, "Pars"]), ["Parser"]);
    assert!(candidates(&elsewhere, &["symbol", "Pars"]).is_empty());
}

#[test]
fn errors_are_silent() {
    let nowhere = tempfile::tempdir().unwrap();
    for shell in ["bash", "no-such-shell"] {
        let output = command_in(PROGRAM, nowhere.path(), &["--", "codescout", "symbol", "par"])
            .env("CODESCOUT_COMPLETE", shell)
            .env("_CLAP_COMPLETE_INDEX", "2")
            .output_in_time()
            .unwrap();
        assert_eq!(output.status.success(), shell == "bash");
        assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    }
}
