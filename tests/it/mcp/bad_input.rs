//! Tests invalid and excessive input.

use std::collections::HashSet;
use std::fs;
use std::io::{Read, Write};
use std::process::{ChildStdout, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Client, building, command, project};
use crate::support::{Printed, TestRepo, in_time, is_long, wait_for_end, wait_until};

fn ready() -> (TestRepo, Client) {
    let repo = project();
    let mut client = Client::legacy(&repo, &[]);
    client.call_complete("symbol", json!({"name": "lex"}));
    (repo, client)
}

#[test]
fn wrong_calls_are_answered_with_what_is_right() {
    let (_repo, mut client) = ready();
    let answer = client.request("tools/call", json!({"name": "grep", "arguments": {}}));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    assert!(
        answer["error"]["message"].as_str().unwrap().contains("search"),
        "{answer}"
    );
    let answer = client.request("tools/call", json!({"name": "edit", "arguments": {}}));
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("codescout serve --profile write"), "{message}");
    let mut without_try = Vec::new();
    for (tool, arguments, expected) in [
        ("search", json!({}), "query is missing"),
        ("search", json!({"query": ""}), "the query is empty"),
        ("search", json!({"query": " \n "}), "the query is empty"),
        ("search", json!({"query": 3, "limt": 1}), "did you mean limit"),
        ("search", json!({"query": {"a": 1}}), "query must be a string"),
        ("search", json!({"query": "x", "limit": "many"}), "an integer"),
        ("search", json!({"query": "x", "limit": -1}), "an integer"),
        (
            "search",
            json!({"query": "x", "limit": 100_000_000}),
            "the maximum is 1000",
        ),
        ("search", json!({"query": "x", "mode": "exact"}), "one of auto"),
        ("search", json!({"query": "(", "mode": "regex"}), "unclosed group"),
        ("search", json!({"query": "x", "path": ["["]}), "path pattern"),
        ("search", json!({"query": "x", "lang": ["klingon"]}), "unknown language"),
        ("search", json!({"query": "x", "kind": ["klass"]}), "did you mean class"),
        ("search", json!({"query": "x", "ref": "nowhere"}), "nowhere"),
        (
            "search",
            json!({"query": "x", "ref": "--upload-pack=x"}),
            "is not a ref",
        ),
        ("search", json!({"query": "x", "ref": ""}), "is not a ref"),
        ("search", json!({"query": "x\u{0}y"}), "NUL"),
        ("read", json!({"target": "src/\u{0}"}), "NUL"),
        ("read", json!({"target": "../../etc/passwd"}), "no file"),
        ("read", json!({"target": "/etc/passwd"}), "no file"),
        ("read", json!({"target": "src"}), "outline"),
        ("read", json!({"target": "src/lexer.rs:900"}), "past the end"),
        (
            "read",
            json!({"target": "src/lexer.rs", "lines": ["9-5"]}),
            "invalid line range",
        ),
        ("read", json!({"target": "src/lexr.rs"}), "src/lexer.rs"),
        ("symbol", json!({}), "one of name, at and id"),
        ("symbol", json!({"name": "a", "at": "b:1"}), "one of name, at and id"),
        ("symbol", json!({"at": "src/lexer.rs"}), "invalid position"),
        ("outline", json!({"at": "nowhere"}), "no file"),
        ("status", json!({"op": "guide", "topic": "cooking"}), "topics are"),
        ("status", json!({"ref": "--help"}), "is not a ref"),
        ("index", json!({"refs": ["--help"]}), "is not a ref"),
    ] {
        let answer = client.call(tool, arguments.clone());
        let failure = answer.failure();
        assert!(failure.contains(expected), "{tool} {arguments}: {failure}");
        let Some(suggested) = answer.facts.get("try") else {
            without_try.push(format!("{tool} {arguments}"));
            continue;
        };
        let repeated = client.call(suggested["tool"].as_str().unwrap(), suggested["arguments"].clone());
        assert!(repeated.facts.get("error").is_none(), "{suggested}: {repeated:?}");
    }
    // Nothing in these calls can be of use.
    assert_eq!(
        without_try,
        [
            "search {}",
            "search {\"query\":{\"a\":1}}",
            "search {\"query\":\"x\\u0000y\"}",
            "read {\"target\":\"src/\\u0000\"}",
        ]
    );
    for arguments in [json!([]), json!("x"), json!(7)] {
        let answer = client.request("tools/call", json!({"name": "search", "arguments": arguments}));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    assert!(!client.call("search", json!({"query": "lex"})).results().is_empty());
}

#[test]
fn a_huge_argument_is_refused_and_the_next_call_served() {
    let (_repo, mut client) = ready();
    let failure = client.call("search", json!({"query": "x".repeat(4 << 20)})).failure();
    assert!(failure.contains("65536"), "{failure}");
    assert!(failure.len() < 1000);
    let long: Vec<String> = (0..100_000).map(|n| n.to_string()).collect();
    let failure = client.call("search", json!({"query": "x", "path": long})).failure();
    assert!(failure.contains("the maximum is 256"), "{failure}");
    // A line longer than the limit is skipped, and the connection continues.
    client.send_line(&json!({"jsonrpc": "2.0", "id": 900, "method": "ping", "x": "y".repeat(9 << 20)}).to_string());
    let answer = client.next();
    assert_eq!(
        (&answer["error"]["code"], &answer["id"]),
        (&json!(-32600), &Value::Null),
        "{answer}"
    );
    assert!(!client.call("search", json!({"query": "lex"})).results().is_empty());
}

#[test]
fn lines_that_are_no_messages_are_told_so_and_the_next_call_is_served() {
    let (_repo, mut client) = ready();
    for (line, code) in [
        ("not json", -32700),
        ("{", -32700),
        ("[]", -32600),
        ("{\"jsonrpc\": \"2.0\"}", -32600),
        ("null", -32600),
        ("{\"id\": 7}", -32600),
    ] {
        client.send_line(line);
        let answer = client.next();
        assert_eq!(
            (&answer["error"]["code"], answer.get("id")),
            (&json!(code), Some(&Value::Null)),
            "{line}: {answer}"
        );
    }
    for line in ["\u{feff}", "\t", "", "{\"method\": \"exit\"}"] {
        client.send_line(line);
    }
    assert!(!client.call("search", json!({"query": "lex"})).results().is_empty());
    assert!(client.notifications.is_empty(), "{:?}", client.notifications);
    assert_eq!(client.close(), Some(0));
}

#[test]
fn many_bad_lines_are_all_answered() {
    answer_bad_lines(5_000, |_| ());
}

#[test]
#[ignore = "measures memory"]
fn many_bad_lines_fill_no_memory_of_who_does_not_read() {
    answer_bad_lines(100_000, |id| {
        let before = resident(id);
        // The pipe fills up with answers; then the server stops reading for a while.
        std::thread::sleep(Duration::from_secs(3));
        let kib = resident(id).saturating_sub(before);
        assert!(kib < 20 << 10, "{kib} KiB");
    });
}

/// Sends lines that are not JSON. Reads the first thousand answers after calling `before_reading`.
fn answer_bad_lines(n_lines: usize, before_reading: impl FnOnce(u32)) {
    let repo = project();
    let (mut child, mut input, mut output) = unread(&repo);
    let writer = std::thread::spawn(move || {
        for _ in 0..n_lines {
            if writeln!(input, "{{").is_err() {
                break;
            }
        }
    });
    before_reading(child.id());
    in_time("a thousand lines are answered", move || read_lines(&mut output, 1_000));
    wait_for_end(&mut child);
    writer.join().unwrap();
}

#[test]
fn cursors_of_others_are_refused() {
    let (repo, mut client) = ready();
    let first = client.call("search", json!({"query": "parse", "mode": "regex", "limit": 1}));
    let cursor = first.facts["next_cursor"].as_str().unwrap().to_owned();
    let mut with = |query: &str, cursor: &str| {
        client.call(
            "search",
            json!({"query": query, "mode": "regex", "limit": 1, "cursor": cursor}),
        )
    };
    assert_eq!(with("parse", &cursor).results().len(), 1);
    assert!(with("lex", &cursor).failure().contains("another query"));
    for forged in [
        "",
        "0",
        "zz",
        &cursor[2..],
        &cursor.replace('0', "1"),
        &"f".repeat(10_000),
    ] {
        let failure = with("parse", forged).failure();
        assert!(
            failure.contains("invalid cursor") || failure.contains("state of the files"),
            "{forged}: {failure}"
        );
    }
    repo.write("src/lexer.rs", "// parse\n");
    let failure = with("parse", &cursor).failure();
    assert!(
        failure.contains("state of the files") && failure.contains("without cursor"),
        "{failure}"
    );
}

#[test]
fn a_cancelled_build_stops_and_its_call_is_not_answered() {
    let (_repo, mut client, id) = building();
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    wait_until("the build stops", || {
        let jobs = client.call("status", json!({"op": "jobs"}));
        match jobs.results()[0]["state"].as_str() {
            Some("waiting" | "running") => false,
            Some("stopped") => true,
            other => panic!("{other:?}: {}", jobs.text),
        }
    });
    let found: Vec<&Value> = client
        .notifications
        .iter()
        .filter(|message| message["id"] == id)
        .collect();
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn thousands_of_requests_at_once_are_answered() {
    let n_requests = if is_long() { 10_000 } else { 2_000 };
    let repo = project();
    let mut child = command(repo.root(), &["serve"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut printed = Printed::on(child.stdout.take().unwrap());
    let writer = std::thread::spawn(move || {
        let hello =
            json!({"protocolVersion": super::LEGACY, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        writeln!(
            input,
            "{}",
            json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})
        )
        .unwrap();
        for id in 1..=n_requests {
            let params = json!({"name": "status", "arguments": {"op": "guide"}});
            writeln!(
                input,
                "{}",
                json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
            )
            .unwrap();
        }
        input
    });
    let mut answered = HashSet::new();
    while answered.len() <= n_requests {
        let message: Value = serde_json::from_str(&printed.up_to("\n")).unwrap();
        assert!(message["result"].is_object(), "{message}");
        answered.insert(message["id"].as_i64().unwrap());
    }
    drop(writer.join().unwrap());
    assert!(wait_for_end(&mut child).success());
}

/// Starts a server whose client has sent its greeting and then reads nothing.
fn unread(repo: &TestRepo) -> (std::process::Child, std::process::ChildStdin, ChildStdout) {
    let mut child = command(repo.root(), &["serve"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let hello =
        json!({"protocolVersion": super::LEGACY, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let call = json!({"name": "status", "arguments": {}});
    for line in [
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}),
    ] {
        writeln!(input, "{line}").unwrap();
    }
    let output = in_time("two calls are answered", move || {
        read_lines(&mut output, 2);
        output
    });
    (child, input, output)
}

/// Reads lines, and nothing after them.
fn read_lines(output: &mut ChildStdout, n_lines: usize) {
    let mut byte = [0];
    let mut left = n_lines;
    while left > 0 {
        output.read_exact(&mut byte).unwrap();
        left -= usize::from(byte[0] == b'\n');
    }
}

/// Returns the memory of a process in KiB.
fn resident(id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("RssAnon"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    kib.unwrap_or(0)
}

#[test]
fn a_client_that_goes_away_among_its_answers_ends_the_server() {
    ask_and_never_read(|_, _| ());
}

#[test]
#[ignore = "measures memory"]
fn a_client_that_never_reads_does_not_fill_the_memory() {
    ask_and_never_read(|id, has_written| {
        let before = resident(id);
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(10) && !has_written() {
            std::thread::sleep(Duration::from_millis(50));
        }
        let kib = resident(id).saturating_sub(before);
        assert!(kib < 200 << 10, "{kib} KiB");
    });
}

/// Sends many requests, and disconnects after calling `before_leaving` with the server's process id and a function that
/// returns true if all requests were sent.
fn ask_and_never_read(before_leaving: impl FnOnce(u32, &dyn Fn() -> bool)) {
    let repo = project();
    let lines: String = (0..3000).map(|n| format!("line number {n}\n")).collect();
    repo.write("long.txt", &lines);
    let (mut child, mut input, output) = unread(&repo);
    // Answers of 40 KB take about 200 KiB each until they are read, so all answers would take 600 MiB.
    let writer = std::thread::spawn(move || {
        for id in 2..3_000 {
            let params = json!({"name": "read", "arguments": {"target": "long.txt", "max_tokens": 10_000}});
            let line = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
            if writeln!(input, "{line}").is_err() {
                return;
            }
        }
    });
    before_leaving(child.id(), &|| writer.is_finished());
    // Closing the pipe while an answer is written ends the server.
    drop(output);
    wait_for_end(&mut child);
    let _ = writer.join();
}

#[test]
fn a_client_that_does_not_read_any_more_ends_the_server() {
    let repo = project();
    let (mut child, mut input, output) = unread(&repo);
    drop(output);
    // Standard input stays open, so the server can notice the closed pipe only when it writes an answer. Another test
    // that is starting a process may hold the other end for a moment, and an answer is accepted then. So requests are
    // repeated.
    let params = json!({"name": "outline", "arguments": {"view": "tree"}});
    let mut id = 1;
    wait_until("the server ends", || {
        id += 1;
        let line = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        // Writing fails after the server has ended.
        let _ = writeln!(input, "{line}");
        child.try_wait().unwrap().is_some()
    });
}

#[test]
#[ignore = "measures processor time"]
fn an_idle_server_does_nothing() {
    let (_repo, mut client) = ready();
    client.call("search", json!({"query": "lex"}));
    let ticks = |id: u32| -> u64 {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    };
    // Idle worker threads go to sleep first.
    std::thread::sleep(Duration::from_millis(500));
    let before = ticks(client.process_id());
    std::thread::sleep(Duration::from_secs(2));
    let used = ticks(client.process_id()) - before;
    assert!(used <= 1, "{used} ticks of processor time in two seconds");
}
