//! Tests what is refused, with nothing changed.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use serde_json::{Value, json};

use super::{edit, with_file};
use crate::cli::call_in;
use crate::support::{InTime, TestRepo};

fn replaced(target: &str) -> Value {
    json!([{"op": "replace_text", "target": target, "old": "a", "text": "b"}])
}

/// Checks that an edit is refused with these words and that no file changes.
#[track_caller]
fn refused(repo: &TestRepo, edits: &Value, said: &str) {
    let before = repo.git(["status", "--porcelain", "--untracked-files=all", "--ignored"]);
    let found = edit(repo, edits, &[]).expect(2);
    assert!(found.stderr.contains(said), "{edits}: {}", found.stderr);
    let after = repo.git(["status", "--porcelain", "--untracked-files=all", "--ignored"]);
    assert_eq!(before, after, "{edits}");
}

/// Runs the program with the index in another folder of the worktree. Returns its error.
fn command_in(repo: &TestRepo, sidecar: &str, args: &[&str]) -> String {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_codescout"));
    command
        .args(args)
        .current_dir(repo.root())
        .env("CODESCOUT_SIDECAR", repo.path(sidecar));
    let output = command.output_in_time().unwrap();
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn another_content_than_the_expected_one_is_refused_with_the_difference() {
    let repo = with_file("a.txt", b"one\ntwo a\nthree\n");
    let seen = repo.rev_parse("HEAD:a.txt");
    let edits =
        |expect: &str| json!([{"op": "replace_text", "target": "a.txt", "old": "a", "text": "b", "expect": expect}]);
    repo.write("a.txt", "one\ntwo a\nfour\n");
    refused(&repo, &edits(&seen), "-three\n+four");
    refused(&repo, &edits(&seen[..12]), "-three\n+four");
    refused(&repo, &edits(&"0".repeat(40)), "the version that you saw is not known");
    refused(&repo, &edits(&seen[..8]), "is not a blob id");
    refused(&repo, &edits("HEAD:a.txt;x"), "is not a blob id");
    assert_eq!(repo.read("a.txt"), b"one\ntwo a\nfour\n");
    let now = repo.git(["hash-object", "a.txt"]);
    let done = edit(&repo, &edits(&now[..12]), &["--json"]).expect(0).json();
    assert_eq!(done["files"][0]["old_blob"], now);
    assert_eq!(done["files"][0]["blob"], repo.git(["hash-object", "a.txt"]));
    refused(
        &repo,
        &json!([{"op": "create", "target": "new", "text": "", "expect": now}]),
        "does not exist",
    );
    // Long differences are cut.
    repo.write("a.txt", "x\n".repeat(9_000));
    let found = edit(&repo, &edits(&seen), &[]).expect(2);
    assert!(
        found.stderr.len() < 5_000 && found.stderr.contains('…'),
        "{}",
        found.stderr.len()
    );
}

#[test]
fn paths_outside_through_links_and_into_git_are_refused() {
    let repo = with_file("dir/a.txt", b"a\n");
    let outside = repo.beside("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a.txt"), "a\n").unwrap();
    repo.symlink(&outside, "linked");
    repo.symlink("dir/a.txt", "link.txt");
    call_in(repo.root(), &["index"], b"").expect(0);
    let outside_path = outside.join("a.txt").display().to_string();
    for (target, said) in [
        ("../outside/a.txt", "not inside the worktree"),
        ("dir/../dir/a.txt", "not inside the worktree"),
        (outside_path.as_str(), "not inside the worktree"),
        (".git/config", "belongs to git"),
        (".GIT/config", "belongs to git"),
        ("dir/.git/config", "belongs to git"),
        (".g\u{200c}it/config", "belongs to git"),
        (".codescout/FORMAT", "belongs to git or to codescout"),
        (".CodeScout/FORMAT", "belongs to git or to codescout"),
        ("dir/a\u{1b}[0m.txt", "control characters"),
        ("dir/a\n.txt", "control characters"),
        ("link.txt", "is a symbolic link"),
        ("linked/a.txt", "there is no such file"),
        ("dir", "there is no such file"),
        ("none.txt", "there is no such file"),
    ] {
        refused(&repo, &replaced(target), said);
    }
    for (target, said) in [
        ("linked/new.txt", "symbolic link"),
        ("dir/a.txt/new", "a symbolic link or a file"),
        ("../new", "not inside the worktree"),
        (".git/hooks/post-commit", "belongs to git"),
        ("sub/.Git/config", "belongs to git"),
        ("dir/a.txt", "the file exists"),
        ("a\u{7f}", "control characters"),
        ("a\u{202e}b", "invisible"),
        ("a\u{200b}", "invisible"),
        ("a\u{f0ff}\u{e0041}", "invisible"),
    ] {
        refused(&repo, &json!([{"op": "create", "target": target, "text": "x"}]), said);
    }
    // The index may be elsewhere in the worktree.
    let elsewhere = command_in(&repo, "idx", &["edit", "create", "idx/x", "--text", "x"]);
    assert!(elsewhere.contains("is in the index of codescout"), "{elsewhere}");
    assert_eq!(fs::read(outside.join("a.txt")).unwrap(), b"a\n");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    assert!(repo.path("link.txt").is_symlink());
}

#[test]
fn placeholders_of_bytes_are_no_names() {
    let repo = with_file("a.txt", b"a\n");
    let operation = |op: &str, text: &str| json!([{"op": op, "target": "q\u{f00ff}", "old": "a", "text": text}]);
    let create = json!([{"op": "create", "target": "q\u{f00ff}", "text": "a\n"}]);
    edit(&repo, &create, &[]).expect(0);
    let name = OsStr::from_bytes(b"q\xff");
    assert_eq!(fs::read(repo.root().join(name)).unwrap(), b"a\n");
    edit(&repo, &operation("replace_text", "b"), &[]).expect(0);
    assert_eq!(fs::read(repo.root().join(name)).unwrap(), b"b\n");
}

/// Opening a pipe would never end.
#[test]
fn attributes_that_are_a_pipe_are_refused() {
    let repo = with_file("dir/a.txt", b"a\n");
    for folder in ["", "dir/"] {
        let pipe = repo.path(format!("{folder}.gitattributes"));
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, fifo, 0o600.into(), 0).unwrap();
        for edits in [
            replaced("dir/a.txt"),
            json!([{"op": "create", "target": "dir/new.txt", "text": "x"}]),
            json!([{"op": "delete", "target": "dir/a.txt"}]),
        ] {
            let found = edit(&repo, &edits, &[]).expect(2);
            assert!(
                found.stderr.contains("is a pipe or a device"),
                "{edits}: {}",
                found.stderr
            );
        }
        fs::remove_file(pipe).unwrap();
    }
}

#[test]
fn paths_that_git_cannot_open_are_refused() {
    let repo = with_file("a.txt", b"a\n");
    let create = |path: &str| json!([{"op": "create", "target": path, "text": "x"}]);
    for (path, said) in [
        ("d/".repeat(6_000) + "x", "too long for git"),
        ("x".repeat(12_000), "too long for git"),
        ("d/".repeat(2_048) + "x", "too long for git"),
        ("x".repeat(256), "longer than 255 bytes"),
        ("d/".to_owned() + &"é".repeat(128) + "/x", "longer than 255 bytes"),
    ] {
        refused(&repo, &create(&path), said);
    }
    let longest = ("d".repeat(204) + "/").repeat(19) + &"x".repeat(200);
    edit(&repo, &create(&longest), &[]).expect(0);
    assert_eq!(
        repo.git(["status", "--porcelain", "--untracked-files=all"]),
        format!("?? {longest}")
    );
    edit(&repo, &json!([{"op": "delete", "target": longest}]), &[]).expect(0);
    edit(&repo, &create(&"é".repeat(127)), &[]).expect(0);
}

#[test]
fn files_of_other_repositories_are_refused() {
    let repo = with_file("a.txt", b"a\n");
    let inner = repo.path("inner");
    fs::create_dir_all(inner.join("src")).unwrap();
    fs::write(inner.join("src/a.txt"), "a\n").unwrap();
    fs::write(inner.join(".git"), "gitdir: elsewhere\n").unwrap();
    refused(&repo, &replaced("inner/src/a.txt"), "in another repository");
    refused(
        &repo,
        &json!([{"op": "create", "target": "inner/new", "text": ""}]),
        "in another repository",
    );
    let bare = TestRepo::init(&["--bare"]);
    let found = call_in(bare.root(), &["edit", "create", "a", "--text", ""], b"").expect(2);
    assert!(found.stderr.contains("work"), "{}", found.stderr);
    let found = call_in(repo.root(), &["--ref", "HEAD", "edit", "delete", "a.txt"], b"").expect(2);
    assert!(found.stderr.contains("only files of the worktree"), "{}", found.stderr);
}

#[test]
fn conflicts_binary_files_and_new_syntax_errors_are_refused() {
    let repo = TestRepo::empty();
    repo.write(
        "conflict.rs",
        "<<<<<<< ours\nfn a() {}\n=======\nfn b() {}\n>>>>>>> theirs\n",
    );
    repo.write("binary", b"a\0b");
    repo.write("utf16.txt", b"\xff\xfea\0");
    repo.write("a.rs", "fn a() {}\nfn b( {}\n");
    repo.commit("start");
    refused(&repo, &replaced("conflict.rs"), "conflict markers");
    refused(&repo, &replaced("binary"), "is not text");
    refused(&repo, &replaced("utf16.txt"), "is not text");
    let broken = json!([{"op": "replace", "target": "a.rs#a", "text": "fn a( {}\nfn x) {}"}]);
    refused(&repo, &broken, "syntax error");
    edit(
        &repo,
        &json!([{"op": "replace", "target": "a.rs#a", "text": "fn c() {}"}]),
        &[],
    )
    .expect(0);
    assert_eq!(repo.read("a.rs"), b"fn c() {}\nfn b( {}\n");
    let broken = json!([{"op": "replace", "target": "a.rs#c", "text": "fn a( {}\nfn x) {}"}]);
    edit(&repo, &broken, &["--allow-errors"]).expect(0);
    refused(
        &repo,
        &json!([{"op": "create", "target": "b.rs", "text": "fn ("}]),
        "syntax error",
    );
}

#[test]
fn one_wrong_operation_changes_no_file() {
    let repo = with_file("a.txt", b"a\n");
    let edits = json!([
        {"op": "replace_text", "target": "a.txt", "old": "a", "text": "b"},
        {"op": "create", "target": "new", "text": "x"},
        {"op": "remove", "target": "a.txt#none"},
    ]);
    refused(&repo, &edits, "edit 3 of 3: remove a.txt#none");
    for (edits, said) in [
        (json!([{"op": "replace", "target": "a.txt#x"}]), "text is missing"),
        (
            json!([{"op": "replace", "target": "a.txt"}, {"op": "x", "target": "y"}]),
            "unknown variant",
        ),
        (
            json!([{"op": "delete", "target": "a.txt", "txt": "y"}]),
            "unknown field",
        ),
        (
            json!([{"op": "delete", "target": "a.txt"}, {"op": "remove", "target": "a.txt:1-1"}]),
            "do not combine",
        ),
        (
            json!([{"op": "delete", "target": "a.txt", "old": "x"}]),
            "old belongs to replace_text",
        ),
        (json!([{"op": "insert_last", "target": "a.txt", "text": "a\0b"}]), "NUL"),
        (
            json!([{"op": "replace", "target": "a.txt", "text": "b"}]),
            "needs a definition",
        ),
        (
            json!([{"op": "replace", "target": "a.txt:9", "text": "b"}]),
            "no definition at a.txt:9",
        ),
        (
            json!([{"op": "replace", "target": "a.txt:9-9", "text": "b"}]),
            "has 1 lines",
        ),
    ] {
        refused(&repo, &edits, said);
    }
}

#[test]
fn names_of_several_definitions_are_refused() {
    let repo = with_file(
        "a.rs",
        b"struct A;\nstruct B;\nimpl A {\n    fn x() {}\n}\nimpl B {\n    fn x() {}\n}\n",
    );
    refused(
        &repo,
        &json!([{"op": "remove", "target": "a.rs#x"}]),
        "codescout edit OP a.rs#A.x; others: a.rs#B.x",
    );
    refused(
        &repo,
        &json!([{"op": "remove", "target": "a.rs#C.x"}]),
        "no definition named \"C.x\" in a.rs",
    );
    edit(&repo, &json!([{"op": "remove", "target": "a.rs#A::x"}]), &[]).expect(0);
}

#[test]
fn mode_is_kept_and_generated_files_give_a_warning() {
    let repo = TestRepo::empty();
    repo.write("run.sh", "#!/bin/sh\necho a\n");
    fs::set_permissions(repo.path("run.sh"), fs::Permissions::from_mode(0o750)).unwrap();
    repo.write("gen.go", "// Code generated by x. DO NOT EDIT.\npackage a\n");
    repo.write("vendor/x/a.go", "package a\n");
    repo.write("one.txt", "a\n");
    fs::hard_link(repo.path("one.txt"), repo.beside("other.txt")).unwrap();
    repo.commit("start");
    let done = edit(&repo, &replaced("run.sh:2-2"), &[]).expect(0);
    assert!(done.text().contains(" 100755\n"), "{}", done.text());
    assert_eq!(fs::metadata(repo.path("run.sh")).unwrap().mode() & 0o777, 0o750);
    for (path, said) in [
        ("gen.go", "is generated"),
        ("vendor/x/a.go", "is vendored"),
        ("one.txt", "1 hard link"),
    ] {
        let edits = json!([{"op": "insert_last", "target": path, "text": "// x"}]);
        let done = edit(&repo, &edits, &["--json"]).expect(0).json();
        assert!(done["warnings"][0].as_str().unwrap().contains(said), "{done}");
    }
}

#[test]
fn definitions_that_are_still_used_are_not_removed() {
    let repo = TestRepo::new(
        "
        //- a.py
        def helper(): return helper_of()
        def helper_of(): return 1
        def alone(): return alone()
        //- b.py
        from a import helper
        print(helper())
        ",
    );
    let remove = |target: &str| json!({"op": "remove", "target": target});
    let found = edit(&repo, &json!([remove("a.py#helper")]), &[]).expect(2);
    assert!(
        found.stderr.contains("a.py#helper is still used: b.py:1, b.py:2"),
        "{}",
        found.stderr
    );
    assert!(found.stderr.contains("--allow-uses"), "{}", found.stderr);
    // A use in a definition that is removed, too, does not count.
    edit(&repo, &json!([remove("a.py#helper_of")]), &[]).expect(2);
    edit(&repo, &json!([remove("a.py#alone")]), &["--dry-run"]).expect(0);
    let without_uses = json!([
        remove("a.py#helper"),
        remove("a.py#helper_of"),
        {"op": "replace", "target": "b.py:1-2", "text": "print(1)\n"}
    ]);
    edit(&repo, &without_uses, &["--dry-run"]).expect(0);
    edit(&repo, &json!([remove("a.py#helper")]), &["--allow-uses"]).expect(0);
    assert_eq!(
        repo.read("a.py"),
        b"def helper_of(): return 1\ndef alone(): return alone()\n"
    );
}
