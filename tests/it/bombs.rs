//! Tests repositories of a few kilobytes that unpack to gigabytes or to billions of files.

use std::ops::ControlFlow;
use std::path::Path;

use codescout::git::{BlobContent, MAX_OBJECT_BYTES, Repository};
use codescout::model::{BlobId, Oid};
use codescout::query::{GrepOutcome, PatternOptions, Sources, grep, read};
use codescout::snapshot::View;
use serde_json::json;

use crate::cli::call;
use crate::grep::all_lines;
use crate::indexed::{Indexed, NEVER};
use crate::mcp::Client;
use crate::support::{TestRepo, wait_until};

/// Size of an object that is too large to be unpacked in several threads at the same time.
const LARGE: u64 = 70 << 20;

fn write_zeros(repo: &TestRepo, path: &str, n_bytes: u64, end: &[u8]) {
    use std::io::{Seek, Write};
    let mut file = std::fs::File::create(repo.path(path)).unwrap();
    file.set_len(n_bytes).unwrap();
    file.seek(std::io::SeekFrom::End(0)).unwrap();
    file.write_all(end).unwrap();
}

fn add_streamed(repo: &TestRepo) {
    repo.git([
        "-c",
        "core.compression=1",
        "-c",
        "core.bigFileThreshold=1m",
        "add",
        "--all",
    ]);
}

fn grep_all(index: &Indexed, view: &View, pattern: &str) -> (Vec<String>, GrepOutcome) {
    let request = all_lines(pattern, PatternOptions::default());
    let mut found = Vec::new();
    let sources = Sources::new(view, &index.workspace.repository);
    let outcome = grep(&sources, &request, &NEVER, &mut |matches| {
        let path = String::from_utf8_lossy(view.file(matches.file).path).into_owned();
        found.push(format!("{path} {} {}", matches.is_binary, matches.n_matching_lines));
        ControlFlow::Continue(())
    });
    (found, outcome)
}

#[test]
fn large_blobs_are_read_up_to_a_limit() {
    let repo = TestRepo::new("//- a.rs\nfn needle() {}\n");
    write_zeros(&repo, "base", LARGE, b"needle");
    write_zeros(&repo, "delta", LARGE, b"needle, and a little more");
    add_streamed(&repo);
    repo.commit_index("large");
    repo.git([
        "-c",
        "core.bigFileThreshold=1g",
        "repack",
        "-adfq",
        "--window=2",
        "--threads=1",
    ]);
    write_zeros(&repo, "bomb", MAX_OBJECT_BYTES, b"needle");
    add_streamed(&repo);
    repo.commit_index("bomb");

    let mut reader = Repository::discover(repo.root()).unwrap().reader();
    let mut size = |path: &str| {
        let id = BlobId(Oid::from_hex(&repo.rev_parse(&format!("HEAD:{path}"))).unwrap());
        match reader.blob(id, u64::MAX).unwrap() {
            // The memory used for unpacking is freed.
            BlobContent::Content(bytes) => Ok((bytes.len() as u64, bytes.capacity() - bytes.len())),
            other => Err(other),
        }
    };
    assert_eq!(size("base"), Ok((LARGE + 6, 0)));
    assert_eq!(size("delta"), Ok((LARGE + 25, 0)));
    let n_bytes = MAX_OBJECT_BYTES + 6;
    assert_eq!(size("bomb"), Err(BlobContent::TooLarge { size: n_bytes }));

    write_zeros(&repo, "bomb", MAX_OBJECT_BYTES, b"needle too");
    write_zeros(&repo, "untracked", MAX_OBJECT_BYTES, b"needle too");
    let index = Indexed::new(repo.root());
    for reference in ["HEAD", "WORKTREE"] {
        let view = index.view(reference);
        let (found, outcome) = grep_all(&index, &view, "needle");
        assert_eq!(found, ["a.rs false 1", "base true 1", "delta true 1"], "{reference}");
        let unread: Vec<&str> = outcome.unread.iter().map(|(_, reason)| reason.as_str()).collect();
        assert_eq!(unread.len(), if reference == "HEAD" { 1 } else { 2 }, "{unread:?}");
        assert!(
            unread.iter().all(|reason| reason.contains("limit of 128 MiB")),
            "{unread:?}"
        );
        let sources = Sources::new(&view, &index.workspace.repository);
        let error = read(&sources, view.find(b"bomb").unwrap(), &[]).unwrap_err();
        assert!(error.to_string().contains("limit of 128 MiB"), "{error}");
    }
}

#[test]
fn what_matches_in_a_large_file_is_told_in_order() {
    let repo = TestRepo::new("//- b.txt\nneedle\n");
    // More matches than are held in memory for a file that is searched in parallel with others.
    repo.write("a.txt", "needle\n".repeat(10_000));
    repo.commit("many");
    let index = Indexed::new(repo.root());
    let (found, outcome) = grep_all(&index, &index.view("HEAD"), "needle");
    assert_eq!(found, ["a.txt false 10000", "b.txt false 1"]);
    assert_eq!((outcome.n_lines, outcome.unread.len()), (10_001, 0));
}

#[test]
fn cancelled_calls_on_a_large_file_keep_no_other_call_waiting() {
    let repo = TestRepo::new("//- a.rs\nfn needle() {}\n");
    repo.write("large.txt", "needle in a stack\n".repeat(600_000));
    add_streamed(&repo);
    repo.commit_index("large");
    let mut client = Client::start(repo.root(), &[]);
    client.initialize("test");
    let arguments = json!({"query": "needle", "mode": "regex", "ref": "HEAD", "limit": 0});
    for _ in 0..3 {
        let id = client.begin("tools/call", json!({"name": "search", "arguments": arguments}));
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
        let read = client.call("read", json!({"target": "a.rs"}));
        assert!(read.text.contains("fn needle() {}"), "{read:?}");
    }
}

#[test]
#[ignore = "measures memory"]
#[cfg(target_os = "linux")]
fn cancelled_calls_leave_no_large_file_in_memory() {
    let repo = TestRepo::new("//- a.rs\nfn needle() {}\n");
    repo.write("large.txt", "needle in a stack\n".repeat(6_000_000));
    add_streamed(&repo);
    repo.commit_index("large");
    let mut client = Client::start(repo.root(), &[]);
    client.initialize("test");
    client.call("search", json!({"query": "nothing", "mode": "regex"}));
    let before = resident_bytes(client.process_id());
    let arguments = json!({"query": "needle", "mode": "regex", "ref": "HEAD", "limit": 0});
    for _ in 0..3 {
        let id = client.begin("tools/call", json!({"name": "search", "arguments": arguments}));
        wait_until("the file is read", || {
            resident_bytes(client.process_id()) > before + (50 << 20)
        });
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
        wait_until("the file is freed", || {
            resident_bytes(client.process_id()) < before + (50 << 20)
        });
    }
}

fn resident_bytes(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// Creates a commit with the tree `tree`.
fn commit_tree(repo: &TestRepo, tree: &str) {
    let commit = repo.git(["commit-tree", "-m", "made", tree]);
    repo.git(["update-ref", "refs/heads/made", commit.trim()]);
}

fn write_tree(repo: &TestRepo, entries: &[(&str, &[u8], &str)]) -> String {
    let mut raw = Vec::new();
    for (mode, name, id) in entries {
        raw.extend_from_slice(mode.as_bytes());
        raw.push(b' ');
        raw.extend_from_slice(name);
        raw.push(0);
        raw.extend_from_slice(Oid::from_hex(id).unwrap().as_bytes());
    }
    let printed = repo.git_with_input(["hash-object", "-t", "tree", "-w", "--stdin", "--literally"], &raw);
    String::from_utf8(printed).unwrap().trim().to_owned()
}

/// Creates a tree with ten folders, each of which contains ten folders, and so on.
fn tree_bomb(repo: &TestRepo) {
    let blob = repo.rev_parse("HEAD:a.rs");
    let mut below = ("100644", blob);
    for depth in 0..10 {
        let names: Vec<String> = (0..10)
            .map(|n| format!("{n}{}", if depth == 0 { ".rs" } else { "" }))
            .collect();
        let entries = names.iter().map(|name| (below.0, name.as_bytes(), below.1.as_str()));
        let entries: Vec<(&str, &[u8], &str)> = entries.collect();
        below = ("40000", write_tree(repo, &entries));
    }
    commit_tree(repo, &below.1);
}

#[test]
fn a_file_is_read_without_listing_the_tree() {
    let repo = TestRepo::new("//- a.rs\nfn needle() {}\n");
    tree_bomb(&repo);
    let path = "3/1/4/1/5/9/2/6/5/3.rs";
    let (place, definition) = (format!("{path}:1"), format!("{path}#needle"));
    for target in [path, &place, &definition] {
        let answer = call(&repo, &["read", target, "--ref", "made"]).expect(0);
        assert_eq!(answer.text().trim_end(), "fn needle() {}", "{target}");
    }
    call(&repo, &["outline", path, "--ref", "made"]).expect(0);
    assert!(!repo.path(".codescout").exists(), "nothing was indexed");

    let mut client = Client::start(repo.root(), &[]);
    client.initialize("test");
    for target in [path, &place, &definition] {
        let answer = client.call("read", json!({"target": target, "ref": "made"}));
        assert!(answer.text.contains("fn needle() {}"), "{answer:?}");
        assert_eq!(answer.facts["complete"], true, "{answer:?}");
    }
    for arguments in [
        json!({"at": path, "ref": "made"}),
        json!({"path": [path], "view": "tree", "ref": "made"}),
    ] {
        let answer = client.call("outline", arguments);
        assert!(
            answer.text.contains("3.rs") && answer.facts["complete"] == true,
            "{answer:?}"
        );
    }
}

#[test]
fn a_tree_of_too_many_files_is_refused_with_what_to_do() {
    let repo = TestRepo::new("//- a.rs\nfn needle() {}\n");
    tree_bomb(&repo);
    for args in [
        &["grep", "needle", "--ref", "made"][..],
        &["search", "needle", "--ref", "made"],
        &["read", "nowhere", "--ref", "made"],
        &["index", "made"],
    ] {
        let answer = call(&repo, args).expect(2);
        assert!(
            answer.stderr.contains("files and folders in copies of folders"),
            "{}",
            answer.stderr
        );
        assert!(
            answer.stderr.contains("hint: use codescout read PATH"),
            "{}",
            answer.stderr
        );
    }
    // With a path, these commands do not list the whole tree.
    call(&repo, &["diff", "HEAD", "made", "--path", "3/1/4/1/5/9/2/6/5/3.rs"]).expect(0);
    call(&repo, &["blame", "3/1/4/1/5/9/2/6/5/3.rs", "--ref", "made"]).expect(0);
}

/// Walking to each of the 2^40 folders would never end.
#[test]
fn folders_without_files_that_contain_each_other_are_walked_once() {
    let repo = TestRepo::new("//- a.rs\nfn needle() {}\n");
    let blob = repo.rev_parse("HEAD:a.rs");
    let bomb = |inner: &str| {
        let mut tree = write_tree(&repo, &[]);
        for _ in 0..40 {
            tree = write_tree(&repo, &[("40000", b"a", &tree), ("40000", inner.as_bytes(), &tree)]);
        }
        tree
    };
    let (one, other) = (bomb("b"), bomb("c"));
    for (name, tree) in [("first", &one), ("second", &other)] {
        let root = write_tree(&repo, &[("100644", b"a.rs", &blob), ("40000", b"bomb", tree)]);
        commit_tree(&repo, &root);
        repo.git(["tag", name, "made"]);
    }
    for args in [
        &["search", "needle", "--ref", "first"][..],
        &["grep", "needle", "--ref", "second"],
        &["index", "first", "second"],
    ] {
        call(&repo, args).expect(0);
    }
    call(&repo, &["diff", "first", "second"]).expect(1);
}

#[test]
fn folders_may_nest_as_deep_as_git_lets_them() {
    let repo = TestRepo::new("//- a.rs\nfn needle() {}\n");
    let path = format!("{}f.rs", "d/".repeat(3000));
    let stream = format!(
        "commit refs/heads/made\ncommitter a <a@b> 0 +0000\ndata 0\nM 100644 inline shallow.rs\ndata 11\nfn top() {{}}\n\
         M 100644 inline {path}\ndata 12\nfn deep() {{}}\n"
    );
    repo.git_with_input(["fast-import", "--quiet"], stream.as_bytes());
    let answer = call(&repo, &["grep", "fn", "--ref", "made"]).expect(2);
    assert!(
        answer.stderr.contains("more than 2047 nested folders"),
        "{}",
        answer.stderr
    );
    assert!(
        answer.stderr.contains("hint: use codescout read PATH"),
        "{}",
        answer.stderr
    );
    let answer = call(&repo, &["read", "shallow.rs", "--ref", "made"]).expect(0);
    assert_eq!(answer.text().trim_end(), "fn top() {}");
    call(&repo, &["read", &path, "--ref", "made"]).expect(2);
}

#[test]
fn names_that_no_checkout_could_have_are_left_out() {
    let repo = TestRepo::new("//- a.rs\nfn needle() {}\n");
    let blob = repo.rev_parse("HEAD:a.rs");
    let below = write_tree(&repo, &[("100644", b"x.rs", &blob)]);
    let names: [&[u8]; 9] = [
        b"z",
        b"",
        b".",
        b"..",
        b".git",
        b".GIT",
        b"/etc/passwd",
        b"../up",
        b"a/b",
    ];
    let mut entries: Vec<(&str, &[u8], &str)> = names.iter().map(|name| ("100644", *name, blob.as_str())).collect();
    entries.extend(names[1..].iter().map(|name| ("40000", *name, below.as_str())));
    // The same entry twice, and a third time as a folder.
    entries.extend([
        ("100644", &b"twice"[..], blob.as_str()),
        ("100644", b"twice", &blob),
        ("40000", b"twice", &below),
    ]);
    commit_tree(&repo, &write_tree(&repo, &entries));
    let answer = call(&repo, &["grep", "needle", "--ref", "made"]).expect(0);
    let found = answer.text();
    let paths: Vec<&str> = found.lines().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(paths, ["twice", "twice/x.rs", "z"]);
    assert!(
        answer.stderr.contains("entries with invalid names"),
        "{}",
        answer.stderr
    );
    for path in ["../up", ".git", "/etc/passwd"] {
        call(&repo, &["read", path, "--ref", "made"]).expect(2);
    }
    assert!(!Path::new(&repo.beside("up")).exists());
}
