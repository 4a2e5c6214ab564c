//! Tests repositories with missing or damaged objects: answers use the remaining objects, say what is missing, and are
//! completed after the objects are restored.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::call;
use crate::support::TestRepo;

fn json(repo: &TestRepo, args: &[&str]) -> Value {
    let called = call(repo, &[args, &["--json"]].concat());
    assert!(called.code < 2, "{args:?}: {}", called.stderr);
    called.json()
}

/// Returns the commits and changes in the history of a name or path.
fn past(repo: &TestRepo, target: &str) -> Vec<String> {
    let answer = json(repo, &["history", "-n", "0", target]);
    let entries = answer["results"].as_array().unwrap().iter();
    entries
        .map(|entry| format!("{} {}", entry["subject"], entry["changes"]))
        .collect()
}

fn incomplete(repo: &TestRepo, target: &str) -> String {
    let answer = json(repo, &["history", target]);
    answer["incomplete_because"].to_string()
}

/// Returns the findings of `doctor` about objects.
fn objects(repo: &TestRepo) -> String {
    let answer = call(repo, &["doctor", "--json"]).json();
    let findings = answer["findings"].as_array().unwrap().iter();
    let about = findings.filter(|finding| finding["area"] == "objects");
    about
        .map(|finding| {
            format!(
                "{}: {} ({})\n",
                finding["severity"], finding["message"], finding["mend"]
            )
        })
        .collect()
}

fn body(name: &str, n: u32) -> String {
    let steps: String = (0..n)
        .map(|at| format!("    let step_{at} = measure({at}, {name}_{at});\n"))
        .collect();
    format!("pub fn {name}(input: &str) -> usize {{\n{steps}    input.len() + {n}\n}}\n")
}

/// Creates two files with two versions each. One of them is then renamed and edited in the same commit.
fn edited() -> TestRepo {
    let repo = TestRepo::empty();
    repo.write("src/alpha.rs", body("alpha", 12));
    repo.write("src/beta.rs", body("beta", 12));
    repo.commit("both");
    repo.write("src/alpha.rs", body("alpha", 13));
    repo.commit("alpha again");
    repo.write("src/beta.rs", body("beta", 13));
    repo.commit("beta again");
    repo.remove("src/alpha.rs");
    repo.write("lib/first.rs", body("alpha", 14));
    repo.commit("alpha elsewhere");
    repo
}

/// Returns the id of a file version and the path of its loose object.
fn object(repo: &TestRepo, version: &str) -> (String, PathBuf) {
    let id = repo.rev_parse(version);
    let path = repo.path(format!(".git/objects/{}/{}", &id[..2], &id[2..]));
    (id, path)
}

/// Overwrites the file of an object. Returns the previous content.
fn break_object(path: &Path) -> Vec<u8> {
    let good = fs::read(path).unwrap();
    let mut bad = good.clone();
    let at = bad.len() / 2;
    bad[at..].fill(0xa5);
    fs::remove_file(path).unwrap();
    fs::write(path, bad).unwrap();
    good
}

#[test]
fn a_damaged_version_stops_nothing_else_and_counts_once_it_is_mended() {
    let repo = edited();
    let intact = repo.clone_with("intact", &[]);
    call(&intact, &["index", "--history"]).expect(0);
    let (id, path) = object(&repo, "HEAD~3:src/alpha.rs");
    let good = break_object(&path);
    call(&repo, &["index", "--history"]).expect(0);
    assert_eq!(past(&repo, "beta"), past(&intact, "beta"));
    assert_eq!(past(&repo, "src/beta.rs"), past(&intact, "src/beta.rs"));
    assert!(past(&repo, "alpha").len() < past(&intact, "alpha").len());
    let why = incomplete(&repo, "alpha");
    assert!(
        why.contains("missing or damaged") && why.contains("codescout doctor"),
        "{why}"
    );
    let found = objects(&repo);
    assert!(
        found.contains("problem") && found.contains("1 damaged blob") && found.contains(&id),
        "{found}"
    );
    assert!(found.contains("git fsck"), "{found}");

    fs::remove_file(&path).unwrap();
    let found = objects(&repo);
    assert!(
        found.contains("1 missing blob") && found.contains("git fetch --refetch"),
        "{found}"
    );
    fs::write(&path, good).unwrap();
    assert!(objects(&repo).contains("are available again"), "{}", objects(&repo));
    call(&repo, &["index"]).expect(0);
    for target in ["alpha", "beta", "lib/first.rs"] {
        assert_eq!(past(&repo, target), past(&intact, target), "{target}");
    }
    assert_eq!(incomplete(&repo, "alpha"), "null");
    assert_eq!(objects(&repo), "");
}

#[test]
fn a_damaged_file_of_head_is_said_and_searched_once_it_is_mended() {
    let repo = edited();
    let (id, path) = object(&repo, "HEAD:src/beta.rs");
    let good = break_object(&path);
    call(&repo, &["index"]).expect(0);
    let found = |repo: &TestRepo| json(repo, &["search", "--ref", "HEAD", "beta"])["results"].to_string();
    assert!(!found(&repo).contains("src/beta.rs"));
    let grep = call(&repo, &["grep", "--ref", "HEAD", "alpha_3", "--json"]).json();
    assert!(grep["results"].to_string().contains("lib/first.rs"), "{grep}");
    assert_eq!(grep["complete"], false, "{grep}");
    let listed = objects(&repo);
    assert!(listed.contains(&id) && listed.contains("src/beta.rs"), "{listed}");
    // Damaged objects do not count as repaired each time they are checked.
    let again = json(&repo, &["index"]);
    assert_eq!(again["revisions"][0]["looked_at_files"], 0, "{again}");
    fs::remove_file(&path).unwrap();
    fs::write(&path, good).unwrap();
    call(&repo, &["index"]).expect(0);
    assert!(found(&repo).contains("src/beta.rs"));
    assert_eq!(objects(&repo), "");
}

#[test]
fn a_rename_that_could_not_be_seen_is_recorded_when_its_versions_are_back() {
    let repo = edited();
    let intact = repo.clone_with("intact", &[]);
    call(&intact, &["index", "--history"]).expect(0);
    let clone = repo.clone_with("clone", &[]);
    // Unpacks the objects, so that a single one can be deleted.
    let packs = clone.path(".git/objects/pack");
    let kept = clone.beside("kept");
    fs::rename(&packs, &kept).unwrap();
    fs::create_dir(&packs).unwrap();
    for file in fs::read_dir(&kept).unwrap() {
        let file = file.unwrap().path();
        if file.extension().is_some_and(|ending| ending == "pack") {
            clone.git_with_input(["unpack-objects", "-q"], &fs::read(file).unwrap());
        }
    }
    let (_, path) = object(&clone, "HEAD~1:src/alpha.rs");
    fs::remove_file(path).unwrap();
    call(&clone, &["index", "--history"]).expect(0);
    assert_eq!(past(&clone, "lib/first.rs").len(), 1);
    assert!(
        incomplete(&clone, "lib/first.rs").contains("renames are unknown"),
        "{}",
        incomplete(&clone, "lib/first.rs")
    );
    clone.git(["fetch", "--quiet", "--refetch", "origin"]);
    call(&clone, &["index"]).expect(0);
    for target in ["alpha", "lib/first.rs", "beta"] {
        assert_eq!(past(&clone, target), past(&intact, target), "{target}");
    }
    assert_eq!(incomplete(&clone, "lib/first.rs"), "null");
    call(&clone, &["verify", "--deep"]).expect(0);
}

#[test]
fn a_commit_that_was_lost_is_recorded_when_it_is_back() {
    let repo = edited();
    let (_, path) = object(&repo, "HEAD~2");
    let good = break_object(&path);
    call(&repo, &["index", "--history"]).expect(0);
    assert!(incomplete(&repo, "src/beta.rs").contains("no history before"));
    fs::remove_file(&path).unwrap();
    fs::write(&path, good).unwrap();
    call(&repo, &["index", "--history"]).expect(0);
    assert_eq!(past(&repo, "src/beta.rs").len(), 2);
    assert_eq!(incomplete(&repo, "src/beta.rs"), "null");
}

#[test]
fn of_a_partial_clone_nothing_is_said_to_be_absent_that_is_not_known_to_be() {
    let repo = edited();
    repo.git(["config", "uploadpack.allowFilter", "true"]);
    let clone = repo.clone_with("partial", &["--filter=blob:none"]);
    let bare = repo.clone_with("bare.git", &["--filter=blob:none", "--bare"]);
    for target in ["alpha", "lib/first.rs#alpha", "beta"] {
        let answer = json(&clone, &["history", target]);
        assert_eq!(
            (&answer["target"]["kind"], &answer["target"]["present"]),
            (&"symbol".into(), &true.into()),
            "{answer}"
        );
        let why = incomplete(&clone, target);
        let says = if target == "beta" {
            "git fetch --refetch --no-filter"
        } else {
            "codescout doctor"
        };
        assert!(why.contains(says), "{why}");
        let text = call(&clone, &["history", target]);
        assert!(!text.stderr.contains("no file or definition"), "{}", text.stderr);
    }
    for target in ["alpha", "never_was"] {
        let called = call(&bare, &["history", target]);
        assert!(
            called.stderr.contains("in the commits recorded so far"),
            "{target}: {}",
            called.stderr
        );
        let why = json(&bare, &["history", target])["incomplete_because"].to_string();
        assert!(
            why.contains("files of this revision") && why.contains("--refetch"),
            "{why}"
        );
    }
    clone.git(["fetch", "--quiet", "--refetch", "--no-filter", "origin"]);
    call(&clone, &["index", "--history"]).expect(0);
    assert_eq!(past(&clone, "alpha").len(), 3);
}

#[test]
fn mending_makes_everything_again_or_says_what_is_left() {
    let repo = edited();
    call(&repo, &["index", "--history"]).expect(0);
    let counted = |repo: &TestRepo| {
        let answer = json(repo, &["status"]);
        (
            answer["history"]["commits"].clone(),
            answer["history"]["traced"].clone(),
            answer["blobs"].clone(),
        )
    };
    let before = (counted(&repo), past(&repo, "alpha"));
    let damage = || {
        for store in ["history-v1", "lexical-v1"] {
            for file in fs::read_dir(repo.path(".codescout").join(store)).unwrap() {
                fs::write(file.unwrap().path(), "nothing").unwrap();
            }
        }
    };
    damage();
    let answer = call(&repo, &["verify", "--repair", "--json"]).expect(1).json();
    assert_eq!(
        (&answer["health"], &answer["repair"]["left"]),
        (&"repaired".into(), &Value::Array(Vec::new())),
        "{answer}"
    );
    assert_eq!((counted(&repo), past(&repo, "alpha")), before);

    // The data of an object that git has lost meanwhile cannot be rebuilt.
    damage();
    let (_, path) = object(&repo, "HEAD:src/beta.rs");
    fs::remove_file(path).unwrap();
    let called = call(&repo, &["verify", "--repair", "--json"]).expect(2);
    let answer = called.json();
    assert_eq!(answer["health"], "unfinished", "{answer}");
    assert!(
        answer["repair"]["left"][0]
            .as_str()
            .is_some_and(|left| left.contains("codescout doctor")),
        "{answer}"
    );
    call(&repo, &["verify"]).expect(0);
}

#[test]
fn unknown_renames_concern_only_files_of_their_commits() {
    let repo = edited();
    let (_, path) = object(&repo, "HEAD~1:src/alpha.rs");
    fs::remove_file(path).unwrap();
    call(&repo, &["index", "--history"]).expect(0);
    let says = |target: &str| incomplete(&repo, target).contains("inexact renames are unknown in 1 commit");
    assert!(says("lib/first.rs") && says("lib/first.rs#alpha") && says("src/alpha.rs") && says("lib"));
    assert!(!says("src/beta.rs") && !says("src/beta.rs#beta"));
}

#[test]
fn a_missing_file_is_found_without_comparing_the_others() {
    let repo = edited();
    let changes = |reader: &mut codescout::git::ObjectReader| {
        let tree = |revision: &str| {
            codescout::model::TreeId(codescout::model::Oid::from_hex(&repo.tree_of(revision)).unwrap())
        };
        let found = reader.diff_trees(Some(tree("HEAD~1")), tree("HEAD")).unwrap();
        let change = |change: codescout::git::TreeChange| codescout::history::Change {
            path: change.path,
            old: change.old.map(Into::into),
            new: change.new.map(Into::into),
            origin: None,
            is_combined: false,
        };
        found.into_iter().map(change).collect::<Vec<_>>()
    };
    let has_all = || {
        let mut reader = codescout::git::Repository::open(repo.root()).unwrap().reader();
        let changes = changes(&mut reader);
        codescout::history::has_compared_files(&mut reader, &changes)
    };
    assert!(has_all());
    for version in ["HEAD~1:src/alpha.rs", "HEAD:lib/first.rs"] {
        let (_, path) = object(&repo, version);
        let good = break_object(&path);
        assert!(!has_all(), "{version} is damaged");
        fs::remove_file(&path).unwrap();
        assert!(!has_all(), "{version} is missing");
        fs::write(&path, good).unwrap();
    }
    let (_, other) = object(&repo, "HEAD:src/beta.rs");
    fs::remove_file(other).unwrap();
    assert!(has_all());
}
