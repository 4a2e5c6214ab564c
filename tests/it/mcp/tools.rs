//! Tests the descriptions of tools and their answers.

use serde_json::{Value, json};

use super::{Answer, Client, project};
use crate::support::TestRepo;

/// Returns the number of tokens of a listing, estimated as one per 3.5 bytes of JSON. Tokenizers of models give fewer.
fn n_tokens(listing: &Value) -> usize {
    (listing.to_string().len() as f64 / 3.5).ceil() as usize
}

fn listing() -> Vec<Value> {
    let repo = project();
    let mut client = Client::legacy(&repo, &[]);
    let listed = client.request("tools/list", json!({}));
    listed["result"]["tools"].as_array().unwrap().clone()
}

#[test]
fn the_list_is_small_and_plain() {
    let tools = listing();
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    let known = [
        "search", "outline", "symbol", "graph", "read", "history", "blame", "diff", "review", "status", "index",
    ];
    assert_eq!(names, known);
    let of_each: Vec<usize> = tools.iter().map(n_tokens).collect();
    let n_tokens = n_tokens(&json!(tools));
    let report = format!("the list takes {n_tokens} tokens, each tool {of_each:?}\n");
    std::io::Write::write_all(&mut std::io::stderr(), report.as_bytes()).unwrap();
    assert!(n_tokens <= 3_240, "{n_tokens}: {of_each:?}");
    for tool in &tools {
        let name = tool["name"].as_str().unwrap();
        assert!(name.len() <= 24, "{name}");
        let description = tool["description"].as_str().unwrap();
        assert!(description.len() <= 300, "{name}: {}", description.len());
        assert!(!description.contains("  "), "{name}: {description}");
        let annotations = &tool["annotations"];
        assert_eq!(annotations["readOnlyHint"], name != "index", "{name}");
        assert_eq!(annotations["openWorldHint"], false);
        assert_eq!(tool["inputSchema"]["type"], "object");
        for (parameter, schema) in tool["inputSchema"]["properties"].as_object().unwrap() {
            assert!(schema["type"].is_string(), "{name} {parameter} has no single type");
            assert!(
                schema.get("format").is_none() && schema.get("anyOf").is_none(),
                "{name} {parameter}"
            );
        }
    }
}

#[test]
fn queries_have_the_common_parameters() {
    let common = [
        "ref",
        "repo",
        "path",
        "lang",
        "kind",
        "tests",
        "limit",
        "max_tokens",
        "cursor",
        "detail",
        "stale",
    ];
    for tool in listing() {
        if ["search", "outline", "symbol"].contains(&tool["name"].as_str().unwrap()) {
            for parameter in common {
                assert!(
                    tool["inputSchema"]["properties"][parameter].is_object(),
                    "{tool} {parameter}"
                );
            }
        }
    }
}

#[test]
fn answers_begin_with_what_they_are_about() {
    let repo = project();
    repo.write("src/new.rs", "pub fn unheard_of() {}\n");
    let mut client = Client::legacy(&repo, &[]);
    client.call_complete("symbol", json!({"name": "lex"}));
    let calls = [
        ("search", json!({"query": "cut text into tokens"})),
        ("search", json!({"query": "lex", "mode": "regex"})),
        ("search", json!({"query": "parse", "explain": true, "detail": "ids"})),
        ("search", json!({"query": "src/lexer.rs:2", "mode": "similar"})),
        ("outline", json!({})),
        ("outline", json!({"view": "tree"})),
        ("outline", json!({"at": "src/parser.rs"})),
        ("outline", json!({"view": "map"})),
        ("outline", json!({"view": "headings"})),
        ("outline", json!({"view": "imports"})),
        ("symbol", json!({"name": "parse", "include": ["body", "refs"]})),
        ("symbol", json!({"at": "src/parser.rs:9"})),
        ("read", json!({"target": "README.md", "heading": ["Installation"]})),
        ("read", json!({"target": "Cargo.toml", "key": ["package.name"]})),
        ("status", json!({})),
        ("status", json!({"op": "refs"})),
        ("status", json!({"op": "jobs"})),
        ("status", json!({"op": "config"})),
        ("status", json!({"op": "projects"})),
        ("status", json!({"op": "health"})),
        ("status", json!({"op": "guide"})),
        ("status", json!({"op": "usage"})),
        ("symbol", json!({"name": "lex", "include": ["history"]})),
        ("history", json!({"target": "src/lexer.rs"})),
        ("history", json!({"target": "lex", "detail": "full"})),
        ("blame", json!({"target": "src/lexer.rs"})),
        ("blame", json!({"target": "src"})),
        ("diff", json!({})),
        ("diff", json!({"from": "v1", "to": "HEAD", "by": "text"})),
        ("search", json!({"query": "lex", "in": "commits"})),
        ("search", json!({"query": "lex", "in": "diffs"})),
        ("index", json!({})),
        ("index", json!({"op": "gc", "dry_run": true})),
        ("index", json!({"op": "verify"})),
        ("index", json!({"op": "pin", "refs": ["v1"]})),
        ("index", json!({"op": "remove", "refs": ["v1"]})),
        ("index", json!({"op": "stop"})),
        ("search", json!({"query": ""})),
    ];
    for (tool, arguments) in calls {
        let answer = client.call(tool, arguments.clone());
        if answer.facts.get("error").is_some() {
            continue;
        }
        let first: Vec<&String> = answer.facts.as_object().unwrap().keys().take(4).collect();
        assert_eq!(first, ["repo", "ref", "commit", "tree"], "{tool} {arguments}");
        assert!(!answer.text.is_empty(), "{tool} {arguments}");
        let is_of_commit = answer.facts["ref"] != "WORKTREE";
        assert_eq!(
            answer.text.starts_with("ref "),
            is_of_commit,
            "{tool} {arguments}: {}",
            answer.text
        );
        assert!(
            !answer.text.contains("incomplete:"),
            "{tool} {arguments}: {}",
            answer.text
        );
        assert!(answer.facts["took_ms"].is_number());
        assert_eq!(answer.facts["complete"], true, "{tool} {arguments}: {}", answer.text);
        if arguments.get("in").is_some() {
            assert!(answer.facts["dirty_files"].is_null(), "nobody looked: {}", answer.text);
        } else if tool == "search" {
            assert_eq!(answer.facts["dirty_files"], 1);
            assert!(answer.facts["coverage"]["files"].as_u64().unwrap() > 3);
        }
    }
}

#[test]
fn what_was_just_written_is_found() {
    let repo = project();
    let mut client = Client::legacy(&repo, &[]);
    client.call_complete("symbol", json!({"name": "lex"}));
    assert!(
        client
            .call("symbol", json!({"name": "unheard_of"}))
            .results()
            .is_empty()
    );
    repo.write("src/new.rs", "pub fn unheard_of() {}\n");
    assert_eq!(
        client.call("symbol", json!({"name": "unheard_of"})).all("path"),
        ["src/new.rs"]
    );
    let at_head = client.call_complete("symbol", json!({"name": "unheard_of", "ref": "HEAD"}));
    assert!(at_head.results().is_empty());
    repo.write("src/new.rs", "pub fn renamed() {}\n");
    assert!(
        client
            .call("symbol", json!({"name": "unheard_of"}))
            .results()
            .is_empty()
    );
    repo.commit("keep it");
    let answer = client.call_complete("symbol", json!({"name": "renamed", "ref": "HEAD"}));
    assert_eq!(answer.all("path"), ["src/new.rs"]);
    assert_eq!(answer.facts["commit"], repo.git(["rev-parse", "HEAD"]));
}

#[test]
fn pages_together_are_the_whole_answer() {
    let repo = project();
    let mut client = Client::legacy(&repo, &[]);
    client.call_complete("symbol", json!({"name": "lex"}));
    for (tool, arguments, field) in [
        ("search", json!({"query": "parse", "mode": "regex"}), "start_line"),
        ("search", json!({"query": "parse"}), "blob"),
        ("symbol", json!({"name": "parse"}), "id"),
        ("outline", json!({"view": "symbols"}), "id"),
    ] {
        let mut whole = arguments.clone();
        whole["limit"] = json!(0);
        whole["max_tokens"] = json!(10_000);
        let whole = client.call(tool, whole).all(field);
        assert!(whole.len() > 1, "{tool} {arguments}");
        let mut found = Vec::new();
        let mut page = arguments.clone();
        page["limit"] = json!(1);
        loop {
            let answer = client.call(tool, page.clone());
            found.extend(answer.all(field));
            let Some(cursor) = answer.facts["next_cursor"].as_str() else {
                break;
            };
            assert_eq!(answer.results().len(), 1, "{tool}");
            page["cursor"] = json!(cursor);
        }
        assert_eq!(found, whole, "{tool} {arguments}");
    }
}

#[test]
fn an_answer_is_as_small_as_it_was_asked_to_be() {
    let lines: String = (0..3000)
        .map(|n| format!("pub fn number_{n}() -> u32 {{ {n} }} // \"ünïcode\"\n"))
        .collect();
    let repo = TestRepo::new("//- README.md\n# Sample\n");
    repo.write("src/many.rs", &lines);
    // A file has one result.
    for n in 0..200 {
        let part: Vec<&str> = lines.lines().skip(n).take(20).collect();
        repo.write(format!("src/part_{n}.rs"), part.join("\n"));
    }
    repo.commit("many");
    for bodies in ["text", "structured", "both"] {
        let mut client = Client::legacy(&repo, &["--bodies", bodies]);
        client.call_complete("symbol", json!({"name": "number_1"}));
        let calls = [
            ("read", json!({"target": "src/many.rs"})),
            ("search", json!({"query": "number", "mode": "regex", "limit": 0})),
            ("search", json!({"query": "number", "limit": 0, "detail": "full"})),
            ("outline", json!({"at": "src/many.rs"})),
            ("symbol", json!({"name": "number_", "prefix": true, "limit": 0})),
        ];
        for (tool, arguments) in calls {
            for (max_tokens, characters) in [(200, 800), (2_000, 8_000), (100_000, 40_000)] {
                let mut arguments = arguments.clone();
                arguments["max_tokens"] = json!(max_tokens);
                let answer = client.call(tool, arguments.clone());
                let facts = answer.facts.to_string();
                // The lines above the results alone may be longer than a very small answer.
                let allowed = characters.max(1_600);
                // The form that the client does not show may be twice as long, so that it does not end the list first.
                let beside = (2 * allowed).min(40_000);
                let (text, structure) = match bodies {
                    "text" => (allowed, beside),
                    "structured" => (beside, allowed),
                    _ => (allowed, allowed),
                };
                assert!(
                    answer.text.len() <= text,
                    "{tool} {arguments} {bodies}: text {}",
                    answer.text.len()
                );
                assert!(
                    facts.len() <= structure,
                    "{tool} {arguments} {bodies}: facts {}",
                    facts.len()
                );
                assert!(!answer.results().is_empty(), "{tool} {arguments} {bodies}");
                assert!(answer.facts["next_cursor"].is_string(), "{tool} {arguments} {bodies}");
            }
        }
    }
}

#[test]
fn a_long_file_is_read_page_by_page_without_a_gap() {
    let text: String = (0..2000)
        .map(|n| format!("{n}\t\"quoted\" – {n}\n"))
        .collect::<String>()
        + &"x".repeat(30_000);
    let repo = TestRepo::new("//- README.md\n# Sample\n");
    repo.write("long.txt", &text);
    repo.commit("long");
    for (bodies, from_text) in [("structured", false), ("text", true)] {
        let mut client = Client::legacy(&repo, &["--bodies", bodies]);
        let mut arguments = json!({"target": "long.txt", "max_tokens": 1500});
        let mut read = String::new();
        let mut n_pages = 0;
        loop {
            let answer = client.call("read", arguments.clone());
            let part = &answer.results()[0];
            if from_text {
                let (_, rest) = answer.text.split_once("\nlines ").unwrap();
                let page = rest.split_once("\n```\n").unwrap().1;
                let n_bytes = (part["end_byte"].as_u64().unwrap() - part["start_byte"].as_u64().unwrap()) as usize;
                read.push_str(&page[..n_bytes]);
            } else {
                read.push_str(part["text"].as_str().unwrap());
                assert_eq!(part["end_byte"], read.len());
            }
            n_pages += 1;
            match answer.facts["next_cursor"].as_str() {
                Some(cursor) => arguments["cursor"] = json!(cursor),
                None => break,
            }
        }
        assert!(n_pages > 5);
        assert!(read == text, "{bodies}: {} of {} bytes", read.len(), text.len());
    }
}

#[test]
fn bodies_stand_where_the_client_looks() {
    let repo = project();
    let has = |client: &mut Client| {
        let answer: Answer = client.call_complete("read", json!({"target": "src/lexer.rs"}));
        let needle = "lex is not recursive";
        (answer.text.contains(needle), answer.facts.to_string().contains(needle))
    };
    for (name, args, expected) in [
        ("somebody", vec![], (true, false)),
        ("claude-code", vec!["--bodies", "structured"], (false, true)),
        ("codex-mcp-client", vec!["--bodies", "text"], (true, false)),
        ("somebody", vec!["--bodies", "both"], (true, true)),
    ] {
        let mut client = Client::start(repo.root(), &args);
        client.initialize(name);
        assert_eq!(has(&mut client), expected, "{name} {args:?}");
    }
}

#[test]
fn clients_that_show_structured_content_get_text_only() {
    let repo = project();
    for (name, has_structure) in [("somebody", true), ("claude-code", false), ("codex-mcp-client", false)] {
        let mut client = Client::start(repo.root(), &[]);
        client.initialize(name);
        for target in ["src/lexer.rs", "src/missing.rs"] {
            let answer = client.request("tools/call", json!({"name": "read", "arguments": {"target": target}}));
            assert_eq!(
                answer["result"]["structuredContent"].is_object(),
                has_structure,
                "{answer}"
            );
            assert!(answer["result"]["content"][0]["text"].is_string(), "{answer}");
        }
    }
}

#[test]
fn detail_decides_how_much_is_shown() {
    let repo = project();
    let mut client = Client::legacy(&repo, &[]);
    client.call_complete("symbol", json!({"name": "lex"}));
    let mut sizes = Vec::new();
    for detail in ["ids", "outline", "preview", "full"] {
        let answer = client.call(
            "search",
            json!({"query": "cut text into tokens", "detail": detail, "context_lines": 2}),
        );
        sizes.push(answer.text.len());
    }
    assert!(
        sizes.is_sorted() && sizes[0] < sizes[1] && sizes[1] < sizes[3],
        "{sizes:?}"
    );
    let body = client.call("symbol", json!({"name": "Parser.parse", "detail": "full"}));
    assert!(body.text.contains("lex(text).len()"), "{}", body.text);
}

#[test]
fn filters_narrow_an_answer_down() {
    let repo = project();
    let mut client = Client::legacy(&repo, &[]);
    client.call_complete("symbol", json!({"name": "lex"}));
    let mut paths = |arguments: Value| {
        let mut paths = client.call("search", arguments).all("path");
        paths.dedup();
        paths
    };
    let regex = |more: Value| {
        let mut arguments = json!({"query": "(?i)pars", "mode": "regex", "limit": 0});
        arguments
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        arguments
    };
    assert_eq!(paths(regex(json!({"tests": "only"}))), ["tests/parser_test.rs"]);
    assert_eq!(paths(regex(json!({"lang": "markdown"}))), ["README.md"]);
    assert_eq!(
        paths(regex(json!({"path": ["src", "!parser.rs"]}))),
        Vec::<String>::new()
    );
    assert_eq!(paths(json!({"query": "Parser", "kind": ["struct"]})), ["src/parser.rs"]);
    assert_eq!(
        paths(json!({"query": "Parser", "kind": ["enum"]})),
        Vec::<String>::new()
    );
}

#[test]
fn a_map_of_one_kind_has_room_for_it() {
    let repo = project();
    let functions: String = (0..300).map(|n| format!("pub fn step_{n}() {{}}\n")).collect();
    let calls: String = (0..300).map(|n| format!("    step_{n}();\n")).collect();
    repo.write("src/steps.rs", &functions);
    repo.write("src/all.rs", format!("pub fn all() {{\n{calls}}}\n"));
    let mut client = Client::legacy(&repo, &[]);
    client.call_complete("symbol", json!({"name": "lex"}));
    let map = client.call("outline", json!({"view": "map", "kind": ["struct"], "max_tokens": 300}));
    let names: Vec<&Value> = map.results().iter().filter_map(|result| result.get("name")).collect();
    assert_eq!(names, ["Parser"], "{}", map.text);
}

#[test]
fn ambiguity_returns_all_candidates() {
    let repo = project();
    let mut client = Client::legacy(&repo, &[]);
    let answer = client.call_complete("symbol", json!({"name": "parse"}));
    let ids = answer.all("id");
    assert_eq!(ids.len(), 2, "{ids:?}");
    for id in ids {
        assert_eq!(client.call("symbol", json!({"id": id})).all("id"), [id]);
    }
}

#[test]
fn credentials_are_not_shown() {
    let repo = project();
    let mut client = Client::legacy(&repo, &[]);
    client.call_complete("symbol", json!({"name": "lex"}));
    for target in [".env", "config/server.pem", "./.env", ".env:1"] {
        let failure = client.call("read", json!({"target": target})).failure();
        assert!(failure.contains("credentials"), "{failure}");
        assert!(client.call("read", json!({"target": target, "ref": "v1"})).facts["error"].is_string());
    }
    let found = client.call(
        "search",
        json!({"query": "parse", "mode": "regex", "limit": 0, "path": ["**/*", ".env"]}),
    );
    assert!(!found.results().is_empty());
    let everything = [
        found,
        client.call("search", json!({"query": "parse secret password", "limit": 0})),
        client.call("outline", json!({"view": "tree", "depth": 0})),
    ];
    for answer in everything {
        let all = format!("{} {}", answer.text, answer.facts);
        assert!(
            !all.contains("me-not") && !all.contains("server.pem") && !all.contains("\".env"),
            "{all}"
        );
    }
}

#[test]
fn no_tool_knows_what_files_with_credentials_hold() {
    let repo = TestRepo::new(
        "
        //- config/open.yaml
        database:
          host: localhost
        //- config/secrets.yaml
        database:
          password: hunter2-and-more
        //- credentials.json
        {\"service_token\": \"hunter2-and-more\"}
        //- .envrc
        export SERVICE_TOKEN=hunter2-and-more
    ",
    );
    repo.tag("v1");
    // Also changed on disk, because uncommitted content comes from a different source.
    repo.write(
        "config/secrets.yaml",
        "database:\n  password: hunter2-and-more-changed\n",
    );
    repo.write("client_secret.json", "{\"service_token\": \"hunter2-and-more\"}\n");
    let mut client = Client::legacy(&repo, &["--bodies", "both"]);
    client.call_complete("symbol", json!({"name": "database"}));
    client.call_complete("symbol", json!({"name": "database", "ref": "v1"}));
    for reference in ["WORKTREE", "INDEX", "HEAD", "v1"] {
        for (tool, arguments) in [
            (
                "symbol",
                json!({"at": "config/secrets.yaml:2", "include": ["body", "refs"]}),
            ),
            ("symbol", json!({"at": "config/secrets.yaml:2:4"})),
            (
                "symbol",
                json!({"id": "config/secrets.yaml#database", "include": ["body"]}),
            ),
            (
                "symbol",
                json!({"id": "credentials.json#service_token", "include": ["body"]}),
            ),
            ("symbol", json!({"name": "password", "include": ["body", "refs"]})),
            (
                "symbol",
                json!({"name": "service", "prefix": true, "include": ["body"]}),
            ),
            ("symbol", json!({"name": "service_tokem"})),
            ("search", json!({"query": "config/secrets.yaml:2", "mode": "similar"})),
            ("search", json!({"query": "hunter2-and-more", "mode": "regex"})),
            ("search", json!({"query": "hunter2-and-more", "mode": "keyword"})),
            (
                "search",
                json!({"query": "database password hunter2", "detail": "full"}),
            ),
            ("outline", json!({"at": "config/secrets.yaml"})),
            ("outline", json!({"view": "symbols", "path": "**/*secrets*"})),
            ("outline", json!({"view": "map"})),
            ("outline", json!({"view": "tree", "depth": 0})),
            ("read", json!({"target": "config/secrets.yaml"})),
            ("read", json!({"target": "config/secrets.yaml#database"})),
            (
                "read",
                json!({"target": "config/secrets.yaml", "key": ["database.password"]}),
            ),
        ] {
            let mut asked = arguments.clone();
            asked["ref"] = json!(reference);
            let answer = client.call_complete(tool, asked);
            let output = format!("{} {}", answer.text, answer.facts);
            assert!(
                !output.contains("hunter2-and-more-"),
                "{tool} {arguments} at {reference}: {output}"
            );
            assert!(
                !output.contains("password: "),
                "{tool} {arguments} at {reference}: {output}"
            );
            let n_secrets = answer.facts["results"].as_array().map_or(0, |results| {
                let names = |result: &&Value| {
                    let text = result.to_string();
                    text.contains("secret") || text.contains("credentials.json") || text.contains("hunter2")
                };
                results.iter().filter(names).count()
            });
            assert_eq!(n_secrets, 0, "{tool} {arguments} at {reference}: {output}");
        }
    }
    // The error for a hidden file is the same as for one that does not exist.
    let similar = |client: &mut Client, query: &str| {
        let answer = client.call("search", json!({"query": query, "mode": "similar"}));
        answer.facts["error"].as_str().unwrap_or_default().replace(query, "")
    };
    let hidden = similar(&mut client, "config/secrets.yaml:2");
    assert!(!hidden.is_empty());
    assert_eq!(hidden, similar(&mut client, "config/nothing.yaml:2"));
    let answer = client.call("outline", json!({"view": "tree"}));
    assert_eq!(answer.facts["coverage"]["skipped"]["credentials"], 4, "{}", answer.text);
}

#[test]
fn names_of_other_tools_are_accepted_with_a_note() {
    let repo = project();
    let mut client = Client::legacy(&repo, &[]);
    client.call_complete("symbol", json!({"name": "lex"}));
    for (tool, arguments, path, note) in [
        (
            "search",
            json!({"pattern": "fn lex", "glob": "src/**", "output_mode": "content"}),
            "src/lexer.rs",
            "glob means path; output_mode has no effect; pattern means query",
        ),
        (
            "search",
            json!({"query": "lex", "path": "[\"src/lexer.rs\"]", "head_limit": "1"}),
            "src/lexer.rs",
            "head_limit means limit",
        ),
        (
            "symbol",
            json!({"file": "src/lexer.rs", "line": 2}),
            "src/lexer.rs",
            "line, file mean at=\"src/lexer.rs:2\"",
        ),
    ] {
        let answer = client.call(tool, arguments.clone());
        assert_eq!(answer.results()[0]["path"], path, "{arguments}: {answer:?}");
        assert!(answer.text.starts_with(&format!("note: {note}\n")), "{answer:?}");
        assert_eq!(
            answer.facts["notes"].as_array().unwrap().len(),
            note.split("; ").count()
        );
    }
    let graph = client.call("graph", json!({"symbol": "lex"}));
    assert!(graph.text.contains("caller"), "{graph:?}");
    let read = client.call("read", json!({"file_path": "src\\lexer.rs", "offset": 2, "limit": 1}));
    assert!(
        read.text.ends_with("pub fn lex(text: &str) -> Vec<String> {\n```\n"),
        "{}",
        read.text
    );
}
