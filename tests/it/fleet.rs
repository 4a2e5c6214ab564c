//! Tests fleets: many repositories whose files a Qdrant stub chooses.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use serde_json::json;

use crate::cli::{Called, call_in, spawn_in};
use crate::mcp::Client;
use crate::mcp::http::{Response, Server, bearer};
use crate::support::qdrant::QdrantStub;
use crate::support::{InTime, Reply, TestRepo, is_long, kill, wait_until};
use crate::web::{Web, links};

struct Fleet {
    qdrant: QdrantStub,
    folder: PathBuf,
    client: TestRepo,
    server: TestRepo,
}

impl Fleet {
    /// Two repositories: `client` in the group `web`, `server` in the group `core`.
    fn new() -> Self {
        let qdrant = QdrantStub::start();
        qdrant.be_strict();
        let url = qdrant.url();
        Self::at(qdrant, &url)
    }

    fn at(qdrant: QdrantStub, url: &str) -> Self {
        let client = TestRepo::new(
            "
            //- src/upload.rs
            /// Sends a file again after the connection was lost.
            pub fn retry_upload(path: &str) -> bool {
                !path.is_empty()
            }
            //- src/canary.rs
            pub fn canary_of_web() {}
            //- .env
            TOKEN=canary-of-an-environment
            ",
        );
        let server = TestRepo::new(
            "
            //- store.go
            package store

            // Keep writes an uploaded file to the disk.
            func Keep(name string) error {
                return nil
            }
            ",
        );
        let fleet = Self {
            folder: client.beside("fleet"),
            qdrant,
            client,
            server,
        };
        std::fs::create_dir_all(&fleet.folder).unwrap();
        let settings = format!("[qdrant]\nserver = \"{url}\"\n");
        std::fs::write(fleet.folder.join("fleet.toml"), settings).unwrap();
        for (name, repo, group) in [("client", &fleet.client, "web"), ("server", &fleet.server, "core")] {
            let typed = format!("{name}={}", repo.root().display());
            fleet.call(&["add", &typed, "--group", group]).expect(0);
        }
        fleet
    }

    fn call(&self, args: &[&str]) -> Called {
        let folder = self.folder.to_str().unwrap();
        let args = [&["fleet", "--dir", folder], args].concat();
        call_in(self.folder.parent().unwrap(), &args, b"")
    }

    fn index(&self) -> Called {
        self.call(&["index"]).expect(0)
    }

    /// Returns the paths of the results of a search.
    fn found(&self, query: &str) -> Vec<String> {
        let answer = self.call(&["search", query, "--json"]).json();
        let hits = answer["results"].as_array().unwrap().iter();
        hits.map(|hit| hit["path"].as_str().unwrap().to_owned()).collect()
    }
}

#[test]
fn one_question_covers_all_repositories() {
    let fleet = Fleet::new();
    let indexed = fleet.index().text();
    assert!(indexed.contains("client:") && indexed.contains("server:"), "{indexed}");
    let found = fleet.found("an uploaded file");
    assert!(found.contains(&"client:/src/upload.rs".to_owned()), "{found:?}");
    assert!(found.contains(&"server:/store.go".to_owned()), "{found:?}");
    let symbol = fleet.call(&["symbol", "retry_upload"]).expect(0).text();
    assert!(symbol.contains("client:/src/upload.rs"), "{symbol}");
    let read = fleet.call(&["read", "server:store.go"]).expect(0).text();
    assert!(read.contains("func Keep"), "{read}");
    let lines = fleet.call(&["grep", "func Keep"]).expect(0).text();
    assert!(lines.contains("server:/store.go"), "{lines}");
    // No text leaves the machine, and no file with credentials is stored.
    let payloads = serde_json::to_string(&fleet.qdrant.payloads()).unwrap();
    assert!(
        payloads.contains("retry_upload") || payloads.contains("retryupload"),
        "{payloads}"
    );
    assert!(
        !payloads.contains("again after") && !payloads.contains(".env"),
        "{payloads}"
    );
    let hidden = fleet.call(&["grep", "canary-of-an-environment"]).text();
    assert!(!hidden.contains("TOKEN"), "{hidden}");
}

/// Compares the server at `CODESCOUT_TEST_QDRANT_URL` with the stub. Run by `tests/peers/qdrant.sh`.
#[test]
fn a_real_qdrant_finds_the_same_files() {
    let Ok(url) = std::env::var("CODESCOUT_TEST_QDRANT_URL") else {
        return;
    };
    let fleets = [Fleet::new(), Fleet::at(QdrantStub::start(), &url)];
    for round in 0..3 {
        for fleet in &fleets {
            fleet.index();
            fleet.call(&["verify"]).expect(0);
        }
        for query in [
            "an uploaded file",
            "retry_upload",
            "where is the disk written",
            "Keep",
            "added once more",
        ] {
            let [by_stub, by_server] = fleets.each_ref().map(|fleet| fleet.found(query));
            assert!(!by_stub.is_empty() || round == 0, "{query}");
            assert_eq!(by_stub, by_server, "{query}");
        }
        for fleet in &fleets {
            let text = format!("// Is added once more.\npub fn added_{round}() {{}}\n");
            fleet.client.write("src/added.rs", &text);
            fleet.client.commit("add");
        }
    }
}

#[test]
fn what_ci_pushed_is_not_indexed_again() {
    let fleet = Fleet::new();
    let ci = fleet.client.clone_with("ci", &[]);
    call_in(ci.root(), &["push", "--yes"], b"").expect(0);
    let pulled = |args: &[&str]| {
        let indexed = fleet
            .call(&[&["index", "client", "--json"], args].concat())
            .expect(0)
            .json();
        indexed["files_pulled"].as_u64().unwrap()
    };
    let key = "0123456789abcdef".repeat(4);
    assert_eq!(pulled(&["--pull", "--trust", &key]), 0, "it is not signed");
    fleet.client.write("src/new.rs", "pub fn pushed_later() {}\n");
    fleet.client.commit("new");
    ci.git(["pull", "--quiet"]);
    call_in(ci.root(), &["push", "--yes"], b"").expect(0);
    assert_eq!(pulled(&["--pull"]), 1);
    assert_eq!(fleet.found("pushed_later")[0], "client:/src/new.rs");
    fleet.call(&["verify", "client"]).expect(0);
}

#[test]
fn only_what_is_new_is_stored() {
    let fleet = Fleet::new();
    fleet.index();
    assert_eq!(fleet.index().text(), "");
    fleet
        .client
        .write("src/pause.rs", "pub fn pause_between_attempts() {}\n");
    fleet.client.remove("src/upload.rs");
    fleet.client.commit("pause");
    let behind = fleet.call(&["status"]).expect(1).text();
    assert!(
        behind.contains("client  behind") && behind.contains("server  up to date"),
        "{behind}"
    );
    let indexed = fleet.call(&["index", "--json"]).expect(0).json();
    assert_eq!(
        (&indexed["name"], &indexed["points_stored"]),
        (&"client".into(), &2.into()),
        "{indexed}"
    );
    assert_eq!(indexed["points_removed"], 2, "{indexed}");
    fleet.call(&["status"]).expect(0);
    assert_eq!(fleet.found("pause_between_attempts")[0], "client:/src/pause.rs");
    assert!(
        !fleet
            .found("retry_upload")
            .contains(&"client:/src/upload.rs".to_owned())
    );
    let checked = fleet.call(&["verify"]).expect(0).text();
    assert!(checked.contains("0 missing, 0 extra"), "{checked}");
}

#[test]
fn lost_points_are_named_found_and_stored_again() {
    let fleet = Fleet::new();
    fleet.index();
    fleet.qdrant.drop_all();
    let answer = fleet.call(&["search", "retry_upload", "--json"]).json();
    assert_eq!(answer["results"][0]["path"], "client:/src/upload.rs", "{answer}");
    let because = answer["incomplete_because"].to_string();
    assert!(because.contains("Qdrant is not available"), "{because}");
    let differing = fleet.call(&["verify"]).expect(1).text();
    assert!(
        differing.contains("missing") && !differing.contains(" 0 missing"),
        "{differing}"
    );
    fleet.call(&["verify", "--repair"]).expect(0);
    assert!(fleet.call(&["verify"]).expect(0).text().contains("0 missing, 0 extra"));
    assert_eq!(fleet.found("retry_upload")[0], "client:/src/upload.rs");
    fleet.qdrant.lose_every(2);
    fleet.call(&["verify"]).expect(1);
    fleet.call(&["verify", "--repair"]).expect(0);
    fleet.call(&["verify"]).expect(0);
}

#[test]
fn without_the_server_the_repositories_are_searched_here() {
    let fleet = Fleet::new();
    fleet.index();
    fleet.qdrant.fail(|_| Some(Reply::status(503)));
    let answer = fleet.call(&["search", "retry_upload", "--json"]).json();
    assert_eq!(answer["results"][0]["path"], "client:/src/upload.rs", "{answer}");
    assert_eq!(answer["complete"], false, "{answer}");
}

#[test]
fn a_lost_repository_is_read_here() {
    let fleet = Fleet::new();
    fleet.index();
    fleet.qdrant.lose("client");
    let answer = fleet.call(&["search", "retry_upload", "--json"]).json();
    assert_eq!(answer["results"][0]["path"], "client:/src/upload.rs", "{answer}");
    let because = answer["incomplete_because"].to_string();
    assert!(because.contains("lacks the points of client"), "{because}");
    assert!(!because.contains("only the"), "{because}");
    assert!(!because.contains("is not available"), "{because}");
}

#[test]
fn doctor_lists_what_a_fleet_sends() {
    let fleet = Fleet::new();
    let state = fleet.client.beside("state");
    std::fs::create_dir_all(state.join("codescout/fleet")).unwrap();
    let settings = "codescout/fleet/fleet.toml";
    std::fs::copy(fleet.folder.join("fleet.toml"), state.join(settings)).unwrap();
    let called = Command::new(env!("CARGO_BIN_EXE_codescout"))
        .args(["doctor", "--what-leaves"])
        .current_dir(fleet.client.root())
        .env("XDG_STATE_HOME", &state)
        .output_in_time()
        .unwrap();
    let leaves = String::from_utf8(called.stdout).unwrap();
    assert!(
        leaves.contains(&fleet.qdrant.url()) && leaves.contains("hashes of its words"),
        "{leaves}"
    );
    assert!(!leaves.contains("nothing leaves"), "{leaves}");
}

#[test]
fn an_interrupted_run_is_continued() {
    let fleet = Fleet::new();
    fleet
        .qdrant
        .fail(|seen| seen.path.contains("/points/delete").then(|| Reply::status(400)));
    fleet.index();
    fleet.client.remove("src/upload.rs");
    fleet.client.commit("remove");
    fleet.call(&["index"]).expect(2);
    // The record says that the server may have any of the points.
    let answer = fleet.call(&["search", "canary_of_web", "--json"]).json();
    assert!(
        answer["incomplete_because"]
            .to_string()
            .contains("not stored yet: client"),
        "{answer}"
    );
    fleet.qdrant.mend();
    fleet.index();
    let checked = fleet.call(&["verify"]).expect(0).text();
    assert!(checked.contains("client:") && !checked.contains("1 extra"), "{checked}");
}

#[test]
fn a_group_shows_nothing_of_other_groups() {
    let fleet = Fleet::new();
    fleet.index();
    for args in [
        &["search", "canary_of_web"][..],
        &["symbol", "canary_of_web"],
        &["grep", "canary_of_web"],
        &["read", "client:src/canary.rs"],
        &["search", "canary_of_web", "--linked=client"],
        &["outline", "client:/"],
        &["list"],
    ] {
        let called = fleet.call(&[args, &["--group", "core", "--json"]].concat());
        let text = called.text() + &called.stderr;
        let others = text.replace(args[args.len() - 1], "");
        assert!(
            !others.contains("canary.rs") && !others.contains("upload"),
            "{args:?}: {text}"
        );
        assert!(
            !text.contains(fleet.client.root().to_str().unwrap()),
            "{args:?}: {text}"
        );
    }
    // A repository that is not visible and one that does not exist give the same answer.
    let of = |name: &str| {
        let called = fleet.call(&["read", &format!("{name}:src/canary.rs"), "--group", "core"]);
        called.stderr.replace(name, "NAME")
    };
    assert_eq!(of("client"), of("nowhere"));
    let visible = fleet
        .call(&["symbol", "canary_of_web", "--group", "web"])
        .expect(0)
        .text();
    assert!(visible.contains("client:/src/canary.rs"), "{visible}");
    assert!(
        fleet
            .call(&["list", "--group", "nobody"])
            .expect(2)
            .stderr
            .contains("no group")
    );
}

#[test]
fn what_is_removed_from_the_settings_is_removed_from_the_server() {
    let fleet = Fleet::new();
    fleet.index();
    fleet.call(&["remove", "client"]).expect(0);
    assert!(
        fleet
            .call(&["remove", "client"])
            .expect(2)
            .stderr
            .contains("no repository")
    );
    let removed = fleet.index().text();
    assert!(removed.contains("client: removed"), "{removed}");
    assert_eq!(fleet.qdrant.repositories().into_iter().collect::<Vec<_>>(), ["server"]);
    assert!(
        fleet
            .found("retry_upload")
            .iter()
            .all(|path| path.starts_with("server:"))
    );
}

#[test]
fn bad_folders_are_named_and_the_others_added() {
    let fleet = Fleet::new();
    let elsewhere = fleet.client.beside("nothing-here");
    let other = fleet.client.bare_clone("other.git");
    let list = fleet.client.beside("list");
    std::fs::write(
        &list,
        format!("# gone\n{}\n\n{}\n", elsewhere.display(), other.root().display()),
    )
    .unwrap();
    let called = fleet.call(&["add", "--from-list", list.to_str().unwrap()]).expect(2);
    assert!(called.stderr.contains("nothing-here"), "{}", called.stderr);
    assert!(
        called.text().contains("other") && !called.stderr.contains('#'),
        "{}",
        called.stderr
    );
    for args in [["index", "clinet"], ["remove", "clinet"], ["verify", "clinet"]] {
        let called = fleet.call(&args).expect(2);
        assert!(called.stderr.contains("client"), "{}", called.stderr);
    }
    let called = fleet.call(&["search", "upload", "--linked="]).expect(2);
    assert!(
        called.stderr.contains("no linked repository or scope"),
        "{}",
        called.stderr
    );
    let taken = format!("client={}", other.root().display());
    let called = fleet.call(&["add", &taken]).expect(2);
    assert!(called.stderr.contains("give the other one a name"), "{}", called.stderr);
}

#[test]
fn a_gateway_answers_for_its_groups_alone() {
    let fleet = Fleet::new();
    fleet.index();
    let option = format!("--fleet={}", fleet.folder.display());
    let start = |options: &[&str]| {
        let mut client = Client::start(fleet.folder.parent().unwrap(), &[&[option.as_str()], options].concat());
        client.initialize("test");
        client
    };
    let mut all = start(&[]);
    let found = all.call("search", json!({"query": "retry_upload"})).facts;
    assert_eq!(found["results"][0]["path"], "client:/src/upload.rs", "{found}");
    let symbol = all.call("symbol", json!({"name": "retry_upload"})).text;
    assert!(
        symbol.contains("src/upload.rs") && !symbol.contains("no caller"),
        "{symbol}"
    );
    assert!(!symbol.contains("read-only"), "{symbol}");
    let read = all.call("read", json!({"target": "client:src/upload.rs"})).text;
    assert!(read.contains("fn retry_upload"), "{read}");
    let read = all.call("read", json!({"target": "client:.env"})).failure();
    assert!(!read.contains("canary"), "{read}");

    let mut core = start(&["--group", "core"]);
    let client = fleet.client.root().to_str().unwrap();
    for (tool, arguments) in [
        ("search", json!({"query": "canary_of_web"})),
        ("search", json!({"query": "canary_of_web", "repos": ["client"]})),
        ("search", json!({"query": "canary_of_web", "repos": ["web"]})),
        ("search", json!({"query": "canary_of_web", "mode": "regex"})),
        ("search", json!({"query": "canary_of_web", "repo": client})),
        ("search", json!({"query": "canary_of_web", "all_history": true})),
        ("symbol", json!({"name": "canary_of_web"})),
        ("graph", json!({"op": "callers", "target": "canary_of_web"})),
        ("outline", json!({"path": "client:/"})),
        ("read", json!({"target": "client:src/canary.rs"})),
        ("history", json!({"target": "client:src/canary.rs"})),
        ("status", json!({})),
        ("status", json!({"repo": client})),
    ] {
        let answer = core.call(tool, arguments.clone());
        let text = format!("{}{}", answer.text, answer.facts);
        let asked = arguments.as_object().unwrap().values();
        let asked = asked.map(|asked| asked.get(0).unwrap_or(asked).as_str().unwrap_or("\0"));
        let others = asked.fold(text.clone(), |text, asked| text.replace(asked, ""));
        for secret in ["canary.rs", "upload", "pub fn", "\"web\""] {
            assert!(!others.contains(secret), "{tool} {arguments}: {text}");
        }
    }
    // Nothing tells the repository of another group from one that does not exist.
    let mut refused = |name: &str| {
        let answer = core.call("search", json!({"query": "x", "repos": [name]}));
        answer.failure().replace(name, "NAME")
    };
    assert_eq!(refused("client"), refused("clients"));
}

#[test]
fn readers_of_one_gateway_see_their_groups() {
    let fleet = Fleet::new();
    fleet.index();
    let option = format!("--fleet={}", fleet.folder.display());
    let start = |options: &[&str]| {
        Server::start(
            fleet.folder.parent().unwrap(),
            &[&[option.as_str()], options].concat(),
            None,
        )
    };
    let open = start(&["--no-token"]);
    let list = |headers: &[(&str, &str)]| open.modern("tools/list", json!({}), headers).status;
    assert_eq!(list(&[]), 200);
    let admitted = |name: &str, groups: &[&str]| {
        let printed = fleet.call(&[&["token", name], groups].concat()).expect(0).text();
        printed.trim().to_owned()
    };
    let web = admitted("alice", &["--group", "web"]);
    let core = admitted("bob", &["--group", "core"]);
    let all = admitted("operator", &[]);
    let settings = || std::fs::read_to_string(fleet.folder.join("fleet.toml")).unwrap();
    assert!(
        !settings().contains(&web) && settings().contains("alice = \"web "),
        "{}",
        settings()
    );
    // The first reader ends access without a token.
    assert_eq!(list(&[]), 401);
    assert_eq!(list(&[("Authorization", &bearer(&web))]), 200);
    let server = start(&[]);
    let call = |server: &Server, token: &str, tool: &str, arguments: serde_json::Value| -> Response {
        let params = json!({"name": tool, "arguments": arguments});
        server.modern("tools/call", params, &[("Authorization", &bearer(token))])
    };
    let search = |token: &str| call(&server, token, "search", json!({"query": "canary_of_web"}));
    for token in [&web, &all] {
        let found = search(token);
        assert!(found.body.contains("client:/src/canary.rs"), "{found:?}");
    }
    let client = fleet.client.root().to_str().unwrap();
    for (tool, arguments) in [
        ("search", json!({"query": "canary_of_web"})),
        ("search", json!({"query": "canary_of_web", "mode": "regex"})),
        ("search", json!({"query": "canary_of_web", "repo": client})),
        ("outline", json!({"path": "client:/"})),
        ("read", json!({"target": "client:src/canary.rs"})),
        ("status", json!({})),
    ] {
        let answer = call(&server, &core, tool, arguments.clone());
        assert_eq!(answer.status, 200, "{answer:?}");
        // The answer repeats the target.
        let others = answer.body.replace("client:src/canary.rs", "");
        for secret in ["canary.rs", "upload", "pub fn", "alice", "\"web\""] {
            assert!(!others.contains(secret), "{tool} {arguments}: {answer:?}");
        }
    }
    for wrong in ["", "0123456789abcdef0123456789abcdef", &web[1..]] {
        assert_eq!(search(wrong).status, 401, "{wrong}");
    }

    // A session belongs to those who see the same groups.
    let begin = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    let send = |token: &str, session: Option<&str>, body: &serde_json::Value| {
        let authorization = bearer(token);
        let mut headers = vec![
            ("Authorization", authorization.as_str()),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        headers.extend(session.map(|session| ("Mcp-Session-Id", session)));
        server.send("POST", "/mcp", &headers, &body.to_string())
    };
    let began = send(&web, None, &begin);
    let session = began.header("Mcp-Session-Id").unwrap();
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    assert_eq!(send(&web, Some(session), &list).status, 200);
    assert_eq!(send(&core, Some(session), &list).status, 404);

    // The settings count with the next call.
    fleet.call(&["revoke", "alice"]).expect(0);
    assert_eq!(search(&web).status, 401);
    assert!(!fleet.call(&["list"]).expect(0).text().contains("alice"));
    fleet.call(&["revoke", "alice"]).expect(2);
    let again = admitted("alice", &["--group", "web"]);
    assert!(search(&again).body.contains("client:/src/canary.rs"));
    let changed = settings().replace("alice = \"web ", "alice = \"gone ");
    std::fs::write(fleet.folder.join("fleet.toml"), changed).unwrap();
    let answer = search(&again);
    assert_eq!(answer.status, 401, "{answer:?}");
    assert_eq!(search(&core).status, 200);

    // An error in the settings does not name repositories.
    let wrong = settings().replace("core = \"server\"", "core = \"server, clint\"");
    assert_ne!(wrong, settings());
    std::fs::write(fleet.folder.join("fleet.toml"), wrong).unwrap();
    let answer = search(&core);
    assert!(
        answer.body.contains("the settings of the fleet cannot be used"),
        "{answer:?}"
    );
    for secret in ["clint", "client", "fleet.toml"] {
        assert!(!answer.body.contains(secret), "{answer:?}");
    }
    let right = settings().replace("server, clint", "server");
    std::fs::write(fleet.folder.join("fleet.toml"), right).unwrap();

    // A gateway for some groups admits no readers; one for all groups does not open without a token.
    let of_web = start(&["--group", "web"]);
    let refused = call(&of_web, &all, "search", json!({"query": "canary_of_web"}));
    assert_eq!(refused.status, 401, "{refused:?}");
    let args = ["serve", &option, "--http", "127.0.0.1:0", "--no-token"];
    let refused = call_in(fleet.folder.parent().unwrap(), &args, b"").expect(2);
    assert!(refused.stderr.contains("leave out --no-token"), "{}", refused.stderr);
}

#[test]
fn pages_of_a_fleet_lead_to_its_repositories() {
    let fleet = Fleet::new();
    fleet.index();
    let option = format!("--fleet={}", fleet.folder.display());
    let web = Web::entered_with(fleet.folder.parent().unwrap(), &[&option]);
    let (status, front) = web.page("/");
    assert_eq!(status, 200, "{front}");
    assert!(front.contains("client") && front.contains("server"), "{front}");
    assert!(front.contains("action=\"/-/search\""), "{front}");
    let (status, tree) = web.page(links(&front, "/client/-/tree/")[0]);
    assert!(status == 200 && tree.contains("src/"), "{tree}");

    let (status, found) = web.page("/-/search?q=uploaded+file");
    assert_eq!(status, 200, "{found}");
    for (repo, text) in [("client", "retry_upload"), ("server", "Keep")] {
        let links = links(&found, &format!("/{repo}/-/file/"));
        assert!(!links.is_empty(), "{found}");
        let (status, file) = web.page(links[0].split('#').next().unwrap());
        assert!(status == 200 && file.contains(text), "{file}");
    }
    let definition = links(&found, "/client/-/def/")[0];
    let (status, page) = web.page(&definition.replace("&amp;", "&"));
    assert!(status == 200 && page.contains("retry_upload"), "{page}");
    let callers = links(&page, "/-/graph?target=")[0];
    let (status, page) = web.page(&callers.replace("&amp;", "&"));
    assert!(status == 200 && page.contains("callers"), "{page}");
    let json = web.page("/-/search?q=uploaded+file&format=json").1;
    assert!(
        json.starts_with('{') && json.contains("client:/src/upload.rs"),
        "{json}"
    );

    for missing in ["/nothing/-/tree/HEAD:", "/-/nothing", "/home.git/-/tree/HEAD:"] {
        assert_eq!(web.page(missing).0, 404, "{missing}");
    }
    let of_core = Web::entered_with(fleet.folder.parent().unwrap(), &[&option, "--group", "core"]);
    for path in [
        "/",
        "/-/search?q=canary_of_web",
        "/-/search?q=canary_of_web&repos=client",
    ] {
        let page = of_core.page(path).1;
        assert!(
            !page.contains("canary.rs") && !page.contains("/client/"),
            "{path}: {page}"
        );
    }
    assert_eq!(of_core.page("/client/-/tree/HEAD:").0, 404);
}

#[test]
fn a_watched_fleet_has_each_commit_soon() {
    let fleet = Fleet::new();
    let folder = fleet.folder.to_str().unwrap();
    let mut feeder = spawn_in(
        fleet.folder.parent().unwrap(),
        &["fleet", "--dir", folder, "index", "--watch"],
    );
    wait_until("both are stored", || fleet.call(&["status"]).code == 0);
    fleet.client.write("src/fresh.rs", "pub fn fresh_definition() {}\n");
    fleet.client.commit("fresh");
    let other = fleet.server.bare_clone("other.git");
    fleet.call(&["add", other.root().to_str().unwrap()]).expect(0);
    wait_until("the added repository is stored", || {
        fleet
            .call(&["list"])
            .text()
            .lines()
            .any(|line| line.starts_with("other") && line.contains("chunks"))
    });
    wait_until("the commit is stored", || {
        fleet
            .found("fresh_definition")
            .first()
            .is_some_and(|path| path == "client:/src/fresh.rs")
    });
    kill(&mut feeder);
}

#[test]
fn a_killed_run_leaves_nothing_behind() {
    let fleet = Fleet::new();
    let folder = fleet.folder.to_str().unwrap();
    let n_kills = if is_long() { 50 } else { 4 };
    for number in 0..n_kills {
        fleet.client.write(
            format!("src/added_{number}.rs"),
            format!("pub fn added_{number}() {{}}\n"),
        );
        if number > 0 {
            fleet.client.remove(format!("src/added_{}.rs", number - 1));
        }
        fleet.client.commit("change");
        // Ends the run after another number of requests each time.
        let n_left = AtomicUsize::new(number % 8);
        let (send, reached) = channel();
        fleet.qdrant.fail(move |_| {
            if n_left
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1))
                .is_ok()
            {
                return None;
            }
            _ = send.send(());
            Some(Reply::status(200).after(Duration::from_secs(600)))
        });
        let mut feeder = spawn_in(fleet.folder.parent().unwrap(), &["fleet", "--dir", folder, "index"]);
        _ = reached.recv_timeout(Duration::from_secs(60));
        kill(&mut feeder);
        fleet.qdrant.mend();
    }
    fleet.index();
    let checked = fleet.call(&["verify"]).expect(0).text();
    assert!(
        checked.lines().all(|line| line.ends_with("0 missing, 0 extra")),
        "{checked}"
    );
    let last = format!("added_{}", n_kills - 1);
    assert_eq!(fleet.found(&last)[0], format!("client:/src/{last}.rs"));
}

#[test]
fn a_point_whose_removal_was_interrupted_is_stored_again_when_needed() {
    let fleet = Fleet::new();
    fleet.index();
    let removing = fleet.qdrant.deleting_silently();
    fleet.qdrant.fail(move |seen| {
        let is_removal = seen.path.contains("/points/delete");
        is_removal.then(|| {
            removing(seen);
            Reply::status(403)
        })
    });
    fleet.client.remove("src/upload.rs");
    fleet.client.commit("remove");
    fleet.call(&["index"]).expect(2);
    fleet.qdrant.mend();
    fleet.client.git(["revert", "--no-edit", "HEAD"]);
    fleet.index();
    fleet.call(&["verify"]).expect(0);
}

#[test]
fn storing_is_about_all_groups() {
    let fleet = Fleet::new();
    fleet.index();
    for command in ["index", "verify", "status"] {
        let refused = fleet.call(&[command, "--group", "web"]).expect(2).stderr;
        assert!(refused.contains("leave out --group"), "{refused}");
    }
    assert_eq!(fleet.qdrant.repositories().len(), 2);
    // A changed group counts when it is stored.
    let typed = format!("server={}", fleet.server.root().display());
    fleet.call(&["add", &typed, "--group", "web"]).expect(0);
    let partly = fleet.call(&["search", "Keep", "--group", "web", "--json"]).json();
    assert!(
        partly["incomplete_because"]
            .to_string()
            .contains("not stored yet: server"),
        "{partly}"
    );
    assert!(fleet.call(&["status"]).expect(1).text().contains("server  behind"));
    fleet.index();
    let found = fleet.call(&["search", "Keep", "--group", "web", "--json"]).json();
    assert_eq!(found["results"][0]["path"], "server:/store.go", "{found}");
}

#[test]
fn the_past_and_what_is_not_stored_are_refused() {
    let fleet = Fleet::new();
    fleet.client.write("src/new.rs", "pub fn not_committed() {}\n");
    let read = fleet.call(&["read", "client:src/new.rs"]).expect(2).stderr;
    assert!(read.contains("client is not stored"), "{read}");
    fleet.index();
    fleet.call(&["read", "client:src/new.rs"]).expect(2);
    for args in [
        &["search", "upload", "--in", "commits"][..],
        &["search", "upload", "--all-history"],
        &["search", "upload", "--ref", "HEAD~1"],
    ] {
        let refused = fleet.call(args).expect(2).stderr;
        assert!(refused.contains("--repo DIR, without fleet"), "{args:?}: {refused}");
    }
}

#[test]
fn a_gateway_follows_its_settings_and_opens_no_nested_repository() {
    let fleet = Fleet::new();
    let nested = TestRepo::new("\n//- secret.rs\npub fn nested_secret() {}\n");
    let inside = fleet.client.path("vendor");
    std::fs::create_dir(&inside).unwrap();
    fleet
        .client
        .git(["clone", "-q", nested.root().to_str().unwrap(), "vendor/secret"]);
    fleet.index();
    let option = format!("--fleet={}", fleet.folder.display());
    let mut client = Client::start(fleet.folder.parent().unwrap(), &[option.as_str(), "--group", "web"]);
    client.initialize("test");
    let question = json!({"query": "canary_of_web"});
    let found = client.call("search", question.clone()).facts;
    assert_eq!(found["results"][0]["path"], "client:/src/canary.rs", "{found}");
    let place = inside.join("secret").display().to_string();
    let refused = client
        .call("search", json!({"query": "nested_secret", "repo": place}))
        .failure();
    assert!(refused.contains("is refused"), "{refused}");
    // A repository that is taken out of the group is not shown any more.
    let settings = std::fs::read_to_string(fleet.folder.join("fleet.toml")).unwrap();
    let changed = settings.replace("web = \"client\"", "web = \"server\"");
    assert_ne!(settings, changed);
    std::fs::write(fleet.folder.join("fleet.toml"), changed).unwrap();
    let found = client.call("search", question).facts;
    assert!(!found.to_string().contains("canary.rs"), "{found}");
}

#[test]
fn fleets_on_one_server_do_not_meet() {
    let fleet = Fleet::new();
    fleet.index();
    let other = fleet.client.beside("other-fleet");
    std::fs::create_dir_all(&other).unwrap();
    std::fs::copy(fleet.folder.join("fleet.toml"), other.join("fleet.toml")).unwrap();
    let call = |args: &[&str]| {
        let args = [&["fleet", "--dir", other.to_str().unwrap()], args].concat();
        call_in(fleet.folder.parent().unwrap(), &args, b"")
    };
    call(&["index"]).expect(0);
    call(&["remove", "client"]).expect(0);
    call(&["index"]).expect(0);
    fleet.call(&["verify"]).expect(0);
    assert_eq!(fleet.found("retry_upload")[0], "client:/src/upload.rs");
    // A member that does not exist is a typing error, which would hide a repository.
    let settings = std::fs::read_to_string(other.join("fleet.toml")).unwrap();
    std::fs::write(
        other.join("fleet.toml"),
        settings.replace("core = \"server\"", "core = \"sever\""),
    )
    .unwrap();
    let refused = call(&["list"]).expect(2).stderr;
    assert!(refused.contains("\"sever\"") && refused.contains("server"), "{refused}");
}

#[test]
fn patterns_without_a_name_match_in_each_repository() {
    let fleet = Fleet::new();
    fleet.index();
    for pattern in ["src/**", "client:/src/**", "**/upload.rs"] {
        let found = fleet
            .call(&["grep", "retry_upload", "--path", pattern])
            .expect(0)
            .text();
        assert!(found.contains("client:/src/upload.rs"), "{pattern}: {found}");
    }
    assert_eq!(fleet.call(&["grep", "retry_upload", "--path", "!src/**"]).code, 1);
}
