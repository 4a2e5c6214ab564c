//! A language server for tests. It is this test program, which a script on the search path starts as
//! `pyright-langserver`.
//!
//! It finds references by comparing words, once it has "read" the project.

#![allow(clippy::print_stderr, reason = "messages of tests")]

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::io::{BufRead, BufReader, Write, stdin, stdout};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{is_part, python_files};

/// The variable with the faults of the server, and that with the folder for its notes.
pub(super) const FAULTS: &str = "CODESCOUT_FAKE_SERVER";
pub(super) const NOTES: &str = "CODESCOUT_FAKE_SERVER_NOTES";

/// The time that a `late` server takes to read the project.
const READING: Duration = Duration::from_millis(1500);

#[test]
fn serves_if_started_as_server() {
    if let (Ok(faults), Some(notes)) = (std::env::var(FAULTS), std::env::var_os(NOTES)) {
        let faults = faults.split(',').map(str::to_owned).collect();
        Fake::new(faults, PathBuf::from(notes)).serve();
        // The test program would print a summary.
        std::process::exit(0);
    }
}

#[derive(Clone)]
struct Fake {
    faults: BTreeSet<String>,
    notes: PathBuf,
    root: PathBuf,
    /// The time at which the project has been read.
    is_read_at: Option<Instant>,
    out: Arc<Mutex<()>>,
    /// Messages that arrived while it waited for another.
    later: VecDeque<Value>,
}

impl Fake {
    fn new(faults: BTreeSet<String>, notes: PathBuf) -> Self {
        Self {
            faults,
            notes,
            root: PathBuf::new(),
            is_read_at: None,
            out: Arc::default(),
            later: VecDeque::new(),
        }
    }

    fn has(&self, fault: &str) -> bool {
        self.faults.contains(fault)
    }

    fn note(&self, name: &str) {
        let mut file = fs::File::options()
            .create(true)
            .append(true)
            .open(self.notes.join(name));
        writeln!(file.as_mut().unwrap(), "{}", std::process::id()).unwrap();
    }

    fn serve(mut self) {
        self.note("started");
        eprintln!("the fake server has started");
        let mut from = BufReader::new(stdin());
        while let Some(message) = self.later.pop_front().or_else(|| read(&mut from)) {
            match message["method"].as_str() {
                Some("shutdown") if self.has("stubborn") => loop {
                    thread::sleep(READING);
                },
                Some("exit") => return,
                Some(method) if message.get("id").is_some() => {
                    let result = self.answer(method, &message["params"], &mut from);
                    self.reply(&message["id"], result);
                }
                Some("initialized") => self.begin(),
                Some("textDocument/didChange") => self.note("edited"),
                Some("workspace/didChangeWatchedFiles") => {
                    let changes = message["params"]["changes"].to_string();
                    fs::write(self.notes.join("changes"), changes).unwrap();
                }
                Some(_) | None => {}
            }
        }
    }

    fn reply(&self, id: &Value, result: Value) {
        if self.has("wrong_ids") {
            self.send(&json!({"jsonrpc": "2.0", "id": 987_654_321, "result": []}));
            self.send(&json!({"jsonrpc": "2.0", "id": "text", "result": []}));
            self.send(&json!([1, 2]));
        }
        if self.has("flood") {
            let params = json!({"type": 4, "message": "x".repeat(200)});
            let message = json!({"jsonrpc": "2.0", "method": "window/logMessage", "params": params});
            (0..2000).for_each(|_| self.send(&message));
        }
        let is_refused = result == json!("refused");
        let (key, value) = if is_refused {
            ("error", json!({"code": -32801, "message": "content modified"}))
        } else {
            ("result", result)
        };
        self.send(&json!({"jsonrpc": "2.0", "id": id, key: value}));
    }

    fn send(&self, message: &Value) {
        let _one_at_a_time = self.out.lock().unwrap();
        let body = message.to_string();
        let mut bytes = Vec::new();
        if self.has("logs") {
            bytes.extend(b"[info] thinking\n\n".repeat(20));
        }
        bytes.extend(
            format!(
                "Content-Length: {}\r\nContent-Type: application/vscode-jsonrpc\r\n\r\n{body}",
                body.len()
            )
            .bytes(),
        );
        let size = if self.has("fragments") { 3 } else { bytes.len() };
        let mut out = stdout().lock();
        for part in bytes.chunks(size) {
            out.write_all(part).unwrap();
            out.flush().unwrap();
        }
    }

    /// Starts to read the project.
    fn begin(&mut self) {
        if self.has("grows") {
            thread::spawn(|| {
                let mut kept: Vec<Vec<u8>> = Vec::new();
                loop {
                    kept.push(vec![1; 32 << 20]);
                    thread::sleep(Duration::from_millis(100));
                }
            });
        }
        let found = json!({"type": 3, "message": "Found 3 source files"});
        self.send(&json!({"jsonrpc": "2.0", "method": "window/logMessage", "params": found}));
        if !self.has("late") {
            self.is_read_at = Some(Instant::now());
            return;
        }
        self.is_read_at = Some(Instant::now() + READING);
        let fake = self.clone();
        thread::spawn(move || {
            let progress = |value: Value| {
                let params = json!({"token": 7, "value": value});
                fake.send(&json!({"jsonrpc": "2.0", "method": "$/progress", "params": params}));
            };
            // It is silent at first, as real ones are.
            thread::sleep(READING / 4);
            progress(json!({"kind": "begin", "title": "Reading"}));
            thread::sleep(READING / 4);
            progress(json!({"kind": "report", "percentage": 40}));
            thread::sleep(READING / 4);
            progress(json!({"kind": "end"}));
        });
    }

    fn answer(&mut self, method: &str, params: &Value, from: &mut impl BufRead) -> Value {
        match method {
            "initialize" => {
                if self.has("hang") {
                    thread::sleep(Duration::from_secs(600));
                }
                let root = params["workspaceFolders"][0]["uri"].as_str().unwrap();
                self.root = PathBuf::from(root.strip_prefix("file://").unwrap());
                let encoding = if self.has("utf8") { "utf-8" } else { "utf-16" };
                json!({"capabilities": {"positionEncoding": encoding}, "serverInfo": {"name": "fake", "version": "1.2"}})
            }
            "textDocument/references" | "textDocument/definition" => {
                self.fail_sometimes(method, from);
                let refused = self.notes.join("refused");
                if self.has("busy") && !refused.exists() {
                    fs::write(refused, "").unwrap();
                    return json!("refused");
                }
                if method == "textDocument/references" && self.is_read_at.is_none_or(|at| Instant::now() < at) {
                    return json!([]);
                }
                self.found(method, params)
            }
            _ => Value::Null,
        }
    }

    fn fail_sometimes(&mut self, method: &str, from: &mut impl BufRead) {
        let is_first = !self.notes.join("crashed").exists();
        if self.has("crash_always") || self.has("crash_once") && is_first {
            self.note("crashed");
            eprintln!("the fake server crashes");
            std::process::exit(3);
        }
        if self.has("asks_much") {
            for n_items in [2_000, 600_000] {
                let params = json!({"items": vec![json!({}); n_items]});
                self.send(
                    &json!({"jsonrpc": "2.0", "id": "many", "method": "workspace/configuration", "params": params}),
                );
                while let Some(message) = read(from) {
                    if message["id"] == "many" {
                        fs::write(self.notes.join("many"), message.to_string()).unwrap();
                        break;
                    }
                }
            }
        }
        if self.has("asks_back") && method == "textDocument/references" {
            let items = json!({"items": [{"section": "python.analysis"}, {"section": "other"}]});
            let asked = [
                ("workspace/configuration", items),
                ("workspace/workspaceFolders", Value::Null),
                ("workspace/applyEdit", json!({"edit": {}})),
                ("client/registerCapability", json!({"registrations": []})),
                ("window/showMessageRequest", json!({"type": 1, "message": "?"})),
                ("fake/unknown", json!({})),
            ];
            for (method, params) in asked {
                self.send(&json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params}));
                let reply = loop {
                    let message = read(from).unwrap();
                    if message["id"] == method {
                        break message;
                    }
                    self.later.push_back(message);
                };
                fs::write(self.notes.join(method.replace('/', "-")), reply.to_string()).unwrap();
            }
        }
    }

    /// Returns the places of the word at a position.
    fn found(&self, method: &str, params: &Value) -> Value {
        let uri = params["textDocument"]["uri"].as_str().unwrap();
        let text = fs::read_to_string(uri.strip_prefix("file://").unwrap()).unwrap();
        let number = |name: &str| usize::try_from(params["position"][name].as_u64().unwrap()).unwrap();
        let line = text.lines().nth(number("line")).unwrap();
        let at = self.bytes_of(line, number("character"));
        let word: String = line[at..].chars().take_while(|c| is_part(*c)).collect();
        if word == "elsewhere" {
            return json!({"uri": "file:///usr/lib/elsewhere.py", "range": range(0, 0, 4)});
        }
        let definition = format!("def {word}(");
        let mut found = Vec::new();
        for path in python_files(&self.root) {
            for (number, line) in fs::read_to_string(&path).unwrap().lines().enumerate() {
                let is_wanted = line.contains(&definition) == (method == "textDocument/definition");
                for start in words(line, &word).filter(|_| is_wanted) {
                    let columns = [start, start + word.len()].map(|byte| self.units_of(&line[..byte]));
                    found.push(json!({"uri": uri_of(&path), "range": range(number, columns[0], columns[1])}));
                }
            }
        }
        Value::Array(found)
    }

    fn units_of(&self, text: &str) -> usize {
        if self.has("utf8") {
            text.len()
        } else {
            text.encode_utf16().count()
        }
    }

    fn bytes_of(&self, line: &str, units: usize) -> usize {
        (0..=line.len())
            .find(|byte| line.is_char_boundary(*byte) && self.units_of(&line[..*byte]) == units)
            .unwrap()
    }
}

fn range(line: usize, start: usize, end: usize) -> Value {
    json!({"start": {"line": line, "character": start}, "end": {"line": line, "character": end}})
}

fn uri_of(path: &Path) -> String {
    format!("file://{}", path.display())
}

fn words<'a>(line: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    line.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |at| !line[..*at].ends_with(is_part) && !line[at + word.len()..].starts_with(is_part))
}

fn read(from: &mut impl BufRead) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        from.read_line(&mut line).ok().filter(|n| *n > 0)?;
        if let Some(number) = line.strip_prefix("Content-Length:") {
            length = number.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}
