//! Tests answers about history over MCP. They must equal those of the command line; long work runs in the background.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Client, command, project};
use crate::support::{InTime, TestRepo, assert_within};

/// Creates a project with a few commits (an edit, a rename, a moved definition, a deletion) and an uncommitted edit.
fn with_a_past() -> TestRepo {
    let repo = project();
    repo.write(
        "src/lexer.rs",
        "/// Cuts text into tokens.\npub fn lex(text: &str) -> Vec<String> {\n    text.split_whitespace().map(str::to_owned).collect()\n}\n",
    );
    repo.commit("Split at any white space");
    repo.git(["mv", "src/lexer.rs", "src/cutter.rs"]);
    repo.commit("Call the lexer a cutter");
    repo.git(["rm", "-q", "tests/parser_test.rs"]);
    repo.commit("Drop the test");
    repo.write("README.md", "# Sample\n\nOther words.\n");
    repo
}

/// Returns the answer of the command line, without the parts that differ between calls.
fn told_to_people(repo: &TestRepo, args: &[&str]) -> Value {
    let output = command(repo.root(), args).output_in_time().unwrap();
    let mut answer: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{args:?}: {}", String::from_utf8_lossy(&output.stderr)));
    answer.as_object_mut().unwrap().remove("took_ms");
    answer
}

#[test]
fn people_and_agents_are_told_the_same() {
    let repo = with_a_past();
    let mut client = Client::legacy(&repo, &["--bodies", "both"]);
    client.call_complete("symbol", json!({"name": "lex"}));
    for (args, tool, arguments, results) in [
        (
            vec!["history", "src/cutter.rs"],
            "history",
            json!({"target": "src/cutter.rs"}),
            "results",
        ),
        (
            vec!["history", "lex", "--diff"],
            "history",
            json!({"target": "lex", "detail": "full"}),
            "results",
        ),
        (
            vec!["history", "README.md", "--diff"],
            "history",
            json!({"target": "README.md", "detail": "full"}),
            "results",
        ),
        (
            vec!["history", "src"],
            "history",
            json!({"target": "src", "limit": 50}),
            "results",
        ),
        (
            vec!["history", "--deleted"],
            "history",
            json!({"op": "deleted"}),
            "results",
        ),
        (
            vec!["history", "tests/parser_test.rs", "--last-seen"],
            "history",
            json!({"target": "tests/parser_test.rs", "op": "last_seen"}),
            "results",
        ),
        (
            vec!["history", "parse"],
            "history",
            json!({"target": "parse"}),
            "results",
        ),
        (
            vec!["history", "src/cutter.rs:2"],
            "history",
            json!({"target": "src/cutter.rs:2"}),
            "results",
        ),
        (
            vec!["history", "nowhere"],
            "history",
            json!({"target": "nowhere"}),
            "results",
        ),
        (
            vec!["blame", "src/cutter.rs"],
            "blame",
            json!({"target": "src/cutter.rs"}),
            "results",
        ),
        (
            vec!["blame", "README.md", "--by", "line"],
            "blame",
            json!({"target": "README.md", "by": "line"}),
            "results",
        ),
        (vec!["blame", "src"], "blame", json!({"target": "src"}), "results"),
        (vec!["diff"], "diff", json!({}), "results"),
        (
            vec!["diff", "v1", "HEAD"],
            "diff",
            json!({"from": "v1", "to": "HEAD"}),
            "results",
        ),
        (
            vec!["diff", "v1..HEAD", "--by", "text", "--path", "src"],
            "diff",
            json!({"from": "v1..HEAD", "by": "text", "path": "src"}),
            "results",
        ),
    ] {
        let mut all = args.clone();
        all.push("--json");
        let people = told_to_people(&repo, &all);
        let agents = client.call(tool, arguments.clone());
        assert_eq!(agents.facts["results"], people[results], "{args:?}\n{}", agents.text);
        let people = people.as_object().unwrap();
        for (field, value) in people {
            // Fields that are omitted if empty, or have another name over MCP.
            let is_known = agents.facts.get(field).is_some();
            if is_known && !matches!(field.as_str(), "results" | "next_cursor") {
                assert_eq!(&agents.facts[field], value, "{args:?} {field}");
            }
        }
        for field in ["target", "total"] {
            assert!(
                agents.facts.get(field).is_some() || !people.contains_key(field),
                "{args:?} {field}"
            );
        }
        // The command line may know definitions from commits that are not traced yet; both answers say that they are
        // incomplete.
        let is_whole = !people.contains_key("near") || people["target"]["kind"] != "unknown";
        assert!(agents.facts["complete"] == true || !is_whole, "{}", agents.text);
    }
}

#[test]
fn a_comparison_lists_the_tests_that_depend_on_it() {
    let repo = project();
    let parser = String::from_utf8(repo.read("src/parser.rs")).unwrap();
    let tests = "#[test]\nfn lengths() {\n    measured();\n}\n\nfn measured() -> usize {\n    Parser.parse(\"x\")\n}\n";
    repo.write("src/parser.rs", format!("{parser}\n{tests}"));
    repo.git(["commit", "-qam", "Measure"]);
    let parser = String::from_utf8(repo.read("src/parser.rs")).unwrap();
    repo.write(
        "src/parser.rs",
        parser.replace("lex(text).len()", "lex(text).len() + 1"),
    );
    let people = told_to_people(&repo, &["diff", "--with", "impact", "--with", "tests", "--json"]);
    let mut client = Client::legacy(&repo, &[]);
    client.call_complete("symbol", json!({"name": "lex"}));
    let both = json!({"with": ["impact", "tests"]});
    let all = client.call("diff", both.clone());
    assert_eq!(all.results(), people["results"].as_array().unwrap(), "{}", all.text);
    assert_eq!(all.facts["impact"], people["impact"]);
    assert_eq!(all.facts["impact"]["tests"], 1);
    assert!(
        all.text.contains("lengths call → measured → Parser.parse\n"),
        "{}",
        all.text
    );
    let mut first = both.clone();
    first["limit"] = json!(1);
    let mut rest = first.clone();
    rest["cursor"] = client.call("diff", first).facts["next_cursor"].clone();
    let rest = client.call("diff", rest);
    assert_eq!(rest.results()[0], all.results()[1], "{}", rest.text);
}

#[test]
fn pages_of_a_history_are_the_whole() {
    let repo = with_a_past();
    let mut client = Client::legacy(&repo, &[]);
    client.call_complete("symbol", json!({"name": "lex"}));
    for (tool, arguments) in [
        ("history", json!({"target": "."})),
        ("history", json!({"target": "lex"})),
        ("blame", json!({"target": "README.md", "by": "line"})),
        ("diff", json!({"from": "v1"})),
    ] {
        let mut whole = arguments.clone();
        whole["limit"] = json!(0);
        let whole = client.call(tool, whole);
        let mut found = Vec::new();
        let mut page = arguments.clone();
        page["limit"] = json!(1);
        loop {
            let answer = client.call(tool, page.clone());
            found.extend(answer.results().clone());
            match answer.facts["next_cursor"].as_str() {
                Some(cursor) => page["cursor"] = json!(cursor),
                None => break,
            }
        }
        assert!(found.len() > 1, "{tool} {arguments}");
        assert_eq!(&found, whole.results(), "{tool} {arguments}");
    }
    let first = client.call("history", json!({"target": ".", "limit": 1}));
    repo.commit("words");
    let cursor = &first.facts["next_cursor"];
    let failure = client
        .call("history", json!({"target": ".", "limit": 1, "cursor": cursor}))
        .failure();
    assert!(failure.contains("state of the files"), "{failure}");
}

#[test]
fn a_long_past_is_recorded_in_the_background() {
    let repo = TestRepo::new("//- a.txt\n0\n");
    let mut stream = String::new();
    let tip = repo.git(["rev-parse", "HEAD"]);
    for number in 1..=9_000 {
        let text = format!("{number}\n");
        stream.push_str("commit refs/heads/main\n");
        stream.push_str(&format!(
            "committer A <a@b> {} +0000\ndata 1\nx\n",
            1_700_000_000 + number
        ));
        if number == 1 {
            stream.push_str(&format!("from {tip}\n"));
        }
        stream.push_str(&format!("M 644 inline a.txt\ndata {}\n{text}", text.len()));
    }
    repo.git_with_input(["fast-import", "--quiet", "--force"], stream.as_bytes());
    repo.git(["reset", "-q", "--hard"]);
    let mut client = Client::legacy(&repo, &[]);
    let began = Instant::now();
    let mut answer = client.call("history", json!({"target": "a.txt", "limit": 1}));
    // The call's own time limit, with a margin for a busy machine.
    assert_within(Duration::from_secs(30), began, "a long past");
    while answer.facts["complete"] == false {
        assert!(answer.text.contains("being recorded"), "{}", answer.text);
        client.call("index", json!({"wait": 1, "history": true}));
        answer = client.call("history", json!({"target": "a.txt", "limit": 1}));
    }
    assert_eq!(answer.facts["total"], 9_001, "{}", answer.text);
    // An update records and traces new commits, as on the command line.
    let traced = client.call("index", json!({"wait": 60, "history": true}));
    assert_eq!(traced.all("task"), ["index", "traced_commits"], "{}", traced.text);
    let status = client.call("status", json!({}));
    assert_eq!(status.facts["history"]["traced"], 9_001, "{}", status.facts);
    repo.write("a.txt", "last\n");
    repo.commit("last");
    let updated = client.call("index", json!({"op": "update", "wait": 60}));
    assert_eq!(updated.all("task"), ["index", "traced_commits"], "{}", updated.text);
    assert!(
        updated.text.contains("9002 in all; definitions traced through 1 more"),
        "{}",
        updated.text
    );
    let jobs = client.call("status", json!({"op": "jobs"}));
    assert!(jobs.text.contains("9002 in all"), "{}", jobs.text);
}

#[test]
fn credentials_have_no_past() {
    let repo = project();
    repo.write(".env", "PASSWORD=another-one\n");
    repo.write("secrets.yaml", "db:\n  password: hunter2\n");
    repo.commit("Change secrets");
    repo.write(".env", "PASSWORD=a-third\n");
    let mut client = Client::legacy(&repo, &["--bodies", "both"]);
    client.call_complete("symbol", json!({"name": "lex"}));
    let refused = [
        ("history", json!({"target": ".env", "detail": "full"})),
        ("history", json!({"target": ".env:1"})),
        ("history", json!({"target": "secrets.yaml#db"})),
        ("blame", json!({"target": ".env"})),
        ("blame", json!({"target": "secrets.yaml:1-2"})),
        ("symbol", json!({"at": "secrets.yaml:2", "include": ["body"]})),
    ];
    for (tool, arguments) in refused {
        let failure = client.call(tool, arguments.clone()).failure();
        assert!(failure.contains("credentials"), "{tool} {arguments}: {failure}");
    }
    for (tool, arguments) in [
        ("diff", json!({"by": "text"})),
        ("diff", json!({"from": "v1", "by": "text"})),
        ("history", json!({"target": ".", "detail": "full"})),
        ("symbol", json!({"id": "secrets.yaml#db", "include": ["body"]})),
        ("symbol", json!({"name": "db.password", "include": ["body"]})),
    ] {
        let answer = client.call(tool, arguments.clone());
        let all = format!("{} {}", answer.text, answer.facts);
        for secret in ["PASSWORD", "hunter2", "secrets.yaml:"] {
            assert!(!all.contains(secret), "{tool} {arguments}: {all}");
        }
    }
    let counted = client.call("search", json!({"query": "lex"}));
    assert_eq!(
        counted.facts["coverage"]["skipped"]["credentials"], 3,
        "{}",
        counted.text
    );
}

#[test]
fn pins_are_set_and_taken_off_and_a_dry_run_changes_nothing() {
    let repo = project();
    let mut client = Client::legacy(&repo, &[]);
    client.call_complete("symbol", json!({"name": "lex"}));
    let pin = |op: &str, is_dry_run: bool| json!({"op": op, "refs": ["v1"], "dry_run": is_dry_run});
    assert!(client.call("index", pin("pin", true)).results().is_empty());
    assert_eq!(client.call("index", pin("pin", false)).all("name"), ["v1"]);
    assert_eq!(client.call("index", pin("remove", true)).all("name"), ["v1"]);
    assert!(client.call("index", pin("remove", false)).results().is_empty());
    let failure = client.call("index", pin("remove", false)).failure();
    assert!(failure.contains("is not pinned"), "{failure}");
    let verified = client.call("index", json!({"op": "verify"}));
    assert_eq!(verified.facts["health"], "sound", "{}", verified.text);
    let before = client.call("index", json!({"op": "gc", "dry_run": true}));
    assert_eq!(before.facts["dry_run"], true);
    let collected = client.call("index", json!({"op": "gc"}));
    assert_eq!(
        collected.facts["bytes_after"], collected.facts["bytes_before"],
        "{}",
        collected.text
    );
    let usage = client.call("status", json!({"op": "usage"}));
    assert!(usage.facts["causes"]["kept"].is_array(), "{}", usage.facts);
    let health = client.call("status", json!({"op": "health"}));
    assert!(health.all("area").contains(&"git".to_owned()), "{}", health.text);
}

#[test]
fn a_failed_call_says_what_would_work() {
    let repo = project();
    let mut client = Client::legacy(&repo, &[]);
    client.call_complete("symbol", json!({"name": "lex"}));
    for (tool, arguments, expected) in [
        (
            "search",
            json!({"query": "x", "lang": ["rast"]}),
            json!({"query": "x", "lang": ["rust"]}),
        ),
        (
            "search",
            json!({"query": "x", "kind": ["klass"]}),
            json!({"query": "x", "kind": ["class"]}),
        ),
        (
            "search",
            json!({"query": "x", "ref": "mian"}),
            json!({"query": "x", "ref": "main"}),
        ),
        (
            "search",
            json!({"query": "x", "kind": ["function", "klass"]}),
            json!({"query": "x", "kind": ["function", "class"]}),
        ),
        (
            "search",
            json!({"query": "x", "lang": ["rust", "klingon"]}),
            json!({"query": "x", "lang": ["rust"]}),
        ),
        ("diff", json!({"from": "mian..HEAD"}), json!({"from": "main..HEAD"})),
        ("read", json!({"target": "lexr.rs"}), json!({"target": "src/lexer.rs"})),
    ] {
        let answer = client.call(tool, arguments.clone());
        assert_eq!(answer.facts["try"]["arguments"], expected, "{answer:?}");
        assert!(answer.facts["hint"].is_string(), "{answer:?}");
        let again = client.call(tool, answer.facts["try"]["arguments"].clone());
        assert!(again.facts.get("error").is_none(), "{again:?}");
    }
    let unknown = client.call("search", json!({"query": "x", "ref": "zzzzzz"}));
    assert_eq!(unknown.facts["try"]["tool"], "status", "{unknown:?}");
    assert!(unknown.facts["hint"].is_string());
}

#[test]
fn commits_and_several_revisions_are_searched() {
    let repo = with_a_past();
    let mut client = Client::legacy(&repo, &[]);
    client.call_complete("symbol", json!({"name": "lex"}));
    let mut search = |arguments: Value| {
        let began = Instant::now();
        loop {
            let answer = client.call("search", arguments.clone());
            if !answer.text.contains("being made searchable") || began.elapsed() > super::PATIENCE {
                return answer;
            }
        }
    };
    let messages = search(json!({"query": "call it a cutter", "in": "commits", "limit": 1}));
    assert_eq!(
        messages.all("subject"),
        ["Call the lexer a cutter"],
        "{}",
        messages.text
    );
    let lines = search(json!({"query": "split_whitespace", "in": "diffs"}));
    assert_eq!(lines.all("subject"), ["Split at any white space"], "{}", lines.text);
    assert!(lines.text.contains("+    text.split_whitespace()"), "{}", lines.text);
    assert!(search(json!({"query": "PASSWORD", "in": "diffs"})).results().is_empty());
    assert!(
        search(json!({"query": "cutter", "in": "commits", "author": "nobody"}))
            .results()
            .is_empty()
    );
    let wrong = search(json!({"query": "cutter", "since": "30d"})).failure();
    assert!(wrong.contains("in commits"), "{wrong}");
    let both = search(json!({"query": "lex", "refs": ["v1", "HEAD"], "kind": [], "limit": 0}));
    let places: Vec<&Value> = both
        .results()
        .iter()
        .flat_map(|result| result["refs"].as_array().unwrap())
        .collect();
    for (reference, path) in [("v1", "src/lexer.rs"), ("HEAD", "src/cutter.rs")] {
        let stands = |place: &&&Value| place["ref"] == reference && place["places"][0]["path"] == path;
        assert!(places.iter().any(|place| stands(&place)), "{reference}: {}", both.facts);
    }
}

#[test]
fn what_is_gone_is_found_with_its_life() {
    let repo = with_a_past();
    repo.write("id_rsa", "fn stolen_key() {}\n");
    repo.commit("A key");
    repo.git(["rm", "-q", "id_rsa"]);
    repo.commit("No key");
    let mut client = Client::legacy(&repo, &["--bodies", "both"]);
    client.call_complete("symbol", json!({"name": "lex"}));
    client.call("index", json!({"history": true, "wait": 60}));
    let mut search = |arguments: Value| client.call("search", arguments);
    let found = search(json!({"query": "parse_is_called", "all_history": true, "limit": 3}));
    let (result, life) = (&found.results()[0], &found.results()[0]["life"]);
    assert_eq!(result["path"], "tests/parser_test.rs", "{}", found.text);
    assert_eq!(
        (&life["present"], &life["gone_in"]["subject"]),
        (&json!(false), &json!("Drop the test"))
    );
    assert!(
        found.text.contains("deleted in") && found.text.contains("Drop the test"),
        "{}",
        found.text
    );
    let mut people = told_to_people(
        &repo,
        &["search", "--json", "--all-history", "-n", "3", "parse_is_called"],
    );
    for (mut agents, mut people) in found
        .results()
        .iter()
        .cloned()
        .zip(people["results"].as_array_mut().unwrap().drain(..))
    {
        for one in [&mut agents, &mut people] {
            one.as_object_mut().unwrap().remove("snippet");
            // Hidden files are not included in statistics either.
            one.as_object_mut().unwrap().remove("score");
        }
        assert_eq!(agents, people);
    }
    let described = client.call(
        "history",
        json!({"op": "deleted", "target": "the test that parse is called"}),
    );
    assert_eq!(
        described.results()[0]["path"],
        "tests/parser_test.rs",
        "{}",
        described.text
    );
    let mut search = |arguments: Value| client.call("search", arguments);
    let next = search(
        json!({"query": "parse_is_called", "all_history": true, "limit": 3, "cursor": found.facts["next_cursor"]}),
    );
    assert!(
        next.facts["error"].is_null() && next.results()[0] != found.results()[0],
        "{}",
        next.text
    );
    let hidden = search(json!({"query": "stolen_key", "all_history": true, "limit": 0}));
    assert!(
        !hidden.facts.to_string().contains("id_rsa") && !hidden.text.contains("fn stolen"),
        "{}",
        hidden.text
    );
    for (more, given) in [
        ("mode", json!("regex")),
        ("in", json!("commits")),
        ("refs", json!(["v1"])),
        ("kind", json!(["struct"])),
    ] {
        let mut arguments = json!({"query": "lex", "all_history": true});
        arguments[more] = given;
        let failure = search(arguments).failure();
        assert!(failure.contains("all_history cannot be used with"), "{failure}");
    }
}
