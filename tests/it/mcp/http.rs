//! Tests the HTTP server: authorization, rejected requests, and that answers are the same as over standard input and
//! output.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::{Client, HIDDEN, LEGACY, MODERN, command, modern_meta, project};
use crate::cli::call;
use crate::support::{InTime, Printed, TestRepo, kill, wait_for_end, wait_until};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A running HTTP server.
pub(crate) struct Server {
    child: Child,
    address: SocketAddr,
    /// The lines that it printed to standard error before it listened.
    said: Vec<String>,
}

/// An HTTP response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Response {
    /// Parses the JSON of the body, or of the last event of a stream.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let mut events = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        let text = events.rfind(|data| !data.is_empty()).unwrap_or(&self.body);
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .into_iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }
}

impl Server {
    pub(crate) fn start(folder: &Path, args: &[&str], token: Option<&str>) -> Self {
        let mut all = vec!["serve", "--http", "127.0.0.1:0", "-v"];
        all.extend(args);
        let mut command = command(folder, &all);
        if let Some(token) = token {
            command.env("CODESCOUT_TOKEN", token);
        }
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut printed = Printed::on(child.stderr.take().unwrap());
        let mut server = Self {
            child,
            address: SocketAddr::from(([0; 4], 0)),
            said: Vec::new(),
        };
        while server.address.port() == 0 {
            let line = printed.up_to("\n");
            server.said.push(line.trim_end().to_owned());
            if let Some(rest) = line.split("http://").nth(1) {
                server.address = rest.split('/').next().unwrap().parse().unwrap();
            }
        }
        server
    }

    /// Sends a request, with the headers that HTTP requires in addition, and reads the whole response.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Response {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nContent-Length: {}\r\nConnection: close\r\n",
            body.len()
        );
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head.push_str(&format!("Host: {}\r\n", self.address));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        // The server may respond and close the connection before it has read everything.
        let _ = stream
            .write_all(format!("{head}\r\n").as_bytes())
            .and_then(|()| stream.write_all(body.as_bytes()));
        let text = String::from_utf8_lossy(&Printed::on(stream).all()).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .unwrap_or(0);
        let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        Response {
            status,
            head: head.to_owned(),
            body: if is_chunked { unchunked(body) } else { body.to_owned() },
        }
    }

    /// Sends a request of the newer protocol revision with additional headers.
    pub(crate) fn modern(&self, method: &str, mut params: Value, headers: &[(&str, &str)]) -> Response {
        params["_meta"] = modern_meta("test");
        let name = params["name"].as_str().or(params["uri"].as_str()).map(str::to_owned);
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let mut all = vec![
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("MCP-Protocol-Version", MODERN),
            ("Mcp-Method", method),
        ];
        if let Some(name) = &name {
            all.push(("Mcp-Name", name));
        }
        all.retain(|(name, _)| !headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name)));
        all.extend(headers);
        self.send("POST", "/mcp", &all, &body)
    }

    fn stop(mut self) -> bool {
        let killed = std::process::Command::new("kill")
            .arg("-TERM")
            .arg(self.child.id().to_string())
            .status_in_time();
        killed.unwrap().success() && wait_for_end(&mut self.child).success()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        kill(&mut self.child);
    }
}

fn unchunked(body: &str) -> String {
    let mut text = String::new();
    let mut rest = body;
    while let Some((size, after)) = rest.split_once("\r\n") {
        let Ok(size) = usize::from_str_radix(size.trim(), 16) else {
            break;
        };
        if size == 0 {
            break;
        }
        text.push_str(after.get(..size).unwrap_or(after));
        rest = after.get(size + 2..).unwrap_or("");
    }
    text
}

pub(crate) fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

#[test]
fn a_token_is_needed() {
    let repo = project();
    let server = Server::start(repo.root(), &[], Some(TOKEN));
    let list = |headers: &[(&str, &str)]| server.modern("tools/list", json!({}), headers);
    for wrong in [
        None,
        Some("Bearer wrong"),
        Some("Basic abc"),
        Some("Bearer "),
        Some(TOKEN),
    ] {
        let headers: Vec<(&str, &str)> = wrong.map(|value| ("Authorization", value)).into_iter().collect();
        let refused = list(&headers);
        assert_eq!(refused.status, 401, "{refused:?}");
        assert!(
            refused.header("WWW-Authenticate").unwrap().starts_with("Bearer"),
            "{refused:?}"
        );
        assert!(!refused.body.contains("search"));
    }
    let allowed = list(&[("Authorization", &bearer(TOKEN))]);
    assert_eq!(allowed.status, 200, "{allowed:?}");
    assert_eq!(allowed.json()["result"]["tools"][0]["name"], "search");
    assert!(
        !server.said.iter().any(|line| line.contains(TOKEN)),
        "{:?}",
        server.said
    );
    assert!(server.stop());
}

#[test]
fn the_token_in_the_sidecar_outlives_the_server_and_one_that_cannot_listen() {
    let repo = project();
    call(&repo, &["index"]).expect(0);
    let server = Server::start(repo.root(), &[], None);
    let token = fs::read_to_string(repo.path(".codescout/serve-token")).unwrap();
    let taken = server.address.to_string();
    let second = command(repo.root(), &["serve", "--http", &taken])
        .output_in_time()
        .unwrap();
    assert_eq!(second.status.code(), Some(2), "{second:?}");
    assert!(server.stop());
    let again = Server::start(repo.root(), &[], None);
    let headers = [("Authorization", &*bearer(token.trim()))];
    assert_eq!(again.modern("tools/list", json!({}), &headers).status, 200);
    assert!(
        again.said.iter().any(|line| line.contains("serve-token")),
        "{:?}",
        again.said
    );
    assert!(again.stop());
    let verified = call(&repo, &["verify", "--json"]).expect(0).json();
    assert_eq!(verified["unknown"], json!([]));
}

#[test]
fn a_token_that_came_with_the_sidecar_is_replaced() {
    let repo = project();
    call(&repo, &["index"]).expect(0);
    let file = repo.path(".codescout/serve-token");
    fs::write(&file, format!("{TOKEN}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let server = Server::start(repo.root(), &[], None);
    let headers = [("Authorization", &*bearer(TOKEN))];
    assert_eq!(server.modern("tools/list", json!({}), &headers).status, 401);
    assert_ne!(fs::read_to_string(&file).unwrap().trim(), TOKEN);
    assert!(server.stop());
}

#[test]
fn a_generated_token_is_kept_where_only_its_owner_reads() {
    let repo = project();
    let file = repo.root().parent().unwrap().join("token");
    let server = Server::start(repo.root(), &["--token-file", file.to_str().unwrap()], None);
    let token = fs::read_to_string(&file).unwrap().trim().to_owned();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(token.len() >= 32);
    assert!(
        server.said.iter().any(|line| line.contains(&token)),
        "{:?}",
        server.said
    );
    let call = |server: &Server| {
        server
            .modern("tools/list", json!({}), &[("Authorization", &bearer(&token))])
            .status
    };
    assert_eq!(call(&server), 200);
    assert!(server.stop());
    // The next server uses the same token.
    assert_eq!(
        call(&Server::start(
            repo.root(),
            &["--token-file", file.to_str().unwrap()],
            None
        )),
        200
    );
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let refused = command(
        repo.root(),
        &["serve", "--http", "127.0.0.1:0", "--token-file", file.to_str().unwrap()],
    )
    .output_in_time()
    .unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("readable by other users"));
}

#[test]
fn a_public_address_without_a_token_is_refused() {
    let repo = project();
    let refused = |args: &[&str]| {
        let output = command(repo.root(), args).output_in_time().unwrap();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (code, said) = refused(&["serve", "--http", "0.0.0.0:0", "--no-token"]);
    assert!(code == Some(2) && said.contains("requires a token"), "{code:?} {said}");
    let (code, said) = refused(&["serve", "--http", "no address", "--no-token"]);
    assert!(code == Some(2) && said.contains("invalid address"), "{code:?} {said}");
    let (code, _) = refused(&["serve", "--no-token"]);
    assert_eq!(code, Some(2));
}

#[test]
fn hostile_origins_and_hosts_are_refused() {
    let repo = project();
    let server = Server::start(repo.root(), &["--no-token"], None);
    let list = |headers: &[(&str, &str)]| server.modern("tools/list", json!({}), headers).status;
    assert_eq!(list(&[]), 200);
    for origin in [
        "http://localhost:3000",
        "http://127.0.0.1:8808",
        "http://[::1]:1",
        "https://localhost:3000",
        "https://localhost",
    ] {
        assert_eq!(list(&[("Origin", origin)]), 200, "{origin}");
    }
    for origin in [
        "http://evil.example",
        "null",
        "http://localhost.evil.example",
        "https://127.0.0.1.nip.io",
        "http://localhost:80.evil.com",
        "http://[::1].evil",
        "http://user@localhost",
        "file://",
    ] {
        assert_eq!(list(&[("Origin", origin)]), 403, "{origin}");
    }
    for host in [
        "evil.example",
        "evil.example:80",
        "localhost.evil.example",
        "127.0.0.1.nip.io",
        "[::1].evil",
        "[::1]:80.evil",
        "localhost:80.evil.com",
        "localhost:65536",
        "user@localhost",
    ] {
        assert_eq!(list(&[("Host", host)]), 403, "{host}");
    }
    assert_eq!(list(&[("Host", "localhost:1")]), 200);
    assert_eq!(list(&[("Host", "[::1]:1")]), 200);
    assert_eq!(list(&[("Host", "localhost"), ("Host", "localhost")]), 403);
    assert_eq!(
        list(&[("Origin", "http://localhost"), ("Origin", "http://localhost")]),
        403
    );
    assert_eq!(server.send("POST", "/", &[], "{}").status, 404);
    assert_eq!(server.send("PUT", "/mcp", &[], "{}").status, 405);
}

#[test]
fn headers_and_body_have_to_agree() {
    let repo = project();
    let server = Server::start(repo.root(), &["--no-token"], None);
    let call =
        |headers: &[(&str, &str)]| server.modern("tools/call", json!({"name": "status", "arguments": {}}), headers);
    assert_eq!(call(&[]).status, 200);
    for headers in [
        [("Mcp-Method", "tools/list")],
        [("Mcp-Name", "search")],
        [("MCP-Protocol-Version", LEGACY)],
    ] {
        let refused = call(&headers);
        assert_eq!(refused.status, 400, "{headers:?} {refused:?}");
        assert_eq!(refused.json()["error"]["code"], -32020, "{headers:?} {refused:?}");
    }
    let unknown = server.modern("tools/eat", json!({}), &[]);
    assert_eq!(
        (unknown.status, &unknown.json()["error"]["code"]),
        (404, &json!(-32601))
    );
    for (method, path, body) in [
        ("POST", "/mcp", "not json"),
        ("POST", "/mcp", ""),
        ("POST", "/mcp", "[]"),
    ] {
        let headers = [
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        let refused = server.send(method, path, &headers, body);
        assert!((400..500).contains(&refused.status), "{body:?} {refused:?}");
    }
    let huge = server.modern(
        "tools/call",
        json!({"name": "search", "arguments": {"query": "x".repeat(4 << 20)}}),
        &[],
    );
    assert!(huge.status == 413 || huge.status == 0, "{}", huge.status);
    assert_eq!(call(&[]).status, 200);
}

/// Starts a session of the older protocol revision and returns its id.
fn legacy_session(server: &Server, headers: &[(&str, &str)]) -> String {
    let hello = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    });
    let initialized = server.send("POST", "/mcp", headers, &hello.to_string());
    assert_eq!(initialized.status, 200, "{initialized:?}");
    initialized.header("Mcp-Session-Id").unwrap().to_owned()
}

#[test]
fn both_eras_are_served() {
    let repo = project();
    let server = Server::start(repo.root(), &["--no-token"], None);
    let answer = search_until_complete(&server);
    assert_eq!(
        answer["structuredContent"]["results"][0]["path"], "src/lexer.rs",
        "{answer}"
    );
    let headers = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
    ];
    let session = legacy_session(&server, &headers);
    let mut headers = headers.to_vec();
    headers.push(("Mcp-Session-Id", &session));
    headers.push(("MCP-Protocol-Version", LEGACY));
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}).to_string();
    let listed = server.send("POST", "/mcp", &headers, &list);
    assert_eq!(listed.json()["result"]["tools"][0]["name"], "search", "{listed:?}");
    let gone = [
        headers[0],
        headers[1],
        ("Mcp-Session-Id", "no-such-session"),
        headers[3],
    ];
    assert_eq!(server.send("POST", "/mcp", &gone, &list).status, 404);
}

#[test]
fn no_message_contains_what_is_not_seen() {
    let hidden: String = HIDDEN.iter().collect();
    let repo = project();
    repo.write("hidden.txt", &hidden);
    let server = Server::start(repo.root(), &["--no-token"], None);
    let params = json!({"name": "read", "arguments": {"target": "hidden.txt"}});
    let mut headers = vec![
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
    ];
    let session = legacy_session(&server, &headers);
    headers.push(("Mcp-Session-Id", &session));
    headers.push(("MCP-Protocol-Version", LEGACY));
    let read = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}).to_string();
    for response in [
        server.modern("tools/call", params.clone(), &[]),
        server.send("POST", "/mcp", &headers, &read),
    ] {
        assert!(response.json()["result"].to_string().contains(&hidden), "{response:?}");
        assert!(!response.body.contains(HIDDEN), "{response:?}");
    }
    let line = Client::legacy(&repo, &[]).request("tools/call", params);
    assert!(line["result"].to_string().contains(&hidden), "{line}");
}

fn search_until_complete(server: &Server) -> Value {
    for _ in 0..100 {
        let call = json!({"name": "search", "arguments": {"query": "cut text into tokens"}});
        let answer = server.modern("tools/call", call, &[]).json()["result"].clone();
        if answer["structuredContent"]["complete"] == true {
            return answer;
        }
    }
    panic!("never complete");
}

#[test]
fn closing_the_connection_cancels_the_call() {
    let repo = TestRepo::new("//- README.md\n# Sample\n");
    super::write_much(&repo);
    let server = Server::start(repo.root(), &["--no-token"], None);
    let jobs = || {
        let call = json!({"name": "status", "arguments": {"op": "jobs"}});
        let answer = server.modern("tools/call", call, &[]).json();
        answer["result"]["structuredContent"]["results"][0]["state"]
            .as_str()
            .unwrap_or("none")
            .to_owned()
    };
    for has_token in [true, false] {
        let mut meta = modern_meta("test");
        if has_token {
            meta["progressToken"] = json!(1);
        }
        let params = json!({"name": "index", "arguments": {"wait": 100}, "_meta": meta});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {MODERN}\r\n\
             Mcp-Method: tools/call\r\nMcp-Name: index\r\n\r\n",
            server.address,
            body.len()
        );
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        wait_until("a build begins", || jobs() == "running");
        drop(stream);
        wait_until("the build without a caller ends", || jobs() != "running");
        assert_eq!(jobs(), "stopped");
    }
}

#[test]
fn many_clients_at_once_are_served() {
    let repo: TestRepo = project();
    let server = Server::start(repo.root(), &["--no-token"], None);
    search_until_complete(&server);
    std::thread::scope(|scope| {
        for _ in 0..50 {
            scope.spawn(|| {
                for _ in 0..4 {
                    let call = json!({"name": "search", "arguments": {"query": "tokens"}});
                    let response = server.modern("tools/call", call, &[]);
                    assert_eq!(response.status, 200, "{response:?}");
                    assert!(
                        !response.json()["result"]["structuredContent"]["results"]
                            .as_array()
                            .unwrap()
                            .is_empty()
                    );
                }
            });
        }
    });
    assert!(server.stop());
}

fn resident_kib(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn sessions_that_nobody_ends_do_not_fill_the_memory() {
    let repo = project();
    let server = Server::start(repo.root(), &["--no-token"], None);
    let headers = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
    ];
    let hello = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    })
    .to_string();
    let begin = || {
        let begun = server.send("POST", "/mcp", &headers, &hello);
        begun.header("Mcp-Session-Id").unwrap().to_owned()
    };
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}).to_string();
    let is_there = |session: &str| {
        let all = [
            &headers[..],
            &[("Mcp-Session-Id", session), ("MCP-Protocol-Version", LEGACY)],
        ]
        .concat();
        server.send("POST", "/mcp", &all, &list).status == 200
    };
    let (used, unused) = (begin(), begin());
    assert!(is_there(&used) && is_there(&unused));
    for number in 0..600 {
        begin();
        if number % 50 == 0 {
            assert!(is_there(&used), "{number}");
        }
    }
    assert!(!is_there(&unused));
    let before = resident_kib(&server);
    for _ in 0..600 {
        begin();
    }
    let grown = resident_kib(&server).saturating_sub(before);
    // If sessions were never closed, each would take 57 KiB, 34 MiB in total.
    assert!(!crate::support::is_long() || grown < 12 << 10, "{grown} KiB");
}

#[test]
fn who_has_no_token_cannot_keep_others_out() {
    let repo = project();
    let server = Server::start(repo.root(), &[], Some(TOKEN));
    let authorized = bearer(TOKEN);
    let list = || {
        server
            .modern("tools/list", json!({}), &[("Authorization", &authorized)])
            .status
    };
    assert_eq!(list(), 200);
    let silent: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(server.address).unwrap()).collect();
    assert_eq!(list(), 200);
    // The oldest connections were closed.
    let is_closed = |mut stream: &TcpStream| {
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        matches!(stream.read(&mut [0]), Ok(0) | Err(_))
    };
    assert!(is_closed(&silent[0]));
    drop(silent);
    // A client that sends the head of a request byte by byte is disconnected too, with or without a token.
    let mut slow = TcpStream::connect(server.address).unwrap();
    slow.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let began = std::time::Instant::now();
    slow.write_all(b"POST /mcp HTTP/1.1\r\n").unwrap();
    loop {
        let sent = slow.write_all(b"x: y\r\n");
        match slow.read(&mut [0; 512]) {
            Ok(0) => break,
            Err(error)
                if !matches!(
                    error.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                ) =>
            {
                break;
            }
            _ if sent.is_err() => break,
            _ => assert!(began.elapsed() < Duration::from_secs(60), "it is still open"),
        }
    }
    assert_eq!(list(), 200);
}
