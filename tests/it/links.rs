//! Compares links with what comments in `tests/fixtures/link` say: `link: NAME TIER PATH:LINE`, where the line is that
//! of the definition, or `link: NAME outside`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::cli::call_in;
use crate::support::TestRepo;

fn copy(from: &Path, below: &Path, repo: &TestRepo, expected: &mut Vec<Expected>) {
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            copy(&path, below, repo, expected);
            continue;
        }
        let name = path.strip_prefix(below).unwrap().to_str().unwrap().replace('\\', "/");
        let text = fs::read_to_string(&path).unwrap();
        for (number, line) in text.lines().enumerate() {
            if let Some((_, link)) = line.split_once("link: ") {
                expected.push(Expected::new(&name, number + 1, link));
            }
        }
        repo.write(&name, &text);
    }
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Expected {
    at: String,
    name: String,
    tier: String,
    target: Option<String>,
}

impl Expected {
    fn new(file: &str, line: usize, link: &str) -> Self {
        let mut words = link.split_whitespace().map(str::to_owned);
        Self {
            at: format!("{file}:{line}"),
            name: words.next().unwrap(),
            tier: words.next().unwrap(),
            target: words.next(),
        }
    }
}

/// Returns the links of references, as in the comments.
fn links(repo: &TestRepo, args: &[&str]) -> BTreeSet<Expected> {
    let answer = call_in(repo.root(), &[&["graph", "export"], args].concat(), b"")
        .expect(0)
        .text();
    let rows = answer.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let row = |row: Value| {
        let text = |key: &str| row[key].as_str().map(str::to_owned);
        let (start, end) = (
            row["target_start"].as_u64().unwrap_or(0),
            row["target_end"].as_u64().unwrap_or(0),
        );
        let at = format!("{}:{}", text("file").unwrap(), row["line"]);
        let link = |line: u64| Expected {
            at: at.clone(),
            name: text("name").unwrap(),
            tier: text("tier").unwrap(),
            target: text("target_file").map(|file| format!("{file}:{line}")),
        };
        (start..=end.min(start + 3)).map(link).collect::<Vec<_>>()
    };
    rows.flat_map(row).collect()
}

#[test]
fn links_are_as_expected() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/link");
    let mut wrong = Vec::new();
    for language in fs::read_dir(&root).unwrap() {
        let folder = language.unwrap().path();
        let repo = TestRepo::empty();
        let mut expected = Vec::new();
        copy(&folder, &folder, &repo, &mut expected);
        repo.commit("start");
        let found = links(&repo, &[]);
        assert!(expected.len() > 5, "{folder:?}");
        for one in expected {
            if !found.contains(&one) {
                let same = found
                    .iter()
                    .filter(|other| other.at == one.at && other.name == one.name);
                wrong.push(format!("{one:?}\n  found {:?}", same.collect::<Vec<_>>()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
