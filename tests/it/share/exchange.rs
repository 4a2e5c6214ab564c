//! Tests pushing the index to a Git remote and pulling it.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Barrier;

use serde_json::Value;

use super::{PRIVATE_KEY, PUBLIC_KEY, QUERIES, project};
use crate::cli::{Called, call_in};
use crate::indexed::Indexed;
use crate::support::{InTime, TestRepo};

/// Creates a bare repository that allows partial fetches, as hosting sites do, and a clone of it.
fn remote_and_clone() -> (TestRepo, TestRepo) {
    let repo = project();
    let remote = repo.bare_clone("remote.git");
    remote.git(["config", "uploadpack.allowFilter", "true"]);
    let clone = remote.clone_with("mine", &[]);
    (remote, clone)
}

fn json(repo: &TestRepo, args: &[&str]) -> Value {
    call_in(repo.root(), &[args, &["--json"]].concat(), b"")
        .expect(0)
        .json()
}

fn refs_of(remote: &TestRepo) -> Vec<String> {
    let listed = remote.git(["for-each-ref", "--format=%(refname)", "refs/codescout"]);
    listed.lines().map(str::to_owned).collect()
}

fn files_of(remote: &TestRepo) -> Vec<String> {
    let listed = remote.git(["ls-tree", "--name-only", &refs_of(remote)[0]]);
    listed.lines().map(str::to_owned).collect()
}

fn commit(repo: &TestRepo, n: usize) {
    repo.write(
        format!("src/added_{n}.rs"),
        format!("pub fn added_{n}() {{ retry_upload({n}); }}\n"),
    );
    repo.commit(&format!("added {n}"));
}

#[test]
fn a_fresh_clone_has_its_index_in_one_fetch_and_pushes_send_what_is_new() {
    let (remote, mine) = remote_and_clone();
    let before = mine.git(["for-each-ref"]);
    assert_eq!(json(&mine, &["pull", "--yes"])["parts_there"], 0);
    let answer = json(&mine, &["push", "--dry-run"]);
    assert!(
        answer["pushed"] == false && answer["bytes"].as_u64() > Some(0),
        "{answer}"
    );
    assert!(refs_of(&remote).is_empty());
    let first = json(&mine, &["push", "--yes"]);
    assert_eq!((&first["pushed"], &first["parts_after"]), (&true.into(), &1.into()));
    assert_eq!(mine.git(["for-each-ref"]), before, "no ref of the user's is touched");
    assert_eq!((refs_of(&remote).len(), files_of(&remote).len()), (1, 2));
    let again = json(&mine, &["push", "--yes"]);
    assert_eq!((&again["pushed"], &again["bytes"]), (&false.into(), &0.into()));

    let clone = remote.clone_with("clone", &[]);
    assert!(
        clone
            .git(["for-each-ref"])
            .lines()
            .all(|line| !line.contains("codescout")),
        "a plain clone has none of it"
    );
    assert_eq!(json(&clone, &["pull", "--dry-run"])["pulled"], false);
    let answer = json(&clone, &["pull", "--yes"]);
    assert_eq!((&answer["parts"], &answer["new_blobs"]), (&1.into(), &first["blobs"]));
    let ours = Indexed::new(clone.root());
    assert_eq!(ours.ingested("HEAD").n_new_blobs, 0);
    let theirs = Indexed::new(mine.root());
    let (view, other) = (ours.view("HEAD"), theirs.view("HEAD"));
    assert_eq!(ours.answers(&view, &QUERIES), theirs.answers(&other, &QUERIES));
    call_in(clone.root(), &["verify", "--deep"], b"").expect(0);
    assert_eq!(json(&clone, &["pull", "--yes"])["parts"], 0);

    // An ordinary push and fetch do not transfer the index.
    commit(&mine, 0);
    mine.git(["push", "--quiet", "origin", "main"]);
    let answer = json(&mine, &["push", "--yes"]);
    assert_eq!((&answer["blobs"], &answer["parts_after"]), (&1.into(), &2.into()));
    assert!(answer["bytes"].as_u64() < first["bytes"].as_u64(), "{answer}");
    clone.git(["pull", "--quiet"]);
    let answer = json(&clone, &["pull", "--yes"]);
    assert_eq!((&answer["parts"], &answer["new_blobs"]), (&1.into(), &1.into()));
}

#[test]
fn many_parts_become_one_and_replacing_leaves_only_what_is_asked_for() {
    let (remote, mine) = remote_and_clone();
    for n in 0..9 {
        commit(&mine, n);
        json(&mine, &["push", "--yes"]);
    }
    let n_parts = files_of(&remote).len() / 2;
    assert!((1..=8).contains(&n_parts), "{n_parts}");
    mine.git(["push", "--quiet", "origin", "main"]);
    let clone = remote.clone_with("clone", &[]);
    json(&clone, &["pull", "--yes"]);
    assert_eq!(Indexed::new(clone.root()).ingested("HEAD").n_new_blobs, 0);

    let answer = json(&mine, &["push", "--yes", "--replace", "origin", "HEAD~9"]);
    assert_eq!(answer["parts_after"], 1);
    assert_eq!(files_of(&remote).len(), 2);
    let commits = remote.git(["rev-list", "--count", &refs_of(&remote)[0]]);
    assert_eq!(commits, "1", "what is replaced is nobody's any more");
    assert_eq!(
        json(&mine, &["push", "--yes", "--replace", "origin", "HEAD~9"])["pushed"],
        false
    );
}

/// Replaces the content of the remote with a number of parts. Each lists one blob that no clone has.
fn put_parts(remote: &TestRepo, n_parts: usize) {
    let keys = remote.beside("keys");
    fs::write(&keys, [&[20u8][..], &[7; 20], &[1, 0]].concat()).unwrap();
    let id = remote.git(["hash-object", "-w", keys.to_str().unwrap()]);
    let lines = (0..n_parts)
        .flat_map(|n| [".bundle", ".keys"].map(|ending| format!("100644 blob {id}\t{n:032x}-23{ending}\n")));
    let tree = remote.git_with_input(["mktree"], lines.collect::<String>().as_bytes());
    let tree = String::from_utf8(tree).unwrap();
    let commit = remote.git([
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "commit-tree",
        "-m",
        "x",
        tree.trim(),
    ]);
    remote.git(["update-ref", &refs_of(remote)[0], &commit]);
}

#[test]
fn what_has_become_too_much_is_replaced() {
    let (remote, mine) = remote_and_clone();
    json(&mine, &["push", "--yes"]);
    // Each part was added by a shallow clone, which knows only its own blobs.
    put_parts(&remote, 256);
    commit(&mine, 0);
    let answer = json(&mine, &["push", "--yes"]);
    assert_eq!(
        (&answer["parts_before"], &answer["parts_after"]),
        (&256.into(), &1.into())
    );
    // More parts than readers accept.
    put_parts(&remote, 2_100);
    let refused = call_in(mine.root(), &["push", "--yes"], b"").expect(2);
    assert!(refused.stderr.contains("too many files"), "{}", refused.stderr);
    assert_eq!(json(&mine, &["push", "--yes", "--replace"])["parts_after"], 1);
    assert_eq!(files_of(&remote).len(), 2);
}

#[test]
fn a_push_goes_where_git_pushes_to() {
    let (remote, mine) = remote_and_clone();
    let other = remote.beside("other.git");
    mine.git(["init", "-q", "--bare", other.to_str().unwrap()]);
    mine.git(["config", "remote.origin.pushurl", other.to_str().unwrap()]);
    let answer = json(&mine, &["push", "--yes"]);
    assert!(answer["remote"].as_str().unwrap().ends_with("other.git"), "{answer}");
    assert!(refs_of(&remote).is_empty());
    assert_eq!(json(&mine, &["pull", "--dry-run"])["parts_there"], 0);
}

#[test]
fn of_two_machines_at_once_both_get_through() {
    let (remote, mine) = remote_and_clone();
    let others: Vec<TestRepo> = (0..4)
        .map(|n| {
            let other = remote.clone_with(&format!("other{n}"), &[]);
            commit(&other, n);
            call_in(other.root(), &["index"], b"").expect(0);
            other
        })
        .collect();
    json(&mine, &["push", "--yes"]);
    let roots: Vec<&Path> = others.iter().map(TestRepo::root).collect();
    let barrier = Barrier::new(roots.len());
    std::thread::scope(|scope| {
        for root in roots {
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                call_in(root, &["push", "--yes"], b"").expect(0);
            });
        }
    });
    for other in &others {
        assert_eq!(
            json(other, &["push", "--dry-run"])["bytes"],
            0,
            "what was pushed is there"
        );
    }
}

#[test]
fn nothing_is_sent_without_a_word() {
    let (remote, mine) = remote_and_clone();
    let called = call_in(mine.root(), &["push"], b"").expect(2);
    assert!(
        called.stderr.contains("--yes") && called.stderr.contains("kB) to"),
        "{}",
        called.stderr
    );
    assert!(refs_of(&remote).is_empty());
    json(&mine, &["push", "--yes"]);
    fs::write(mine.beside("key.pem"), PRIVATE_KEY).unwrap();
    let said = call_in(mine.root(), &["push", "--yes", "--sign", "../key.pem"], b"").expect(0);
    assert!(said.text().contains("--replace"), "{}", said.text());
    let clone = remote.clone_with("clone", &[]);
    call_in(clone.root(), &["pull"], b"").expect(2);
    assert!(!clone.path(".codescout").exists());

    // The remote is given as the path of a folder.
    let path = remote.root().to_str().unwrap();
    assert_eq!(json(&mine, &["push", "--yes", path])["pushed"], false);
    assert_eq!(json(&clone, &["pull", "--yes", "../remote.git"])["pulled"], true);
}

#[test]
fn what_a_remote_says_is_checked_like_any_bundle() {
    let (remote, mine) = remote_and_clone();
    fs::write(mine.beside("key.pem"), PRIVATE_KEY).unwrap();
    json(&mine, &["push", "--yes", "--sign", "../key.pem"]);
    let trusting = remote.clone_with("trusting", &[]);
    let answer = json(&trusting, &["pull", "--yes", "--trust", PUBLIC_KEY]);
    assert_eq!(answer["pulled"], true);

    let reference = refs_of(&remote).remove(0);
    let listed = remote.git(["ls-tree", &reference]);
    let part = listed.lines().find(|line| line.ends_with(".bundle")).unwrap();
    let bytes = remote.git_bytes(["cat-file", "blob", part.split([' ', '\t']).nth(2).unwrap()]);
    let mut flipped = bytes.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    let put = |content: &[u8], about: &str, expected: i32| -> Called {
        let id = String::from_utf8(remote.git_with_input(["hash-object", "-w", "--stdin"], content)).unwrap();
        let old = part.split([' ', '\t']).nth(2).unwrap();
        let tree = remote.git_with_input(["mktree"], listed.replace(old, id.trim()).as_bytes());
        let commit = remote.git(["commit-tree", "-m", "x", String::from_utf8(tree).unwrap().trim()]);
        remote.git(["update-ref", &reference, &commit]);
        let clone = remote.clone_with(&format!("victim {about}"), &[]);
        let called = call_in(clone.root(), &["pull", "--yes"], b"");
        assert_eq!(called.code, expected, "{about}: {}", called.stderr);
        assert!(
            call_in(clone.root(), &["search", "retry_upload"], b"")
                .expect(0)
                .text()
                .contains("upload.rs")
        );
        called
    };
    put(&flipped, "flipped", 2);
    put(&bytes[..bytes.len() - 1], "cut", 2);
    put(b"nonsense", "nonsense", 2);
    put(&bytes, "honest", 0);

    // Trees of another kind.
    let odd = remote.git_with_input(["mktree"], b"");
    let inner = String::from_utf8(odd).unwrap();
    let tree = remote.git_with_input(
        ["mktree"],
        format!("040000 tree {}\tx.bundle\n", inner.trim()).as_bytes(),
    );
    let commit = remote.git(["commit-tree", "-m", "x", String::from_utf8(tree).unwrap().trim()]);
    remote.git(["update-ref", &reference, &commit]);
    let called = call_in(mine.root(), &["pull", "--yes"], b"").expect(2);
    assert!(called.stderr.contains("not written by codescout"), "{}", called.stderr);
}

#[test]
fn nothing_that_a_repository_names_is_run() {
    let (remote, mine) = remote_and_clone();
    commit(&mine, 0);
    let trace = mine.beside("trace");
    let trap = mine.beside("trap.sh");
    fs::write(
        &trap,
        format!("#!/bin/sh\necho \"$0 $@\" >> {}\nexec \"$@\"\n", trace.display()),
    )
    .unwrap();
    let shell = |text: &str| {
        let mut made = Command::new("sh");
        assert!(
            made.args(["-c", text])
                .stdin(Stdio::null())
                .status_in_time()
                .unwrap()
                .success()
        );
    };
    shell(&format!("chmod +x '{}'", trap.display()));
    let trap = trap.to_str().unwrap();
    for (key, value) in [
        ("core.sshCommand", trap),
        ("core.gitProxy", trap),
        ("core.askPass", trap),
        ("core.fsmonitor", trap),
        ("credential.helper", trap),
        ("remote.origin.uploadpack", trap),
        ("remote.origin.receivepack", trap),
        ("remote.origin.vcs", "trap"),
        ("protocol.ext.allow", "always"),
        ("url.ext::sh -c touch% /tmp/x.insteadOf", "file://"),
    ] {
        mine.git(["config", key, value]);
    }
    // The configuration may name a folder that came with the repository as a remote, including hooks.
    for hook in [
        "pre-receive",
        "update",
        "post-receive",
        "post-update",
        "reference-transaction",
    ] {
        let path = remote.path("hooks").join(hook);
        fs::create_dir_all(remote.path("hooks")).unwrap();
        fs::copy(mine.beside("trap.sh"), &path).unwrap();
    }
    let hook = mine.path(".git/hooks/pre-push");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::copy(mine.beside("trap.sh"), hook).unwrap();
    json(&mine, &["push", "--yes", "origin", "HEAD~1"]);
    assert_eq!(json(&mine, &["push", "--yes"])["pushed"], true);
    json(&mine, &["pull", "--yes"]);
    assert!(!trace.exists(), "{}", fs::read_to_string(&trace).unwrap_or_default());

    for address in [
        "ext::sh -c touch% trace",
        "fd::3",
        "--upload-pack=x",
        "gopher://host/x",
        "",
    ] {
        for command in ["push", "pull"] {
            let called = call_in(mine.root(), &[command, "--yes", "--", address], b"").expect(2);
            assert!(!called.stderr.contains("panicked"), "{address}: {}", called.stderr);
        }
        mine.git(["config", "remote.odd.url", address]);
        call_in(mine.root(), &["pull", "--yes", "odd"], b"").expect(2);
    }
    let called = call_in(mine.root(), &["pull", "https://me:secret@localhost:1/x", "--yes"], b"").expect(2);
    assert!(!called.stderr.contains("secret"), "{}", called.stderr);
}
