//! Tests the profile `write`: its tools, what they may change, and how agents call them.

use std::fs;

use serde_json::{Value, json};

use super::{Answer, Client, command, project};
use crate::support::{InTime, TestRepo};

const WRITE: &[&str] = &["--profile", "write"];

fn tools(repo: &TestRepo, options: &[&str]) -> Vec<Value> {
    let mut client = Client::legacy(repo, options);
    let listed = client.request("tools/list", json!({}));
    listed["result"]["tools"].as_array().unwrap().clone()
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().filter_map(|tool| tool["name"].as_str()).collect()
}

#[test]
fn notes_are_written_and_read() {
    let repo = project();
    let listed = tools(&repo, &["--profile", "memory,write"]);
    assert_eq!(names(&listed[listed.len() - 3..]), ["edit", "rename", "memory"]);
    let n_tokens = (listed[listed.len() - 1].to_string().len() as f64 / 3.5).ceil() as usize;
    assert!(n_tokens <= 350, "{n_tokens}");
    let mut client = Client::legacy(&repo, &["--profile", "memory"]);
    let written = client.call(
        "memory",
        json!({"op": "write", "name": "parser/why", "about": ["src/parser.rs#Parser.parse"], "text": "Because."}),
    );
    assert_eq!(written.results()[0]["verdict"], "fresh");
    repo.write("src/parser.rs", "// all gone\n");
    let notes = client.call("memory", json!({}));
    assert_eq!(notes.results()[0]["verdict"], "gone");
    let read = client.call("memory", json!({"op": "read", "name": "parser/why"}));
    assert!(read.text.contains("Because."), "{}", read.text);
    let write = |client: &mut Client, expect: Option<&str>| {
        let arguments = json!({"op": "write", "name": "parser/why", "about": [], "text": "Because!", "expect": expect});
        client.request("tools/call", json!({"name": "memory", "arguments": arguments}))["result"].clone()
    };
    let blob = notes.results()[0]["blob"].as_str().unwrap();
    assert!(read.text.contains(blob), "{}", read.text);
    repo.write(".agents/notes/parser/why.md", "# Mine\n");
    for (expect, why) in [(None, "expect is missing"), (Some(blob), "has changed")] {
        let refused = write(&mut client, expect);
        assert!(
            refused["isError"] == true && refused.to_string().contains(why),
            "{refused}"
        );
    }
    assert_eq!(repo.read(".agents/notes/parser/why.md"), b"# Mine\n");
    let id = repo.git(["hash-object", ".agents/notes/parser/why.md"]);
    let written = write(&mut client, Some(&id.trim()[..12]));
    assert_ne!(written["isError"], true, "{written}");
}

#[test]
fn documents_are_audited() {
    let repo = project();
    let listed = tools(&repo, &["--profile", "docs"]);
    let tool = &listed[listed.len() - 1];
    assert_eq!(tool["name"], "docs");
    let n_tokens = (tool.to_string().len() as f64 / 3.5).ceil() as usize;
    assert!(n_tokens <= 350, "{n_tokens}");
    assert!(tool["description"].as_str().unwrap().len() <= 300);
    repo.write("src/steps.rs", "pub fn first_step() -> u32 {\n    1\n}\n");
    repo.write("use.md", "Call `steps::first_step` first.\n");
    repo.commit("document");
    repo.write("src/steps.rs", "// all gone\n");
    let mut client = Client::legacy(&repo, &["--profile", "docs"]);
    let answer = client.call("docs", json!({"op": "audit"}));
    assert_eq!(answer.results()[0]["text"], "steps::first_step", "{}", answer.text);
    assert!(answer.text.contains("is gone, not committed"), "{}", answer.text);
    let answer = client.call("docs", json!({"op": "list"}));
    assert_eq!(answer.results().len(), 0);
}

#[test]
fn the_profile_adds_tools_with_honest_annotations() {
    let repo = project();
    let (without, with) = (tools(&repo, &[]), tools(&repo, WRITE));
    assert!(!names(&without).contains(&"edit"));
    assert_eq!(with[..without.len()], without[..]);
    assert_eq!(names(&with[without.len()..]), ["edit", "rename"]);
    let rename = (with[without.len() + 1].to_string().len() as f64 / 3.5).ceil() as usize;
    assert!(rename <= 330, "{rename}");
    let edit = &with[without.len()];
    assert_eq!(
        edit["annotations"],
        json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": false})
    );
    let n_tokens = (edit.to_string().len() as f64 / 3.5).ceil() as usize;
    std::io::Write::write_all(
        &mut std::io::stderr(),
        format!("edit takes {n_tokens} tokens\n").as_bytes(),
    )
    .unwrap();
    assert!(n_tokens <= 520, "{n_tokens}: {edit}");
    assert!(edit["description"].as_str().unwrap().len() <= 300);
    let fields = &edit["inputSchema"]["properties"]["edits"]["items"];
    assert_eq!(fields["required"], json!(["op", "target"]));
    assert_eq!(fields["properties"]["op"]["type"], "string");
    let mut client = Client::start(repo.root(), WRITE);
    let begun = client.initialize("test");
    assert!(
        begun["result"]["instructions"]
            .as_str()
            .unwrap()
            .contains("\n- Change code: edit")
    );
}

#[test]
fn tools_can_be_left_out_and_unknown_names_are_errors() {
    let repo = project();
    let left = tools(
        &repo,
        &["--profile", "write", "--without", "graph,edit", "--without", "index"],
    );
    assert!(
        !["graph", "edit", "index"]
            .iter()
            .any(|name| names(&left).contains(name))
    );
    let mut client = Client::legacy(&repo, &["--without", "graph"]);
    let answer = client.request("tools/call", json!({"name": "graph", "arguments": {}}));
    assert!(
        answer["error"]["message"].as_str().unwrap().contains("without graph"),
        "{answer}"
    );
    for (options, said) in [
        (&["--profile", "write,paper"][..], "invalid value 'paper'"),
        (&["--without", "edit"], "no tool \"edit\" to leave out"),
        (&["--without", "grep"], "no tool \"grep\""),
    ] {
        let mut serve = command(repo.root(), &[&["serve"], options].concat());
        let output = serve.stdin(std::process::Stdio::null()).output_in_time().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(said), "{stderr}");
    }
}

#[test]
fn files_are_read_and_edited_with_their_blob_ids() {
    let repo = project();
    let mut client = Client::legacy(&repo, WRITE);
    let read = client.call("read", json!({"target": "src/lexer.rs"}));
    let blob = read.facts["blob"].as_str().unwrap().to_owned();
    assert!(
        read.text.contains(&format!("src/lexer.rs blob {}\n", &blob[..12])),
        "{}",
        read.text
    );
    let symbol = client.call_complete("symbol", json!({"name": "lex", "include": ["body"]}));
    assert!(
        symbol.text.contains(&format!(" blob={}\n", &blob[..12])),
        "{}",
        symbol.text
    );
    let edits = |expect: Option<&str>| {
        let mut edits = json!([
            {"op": "replace_body", "target": "src/lexer.rs#lex", "text": "vec![text.to_owned()]"},
            {"op": "create", "path": "src/new.rs", "text": "pub fn unheard_of() {}\n"},
        ]);
        edits[0]["expect"] = json!(expect);
        json!({"edits": edits})
    };
    let missing = client.call("edit", edits(None)).failure();
    assert!(missing.contains("expect is missing for src/lexer.rs"), "{missing}");
    let wrong = client.call("edit", edits(Some(&"1".repeat(40)))).failure();
    assert!(wrong.contains(&format!("it is now blob {blob}")), "{wrong}");
    let mut dry = edits(Some(&blob[..12]));
    dry["dry_run"] = json!(true);
    let dry = client.call("edit", dry);
    assert!(
        dry.text.contains("would be modified src/lexer.rs blob "),
        "{}",
        dry.text
    );
    assert!(!repo.path("src/new.rs").exists());
    let done = client.call("edit", edits(Some(&blob)));
    assert!(
        done.text.contains("+    vec![text.to_owned()]\n") && done.text.contains("\ncreated src/new.rs blob "),
        "{}",
        done.text
    );
    assert_eq!(
        done.facts["files"][0]["blob"],
        repo.git(["hash-object", "src/lexer.rs"])
    );
    assert_eq!(done.facts["files"][0]["old_blob"], *blob);
    // The next call sees the new files.
    let found = client.call_complete("symbol", json!({"name": "unheard_of"}));
    assert_eq!(found.all("path"), ["src/new.rs"]);
    let read = client.call("read", json!({"target": "src/lexer.rs", "symbol": "lex"}));
    assert_eq!(read.facts["blob"], done.facts["files"][0]["blob"]);
    let stale = client.call("edit", edits(Some(&blob))).failure();
    assert!(stale.contains("the file exists"), "{stale}");
}

#[test]
fn patches_that_do_not_fit_are_counted() {
    let repo = project();
    let mut client = Client::legacy(&repo, WRITE);
    let new =
        |n: usize| json!({"op": "create", "target": format!("new/{n}.txt"), "text": "A line of text.\n".repeat(40)});
    let edits: Vec<Value> = (0..12).map(new).collect();
    let is_cut = |answer: &Answer| answer.text.contains("which need a larger max_tokens");
    let few = client.call("edit", json!({"edits": edits, "dry_run": true}));
    let n_shown = few.text.matches("diff --git").count();
    let left = format!("\n{} more results, which need", 12 - n_shown);
    assert!(n_shown < 12 && few.text.contains(&left), "{}", few.text);
    assert_eq!(few.facts["files"].as_array().unwrap().len(), 12);
    let all = client.call("edit", json!({"edits": edits, "max_tokens": 20_000}));
    assert!(
        all.text.matches("diff --git").count() == 12 && !is_cut(&all),
        "{}",
        all.text
    );
}

#[test]
fn a_failed_edit_changes_nothing_and_says_why() {
    let repo = project();
    let mut client = Client::legacy(&repo, WRITE);
    for (arguments, said) in [
        (json!({}), "edits is missing"),
        (json!({"edits": ["x"]}), "edits must contain objects, not a string"),
        (
            json!({"edits": [{"op": "rename", "target": "a"}]}),
            "edits, item 1: op must be one of replace, ",
        ),
        (
            json!({"edits": [{"op": "remove", "target": "a", "txt": "x"}]}),
            "did you mean text?",
        ),
        (
            json!({"edits": {"op": "create", "target": ".env.local", "text": "x"}}),
            "credentials",
        ),
        (
            json!({"edits": {"op": "delete", "target": ".env", "expect": "1".repeat(40)}}),
            "credentials",
        ),
        (
            json!({"edits": {"op": "create", "target": ".git/hooks/x", "text": "x"}}),
            "belongs to git",
        ),
        (
            json!({"edits": {"op": "create", "target": "../x", "text": "x"}}),
            "not inside the worktree",
        ),
        (json!({"edits": [], "ref": "v1"}), "unknown parameter \"ref\""),
    ] {
        let failure = client.call("edit", arguments.clone()).failure();
        assert!(failure.contains(said), "{arguments}: {failure}");
    }
    assert_eq!(repo.git(["status", "--porcelain"]), "");
}

#[test]
fn other_repositories_are_only_read() {
    let (repo, roots) = (project(), tempfile::tempdir().unwrap());
    let other = roots.path().join("other");
    repo.git([
        "clone",
        "--quiet",
        repo.root().to_str().unwrap(),
        other.to_str().unwrap(),
    ]);
    let linked = repo.beside("linked");
    repo.git(["worktree", "add", "--quiet", linked.to_str().unwrap()]);
    let mut client = Client::legacy(&repo, &["--profile", "write", "--root", roots.path().to_str().unwrap()]);
    let create = |repo: &std::path::Path| json!({"repo": repo.to_str().unwrap(), "edits": [{"op": "create", "target": "x.txt", "text": "x"}]});
    let failure = client.call("edit", create(&other)).failure();
    assert!(failure.contains("this repository can only be read"), "{failure}");
    assert!(!other.join("x.txt").exists() && !other.join(".git/codescout-edit").exists());
    let done = client.call("edit", create(&linked));
    assert_eq!(done.facts["files"][0]["change"], "created", "{}", done.text);
    assert_eq!(fs::read(linked.join("x.txt")).unwrap(), b"x");
    assert!(!repo.path("x.txt").exists());
}

#[test]
fn a_rename_is_shown_first_and_then_applied() {
    let repo = project();
    repo.write("Cargo.toml", "[package]\nname = \"tool\"\n");
    repo.write("src/lib.rs", "mod lexer;\nmod parser;\n");
    repo.commit("make it a crate");
    let mut client = Client::legacy(&repo, WRITE);
    let mut arguments = json!({"target": "lex", "new_name": "tokens_of"});
    let shown = client.call("rename", arguments.clone());
    assert!(shown.text.contains("would be changed; complete"), "{}", shown.text);
    assert_eq!(repo.git(["status", "--porcelain"]), "");
    arguments["apply"] = json!(true);
    let done = client.call("rename", arguments.clone());
    assert_eq!(done.facts["changed"], shown.facts["changed"]);
    // The next call sees the new name.
    let found = client.call_complete("symbol", json!({"name": "tokens_of"}));
    assert_eq!(found.all("path"), ["src/lexer.rs"]);
    // `symbol` calls the target a name.
    let gone = client
        .call("rename", json!({"name": "lex", "new_name": "cut"}))
        .failure();
    assert!(gone.contains("no definition named \"lex\""), "{gone}");
}
