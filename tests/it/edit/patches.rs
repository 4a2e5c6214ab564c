//! Tests that `git apply` of the patch gives the same files.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::edit;
use crate::cli::call_in;
use crate::support::TestRepo;

/// Creates files of all kinds.
fn files() -> TestRepo {
    let repo = TestRepo::empty();
    repo.write(".gitattributes", "crlf.txt text eol=crlf\n");
    repo.write("a.rs", "fn a() {}\n\nfn b() {}\n");
    repo.write("no newline.txt", "one\ntwo");
    repo.write("crlf.txt", "one\r\ntwo\r\n");
    repo.write("raw-crlf.txt", "one\r\ntwo\nthree\r\n");
    repo.write("caf\u{e9} \"q\" \\.txt", "one\n");
    repo.write("latin1.txt", b"caf\xe9\none\n");
    repo.write("run.sh", "echo one\n");
    fs::set_permissions(repo.path("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    repo.write("empty.txt", "");
    repo.write("deep/er/gone.txt", "one\n");
    repo.commit("start");
    repo
}

#[test]
fn git_apply_gives_the_same_tree() {
    let repo = files();
    let one = |target: &str| json!({"op": "replace_text", "target": target, "old": "one", "text": "1\n2"});
    let edits = json!([
        {"op": "insert_after", "target": "a.rs#a", "text": "fn x() {}"},
        {"op": "insert_last", "target": "no newline.txt", "text": "three"},
        one("crlf.txt"), one("raw-crlf.txt"), one("caf\u{e9} \"q\" \\.txt"), one("latin1.txt"), one("run.sh"),
        {"op": "insert_last", "target": "empty.txt", "text": "x"},
        {"op": "delete", "target": "deep/er/gone.txt"},
        {"op": "create", "target": "new/file one.txt", "text": "no newline"},
        {"op": "create", "target": "new/empty.txt", "text": ""},
    ]);
    let dry = edit(&repo, &edits, &["--dry-run"]).expect(0);
    assert_eq!(repo.git(["status", "--porcelain"]), "");
    assert!(!repo.path(".git/codescout-edit").exists());
    let clone = repo.beside("clone");
    repo.git([
        "clone",
        "--quiet",
        repo.root().to_str().unwrap(),
        clone.to_str().unwrap(),
    ]);
    let patch = repo.beside("edit.patch");
    fs::write(&patch, &dry.stdout).unwrap();
    let in_clone = |args: &[&str]| repo.git([&["-C", clone.to_str().unwrap()], args].concat());
    in_clone(&["apply", "--check", patch.to_str().unwrap()]);
    in_clone(&["apply", patch.to_str().unwrap()]);
    let done = edit(&repo, &edits, &[]).expect(0);
    assert_eq!(done.stdout, dry.stdout);
    for folder in [repo.root(), &clone] {
        repo.git(["-C", folder.to_str().unwrap(), "add", "--all"]);
    }
    assert_eq!(in_clone(&["write-tree"]), repo.git(["write-tree"]));
    for path in ["crlf.txt", "raw-crlf.txt", "latin1.txt", "no newline.txt"] {
        assert_eq!(fs::read(clone.join(path)).unwrap(), repo.read(path), "{path}");
    }
    assert!(!repo.path("deep").exists() && !clone.join("deep").exists());
    // The blob ids are git's.
    let done = String::from_utf8_lossy(&done.stdout).into_owned();
    for path in ["a.rs", "crlf.txt", "run.sh"] {
        let blob = repo.rev_parse(&format!(":{path}"));
        assert!(done.contains(&format!("..{blob}")), "{path} {blob}\n{done}");
    }
}

#[test]
fn the_patch_of_a_sha256_repository_is_applied_too() {
    let repo = TestRepo::sha256("//- a.txt\none\n");
    let edits = json!([{"op": "replace_text", "target": "a.txt", "old": "one", "text": "two"}]);
    let dry = edit(&repo, &edits, &["--dry-run", "--json"]).expect(0).json();
    let patch = repo.beside("edit.patch");
    fs::write(&patch, dry["results"][0]["patch"].as_str().unwrap()).unwrap();
    repo.git(["apply", patch.to_str().unwrap()]);
    assert_eq!(repo.read("a.txt"), b"two\n");
    assert_eq!(dry["files"][0]["blob"], repo.git(["hash-object", "a.txt"]));
    assert_eq!(dry["dry_run"], true);
}

#[test]
fn nothing_to_change_is_no_patch() {
    let repo = files();
    let found = call_in(
        repo.root(),
        &["edit", "replace_text", "a.rs", "--old", "a", "--text", "a"],
        b"",
    )
    .expect(1);
    assert_eq!(found.text(), "");
    edit(&repo, &json!([]), &[]).expect(1);
}
