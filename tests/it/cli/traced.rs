//! Tests definitions traced through recorded commits: that they are found, and that answers without tracing are the
//! same.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::call;
use crate::support::{InTime, TestRepo, assert_within};

fn json(repo: &TestRepo, args: &[&str]) -> Value {
    let called = call(repo, &[args, &["--json"]].concat());
    assert!(called.code < 2, "{args:?}: {}", called.stderr);
    called.json()
}

/// Returns an answer without its duration and its provenance.
fn results(repo: &TestRepo, args: &[&str]) -> Value {
    json(repo, &[&["history", "-n", "0"], args].concat())["results"].clone()
}

fn ids(results: &Value) -> Vec<&str> {
    let entries = results.as_array().unwrap().iter();
    entries.map(|entry| entry["symbol"]["id"].as_str().unwrap()).collect()
}

fn subjects(results: &Value) -> Vec<&str> {
    let entries = results.as_array().unwrap().iter();
    entries.map(|entry| entry["subject"].as_str().unwrap()).collect()
}

fn function(name: &str, n: u32) -> String {
    format!(
        "pub fn {name}(input: &str) -> usize {{\n    let mut total = {n};\n    for part in input.split(',') {{\n        \
         total += part.len() * {n};\n    }}\n    total.max({n})\n}}\n\n"
    )
}

/// Creates three files whose functions are edited, renamed, moved and removed.
fn lived() -> TestRepo {
    let repo = TestRepo::empty();
    let write = |path: &str, functions: &[(&str, u32)]| {
        let text: String = functions.iter().map(|(name, n)| function(name, *n)).collect();
        repo.write(path, text);
    };
    write("src/a.rs", &[("alpha", 1), ("beta", 2), ("gone", 3)]);
    write("src/b.rs", &[("other", 4), ("gone", 77)]);
    repo.commit("start");
    write("src/a.rs", &[("alpha", 10), ("beta", 2), ("gone", 3)]);
    repo.commit("edit alpha");
    write("src/a.rs", &[("alpha", 10), ("gone", 3)]);
    write("src/b.rs", &[("other", 4), ("gone", 77), ("beta", 2)]);
    repo.commit("move beta");
    write("src/a.rs", &[("alpha", 10)]);
    repo.commit("remove gone of a");
    repo.branch("side");
    repo.checkout("side");
    write("src/b.rs", &[("other", 4), ("gone", 77), ("beta", 20)]);
    repo.commit("edit beta aside");
    repo.checkout("main");
    write("src/c.rs", &[("fresh", 5)]);
    repo.commit("add fresh");
    repo.merge("side");
    repo.git(["mv", "src/c.rs", "src/d.rs"]);
    repo.commit("move the file");
    write("src/b.rs", &[("another", 4), ("beta", 20)]);
    repo.commit("rename other, remove gone of b");
    repo
}

const QUESTIONS: [&[&str]; 6] = [
    &["src/a.rs#alpha", "--diff"],
    &["src/b.rs#beta", "--diff"],
    &["src/a.rs#gone", "--diff"],
    &["src/d.rs#fresh", "--diff"],
    &["src/b.rs#another"],
    &["src/b.rs#beta", "--introduced"],
];

#[test]
fn traced_at_once_bit_by_bit_or_not_at_all_gives_one_answer() {
    let repo = lived();
    let untraced = repo.clone_with("untraced", &[]);
    let wanted: Vec<Value> = QUESTIONS.iter().map(|question| results(&untraced, question)).collect();
    assert_eq!(json(&untraced, &["status"])["history"]["traced"], 0);

    call(&repo, &["index", "--history"]).expect(0);
    let status = json(&repo, &["status"])["history"].clone();
    assert_eq!((&status["commits"], &status["traced"]), (&9.into(), &9.into()));
    let found: Vec<Value> = QUESTIONS.iter().map(|question| results(&repo, question)).collect();
    assert_eq!(found, wanted);
    assert_eq!(subjects(&wanted[1]), ["edit beta aside", "move beta", "start"]);
    assert_eq!(subjects(&wanted[5]), ["start"]);

    // Commits are indexed one at a time, so that batches are merged.
    let stepwise = repo.clone_with("stepwise", &[]);
    let order = stepwise.git(["rev-list", "--reverse", "--topo-order", "HEAD"]);
    for commit in order.lines() {
        stepwise.git(["reset", "--quiet", "--hard", commit]);
        call(&stepwise, &["index", "--history", commit]).expect(0);
    }
    let status = json(&stepwise, &["status"])["history"].clone();
    assert_eq!((&status["commits"], &status["traced"]), (&9.into(), &9.into()));
    call(&stepwise, &["verify"]).expect(0);
    let found: Vec<Value> = QUESTIONS.iter().map(|question| results(&stepwise, question)).collect();
    assert_eq!(found, wanted);

    // After definitions were traced once, every indexing command also traces new commits.
    repo.write("src/e.rs", function("late", 9));
    repo.commit("late");
    call(&repo, &["index"]).expect(0);
    assert_eq!(json(&repo, &["status"])["history"]["traced"], 10);
}

#[test]
fn what_is_damaged_of_definitions_is_dropped_and_made_again() {
    let repo = lived();
    call(&repo, &["index", "--history"]).expect(0);
    let wanted: Vec<Value> = QUESTIONS.iter().map(|question| results(&repo, question)).collect();
    let folder = repo.path(".codescout/history-v1");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let file = files
        .into_iter()
        .find(|path| path.extension().is_some_and(|ending| ending == "sym"));
    let file = file.unwrap();
    let good = fs::read(&file).unwrap();
    for at in (0..good.len()).step_by(101) {
        let mut bad = good.clone();
        bad[at] ^= 4;
        fs::write(&file, bad).unwrap();
        if at % 303 == 0 {
            let listed: Vec<Value> = QUESTIONS.iter().map(|question| results(&repo, question)).collect();
            assert_eq!(listed, wanted, "byte {at}");
        }
        let found = json(&repo, &["verify"]);
        let name = format!("history-v1/{}", file.file_name().unwrap().display());
        assert_eq!(found["results"][0]["file"], name, "byte {at}");
    }
    call(&repo, &["verify", "--repair"]).expect(1);
    let status = json(&repo, &["status"])["history"].clone();
    assert_eq!((&status["commits"], &status["traced"]), (&9.into(), &9.into()));
    let listed: Vec<Value> = QUESTIONS.iter().map(|question| results(&repo, question)).collect();
    assert_eq!(listed, wanted);
}

#[test]
fn definitions_that_are_gone_are_found_by_name() {
    let repo = lived();
    let before = json(&repo, &["history", "--deleted", "gone"]);
    assert_eq!(before["total"], 0);
    let why = before["incomplete_because"].to_string();
    assert!(why.contains("index --history"), "{why}");
    call(&repo, &["index", "--history"]).expect(0);

    let deleted = json(&repo, &["history", "--deleted", "gone", "--diff"]);
    assert_eq!(deleted["target"]["kind"], "symbol");
    assert_eq!(ids(&deleted["results"]), ["src/b.rs#gone", "src/a.rs#gone"]);
    assert_eq!(
        subjects(&deleted["results"]),
        ["rename other, remove gone of b", "remove gone of a"]
    );
    let diff = deleted["results"][1]["symbol"]["diff"].as_str().unwrap();
    assert!(diff.contains("-pub fn gone"), "{diff}");
    // Moved, renamed and existing definitions are not deleted.
    for name in ["beta", "other", "alpha", "fresh", "never"] {
        assert_eq!(json(&repo, &["history", "--deleted", name])["total"], 0, "{name}");
    }
    let in_file = json(&repo, &["history", "--deleted", "src/a.rs#gone"]);
    assert_eq!(ids(&in_file["results"]), ["src/a.rs#gone"]);
    let late = json(&repo, &["history", "--deleted", "gone", "--author", "nobody"]);
    assert_eq!(late["total"], 0);

    // A name that several deleted definitions have returns candidates with their ids. A name of one returns its
    // history.
    let many = json(&repo, &["history", "gone"]);
    let candidates = many["candidates"].as_array().unwrap().iter();
    let candidates: Vec<&str> = candidates.map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(candidates, ["src/b.rs#gone", "src/a.rs#gone"]);
    repo.write("src/a.rs", "");
    let removal = repo.commit("remove alpha");
    call(&repo, &["index"]).expect(0);
    assert_eq!(
        subjects(&results(&repo, &["alpha"])),
        ["remove alpha", "edit alpha", "start"]
    );
    let last = json(&repo, &["history", "alpha", "--last-seen"]);
    assert_eq!(last["last_seen"]["deleted_by"], removal);
    assert_eq!(subjects(&results(&repo, &["alpha", "--introduced"])), ["start"]);
}

#[test]
fn a_merge_did_not_take_away_what_its_side_had_removed() {
    let repo = TestRepo::empty();
    repo.write("a.rs", [function("kept", 1), function("gone", 2)].concat());
    repo.commit("start");
    repo.git(["checkout", "--quiet", "-b", "side"]);
    repo.write("a.rs", function("kept", 1));
    let removal = repo.commit("side removes gone");
    repo.checkout("main");
    repo.write("b.rs", function("other", 3));
    repo.commit("meanwhile");
    repo.git(["merge", "--quiet", "--no-ff", "-m", "merge side", "side"]);
    call(&repo, &["index", "--history"]).expect(0);
    let deleted = results(&repo, &["--deleted", "gone"]);
    assert_eq!(subjects(&deleted), ["side removes gone"]);
    assert_eq!(deleted[0]["commit"], removal);
}

#[test]
fn namesakes_are_told_apart_when_one_is_put_before_them() {
    let of = |name: &str, n: u32| format!("impl {name} for Thing {{\n{}}}\n", function("make", n));
    let repo = TestRepo::empty();
    repo.write("a.rs", [of("One", 1), of("Two", 2)].concat());
    repo.commit("two");
    repo.write("a.rs", [of("One", 1), of("Two", 22)].concat());
    repo.commit("edit the second");
    repo.write("a.rs", [of("Zero", 900), of("One", 1), of("Two", 22)].concat());
    repo.commit("put one before");
    repo.write("a.rs", [of("Zero", 900), of("One", 11), of("Two", 22)].concat());
    repo.commit("edit what is second now");
    let untraced = repo.clone_with("untraced", &[]);
    call(&repo, &["index", "--history"]).expect(0);
    for repo in [&untraced, &repo] {
        let subjects_of = |id: &str| {
            let results = results(repo, &[id]);
            subjects(&results)
                .iter()
                .map(|subject| (*subject).to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(subjects_of("a.rs#Thing.make~3"), ["edit the second", "two"]);
        assert_eq!(subjects_of("a.rs#Thing.make~2"), ["edit what is second now", "two"]);
        assert_eq!(subjects_of("a.rs#Thing.make"), ["put one before"]);
    }
}

#[test]
fn a_method_with_the_name_of_a_field_has_the_id_that_the_index_gives_it() {
    let built = |n: u32, fields: &str| {
        format!(
            "pub struct Builder {{\n{fields}    depth: u32,\n}}\n\nimpl Builder {{\n{}}}\n",
            function("write", n)
        )
    };
    let repo = TestRepo::empty();
    for (message, text) in [
        ("start", built(1, "")),
        ("a field of that name", built(1, "    write: u32,\n")),
        ("edit", built(2, "    write: u32,\n")),
    ] {
        repo.write("a.rs", text);
        repo.commit(message);
    }
    for _ in 0..2 {
        for target in ["a.rs#Builder.write~2", "Builder.write"] {
            assert_eq!(subjects(&results(&repo, &[target])), ["edit", "start"], "{target}");
        }
        assert_eq!(ids(&results(&repo, &["Builder.write"]))[0], "a.rs#Builder.write~2");
        call(&repo, &["index", "--history"]).expect(0);
    }
}

#[test]
fn a_version_that_was_not_there_is_read_when_it_is() {
    let repo = TestRepo::empty();
    repo.write("a.rs", [function("kept", 1), function("gone", 2)].concat());
    repo.commit("start");
    repo.write("a.rs", function("kept", 1));
    repo.commit("remove gone");
    let blob = repo.rev_parse("HEAD~1:a.rs");
    let object = repo.path(format!(".git/objects/{}/{}", &blob[..2], &blob[2..]));
    let aside = repo.path(".git/aside");
    fs::rename(&object, &aside).unwrap();
    call(&repo, &["index", "--history"]);
    let traced = || json(&repo, &["status"])["history"]["traced"].clone();
    assert_eq!(traced(), 0);
    let deleted = json(&repo, &["history", "--deleted", "gone"]);
    assert_eq!((&deleted["total"], &deleted["complete"]), (&0.into(), &false.into()));
    fs::rename(&aside, &object).unwrap();
    call(&repo, &["index", "--history"]).expect(0);
    assert_eq!(traced(), 2);
    assert_eq!(subjects(&results(&repo, &["--deleted", "gone"])), ["remove gone"]);
}

#[test]
fn a_clause_that_names_a_package_has_no_life() {
    let repo = TestRepo::empty();
    let text = |package: &str| {
        format!("package {package}\n\n// Cut cuts.\nfunc Cut(text string) string {{\n\treturn text[1:]\n}}\n")
    };
    repo.write("cut.go", text("cutter"));
    repo.commit("add");
    repo.write("cut.go", text("knife"));
    repo.commit("another package");
    call(&repo, &["index", "--history"]).expect(0);
    let answer = json(&repo, &["blame", "cut.go"]);
    let names: Vec<&str> = answer["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["Cut"]);
    assert_eq!(json(&repo, &["history", "--deleted", "cutter"])["total"], 0);
    assert_eq!(json(&repo, &["history", "cut.go#knife"])["target"]["kind"], "unknown");
    assert_eq!(json(&repo, &["history", "knife"])["target"]["kind"], "unknown");
    assert_eq!(json(&repo, &["history", "cut.go:1"])["target"]["kind"], "lines");
}

#[test]
fn a_member_of_a_file_is_found_by_its_name_alone() {
    let method = |class: &str, name: &str, n: u32| {
        format!("class {class}:\n    def {name}(self, item):\n        self.items.append(item * {n})\n\n\n")
    };
    let repo = TestRepo::empty();
    repo.write(
        "p.py",
        method("A", "push", 1) + &method("B", "pop", 2) + &method("C", "pop", 3) + &method("D", "drop", 4),
    );
    repo.commit("add");
    repo.write(
        "p.py",
        method("A", "push", 5) + &method("B", "pop", 2) + &method("C", "pop", 3),
    );
    repo.commit("edit");
    for is_traced in [false, true] {
        if is_traced {
            call(&repo, &["index", "--history"]).expect(0);
        }
        let answer = json(&repo, &["history", "p.py#push"]);
        assert_eq!(
            (&answer["target"]["path"], &answer["total"]),
            (&"p.py#A.push".into(), &2.into())
        );
        assert_eq!(json(&repo, &["blame", "p.py#push"])["results"][0]["id"], "p.py#A.push");
        let answer = json(&repo, &["history", "p.py#pop"]);
        assert_eq!(answer["target"]["kind"], "many");
        let ids: Vec<&str> = answer["candidates"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["id"].as_str().unwrap())
            .collect();
        assert_eq!(ids, ["p.py#B.pop", "p.py#C.pop"]);
        assert_eq!(json(&repo, &["history", "p.py#nothing"])["target"]["kind"], "unknown");
    }
    let answer = json(&repo, &["history", "p.py#drop"]);
    assert_eq!(
        (&answer["target"]["path"], &answer["target"]["present"]),
        (&"p.py#D.drop".into(), &false.into())
    );
}

#[test]
fn a_move_a_rename_or_other_formatting_alone_is_not_the_last_change() {
    let text = |name: &str, body: &str| {
        let lines: String = (0..14).map(|n| format!("    step_{n}(input, {n})\n")).collect();
        format!("def {name}(input):\n{lines}    {body}\n\n\ndef other():\n    return 1\n")
    };
    let repo = TestRepo::empty();
    repo.write("a.py", text("first", "end(input, 1)"));
    repo.commit("add");
    repo.write("a.py", text("first", "end(input, 2)"));
    let changed = repo.commit("change");
    repo.rename("a.py", "src/b.py");
    repo.commit("move the file");
    repo.write("src/b.py", text("second", "end(input, 2)"));
    repo.commit("rename");
    repo.write("src/b.py", text("second", "end(input,\n        2)  # said at length"));
    let formatted = repo.commit("format");
    let blame = |args: &[&str]| json(&repo, &[&["blame", "src/b.py"], args].concat());
    let last = |answer: &Value| answer["results"][0]["last"]["commit"].as_str().unwrap().to_owned();
    assert_eq!(blame(&[])["basis"], "lines");
    call(&repo, &["index", "--history"]).expect(0);
    let answer = blame(&[]);
    assert_eq!((answer["basis"].as_str(), last(&answer)), (Some("changes"), changed));
    assert_eq!(answer["results"][0]["commits"], 2);
    let answer = blame(&["--all-changes"]);
    assert_eq!(
        (answer["basis"].as_str(), last(&answer)),
        (Some("all_changes"), formatted)
    );
    assert_eq!(answer["results"][0]["commits"], 5);
    let first_line = |args: &[&str]| {
        let printed = call(&repo, &[&["blame", "src/b.py"], args].concat()).expect(0).text();
        printed.lines().next().unwrap().to_owned()
    };
    assert!(first_line(&[]).contains("that changed each definition"));
    assert!(first_line(&["--all-changes"]).contains("touched each definition"));
    assert!(first_line(&["-w"]).contains("git blame"));
    let answer = blame(&["-w", "--all-changes"]);
    assert!(
        answer["notes"][0].as_str().unwrap().contains("counted only after"),
        "{answer}"
    );
}

#[test]
fn a_limit_bounds_what_is_recorded_and_says_so() {
    let repo = TestRepo::empty();
    for n in 1..=6 {
        repo.write("a.rs", function("alpha", n));
        repo.git(["add", "--all"]);
        let date = format!("202{n}-01-01T00:00:00Z");
        let mut commit = repo.command();
        commit.env("GIT_COMMITTER_DATE", &date).env("GIT_AUTHOR_DATE", &date);
        assert!(
            commit
                .args(["commit", "--quiet", "-m", &format!("of 202{n}")])
                .status_in_time()
                .unwrap()
                .success()
        );
    }
    let asked = |settings: &str| {
        fs::create_dir_all(repo.path(".codescout")).unwrap();
        fs::write(repo.path(".codescout.toml"), settings).unwrap();
        let answer = json(&repo, &["history", "a.rs", "--ref", "HEAD"]);
        let why = answer["incomplete_because"].to_string();
        (answer["total"].as_u64().unwrap(), why.contains("not recorded"))
    };
    assert_eq!(asked("[history]\nmax_commits = 2\n"), (2, true));
    // Git knows the commits of lines even if they are not recorded.
    call(&repo, &["index", "--history"]).expect(0);
    let blamed = json(&repo, &["blame", "a.rs", "--ref", "HEAD"]);
    assert!(blamed["basis"] != "changes", "{blamed}");
    let status = call(&repo, &["status"]).expect(0).text();
    assert!(status.contains("older ones are not recorded"), "{status}");
    // If a limit is raised or removed, missing commits are recorded. If it is lowered, recorded commits remain.
    assert_eq!(asked("[history]\nmax_commits = 3\n"), (3, true));
    assert_eq!(asked("[history]\nsince = \"2023-06-01\"\n"), (3, true));
    assert_eq!(asked("[history]\nsince = \"2022-06-01\"\n"), (4, true));
    assert_eq!(asked(""), (6, false));
    assert_eq!(asked("[history]\nmax_commits = 1\n"), (6, false));
    fs::write(repo.path(".codescout.toml"), "[history]\nsince = \"long ago\"\n").unwrap();
    call(&repo, &["history", "a.rs"]).expect(2);
}

#[test]
fn history_of_a_named_revision_alone() {
    let repo = TestRepo::new("//- a.txt\n1\n");
    repo.branch("side");
    repo.checkout("side");
    repo.write("a.txt", "2\n");
    repo.commit("aside");
    repo.checkout("main");
    for (args, n_commits) in [
        (&["index", "--history", "--ref", "main"][..], 1),
        (&["index", "--history", "main"], 1),
        (&["index", "--history"], 2),
    ] {
        assert_eq!(json(&repo, args)["history"]["commits"], n_commits, "{args:?}");
    }
}

#[test]
fn configured_mailmaps_are_read_and_rewritten_history_is_named() {
    let repo = TestRepo::new("//- a.txt\n1\n");
    let author = repo.git(["log", "-1", "--format=%ae"]).trim().to_owned();
    let name = |repo: &TestRepo| {
        let answer = json(repo, &["history", "a.txt"]);
        let notes = answer["incomplete_because"].to_string();
        (
            answer["results"][0]["author"]["name"].as_str().unwrap().to_owned(),
            notes,
        )
    };
    let by_git = || repo.git(["log", "-1", "--format=%aN"]).trim().to_owned();
    fs::write(repo.beside("names"), format!("By File <{author}>\n")).unwrap();
    repo.git([
        std::ffi::OsStr::new("config"),
        "mailmap.file".as_ref(),
        repo.beside("names").as_os_str(),
    ]);
    assert_eq!((name(&repo).0, by_git()), ("By File".to_owned(), "By File".to_owned()));
    repo.git(["config", "--unset", "mailmap.file"]);
    repo.write("names", format!("By Blob <{author}>\n"));
    repo.commit("names");
    repo.git(["config", "mailmap.blob", "HEAD:names"]);
    assert_eq!((name(&repo).0, by_git()), ("By Blob".to_owned(), "By Blob".to_owned()));
    repo.git(["config", "mailmap.blob", "HEAD:nowhere"]);
    repo.git(["config", "mailmap.file", "/nowhere"]);
    let (_, notes) = name(&repo);
    assert!(
        notes.contains("mailmap.blob") && notes.contains("mailmap.file"),
        "{notes}"
    );

    assert!(!notes.contains("grafts") && !notes.contains("refs/replace"));
    let (first, last) = (repo.rev_parse("HEAD~1"), repo.rev_parse("HEAD"));
    repo.git(["replace", &last, &first]);
    fs::write(repo.path(".git/info/grafts"), format!("{last}\n")).unwrap();
    let (_, notes) = name(&repo);
    assert!(notes.contains("grafts") && notes.contains("refs/replace"), "{notes}");
}

#[test]
fn the_tests_that_depend_on_what_changed() {
    let repo = TestRepo::new(
        "
        //- src/lib.rs
        pub fn parse(text: &str) -> usize { text.len() }
        pub fn lex() {}

        #[cfg(test)]
        mod tests {
            #[test]
            fn parses() { assert_eq!(super::parse(\"a\"), 1); }
            #[test]
            fn lexes() { super::lex(); }
        }
        //- tests/all.rs
        fn helper() { lib::parse(\"b\"); }
        //- src/main.rs
        fn main() { parse(\"c\"); }
        ",
    );
    let text = String::from_utf8(repo.read("src/lib.rs")).unwrap();
    repo.write("src/lib.rs", text.replace("text.len()", "text.len() + 1"));
    let answer = json(&repo, &["diff", "--with", "tests"]);
    let impact = &answer["impact"];
    assert_eq!((&impact["changed"], &impact["tests"]), (&1.into(), &1.into()));
    assert_eq!(answer["total"], 2);
    let test = &answer["results"][1];
    assert_eq!((&test["kind"], &test["line"]), (&"test".into(), &7.into()));
    assert_eq!(test["id"], "src/lib.rs#tests.parses");
    assert_eq!(test["via"], Value::from(vec!["src/lib.rs#parse"]));
    let shown = call(&repo, &["diff", "--with", "tests"]).expect(0).text();
    assert!(shown.contains("test src/lib.rs:7 tests.parses call → parse"), "{shown}");
    // Definitions are compared to find tests, regardless of the level of detail.
    let by_text = json(&repo, &["diff", "--with", "tests", "--by", "text"]);
    assert_eq!(by_text["impact"], *impact);
    assert!(by_text["results"][0].get("symbols").is_none());
    assert!(by_text["results"][0]["diff"].is_string());
    assert!(json(&repo, &["diff"]).get("impact").is_none());
}

#[test]
fn unborn_and_orphan_branches_and_a_commit_of_very_many_paths() {
    let repo = TestRepo::empty();
    call(&repo, &["index", "--history"]).expect(0);
    assert_eq!(json(&repo, &["history", "--deleted", "anything"])["total"], 0);
    repo.write("a.rs", function("alpha", 1));
    repo.commit("start");
    repo.git(["checkout", "--quiet", "--orphan", "island"]);
    repo.git(["rm", "-r", "-q", "--cached", "."]);
    repo.remove("a.rs");
    let n_files = if crate::support::is_long() { 100_000 } else { 2_000 };
    for n in 0..n_files {
        repo.write(
            format!("src/d{}/f{n}.rs", n % 97),
            format!("pub fn island_{n}() {{}}\n"),
        );
    }
    let island = repo.commit("very many");
    let started = Instant::now();
    call(&repo, &["index", "--history"]).expect(0);
    // No step may take time proportional to files × files. The limit allows for a busy machine.
    assert_within(Duration::from_secs(60 + n_files / 200), started, "very many paths");
    let answer = results(&repo, &["src/d1/f1.rs#island_1"]);
    assert_eq!(answer[0]["commit"], island);
    let alpha = results(&repo, &["a.rs#alpha", "--ref", "main"]);
    assert_eq!(subjects(&alpha), ["start"]);
    repo.git(["checkout", "--quiet", "--orphan", "unborn"]);
    call(&repo, &["history", "."]).expect(0);
}

#[test]
fn a_name_from_before_a_rename_leads_to_what_it_is_now() {
    let repo = TestRepo::empty();
    repo.write("src/a.rs", function("alpha", 1));
    repo.commit("start");
    repo.write("src/a.rs", function("middle", 1));
    repo.commit("rename");
    repo.git(["mv", "src/a.rs", "src/b.rs"]);
    repo.commit("move");
    repo.write("src/b.rs", function("gamma", 1));
    repo.commit("rename again");
    let untraced = json(&repo, &["history", "alpha"]);
    assert_eq!(untraced["complete"], false);
    let said = call(&repo, &["history", "alpha"]).expect(1).stderr;
    assert!(
        said.contains("no file or definition named \"alpha\" in the commits recorded so far"),
        "{said}"
    );
    call(&repo, &["index", "--history"]).expect(0);
    for name in ["alpha", "middle"] {
        let answer = json(&repo, &["history", name]);
        assert_eq!(answer["target"]["path"], "src/b.rs#gamma", "{answer}");
        assert_eq!(answer["target"]["was"], name);
        assert_eq!(answer["total"], 4);
    }
    let said = call(&repo, &["history", "alpha", "--last-seen"]).expect(0).stderr;
    assert!(said.contains("\"alpha\" was renamed to src/b.rs#gamma"), "{said}");
    let said = call(&repo, &["history", "--deleted", "alpha"]).expect(1).stderr;
    assert!(said.contains("use its current name: src/b.rs#gamma"), "{said}");
    assert_eq!(json(&repo, &["blame", "alpha"])["results"][0]["name"], "gamma");
    let said = call(&repo, &["history", "omega"]).expect(1).stderr;
    assert!(said.contains("no file or definition named \"omega\""), "{said}");
}

#[test]
fn who_wrote_what_is_asked_of_git_where_the_record_ends_early() {
    let repo = TestRepo::empty();
    repo.write("a.rs", function("alpha", 1));
    let first = repo.commit("write");
    for n in 1..4 {
        repo.write("other.rs", function("beta", n));
        repo.commit("another file");
    }
    fs::write(repo.path(".codescout.toml"), "[history]\nmax_commits = 2\n").unwrap();
    call(&repo, &["index", "--history"]).expect(0);
    let answer = json(&repo, &["blame", "a.rs", "--ref", "HEAD"]);
    assert_eq!(answer["basis"], "lines", "{answer}");
    assert_eq!(answer["results"][0]["last"]["commit"].as_str(), Some(first.as_str()));
}

#[test]
fn macros_that_make_a_container_longer_move_nothing() {
    let body = "  auto first = compute(value, 1);\n  auto second = compute(first, 2);\n  return first + second;\n";
    let after = format!("int after(int value) {{\n{body}}}\n\n\nint last(int value) {{\n  return after(value);\n}}\n");
    let text = |macros: &str, n: u32| {
        let get = format!("  int get() {{\n    return {n};\n  }}\n");
        format!("namespace lib {{\n\nstruct data {{\n  int size;\n{macros}\n{get}}};\n\n\n{after}\n}}\n")
    };
    let cases = [
        (
            "a.cpp",
            "#if A\n  void f(int a) {\n#else\n  void f(long a) {\n#endif\n    use(a);\n  }\n",
        ),
        ("b.cpp", "#if A\n  void f(int a) {\n#endif\n"),
        ("c.h", "#ifdef A\n  struct inner {\n#endif\n  int z;\n"),
        ("d.hpp", "  BEGIN(f) {\n"),
    ];
    let repo = TestRepo::empty();
    for n in 0..5 {
        for (path, macros) in cases {
            repo.write(path, text(if n % 2 == 1 { macros } else { "" }, n));
        }
        repo.commit(if n == 0 { "start" } else { "edit" });
    }
    let found = |id: &str| subjects(&results(&repo, &[id])).join(", ");
    let check = || {
        for (path, _) in cases {
            assert_eq!(found(&format!("{path}#lib.after")), "start");
            assert_eq!(found(&format!("{path}#lib.last")), "start");
            let data = results(&repo, &[&format!("{path}#lib.data")]).to_string();
            assert!(!data.contains("\"moved\""), "{data}");
        }
        let moved = call(&repo, &["diff", "HEAD~1", "HEAD"]).expect(0).text();
        assert!(!moved.contains("after") && !moved.contains("last"), "{moved}");
    };
    check();
    call(&repo, &["index", "--history"]).expect(0);
    check();
    // Namespaces that come, go or end elsewhere do move what is in them.
    repo.write("a.cpp", &after);
    repo.commit("leave");
    repo.write("a.cpp", format!("namespace n {{\n\n\n{after}}}\n"));
    repo.commit("enter");
    repo.write(
        "a.cpp",
        format!("namespace n {{\n\n\n{after}").replace("int last", "}\n\n\nint last"),
    );
    repo.commit("end");
    assert_eq!(found("a.cpp#n.after"), "enter, leave, start");
    assert_eq!(found("a.cpp#last"), "end, enter, leave, start");
}

#[test]
fn a_name_that_was_deleted_under_another_name_is_not_called_current() {
    let repo = TestRepo::empty();
    repo.write("a.rs", format!("{}{}", function("alpha", 1), function("kept", 30)));
    repo.commit("start");
    repo.write("a.rs", format!("{}{}", function("omega", 1), function("kept", 30)));
    repo.commit("rename");
    repo.write("a.rs", function("kept", 30));
    repo.commit("delete");
    call(&repo, &["index", "--history"]).expect(0);
    let said = call(&repo, &["history", "--deleted", "alpha"]).expect(1).stderr;
    assert!(
        said.contains("use its last name, which was deleted: history a.rs#omega"),
        "{said}"
    );
    let answer = json(&repo, &["history", "a.rs#omega"]);
    assert_eq!(answer["total"], 3);
}

#[test]
fn a_field_that_became_a_method_is_followed() {
    let cases = [
        (
            "a.ts",
            "class A {\n  size = go(1);\n}\n",
            "class A {\n  size() {\n    return go(2);\n  }\n}\n",
        ),
        (
            "A.kt",
            "class A {\n    val size = go(1)\n}\n",
            "class A {\n    fun size() = go(2)\n}\n",
        ),
        (
            "a.swift",
            "class A {\n  var size: Int = go(1)\n}\n",
            "class A {\n  func size() -> Int { go(2) }\n}\n",
        ),
        (
            "A.java",
            "class A {\n    int size = go(1);\n}\n",
            "class A {\n    int size() { return go(2); }\n}\n",
        ),
    ];
    let repo = TestRepo::empty();
    let write = |text: &dyn Fn(&str, &str) -> String| {
        for (path, field, method) in cases {
            repo.write(path, text(field, method));
        }
    };
    write(&|field, _| field.to_owned());
    repo.commit("add a field");
    write(&|field, _| format!("\n{}", field.replace("go(1)", "go(11)")));
    repo.commit("edit the field");
    write(&|_, method| method.to_owned());
    repo.commit("make it a method");
    for (path, ..) in cases {
        let id = format!("{path}#A.size");
        let found = results(&repo, &[&id]);
        assert_eq!(
            subjects(&found),
            ["make it a method", "edit the field", "add a field"],
            "{id}"
        );
        assert_eq!(found[0]["symbol"]["events"][0], "added");
        let kind = found[1]["earlier_kind"].as_str().unwrap();
        let said = call(&repo, &["history", &id]).expect(0).text();
        assert!(
            said.contains(&format!("lines of the {kind} that it was before:")),
            "{said}"
        );
        assert_eq!(subjects(&results(&repo, &[&id, "--introduced"])), ["add a field"]);
        assert_eq!(found, results(&repo, &[&id]));
    }
    // Traced definitions have the same history.
    let wanted = results(&repo, &["a.ts#A.size"]);
    call(&repo, &["index", "--history"]).expect(0);
    assert_eq!(results(&repo, &["a.ts#A.size"]), wanted);
}

#[test]
fn reading_untraced_versions_ends_in_time() {
    // Each edit is in the only function of a long file, so that the whole version is parsed.
    let cases = [
        ("a.hpp", "int busy(int a) {\n", "  a += step(a, 17) * N;\n", "}\n"),
        ("a.py", "def busy(a):\n", "    a += step(a, 17) * N\n", ""),
        (
            "a.ts",
            "function busy(a: number) {\n",
            "  a += step(a, 17) * N;\n",
            "}\n",
        ),
        ("a.rs", "fn busy(mut a: u32) {\n", "    a += step(a, 17) * N;\n", "}\n"),
    ];
    let repo = TestRepo::empty();
    for n in 0..25 {
        for (path, start, line, end) in cases {
            let text = line.replace('N', &n.to_string()) + &line.repeat(12_000);
            repo.write(path, format!("{start}{text}{end}"));
        }
        repo.commit("edit");
    }
    // The commits are recorded first.
    call(&repo, &["history", "a.py", "-n", "1"]).expect(0);
    let mut n_read = 0;
    for _ in 0..2 {
        let started = Instant::now();
        let answer = json(&repo, &["history", "busy", "-n", "0"]);
        assert_within(Duration::from_secs(12), started, "reading versions");
        let why = answer["incomplete_because"].to_string();
        assert!(
            why.contains("were not read yet") && why.contains("codescout index --history"),
            "{why}"
        );
        let before = std::mem::replace(&mut n_read, answer["results"].as_array().unwrap().len());
        assert!(before < n_read && n_read < 100, "{before} {n_read}");
    }
}
