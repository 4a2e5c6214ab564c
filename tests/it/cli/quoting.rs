//! Tests paths that are not UTF-8 or contain control characters. They are printed as git quotes them, and accepted both
//! quoted and as bytes.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use serde_json::{Value, json};

use super::{Called, call, call_in};
use crate::mcp::Client;
use crate::support::TestRepo;

const RAW: &[u8] = b"src/caf\xe9.rs";
const QUOTED: &str = r#""src/caf\351.rs""#;

fn sample() -> TestRepo {
    let repo = TestRepo::empty();
    let text = "/// Brews.\npub fn brew_coffee(cups: u32) -> u32 {\n    cups + 1\n}\n";
    repo.write(OsStr::from_bytes(RAW), text);
    repo.write("src/tea.rs", text.replace("coffee", "tea"));
    repo.write("docs/tab\there.md", "# Brewing\n");
    repo.write("docs/ä 日本.md", "# Ordinary\n");
    repo.commit("start");
    repo
}

/// Runs the program with both forms of the path in place of `@` in the arguments, and checks that the answers are
/// equal.
fn both(repo: &TestRepo, args: &[&str]) -> Value {
    let call = |path: &[u8]| -> Called {
        let fill = |arg: &&str| {
            let parts: Vec<&[u8]> = arg.as_bytes().split(|byte| *byte == b'@').collect();
            OsString::from_vec(parts.join(path))
        };
        let args: Vec<OsString> = args.iter().map(fill).chain(["--json".into()]).collect();
        call_in(repo.root(), &args, b"").expect(0)
    };
    let (raw, quoted) = (call(RAW).json(), call(QUOTED.as_bytes()).json());
    let results = ["results", "symbols", "lines", "tree", "files", "target"];
    for field in results {
        let without_cursor = |answer: &Value| answer[field].clone();
        assert_eq!(without_cursor(&raw), without_cursor(&quoted), "{args:?}");
    }
    assert!(!raw.to_string().contains('\u{fffd}'), "{args:?}: {raw}");
    raw
}

#[test]
fn every_command_writes_and_reads_quoted_paths() {
    let repo = sample();
    let found = both(&repo, &["grep", "brew_coffee"]);
    assert_eq!(found["results"][0]["path"], QUOTED);
    let text = call(&repo, &["grep", "-F", "Brew"]).expect(0).text();
    let expected = format!(
        "{}:1:# Brewing\n{QUOTED}:1:/// Brews.\nsrc/tea.rs:1:/// Brews.\n",
        r#""docs/tab\there.md""#
    );
    assert_eq!(text, expected);
    for pattern in ["@", "*/caf*"] {
        let filtered = both(&repo, &["grep", "-F", "Brew", "-p", pattern]);
        assert_eq!(filtered["results"].as_array().unwrap().len(), 1, "{pattern}");
        assert_eq!(filtered["results"][0]["path"], QUOTED, "{pattern}");
    }
    let without = both(&repo, &["grep", "-l", "Brew", "-p", "!@", "-p", "src"]);
    assert_eq!(without["results"][0]["path"], "src/tea.rs");

    let read = both(&repo, &["read", "@:2-3"]);
    assert_eq!(
        (&read["path"], &read["results"][0]["start_line"]),
        (&json!(QUOTED), &json!(2))
    );
    let outlined = both(&repo, &["outline", "@"]);
    let definition = &outlined["results"][1];
    assert_eq!(definition["id"], format!("{QUOTED}#brew_coffee"));
    let blamed = both(&repo, &["blame", "@"]);
    assert_eq!(blamed["target"]["path"], QUOTED);
    both(&repo, &["blame", "@:1-2"]);
    let past = both(&repo, &["history", "@"]);
    assert_eq!(past["target"]["path"], QUOTED);
    both(&repo, &["history", "@:1-2"]);
    for args in [["symbol", "--at", "@:2"], ["history", "@#brew_coffee", "--limit=1"]] {
        both(&repo, &args);
    }
    for args in [["symbol", "@#brew_coffee"], ["read", "@#brew_coffee"]] {
        let found = both(&repo, &args);
        assert_eq!(found["results"].as_array().unwrap().len(), 1, "{args:?}: {found}");
    }
    let similar = both(&repo, &["search", "--mode", "similar", "@:2"]);
    assert_eq!(similar["results"][0]["path"], "src/tea.rs");
    let searched = both(&repo, &["search", "brew_coffee", "-p", "@"]);
    assert_eq!(searched["results"][0]["path"], QUOTED);
    repo.write(OsStr::from_bytes(RAW), "pub fn brew_espresso() {}\n");
    let changed = both(&repo, &["diff", "-p", "@"]);
    assert_eq!(changed["results"][0]["path"], QUOTED);
}

#[test]
fn a_tree_quotes_names_and_others_stay_as_they_are() {
    let repo = sample();
    let tree = call(&repo, &["outline", "--view", "tree", "--depth", "0"])
        .expect(0)
        .text();
    assert!(tree.contains(r#""caf\351.rs""#) && tree.contains("ä 日本.md"), "{tree}");
    let listed = call(&repo, &["grep", "-l", "Ordinary"]).expect(0).text();
    assert_eq!(listed, "docs/ä 日本.md\n");
    call(&repo, &["read", r#""docs/tab\there.md""#]).expect(0);
    let missing = call(&repo, &["read", r#""src/caf\350.rs""#]).expect(2);
    assert!(missing.stderr.contains("351"), "{}", missing.stderr);
}

#[test]
fn tools_write_and_read_quoted_paths() {
    let repo = sample();
    let mut client = Client::start(repo.root(), &[]);
    client.initialize("test");
    for (tool, arguments, path) in [
        ("read", json!({"target": format!("{QUOTED}:2-3")}), "/path"),
        ("read", json!({"target": format!("{QUOTED}#brew_coffee")}), "/path"),
        ("outline", json!({"at": QUOTED}), "/results/0/path"),
        ("outline", json!({"path": QUOTED}), "/results/0/path"),
        ("outline", json!({"at": "src", "view": "tree"}), "/results/1/path"),
        ("symbol", json!({"at": format!("{QUOTED}:2")}), "/results/0/path"),
        (
            "symbol",
            json!({"id": format!("{QUOTED}#brew_coffee")}),
            "/results/0/path",
        ),
        ("blame", json!({"target": QUOTED}), "/target/path"),
        ("blame", json!({"target": format!("{QUOTED}:1-2")}), "/target/path"),
        ("history", json!({"target": QUOTED}), "/target/path"),
        (
            "history",
            json!({"target": format!("{QUOTED}#brew_coffee")}),
            "/target/path",
        ),
        (
            "search",
            json!({"query": "Brews", "mode": "regex", "path": QUOTED}),
            "/results/0/path",
        ),
        ("search", json!({"query": "brew", "path": [QUOTED]}), "/results/0/path"),
    ] {
        let answer = client.call(tool, arguments.clone());
        let found = answer.facts.pointer(path).and_then(Value::as_str);
        // The location of a definition is its id.
        let found = found.map(|found| found.trim_end_matches("#brew_coffee"));
        assert_eq!(found, Some(QUOTED), "{tool} {arguments}: {}", answer.text);
        assert!(!answer.text.contains('\u{fffd}'), "{}", answer.text);
    }
    let similar = client.call("search", json!({"query": format!("{QUOTED}:2"), "mode": "similar"}));
    let found = similar.facts.pointer("/results/0/path").and_then(Value::as_str);
    assert_eq!(found, Some("src/tea.rs"), "{}", similar.text);
}
