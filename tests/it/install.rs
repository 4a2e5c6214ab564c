//! Tests `codescout install` and `codescout uninstall` for every client, each in a new home directory.
//!
//! The resulting files are parsed with other parsers than the program's: `serde_json` after removing comments, and the
//! `toml` crate.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{InTime, TestRepo};

const SECRET: &str = "sesame-open-1234";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Json,
    Toml,
    Yaml,
    /// YAML with other settings; `install_goose.rs` tests what is written.
    YamlMap,
}

/// The expected properties of a client: name, format, the section with a `/` before each inner field, the user's file
/// relative to the home directory, the project's file.
type Row = (&'static str, Form, &'static str, &'static str, Option<&'static str>);

const ROWS: [Row; 16] = [
    (
        "claude-code",
        Form::Json,
        "mcpServers",
        ".claude.json",
        Some(".mcp.json"),
    ),
    (
        "codex",
        Form::Toml,
        "mcp_servers",
        ".codex/config.toml",
        Some(".codex/config.toml"),
    ),
    (
        "cursor",
        Form::Json,
        "mcpServers",
        ".cursor/mcp.json",
        Some(".cursor/mcp.json"),
    ),
    (
        "vscode",
        Form::Json,
        "servers",
        ".xdg/Code/User/mcp.json",
        Some(".vscode/mcp.json"),
    ),
    (
        "gemini",
        Form::Json,
        "mcpServers",
        ".gemini/settings.json",
        Some(".gemini/settings.json"),
    ),
    (
        "zed",
        Form::Json,
        "context_servers",
        ".xdg/zed/settings.json",
        Some(".zed/settings.json"),
    ),
    (
        "opencode",
        Form::Json,
        "mcp",
        ".xdg/opencode/opencode.json",
        Some("opencode.json"),
    ),
    (
        "windsurf",
        Form::Json,
        "mcpServers",
        ".codeium/windsurf/mcp_config.json",
        None,
    ),
    (
        "cline",
        Form::Json,
        "mcpServers",
        ".xdg/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        None,
    ),
    (
        "continue",
        Form::Yaml,
        "mcpServers",
        ".continue/mcpServers/codescout.yaml",
        Some(".continue/mcpServers/codescout.yaml"),
    ),
    (
        "roo",
        Form::Json,
        "mcpServers",
        ".xdg/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
        Some(".roo/mcp.json"),
    ),
    (
        "amp",
        Form::Json,
        "amp.mcpServers",
        ".xdg/amp/settings.json",
        Some(".amp/settings.json"),
    ),
    (
        "junie",
        Form::Json,
        "mcpServers",
        ".junie/mcp/mcp.json",
        Some(".junie/mcp/mcp.json"),
    ),
    (
        "copilot-cli",
        Form::Json,
        "mcpServers",
        ".copilot/mcp-config.json",
        Some(".github/mcp.json"),
    ),
    ("openclaw", Form::Json, "mcp/servers", ".openclaw/openclaw.json", None),
    ("goose", Form::YamlMap, "extensions", ".xdg/goose/config.yaml", None),
];

/// Returns the first field of a section.
fn outer(section: &str) -> &str {
    section.split('/').next().unwrap()
}

/// Returns the servers in a configuration.
fn servers<'v>(configuration: &'v mut Value, section: &str) -> &'v mut serde_json::Map<String, Value> {
    let servers = configuration.pointer_mut(&format!("/{section}")).unwrap();
    servers.as_object_mut().unwrap()
}

/// The clients whose files may contain other entries, in formats that a parser of the tests knows.
fn merging() -> impl Iterator<Item = Row> {
    ROWS.into_iter().filter(|row| matches!(row.1, Form::Json | Form::Toml))
}

/// Clients that start the user's server in an arbitrary folder, so that the folders of repositories must be configured.
const ANYWHERE: [&str; 4] = ["cursor", "windsurf", "cline", "openclaw"];

fn stdio_entry(client: &str, command: &str, root: &Path) -> Value {
    let rooted = ["serve", "--root", root.to_str().unwrap()];
    match client {
        "cursor" => json!({"type": "stdio", "command": command, "args": rooted}),
        "windsurf" | "cline" | "openclaw" => json!({"command": command, "args": rooted}),
        "claude-code" | "vscode" | "copilot-cli" => json!({"type": "stdio", "command": command, "args": ["serve"]}),
        "opencode" => json!({"type": "local", "command": [command, "serve"]}),
        _ => json!({"command": command, "args": ["serve"]}),
    }
}

fn http_entry(client: &str, url: &str) -> Value {
    let headers = |token: &str| json!({"Authorization": format!("Bearer {token}")});
    let of_env = headers("${env:CODESCOUT_TOKEN}");
    match client {
        "claude-code" | "copilot-cli" => {
            json!({"type": "http", "url": url, "headers": headers("${CODESCOUT_TOKEN}")})
        }
        "openclaw" => json!({"transport": "streamable-http", "url": url, "headers": headers("${CODESCOUT_TOKEN}")}),
        "amp" => json!({"url": url, "headers": headers("${CODESCOUT_TOKEN}")}),
        "codex" => json!({"url": url, "bearer_token_env_var": "CODESCOUT_TOKEN"}),
        "cursor" => json!({"url": url, "headers": of_env}),
        "vscode" => json!({"type": "http", "url": url, "headers": of_env}),
        "gemini" => json!({"type": "http", "url": url, "headers": headers("$CODESCOUT_TOKEN")}),
        "zed" | "junie" => json!({"url": url}),
        "opencode" => json!({"type": "remote", "url": url, "headers": headers("{env:CODESCOUT_TOKEN}")}),
        "windsurf" => json!({"serverUrl": url, "headers": of_env}),
        "cline" => json!({"type": "streamableHttp", "url": url, "headers": of_env}),
        "roo" => json!({"type": "streamable-http", "url": url, "headers": of_env}),
        other => panic!("{other}"),
    }
}

/// A user with an own home directory and a repository.
pub(crate) struct User {
    home: TempDir,
    pub(crate) repo: TestRepo,
}

pub(crate) struct Called {
    code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Called {
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }
}

impl User {
    pub(crate) fn new() -> Self {
        Self {
            home: TempDir::with_prefix("codescout-home-").unwrap(),
            repo: TestRepo::new("//- a.txt\ntext\n"),
        }
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.home.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    pub(crate) fn call(&self, args: &[&str]) -> Called {
        let says_where = |arg: &&str| ["project", "--http", "--root"].contains(arg);
        let root = self.repo.root().to_str().unwrap();
        let has_to_say = args.contains(&"install") && args.iter().any(|arg| ANYWHERE.contains(arg));
        let roots: &[&str] = if has_to_say && !args.iter().any(says_where) {
            &["--root", root]
        } else {
            &[]
        };
        self.call_as_it_is(&[args, roots].concat())
    }

    pub(crate) fn call_as_it_is(&self, args: &[&str]) -> Called {
        let output = Command::new(env!("CARGO_BIN_EXE_codescout"))
            .args(args)
            .current_dir(self.repo.root())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home.path())
            .env("XDG_CONFIG_HOME", self.path(".xdg"))
            .env("XDG_STATE_HOME", self.path(".state"))
            .env("CODESCOUT_TOKEN", SECRET)
            .stdin(Stdio::null())
            .output_in_time()
            .unwrap();
        Called {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    #[track_caller]
    pub(crate) fn install(&self, args: &[&str]) -> Value {
        self.call(&[&["install", "--yes", "--json"], args].concat())
            .expect(0)
            .json()
    }

    #[track_caller]
    pub(crate) fn uninstall(&self, args: &[&str]) -> Value {
        self.call(&[&["uninstall", "--yes", "--json"], args].concat())
            .expect(0)
            .json()
    }

    /// Returns all files in the home directory and the worktree, except those of git and codescout's records.
    pub(crate) fn everything(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        list(self.home.path(), &mut found);
        list(self.repo.root(), &mut found);
        found
    }
}

/// Returns files with their bytes, links with their targets, and folders.
pub(crate) fn list(folder: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap();
        if name == ".git" || name == ".state" {
            continue;
        }
        if path.is_symlink() {
            let target = fs::read_link(&path).unwrap();
            found.insert(path, target.to_string_lossy().into_owned().into_bytes());
        } else if path.is_dir() {
            list(&path, found);
            found.insert(path, Vec::new());
        } else {
            found.insert(path.clone(), fs::read(path).unwrap());
        }
    }
}

/// Removes comments and trailing commas for a strict parser.
fn strict(text: &str) -> String {
    let mut strict = String::new();
    let mut rest = text.trim_start_matches('\u{feff}');
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '"' => {
                let mut is_escaped = false;
                let end = rest[1..].find(|c| {
                    let ends = c == '"' && !is_escaped;
                    is_escaped = c == '\\' && !is_escaped;
                    ends
                });
                end.unwrap() + 2
            }
            '/' if rest.starts_with("//") => {
                rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
                continue;
            }
            '/' if rest.starts_with("/*") => {
                rest = &rest[rest.find("*/").unwrap() + 2..];
                continue;
            }
            '}' | ']' => {
                let kept = strict.trim_end().trim_end_matches(',').len();
                strict.truncate(kept);
                1
            }
            other => other.len_utf8(),
        };
        strict.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    strict
}

fn parsed(form: Form, text: &str) -> Value {
    if text.trim_start_matches('\u{feff}').trim().is_empty() {
        return json!({});
    }
    match form {
        Form::Toml => {
            let table: toml::Table = toml::from_str(text.trim_start_matches('\u{feff}')).unwrap();
            serde_json::to_value(table).unwrap()
        }
        _ => serde_json::from_str(&strict(text)).unwrap_or_else(|error| panic!("{error}: {text}")),
    }
}

/// Existing configurations in many layouts. `SECTION` is replaced by the client's section.
fn samples(form: Form) -> Vec<(&'static str, &'static str)> {
    match form {
        Form::Yaml | Form::YamlMap => vec![("empty", ""), ("blank", "\n")],
        Form::Json => vec![
            ("empty", ""),
            ("blank", " \n\n"),
            ("object", "{}"),
            ("object over lines", "{\n}\n"),
            ("no section", "{\n    \"keep\": 1\n}"),
            ("empty section", "{\n  \"keep\": 1,\n  \"SECTION\": {}\n}\n"),
            (
                "others",
                "{\n  \"SECTION\": {\n    \"other\": {\n      \"command\": \"x\",\n      \"env\": {}\n    }\n  },\n  \"keep\": 1\n}\n",
            ),
            (
                "comments",
                "// mine\n{\n  /* about */ \"keep\": 1, // one\n  \"SECTION\": {\n    // other\n    \"other\": {\"command\": \"//x\"} // beside\n    /* last */\n  }\n}\n// end",
            ),
            (
                "lines of Windows",
                "{\r\n  \"SECTION\": {\r\n    \"other\": {}\r\n  },\r\n  \"keep\": 1\r\n}\r\n",
            ),
            (
                "tabs",
                "{\n\t\"keep\": 1,\n\t\"SECTION\": {\n\t\t\"other\": {\n\t\t\t\"command\": \"x\"\n\t\t}\n\t}\n}\n",
            ),
            (
                "trailing commas",
                "{\n  \"SECTION\": {\n    \"other\": {\"args\": [\"a\",],},\n  },\n  \"keep\": 1,\n}\n",
            ),
            ("mark", "\u{feff}{\n  \"keep\": 1\n}\n"),
            ("one line", "{\"keep\":1,\"SECTION\":{\"other\":{\"command\":\"é\"}}}"),
        ],
        Form::Toml => vec![
            ("empty", ""),
            ("blank", "\n\n"),
            ("no section", "keep = 1 # one"),
            (
                "others",
                "keep = 1\n\n[SECTION.other]\ncommand = \"x\"\n\n[SECTION.other.env]\nA = \"b\"\n\n[projects.\"/a b\"]\ntrust_level = \"trusted\"\n",
            ),
            (
                "comments",
                "# mine\nkeep = 1\n\n# about the other\n[SECTION.other] # here\ncommand = \"\"\"\n[SECTION.codescout]\n\"\"\" # there\n\n# last\n",
            ),
            (
                "lines of Windows",
                "keep = 1\r\n\r\n[SECTION.other]\r\ncommand = \"x\"\r\n",
            ),
            ("tabs", "keep = 1\n[SECTION.other]\n\targs = [\n\t\t\"a\",\n\t]\n"),
            ("mark", "\u{feff}keep = 1\n"),
        ],
    }
}

#[test]
fn every_client_takes_the_entry_in_every_layout_and_gives_it_back() {
    // Each call waits for the disk, so running them in parallel is faster.
    std::thread::scope(|scope| {
        for row in merging() {
            scope.spawn(move || takes_and_gives_back(row));
        }
    });
}

fn takes_and_gives_back((client, form, section, file, _): Row) {
    let user = User::new();
    let program = env!("CARGO_BIN_EXE_codescout");
    let expected = stdio_entry(
        client,
        &fs::canonicalize(program).unwrap().to_string_lossy(),
        &fs::canonicalize(user.repo.root()).unwrap(),
    );
    for (sample, text) in samples(form) {
        let before = text.replace("SECTION", outer(section));
        user.write(file, &before);
        let all = user.everything();
        let about = format!("{client}, {sample}");

        let answer = user.install(&[client]);
        assert_eq!(answer["changed"], true, "{about}");
        assert_eq!(answer["files"][0]["act"], "edit", "{about}");
        let installed = user.read(file);
        let mut found = parsed(form, &installed);
        let servers = servers(&mut found, section);
        assert_eq!(servers.shift_remove("codescout"), Some(expected.clone()), "{about}");
        let old = parsed(form, &before);
        let mut path = format!("/{section}");
        while !path.is_empty() && old.pointer(&path).is_none() {
            assert_eq!(found.pointer(&path), Some(&json!({})), "{about}");
            let (parent, key) = path.rsplit_once('/').unwrap();
            found
                .pointer_mut(parent)
                .unwrap()
                .as_object_mut()
                .unwrap()
                .shift_remove(key);
            path.truncate(parent.len());
        }
        if old != json!({}) {
            assert_eq!(found, old, "{about}");
            assert_eq!(before.contains("\r\n"), installed.contains("\r\n"), "{about}");
            let n_newlines = installed.matches('\n').count();
            let n_windows = installed.matches("\r\n").count();
            assert!(n_windows == 0 || n_windows == n_newlines, "{about}: {installed:?}");
            let without_commas = installed.replace(',', "");
            let lines = before
                .lines()
                .map(|line| line.trim().replace(',', "").trim_end_matches('}').to_owned());
            for line in lines {
                assert!(without_commas.contains(&line), "{about}: {line} is gone:\n{installed}");
            }
        }

        assert_eq!(user.install(&[client])["changed"], false, "{about}");
        assert_eq!(user.read(file), installed, "{about}");

        user.uninstall(&[client]);
        assert_eq!(user.everything(), all, "{about}");
        user.call(&["uninstall", client, "--yes"]).expect(1);
        assert_eq!(user.everything(), all, "{about}");
    }
}

#[test]
fn files_that_were_not_there_go_again_with_their_folders() {
    let user = User::new();
    let before = user.everything();
    for (client, form, section, file, project) in ROWS {
        let scope = if ["cursor", "zed", "junie"].contains(&client) {
            "project"
        } else {
            "user"
        };
        // OpenClaw has skills, but no instruction file of its own.
        let more: &[&str] = if client == "openclaw" {
            &["--with", "skill"]
        } else {
            &["--instructions"]
        };
        let answer = user.install(&[&[client, "--scope", scope], more].concat());
        assert_eq!(answer["files"][0]["act"], "create", "{client}");
        assert_eq!(answer["files"][1]["act"], "create", "{client}");
        user.uninstall(&[client, "--scope", answer["scope"].as_str().unwrap()]);
        assert_eq!(user.everything(), before, "{client}");

        user.install(&[client]);
        if form == Form::YamlMap {
            assert!(user.read(file).starts_with("extensions:\n  codescout:\n"));
        } else if form != Form::Yaml {
            assert!(
                servers(&mut parsed(form, &user.read(file)), section)["codescout"].is_object(),
                "{client}"
            );
        }
        user.uninstall(&[client]);
        assert_eq!(user.everything(), before, "{client}");

        let Some(file) = project else { continue };
        user.install(&[client, "--scope", "project"]);
        let text = fs::read_to_string(user.repo.path(file)).unwrap();
        assert!(
            text.contains("\"codescout\"") || text.contains("command: codescout"),
            "{client}: {text}"
        );
        let machine = [
            user.home.path(),
            user.repo.root(),
            Path::new(env!("CARGO_BIN_EXE_codescout")),
        ];
        for path in machine {
            assert!(
                !text.contains(path.to_str().unwrap()),
                "{client} has a path of this machine: {text}"
            );
        }
        user.uninstall(&[client, "--scope", "project"]);
        assert_eq!(user.everything(), before, "{client}");
    }
}

#[test]
fn what_others_changed_meanwhile_stays() {
    let user = User::new();
    for (client, form, section, file, _) in merging() {
        let samples = samples(form).into_iter().filter(|(_, text)| text.contains("keep"));
        for (sample, text) in samples {
            let before = text.replace("SECTION", outer(section));
            user.write(file, &before);
            user.install(&[client]);
            let changed = user.read(file).replacen("keep", "kept", 1);
            user.write(file, &changed);
            user.uninstall(&[client]);
            let expected = before.replacen("keep", "kept", 1);
            let found = user.read(file);
            match sample {
                // A line break at the end of the file was added, which belongs to no entry.
                "no section" if form == Form::Toml => assert_eq!(found.trim_end(), expected, "{client}"),
                // An outer section that was empty goes with the inner one that was added.
                "empty section" if section != outer(section) => {
                    assert_eq!(parsed(form, &found), json!({"kept": 1}), "{client}");
                }
                _ => assert_eq!(found, expected, "{client}, {sample}"),
            }
        }
        // If the user changes a file that codescout created, it belongs to the user.
        fs::remove_file(user.path(file)).unwrap();
        user.install(&[client]);
        let ours = user.read(file);
        let theirs = match form {
            Form::Toml => format!("mine = 1\n{ours}"),
            _ => ours.replacen('{', "{\n  \"mine\": 1,", 1),
        };
        user.write(file, &theirs);
        user.uninstall(&[client]);
        let left = parsed(form, &user.read(file));
        assert_eq!(left["mine"], 1, "{client}");
        assert_eq!(left.get(outer(section)), None, "{client}: {left}");
        fs::remove_file(user.path(file)).unwrap();
    }
}

#[test]
fn a_server_that_runs_is_named_with_a_variable_for_its_token() {
    let user = User::new();
    let url = "http://127.0.0.1:8123/mcp";
    for (client, form, section, file, _) in ROWS {
        user.install(&[client]);
        let before = user.read(file);
        let answer = user.install(&[client, "--http", url]);
        let text = user.read(file);
        assert!(
            !text.contains(SECRET) && !answer.to_string().contains(SECRET),
            "{client}"
        );
        assert!(answer["next"].to_string().contains("CODESCOUT_TOKEN"), "{client}");
        if form == Form::YamlMap {
            assert!(
                text.contains("type: streamable_http\n    uri: \"http://127.0.0.1:8123/mcp\"\n"),
                "{text}"
            );
        } else if form == Form::Yaml {
            assert!(
                text.contains("type: streamable-http\n    url: \"http://127.0.0.1:8123/mcp\"\n"),
                "{text}"
            );
            assert!(
                text.contains("Authorization: \"Bearer ${{ secrets.CODESCOUT_TOKEN }}\""),
                "{text}"
            );
        } else {
            assert_eq!(
                servers(&mut parsed(form, &text), section)["codescout"],
                http_entry(client, url),
                "{client}"
            );
        }
        // Switching back also removes the fields of the other connection type.
        user.install(&[client]);
        assert_eq!(
            parsed_or_text(form, &user.read(file)),
            parsed_or_text(form, &before),
            "{client}"
        );
        user.uninstall(&[client]);
    }
    for wrong in [
        "http://me:pw@host/mcp",
        "ftp://host",
        "host:80",
        "http://",
        "http://a b",
        "http://h/\u{7}",
    ] {
        let called = user.call(&["install", "codex", "--yes", "--http", wrong]).expect(2);
        assert!(
            !user.path(".codex").exists() && called.stderr.contains("hint:"),
            "{wrong}"
        );
    }
}

fn parsed_or_text(form: Form, text: &str) -> Value {
    match form {
        Form::Yaml | Form::YamlMap => text.into(),
        _ => parsed(form, text),
    }
}

#[test]
fn broken_files_are_refused_and_left_alone() {
    let user = User::new();
    for (client, form, section, file, _) in ROWS {
        let broken: Vec<Vec<u8>> = match form {
            Form::Json => vec![
                b"{\n  \"a\": 1".to_vec(),
                b"{\"a\": 1}}".to_vec(),
                b"[]".to_vec(),
                format!("{{\"{}\": [1]}}", outer(section)).into_bytes(),
                b"\xff\xfe{\0}\0".to_vec(),
                "[".repeat(100_000).into_bytes(),
            ],
            Form::Toml => vec![
                b"[a\n".to_vec(),
                format!("{section} = 1\n").into_bytes(),
                format!("{section} = {{ a = {{ command = 'x' }} }}\n").into_bytes(),
                b"a = '\xff'\n".to_vec(),
            ],
            Form::Yaml => vec![b"name: mine\n".to_vec(), b"\xff".to_vec()],
            Form::YamlMap => vec![
                b"a: [\n".to_vec(),
                b"- a\n".to_vec(),
                b"extensions:\n- a\n".to_vec(),
                b"\xff".to_vec(),
                "[".repeat(100_000).into_bytes(),
                "- ".repeat(100_000).into_bytes(),
            ],
        };
        for bytes in broken {
            user.write(file, "");
            fs::write(user.path(file), &bytes).unwrap();
            let all = user.everything();
            let called = user.call(&["install", client, "--yes"]).expect(2);
            let name = Path::new(file).file_name().unwrap().to_string_lossy();
            assert!(called.stderr.contains(&*name), "{client}: {}", called.stderr);
            assert_eq!(user.everything(), all, "{client}");
        }
        fs::remove_file(user.path(file)).unwrap();
    }
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn read_only_files_are_refused_and_permissions_stay() {
        let user = User::new();
        for (client, form, _, file, _) in ROWS {
            user.write(file, "");
            let path = user.path(file);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
            let all = user.everything();
            let called = user.call(&["install", client, "--yes"]).expect(2);
            assert!(called.stderr.contains("is read-only"), "{client}: {}", called.stderr);
            assert_eq!((user.everything(), mode(&path)), (all, 0o444), "{client}");

            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            user.install(&[client]);
            assert_eq!(mode(&path), 0o600, "{client}");
            user.uninstall(&[client]);
            assert_eq!(
                (mode(&path), user.read(file).as_str()),
                (0o600, ""),
                "{client}, {form:?}"
            );
            fs::remove_file(path).unwrap();
        }
    }

    /// Reading `/dev/zero` would fill the memory, and a pipe would never end.
    #[test]
    fn the_list_reads_nothing_outside_of_the_repository() {
        let user = User::new();
        for (client, _, _, _, project) in merging() {
            let Some(file) = project else { continue };
            user.install(&[client, "--scope", "project"]);
            let path = user.repo.path(file);
            let outside = user.path(&format!("outside/{client}"));
            fs::create_dir_all(outside.parent().unwrap()).unwrap();
            fs::rename(&path, &outside).unwrap();
            symlink(&outside, &path).unwrap();
        }
        let answer = user.call(&["install", "--list", "--json"]).expect(1).json();
        for listed in answer["clients"].as_array().unwrap() {
            assert_eq!(listed["installed"], json!([]), "{listed}");
        }
    }

    #[test]
    fn links_stay_and_what_they_lead_to_is_changed() {
        let user = User::new();
        for (client, _, _, file, _) in merging() {
            let target = format!("dotfiles/{client}");
            user.write(&target, "");
            fs::create_dir_all(user.path(file).parent().unwrap()).unwrap();
            symlink(user.path(&target), user.path(file)).unwrap();
            let all = user.everything();
            user.install(&[client]);
            assert!(user.path(file).is_symlink(), "{client}");
            assert!(user.read(&target).contains("codescout"), "{client}");
            user.uninstall(&[client]);
            assert_eq!(user.everything(), all, "{client}");

            fs::remove_file(user.path(&target)).unwrap();
            let called = user.call(&["install", client, "--yes"]).expect(2);
            assert!(
                called.stderr.contains("dangling symbolic link"),
                "{client}: {}",
                called.stderr
            );
            fs::remove_file(user.path(file)).unwrap();
        }
    }

    #[test]
    fn a_repository_cannot_lead_the_way_out_of_itself() {
        let user = User::new();
        user.write("outside/mcp.json", "{}");
        user.write("outside/AGENTS.md", "");
        let all = user.everything();
        let outside = user.path("outside");
        let refused = |args: &[&str]| {
            let answer = user
                .call(&[&["install", "--yes", "--scope", "project"], args].concat())
                .expect(2);
            assert!(
                answer.stderr.contains("outside the repository"),
                "{args:?}: {}",
                answer.stderr
            );
        };
        symlink(outside.join("mcp.json"), user.repo.path(".mcp.json")).unwrap();
        refused(&["claude-code"]);
        symlink(&outside, user.repo.path(".vscode")).unwrap();
        refused(&["vscode"]);
        symlink(&outside, user.repo.path(".roo")).unwrap();
        refused(&["roo"]);
        symlink(outside.join("AGENTS.md"), user.repo.path("AGENTS.md")).unwrap();
        refused(&["codex", "--instructions"]);
        let called = user
            .call(&["uninstall", "claude-code", "--yes", "--scope", "project"])
            .expect(2);
        assert!(called.stderr.contains("outside the repository"), "{}", called.stderr);
        for link in [".mcp.json", ".vscode", ".roo", "AGENTS.md"] {
            fs::remove_file(user.repo.path(link)).unwrap();
        }
        assert_eq!(user.everything(), all);
        // A link to a file inside the repository is treated like a file.
        user.repo.write("AGENTS.md", "# Ours\n");
        symlink("AGENTS.md", user.repo.path("CLAUDE.md")).unwrap();
        user.install(&["claude-code", "--scope", "project", "--instructions"]);
        assert!(user.repo.path("CLAUDE.md").is_symlink());
        assert!(
            String::from_utf8(user.repo.read("AGENTS.md"))
                .unwrap()
                .contains("for=claude-code ")
        );
        user.uninstall(&["claude-code", "--scope", "project"]);
        assert_eq!(user.repo.read("AGENTS.md"), b"# Ours\n");
    }

    #[test]
    fn a_repository_cannot_lead_the_way_into_git() {
        let user = User::new();
        let repo = &user.repo;
        for file in ["HEAD", "objects/x", "refs/x"] {
            repo.write(format!("bare/{file}"), "x\n");
        }
        repo.write(".codescout/mcp.json", "{}");
        repo.write(".git/hooks/post-commit", "#!/bin/sh\n");
        for (link, target, args) in [
            (".cursor", ".git", &["cursor"][..]),
            (".vscode", "bare", &["vscode"]),
            (".roo", ".codescout", &["roo"]),
            (
                "CLAUDE.md",
                ".git/hooks/post-commit",
                &["claude-code", "--instructions"],
            ),
            (".mcp.json", ".git/config", &["claude-code"]),
        ] {
            symlink(target, repo.path(link)).unwrap();
            let all = user.everything();
            let answer = user.call(&[&["install", "--yes", "--scope", "project"], args].concat());
            let why = &answer.expect(2).stderr;
            assert!(why.contains("belongs to git or codescout"), "{link}: {why}");
            assert_eq!(user.everything(), all, "{link}");
            fs::remove_file(repo.path(link)).unwrap();
        }
    }

    #[test]
    fn a_repository_cannot_lead_the_way_into_a_program() {
        use std::os::unix::fs::PermissionsExt;
        let user = User::new();
        let repo = &user.repo;
        repo.git(["config", "core.hooksPath", "hk"]);
        repo.write("hk/post-commit", "#!/bin/sh\n");
        repo.write("bin/run.md", "#!/usr/bin/env node\n");
        repo.write("tools/go", "echo\n");
        for file in ["hk/post-commit", "tools/go"] {
            fs::set_permissions(repo.path(file), fs::Permissions::from_mode(0o755)).unwrap();
        }
        symlink("tools", repo.path("doc")).unwrap();
        for target in ["hk/post-commit", "bin/run.md", "doc/go"] {
            symlink(target, repo.path("CLAUDE.md")).unwrap();
            let all = user.everything();
            let args = [
                "install",
                "--yes",
                "--scope",
                "project",
                "claude-code",
                "--instructions",
            ];
            let why = &user.call(&args).expect(2).stderr;
            assert!(why.contains("which is a program"), "{target}: {why}");
            assert_eq!(user.everything(), all, "{target}");
            fs::remove_file(repo.path("CLAUDE.md")).unwrap();
        }
    }

    #[test]
    fn what_was_there_before_is_kept_where_nobody_else_looks() {
        let user = User::new();
        user.write(".claude.json", "{\"secret\": 1}");
        let answer = user.install(&["claude-code"]);
        let backup = PathBuf::from(answer["files"][0]["backup"].as_str().unwrap());
        assert_eq!(fs::read_to_string(&backup).unwrap(), "{\"secret\": 1}");
        assert!(backup.starts_with(user.path(".state")));
        assert_eq!(mode(backup.parent().unwrap()), 0o700);
        user.uninstall(&["claude-code"]);
        assert!(!backup.exists());
    }
}

#[test]
fn nothing_is_written_without_consent() {
    let user = User::new();
    user.write(".codex/config.toml", "a = 1\n");
    let listed = |folder: &Path| fs::read_dir(folder).unwrap().count();
    let before = (user.everything(), listed(user.home.path()));
    let shown = user.call(&["install", "codex", "--dry-run"]).expect(0).stdout;
    assert!(
        shown.contains("+[mcp_servers.codescout]") && shown.contains("would be changed"),
        "{shown}"
    );
    let called = user.call(&["install", "codex"]).expect(2);
    assert!(
        called.stdout.contains("+[mcp_servers.codescout]") && called.stderr.contains("--yes"),
        "{}",
        called.stderr
    );
    assert!(user.call(&["install", "codex", "--json"]).expect(2).json()["hint"].is_string());
    assert_eq!(
        user.call(&["install", "codex", "--json", "--dry-run"]).expect(0).json()["dry_run"],
        true
    );
    user.call(&["install", "--list"]);
    user.call(&["uninstall", "codex", "--dry-run"]).expect(1);
    user.call(&["uninstall", "cursor", "--yes"]).expect(1);
    assert_eq!((user.everything(), listed(user.home.path())), before);
}

#[test]
fn an_entry_that_came_with_the_repository_is_not_accepted() {
    let planted = [
        json!({"env": {"LD_PRELOAD": "./evil.so"}}),
        json!({"cwd": "/tmp/evil"}),
        json!({"command": "./codescout"}),
        json!({"args": ["serve", "--config", "evil.toml"]}),
        json!({"trust": true}),
    ];
    for (client, form, section, _, project) in merging() {
        let Some(file) = project else { continue };
        let user = User::new();
        user.install(&[client, "--scope", "project"]);
        let written = String::from_utf8(user.repo.read(file)).unwrap();
        let text = |configuration: &Value| match form {
            Form::Json => serde_json::to_string_pretty(configuration).unwrap(),
            _ => toml::to_string(configuration).unwrap(),
        };
        for fields in &planted {
            let mut configuration = parsed(form, &written);
            let entry = servers(&mut configuration, section)["codescout"]
                .as_object_mut()
                .unwrap();
            entry.extend(fields.as_object().unwrap().clone());
            // Somebody else has written it, or it was changed since it was installed here.
            for is_known in [true, false] {
                if !is_known {
                    let _ = fs::remove_dir_all(user.path(".state"));
                }
                user.repo.write(file, text(&configuration));
                let before = user.repo.read(file);
                let field = fields.as_object().unwrap().keys().next().unwrap();
                for options in [&["--yes"][..], &["--yes", "--json"]] {
                    let args = [&["install", client, "--scope", "project"], options].concat();
                    let refused = user.call(&args).expect(2).stderr;
                    assert!(
                        refused.contains(&format!("{file}: {field} is ")) && refused.contains("--force"),
                        "{client}: {refused}"
                    );
                }
                let dry = user.call(&["install", client, "--scope", "project", "--dry-run", "--json"]);
                assert!(dry.expect(0).json()["differs"][0].as_str().unwrap().contains(field));
                assert_eq!(user.repo.read(file), before);
                user.install(&[client, "--scope", "project", "--force"]);
                let now = parsed(form, &String::from_utf8(user.repo.read(file)).unwrap());
                assert_eq!(now, parsed(form, &written), "{client}");
            }
        }
        // A file with the text that install writes counts as unchanged, even if another program wrote it.
        fs::remove_dir_all(user.path(".state")).unwrap();
        user.repo.write(file, &written);
        assert_eq!(user.install(&[client, "--scope", "project"])["changed"], false);
    }
}

/// Some clients use the first of two equal keys, or both.
#[test]
fn an_entry_that_is_there_twice_is_not_accepted() {
    let user = User::new();
    let entry = r#""type": "stdio", "command": "codescout", "args": ["serve"]"#;
    let evil = format!(r#"{entry}, "env": {{"LD_PRELOAD": "./x.so"}}"#);
    for planted in [
        format!(r#"{{"mcpServers": {{"codescout": {{{evil}}}, "codescout": {{{entry}}}}}}}"#),
        format!(r#"{{"mcpServers": {{"codescout": {{{evil}}}}}, "mcpServers": {{"codescout": {{{entry}}}}}}}"#),
        format!(r#"{{"mcpServers": {{"codescout": {{"command": "./evil", {entry}}}}}}}"#),
    ] {
        user.repo.write(".mcp.json", &planted);
        for options in [&["--yes"][..], &["--yes", "--force"]] {
            let args = [&["install", "claude-code", "--scope", "project"], options].concat();
            let refused = user.call(&args).expect(2).stderr;
            assert!(refused.contains("is there twice"), "{refused}");
        }
        assert_eq!(user.repo.read(".mcp.json"), planted.as_bytes());
    }
}

#[test]
fn hooks_that_came_with_the_repository_are_not_accepted() {
    let file = ".claude/settings.json";
    let install = [
        "install",
        "claude-code",
        "--scope",
        "project",
        "--with",
        "hooks",
        "--yes",
    ];
    let user = User::new();
    user.call(&install).expect(0);
    let written: Value = serde_json::from_slice(&user.repo.read(file)).unwrap();
    let own = written["hooks"]["SessionStart"][0]["hooks"][0]["command"]
        .as_str()
        .unwrap();
    for command in [
        "codescout hooks agent claude-code; ./evil",
        "./codescout hooks agent claude-code",
        &format!("{own}; ./evil"),
    ] {
        for list in ["SessionStart", "PreToolUse", "Stop"] {
            fs::remove_dir_all(user.path(".state")).unwrap();
            let mut planted = written.clone();
            let item = json!({"hooks": [{"type": "command", "command": command}]});
            match planted["hooks"][list].as_array_mut() {
                Some(items) => items.push(item),
                None => planted["hooks"][list] = json!([item]),
            }
            user.repo.write(file, planted.to_string());
            let refused = user.call(&install).expect(2).stderr;
            assert!(refused.contains(&format!("a hook is {command:?}")), "{refused}");
            assert_eq!(user.repo.read(file), planted.to_string().as_bytes());
            user.call(&[&install[..], &["--force"]].concat()).expect(0);
            let now: Value = serde_json::from_slice(&user.repo.read(file)).unwrap();
            assert_eq!(now, written, "{list}: {command}");
        }
    }
}

#[test]
fn an_entry_in_another_file_of_the_client_and_a_plugin_of_the_repository_are_not_accepted() {
    let user = User::new();
    let evil = r#"{"mcp": {"codescout": {"type": "local", "command": ["./evil"]}, "other": {}}}"#;
    user.repo.write("opencode.json", "{}");
    user.repo.write("opencode.jsonc", evil);
    let install = ["install", "opencode", "--scope", "project", "--yes"];
    let refused = user.call(&install).expect(2).stderr;
    assert!(refused.contains("opencode.jsonc: command is [\"./evil\"]"), "{refused}");
    user.call(&[&install[..], &["--force"]].concat()).expect(0);
    let left = parsed(
        Form::Json,
        &String::from_utf8(user.repo.read("opencode.jsonc")).unwrap(),
    );
    assert_eq!(left, json!({"mcp": {"other": {}}}));

    let user = User::new();
    let with_hooks = [&install[..], &["--with", "hooks"]].concat();
    user.call(&with_hooks).expect(0);
    let plugin = ".opencode/plugins/codescout.js";
    let written = String::from_utf8(user.repo.read(plugin)).unwrap();
    fs::remove_dir_all(user.path(".state")).unwrap();
    user.repo.write(plugin, format!("{written}evil()\n"));
    let refused = user.call(&with_hooks).expect(2).stderr;
    assert!(refused.contains(plugin), "{refused}");
    user.call(&[&with_hooks[..], &["--force"]].concat()).expect(0);
    assert_eq!(String::from_utf8(user.repo.read(plugin)).unwrap(), written);
}

#[test]
fn the_difference_that_is_shown_is_the_one_that_is_made() {
    let user = User::new();
    for (client, form, section, _, project) in merging() {
        let Some(file) = project else { continue };
        for (sample, text) in samples(form).into_iter().filter(|(_, text)| text.contains("keep")) {
            let before = text.replace("SECTION", outer(section));
            user.repo.write(file, &before);
            let shown = user
                .call(&["install", client, "--scope", "project", "--dry-run", "--json"])
                .expect(0)
                .json();
            let diff = shown["files"][0]["diff"].as_str().unwrap().to_owned();
            user.install(&[client, "--scope", "project"]);
            let installed = user.repo.read(file);

            user.repo.write(file, &before);
            fs::write(user.repo.beside("patch"), diff).unwrap();
            let n_folders = user.repo.root().components().count();
            let patch = user.repo.beside("patch");
            let arguments = [
                "apply".to_owned(),
                format!("-p{n_folders}"),
                patch.display().to_string(),
            ];
            user.repo.git(arguments);
            assert_eq!(user.repo.read(file), installed, "{client}, {sample}");
        }
        user.repo.remove(file);
    }
}

#[test]
fn instructions_are_short_shared_and_removable() {
    let user = User::new();
    user.repo.write("AGENTS.md", "# Ours\r\n\r\nBuild with make.");
    let agents = || String::from_utf8(user.repo.read("AGENTS.md")).unwrap();
    let before = agents();
    user.install(&["codex", "--scope", "project"]);
    assert_eq!(agents(), before, "only if asked for");
    let codex = |user: &User| user.install(&["codex", "--scope", "project", "--instructions"]);
    assert_eq!(codex(&user)["files"][1]["part"], "instructions");
    let with = agents();
    let added: Vec<&str> = with.lines().skip_while(|line| !line.starts_with("<!--")).collect();
    assert!(added.len() <= 15 && with.starts_with(&before), "{with}");
    assert_eq!(codex(&user)["changed"], false);

    user.install(&["opencode", "--scope", "project", "--instructions"]);
    assert_eq!(agents().matches("codescout:begin").count(), 1);
    user.uninstall(&["codex", "--scope", "project"]);
    assert!(agents().contains("for=opencode "), "{}", agents());
    user.repo.write("AGENTS.md", agents().replace("make", "just"));
    user.uninstall(&["opencode", "--scope", "project"]);
    assert_eq!(agents().trim_end(), before.replace("make", "just"));

    let called = user.call(&["install", "cursor", "--yes", "--instructions"]).expect(2);
    assert!(called.stderr.contains("--scope project"), "{}", called.stderr);
    assert!(!user.path(".cursor").exists());
}

#[test]
fn several_servers_in_one_file_come_and_go_in_any_order() {
    let user = User::new();
    for (client, _, _, file, _) in merging() {
        for before in [None, Some("")] {
            for order in [["one", "two"], ["two", "one"]] {
                if let Some(before) = before {
                    user.write(file, before);
                }
                let all = user.everything();
                user.install(&[client, "--name", "one"]);
                user.install(&[client, "--name", "two", "--http", "https://example.org/mcp"]);
                assert_eq!(user.install(&[client, "--name", "one"])["changed"], false);
                user.uninstall(&[client, "--name", order[0]]);
                let text = user.read(file);
                assert!(
                    text.contains(order[1]) && !text.contains(&format!("\"{}\"", order[0])),
                    "{client}: {text}"
                );
                user.uninstall(&[client, "--name", order[1]]);
                assert_eq!(user.everything(), all, "{client}");
            }
        }
        let _ = fs::remove_file(user.path(file));
    }
    for wrong in ["", "a b", "a.b", "../x", &"x".repeat(33)] {
        user.call(&["install", "continue", "--yes", "--name", wrong]).expect(2);
    }
}

#[test]
fn an_entry_of_the_user_keeps_its_own_fields_and_comes_back() {
    let user = User::new();
    for (client, form, section, file, _) in merging() {
        let before = match form {
            Form::Toml => format!("[{section}.codescout]\nurl = \"http://old\"\nenabled_tools = [\"search\"]\n"),
            _ => {
                let entry = json!({"codescout": {"url": "http://old", "enabled_tools": ["search"]}});
                section
                    .rsplit('/')
                    .fold(entry, |value, key| json!({key: value}))
                    .to_string()
            }
        };
        user.write(file, &before);
        user.install(&[client]);
        let entry = servers(&mut parsed(form, &user.read(file)), section)["codescout"].clone();
        assert_eq!(entry["enabled_tools"], json!(["search"]), "{client}");
        assert_eq!(entry.get("url"), None, "{client}");
        user.uninstall(&[client]);
        assert_eq!(user.read(file), before, "{client}");
        fs::remove_file(user.path(file)).unwrap();
    }
}

#[test]
fn the_list_tells_who_is_here_and_who_knows() {
    let user = User::new();
    fs::create_dir_all(user.path(".cursor")).unwrap();
    user.install(&["codex"]);
    user.install(&["vscode", "--scope", "project"]);
    let answer = user.call(&["install", "--list", "--json"]).expect(0).json();
    let listed = answer["clients"].as_array().unwrap();
    // The last one, Claude Desktop, has no file here.
    assert_eq!(listed.len(), ROWS.len() + 1);
    for (listed, (client, _, _, file, project)) in listed.iter().zip(ROWS) {
        assert_eq!(listed["client"], client);
        assert_eq!(listed["user_file"], user.path(file).display().to_string());
        let project = project.map(|file| user.repo.path(file).display().to_string());
        assert_eq!(listed["project_file"].as_str(), project.as_deref());
        let is_installed = client == "codex" || client == "vscode";
        assert_eq!(
            listed["installed"].as_array().unwrap().len(),
            usize::from(is_installed),
            "{client}"
        );
    }
    assert!(listed[2]["found"].is_string(), "{answer}");
    // Outside a repository, the user's configuration still works.
    let elsewhere = user.home.path().to_str().unwrap();
    let output = user.call(&["install", "--list", "--repo", elsewhere]).expect(0).stdout;
    assert!(output.contains("codex"), "{output}");
    user.call(&["install", "codex", "--scope", "project", "--yes", "--repo", elsewhere])
        .expect(2);
}

#[test]
fn what_somebody_else_committed_can_be_taken_out_too() {
    let user = User::new();
    user.repo.write(
        ".mcp.json",
        "{\n  \"mcpServers\": {\n    \"codescout\": {\"command\": \"codescout\", \"args\": [\"serve\"]},\n    \"b\": {}\n  }\n}\n",
    );
    assert_eq!(
        user.uninstall(&["claude", "--scope", "project"])["client"],
        "claude-code"
    );
    let left = String::from_utf8(user.repo.read(".mcp.json")).unwrap();
    assert_eq!(left, "{\n  \"mcpServers\": {\n    \"b\": {}\n  }\n}\n");
}

#[test]
fn a_home_that_is_not_known_is_reported() {
    let output = Command::new(env!("CARGO_BIN_EXE_codescout"))
        .args(["install", "codex", "--yes"])
        .env_clear()
        .output_in_time()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("set HOME"));
}

#[test]
fn a_client_that_starts_the_server_anywhere_is_told_where_repositories_are() {
    let user = User::new();
    let all = user.everything();
    for client in ANYWHERE {
        let called = user.call_as_it_is(&["install", client, "--yes"]).expect(2);
        assert!(called.stderr.contains("--root"), "{client}: {}", called.stderr);
        user.call_as_it_is(&["install", client, "--yes", "--root", "/nowhere/at/all"])
            .expect(2);
        assert_eq!(user.everything(), all, "{client}");
    }
    user.call_as_it_is(&["install", "codex", "--yes", "--scope", "project", "--root", "."])
        .expect(2);
    user.call_as_it_is(&[
        "install",
        "codex",
        "--yes",
        "--http",
        "http://127.0.0.1:1/mcp",
        "--root",
        ".",
    ])
    .expect(2);
    assert_eq!(user.everything(), all);
    // The written configuration works: a server started in the home directory answers queries about a repository that
    // is named.
    let root = user.repo.root().parent().unwrap();
    user.call_as_it_is(&["install", "windsurf", "--yes", "--root", root.to_str().unwrap()])
        .expect(0);
    let written = parsed(Form::Json, &user.read(".codeium/windsurf/mcp_config.json"));
    let entry = &written["mcpServers"]["codescout"];
    let args: Vec<&str> = entry["args"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let mut client = crate::mcp::Client::start(user.home.path(), &args[1..]);
    client.initialize("test");
    let name = user.repo.root().file_name().unwrap().to_str().unwrap();
    let answer = client.call("read", json!({"target": "a.txt", "repo": name}));
    assert!(answer.text.contains("text"), "{answer:?}");
    let failure = client.call("read", json!({"target": "a.txt"})).failure();
    assert!(
        failure.contains("repo") && failure.contains(root.to_str().unwrap()),
        "{failure}"
    );
    assert!(!failure.contains("git init"), "{failure}");
}

#[test]
fn profiles_are_served_until_an_installation_without_them() {
    let user = User::new();
    let tools = || {
        let written = parsed(Form::Json, &user.read(".gemini/settings.json"));
        let args: Vec<String> = serde_json::from_value(written["mcpServers"]["codescout"]["args"].clone()).unwrap();
        let args: Vec<&str> = args.iter().skip(1).map(String::as_str).collect();
        let mut client = crate::mcp::Client::start(user.repo.root(), &args);
        client.initialize("test");
        let listed = client.request("tools/list", json!({}))["result"]["tools"].take();
        ["edit", "memory", "docs", "read"]
            .map(|name| listed.as_array().unwrap().iter().any(|tool| tool["name"] == name))
    };
    user.install(&["gemini", "--profile", "write,memory"]);
    assert_eq!(tools(), [true, true, false, true]);
    user.install(&["gemini"]);
    assert_eq!(tools(), [false, false, false, true]);
    let elsewhere = ["--http", "http://127.0.0.1:1/mcp", "--profile", "write"];
    user.call(&[&["install", "gemini", "--yes"], &elsewhere[..]].concat())
        .expect(2);
}

/// Clients with hooks: the file of the user, that of a project, and the list of hooks around tool calls.
const HOOKED: [(&str, &str, &str, &str); 4] = [
    (
        "claude-code",
        ".claude/settings.json",
        ".claude/settings.json",
        "PreToolUse",
    ),
    ("codex", ".codex/hooks.json", ".codex/hooks.json", "PreToolUse"),
    ("cursor", ".cursor/hooks.json", ".cursor/hooks.json", "postToolUse"),
    ("gemini", ".gemini/settings.json", ".gemini/settings.json", "AfterTool"),
];

/// Returns the commands of all hooks in a file.
fn hook_commands(text: &str) -> Vec<String> {
    fn collect(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("command").and_then(Value::as_str).map(str::to_owned));
                fields.values().for_each(|value| collect(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| collect(value, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    collect(&parsed(Form::Json, text)["hooks"], &mut found);
    found
}

#[test]
fn a_skill_and_hooks_come_and_go_without_a_trace() {
    let layouts = [
        "",
        "{}",
        "{ \"model\": \"x\" }\n",
        "{\n  // mine\n  \"hooks\": {},\n}\n",
        "{\"hooks\":{\"LIST\":[]}}",
        "{\r\n\t\"hooks\": {\r\n\t\t\"LIST\": [\r\n\t\t\t{\"command\": \"mine\"}, // first\r\n\t\t],\r\n\t},\r\n}\r\n",
        "{\"hooks\": {\"LIST\": [{\"matcher\": \"*\", \"hooks\": [{\"type\": \"command\", \"command\": \"mine\"}]}]}}\n",
    ];
    let user = User::new();
    for (client, file, _, list) in HOOKED {
        for layout in layouts {
            let before = layout.replace("LIST", list);
            user.write(file, &before);
            let all = user.everything();
            let answer = user.install(&[client, "--with", "skill,hooks"]);
            let parts: Vec<&str> = answer["files"]
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|file| file["part"].as_str())
                .collect();
            assert!(parts.contains(&"skill"), "{client}: {answer}");
            let commands = hook_commands(&user.read(file));
            let own = commands
                .iter()
                .filter(|command| command.contains(&format!(" hooks agent {client} ")));
            assert_eq!(own.count(), 2, "{client}, {before:?}: {}", user.read(file));
            assert_eq!(commands.contains(&"mine".to_owned()), before.contains("\"mine\""));
            assert_eq!(
                user.install(&[client, "--with", "skill,hooks"])["changed"],
                false,
                "{client}"
            );
            user.uninstall(&[client]);
            assert_eq!(user.everything(), all, "{client}, {before:?}");
        }
        fs::remove_file(user.path(file)).unwrap();
    }
    let user = User::new();
    let before = user.everything();
    for client in ["claude-code", "codex", "cursor", "gemini", "opencode", "copilot-cli"] {
        for scope in ["user", "project"] {
            user.install(&[client, "--with", "hooks,skill,subagent", "--scope", scope]);
            assert_ne!(user.everything(), before);
            user.uninstall(&[client, "--scope", scope]);
            assert_eq!(user.everything(), before, "{client}, {scope}");
        }
    }
}

#[test]
fn clients_that_read_one_folder_share_a_skill() {
    const SKILL: &str = ".agents/skills/codescout/SKILL.md";
    let user = User::new();
    let before = user.everything();
    user.install(&["codex", "--with", "skill"]);
    let of_one = user.read(SKILL);
    user.install(&["roo", "--with", "skill"]);
    assert!(user.read(SKILL).contains("for codex,roo;"));
    let answer = user.install(&["roo", "--with", "skill"]);
    assert_eq!(answer["changed"], false, "{answer}");
    user.uninstall(&["roo"]);
    assert_eq!(user.read(SKILL), of_one);
    user.install(&["gemini", "--with", "skill"]);
    user.uninstall(&["codex"]);
    assert!(user.read(SKILL).contains("for gemini;"));
    user.uninstall(&["gemini"]);
    assert_eq!(user.everything(), before);
}

#[test]
fn hooks_of_others_stay_and_those_of_another_machine_can_be_taken_out() {
    for (client, _, file, list) in HOOKED {
        let user = User::new();
        user.repo.write(
            file,
            format!("{{\n  \"hooks\": {{\n    \"{list}\": [{{\"command\": \"mine\"}}]\n  }}\n}}\n"),
        );
        user.install(&[client, "--with", "hooks,skill", "--scope", "project"]);
        let text = String::from_utf8(user.repo.read(file)).unwrap();
        assert!(
            hook_commands(&text)
                .iter()
                .any(|command| command.starts_with("codescout hooks agent ")),
            "{text}"
        );
        user.repo.write(file, text.replacen("mine", "theirs", 1));
        // Another user of the repository has no record of the installation.
        fs::remove_dir_all(user.path(".state")).unwrap();
        user.uninstall(&[client, "--scope", "project"]);
        let left = String::from_utf8(user.repo.read(file)).unwrap();
        assert_eq!(hook_commands(&left), ["theirs"], "{client}: {left}");
        assert_eq!(
            user.everything()
                .keys()
                .filter(|path| path.ends_with("SKILL.md"))
                .count(),
            0,
            "{client}"
        );
    }
}

#[test]
fn what_a_client_cannot_do_is_said() {
    let user = User::new();
    let answer = user.install(&["vscode", "--with", "skill,subagent,hooks"]);
    let next = answer["next"].to_string();
    for what in ["skills", "sub-agents", "hooks"] {
        assert!(next.contains(&format!("no {what} of VS Code")), "{next}");
    }
    assert_eq!(answer["files"][1]["part"], "instructions");

    user.write(".claude/skills/codescout/SKILL.md", "mine\n");
    let before = user.everything();
    let called = user
        .call(&["install", "claude-code", "--yes", "--with", "skill"])
        .expect(2);
    assert!(
        called.stderr.contains("was not written by codescout"),
        "{}",
        called.stderr
    );
    user.write(".claude/settings.json", "{\"hooks\": []}");
    user.call(&["install", "claude-code", "--yes", "--with", "hooks"])
        .expect(2);
    fs::remove_file(user.path(".claude/settings.json")).unwrap();
    assert_eq!(user.everything(), before);
}

#[test]
fn json5_of_a_client_that_reads_it_is_left_with_what_to_add_by_hand() {
    let user = User::new();
    user.write(".openclaw/openclaw.json", "{ gateway: { port: 18789 } }\n");
    let before = user.everything();
    let install = user
        .call_as_it_is(&["install", "openclaw", "--yes", "--root", "."])
        .expect(2);
    let uninstall = user.call_as_it_is(&["uninstall", "openclaw", "--yes"]).expect(2);
    for refused in [&install, &uninstall] {
        assert!(refused.stderr.contains("JSON5 cannot be edited"), "{}", refused.stderr);
    }
    let entry = "add this by hand: {\"mcp\":{\"servers\":{\"codescout\":{\"command\":";
    assert!(install.stderr.contains(entry), "{}", install.stderr);
    assert_eq!(user.everything(), before);
}

#[cfg(target_os = "linux")]
#[test]
fn a_client_that_is_not_made_for_this_platform_is_refused() {
    let user = User::new();
    let before = user.everything();
    for args in [
        &["install", "claude-desktop", "--yes", "--root", "."][..],
        &["install", "claude-desktop", "--yes"],
        &["uninstall", "claude-desktop", "--yes"],
    ] {
        let refused = user.call_as_it_is(args).expect(2);
        assert!(
            refused.stderr.contains("not available on this platform"),
            "{}",
            refused.stderr
        );
    }
    assert_eq!(user.everything(), before);
}

#[test]
fn a_skill_that_the_user_changed_is_left_unless_forced() {
    for (client, file) in [
        ("claude-code", ".claude/skills/codescout/SKILL.md"),
        ("opencode", ".xdg/opencode/plugins/codescout.js"),
    ] {
        let user = User::new();
        let before = user.everything();
        let options = ["--with", "skill,hooks"];
        user.install(&[&[client], &options[..]].concat());
        let written = user.read(file);
        let mine = format!("{written}mine\n");
        user.write(file, &mine);
        let act = |answer: &Value| {
            let files = answer["files"].as_array().unwrap().iter();
            let changed = files.filter(|one| one["file"].as_str().unwrap().ends_with(file));
            changed.map(|one| one["act"].clone()).collect::<Vec<_>>()
        };
        let answer = user.install(&[&[client], &options[..]].concat());
        assert_eq!((act(&answer), user.read(file)), (vec!["left".into()], mine));
        assert_eq!(answer["changed"], false);
        let called = user
            .call(&["install", client, "--with", "skill,hooks", "--yes"])
            .expect(0);
        assert!(
            called.stdout.contains("because it was changed (--force"),
            "{}",
            called.stdout
        );
        let answer = user.install(&[&[client, "--force"], &options[..]].concat());
        assert_eq!((act(&answer), user.read(file)), (vec!["edit".into()], written));
        user.uninstall(&[client]);
        assert_eq!(user.everything(), before);
    }
}

#[test]
fn without_a_client_the_ones_found_are_named() {
    let user = User::new();
    user.write(".codex/AGENTS.md", "");
    user.write(".codeium/windsurf/x", "");
    let before = user.everything();
    let called = user.call(&["install"]).expect(0);
    assert!(called.stdout.contains("codex"), "{}", called.stdout);
    assert!(called.stderr.contains("codescout install codex\n"), "{}", called.stderr);
    assert!(
        called.stderr.contains("codescout install windsurf --root DIR"),
        "{}",
        called.stderr
    );
    assert!(!called.stderr.contains("Cline"), "{}", called.stderr);
    assert_eq!(user.everything(), before);
}

#[test]
fn the_examples_of_the_skill_are_calls_that_the_tools_accept() {
    let user = User::new();
    user.install(&["claude-code", "--with", "skill"]);
    let skill = user.read(".claude/skills/codescout/SKILL.md");
    let mut client = crate::mcp::Client::start(user.repo.root(), &[]);
    client.initialize("test");
    let mut n_examples = 0;
    for example in skill.split('`').filter(|span| span.ends_with('}')) {
        let (tool, arguments) = example.split_once(' ').unwrap();
        let answer = client.call(tool, serde_json::from_str(arguments).unwrap());
        assert!(
            !answer.text.contains("parameter") && !answer.text.contains("must be"),
            "{example}: {}",
            answer.text
        );
        n_examples += 1;
    }
    assert_eq!(n_examples, 16);
}
