//! Compares `codescout blame` with `git blame`.

use serde_json::{Value, json};

use super::call;
use crate::mcp::Client;
use crate::support::TestRepo;

/// Returns the commit, the original line and the current line of each line, from `git blame --line-porcelain`.
fn git_blame(repo: &TestRepo, args: &[&str]) -> Vec<(String, u64, u64)> {
    let printed = repo.git_bytes([&["blame", "--line-porcelain"], args].concat());
    let printed = String::from_utf8_lossy(&printed).into_owned();
    let mut lines = Vec::new();
    let mut head = None;
    for line in printed.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        if line.starts_with('\t') {
            lines.extend(head.take());
        } else if words[0].len() == 40 && words.len() >= 3 && head.is_none() {
            head = Some((
                words[0].to_owned(),
                words[1].parse().unwrap(),
                words[2].parse().unwrap(),
            ));
        }
    }
    lines
}

fn lines(answer: &Value) -> Vec<(String, u64, u64)> {
    let line = |line: &Value| {
        let commit = line["commit"].as_str().map_or("0".repeat(40), str::to_owned);
        let here = line["line"].as_u64().unwrap();
        (commit, line["from_line"].as_u64().unwrap_or(here), here)
    };
    answer["results"].as_array().unwrap().iter().map(line).collect()
}

fn blame(repo: &TestRepo, args: &[&str]) -> Value {
    call(repo, &[&["blame", "--json", "--by", "line"], args].concat())
        .expect(0)
        .json()
}

/// Creates a file whose lines come from several commits and were moved, indented and copied.
fn patchwork() -> TestRepo {
    let repo = TestRepo::empty();
    let lines = |from: usize, to: usize| {
        (from..to)
            .map(|n| format!("let value_{n} = compute_something({n});\n"))
            .collect::<String>()
    };
    repo.write("a.rs", lines(0, 20));
    repo.write("b.rs", lines(100, 120));
    repo.commit("write");
    repo.write("a.rs", format!("{}changed here;\n{}", lines(0, 10), lines(11, 20)));
    repo.commit("change one");
    repo.write(
        "a.rs",
        format!("{}changed here;\n{}{}", lines(12, 20), lines(11, 12), lines(0, 10)),
    );
    repo.commit("move lines");
    let indented: String = lines(0, 10).lines().map(|line| format!("        {line}\n")).collect();
    repo.write(
        "a.rs",
        format!("{}changed here;\n{}{indented}", lines(12, 20), lines(11, 12)),
    );
    repo.commit("indent");
    repo.write(
        "a.rs",
        format!(
            "{}changed here;\n{}{indented}{}",
            lines(12, 20),
            lines(11, 12),
            lines(100, 110)
        ),
    );
    repo.write("b.rs", lines(110, 120));
    repo.commit("move from the other file");
    repo.rename("a.rs", "folder/c.rs");
    repo.commit("rename");
    repo
}

#[test]
fn lines_are_those_of_git_blame_whatever_is_asked() {
    let repo = patchwork();
    let indent = repo.rev_parse("HEAD~2");
    for flags in [
        &[][..],
        &["-w"],
        &["-M"],
        &["-C"],
        &["-C", "-C", "-w"],
        &["-M", "--ignore-rev", &indent],
    ] {
        let args = [&["--ref", "HEAD", "folder/c.rs"], flags].concat();
        let wanted = git_blame(&repo, &[flags, &["HEAD", "--", "folder/c.rs"]].concat());
        assert_eq!(lines(&blame(&repo, &args)), wanted, "{flags:?}");
        assert!(wanted.len() > 25);
    }
    let wanted = git_blame(&repo, &["-L5,9", "HEAD", "--", "folder/c.rs"]);
    assert_eq!(lines(&blame(&repo, &["folder/c.rs:5-9"])), wanted);
    // An older revision in which the file has its previous name.
    let wanted = git_blame(&repo, &["HEAD~1", "--", "a.rs"]);
    assert_eq!(lines(&blame(&repo, &["a.rs", "--ref", "HEAD~1"])), wanted);
}

#[test]
fn uncommitted_lines_belong_to_nobody() {
    let repo = patchwork();
    let mut text = String::from_utf8(repo.read("folder/c.rs")).unwrap();
    text = text.replace("changed here;", "changed again;");
    text.push_str("new at the end;\n");
    text.insert_str(0, "new at the start;\n");
    repo.write("folder/c.rs", &text);
    assert_eq!(
        lines(&blame(&repo, &["folder/c.rs"])),
        git_blame(&repo, &["--", "folder/c.rs"])
    );
    let notes = blame(&repo, &["folder/c.rs", "-w"])["notes"].to_string();
    assert!(notes.contains("uncommitted changes"), "{notes}");
    repo.write("untracked.rs", "fn f() {}\n");
    let answer = blame(&repo, &["untracked.rs"]);
    assert_eq!(answer["results"][0].get("commit"), None);
}

#[test]
fn a_configured_list_that_is_not_there_is_a_note() {
    let repo = patchwork();
    let wanted = git_blame(&repo, &["HEAD", "--", "folder/c.rs"]);
    repo.git(["config", "blame.ignoreRevsFile", ".git-blame-ignore-revs"]);
    let answer = blame(&repo, &["folder/c.rs", "--ref", "HEAD"]);
    assert_eq!(lines(&answer), wanted);
    assert!(
        answer["notes"][0].as_str().unwrap().contains(".git-blame-ignore-revs"),
        "{answer}"
    );
    // A file `.git-blame-ignore-revs` is used if it exists.
    let indent = repo.rev_parse("HEAD~2");
    repo.write(".git-blame-ignore-revs", format!("# formatting\n{indent}\n"));
    let answer = blame(&repo, &["folder/c.rs", "--ref", "HEAD"]);
    assert_eq!(answer.get("notes"), None);
    assert_eq!(lines(&answer), git_blame(&repo, &["HEAD", "--", "folder/c.rs"]));
    assert_ne!(lines(&answer), wanted);
    call(&repo, &["blame", "folder/c.rs", "--ignore-revs-file", "nothing"]).expect(2);
    // git would quote the first line of a private file that a committed link leads to.
    for text in ["hunter2 = 1\n", "# formatting\nhunter2\n", "\n\n[hunter2]\n\u{0}"] {
        repo.write(".git-blame-ignore-revs", text);
        let answer = blame(&repo, &["folder/c.rs", "--ref", "HEAD"]);
        assert_eq!(lines(&answer), wanted);
        let notes = answer["notes"].to_string();
        assert!(
            notes.contains("is no list of commits") && !notes.contains("hunter2"),
            "{notes}"
        );
    }
}

#[test]
fn no_filter_of_the_repository_is_run() {
    let repo = TestRepo::new("//- a.txt\nwords\n//- .gitattributes\n*.txt filter=evil diff=evil\n");
    let canary = repo.beside("canary");
    let touch = format!("touch {}; cat", canary.display());
    for key in [
        "filter.evil.clean",
        "filter.evil.smudge",
        "diff.evil.textconv",
        "core.fsmonitor",
    ] {
        repo.git(["config", key, &touch]);
    }
    std::fs::write(repo.path("a.txt"), "words\nmore\n").unwrap();
    call(&repo, &["blame", "a.txt"]).expect(0);
    call(&repo, &["blame", "a.txt", "--ref", "HEAD", "--by", "line"]).expect(0);
    call(&repo, &["history", "a.txt:1", "--diff"]).expect(0);
    assert!(!canary.exists());
}

#[test]
fn definitions_and_folders_have_owners() {
    let repo = TestRepo::new("//- src/a.rs\nfn one() {\n    first();\n    second();\n    third();\n}\n\nfn two() {}\n");
    repo.write(
        "src/a.rs",
        "fn one() {\n    first();\n    changed();\n    third();\n}\n\nfn two() {}\n",
    );
    repo.git(["add", "."]);
    repo.git(["commit", "--quiet", "--author", "Bob <bob@example.com>", "-m", "change"]);
    let answer = call(&repo, &["blame", "src/a.rs", "--json"]).expect(0).json();
    let one = &answer["results"][0];
    assert_eq!((one["name"].as_str(), one["commits"].as_u64()), (Some("one"), Some(2)));
    assert_eq!(one["last"]["subject"], "change");
    assert_eq!(
        (one["owners"][0]["share"].as_f64(), one["owners"][1]["share"].as_f64()),
        (Some(0.8), Some(0.2))
    );
    let answer = call(&repo, &["blame", "two", "--json"]).expect(0).json();
    assert_eq!(answer["results"].as_array().unwrap().len(), 1);
    assert_eq!(answer["results"][0]["last"]["subject"], "start");
    let answer = call(&repo, &["blame", "src", "--json"]).expect(0).json();
    assert_eq!(answer["by"], "owner");
    assert_eq!(answer["results"].as_array().unwrap().len(), 2);
    call(&repo, &["blame", "src/a.rs:900"]).expect(2);
    call(&repo, &["blame", "nothing-like-it"]).expect(2);
    call(&repo, &["blame", "src/gone.rs"]).expect(2);
}

#[test]
fn a_shallow_clone_says_where_lines_may_be_older() {
    let repo = patchwork();
    let shallow = repo.clone_with("shallow", &["--depth=1"]);
    let answer = blame(&shallow, &["folder/c.rs", "--ref", "HEAD"]);
    assert_eq!(lines(&answer), git_blame(&shallow, &["HEAD", "--", "folder/c.rs"]));
    assert_eq!(answer["results"][0]["boundary"], true);
    assert_eq!(answer["complete"], false);
    let called = call(&shallow, &["blame", "folder/c.rs", "--by", "line"]).expect(0);
    assert!(called.text().starts_with('^'), "{}", called.text());
    assert!(called.stderr.contains("this clone is shallow"), "{}", called.stderr);
}

#[test]
fn one_is_not_many_and_none_is_left_out() {
    let repo = TestRepo::new("//- a.py\ndef one(): return 1\n");
    let shown = call(&repo, &["blame", "one"]).expect(0).text();
    assert!(shown.contains(" 1 commit; "), "{shown}");
    repo.write("b.py", "def two(): return 1\n");
    let shown = call(&repo, &["blame", "b.py"]).expect(0).text();
    assert!(
        shown.contains("1 line is not committed") && !shown.contains("commits;"),
        "{shown}"
    );
}

#[test]
fn lines_of_an_unfinished_merge_are_credited_as_git_does() {
    let repo = TestRepo::empty();
    let numbered = |from: usize, to: usize| (from..to).map(|n| format!("line {n}\n")).collect::<String>();
    repo.write("both.txt", numbered(0, 20));
    repo.write("same.txt", "one\n");
    repo.commit("start");
    repo.git(["checkout", "-q", "-b", "theirs"]);
    repo.write(
        "both.txt",
        format!(
            "{}theirs at the end\n",
            numbered(0, 20).replace("line 10\n", "theirs 10\n")
        ),
    );
    repo.write("same.txt", "theirs\none\n");
    repo.write("added.txt", "added by them\n");
    repo.commit("theirs");
    repo.checkout("main");
    repo.write(
        "both.txt",
        format!("ours first\n{}", numbered(0, 20).replace("line 10\n", "ours 10\n")),
    );
    repo.commit("ours");
    assert!(
        !repo
            .try_git(["merge", "--no-ff", "--no-commit", "theirs"])
            .status
            .success()
    );
    let check = |path: &str| {
        let (found, expected) = (lines(&blame(&repo, &[path])), git_blame(&repo, &[path]));
        let commits =
            |lines: &[(String, u64, u64)]| lines.iter().map(|line| (line.0.clone(), line.2)).collect::<Vec<_>>();
        assert_eq!(commits(&found), commits(&expected), "{path}");
        let n_uncommitted = found
            .iter()
            .filter(|(commit, ..)| commit.starts_with("0000000"))
            .count();
        (found.len(), n_uncommitted)
    };
    // Conflict markers belong to no commit.
    assert_eq!(check("both.txt"), (26, 3));
    assert_eq!(check("same.txt"), (2, 0));
    assert_eq!(check("added.txt"), (1, 0));
    repo.write(
        "both.txt",
        format!("ours first\n{}theirs at the end\nmine\n", numbered(0, 20)),
    );
    assert_eq!(check("both.txt").1, 2);
}

#[test]
fn a_work_tree_that_the_configuration_names_is_blamed() {
    let repo = patchwork();
    let elsewhere = repo.beside("elsewhere");
    std::fs::create_dir_all(elsewhere.join("folder")).unwrap();
    std::fs::copy(repo.path("folder/c.rs"), elsewhere.join("folder/c.rs")).unwrap();
    let expected = git_blame(&repo, &["HEAD", "--", "folder/c.rs"]);
    repo.git(["config", "core.worktree", elsewhere.to_str().unwrap()]);
    let folder = repo.path(".git");
    let refused = crate::cli::call_in(&folder, &["status"], b"").expect(2);
    assert!(
        refused.stderr.contains("do not refer to each other"),
        "{}",
        refused.stderr
    );
    std::fs::write(elsewhere.join(".git"), format!("gitdir: {}\n", folder.display())).unwrap();
    for args in [
        &["blame", "--json", "--by", "line", "--ref", "HEAD", "folder/c.rs"][..],
        &["blame", "--json", "--by", "line", "folder/c.rs"],
    ] {
        let answer = crate::cli::call_in(&folder, args, b"").expect(0).json();
        assert_eq!(lines(&answer), expected, "{args:?}");
    }
    for args in [
        &["grep", "changed here"][..],
        &["read", "folder/c.rs"],
        &["search", "changed"],
        &["history", "folder/c.rs:1-3"],
        &["blame", "folder/c.rs"],
        &["diff", "HEAD~1", "HEAD"],
        &["status"],
        &["outline"],
        &["doctor"],
    ] {
        let called = crate::cli::call_in(&folder, args, b"");
        assert!(called.code < 2, "{args:?}: {}", called.stderr);
    }
}

#[test]
fn replaced_objects_are_named_by_every_answer() {
    let repo = TestRepo::new("//- a.py\ndef first():\n    return 1\n");
    let of = |repo: &TestRepo, args: &[&str]| call(repo, &[args, &["--json"]].concat()).expect(0).json();
    repo.write("b.py", "def other():\n    return 3\n");
    repo.commit("two");
    let asked: [&[&str]; 8] = [
        &["grep", "first"],
        &["read", "a.py"],
        // The revision is not indexed, so its tree is searched for the file.
        &["read", "a.py", "--ref", "HEAD~1"],
        &["outline", "a.py", "--ref", "HEAD~1"],
        &["search", "first"],
        &["symbol", "first"],
        &["outline"],
        &["history", "a.py"],
    ];
    for args in asked {
        assert_eq!(of(&repo, args)["complete"], true, "{args:?}");
    }
    let blob = repo.rev_parse("HEAD:a.py");
    repo.write("other", "def second():\n    return 2\n");
    let other = repo.git(["hash-object", "-w", "other"]);
    repo.remove("other");
    repo.git(["replace", &blob, &other]);
    for args in asked {
        let why = of(&repo, args)["incomplete_because"].to_string();
        assert!(why.contains("refs/replace"), "{args:?}: {why}");
    }
    for command in ["read", "outline"] {
        let message = call(&repo, &[command, "a.py", "--ref", "HEAD~1"]).expect(0).stderr;
        assert!(message.contains("refs/replace"), "{command}: {message}");
    }
    let mut client = Client::start(repo.root(), &[]);
    client.initialize("test");
    for (tool, place) in [("read", "target"), ("outline", "at")] {
        let answer = client.call(tool, json!({place: "a.py", "ref": "HEAD~1"}));
        assert!(answer.text.contains("refs/replace"), "{answer:?}");
    }
}

#[test]
fn a_file_that_is_too_large_is_not_called_damaged() {
    let repo = TestRepo::new("//- a.txt\none\ntwo\n");
    call(&repo, &["config", "set", "index.max_blob_bytes", "5"]).expect(0);
    let called = call(&repo, &["blame", "a.txt"]).expect(2);
    let message = &called.stderr;
    assert!(
        message.contains("\"a.txt\" is too large: 8 bytes (limit: 5)") && !message.contains("damaged"),
        "{message}"
    );
}

#[test]
fn one_line_comes_with_the_subject_of_its_commit() {
    let repo = patchwork();
    let said = call(&repo, &["blame", "folder/c.rs:1"]).expect(0).text();
    assert!(said.ends_with("\n    move lines\n"), "{said}");
    let said = call(&repo, &["blame", "folder/c.rs:12"]).expect(0).text();
    assert!(said.ends_with("\n    indent\n"), "{said}");
    let said = call(&repo, &["blame", "folder/c.rs:1-9"]).expect(0).text();
    assert_eq!(said.lines().count(), 9, "{said}");
}

#[test]
fn an_address_is_one_owner_with_the_latest_name() {
    let repo = TestRepo::empty();
    let commit = |n: u32, author: &str| {
        let lines: String = (0..=n).map(|line| format!("    step({line});\n")).collect();
        repo.write("src/a.rs", format!("fn f() {{\n{lines}}}\n"));
        repo.git(["add", "--all"]);
        repo.git(["commit", "--quiet", "--message", "edit", "--author", author]);
    };
    commit(1, "ada <Ada@x.org>");
    commit(2, "Ada Lovelace <ada@x.org>");
    commit(3, "Bob <bob@x.org>");
    let names = |args: &[&str], pointer: &str| -> Vec<String> {
        let answer = call(&repo, &[&["blame", "--json"], args].concat()).expect(0).json();
        let owners = answer.pointer(pointer).unwrap().as_array().unwrap().iter();
        owners
            .map(|owner| format!("{} {}", owner["name"].as_str().unwrap(), owner["commits"]))
            .collect()
    };
    let wanted = ["Ada Lovelace 2", "Bob 1"];
    // Lines of a file, lines of a definition, changes of a folder, and, once traced, changes of a definition.
    assert_eq!(names(&["src/a.rs", "--by", "owner"], "/results"), wanted);
    assert_eq!(names(&["src/a.rs#f"], "/results/0/owners"), wanted);
    assert_eq!(names(&["src"], "/results"), wanted);
    call(&repo, &["index", "--history"]).expect(0);
    assert_eq!(names(&["src/a.rs#f"], "/results/0/owners"), wanted);
    let said = call(&repo, &["blame", "src/a.rs#f"]).expect(0).text();
    assert!(
        said.contains("Ada Lovelace 67 % (last 2023-11-14), Bob 33 % (last 2023-11-14)"),
        "{said}"
    );
}
