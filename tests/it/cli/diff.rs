//! Compares `codescout diff` with `git diff`.

use serde_json::{Value, json};

use super::{PROGRAM, call};
use crate::support::{InTime, TestRepo, write_executable};

fn diff(repo: &TestRepo, args: &[&str]) -> Value {
    call(repo, &[&["diff", "--json"], args].concat()).expect(0).json()
}

/// Returns the number of added and removed lines and the path of each file, from `git diff --numstat -M`.
fn numstat(repo: &TestRepo, args: &[&str]) -> Vec<(u64, u64, String)> {
    let printed = repo.git([&["diff", "--numstat", "--no-renames"], args].concat());
    let fields = |line: &str| -> Vec<String> { line.split('\t').map(str::to_owned).collect() };
    let lines = printed.lines().map(fields);
    lines
        .map(|line| (line[0].parse().unwrap(), line[1].parse().unwrap(), line[2].clone()))
        .collect()
}

fn counts(answer: &Value) -> Vec<(u64, u64, String)> {
    let file = |file: &Value| {
        let lines = |name: &str| file[name].as_u64().unwrap();
        (
            lines("added_lines"),
            lines("removed_lines"),
            file["path"].as_str().unwrap().to_owned(),
        )
    };
    answer["results"].as_array().unwrap().iter().map(file).collect()
}

/// Returns the name and the events of each definition in the answer.
fn symbols(answer: &Value) -> Vec<(String, Value)> {
    let files = answer["results"].as_array().unwrap().iter();
    let symbols = files.flat_map(|file| file["symbols"].as_array().unwrap());
    symbols
        .map(|symbol| (symbol["id"].as_str().unwrap().to_owned(), symbol["events"].clone()))
        .collect()
}

fn sample() -> TestRepo {
    TestRepo::new(
        "
        //- src/a.rs
        /// Says one.
        pub fn one(x: u8) -> u8 {
            first(x, 1) + second(x, 2)
        }

        pub fn two() {
            let a = compute(17, other);
            let b = compute(18, a);
            finish(a, b, 19)
        }

        pub fn three() {
            let c = weigh(21, scale);
            let d = weigh(22, c);
            close(c, d, 23)
        }
        //- src/b.rs
        pub fn four() {}
        //- notes.txt
        words
    ",
    )
}

#[test]
fn files_and_lines_are_those_of_git() {
    let repo = sample();
    repo.write("notes.txt", "other words\nand more\n");
    repo.remove("src/b.rs");
    repo.write("new.txt", "new\n");
    repo.commit("second");
    assert_eq!(
        counts(&diff(&repo, &["HEAD~1", "HEAD"])),
        numstat(&repo, &["HEAD~1", "HEAD"])
    );
    assert_eq!(
        counts(&diff(&repo, &["HEAD~1..HEAD"])),
        numstat(&repo, &["HEAD~1", "HEAD"])
    );
    repo.write("notes.txt", "staged\n");
    repo.git(["add", "notes.txt"]);
    repo.write("new.txt", "on disk\n");
    assert_eq!(counts(&diff(&repo, &["HEAD", "INDEX"])), numstat(&repo, &["--cached"]));
    assert_eq!(counts(&diff(&repo, &["INDEX", "WORKTREE"])), numstat(&repo, &[]));
    assert_eq!(counts(&diff(&repo, &[])), numstat(&repo, &["HEAD"]));
    assert_eq!(counts(&diff(&repo, &["HEAD~1"])), numstat(&repo, &["HEAD~1"]));
    assert_eq!(
        counts(&diff(&repo, &["HEAD~1", "--path", "src"])),
        numstat(&repo, &["HEAD~1", "--", "src"])
    );
    let text = diff(&repo, &["--by", "text"]);
    assert_eq!(text["results"][0]["diff"], "@@ -1 +1 @@\n-new\n+on disk\n");
    call(&repo, &["diff", "HEAD", "HEAD"]).expect(1);
    call(&repo, &["diff", "nothing"]).expect(2);
}

#[test]
fn three_dots_begin_where_the_branches_parted() {
    let repo = sample();
    repo.git(["checkout", "--quiet", "-b", "topic"]);
    repo.write("topic.txt", "x\n");
    repo.commit("on topic");
    repo.checkout("main");
    repo.write("main.txt", "x\n");
    repo.commit("on main");
    assert_eq!(
        counts(&diff(&repo, &["main...topic"])),
        numstat(&repo, &["main...topic"])
    );
    repo.git(["checkout", "--quiet", "--orphan", "apart"]);
    repo.commit("another root");
    call(&repo, &["diff", "main...apart"]).expect(2);
}

#[test]
fn definitions_are_told_by_what_became_of_them() {
    let repo = sample();
    let text = String::from_utf8(repo.read("src/a.rs")).unwrap();
    let start = text.find("pub fn three").unwrap();
    let (kept, three) = text.split_at(start);
    let kept = kept
        .replace("Says one.", "Says 1.")
        .replace("fn two()", "fn zwei()")
        .replace("u8) ->", "u16) ->");
    repo.write("src/a.rs", kept);
    repo.write("src/c.rs", format!("{three}\npub fn five() {{ x() }}\n"));
    repo.write("src/b.rs", "pub fn four() {\n}\n");
    assert_eq!(
        symbols(&diff(&repo, &[])),
        [
            ("src/a.rs#one".to_owned(), json!(["signature", "doc"])),
            ("src/a.rs#zwei".to_owned(), json!(["renamed"])),
            ("src/b.rs#four".to_owned(), json!(["formatting"])),
            ("src/c.rs#three".to_owned(), json!(["moved"])),
            ("src/c.rs#five".to_owned(), json!(["added"])),
        ]
    );
    repo.commit("all of it");
    repo.rename("src/c.rs", "src/d.rs");
    let answer = diff(&repo, &[]);
    assert_eq!(answer["results"][0]["kind"], "renamed");
    assert_eq!(answer["results"][0]["from_path"], "src/c.rs");
    assert_eq!(symbols(&answer)[0], ("src/d.rs#three".to_owned(), json!(["moved"])));
}

#[test]
fn drift_grows_from_a_reformat_to_a_rewrite() {
    let repo = TestRepo::empty();
    let function = |name: &str, body: &str| format!("fn {name}() {{ {body} }}\n");
    let [parse, scan, draw] =
        ["parse", "scan", "draw"].map(|name| function(name, "read_tokens(source).count_lines();"));
    repo.write("a.rs", [&*parse, &*scan, &*draw, "fn one() {}\n"].concat());
    repo.write("signs.md", "----\n");
    repo.write("picture.png", b"\0old");
    repo.commit("first");
    let parse = function("parse", "read_tokens(source)\n        .count_lines();\n");
    let scan = function("scan", "read_tokens(text).count_lines();");
    let draw = function("draw", "window.paint(colour, border);");
    repo.write("a.rs", [parse, scan, draw].concat());
    repo.write("signs.md", "====\n");
    repo.write("picture.png", b"\0new");
    let answer = diff(&repo, &["--with", "drift"]);
    let results = answer["results"].as_array().unwrap();
    let symbols = results[0]["symbols"].as_array().unwrap().iter();
    let drifts: Vec<&Value> = symbols.filter_map(|symbol| symbol.get("drift")).collect();
    let kinds: Vec<&Value> = drifts.iter().map(|drift| &drift["as_much_as"]).collect();
    assert_eq!(kinds, ["reformat", "rename", "rewrite"]);
    assert_eq!(drifts[0]["distance"], 0.0);
    assert!(drifts[1]["distance"].as_f64() < drifts[2]["distance"].as_f64());
    let has_vector = |at: usize| !results[at]["drift"].is_null();
    assert_eq!(
        results
            .iter()
            .map(|file| file["path"].as_str().unwrap())
            .collect::<Vec<_>>(),
        ["a.rs", "picture.png", "signs.md"]
    );
    assert_eq!([has_vector(0), has_vector(1), has_vector(2)], [true, false, false]);
    let text = call(&repo, &["diff", "--with", "drift"]).expect(0).text();
    assert!(text.contains("picture.png binary drift unknown (no vector)"), "{text}");
    assert!(text.contains("function parse drift 0\n"), "{text}");
    // Neither a new order of words nor a line of many says anything about a file.
    repo.write("signs.md", "three two one\n");
    repo.commit("second");
    repo.write("signs.md", "one two three\n");
    let text = call(&repo, &["diff", "--with", "drift", "-p", "signs.md"])
        .expect(0)
        .text();
    assert!(text.contains("signs.md +1 -1\n"), "{text}");
    assert!(diff(&repo, &[])["results"][0].get("drift").is_none());
}

#[test]
fn before_the_first_commit_everything_is_new() {
    let repo = TestRepo::empty();
    repo.write("a.rs", "fn f() {}\n");
    let answer = diff(&repo, &[]);
    assert_eq!(symbols(&answer), [("a.rs#f".to_owned(), json!(["added"]))]);
}

/// Commits with a pre-commit hook that runs `diff HEAD INDEX`. Returns what git and the hook say about the files.
fn in_hook(repo: &TestRepo, git_dir: &str, args: &[&str]) -> (String, String) {
    let (git, ours) = (repo.beside("git.txt"), repo.beside("ours.txt"));
    let hook = format!(
        "#!/bin/sh\ngit diff --cached --name-only > '{}'\n'{PROGRAM}' diff HEAD INDEX --by file > '{}'\n",
        git.display(),
        ours.display()
    );
    write_executable(&repo.path(git_dir).join("hooks/pre-commit"), &hook);
    repo.git([&["commit", "--quiet", "-m", "x"], args].concat());
    let read = |path| std::fs::read_to_string(path).unwrap();
    (read(&git), read(&ours))
}

#[test]
fn the_index_in_a_hook_is_the_one_of_the_commit() {
    let repo = TestRepo::new("//- m.py\ndef one(): return 1\n//- sub/k.py\ndef k(): return 1\n");
    let change = |repo: &TestRepo| {
        repo.write("m.py", "def two(): return 2\n");
        repo.write("sub/k.py", "def l(): return 2\n");
        repo.write("n.py", "x = 1\n");
        repo.git(["add", "n.py"]);
    };
    change(&repo);
    let (git, ours) = in_hook(&repo, ".git", &["m.py"]);
    assert_eq!(git, "m.py\n");
    assert!(ours.contains("m.py") && !ours.contains("n.py"), "{ours}");
    // With the changed files besides the staged ones, and from a subfolder.
    let (git, ours) = in_hook(&repo, ".git", &["--include", "sub"]);
    assert_eq!(git, "n.py\nsub/k.py\n");
    assert!(
        ours.contains("k.py") && ours.contains("n.py") && !ours.contains("m.py"),
        "{ours}"
    );
    let linked = repo.worktree("linked");
    linked.git(["reset", "--quiet", "--hard", "HEAD~2"]);
    change(&linked);
    let common = repo.path(".git");
    let (git, ours) = in_hook(&linked, common.to_str().unwrap(), &["m.py"]);
    assert_eq!(git, "m.py\n");
    assert!(ours.contains("m.py") && !ours.contains("n.py"), "{ours}");
    repo.write("p.py", "x = 1\n");
    repo.git(["add", "p.py"]);
    let (git, ours) = in_hook(&repo, ".git", &["--all"]);
    assert_eq!(git, "p.py\n");
    assert!(ours.contains("p.py"), "{ours}");
}

#[test]
fn an_index_outside_of_the_git_directory_is_ignored() {
    let repo = TestRepo::new("//- m.py\ndef one(): return 1\n");
    let other = TestRepo::new("//- other.py\ndef one(): return 1\n");
    let linked = repo.worktree("linked");
    linked.write("theirs.py", "x = 1\n");
    linked.git(["add", "theirs.py"]);
    repo.write("n.py", "x = 1\n");
    repo.git(["add", "n.py"]);
    let outside = repo.beside("copy");
    std::fs::copy(linked.path("../repo/.git/worktrees/linked/index"), &outside).unwrap();
    repo.symlink(&outside, ".git/link");
    std::fs::create_dir(repo.path(".git/folder")).unwrap();
    for index in [
        outside.as_path(),
        &other.path(".git/index"),
        &repo.path(".git/worktrees/linked/index"),
        &repo.path(".git/link"),
        &repo.path(".git/none"),
        &repo.path(".git/folder"),
        &repo.path(".git/../../copy"),
        "".as_ref(),
        "copy".as_ref(),
    ] {
        let mut command = std::process::Command::new(PROGRAM);
        command
            .args(["diff", "HEAD", "INDEX", "--by", "file"])
            .current_dir(repo.root());
        let output = command.env("GIT_INDEX_FILE", index).output_in_time().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("n.py"), "{}: {output:?}", index.display());
        assert!(
            !said.contains("theirs.py") && !said.contains("other.py"),
            "{}: {said}",
            index.display()
        );
    }
}

#[test]
fn a_moved_submodule_is_named_with_both_commits() {
    let inner = TestRepo::new("\n//- s.py\ndef s():\n    pass\n");
    let repo = TestRepo::new("\n//- a.py\ndef a():\n    pass\n");
    repo.git(["submodule", "--quiet", "add", inner.root().to_str().unwrap(), "lib"]);
    repo.commit("submodule");
    let before = repo.git(["-C", "lib", "rev-parse", "HEAD"]).trim().to_owned();
    std::fs::write(repo.path("lib/s.py"), "def s():\n    return 1\n").unwrap();
    call(&repo, &["diff"]).expect(1);
    let name = ["-c", "user.name=a", "-c", "user.email=a@x"];
    repo.git([&["-C", "lib"], &name[..], &["commit", "--quiet", "-am", "two"]].concat());
    let after = repo.git(["-C", "lib", "rev-parse", "HEAD"]).trim().to_owned();
    let is_moved = |answer: &Value| {
        let file = &answer["results"][0];
        assert_eq!(
            (&file["path"], &file["is_submodule"]),
            (&json!("lib"), &json!(true)),
            "{answer}"
        );
        assert_eq!((&file["old_blob"], &file["new_blob"]), (&json!(before), &json!(after)));
    };
    // Only the checkout has moved, then the index, then the commit.
    is_moved(&diff(&repo, &[]));
    assert_eq!(counts(&diff(&repo, &[])), numstat(&repo, &[]));
    repo.git(["add", "lib"]);
    is_moved(&diff(&repo, &["HEAD", "INDEX"]));
    for (args, code) in [(["blame", "lib"], 2), (["read", "lib"], 2)] {
        let refused = call(&repo, &args).expect(code);
        assert!(
            refused.stderr.contains("is a submodule"),
            "{args:?}: {}",
            refused.stderr
        );
    }
    repo.commit("moved");
    is_moved(&diff(&repo, &["HEAD~1", "HEAD"]));
    let text = String::from_utf8(call(&repo, &["diff", "HEAD~1", "HEAD"]).expect(0).stdout).unwrap();
    assert!(
        text.contains(&format!("modified lib submodule {} -> {}", &before[..10], &after[..10])),
        "{text}"
    );
    repo.git(["submodule", "--quiet", "deinit", "--force", "lib"]);
    call(&repo, &["diff"]).expect(1);
}

#[test]
fn an_overload_between_two_others_is_the_only_change() {
    let cases = [
        ("a.cpp", "int f(T a) {\n  return go(a, 1) + N;\n}\n\n", "", ""),
        (
            "A.java",
            "    int f(T a) {\n        return go(a, 1) + N;\n    }\n\n",
            "class A {\n",
            "}\n",
        ),
        (
            "A.kt",
            "    fun f(a: T): Int {\n        return go(a, 1) + N\n    }\n\n",
            "class A {\n",
            "}\n",
        ),
        (
            "A.cs",
            "    int f(T a) {\n        return go(a, 1) + N;\n    }\n\n",
            "class A {\n",
            "}\n",
        ),
    ];
    let repo = TestRepo::empty();
    let write = |types: &[&str]| {
        for (path, function, start, end) in cases {
            let one = |kind: &&str| function.replace('T', kind).replace('N', &kind.len().to_string());
            let all: String = types.iter().map(one).collect();
            repo.write(path, format!("{start}{all}{end}"));
        }
    };
    write(&["int", "double"]);
    repo.commit("two");
    write(&["int", "short", "double"]);
    let added = ["A.cs#A.f~2", "A.java#A.f~2", "A.kt#A.f~2", "a.cpp#f~2"];
    assert_eq!(
        symbols(&diff(&repo, &[])),
        added.map(|id| (id.to_owned(), json!(["added"])))
    );
    // The history of an uncommitted change has the same rule.
    for id in ["A.cs#A.f~3", "A.java#A.f~3", "A.kt#A.f~3", "a.cpp#f~3"] {
        let answer = call(&repo, &["history", id, "--json"]).expect(0).json();
        let subjects: Vec<&Value> = answer["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| &one["subject"])
            .collect();
        assert_eq!(subjects, ["two"], "{id}");
    }
    // The removal of an overload is the only change, too.
    repo.commit("three");
    write(&["short", "double"]);
    let events: Vec<Value> = symbols(&diff(&repo, &[]))
        .into_iter()
        .map(|(_, events)| events)
        .collect();
    assert_eq!(events, vec![json!(["removed"]); 4]);
}

#[test]
fn paths_are_globs() {
    let repo = sample();
    for path in ["src/a.rs", "src/b.rs", "lib/src/c.rs", "notes.txt", "pages/[slug].ts"] {
        repo.write(path, format!("// {path}\n"));
    }
    let paths =
        |args: &[&str]| -> Vec<String> { counts(&diff(&repo, args)).into_iter().map(|(.., path)| path).collect() };
    assert_eq!(paths(&["--path", "*.rs"]), ["lib/src/c.rs", "src/a.rs", "src/b.rs"]);
    assert_eq!(paths(&["--path", "src/*.rs"]), ["src/a.rs", "src/b.rs"]);
    assert_eq!(paths(&["--path", "src"]), ["src/a.rs", "src/b.rs"]);
    assert_eq!(paths(&["--path", "**/{a,c}.rs"]), ["lib/src/c.rs", "src/a.rs"]);
    assert_eq!(paths(&["--path", "pages/[slug].ts"]), ["pages/[slug].ts"]);
    assert_eq!(paths(&["-p", "!*.rs", "-p", "!pages"]), ["notes.txt"]);
    assert_eq!(paths(&["-p", "."]).len(), 5);
    repo.remove("src/b.rs");
    assert_eq!(paths(&["--path", "src/b.rs"]), ["src/b.rs"]);
    call(&repo, &["diff", "--path", "*.py"]).expect(1);
}

#[test]
fn interfaces_are_compared_alone() {
    let repo = TestRepo::new(
        "
        //- a.rs
        pub fn open(x: u8) {}
        fn own(x: u8) {}
        pub fn steady() { one() }
        pub fn gone() {}
        //- b.js
        function shown(a) {}
        function hidden(a) {}
        export { shown }
        ",
    );
    repo.write(
        "a.rs",
        "pub fn open(x: u16) {}\nfn own(x: u16) {}\npub fn steady() { two() }\n",
    );
    repo.write(
        "b.js",
        "function shown(a, b) {}\nfunction hidden(a, b) {}\nexport { shown }\n",
    );
    let names = |args: &[&str]| -> Vec<String> { symbols(&diff(&repo, args)).into_iter().map(|(id, _)| id).collect() };
    assert_eq!(
        names(&["--public", "--only", "signature,removed"]),
        ["a.rs#open", "a.rs#gone", "b.js#shown"]
    );
    assert_eq!(names(&["--public", "--only", "body"]), ["a.rs#steady"]);
    assert_eq!(
        names(&["--only", "signature"]),
        ["a.rs#open", "a.rs#own", "b.js#shown", "b.js#hidden"]
    );
    let answer = diff(&repo, &["--public"]);
    assert_eq!(answer["events"], json!({"body": 1, "removed": 1, "signature": 2}));
    call(&repo, &["diff", "--only", "moved"]).expect(1);
}

#[test]
fn files_that_are_too_large_to_compare_are_listed() {
    let repo = TestRepo::new("//- a.py\ndef one():\n    return 1\n//- b.py\ndef two():\n    return 2\n");
    let large = "# a line of a comment\n".repeat(60_000);
    repo.write("a.py", &large);
    repo.write("new.py", &large);
    repo.write("b.py", "def two():\n    return 3\n");
    let said = format!("modified a.py too large to compare: 24 -> {} bytes", large.len());
    for args in [
        &["diff"][..],
        &["diff", "--by", "file"],
        &["diff", "--public"],
        &["diff", "HEAD..WORKTREE"],
    ] {
        let text = call(&repo, args).expect(0).text();
        assert!(text.contains(&said), "{text}");
        assert!(
            text.contains(&format!("added new.py too large to compare: {} bytes", large.len())),
            "{text}"
        );
    }
    let answer = diff(&repo, &["--by", "text"]);
    assert_eq!(answer["complete"], false);
    let row = &answer["results"][0];
    assert_eq!(
        (&row["old_bytes"], &row["new_bytes"]),
        (&json!(24), &json!(large.len()))
    );
    assert_eq!(row["new_blob"], Value::Null);
    // The same file when it is committed.
    repo.commit("large");
    let text = call(&repo, &["diff", "HEAD~1", "HEAD"]).expect(0).text();
    assert!(text.contains(&said), "{text}");
    repo.write("a.py", "");
    let text = call(&repo, &["review", "HEAD"]).expect(0).text();
    assert!(
        text.contains(&format!("too large to compare: {} -> 0 bytes", large.len())),
        "{text}"
    );
    repo.write("a.py", format!("{large}#"));
    for args in [
        &["review", "HEAD", "--json"][..],
        &["graph", "impact", "HEAD..WORKTREE", "--json"],
    ] {
        let answer = call(&repo, args).json();
        let why = answer["incomplete_because"].to_string();
        assert!(
            why.contains("too large or missing in git: 1 file"),
            "{args:?}: {answer}"
        );
    }
}
