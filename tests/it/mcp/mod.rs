//! Tests the tools as agents call them: the program runs as a child process and exchanges lines of JSON.

mod bad_input;
mod docs;
mod edit;
pub(crate) mod http;
mod past;
mod protocol;
mod quoting;
mod repositories;
mod tools;

use std::io::Write;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Printed, TestRepo, kill, user_state, wait_for_end};

/// Time limit that is reached only if something is wrong.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
pub(super) const MODERN: &str = "2026-07-28";
pub(super) const LEGACY: &str = "2025-11-25";

/// Characters that no message may contain unescaped.
pub(super) const HIDDEN: [char; 4] = ['\u{202e}', '\u{200b}', '\u{e0041}', '\u{9b}'];

/// Returns the command that runs the program in a folder, isolated from the machine's settings.
pub(super) fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_codescout"));
    command
        .args(args)
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", folder)
        .envs(user_state());
    command
}

/// A client of a server on standard input and output.
pub(crate) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    printed: Printed,
    next_id: i64,
    /// Messages that are not responses.
    pub(super) notifications: Vec<Value>,
}

impl Client {
    /// Starts a server in a folder without sending anything.
    pub(crate) fn start(folder: &Path, args: &[&str]) -> Self {
        let mut all = vec!["serve"];
        all.extend(args);
        let mut child = command(folder, &all)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let printed = Printed::on(child.stdout.take().unwrap());
        Self {
            input: child.stdin.take(),
            child,
            printed,
            next_id: 0,
            notifications: Vec::new(),
        }
    }

    /// Starts a client of the older protocol revision and initializes it.
    pub(super) fn legacy(repo: &TestRepo, args: &[&str]) -> Self {
        let mut client = Self::start(repo.root(), args);
        client.initialize("test");
        client
    }

    /// Sends the initialization and returns the response.
    pub(crate) fn initialize(&mut self, name: &str) -> Value {
        let params = json!({
            "protocolVersion": LEGACY,
            "capabilities": {},
            "clientInfo": {"name": name, "version": "1"},
        });
        let answer = self.request("initialize", params);
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        answer
    }

    /// Sends a line unchanged.
    pub(super) fn send_line(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.send_line(&message.to_string());
    }

    /// Sends a request without waiting. Returns its id.
    pub(crate) fn begin(&mut self, method: &str, params: Value) -> i64 {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Returns the next message of any kind.
    #[track_caller]
    pub(super) fn next(&mut self) -> Value {
        let line = self.printed.up_to("\n");
        let value = serde_json::from_str(&line).ok().filter(|_| !line.contains(HIDDEN));
        value.unwrap_or_else(|| json!({"not_json": line.trim_end()}))
    }

    /// Returns the response to a request. Stores notifications that precede it.
    pub(super) fn answer(&mut self, id: i64) -> Value {
        loop {
            let message = self.next();
            if message["id"] == id {
                return message;
            }
            self.notifications.push(message);
        }
    }

    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.answer(id)
    }

    /// Sends a request of the newer protocol revision, which contains the client's identity.
    pub(super) fn modern(&mut self, method: &str, mut params: Value) -> Value {
        params["_meta"] = modern_meta("test");
        self.request(method, params)
    }

    /// Calls a tool and returns its result.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Answer {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        Answer::of(answer)
    }

    /// Calls a tool until its answer is complete.
    pub(super) fn call_complete(&mut self, tool: &str, arguments: Value) -> Answer {
        for _ in 0..600 {
            let answer = self.call(tool, arguments.clone());
            let is_waiting = answer.text.contains("being indexed") || answer.text.contains("being built");
            if !is_waiting {
                return answer;
            }
            self.call("index", json!({"wait": 1}));
        }
        panic!("the index is never there");
    }

    /// Closes standard input and waits for the server to end. Returns the exit code.
    pub(super) fn close(mut self) -> Option<i32> {
        drop(self.input.take());
        self.wait()
    }

    /// Waits for the server to end. Returns the exit code, or `None` after a signal.
    pub(super) fn wait(&mut self) -> Option<i32> {
        wait_for_end(&mut self.child).code()
    }

    pub(crate) fn process_id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.input.take());
        kill(&mut self.child);
    }
}

pub(super) fn modern_meta(name: &str) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": name, "version": "1"},
    })
}

/// The answer of a tool.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) facts: Value,
}

impl Answer {
    #[track_caller]
    pub(super) fn of(message: Value) -> Self {
        let result = &message["result"];
        assert!(result.is_object(), "{message}");
        let is_failed = result["structuredContent"].get("error").is_some();
        assert_eq!(result["isError"] == true, is_failed, "{message}");
        Self {
            text: result["content"][0]["text"].as_str().unwrap().to_owned(),
            facts: result["structuredContent"].clone(),
        }
    }

    /// Returns the error message with the hint.
    #[track_caller]
    pub(crate) fn failure(&self) -> String {
        let error = self.facts["error"].as_str().unwrap_or_else(|| panic!("{self:?}"));
        format!("{error} | {}", self.facts["hint"].as_str().unwrap_or_default())
    }

    /// Returns the results.
    #[track_caller]
    pub(super) fn results(&self) -> &Vec<Value> {
        self.facts["results"].as_array().unwrap_or_else(|| panic!("{self:?}"))
    }

    /// Returns a field of every result.
    #[track_caller]
    pub(super) fn all(&self, field: &str) -> Vec<String> {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        self.results().iter().map(|result| text(&result[field])).collect()
    }
}

/// Starts a server with a running build, and a call that waits for the build.
pub(super) fn building() -> (TestRepo, Client, i64) {
    let repo = TestRepo::new("//- README.md\n# Sample\n");
    write_much(&repo);
    let mut client = Client::legacy(&repo, &[]);
    let params = json!({"name": "index", "arguments": {"wait": 100}, "_meta": {"progressToken": 1}});
    let id = client.begin("tools/call", params);
    // The first progress notification shows that the build has started.
    while client.next()["method"] != "notifications/progress" {}
    (repo, client, id)
}

/// Creates a small project with files of several kinds.
pub(super) fn project() -> TestRepo {
    let repo = TestRepo::new(
        "
        //- src/parser.rs
        use crate::lexer::lex;

        /// Turns text into queries.
        pub struct Parser;

        impl Parser {
            /// Parses one query.
            pub fn parse(&self, text: &str) -> usize {
                lex(text).len()
            }
        }

        pub fn parse() {}
        //- src/lexer.rs
        /// Cuts text into tokens.
        pub fn lex(text: &str) -> Vec<String> {
            // lex is not recursive
            text.split(' ').map(str::to_owned).collect()
        }
        //- tests/parser_test.rs
        #[test]
        fn parse_is_called() {
            Parser.parse(\"x\");
        }
        //- README.md
        # Sample

        Words about parsing.

        ## Installation

        Run it.
        //- Cargo.toml
        [package]
        name = \"sample\"
        //- .env
        PASSWORD=parse-me-not
        //- config/server.pem
        parse secret
    ",
    );
    repo.tag("v1");
    repo
}

/// Writes so many files that a build takes seconds.
pub(super) fn write_much(repo: &TestRepo) {
    for file in 0..800 {
        let body: String = (0..150)
            .map(|n| format!("pub fn f_{file}_{n}(x: u64) -> u64 {{\n    x + {n}\n}}\n\n"))
            .collect();
        repo.write(format!("src/part_{file}.rs"), &body);
    }
    repo.commit("many");
}
