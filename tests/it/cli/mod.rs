//! Tests the program as users and scripts run it.

mod advice;
mod bad_input;
mod blame;
mod commands;
mod completions;
mod diff;
mod docs;
mod doctor;
mod here;
mod history;
mod lost_objects;
mod paging;
mod quoting;
mod reading;
mod review;
mod search_time;
mod terminal;
mod traced;
mod watch;

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::support::{TestRepo, output_of, user_state};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_codescout");

/// The result of running the program.
pub(crate) struct Called {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Called {
    /// Returns standard output as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.stdout.clone()).unwrap()
    }

    /// Parses standard output, which must be one JSON object.
    pub(crate) fn json(&self) -> Value {
        let value: Value = serde_json::from_slice(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}\n{}", String::from_utf8_lossy(&self.stdout), self.stderr));
        assert!(value.is_object());
        value
    }

    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        let stdout = String::from_utf8_lossy(&self.stdout);
        assert_eq!(self.code, code, "stdout: {stdout}\nstderr: {}", self.stderr);
        self
    }
}

/// A program in a folder, cut off from the machine's settings.
pub(crate) fn command_in<S: AsRef<OsStr>>(program: &str, folder: &Path, args: &[S]) -> Command {
    let mut command = Command::new(program);
    command
        .args(args)
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", folder)
        .envs(user_state());
    command
}

/// Returns the command that runs the program in a folder, cut off from the machine's settings.
pub(crate) fn command<S: AsRef<OsStr>>(folder: &Path, args: &[S]) -> Command {
    command_in(PROGRAM, folder, args)
}

/// Starts the program without capturing its output.
pub(crate) fn spawn_in<S: AsRef<OsStr>>(folder: &Path, args: &[S]) -> Child {
    let mut command = command(folder, args);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Runs the program in a folder, isolated from the machine's settings.
pub(crate) fn call_in<S: AsRef<OsStr>>(folder: &Path, args: &[S], input: &[u8]) -> Called {
    let child = command_in(PROGRAM, folder, args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = output_of(child, input);
    Called {
        code: output.status.code().unwrap(),
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Runs the program in a repository.
pub(super) fn call(repo: &TestRepo, args: &[&str]) -> Called {
    call_in(repo.root(), args, b"")
}

/// Returns the commands in the program's help.
pub(crate) fn commands_in_help() -> Vec<String> {
    let nowhere = tempfile::tempdir().unwrap();
    let help = call_in(nowhere.path(), &["--help"], b"").expect(0).text();
    let lines = help.lines().filter_map(|line| line.strip_prefix("  "));
    let names = lines.filter_map(|line| line.split_whitespace().next());
    names.map(str::to_owned).collect()
}

/// Creates a small project with files of several kinds.
pub(super) fn project() -> TestRepo {
    let repo = TestRepo::new(
        "
        //- src/parser.rs
        use crate::lexer::Token;

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
        pub struct Token;

        /// Cuts text into tokens.
        pub fn lex(text: &str) -> Vec<Token> {
            // lex is not recursive
            Vec::new()
        }
        //- src/main.rs
        use parser::Parser;

        fn main() {
            Parser.parse(\"a TODO b\");
        }
        //- tests/parser_test.rs
        #[test]
        fn parse_is_called() {
            Parser.parse(\"x\");
        }
        //- vendor/lib.rs
        fn vendored_todo() {}
        //- README.md
        # Sample

        Words about parsing.

        ## Installation

        Run it.

        # Licence

        MIT
        //- Cargo.toml
        [package]
        name = \"sample\"
        //- Cargo.lock
        # locked todo
    ",
    );
    repo.tag("v1");
    repo
}
