//! Checks the architecture: modules import only lower layers, and each external crate is used in one module.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The modules by layer. A module may import modules of lower layers, but not those of its own layer.
const LAYERS: &[&[&str]] = &[
    &["model"],
    &["sidecar", "program"],
    &["git", "extract", "lsp"],
    &["artifact", "embed", "precise"],
    &["index"],
    &["snapshot", "history"],
    &["ingest", "link"],
    &["query"],
    &["bundle", "remote", "evaluate"],
    &["config"],
    &["session"],
    &["setup", "edit"],
    &["ops"],
    &["mcp"],
    &["web"],
    &["cli"],
];

/// External crates, with the only paths that may use each.
const HOMES: &[(&str, &[&str])] = &[
    ("gix", &["src/git/"]),
    ("notify", &["src/git/watch.rs"]),
    ("lsp_types", &["src/lsp/"]),
    ("tree_sitter", &["src/extract/"]),
    ("tantivy", &["src/index/lexical/"]),
    ("hnsw_rs", &["src/index/dense/"]),
    ("zstd", &["src/sidecar/compress.rs"]),
    ("ring", &["src/bundle/signature.rs"]),
    ("bincode", &["src/sidecar/codec.rs"]),
    ("base64", &["src/bundle/signature.rs", "src/remote/wire.rs"]),
    (
        "jsonc_parser",
        &["src/link/scripts.rs", "src/setup/install/json_text/document.rs"],
    ),
    ("toml_parser", &["src/config/toml_text.rs"]),
    ("strsim", &["src/git/revision.rs", "src/query/near.rs"]),
    (
        "jiff",
        &["src/query/dates.rs", "src/remote/retry.rs", "src/setup/hooks/log.rs"],
    ),
    // The request types of operations derive traits for both front ends.
    ("clap", &["src/cli/", "src/edit/", "src/ops/"]),
    ("indicatif", &["src/cli/"]),
    ("unicode_normalization", &["src/ops/docs/headings.rs"]),
    ("unicode_width", &["src/cli/columns.rs"]),
    ("model2vec_rs", &["src/embed/model2vec/"]),
    ("maud", &["src/web/", "src/ops/picture.rs"]),
    ("rmcp", &["src/mcp/"]),
    ("axum", &["src/mcp/", "src/web/"]),
    ("http_body_util", &["src/mcp/"]),
    ("tokio", &["src/mcp/", "src/web/", "src/cli/signals.rs"]),
    ("schemars", &["src/mcp/", "src/edit/", "src/ops/"]),
    ("reqwest", &["src/remote/"]),
    ("rustls", &["src/remote/"]),
];

/// Functions and macros that only `session` and the layers above it may use.
const FOR_TOP_LAYERS: &[&str] = &["std::env::var", "std::process::exit", "println!", "eprintln!"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the source tree can be read") {
        let path = entry.expect("the source tree can be read").path();
        // A crate of its own.
        if path.is_dir() && path.ends_with("grammars") {
            continue;
        } else if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// Returns the text of every source file, without comments and test modules, by path relative to the root.
fn texts() -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    sources(&root.join("src"), &mut found);
    found
        .into_iter()
        .filter(|path| !path.ends_with("tests.rs"))
        .map(|path| {
            let text = fs::read_to_string(&path).expect("sources are UTF-8");
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            let code: Vec<&str> = code
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"))
                .collect();
            let name = path.strip_prefix(root).expect("below the root").display().to_string();
            (name, code.join("\n"))
        })
        .collect()
}

fn layer(room: &str) -> Option<usize> {
    LAYERS.iter().position(|rooms| rooms.contains(&room))
}

fn room_of(path: &str) -> Option<&str> {
    let inside = path.strip_prefix("src/")?;
    inside.split_once('/').map(|(room, _)| room)
}

/// Returns the modules that a text imports with `crate::module` or `use crate::{module::…}`.
fn imported_rooms(text: &str) -> Vec<&str> {
    text.match_indices("crate::")
        .map(|(at, start)| {
            let rest = &text[at + start.len()..];
            let end = rest
                .find(|c: char| !(c.is_alphanumeric() || c == '_'))
                .unwrap_or(rest.len());
            &rest[..end]
        })
        .filter(|room| layer(room).is_some())
        .collect()
}

#[test]
fn rooms_import_only_what_lies_below() {
    let mut wrong = Vec::new();
    for (path, text) in texts() {
        let Some(room) = room_of(&path) else { continue };
        let own = layer(room).unwrap_or_else(|| panic!("{path}: the room {room} has no layer"));
        for imported in imported_rooms(&text) {
            if imported != room && layer(imported).is_some_and(|other| other >= own) {
                wrong.push(format!("{path} imports {imported}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_outside_crate_has_one_home() {
    let mut wrong = Vec::new();
    for (path, text) in texts() {
        for (name, homes) in HOMES {
            let is_named = text
                .match_indices(&format!("{name}::"))
                .any(|(at, _)| !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':'));
            if is_named && !homes.iter().any(|home| path.starts_with(home)) {
                wrong.push(format!("{path} names {name}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn below_session_nothing_prints_exits_or_reads_the_environment() {
    let mut wrong = Vec::new();
    for (path, text) in texts() {
        // `git/command.rs` passes HOME on to git after clearing most other variables, `program` finds programs on PATH.
        let may = [
            "src/session/",
            "src/setup/",
            "src/ops/",
            "src/mcp/",
            "src/cli/",
            "src/config/env.rs",
            "src/main.rs",
            "src/git/command.rs",
            "src/program/",
        ]
        .iter()
        .any(|allowed| path.starts_with(allowed));
        for act in FOR_TOP_LAYERS {
            if !may && text.contains(act) {
                wrong.push(format!("{path}: {act}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Ways to start a program.
const STARTERS: &[&str] = &[
    "Command::new(",
    "Command::from(",
    "CommandExt::exec",
    ".exec()",
    "execv",
    "posix_spawn",
    "libc::system",
    "libc::popen",
];

#[test]
fn only_the_module_program_starts_programs() {
    let texts = texts();
    let starts = |(path, text): (&String, &String)| {
        let found = STARTERS.iter().find(|starter| text.contains(**starter))?;
        Some(format!("{path}: {found}"))
    };
    let found: Vec<String> = texts.iter().filter_map(starts).collect();
    assert_eq!(found, ["src/program/mod.rs: Command::new("]);
}
