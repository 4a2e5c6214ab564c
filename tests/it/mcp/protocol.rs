//! Tests both protocol revisions, and the information that a server gives about itself.

use serde_json::{Value, json};

use super::{Client, LEGACY, MODERN, project};

#[test]
fn the_older_era_shakes_hands() {
    let repo = project();
    let mut client = Client::start(repo.root(), &[]);
    let answer = client.initialize("test");
    let result = &answer["result"];
    assert_eq!(result["protocolVersion"], LEGACY);
    assert_eq!(result["serverInfo"]["name"], "codescout");
    assert_eq!(result["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
    let instructions = result["instructions"].as_str().unwrap();
    assert!(instructions.len() < 2000, "{}", instructions.len());
    for capability in ["tools", "resources", "prompts", "completions"] {
        assert!(result["capabilities"][capability].is_object(), "{result}");
    }
    // An older client receives no field of the newer revision.
    let listed = client.request("tools/list", json!({}));
    assert_eq!(listed["result"]["resultType"], Value::Null);
    assert_eq!(client.request("ping", json!({}))["result"], json!({}));
    assert_eq!(client.close(), Some(0));
}

#[test]
fn an_unknown_version_is_answered_with_a_known_one() {
    let repo = project();
    for (asked, answered) in [
        ("2031-01-01", LEGACY),
        ("2024-11-05", "2024-11-05"),
        ("2025-06-18", "2025-06-18"),
    ] {
        let mut client = Client::start(repo.root(), &[]);
        let params = json!({"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        assert_eq!(
            client.request("initialize", params)["result"]["protocolVersion"],
            answered
        );
    }
}

#[test]
fn the_newer_era_needs_no_handshake() {
    let repo = project();
    let mut client = Client::start(repo.root(), &[]);
    let discovered = client.modern("server/discover", json!({}))["result"].clone();
    let versions: Vec<&str> = discovered["supportedVersions"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", LEGACY, MODERN] {
        assert!(versions.contains(&version), "{versions:?}");
    }
    assert!(
        discovered["instructions"]
            .as_str()
            .unwrap()
            .starts_with("codescout searches")
    );
    assert_eq!(discovered["resultType"], "complete");
    assert!(discovered["ttlMs"].as_u64().unwrap() > 0);
    assert_eq!(discovered["cacheScope"], "public");
    assert_eq!(
        discovered["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
        "codescout"
    );
    for method in [
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "prompts/list",
    ] {
        let result = client.modern(method, json!({}))["result"].clone();
        assert!(result["ttlMs"].as_u64().unwrap() > 0, "{method}: {result}");
        assert_eq!(result["cacheScope"], "public", "{method}");
        assert_eq!(result["resultType"], "complete", "{method}");
    }
    let called = client.modern("tools/call", json!({"name": "status", "arguments": {}}))["result"].clone();
    assert_eq!(called["resultType"], "complete");
    assert_eq!(
        called["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
        "codescout"
    );
    assert_eq!(client.close(), Some(0));
}

#[test]
fn a_version_that_is_not_spoken_is_refused() {
    let repo = project();
    let mut client = Client::start(repo.root(), &[]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2031-01-01",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let answer = client.request("tools/list", json!({"_meta": meta}));
    assert_eq!(answer["error"]["code"], -32022, "{answer}");
    assert!(
        answer["error"]["data"]["supported"]
            .as_array()
            .unwrap()
            .contains(&json!(MODERN))
    );
}

#[test]
fn the_end_of_the_input_is_a_clean_end() {
    let repo = project();
    assert_eq!(Client::start(repo.root(), &[]).close(), Some(0));
    let mut client = Client::start(repo.root(), &[]);
    client.modern("server/discover", json!({}));
    assert_eq!(client.close(), Some(0));
    let mut client = Client::legacy(&repo, &[]);
    client.begin("tools/call", json!({"name": "search", "arguments": {"query": "lexer"}}));
    assert_eq!(client.close(), Some(0));
}

#[test]
fn a_server_outside_a_repository_says_so_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = Client::start(folder.path(), &[]);
    client.initialize("test");
    let failure = client.call("search", json!({"query": "x"})).failure();
    assert!(failure.contains("not inside a git repository"), "{failure}");
    assert!(failure.contains("--root") && !failure.contains("git init"), "{failure}");
    assert_eq!(client.close(), Some(0));
    // With roots, the error lists them.
    let repo = project();
    let root = repo.root().parent().unwrap().to_str().unwrap();
    let mut client = Client::start(folder.path(), &["--root", root]);
    client.initialize("test");
    let failure = client.call("search", json!({"query": "x"})).failure();
    assert!(failure.contains(root) && !failure.contains("git init"), "{failure}");
    let failure = client
        .call("search", json!({"query": "x", "repo": "nothing-there"}))
        .failure();
    assert!(failure.contains(root) && !failure.contains("omit repo"), "{failure}");
}

#[test]
fn a_server_whose_client_goes_ends_before_it_is_killed() {
    let repo = project();
    super::write_much(&repo);
    let mut client = Client::legacy(&repo, &[]);
    for _ in 0..20 {
        client.begin("tools/call", json!({"name": "index", "arguments": {"wait": 100}}));
    }
    let began = std::time::Instant::now();
    assert_eq!(client.close(), Some(0));
    // Clients kill a server after two seconds at the earliest. The limit here allows for a busy machine.
    crate::support::assert_within(std::time::Duration::from_millis(3_500), began, "the end of the server");
}

#[test]
fn resources_can_be_read_and_unknown_ones_are_named() {
    let repo = project();
    let mut client = Client::legacy(&repo, &[]);
    client.call_complete("symbol", json!({"name": "lex"}));
    let listed = client.request("resources/list", json!({}));
    let uris: Vec<String> = listed["result"]["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|resource| resource["uri"].as_str().unwrap().to_owned())
        .collect();
    assert!(uris.contains(&"codescout://repo/summary".to_owned()), "{uris:?}");
    for uri in uris.iter().map(String::as_str).chain(["codescout://snapshot/v1"]) {
        let read = client.request("resources/read", json!({"uri": uri}));
        let contents = &read["result"]["contents"][0];
        assert_eq!(contents["uri"], uri, "{read}");
        assert!(contents["text"].as_str().unwrap().len() > 100, "{read}");
    }
    for uri in [
        "codescout://guide/nothing",
        "file:///etc/passwd",
        "codescout://snapshot/--help",
        "",
    ] {
        let answer = client.request("resources/read", json!({"uri": uri}));
        assert_eq!(answer["error"]["code"], -32002, "{answer}");
        assert_eq!(answer["error"]["data"]["uri"], uri);
    }
    let mut client = Client::start(repo.root(), &[]);
    let answer = client.modern("resources/read", json!({"uri": "codescout://guide/nothing"}));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}

#[test]
fn only_what_never_changes_may_be_kept_for_long() {
    let repo = project();
    repo.git(["branch", "feature/x"]);
    let commit = repo.git(["rev-parse", "HEAD"]);
    let mut client = Client::start(repo.root(), &[]);
    let mut read = |name: &str| {
        let uri = format!("codescout://snapshot/{name}");
        let answer = client.modern("resources/read", json!({"uri": uri}));
        let text = answer["result"]["contents"][0]["text"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        assert_eq!(text.contains(&commit[..12]), name != "WORKTREE", "{name}: {answer}");
        answer["result"]["ttlMs"].as_u64().unwrap()
    };
    assert!(read(&commit) > 0);
    for moving in [
        "HEAD",
        "main",
        "WORKTREE",
        "HEAD~0",
        &commit[..12],
        "feature%2Fx",
        "feature/x",
    ] {
        assert_eq!(read(moving), 0, "{moving}");
    }
}

#[test]
fn prompts_are_described_and_filled_in() {
    let repo = project();
    let mut client = Client::legacy(&repo, &[]);
    let listed = client.request("prompts/list", json!({}));
    let prompts = listed["result"]["prompts"].as_array().unwrap().clone();
    assert_eq!(prompts.len(), 3);
    assert!(
        prompts
            .iter()
            .all(|prompt| prompt["description"].as_str().unwrap().len() > 20)
    );
    let got = client.request(
        "prompts/get",
        json!({"name": "review-branch", "arguments": {"base": "main"}}),
    );
    let text = got["result"]["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(text.contains("against main"), "{text}");
    for params in [json!({"name": "review-branch"}), json!({"name": "none"})] {
        assert_eq!(client.request("prompts/get", params)["error"]["code"], -32602);
    }
}

#[test]
fn arguments_are_completed() {
    let repo = project();
    let mut client = Client::legacy(&repo, &[]);
    client.call_complete("symbol", json!({"name": "lex"}));
    let mut complete = |reference: Value, name: &str, value: &str| {
        let params = json!({"ref": reference, "argument": {"name": name, "value": value}});
        client.request("completion/complete", params)["result"]["completion"]["values"].clone()
    };
    let prompt = |name: &str| json!({"type": "ref/prompt", "name": name});
    assert_eq!(complete(prompt("review-branch"), "base", "v"), json!(["v1"]));
    assert_eq!(
        complete(prompt("explain-history"), "target", "src/l"),
        json!(["src/lexer.rs"])
    );
    assert_eq!(complete(prompt("explain-history"), "target", ".e"), json!([]));
    let template = json!({"type": "ref/resource", "uri": "codescout://snapshot/{commit}"});
    assert_eq!(complete(template, "commit", "ma"), json!(["main"]));
}

#[test]
fn progress_of_a_build_grows() {
    let repo = project();
    let mut client = Client::legacy(&repo, &[]);
    let params = json!({"name": "index", "arguments": {}, "_meta": {"progressToken": "p1"}});
    let answer = client.request("tools/call", params);
    assert_eq!(
        answer["result"]["structuredContent"]["results"][0]["state"], "done",
        "{answer}"
    );
    let found: Vec<f64> = client
        .notifications
        .iter()
        .filter(|message| message["method"] == "notifications/progress")
        .map(|message| {
            assert_eq!(message["params"]["progressToken"], "p1");
            message["params"]["progress"].as_f64().unwrap()
        })
        .collect();
    assert!(!found.is_empty(), "no progress was reported");
    assert!(found.is_sorted_by(|a, b| a < b), "{found:?}");
}
