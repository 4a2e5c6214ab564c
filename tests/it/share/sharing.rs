//! Tests exporting from one clone and importing into another: answers are the same, and nothing is computed twice.

use std::fs;
use std::process::Command;
use std::time::{Duration, SystemTime};

use super::{PRIVATE_KEY, PUBLIC_KEY, QUERIES, project};
use crate::cli::call_in;
use crate::indexed::{Indexed, files_below};
use crate::support::{InTime, TestRepo};

fn exported(repo: &TestRepo, args: &[&str]) -> Vec<u8> {
    let all = [&["export", "-", "--quiet"], args].concat();
    call_in(repo.root(), &all, b"").expect(0).stdout
}

#[test]
fn two_clones_with_other_pasts_write_the_same_bytes() {
    let repo = project();
    let fresh = repo.clone_with("fresh", &[]);
    for revision in ["HEAD~2", "HEAD~1", "HEAD", "HEAD~2"] {
        call_in(repo.root(), &["index", revision], b"").expect(0);
    }
    let (one, other) = (exported(&repo, &["HEAD"]), exported(&fresh, &["HEAD"]));
    assert!(one.len() > 1000);
    assert_eq!(one, other);
    assert_eq!(exported(&fresh, &["HEAD"]), other, "twice");
    call_in(repo.root(), &["gc", "--aggressive"], b"").expect(0);
    assert_eq!(exported(&repo, &["HEAD"]), other, "after a collection");
    assert_ne!(exported(&fresh, &["HEAD~1"]), other);
}

/// Exports bundles in different environments.
fn exported_on(repo: &TestRepo, umask: &str, variables: &[(&str, &str)], commands: &[&str]) -> Vec<Vec<u8>> {
    let run = |command: &&str| {
        let mut shell = Command::new("sh");
        let line = format!("umask {umask}; exec \"$0\" -q {command}");
        shell
            .args(["-c", &line, env!("CARGO_BIN_EXE_codescout")])
            .current_dir(repo.root());
        shell
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", repo.beside(""));
        let output = shell.envs(variables.iter().copied()).output_in_time().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    commands.iter().map(run).collect()
}

#[test]
fn the_bytes_follow_from_tree_and_settings_and_from_nothing_of_the_machine() {
    let repo = project();
    // More files than one round of a build processes, and texts that occur in several files.
    for n in 0..600 {
        let text = format!(
            "//! Part {n}\npub fn part_{n}() {{ shared_{}(); }}\npub fn same() {{ retry_upload(1) }}\n",
            n % 7
        );
        repo.write(format!("src/part_{n}.rs"), text);
    }
    repo.commit("many");
    let commands = ["export -", "export - --ready"];
    let expected = exported_on(&repo, "022", &[], &commands);
    for (about, umask, variables) in [
        ("one thread", "077", &[("RAYON_NUM_THREADS", "1")][..]),
        (
            "many threads",
            "000",
            &[("RAYON_NUM_THREADS", "13"), ("TZ", "Asia/Tokyo")],
        ),
        (
            "another language",
            "027",
            &[
                ("LC_ALL", "tr_TR.UTF-8"),
                ("LANG", "tr_TR.UTF-8"),
                ("CODESCOUT_LOG", "off"),
            ],
        ),
    ] {
        let clone = repo.clone_with(about, &[]);
        for path in files_below(&clone.path("src")).into_keys() {
            let file = fs::File::options()
                .append(true)
                .open(clone.path("src").join(path))
                .unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1))
                .unwrap();
        }
        let bytes = exported_on(&clone, umask, variables, &commands);
        assert!(bytes == expected, "{about}");
    }
    // A clone that has indexed parts before, in another order, and other revisions.
    let clone = repo.clone_with("past", &[]);
    for revision in ["HEAD~2", "HEAD~1", "HEAD~3"] {
        call_in(clone.root(), &["index", revision], b"").expect(0);
    }
    clone.write("uncommitted.rs", "fn uncommitted() {}\n");
    let bytes = exported_on(&clone, "022", &[], &["index", "export - HEAD"]);
    assert!(bytes[1] == expected[0], "another past");
    // In another kind of clone.
    let bare = repo.bare_clone("bare.git");
    assert!(
        exported_on(&bare, "022", &[], &["export - --ref HEAD"])[0] == expected[0],
        "bare"
    );
}

#[test]
fn a_clone_that_imports_answers_as_one_that_indexes() {
    let repo = project();
    let bundle = repo.beside("project.bundle");
    let file = bundle.to_str().unwrap();
    let answer = call_in(repo.root(), &["export", file, "HEAD", "HEAD~2", "--json"], b"")
        .expect(0)
        .json();
    assert_eq!(answer["bytes"], fs::metadata(&bundle).unwrap().len());
    assert_eq!(answer["bundle"]["trees"].as_array().unwrap().len(), 2);

    let clone = repo.clone_with("clone", &[]);
    let answer = call_in(clone.root(), &["import", file, "--json"], b"").expect(0).json();
    assert_eq!(answer["new_blobs"], answer["bundle"]["blobs"]);
    assert_eq!(
        (&answer["absent_blobs"], &answer["adopted"]),
        (&0.into(), &false.into())
    );
    assert_eq!(answer["indexed_trees"].as_array().unwrap().len(), 2);
    let again = call_in(clone.root(), &["import", "-", "--json"], &fs::read(&bundle).unwrap())
        .expect(0)
        .json();
    assert_eq!(
        (&again["new_blobs"], &again["known_blobs"]),
        (&0.into(), &answer["new_blobs"])
    );

    let (ours, theirs) = (Indexed::new(clone.root()), Indexed::new(repo.root()));
    for revision in ["HEAD", "HEAD~1", "HEAD~2", "WORKTREE"] {
        let (view, other) = (ours.view(revision), theirs.view(revision));
        assert_eq!(ours.contents(&view), theirs.contents(&other), "{revision}");
        assert_eq!(
            ours.answers(&view, &QUERIES),
            theirs.answers(&other, &QUERIES),
            "{revision}"
        );
    }
    call_in(clone.root(), &["verify", "--deep"], b"").expect(0);
}

#[test]
fn what_is_known_already_and_what_is_not_here_is_passed_over() {
    let repo = project();
    let bundle = exported(&repo, &["HEAD"]);
    let clone = repo.clone_with("clone", &[]);
    call_in(clone.root(), &["index", "HEAD~2"], b"").expect(0);
    let answer = call_in(clone.root(), &["import", "-", "--json"], &bundle)
        .expect(0)
        .json();
    assert!(
        answer["known_blobs"].as_u64() > Some(0) && answer["new_blobs"].as_u64() > Some(0),
        "{answer}"
    );
    let (ours, theirs) = (Indexed::new(clone.root()), Indexed::new(repo.root()));
    let (view, other) = (ours.view("HEAD"), theirs.view("HEAD"));
    assert_eq!(ours.answers(&view, &QUERIES), theirs.answers(&other, &QUERIES));
    call_in(clone.root(), &["verify", "--deep"], b"").expect(0);

    // From a history of which this repository has only the beginning.
    let short = TestRepo::init(&[]);
    repo.git(["branch", "short", "HEAD~2"]);
    short.git(["fetch", "--quiet", repo.root().to_str().unwrap(), "short"]);
    short.git(["checkout", "--quiet", "-b", "short", "FETCH_HEAD"]);
    let answer = call_in(short.root(), &["import", "-", "--json"], &bundle)
        .expect(0)
        .json();
    assert!(
        answer["absent_blobs"].as_u64() > Some(0) && answer["new_blobs"].as_u64() > Some(0),
        "{answer}"
    );
    assert!(answer["indexed_trees"].as_array().unwrap().is_empty());
    call_in(short.root(), &["verify", "--deep"], b"").expect(0);
}

#[test]
fn a_signed_ready_bundle_is_taken_as_it_is_and_others_are_compared() {
    let repo = project();
    let (key, bundle) = (repo.beside("key.pem"), repo.beside("ready.bundle"));
    fs::write(&key, PRIVATE_KEY).unwrap();
    let args = [
        "export",
        bundle.to_str().unwrap(),
        "--ready",
        "--sign",
        key.to_str().unwrap(),
    ];
    call_in(repo.root(), &args, b"").expect(0);
    let file = bundle.to_str().unwrap();
    let shown = call_in(repo.root(), &["import", "--inspect", file, "--json"], b"")
        .expect(0)
        .json();
    assert_eq!(
        (&shown["signer"], &shown["kind"]),
        (&PUBLIC_KEY.into(), &"ready".into())
    );

    let theirs = Indexed::new(repo.root());
    for (name, args, is_adopted) in [
        ("trusting", vec!["import", file, "--json", "--trust", PUBLIC_KEY], true),
        ("careful", vec!["import", file, "--json"], false),
    ] {
        let clone = repo.clone_with(name, &[]);
        let answer = call_in(clone.root(), &args, b"").expect(0).json();
        assert_eq!(answer["adopted"], is_adopted, "{name}");
        let ours = Indexed::new(clone.root());
        let (view, other) = (ours.view("HEAD"), theirs.view("HEAD"));
        assert_eq!(ours.contents(&view), theirs.contents(&other), "{name}");
        assert_eq!(
            ours.answers(&view, &QUERIES),
            theirs.answers(&other, &QUERIES),
            "{name}"
        );
        call_in(clone.root(), &["verify", "--deep"], b"").expect(0);
    }
    // If the sidecar has segments, adopting others would duplicate documents, so the blobs are indexed instead.
    let clone = repo.clone_with("known", &[]);
    call_in(clone.root(), &["index", "HEAD~2"], b"").expect(0);
    let answer = call_in(clone.root(), &["import", file, "--json", "--trust", PUBLIC_KEY], b"")
        .expect(0)
        .json();
    assert_eq!(answer["adopted"], false);
    call_in(clone.root(), &["verify", "--deep"], b"").expect(0);
}

#[test]
fn a_ready_bundle_has_only_what_its_trees_have() {
    let repo = project();
    for revision in ["HEAD~2", "HEAD~1", "HEAD"] {
        call_in(repo.root(), &["index", revision], b"").expect(0);
    }
    let (key, bundle) = (repo.beside("key.pem"), repo.beside("ready.bundle"));
    fs::write(&key, PRIVATE_KEY).unwrap();
    let (file, key) = (bundle.to_str().unwrap(), key.to_str().unwrap());
    call_in(repo.root(), &["export", file, "HEAD~1", "--ready", "--sign", key], b"").expect(0);
    let clone = repo.clone_with("clone", &[]);
    let answer = call_in(clone.root(), &["import", file, "--json", "--trust", PUBLIC_KEY], b"")
        .expect(0)
        .json();
    assert_eq!(answer["adopted"], true);
    call_in(clone.root(), &["verify", "--deep"], b"").expect(0);
    let (ours, theirs) = (Indexed::new(clone.root()), Indexed::new(repo.root()));
    let outcome = ours.ingested("HEAD~1");
    assert_eq!(outcome.n_new_blobs, 0, "{outcome:?}");
    for revision in ["HEAD~1", "HEAD"] {
        let (view, other) = (ours.view(revision), theirs.view(revision));
        assert_eq!(
            ours.answers(&view, &QUERIES),
            theirs.answers(&other, &QUERIES),
            "{revision}"
        );
    }
}

#[test]
fn texts_that_the_model_knows_nothing_of_travel() {
    let repo = project();
    for file in 0..2 {
        let lines = (0..6_000).map(|n| {
            let braille = |n: u32| char::from_u32(0x2801 + n % 255).unwrap();
            format!("{}{}{}\n", braille(n), braille(n / 255), braille(file)).repeat(4)
        });
        repo.write(format!("braille_{file}.txt"), lines.collect::<String>());
    }
    repo.commit("dots");
    call_in(repo.root(), &["export", "../dots"], b"").expect(0);
    let clone = repo.clone_with("clone", &[]);
    let answer = call_in(clone.root(), &["import", "../dots", "--json"], b"")
        .expect(0)
        .json();
    assert!(answer["new_chunks"].as_u64().unwrap() > 60, "{answer}");
}

#[test]
fn sha256_repositories_and_empty_ones() {
    let repo = TestRepo::sha256("//- a.rs\nfn long_ids() {}\n");
    let bundle = exported(&repo, &[]);
    let clone = repo.clone_with("clone", &[]);
    let answer = call_in(clone.root(), &["import", "-", "--json"], &bundle)
        .expect(0)
        .json();
    assert_eq!(
        (&answer["new_blobs"], &answer["bundle"]["object_format"]),
        (&1.into(), &"sha256".into())
    );
    let called = call_in(TestRepo::empty().root(), &["export", "-"], b"").expect(2);
    assert!(called.stderr.contains("no commits yet"), "{}", called.stderr);
}

#[test]
fn what_cannot_be_is_told_in_words_of_who_asks() {
    let repo = project();
    fs::create_dir(repo.beside("folder")).unwrap();
    let whole = exported(&repo, &[]);
    fs::write(repo.beside("cut"), &whole[..whole.len() - 1]).unwrap();
    for (args, said) in [
        (&["export", "../folder"][..], "../folder is a folder"),
        (&["export", "../nowhere/x"], "folder ../nowhere does not exist"),
        (&["import", "--inspect", "../cut"], "../cut is truncated"),
        (&["push", "main", "--yes"], "the name or URL of a remote"),
    ] {
        let called = call_in(repo.root(), args, b"").expect(2);
        assert!(called.stderr.contains(said), "{args:?}: {}", called.stderr);
    }
}

#[test]
fn the_name_of_a_bundle_is_shown_with_escapes() {
    let repo = project();
    let named = repo.beside("x\u{202e}\u{2800}");
    let said = call_in(repo.root(), &["export", named.to_str().unwrap()], b"")
        .expect(0)
        .text();
    assert!(said.contains("x\\u{202e}\\u{2800}: "), "{said:?}");
    assert!(named.is_file());
}
