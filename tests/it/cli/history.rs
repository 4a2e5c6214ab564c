//! Compares `codescout history` with git.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use serde_json::Value;

use super::{call, call_in};
use crate::support::TestRepo;

/// Returns the commits in an answer; with a `path`, only those that changed it.
fn commits(answer: &Value, path: Option<&str>) -> Vec<String> {
    let results = answer["results"].as_array().unwrap().iter();
    let is_about = |entry: &&Value| {
        let changes = entry["changes"].as_array().unwrap();
        path.is_none_or(|path| changes.iter().any(|change| change["path"] == path))
    };
    results
        .filter(is_about)
        .filter_map(|entry| Some(entry["commit"].as_str()?.to_owned()))
        .collect()
}

fn history(repo: &TestRepo, args: &[&str]) -> Value {
    call(repo, &[&["history", "--json", "-n", "0"], args].concat())
        .expect(0)
        .json()
}

fn git_log(repo: &TestRepo, args: &[&str]) -> Vec<String> {
    let printed = repo.git([&["log", "--format=%H"], args].concat());
    printed.lines().map(str::to_owned).collect()
}

/// A deterministic pseudorandom number generator (xorshift).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

const FILES: [&str; 4] = ["a.txt", "b.txt", "sub/c.txt", "sub/d.txt"];

fn edit(repo: &TestRepo, dice: &mut Dice) {
    let file = FILES[dice.roll(4) as usize];
    if dice.roll(9) == 0 && repo.path(file).exists() {
        return repo.remove(file);
    }
    // No two files are similar, so that none is detected as renamed.
    let text: String = (0..6).map(|_| format!("{file} {}\n", dice.roll(3))).collect();
    repo.write(file, text);
}

/// Creates a repository with two branches that are merged from time to time, in either direction.
fn woven(seed: u64) -> TestRepo {
    let repo = TestRepo::empty();
    let mut dice = Dice(seed);
    for file in FILES {
        repo.write(file, format!("{file}\n"));
    }
    repo.commit("start");
    repo.branch("side");
    for n in 0..40 {
        repo.checkout(if dice.roll(2) == 0 { "main" } else { "side" });
        edit(&repo, &mut dice);
        repo.commit(&format!("edit {n}"));
        if dice.roll(6) == 0 {
            let strategy = ["ours", "theirs"][dice.roll(2) as usize];
            let current = repo.git(["symbolic-ref", "--short", "HEAD"]);
            let other = if current == "main" { "side" } else { "main" };
            let merged = repo.try_git(["merge", "--quiet", "--no-ff", "-X", strategy, "-m", "merge", other]);
            if !merged.status.success() {
                // One branch changed a file that the other one deleted.
                repo.commit("merge by hand");
            }
        }
    }
    repo.checkout("main");
    repo
}

#[test]
fn a_file_has_the_commits_that_git_log_gives_it() {
    let mut n_commits = 0;
    for seed in [3, 17, 99] {
        let repo = woven(seed);
        for file in FILES {
            let wanted = git_log(&repo, &["HEAD", "--", file]);
            let is_there = repo.path(file).exists();
            let answer = call(&repo, &["history", "--json", "-n", "0", "--ref", "HEAD", file]).json();
            let found: BTreeSet<String> = commits(&answer, Some(file)).into_iter().collect();
            let wanted: BTreeSet<String> = wanted.into_iter().collect();
            n_commits += wanted.len();
            // If a merge does not contain the file, git omits the parent that does. codescout starts at the deletion.
            if is_there {
                assert_eq!(found, wanted, "seed {seed}, {file}");
            }
        }
    }
    assert!(n_commits > 60, "{n_commits}");
}

#[test]
fn a_renamed_file_is_followed_as_git_follows_it() {
    let repo = TestRepo::empty();
    let text = |n: usize| {
        (0..30)
            .map(|line| format!("line {} {line}\n", if line < n { "new" } else { "old" }))
            .collect::<String>()
    };
    repo.write("first.txt", text(0));
    repo.commit("write");
    repo.write("first.txt", text(2));
    repo.commit("edit");
    repo.rename("first.txt", "folder/second.txt");
    repo.write("folder/second.txt", text(6));
    repo.commit("move and edit");
    repo.write("unrelated.txt", "x\n");
    repo.commit("something else");
    repo.rename("folder/second.txt", "third.txt");
    repo.commit("move");
    repo.write("third.txt", text(9));
    repo.commit("edit again");
    let answer = history(&repo, &["third.txt"]);
    assert_eq!(
        commits(&answer, None),
        git_log(&repo, &["--follow", "HEAD", "--", "third.txt"])
    );
    let kinds: Vec<&str> = answer["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["changes"][0]["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["modified", "renamed", "renamed", "modified", "added"]);
    let moved = &answer["results"][2]["changes"][0];
    assert_eq!(moved["from_path"], "first.txt");
    assert_eq!(moved["similarity"].to_string(), {
        let printed = repo.git([
            "log",
            "--format=",
            "--name-status",
            "-M",
            "--diff-filter=R",
            "--",
            "folder/second.txt",
            "first.txt",
        ]);
        let percent = printed.lines().next().unwrap().split_whitespace().next().unwrap();
        percent.trim_start_matches(['R', '0']).to_owned()
    });
}

/// Creates a repository in which one branch edits lines of files that the other branch moves, with merges from time to
/// time. Also returns the commits of each file, by its last name.
fn moving(seed: u64) -> (TestRepo, BTreeMap<String, BTreeSet<String>>) {
    let repo = TestRepo::empty();
    let mut dice = Dice(seed);
    let line =
        |file: u64, line: u64, n: u64| format!("file {file} line {line} at first {n} and {}\n", n * 7 + line * file);
    let whole = |file: u64| (0..40).map(|at| line(file, at, 0)).collect::<String>();
    // For each file: its name on each branch, and its commits.
    let mut names: Vec<[String; 2]> = Vec::new();
    for file in 0..4 {
        let name = format!("f{file}.txt");
        repo.write(&name, whole(file));
        names.push([name.clone(), name]);
    }
    let first = repo.commit("start");
    let mut truth = vec![BTreeSet::from([first]); names.len()];
    repo.branch("side");
    // Between merges, only one branch moves a file, and each branch edits its own lines.
    let mut has_moved = vec![false; names.len()];
    for n in 1..40 {
        let at = dice.roll(2) as usize;
        repo.checkout(["main", "side"][at]);
        let file = dice.roll(names.len() as u64) as usize;
        let name = names[file][at].clone();
        if dice.roll(4) == 0 && !has_moved[file] {
            names[file][at] = format!("moved{n}/f{file}.txt");
            repo.rename(&name, &names[file][at]);
            has_moved[file] = true;
        } else {
            let text = String::from_utf8(repo.read(&name)).unwrap();
            let changed = 8 * dice.roll(5) + 4 * at as u64;
            let lines = text.split_inclusive('\n').enumerate().map(|(number, old)| {
                if number as u64 == changed {
                    line(file as u64, changed, n)
                } else {
                    old.to_owned()
                }
            });
            repo.write(&name, lines.collect::<String>());
        }
        let commit = repo.commit(&format!("step {n}"));
        truth[file].insert(commit);
        if dice.roll(5) == 0 || n == 39 {
            let other = ["side", "main"][at];
            repo.merge(other);
            repo.git(["branch", "-f", other]);
            for (names, has_moved) in names.iter_mut().zip(&mut has_moved) {
                let moved = names.iter().position(|name| repo.path(name).exists());
                let name = names[moved.unwrap()].clone();
                *names = [name.clone(), name];
                *has_moved = false;
            }
        }
    }
    repo.git(["checkout", "--quiet", "-B", "main"]);
    let named = names.into_iter().map(|names| names[0].clone());
    (repo, named.zip(truth).collect())
}

#[test]
fn merges_of_moved_files_lose_no_commit_of_either_side() {
    let n_seeds = if crate::support::is_long() { 60 } else { 3 };
    for seed in 0..n_seeds {
        let (repo, truth) = moving(seed * 31 + 5);
        let is_merge = |commit: &&String| repo.git(["rev-list", "--parents", "-n1", commit]).split(' ').count() > 2;
        for (file, wanted) in truth {
            let answer = history(&repo, &[&file]);
            let found: BTreeSet<String> = commits(&answer, None).into_iter().collect();
            let own: BTreeSet<String> = found.iter().filter(|commit| !is_merge(commit)).cloned().collect();
            assert_eq!(own, wanted, "seed {seed}, {file}");
            let followed = git_log(&repo, &["--follow", "HEAD", "--", &file]);
            assert!(
                followed.iter().all(|commit| found.contains(commit)),
                "seed {seed}, {file}"
            );
            let blamed = repo.git(["blame", "--line-porcelain", "HEAD", "--", &file]);
            let is_commit = |line: &&str| line.len() > 41 && line.as_bytes()[..40].iter().all(u8::is_ascii_hexdigit);
            for line in blamed.lines().filter(is_commit) {
                assert!(found.contains(&line[..40]), "seed {seed}, {file}: {line}");
            }
        }
    }
}

#[test]
fn an_edit_on_one_side_of_a_merge_of_which_the_other_moved_the_file_is_shown() {
    let text = |last: &str| {
        let lines: String = (0..12)
            .map(|line| format!("    step_{line}(input, {line})\n"))
            .collect();
        format!("def run(input):\n{lines}    {last}\n\n\ndef other():\n    pass\n")
    };
    for (into, from) in [("main", "maint"), ("maint", "main")] {
        let repo = TestRepo::empty();
        repo.write("cli.py", text("first()"));
        let added = repo.commit("add");
        repo.branch("maint");
        repo.rename("cli.py", "src/cli.py");
        let moved = repo.commit("move");
        repo.checkout("maint");
        repo.write("cli.py", text("second()"));
        let edited = repo.commit("edit");
        repo.checkout(into);
        repo.merge(from);
        let wanted = BTreeSet::from([added, moved, edited.clone()]);
        let listed = |args: &[&str]| -> BTreeSet<String> {
            let listed = commits(&history(&repo, args), None).into_iter();
            listed.filter(|commit| *commit != repo.rev_parse("HEAD")).collect()
        };
        for is_traced in [false, true] {
            if is_traced {
                call(&repo, &["index", "--history"]).expect(0);
            }
            assert_eq!(listed(&["src/cli.py"]), wanted, "{into}, traced: {is_traced}");
            assert_eq!(listed(&["src/cli.py#run"]), wanted, "{into}, traced: {is_traced}");
        }
        let blamed = call(&repo, &["blame", "src/cli.py#run", "--json"]).expect(0).json();
        assert_eq!(blamed["results"][0]["last"]["commit"], edited.as_str());
        let found = call(&repo, &["search", "--all-history", "--json", "second"])
            .expect(0)
            .json();
        assert_eq!(
            found["results"][0]["life"]["first"]["commit"],
            edited.as_str(),
            "{into}"
        );
        repo.remove("src/cli.py");
        let deletion = repo.commit("delete");
        let wanted: BTreeSet<String> = wanted.into_iter().chain([deletion]).collect();
        let listed = |target: &str| -> BTreeSet<String> {
            let listed = commits(&history(&repo, &[target]), None).into_iter();
            listed.filter(|commit| *commit != repo.rev_parse("HEAD~1")).collect()
        };
        assert_eq!(listed("src/cli.py"), wanted, "{into}");
        assert_eq!(listed("src/cli.py#run"), wanted, "{into}");
    }
}

#[test]
fn a_file_that_was_at_the_path_before_another_was_moved_there_is_told_after_it() {
    let text = |name: &str| (0..20).map(|n| format!("{name} {n} {}\n", n * n)).collect::<String>();
    let repo = TestRepo::empty();
    repo.write("a.txt", text("old"));
    repo.write("b.txt", text("new"));
    repo.commit("start");
    repo.write("a.txt", text("old") + "more\n");
    let edit = repo.commit("edit of the first");
    repo.remove("a.txt");
    let deletion = repo.commit("deletion of the first");
    repo.write("b.txt", text("new") + "more\n");
    repo.commit("edit of the second");
    repo.rename("b.txt", "a.txt");
    let moved = repo.commit("move of the second");
    repo.write("a.txt", text("new") + "more and more\n");
    repo.commit("last edit");
    let answer = history(&repo, &["a.txt"]);
    let found = commits(&answer, None);
    let wanted = git_log(&repo, &["HEAD", "--", "a.txt"]);
    assert!(wanted.iter().all(|commit| found.contains(commit)), "{found:?}");
    let earlier = |entry: &Value| entry["earlier_file"].as_u64();
    let results = answer["results"].as_array().unwrap();
    let kinds: Vec<_> = results
        .iter()
        .map(|entry| (entry["subject"].as_str().unwrap(), earlier(entry)))
        .collect();
    assert_eq!(
        kinds,
        [
            ("last edit", None),
            ("move of the second", None),
            ("edit of the second", None),
            ("start", None),
            ("deletion of the first", Some(1)),
            ("edit of the first", Some(1)),
            ("start", Some(1)),
        ]
    );
    assert_eq!((&found[4], &found[5]), (&deletion, &edit));
    let printed = call(&repo, &["history", "a.txt"]).expect(0).stdout;
    let printed = String::from_utf8(printed).unwrap();
    assert_eq!(
        printed.matches("another file that was a.txt before:").count(),
        1,
        "{printed}"
    );
    // The answer is about the file that exists now.
    let first = history(&repo, &["a.txt", "--introduced"]);
    assert_eq!(first["results"][0]["changes"][0]["path"], "b.txt");
    let alone = call(&repo, &["history", "a.txt", "--ref", &moved, "--cochange", "--json"]).expect(1);
    assert_eq!(alone.json()["commits"], 3);
}

#[test]
fn what_is_gone_is_found_where_it_went() {
    let repo = TestRepo::new("//- old.txt\nwords\n//- kept.txt\nother words\n");
    repo.write("old.txt", "words\nmore\n");
    let last = repo.commit("edit");
    repo.remove("old.txt");
    let deletion = repo.commit("remove");
    repo.write("kept.txt", "x\n");
    repo.commit("go on");
    let answer = history(&repo, &["old.txt"]);
    assert_eq!(commits(&answer, None), git_log(&repo, &["HEAD", "--", "old.txt"]));
    assert_eq!(answer["target"]["present"], false);
    let answer = history(&repo, &["old.txt", "--last-seen"]);
    assert_eq!(answer["last_seen"]["commit"], last);
    assert_eq!(answer["last_seen"]["deleted_by"], deletion);
    let answer = history(&repo, &["--deleted"]);
    assert_eq!(answer["results"][0]["changes"][0]["path"], "old.txt");
    assert_eq!(answer["total"], 1);
    let answer = history(&repo, &["old.txt", "--introduced"]);
    assert_eq!(
        commits(&answer, None),
        git_log(&repo, &["--diff-filter=A", "HEAD", "--", "old.txt"])
    );
    // At an older revision the file exists.
    let answer = history(&repo, &["old.txt", "--ref", &last]);
    assert_eq!(answer["target"]["present"], true);
}

#[test]
fn what_is_not_committed_comes_first() {
    let repo = TestRepo::new("//- a.txt\none\n//- b.txt\ntwo\n");
    repo.write("a.txt", "one\nmore\n");
    repo.rename("b.txt", "c.txt");
    let answer = history(&repo, &["a.txt", "--diff"]);
    assert_eq!(answer["results"][0]["commit"], Value::Null);
    assert_eq!(
        answer["results"][0]["changes"][0]["diff"],
        "@@ -1 +1,2 @@\n one\n+more\n"
    );
    assert_eq!(commits(&answer, None).len(), 1);
    let answer = history(&repo, &["c.txt"]);
    assert_eq!(answer["results"][0]["changes"][0]["from_path"], "b.txt");
    assert_eq!(commits(&answer, None), git_log(&repo, &["HEAD", "--", "b.txt"]));
    assert_eq!(commits(&history(&repo, &["a.txt", "--ref", "HEAD"]), None).len(), 1);
}

#[test]
fn filters_and_files_that_change_together() {
    let repo = TestRepo::new("//- a.txt\n1\n//- b.txt\n1\n//- .mailmap\nProper Name <ada@example.com>\n");
    for n in 2..5 {
        repo.write("a.txt", format!("{n}\n"));
        repo.write("b.txt", format!("{n}\n"));
        repo.commit("both");
    }
    repo.write("a.txt", "alone\n");
    repo.commit("alone");
    let answer = history(&repo, &["a.txt", "--cochange"]);
    assert_eq!(answer["commits"], 5);
    let first = &answer["results"][0];
    assert_eq!(
        (first["path"].as_str(), first["support"].as_u64()),
        (Some("b.txt"), Some(4))
    );
    assert_eq!(first["confidence"], 0.8);
    assert_eq!(history(&repo, &["a.txt", "--author", "proper"])["total"], 5);
    assert_eq!(
        history(&repo, &["a.txt"])["results"][0]["author"]["name"],
        "Proper Name"
    );
    call(&repo, &["history", "a.txt", "--author", "nobody"]).expect(1);
    call(&repo, &["history", "a.txt", "--until", "1999-01-01"]).expect(1);
    assert_eq!(history(&repo, &["a.txt", "--since", "2001-01-01"])["total"], 5);
    call(&repo, &["history", "a.txt", "--since", "whenever"]).expect(2);
    let all = commits(&history(&repo, &["a.txt"]), None);
    let first = call(&repo, &["history", "a.txt", "-n", "2", "--json"]).json();
    assert_eq!(commits(&first, None), all[..2]);
    let cursor = first["next_cursor"].as_str().unwrap();
    let rest = history(&repo, &["a.txt", "--cursor", cursor]);
    assert_eq!(commits(&rest, None), all[2..]);
    assert_eq!((&rest["total"], &rest["next_cursor"]), (&5.into(), &Value::Null));
    let other = call(&repo, &["history", "a.txt", "--introduced", "--cursor", cursor]).expect(2);
    assert!(other.stderr.contains("another query"), "{}", other.stderr);
}

#[test]
fn recording_bit_by_bit_gives_what_recording_at_once_gives() {
    let repo = TestRepo::new("//- a.txt\n1\n");
    call(&repo, &["index", "--history"]).expect(0);
    for n in 0..20 {
        repo.write("a.txt", format!("{n}\n"));
        repo.write(format!("f{n}.txt"), "x\n");
        repo.commit("more");
        let indexed = call(&repo, &["index", "--json"]).expect(0).json();
        assert_eq!(indexed["history"]["new_commits"], 1);
    }
    let files = std::fs::read_dir(repo.path(".codescout/history-v1")).unwrap().count();
    assert!(files < 120, "{files}");
    let bit_by_bit = history(&repo, &["a.txt", "--ref", "HEAD"])["results"].clone();
    std::fs::remove_dir_all(repo.path(".codescout")).unwrap();
    assert_eq!(history(&repo, &["a.txt", "--ref", "HEAD"])["results"], bit_by_bit);
    assert_eq!(bit_by_bit.as_array().unwrap().len(), 21);
}

#[test]
fn no_commits_and_no_such_target() {
    let repo = TestRepo::empty();
    call(&repo, &["history", "a.txt"]).expect(1);
    let repo = TestRepo::new("//- src/parser.txt\nwords\n");
    let answer = call(&repo, &["history", "src/parsr.txt", "--json"]).expect(1).json();
    assert_eq!(answer["target"]["kind"], "unknown");
    assert_eq!(answer["near"][0], "src/parser.txt");
    call(&repo, &["history", "src/parser.txt", "--ref", "nothing"]).expect(2);
    let tree = repo.tree_of("HEAD");
    let refused = call(&repo, &["history", "src/parser.txt", "--ref", &tree]).expect(2);
    assert!(refused.stderr.contains("tree"), "{}", refused.stderr);
}

#[test]
fn several_roots_octopus_criss_cross_and_empty_commits() {
    let repo = TestRepo::new("//- a.txt\n1\n");
    repo.commit("nothing");
    for name in ["one", "two", "three"] {
        repo.git(["checkout", "--quiet", "-b", name, "main"]);
        repo.write(format!("{name}.txt"), name);
        repo.commit(name);
    }
    repo.checkout("main");
    repo.git(["merge", "--quiet", "-m", "octopus", "one", "two", "three"]);
    repo.git(["checkout", "--quiet", "--orphan", "other"]);
    repo.git(["rm", "-r", "-f", "--quiet", "."]);
    repo.write("root.txt", "another root\n");
    repo.commit("another root");
    repo.checkout("main");
    repo.git([
        "merge",
        "--quiet",
        "--allow-unrelated-histories",
        "-m",
        "two roots",
        "other",
    ]);
    // Two branches that are merged into each other.
    repo.git(["checkout", "--quiet", "-b", "left"]);
    repo.write("a.txt", "left\n");
    let left = repo.commit("left");
    repo.git(["checkout", "--quiet", "-b", "right", "main"]);
    repo.write("root.txt", "right\n");
    let right = repo.commit("right");
    repo.merge(&left);
    repo.checkout("left");
    repo.merge(&right);
    repo.merge("right");
    for file in ["a.txt", "one.txt", "two.txt", "three.txt", "root.txt"] {
        assert_eq!(
            commits(&history(&repo, &[file]), None),
            git_log(&repo, &["HEAD", "--", file]),
            "{file}"
        );
    }
    let all = history(&repo, &["."]);
    assert_eq!(all["target"]["kind"], "folder");
}

#[test]
fn odd_messages_dates_and_paths() {
    let repo = TestRepo::new("//- a.txt\n1\n");
    let tree = repo.tree_of("HEAD");
    let commit = |parent: &str, time: &str, encoding: &str, message: &[u8]| {
        let mut raw = format!(
            "tree {tree}\nparent {parent}\nauthor A <a@x> {time} +0000\ncommitter A <a@x> {time} +0000\n{encoding}\n"
        )
        .into_bytes();
        raw.extend_from_slice(message);
        let id = repo.git_with_input(["hash-object", "-t", "commit", "-w", "--stdin", "--literally"], &raw);
        String::from_utf8(id).unwrap().trim().to_owned()
    };
    let first = commit(&repo.rev_parse("HEAD"), "-86400", "", b"before 1970\n");
    let second = commit(
        &first,
        "99999999999",
        "",
        &[b"long ".repeat(200_000), b"\n".to_vec()].concat(),
    );
    let third = commit(&second, "5", "encoding ISO-8859-1\n", b"gr\xfc\xdfe\n\nbody\n");
    let fourth = commit(&third, "not-a-time", "", b"\xff\xfe broken\n");
    repo.git(["reset", "--quiet", "--hard", &fourth]);
    for name in [&b"sp ace \"quoted\".txt"[..], b"new\nline.txt", b"no-utf8-\xff.txt"] {
        repo.write(OsStr::from_bytes(name), "text\n");
        repo.commit("odd name");
        let args = ["history", "--json", "--ref", "HEAD"].map(OsStr::new);
        let answer = call_in(repo.root(), &[&args[..], &[OsStr::from_bytes(name)]].concat(), b"")
            .expect(0)
            .json();
        assert_eq!(commits(&answer, None), [repo.rev_parse("HEAD")]);
    }
    repo.write("a.txt", "2\n");
    repo.commit("after all that");
    let answer = history(&repo, &["a.txt"]);
    assert_eq!(commits(&answer, None), git_log(&repo, &["HEAD", "--", "a.txt"]));
    call(&repo, &["history", "."]).expect(0);
}

#[test]
fn shallow_clones_say_where_they_end_and_are_read_anew_when_deepened() {
    let repo = TestRepo::new("//- a.txt\n1\n");
    for n in 2..6 {
        repo.write("a.txt", format!("{n}\n"));
        repo.commit("more");
    }
    let shallow = repo.clone_with("shallow", &["--depth=2"]);
    let answer = history(&shallow, &["a.txt"]);
    assert_eq!(commits(&answer, None), git_log(&shallow, &["HEAD", "--", "a.txt"]));
    assert_eq!(answer["complete"], false);
    assert!(answer["incomplete_because"][0].as_str().unwrap().contains("shallow"));
    shallow.git(["fetch", "--quiet", "--unshallow"]);
    shallow.write("a.txt", "new\n");
    shallow.commit("after");
    let answer = history(&shallow, &["a.txt"]);
    assert_eq!(answer["complete"], true, "{answer}");
    assert_eq!(commits(&answer, None).len(), 6);
}

#[test]
fn a_missing_object_is_named_and_the_rest_shown() {
    let repo = TestRepo::new("//- a.txt\n1\n");
    repo.write("a.txt", "2\n");
    let middle = repo.commit("middle");
    repo.write("a.txt", "3\n");
    repo.commit("end");
    repo.remove(format!(".git/objects/{}/{}", &middle[..2], &middle[2..]));
    let answer = call(&repo, &["history", "a.txt", "--json"]).json();
    assert_eq!(
        (answer["complete"].as_bool(), answer["target"]["present"].as_bool()),
        (Some(false), Some(true))
    );

    let repo = TestRepo::new("//- sub/a.txt\n1\n");
    repo.write("sub/a.txt", "2\n");
    repo.commit("middle");
    let tree = repo.tree_of("HEAD");
    repo.write("sub/a.txt", "3\n");
    repo.commit("end");
    repo.remove(format!(".git/objects/{}/{}", &tree[..2], &tree[2..]));
    let answer = call(&repo, &["history", "sub/a.txt", "--json"]).json();
    assert_eq!(answer["complete"], false);
}

#[test]
fn a_damaged_record_is_made_anew() {
    let repo = TestRepo::new("//- a.txt\n1\n");
    repo.write("a.txt", "2\n");
    repo.commit("more");
    let before = history(&repo, &["a.txt"])["results"].clone();
    let folder = repo.path(".codescout/history-v1");
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 4;
        bytes.truncate(middle);
        std::fs::write(path, bytes).unwrap();
    }
    repo.write("b.txt", "x\n");
    repo.commit("so that there is something to record");
    assert_eq!(history(&repo, &["a.txt"])["results"], before);
}

#[test]
fn a_damaged_batch_is_found_set_aside_and_recorded_again() {
    let repo = TestRepo::new("//- a.txt\n1\n");
    call(&repo, &["index", "--history"]).expect(0);
    for n in 0..3 {
        repo.write("a.txt", format!("{n}\n"));
        repo.commit("more");
        call(&repo, &["index"]).expect(0);
    }
    let sound = call(&repo, &["verify", "--json"]).expect(0).json();
    assert_eq!(
        (&sound["checked"]["commits"], &sound["health"]),
        (&4.into(), &"sound".into())
    );
    let before = history(&repo, &["a.txt"])["results"].clone();
    // Every byte of every file is verified, even if no query would read it.
    let folder = repo.path(".codescout/history-v1");
    let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let length = |path: &std::path::PathBuf| std::fs::metadata(path).unwrap().len();
    let records = files.filter(|path| path.extension().is_some_and(|ending| ending == "hist"));
    let path = records.max_by_key(length).unwrap();
    let good = std::fs::read(&path).unwrap();
    for at in (0..good.len()).step_by(97) {
        let mut bad = good.clone();
        bad[at] ^= 1;
        std::fs::write(&path, bad).unwrap();
        let found = call(&repo, &["verify", "--json"]).expect(1).json();
        let file = format!("history-v1/{}", path.file_name().unwrap().display());
        assert_eq!(found["results"][0]["file"], file, "byte {at}");
    }
    let mended = call(&repo, &["verify", "--repair", "--json"]).expect(1).json();
    assert_eq!(
        (&mended["health"], &mended["repair"]["is_sound"]),
        (&"repaired".into(), &true.into())
    );
    assert_eq!(
        call(&repo, &["verify", "--json"]).expect(0).json()["checked"]["commits"],
        4
    );
    assert_eq!(history(&repo, &["a.txt"])["results"], before);
}

#[test]
fn a_collection_keeps_the_history() {
    let repo = TestRepo::new("//- a.txt\nfirst words\n");
    call(&repo, &["index", "--history"]).expect(0);
    repo.write("a.txt", "other words\n");
    repo.commit("more");
    call(&repo, &["index"]).expect(0);
    let before = history(&repo, &["a.txt"])["results"].clone();
    let gone = repo
        .path(".codescout/history-v1")
        .join(format!("{}.hist", "0".repeat(32)));
    std::fs::write(&gone, "nobody names it").unwrap();
    let planned = call(&repo, &["gc", "--dry-run", "--json"]).expect(0).json();
    assert_eq!(planned["history"]["count"], 2);
    let done = call(&repo, &["gc", "--aggressive", "--json"]).expect(0).json();
    assert_eq!(done["rewrote"], true, "no new epoch: {done}");
    assert!(!gone.exists());
    let checked = call(&repo, &["verify", "--json"]).expect(0).json();
    assert_eq!(checked["checked"]["commits"], 2);
    assert_eq!(
        call(&repo, &["index", "--json"]).expect(0).json()["history"]["new_commits"],
        0
    );
    assert_eq!(history(&repo, &["a.txt"])["results"], before);
}

#[test]
fn another_epoch_keeps_the_history() {
    let repo = TestRepo::new("//- a.txt\n1\n");
    call(&repo, &["index", "--history"]).expect(0);
    call(&repo, &["config", "set", "index.max_blob_bytes", "5000"]).expect(0);
    repo.write("a.txt", "2\n");
    repo.commit("more");
    let indexed = call(&repo, &["index", "--json"]).expect(0).json();
    assert_eq!(indexed["history"]["new_commits"], 1);
    assert_eq!(indexed["history"]["commits"], 2);
}

#[test]
fn definitions_are_followed_by_name_id_and_place() {
    let repo = TestRepo::new(
        "//- src/a.rs\n/// Says.\npub fn target(x: u8) -> u8 {\n    let one = first(x, 1);\n    let two = second(one, 2);\n    third(two, 3)\n}\n\npub fn other() {}\n",
    );
    let edit = |from: &str, to: &str, message: &str| {
        let text = String::from_utf8(repo.read("src/a.rs")).unwrap();
        assert!(text.contains(from));
        repo.write("src/a.rs", text.replace(from, to));
        repo.commit(message);
    };
    edit("third(two, 3)", "third(two, 4)", "body");
    edit("other() {}", "other() { x() }", "not this one");
    edit("x: u8", "x: u16", "signature");
    edit("    let two", "\n    // why\n    let two", "formatting");
    edit("pub fn target", "pub fn renamed", "rename");
    repo.rename("src/a.rs", "src/b.rs");
    repo.commit("move the file");
    let wanted = ["move the file", "rename", "formatting", "signature", "body", "start"];
    for target in ["renamed", "src/b.rs#renamed", "src/b.rs:4"] {
        let answer = history(&repo, &[target]);
        let results = answer["results"].as_array().unwrap();
        let subjects: Vec<&str> = results.iter().map(|entry| entry["subject"].as_str().unwrap()).collect();
        assert_eq!(subjects, wanted, "{target}");
        assert_eq!(answer["target"]["path"], "src/b.rs#renamed");
        assert_eq!(results[1]["symbol"]["from"], "src/a.rs#target");
        assert_eq!(results[1]["symbol"]["events"], serde_json::json!(["renamed"]));
    }
    let answer = history(&repo, &["renamed", "--no-formatting", "--diff"]);
    assert_eq!(answer["total"], 5);
    assert_eq!(answer["results"][3]["symbol"]["events"], serde_json::json!(["body"]));
    let diff = answer["results"][3]["symbol"]["diff"].as_str().unwrap();
    assert!(diff.contains("-    third(two, 3)\n+    third(two, 4)\n"), "{diff}");
    assert_eq!(
        commits(&history(&repo, &["renamed", "--introduced"]), None),
        [repo.rev_parse("HEAD~6")]
    );
    // The uncommitted change comes first.
    let text = String::from_utf8(repo.read("src/b.rs")).unwrap();
    repo.write("src/b.rs", text.replace("first(x, 1)", "first(x, 9)"));
    let answer = history(&repo, &["src/b.rs#renamed"]);
    assert_eq!(answer["results"][0]["commit"], Value::Null);
    assert_eq!(answer["results"][0]["symbol"]["events"], serde_json::json!(["body"]));
    // A deleted definition.
    repo.write("src/b.rs", "pub fn unlike() {}\n");
    repo.commit("remove");
    let answer = history(&repo, &["src/b.rs#renamed", "--last-seen"]);
    assert_eq!(answer["last_seen"]["deleted_by"], repo.rev_parse("HEAD"));
    assert_eq!(answer["last_seen"]["commit"], repo.rev_parse("HEAD~1"));
}

#[test]
fn a_name_of_several_definitions_gives_them_all() {
    let repo = TestRepo::new("//- a.rs\npub fn twice() { one() }\n//- b.rs\npub fn twice() { two() }\n");
    let answer = call(&repo, &["history", "twice", "--json"]).expect(0).json();
    assert_eq!(answer["target"]["kind"], "many");
    let ids: Vec<&str> = answer["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["a.rs#twice", "b.rs#twice"]);
    call(&repo, &["history", ids[0]]).expect(0);
}

/// A repository with two definitions of one name, one of them in a test, and several commits on each.
fn twice() -> TestRepo {
    let repo = TestRepo::new("//- tests/a.rs\npub fn twice() { one() }\n//- z.rs\npub fn twice() { two() }\n");
    for n in 0..3 {
        repo.write("z.rs", format!("pub fn twice() {{ two({n}) }}\n"));
        repo.commit("edit z");
    }
    repo
}

#[test]
fn each_definition_of_a_name_has_its_history() {
    let repo = twice();
    let text = call(&repo, &["history", "twice"]).expect(0).text();
    let headings: Vec<&str> = text.lines().filter(|line| line.starts_with("definition ")).collect();
    assert_eq!(
        headings,
        [
            "definition z.rs#twice: 4 commits",
            "definition tests/a.rs#twice: 1 commit"
        ]
    );
    let answer = history(&repo, &["twice"]);
    let targets = |answer: &Value| {
        let rows = answer["results"].as_array().unwrap().iter();
        rows.map(|row| row["target"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let (first, last) = ("z.rs#twice", "tests/a.rs#twice");
    assert_eq!(targets(&answer), [first, first, first, first, last]);
    assert_eq!(
        (&answer["total"], &answer["groups"][1]["total"]),
        (&5.into(), &1.into())
    );
    // Pages continue in the middle of a group.
    let page = |more: &[&str]| {
        let args = [&["history", "twice", "--json", "-n", "3"], more].concat();
        call(&repo, &args).expect(0).json()
    };
    let first_page = page(&[]);
    assert_eq!(targets(&first_page), [first; 3]);
    let cursor = first_page["next_cursor"].as_str().unwrap();
    assert_eq!(targets(&page(&["--cursor", cursor])), [first, last]);
    let introduced = history(&repo, &["twice", "--introduced"]);
    assert_eq!(targets(&introduced), [first, last]);
    let seen = call(&repo, &["history", "twice", "--last-seen"]).expect(0).text();
    assert_eq!(seen.matches("present in").count(), 2, "{seen}");
    // One group is enough for an answer.
    let text = call(&repo, &["history", "z.rs#twice", "--author", "nobody"]).expect(1);
    assert!(text.stderr.contains("no matching commits"), "{}", text.stderr);
    let none = call(&repo, &["history", "twice", "--author", "nobody"])
        .expect(1)
        .text();
    assert!(none.contains("definition z.rs#twice: no matching commits\n"), "{none}");
    let shown = call(&repo, &["symbol", "twice", "--history"]).expect(0).text();
    assert!(shown.contains("\nz.rs#twice: 4 changes:\n"), "{shown}");
    assert!(shown.contains("\ntests/a.rs#twice: 1 change:\n"), "{shown}");
}

#[test]
fn a_name_of_too_many_definitions_is_ambiguous() {
    let repo = TestRepo::empty();
    for n in 0..6 {
        repo.write(format!("f{n}.py"), "def same():\n    return 1\n");
    }
    repo.commit("six");
    for command in [
        &["history", "same"][..],
        &["blame", "same"],
        &["graph", "callers", "same"],
    ] {
        let refused = call(&repo, command).expect(0);
        let wanted = format!(
            "choose one, for example: codescout {} f0.py#same",
            command[..command.len() - 1].join(" ")
        );
        assert!(
            refused.stderr.contains("same is ambiguous: 6 definitions"),
            "{}",
            refused.stderr
        );
        assert!(refused.stderr.contains(&wanted), "{}", refused.stderr);
        assert!(refused.text().contains("f5.py#same"), "{}", refused.text());
    }
    // Code inside functions comes after other code.
    repo.write("f0.py", "def around():\n    def same():\n        return 1\n");
    repo.write("f6.py", "class Test:\n    pass\n");
    repo.commit("inner");
    let listed = call(&repo, &["graph", "callers", "same"]).expect(0).stderr;
    assert!(listed.contains("codescout graph callers f1.py#same"), "{listed}");
    for n in 3..6 {
        repo.remove(format!("f{n}.py"));
    }
    repo.commit("fewer");
    let answer = call(&repo, &["blame", "same", "--json"]).expect(0).json();
    let rows = answer["results"].as_array().unwrap().iter();
    let rows: Vec<&str> = rows.map(|row| row["target"].as_str().unwrap()).collect();
    assert_eq!(rows, ["f1.py#same", "f2.py#same", "f0.py#around.same"]);
}

#[test]
fn each_definition_of_a_name_is_blamed() {
    let repo = twice();
    let answer = call(&repo, &["blame", "twice", "--json"]).expect(0).json();
    let rows = answer["results"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{answer}");
    for (row, id) in rows.iter().zip(["z.rs#twice", "tests/a.rs#twice"]) {
        assert_eq!((&row["target"], &row["id"]), (&id.into(), &id.into()));
    }
    assert_eq!(answer["groups"][0]["by"], "symbol");
    let text = call(&repo, &["blame", "twice", "--by", "line"]).expect(0).text();
    assert!(text.starts_with("definition z.rs#twice\n"), "{text}");
    assert!(text.contains("\n\ndefinition tests/a.rs#twice\n"), "{text}");
}

#[test]
fn lines_outside_any_definition_are_those_of_git() {
    let repo = TestRepo::new("//- notes.txt\none\ntwo\nthree\nfour\nfive\n");
    for (n, line) in ["two", "four", "one"].into_iter().enumerate() {
        let text = String::from_utf8(repo.read("notes.txt")).unwrap();
        repo.write("notes.txt", text.replace(line, &format!("{line}{n}")));
        repo.commit(line);
    }
    let wanted = git_log(&repo, &["-L1,2:notes.txt", "-s", "HEAD"]);
    assert_eq!(commits(&history(&repo, &["notes.txt:1-2"]), None), wanted);
    let beyond = call(&repo, &["history", "notes.txt:99"]).expect(2);
    assert!(beyond.stderr.contains("5 lines"), "{}", beyond.stderr);
}

#[test]
fn paths_with_a_hash_or_not_in_utf8_have_definitions() {
    let repo = TestRepo::empty();
    let odd = OsStr::from_bytes(b"bad\xff.py");
    repo.write("ha#sh.py", "def hash():\n    return 1\n");
    std::fs::write(repo.path("").join(odd), "def nonutf():\n    return 2\n").unwrap();
    repo.commit("start");
    let answer = history(&repo, &["ha#sh.py#hash"]);
    assert_eq!(
        (&answer["total"], &answer["target"]["present"]),
        (&1.into(), &true.into())
    );
    call(&repo, &["blame", "ha#sh.py#hash"]).expect(0);
    call(&repo, &["read", "ha#sh.py#hash"]).expect(0);
    repo.write("ha#sh.py", "def hash():\n    return 3\n");
    let shown = call(&repo, &["diff"]).expect(0).text();
    assert!(shown.contains("body: function hash\n"), "{shown}");

    assert_eq!(history(&repo, &["nonutf"])["total"], 1);
    call(&repo, &["blame", "nonutf"]).expect(0);
    for end in [&b"#nonutf"[..], b":1"] {
        let target = [odd.as_bytes(), end].concat();
        let args = [OsStr::new("history"), OsStr::new("--json"), OsStr::from_bytes(&target)];
        let answer = call_in(&repo.path(""), &args, b"").expect(0).json();
        assert_eq!(answer["total"], 1, "{answer}");
    }
}

#[test]
fn what_is_deleted_but_not_committed_is_told_by_name() {
    let repo =
        TestRepo::new("//- a.py\ndef one():\n    return 1\n\ndef two():\n    return 2\n//- b.py\ndef three(): pass\n");
    repo.write("a.py", "def one():\n    return 1\n");
    repo.remove("b.py");
    for (name, id) in [("two", "a.py#two"), ("three", "b.py#three")] {
        for args in [
            &["history", name, "--json"][..],
            &["history", "--deleted", name, "--json"],
        ] {
            let answer = call(&repo, args).expect(0).json();
            let removed = &answer["results"][0];
            assert_eq!(
                (&removed["symbol"]["id"], &removed["commit"]),
                (&id.into(), &Value::Null)
            );
            assert_eq!(removed["symbol"]["events"][0], "removed", "{args:?}");
        }
        let last = history(&repo, &[name, "--last-seen"])["last_seen"].clone();
        assert_eq!(
            (&last["commit"], &last["deleted_by"]),
            (&repo.rev_parse("HEAD").into(), &Value::Null)
        );
    }
    let answer = history(&repo, &["--deleted"]);
    let removed = (&answer["results"][0]["changes"][0]["path"], &answer["total"]);
    assert_eq!(removed, (&"b.py".into(), &1.into()));
    let head = repo.rev_parse("HEAD");
    let shown = call(&repo, &["history", "b.py", "--last-seen"]).expect(0).text();
    let wanted = format!("last present in {}; its deletion is not committed", &head[..10]);
    assert!(shown.contains(&wanted), "{shown}");
}

#[test]
fn where_nothing_is_found_it_is_said() {
    let repo = TestRepo::new("//- a.py\ndef one():\n    return 1\n");
    for (args, code, wanted) in [
        (&["a.py#nope"][..], 1, "no file or definition named \"a.py#nope\""),
        (&["--deleted"], 1, "no deleted files"),
        (&["--deleted", "nope"], 1, "no deleted definition called \"nope\""),
        (&["a.py", "--since", "2100-01-01"], 1, "no matching commits"),
        (&["a.py:0"], 2, "counted from 1"),
        (&["a.py:2-1"], 2, "invalid line range"),
    ] {
        let said = call(&repo, &[&["history"], args].concat()).expect(code).stderr;
        assert!(said.contains(wanted), "{args:?}: {said}");
    }
}

#[test]
fn only_the_commit_that_brought_it_in_is_its_introduction() {
    let repo = TestRepo::new("//- a.py\ndef one():\n    return 1\n");
    repo.write("a.py", "def one():\n    return 2\n");
    let second = repo.commit("edit");
    let time = repo.git(["log", "-1", "--format=%ct", &second]);
    for target in ["a.py#one", "a.py"] {
        let first = history(&repo, &[target, "--introduced"]);
        assert_eq!(commits(&first, None), [repo.rev_parse("HEAD~1")]);
        let since = format!("@{}", time.trim());
        let is_later = repo.git(["log", "-1", "--format=%ct", "HEAD~1"]).trim() < time.trim();
        assert!(is_later);
        call(&repo, &["history", target, "--introduced", "--since", &since]).expect(1);
    }
}

#[test]
fn what_cannot_be_read_is_neither_binary_nor_absent() {
    let repo = TestRepo::new("//- a.py\ndef one():\n    return 1\n");
    repo.write("a.py", "def one():\n    return 2\n");
    repo.commit("edit");
    let blob = repo.git(["rev-parse", "HEAD:a.py"]);
    repo.write("a.py", "def one():\n    return 3\n");
    repo.commit("edit again");
    repo.remove(format!(".git/objects/{}/{}", &blob[..2], &blob[2..]));
    let called = call(&repo, &["diff", "HEAD~2", "HEAD~1"]).expect(0);
    assert!(called.text().contains("a.py not read"), "{}", called.text());
    let answer = call(&repo, &["diff", "HEAD~2", "HEAD~1", "--json"]).expect(0).json();
    assert_eq!(answer["complete"], false);
    let said = call(&repo, &["blame", "a.py", "--ref", "HEAD~1"]).expect(2).stderr;
    assert!(
        said.contains("missing or damaged") && said.contains("codescout doctor"),
        "{said}"
    );
}

#[test]
fn a_move_to_another_file_that_is_not_committed_is_followed() {
    let text = "pub fn stay() {}\n";
    let moved =
        "pub fn load(path: &str) -> usize {\n    let parts = path.split('/');\n    parts.map(str::len).sum()\n}\n";
    let repo = TestRepo::empty();
    repo.write("g.rs", [text, moved].concat());
    repo.commit("start");
    repo.write("g.rs", text);
    repo.write("h.rs", moved);
    let answer = history(&repo, &["load"]);
    let symbol = &answer["results"][0]["symbol"];
    assert_eq!(
        (&symbol["from"], &symbol["events"][0]),
        (&"g.rs#load".into(), &"moved".into())
    );
    assert_eq!(answer["results"][1]["subject"], "start");
    assert_eq!(answer["total"], 2);
}

#[test]
fn a_search_uses_the_messages_of_the_newest_commits() {
    const N_COMMITS: usize = 10_020;
    let repo = TestRepo::empty();
    let mut stream = String::new();
    for n in 0..N_COMMITS {
        let (path, text) = (format!("f{}.txt", n % 20), format!("{n}\n"));
        let message = format!("note number {n}");
        stream += &format!(
            "commit refs/heads/main\ncommitter A <a@b> {} +0000\ndata {}\n{message}\nM 100644 inline {path}\n\
             data {}\n{text}\n",
            1_700_000_000 + n,
            message.len(),
            text.len()
        );
    }
    repo.git_with_input(["fast-import", "--quiet"], stream.as_bytes());
    repo.git(["reset", "--quiet", "--hard"]);
    call(&repo, &["search", "what note is it"]);
    let status = || call(&repo, &["status", "--json"]).expect(0).json()["history"].clone();
    let known = status();
    assert_eq!(
        (&known["commits"], &known["messages"], &known["limited_at"]),
        (&10_000.into(), &10_000.into(), &1.into())
    );
    // A further search keeps the record.
    call(&repo, &["search", "what note is that"]);
    assert_eq!(status(), known);
    // The history of a file needs all commits.
    let first = history(&repo, &["f0.txt", "--introduced"]);
    assert_eq!(first["results"][0]["subject"], "note number 0");
    assert_eq!(status()["commits"], N_COMMITS);
    call(&repo, &["search", "what note is that"]);
    let messages = status()["messages"].as_u64().unwrap();
    assert!((8_000..N_COMMITS as u64 + 1).contains(&messages), "{messages}");
}

#[test]
fn every_command_that_indexes_records_messages() {
    let repo = TestRepo::new("\n//- a.rs\nfn a() {}\n");
    call(&repo, &["ci", "save", "../archive"]).expect(0);
    for args in [
        &["index"][..],
        &["search", "what is it"],
        &["init", "--yes", "--without", "hooks,agents,ci"],
        &["doctor", "--fix"],
        &["gc", "--pin", "HEAD"],
        &["export", "../bundle"],
        &["ci", "restore", "../archive"],
    ] {
        std::fs::remove_dir_all(repo.path(".codescout")).unwrap();
        call(&repo, args);
        let status = call(&repo, &["status", "--json"]).expect(0).json();
        assert_eq!(status["history"]["messages"], 1, "{args:?}: {status}");
    }
}
