use std::fs;
use std::process::Command;

use super::{call, call_in, project};
use crate::support::{InTime, TestRepo};

#[test]
fn outside_of_a_repository_every_question_fails_alike() {
    let folder = tempfile::tempdir().unwrap();
    for args in [
        &["search", "x"][..],
        &["grep", "x"],
        &["symbol", "x"],
        &["outline"],
        &["read", "x"],
        &["status"],
        &["index"],
        &["config"],
    ] {
        let called = call_in(folder.path(), args, b"").expect(2);
        assert!(
            called.stderr.contains("is not inside a git repository"),
            "{args:?}: {}",
            called.stderr
        );
        assert!(called.stderr.contains("hint:"), "{args:?}: {}", called.stderr);
        assert!(called.stdout.is_empty());
        let as_json = call_in(folder.path(), &[args, &["--json"]].concat(), b"")
            .expect(2)
            .json();
        assert!(as_json["error"].as_str().unwrap().contains("repository"));
    }
}

#[test]
fn unknown_and_ambiguous_revisions_are_errors() {
    let repo = project();
    repo.branch("feature");
    let unknown = call(&repo, &["grep", "x", "--ref", "featur"]).expect(2);
    assert!(
        unknown.stderr.contains("unknown revision \"featur\""),
        "{}",
        unknown.stderr
    );
    assert!(
        unknown.stderr.contains("hint: did you mean feature"),
        "{}",
        unknown.stderr
    );
    // At least two of seventeen commit ids begin with the same digit.
    for number in 0..17 {
        repo.commit(&number.to_string());
    }
    let ids = repo.git(["rev-list", "--all"]);
    let mut starts: Vec<&str> = ids.lines().map(|id| &id[..4]).collect();
    starts.sort_unstable();
    let is_shared = |n: usize| {
        starts
            .windows(2)
            .find(|pair| pair[0][..n] == pair[1][..n])
            .map(|pair| &pair[0][..n])
    };
    if let Some(shared) = is_shared(4) {
        let ambiguous = call(&repo, &["grep", "x", "--ref", shared]).expect(2);
        assert!(ambiguous.stderr.contains("ambiguous"), "{}", ambiguous.stderr);
    }
    let option = call(&repo, &["grep", "x", "--ref=--upload-pack=x"]).expect(2);
    assert!(option.stderr.contains("is not a ref"), "{}", option.stderr);
}

#[test]
fn a_repository_without_commits_has_its_files_on_disk() {
    let repo = TestRepo::empty();
    call(&repo, &["search", "anything"]).expect(1);
    call(&repo, &["grep", "x"]).expect(1);
    call(&repo, &["symbol", "x"]).expect(1);
    call(&repo, &["index"]).expect(0);
    call(&repo, &["status"]).expect(0);
    call(&repo, &["outline", "--json"]).expect(1).json();
    repo.write("a.rs", "fn lonely() {}\n");
    assert_eq!(
        call(&repo, &["grep", "lonely"]).expect(0).text(),
        "a.rs:1:fn lonely() {}\n"
    );
    assert_eq!(call(&repo, &["read", "a.rs"]).expect(0).text(), "fn lonely() {}\n");
    let symbol = call(&repo, &["symbol", "lonely", "--json"]).expect(0).json();
    assert!(symbol["commit"].is_null());
    let head = call(&repo, &["search", "x", "--ref", "HEAD"]).expect(2);
    assert!(!head.stderr.is_empty());
}

#[test]
fn odd_queries_are_answered_or_refused() {
    let repo = project();
    for blank in ["", "   ", "\t\n"] {
        let called = call(&repo, &["search", blank]).expect(2);
        assert!(called.stderr.contains("the query is empty"), "{}", called.stderr);
        call(&repo, &["symbol", blank]).expect(2);
    }
    call(&repo, &["grep", ""]).expect(2);
    call(&repo, &["symbol", "::"]).expect(2);
    let punctuation = call(&repo, &["search", "?!… ()", "--json"]);
    assert!(matches!(punctuation.code, 0 | 1), "{}", punctuation.stderr);
    assert_eq!(call(&repo, &["grep", "-F", "();", "-l"]).expect(1).text(), "");
    let huge = "x".repeat(1 << 20);
    let called = call_in(repo.root(), &["search", "-"], huge.as_bytes()).expect(2);
    assert!(
        called.stderr.contains("65536 bytes") && called.stderr.len() < 300,
        "{}",
        called.stderr
    );
    let long = "y".repeat(100_000);
    let called = call(&repo, &["grep", &long]).expect(2);
    assert!(
        called.stderr.contains("100000 bytes") && called.stderr.len() < 300,
        "{}",
        called.stderr
    );
}

#[test]
fn an_invalid_expression_says_where() {
    let repo = project();
    for args in [&["grep", "ab(c"][..], &["search", "--mode", "regex", "ab(c"]] {
        let called = call(&repo, args).expect(2);
        let expected = "invalid regular expression at character 3: unclosed group\n    ab(c\n      ^\n";
        assert!(called.stderr.contains(expected), "{}", called.stderr);
    }
    let as_json = call(&repo, &["grep", "a**[", "--json"]).expect(2).json();
    assert!(as_json["error"].as_str().unwrap().contains("at character"));
    let unknown_lang = call(&repo, &["grep", "x", "--lang", "klingon"]).expect(2);
    assert!(
        unknown_lang.stderr.contains("unknown language klingon"),
        "{}",
        unknown_lang.stderr
    );
    let near = call(&repo, &["grep", "x", "--lang", "rast"]).expect(2);
    assert!(near.stderr.contains("hint: did you mean rust"), "{}", near.stderr);
    call(&repo, &["grep", "x", "--path", "a["]).expect(2);
    call(&repo, &["grep", "x", "--no-such-flag"]).expect(2);
}

#[cfg(unix)]
#[test]
fn long_chains_of_members_do_no_harm() {
    let repo = project();
    for (path, start, link) in [
        ("a.js", "x = a", ".b\n"),
        ("a.rs", "fn f() { a", ".b\n"),
        ("A.java", "class A { int x = a", ".b\n"),
        ("a.lua", "x = a", ".b\n"),
        ("a.c", "int f() { return a", "->b\n"),
    ] {
        repo.write(path, format!("{start}{}", link.repeat(5_000)));
    }
    call(&repo, &["index"]).expect(0);
}

#[test]
fn commands_without_a_repository_write_through_no_link_of_one() {
    let repo = project();
    let outside = repo.beside("outside");
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("file"), "precious").unwrap();
    repo.symlink(outside.join("file"), "features.jsonl");
    repo.symlink(&outside, "reports");
    repo.symlink(repo.path(".git"), "pages");
    for args in [
        &["eval", "--from-history", "--features", "features.jsonl"][..],
        &["eval", "--from-history", "--features", "reports/features.jsonl"],
        &["man", "reports"],
        &["man", "reports/new/folder"],
        &["man", "pages"],
        &["serve", "--http", "nowhere", "--token-file", "reports/token"],
        &["fleet", "add", ".", "--dir", "reports"],
    ] {
        let called = call(&repo, args).expect(2);
        assert!(called.stderr.contains("symbolic link"), "{args:?}: {}", called.stderr);
    }
    assert_eq!(fs::read(outside.join("file")).unwrap(), b"precious");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    assert!(!repo.path(".git/codescout.1").exists());

    fs::create_dir(repo.path("own")).unwrap();
    repo.symlink(outside.join("file"), "own/codescout.1");
    let pipe = repo.beside("pipe");
    let made = Command::new("mkfifo").arg(&pipe).output_in_time().unwrap();
    assert!(made.status.success());
    repo.symlink(&pipe, "own/codescout-blame.1");
    call(&repo, &["man", "own"]).expect(0);
    assert_eq!(fs::read(outside.join("file")).unwrap(), b"precious");
    assert!(!repo.path("own/codescout.1").is_symlink());
    assert!(!repo.path("own/codescout-blame.1").is_symlink());
}

#[test]
fn control_characters_cannot_steer_a_terminal() {
    const HIDDEN: [char; 5] = ['\u{202e}', '\u{200b}', '\u{2028}', '\u{feff}', '\u{e0041}'];
    let repo = project();
    let hidden: String = HIDDEN.iter().collect();
    repo.write(
        "evil\x1b[31m\nname.rs",
        format!("fn evil_\u{202e}() {{ \"\x1b]0;title\x07\" }}\nstruct Evil; // \x1b[2J{hidden}\n"),
    );
    for args in [
        &["grep", "Evil|evil"][..],
        &["grep", "-l", "Evil"],
        &["symbol", "Evil", "--body", "--refs"],
        &["outline", "--view", "symbols"],
        &["outline", "--view", "tree"],
        &["outline", "--view", "map"],
        &["search", "evil"],
        &["search", "--mode", "regex", "Evil"],
    ] {
        let called = call(&repo, args).expect(0);
        let is_control = |c: char| c.is_control() && c != '\n' || HIDDEN.contains(&c);
        assert!(!called.text().contains(is_control), "{args:?}: {:?}", called.text());
        assert!(!called.stderr.contains(is_control), "{args:?}: {:?}", called.stderr);
        let json = call(&repo, &[args, &["--json"]].concat()).expect(0);
        assert!(!json.text().contains(is_control), "{args:?}: {:?}", json.text());
    }
    let listed = call(&repo, &["grep", "-l", "Evil"]).expect(0).text();
    let quoted = r#""evil\033[31m\nname.rs""#;
    assert_eq!(listed.trim_end(), quoted);
    let answer = call(&repo, &["grep", "Evil", "--json"]).expect(0).json();
    assert_eq!(answer["results"][0]["path"], quoted);
}

/// A git directory from an archive can have links to any file, and answers go to agents.
#[test]
fn no_error_quotes_a_file_to_which_a_link_in_the_git_directory_leads() {
    for linked in [
        "HEAD",
        "config",
        "config.worktree",
        "included",
        "index",
        "packed-refs",
        "refs/heads/main",
        "refs/tags/v1",
        "shallow",
        "objects/info/alternates",
    ] {
        for private in [
            "hunter2\n",
            "hunter2 = 1\n# hunter2\n",
            "[a]\n[hunter2\n",
            "key: hunter2/x\n",
        ] {
            let repo = project();
            repo.git(["config", "extensions.worktreeConfig", "true"]);
            repo.git(["config", "include.path", "included"]);
            let (private_file, link) = (repo.beside("private"), repo.path(".git").join(linked));
            fs::write(&private_file, private).unwrap();
            let _ = fs::remove_file(&link);
            std::os::unix::fs::symlink(&private_file, &link).unwrap();
            for args in [
                &["status"][..],
                &["search", "parse", "--json"],
                &["diff", "v1"],
                &["doctor"],
            ] {
                let called = call(&repo, args);
                let said = format!("{}{}", called.text(), called.stderr);
                assert!(!said.contains("hunter2"), "{linked} {args:?}: {said}");
            }
        }
    }
}
