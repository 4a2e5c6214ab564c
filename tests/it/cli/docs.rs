//! Checks that `docs/cli.md` documents every option and every JSON field.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{call, call_in, commands_in_help, project};
use crate::support::TestRepo;

const DOCS: &str = include_str!("../../../docs/cli.md");
/// The sections about options common to several commands and fields common to all answers.
const GENERAL: &[&str] = &["## Options of every command", "## Provenance"];
const COMMANDS: &[&str] = &[
    "search",
    "grep",
    "symbol",
    "graph",
    "outline",
    "read",
    "history",
    "memory",
    "docs",
    "blame",
    "diff",
    "review",
    "web",
    "edit",
    "rename",
    "run",
    "index",
    "status",
    "verify",
    "init",
    "doctor",
    "gc",
    "export",
    "import",
    "precise",
    "ci",
    "push",
    "pull",
    "install",
    "uninstall",
    "eval",
    "hooks",
    "config",
    "completions",
    "man",
    "serve",
    "fleet",
];

/// Returns the text about a command: its own section and the general sections.
fn section(command: &str) -> String {
    let sections = DOCS.split("\n## ").map(|text| format!("## {text}"));
    let own = format!("## `codescout {command}");
    sections
        .filter(|text| text.starts_with(&own) || GENERAL.iter().any(|general| text.starts_with(general)))
        .collect()
}

#[test]
fn every_flag_is_described() {
    let nowhere = tempfile::tempdir().unwrap();
    let mut missing = Vec::new();
    for command in COMMANDS {
        let help = call_in(nowhere.path(), &[command, "--help"], b"").expect(0).text();
        assert!(help.contains("Examples:"), "{command} has no examples");
        let written = section(command);
        assert!(
            written.contains("```sh\ncodescout"),
            "{command} has no example in the document"
        );
        for line in help.lines().map(str::trim).filter(|line| line.starts_with('-')) {
            let words = line.split([' ', ',', '=', '.', '[']);
            for flag in words
                .take_while(|word| word.is_empty() || word.starts_with('-'))
                .filter(|w| w.len() > 1)
            {
                if !written.contains(&format!("`{flag}")) {
                    missing.push(format!("{command} {flag}"));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn commands_that_editors_run_answer() {
    const PAGE: &str = include_str!("../../../docs/editors.md");
    const CODE: &str = "def lex(text):\n    return text\n\n\ndef parse(text):\n    return lex(text)\n";
    let repo = TestRepo::empty();
    repo.write("src/parser.py", CODE);
    repo.commit("start");
    repo.write("src/parser.py", CODE.replace("return text", "return text[1:]"));
    let (_, tasks) = PAGE.split_once("```json\n").unwrap();
    let tasks: Value = serde_json::from_str(tasks.split_once("```").unwrap().0).unwrap();
    let of_code = tasks["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| task["args"].as_array().unwrap());
    let of_code = of_code.map(|args| args.iter().map(|arg| arg.as_str().unwrap()).collect::<Vec<_>>());
    let (_, tools) = PAGE.split_once("| tool | arguments |").unwrap();
    let of_jetbrains = tools.lines().skip(2).take_while(|line| line.starts_with('|'));
    let of_jetbrains = of_jetbrains.map(|row| row.split('`').nth(1).unwrap().split(' ').collect::<Vec<_>>());
    let page = repo.root().join(".git/review.html");
    let commands: Vec<Vec<&str>> = of_code.chain(of_jetbrains).collect();
    assert_eq!(commands.len(), 7);
    for command in commands {
        let filled = command.iter().map(|arg| match *arg {
            "${relativeFile}:${lineNumber}" | "$FilePathRelativeToProjectRoot$:$LineNumber$" => "src/parser.py:1",
            "/tmp/review.html" => page.to_str().unwrap(),
            arg => arg,
        });
        let answer = call(&repo, &filled.collect::<Vec<_>>()).expect(0).text();
        assert!(
            command[0] == "review" || answer.contains("parser.py"),
            "{command:?}: {answer}"
        );
    }
}

#[test]
fn every_command_is_described() {
    let names: BTreeSet<String> = commands_in_help().into_iter().collect();
    assert_eq!(names, COMMANDS.iter().map(|name| (*name).to_owned()).collect());
}

#[test]
fn options_of_every_command_have_a_page() {
    let nowhere = tempfile::tempdir().unwrap();
    let page = call_in(nowhere.path(), &["help", "options"], b"").expect(0).text();
    for option in [
        "--ref",
        "--repo",
        "--json",
        "--full-name",
        "--color",
        "--no-pager",
        "--quiet",
        "--verbose",
    ] {
        assert!(page.contains(option), "{option}");
        for help in ["-h", "--help"] {
            let text = call_in(nowhere.path(), &["graph", help], b"").expect(0).text();
            assert!(!text.contains(&format!(" {option} ")), "{option}");
            assert!(text.ends_with("Options of every command: codescout help options\n"));
            let (usage, examples) = (text.find("Usage:"), text.find("Examples:"));
            assert!(usage < examples && examples < text.find("Options:"), "{text}");
        }
    }
    assert_eq!(call_in(nowhere.path(), &["options"], b"").expect(0).text(), page);
}

#[test]
fn every_field_of_an_answer_is_described() {
    let repo = project();
    repo.write("src/lexer.rs", "/// Cuts text.\npub fn lex() {}\n");
    repo.commit("cut text into tokens faster");
    repo.write("invalid.txt", b"\xff TODO\n");
    call(&repo, &["config", "set", "run.build", "true"]).expect(0);
    let samples: &[&[&str]] = &[
        &["search", "parse", "--explain", "--json"],
        &["search", "--mode", "regex", "parse", "--json"],
        &["search", "parse", "--refs", "v1,HEAD", "--json"],
        &["search", "parse", "--all-history", "--json"],
        &["search", "--in", "commits", "text", "--json"],
        &["search", "--in", "diffs", "Cuts", "--json"],
        &["grep", "TODO", "--json", "-C1"],
        &["symbol", "parse", "--refs", "--body", "--json"],
        &["symbol", "lex", "--history", "--json"],
        &["graph", "refs", "Parser", "--json"],
        &["graph", "callers", "parse", "--json"],
        &["graph", "imports", "--json"],
        &["graph", "stats", "--json"],
        &["outline", "--json"],
        &["outline", "src", "--json"],
        &["outline", "src/parser.rs", "--json"],
        &["outline", "--view", "map", "--json"],
        &["outline", "--view", "headings", "--json"],
        &["outline", "--view", "imports", "--json"],
        &["read", "README.md", "--heading", "Licence", "--json"],
        &["history", "src/lexer.rs", "--diff", "--json"],
        &["history", "src/lexer.rs", "--cochange", "--json"],
        &["history", "src/lexer.rs#lex", "--last-seen", "--diff", "--json"],
        &["history", "src/lexer.rs#lex", "--cochange", "--json"],
        &["blame", "src/lexer.rs", "--json"],
        &["blame", "src/lexer.rs", "--by", "line", "--json"],
        &["blame", "src", "--json"],
        &["edit", "create", "new.txt", "--text", "x", "--dry-run", "--json"],
        &["rename", "src/lexer.rs#lex", "scan", "--json"],
        &["diff", "--json"],
        &["diff", "HEAD~1", "--by", "text", "--json"],
        &["diff", "HEAD~1", "--with", "drift", "--json"],
        &["run", "--json"],
        &["run", "build", "--json"],
        &["index", "--json"],
        &["index", "--history", "--json"],
        &["verify", "--deep", "--json"],
        &["status", "--bytes", "--json"],
        &["gc", "--pin", "v1", "--json"],
        &["gc", "--dry-run", "--json"],
        &["eval", "--from-history", "--json"],
        &["hooks", "install", "--json"],
        &["hooks", "status", "--json"],
        &["config", "--json"],
        &["init", "--yes", "--json", "--without", "agents"],
        &["doctor", "--json"],
        &["install", "codex", "--yes", "--json"],
        &["install", "--list", "--json"],
        &["uninstall", "codex", "--yes", "--json"],
        &["export", ".git/project.bundle", "--json"],
        &["import", ".git/project.bundle", "--json"],
        &["import", "--inspect", ".git/project.bundle", "--json"],
        &["ci", "key", "--json"],
        &["ci", "save", ".git/ci.bundle", "--json"],
        &["ci", "restore", ".git/ci.bundle", "--json"],
        &["push", "--yes", "--json", "."],
        &["pull", "--yes", "--json", "."],
    ];
    let mut missing = BTreeSet::new();
    for args in samples {
        let answer = call(&repo, args).expect(0).json();
        let written = section(args[0]);
        let mut keys = BTreeSet::new();
        collect_keys(&answer, &mut keys);
        for key in keys {
            if !written.contains(&format!("`{key}`")) {
                missing.insert(format!("{} {key}", args[0]));
            }
        }
        let first: Vec<&String> = answer.as_object().unwrap().keys().take(2).collect();
        if !matches!(
            args[0],
            "index"
                | "eval"
                | "config"
                | "hooks"
                | "init"
                | "install"
                | "uninstall"
                | "doctor"
                | "export"
                | "import"
                | "ci"
                | "push"
                | "pull"
        ) {
            assert_eq!(first, ["repo", "ref"], "{args:?} does not begin with its provenance");
        }
    }
    let failure = call(&repo, &["read", "nowhere", "--json"]).expect(2).json();
    for key in failure.as_object().unwrap().keys() {
        if !DOCS.contains(&format!("`{key}`")) {
            missing.insert(key.clone());
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

/// JSON objects whose keys depend on the content of the repository.
const OPEN: &[&str] = &[
    "features",
    "skipped",
    "by_category",
    "by_language",
    "tiers",
    "not_indexed",
];

/// Collects the names of all fields, including nested ones.
fn collect_keys(value: &Value, keys: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                keys.insert(key.clone());
                match value {
                    Value::Object(inner) if OPEN.contains(&key.as_str()) => {
                        inner.values().for_each(|value| collect_keys(value, keys));
                    }
                    value => collect_keys(value, keys),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_keys(item, keys)),
        _ => {}
    }
}
