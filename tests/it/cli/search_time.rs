//! Compares `codescout search` in history with git.

use std::collections::BTreeSet;

use serde_json::Value;

use super::call;
use crate::support::TestRepo;

fn search(repo: &TestRepo, args: &[&str]) -> Value {
    let called = call(repo, &[&["search", "--json", "--ref", "HEAD"], args].concat());
    assert!(called.code < 2, "{}", called.stderr);
    called.json()
}

fn commits(answer: &Value) -> Vec<String> {
    let results = answer["results"].as_array().unwrap().iter();
    results
        .map(|result| result["commit"].as_str().unwrap().to_owned())
        .collect()
}

fn git_log(repo: &TestRepo, args: &[&str]) -> BTreeSet<String> {
    let printed = repo.git([&["log", "--format=%H", "HEAD"], args].concat());
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

const WORDS: [&str; 8] = ["alpha", "beta", "gamma", "delta", "retry", "upload", "limit_9", "(x|y)"];

/// Creates files that grow, shrink, are moved and deleted, on two branches that are merged.
fn woven(seed: u64) -> TestRepo {
    let repo = TestRepo::empty();
    let mut dice = Dice(seed);
    let text = |dice: &mut Dice, n_lines: u64| -> String {
        let line = |dice: &mut Dice| format!("{} {}", WORDS[dice.roll(8) as usize], WORDS[dice.roll(8) as usize]);
        (0..n_lines).map(|_| line(dice) + "\n").collect()
    };
    for name in ["a.txt", "sub/b.txt", "sub/c.rs"] {
        repo.write(name, text(&mut dice, 12));
    }
    repo.write("binary", b"alpha\0beta\n");
    repo.commit("start");
    repo.branch("side");
    for n in 0..30 {
        repo.checkout(if dice.roll(3) == 0 { "side" } else { "main" });
        let listed = repo.git(["ls-files"]);
        let files: Vec<&str> = listed.lines().filter(|name| *name != "binary").collect();
        let file = files[dice.roll(files.len() as u64) as usize];
        match dice.roll(7) {
            0 if files.len() > 2 => repo.remove(file),
            1 => repo.rename(file, format!("sub/moved_{n}.txt")),
            2 => repo.write(format!("new_{n}.txt"), text(&mut dice, 5)),
            3 => repo.write("binary", format!("alpha\0{n} retry\n")),
            _ => {
                let old = String::from_utf8(repo.read(file)).unwrap();
                let mut lines: Vec<&str> = old.lines().collect();
                let at = dice.roll(lines.len().max(1) as u64) as usize;
                let new = text(&mut dice, 1);
                match lines.get_mut(at) {
                    Some(line) if dice.roll(2) == 0 => *line = new.trim_end(),
                    _ => lines.insert(at.min(lines.len()), new.trim_end()),
                }
                let end = if dice.roll(5) == 0 { "" } else { "\n" };
                repo.write(file, lines.join("\n") + end);
            }
        }
        repo.commit(&format!("edit {n}: {}", WORDS[dice.roll(8) as usize]));
        if dice.roll(8) == 0
            && repo
                .try_git(["merge", "--quiet", "--no-ff", "-m", "merge", "side"])
                .status
                .success()
        {
            continue;
        }
        // A merge with conflicts is abandoned.
        repo.try_git(["merge", "--abort"]);
    }
    repo.checkout("main");
    repo
}

#[test]
fn changed_lines_are_found_in_the_commits_that_git_log_finds() {
    let mut n_found = 0;
    for seed in [5, 23] {
        let repo = woven(seed);
        for is_indexed in [false, true] {
            if is_indexed {
                call(&repo, &["index", "--history", "--quiet"]).expect(0);
            }
            for pattern in ["retry", "alpha beta", "limit_9", "a", "nowhere at all", "(x|y)"] {
                let answer = search(&repo, &["--in", "diffs", "-n", "0", pattern]);
                let found: BTreeSet<String> = commits(&answer).into_iter().collect();
                let escaped = pattern.replace(['(', ')', '|'], ".");
                assert_eq!(found, git_log(&repo, &["-G", &escaped]), "seed {seed}, {pattern}");
                n_found += found.len();
            }
            for pattern in ["^(retry|gamma) +upload", "limit_[0-9]$", "al.*ta"] {
                let answer = search(&repo, &["--in", "diffs", "--mode", "regex", "-n", "0", pattern]);
                let found: BTreeSet<String> = commits(&answer).into_iter().collect();
                let wanted = git_log(&repo, &["--extended-regexp", "-G", pattern]);
                assert_eq!(found, wanted, "seed {seed}, {pattern}");
            }
            let answer = search(&repo, &["--in", "diffs", "-n", "0", "--path", "sub", "retry"]);
            let found: BTreeSet<String> = commits(&answer).into_iter().collect();
            let wanted = git_log(&repo, &["-G", "retry", "--full-history", "--", "sub"]);
            // If a path is given, git does not detect where a file that was moved below it came from.
            assert!(found.is_subset(&wanted), "seed {seed}");
        }
    }
    assert!(n_found > 50, "{n_found}");
}

#[test]
fn a_hit_tells_the_lines_and_pages_have_no_gaps() {
    let repo = woven(7);
    call(&repo, &["index", "--history", "--quiet"]).expect(0);
    let all = search(&repo, &["--in", "diffs", "-n", "0", "retry"]);
    let results = all["results"].as_array().unwrap();
    assert!(results.len() > 5, "{}", results.len());
    for result in results {
        let lines = |side: &str| result[side].as_array().unwrap().clone();
        let changed = [lines("removed"), lines("added")].concat();
        assert!(!changed.is_empty());
        assert!(
            changed
                .iter()
                .all(|line| line["text"].as_str().unwrap().contains("retry"))
        );
        // The line has the reported number in the commit.
        let commit = result["commit"].as_str().unwrap();
        for line in lines("added") {
            let text = repo.git(["show", &format!("{commit}:{}", result["path"].as_str().unwrap())]);
            let number = line["line"].as_u64().unwrap() as usize;
            assert_eq!(text.lines().nth(number - 1), line["text"].as_str());
        }
    }
    let mut paged = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let mut args = vec!["--in", "diffs", "-n", "3", "retry"];
        if let Some(cursor) = &cursor {
            args.extend(["--cursor", cursor]);
        }
        let answer = search(&repo, &args);
        paged.extend(answer["results"].as_array().unwrap().clone());
        match answer["next_cursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }
    assert_eq!(&paged, results);
}

fn story() -> TestRepo {
    let repo = TestRepo::empty();
    let say = |path: &str, message: &str| {
        repo.write(path, message);
        repo.commit(message);
    };
    say(
        "net/client.rs",
        "client: retry failed uploads\n\nThe server drops connections.\nThree attempts are enough.",
    );
    say(
        "net/server.rs",
        "server: close idle sockets\n\nSigned-off-by: Retry Uploads <a@b>",
    );
    say("docs/readme.md", "docs: explain the token bucket");
    say(
        "net/client.rs",
        "client: give up after a time-out\n\nSee the token bucket for limits.",
    );
    say("x.txt", "fix typo");
    repo
}

#[test]
fn messages_are_found_by_words_phrases_and_ids() {
    let repo = story();
    let subject = |answer: &Value| answer["results"][0]["subject"].as_str().unwrap_or_default().to_owned();
    for args in [&["--mode", "keyword"][..], &[], &["--mode", "hybrid"]] {
        let answer = search(&repo, &[&["--in", "commits", "failed uploads"], args].concat());
        assert_eq!(subject(&answer), "client: retry failed uploads", "{args:?}");
    }
    let answer = search(&repo, &["--in", "commits", "three ATTEMPTS  are enough"]);
    assert_eq!(subject(&answer), "client: retry failed uploads");
    assert_eq!(answer["results"][0]["lines"][0]["line"], 4);
    assert_eq!(answer["results"][0]["changed_paths"], 1);
    let id = repo.rev_parse("HEAD~2");
    let answer = search(&repo, &["--in", "commits", &id[..8]]);
    assert_eq!(commits(&answer)[0], id);
    let answer = search(&repo, &["--in", "commits", "--path", "docs", "token bucket"]);
    assert_eq!(commits(&answer), [id.as_str()]);
    call(&repo, &["search", "--in", "commits", "--author", "nobody", "token"]).expect(1);
    call(&repo, &["search", "--in", "commits", "--until", "1990-01-01", "token"]).expect(1);
    let answer = search(
        &repo,
        &["--in", "commits", "--mode", "regex", "-n", "0", "(token|idle) \\w+"],
    );
    let found: BTreeSet<String> = commits(&answer).into_iter().collect();
    assert_eq!(
        found,
        git_log(&repo, &["--extended-regexp", "--grep", "(token|idle) [a-z]+"])
    );
}

#[test]
fn what_was_recorded_bit_by_bit_is_searched_like_what_was_recorded_at_once() {
    let repo = story();
    let ask = |repo: &TestRepo| {
        let ranked = search(repo, &["--in", "commits", "-n", "0", "token bucket of the client"]);
        let lines = search(repo, &["--in", "diffs", "-n", "0", "client"]);
        let results = |answer: &Value| answer["results"].clone();
        (results(&ranked), results(&lines))
    };
    // Nine batches of one commit are enough to start merging batches.
    call(&repo, &["index", "--history", "--quiet"]).expect(0);
    for n in 0..9 {
        repo.write("net/client.rs", format!("client {n}\n"));
        repo.commit(&format!("client: change {n} of the bucket"));
        call(&repo, &["index", "--quiet"]).expect(0);
    }
    let bit_by_bit = ask(&repo);
    call(&repo, &["verify"]).expect(0);
    std::fs::remove_dir_all(repo.path(".codescout")).unwrap();
    call(&repo, &["index", "--history", "--quiet"]).expect(0);
    assert_eq!(ask(&repo), bit_by_bit);
}

#[test]
fn damage_beside_the_records_is_found_and_mended() {
    let repo = story();
    call(&repo, &["index", "--history", "--quiet"]).expect(0);
    let before = search(&repo, &["--in", "diffs", "-n", "0", "client"])["results"].clone();
    for ending in ["msg", "lin"] {
        let entries = std::fs::read_dir(repo.path(".codescout/history-v1")).unwrap();
        let mut paths = entries.map(|entry| entry.unwrap().path());
        let path = paths
            .find(|path| path.extension().is_some_and(|found| found == ending))
            .unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        // Index files are read-only.
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, bytes).unwrap();
        call(&repo, &["verify"]).expect(1);
        // The answer does not depend on the file.
        assert_eq!(
            search(&repo, &["--in", "diffs", "-n", "0", "client"])["results"],
            before
        );
        search(&repo, &["--in", "commits", "token bucket"]);
        call(&repo, &["verify", "--repair"]);
        call(&repo, &["verify"]).expect(0);
        call(&repo, &["index", "--history", "--quiet"]).expect(0);
    }
    assert_eq!(
        search(&repo, &["--in", "diffs", "-n", "0", "client"])["results"],
        before
    );
}

#[test]
fn several_revisions_are_searched_at_once() {
    let repo = TestRepo::new(
        "
        //- src/a.rs
        /// Opens the gate of the castle.
        pub fn open_gate() -> u32 {
            1
        }
    ",
    );
    repo.tag("v1");
    repo.rename("src/a.rs", "src/b.rs");
    repo.write(
        "src/c.rs",
        "/// Closes the gate of the castle.\npub fn close_gate() -> u32 {\n    2\n}\n",
    );
    repo.commit("more");
    let gone = "/// Burns the gate of the castle.\npub fn burn_gate() -> u32 {\n    3\n}\n";
    repo.write("src/d.rs", gone);
    let answer = call(
        &repo,
        &[
            "search",
            "--json",
            "--refs",
            "v1,HEAD",
            "--refs",
            "WORKTREE",
            "gate of the castle",
        ],
    );
    let answer = answer.expect(0).json();
    let found: BTreeSet<(String, String)> = answer["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| {
            let refs = result["refs"].as_array().unwrap().iter();
            let refs: Vec<String> = refs
                .map(|found| {
                    let path = found["places"][0]["path"].as_str().unwrap();
                    format!("{} {path}", found["ref"].as_str().unwrap())
                })
                .collect();
            (result["symbol"].as_str().unwrap().to_owned(), refs.join(", "))
        })
        .collect();
    let wanted = [
        ("burn_gate", "WORKTREE src/d.rs"),
        ("close_gate", "HEAD src/c.rs, WORKTREE src/c.rs"),
        ("open_gate", "v1 src/a.rs, HEAD src/b.rs, WORKTREE src/b.rs"),
    ];
    assert_eq!(found, wanted.map(|(a, b)| (a.to_owned(), b.to_owned())).into());
    let refs: Vec<&str> = answer["refs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["ref"].as_str().unwrap())
        .collect();
    assert_eq!(refs, ["v1", "HEAD", "WORKTREE"]);
    // Each result is on exactly one page.
    let first = call(
        &repo,
        &["search", "--json", "--refs", "v1,HEAD", "-n", "1", "gate of the castle"],
    )
    .expect(0)
    .json();
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = [
        "search",
        "--json",
        "--refs",
        "v1,HEAD",
        "-n",
        "1",
        "--cursor",
        cursor,
        "gate of the castle",
    ];
    let second = call(&repo, &second).expect(0).json();
    assert_ne!(first["results"][0]["symbol"], second["results"][0]["symbol"]);
    call(&repo, &["search", "--refs", "v1,nowhere", "gate"]).expect(2);
    call(&repo, &["search", "--refs", "v1", "--mode", "regex", "gate"]).expect(2);
}

/// Creates a file that existed from the first to the third commit, a file that was moved, and a file that was edited.
fn past() -> (TestRepo, Vec<String>) {
    let repo = TestRepo::new(
        "
        //- src/session.rs
        /// Writes a session to the disk, so that it outlives the process.
        pub fn store_session(name: &str) -> bool {
            write(name, serialize())
        }
        //- src/clock.rs
        /// Tells the time of the day.
        pub fn time_of_day() -> u64 {
            seconds() % 86400
        }
        //- src/moved.rs
        /// Mixes two colours.
        pub fn mix_colours(a: u32, b: u32) -> u32 {
            (a + b) / 2
        }
    ",
    );
    let mut commits = vec![repo.rev_parse("HEAD")];
    repo.rename("src/moved.rs", "src/colours.rs");
    commits.push(repo.commit("move"));
    repo.remove("src/session.rs");
    commits.push(repo.commit("sessions are kept in memory"));
    repo.write(
        "src/clock.rs",
        "/// Tells the time of the day.\npub fn time_of_day() -> u64 {\n    now() % 86_400\n}\n",
    );
    commits.push(repo.commit("another clock"));
    let colours = String::from_utf8(repo.read("src/colours.rs")).unwrap();
    let long = "    trace();\n".repeat(80);
    repo.write("src/colours.rs", format!("{colours}\npub fn invert() {{\n{long}}}\n"));
    commits.push(repo.commit("invert"));
    (repo, commits)
}

#[test]
fn code_that_is_gone_is_found_with_the_commits_that_it_lived_through() {
    let (repo, commits) = past();
    call(&repo, &["index", "--history", "--quiet"]).expect(0);
    let life = |query: &str, symbol: &str| -> Option<Value> {
        let answer = search(&repo, &["--all-history", query]);
        let results = answer["results"].as_array().unwrap().clone();
        let found = results.iter().find(|result| result["symbol"] == symbol)?;
        Some(found["life"].clone())
    };
    let gone = life("how is a session stored on disk", "store_session").unwrap();
    assert_eq!(gone["present"], false);
    assert_eq!(gone["first"]["commit"], commits[0].as_str());
    assert_eq!(gone["last"]["commit"], commits[1].as_str());
    assert_eq!(gone["gone_in"]["commit"], commits[2].as_str());
    assert_eq!(gone["paths"][0], "src/session.rs");
    let moved = life("mix_colours", "mix_colours").unwrap();
    assert_eq!((&moved["present"], &moved["gone_in"]), (&true.into(), &Value::Null));
    assert_eq!(moved["first"]["commit"], commits[0].as_str());
    assert_eq!(moved["paths"], serde_json::json!(["src/colours.rs", "src/moved.rs"]));
    // Before the deletion, the code was not deleted, and an ordinary search does not find it.
    let answer = search(&repo, &["store_session"]);
    assert!(
        answer["results"]
            .as_array()
            .unwrap()
            .iter()
            .all(|result| result["symbol"] != "store_session")
    );
    let then = call(
        &repo,
        &[
            "search",
            "--json",
            "--ref",
            &commits[1],
            "--all-history",
            "store_session",
        ],
    )
    .json();
    assert_eq!(then["results"][0]["life"]["present"], true);
    let filtered = search(&repo, &["--all-history", "--path", "src/clock.rs", "session disk time"]);
    assert!(
        filtered["results"]
            .as_array()
            .unwrap()
            .iter()
            .all(|result| result["path"] == "src/clock.rs")
    );
}

#[test]
fn versions_that_are_not_indexed_are_not_called_empty() {
    let repo = TestRepo::new("//- a.rs\npub fn bird() -> u32 { early_worm() }\n");
    repo.write("a.rs", "pub fn bird() -> u32 { late_riser() }\n");
    repo.commit("later");
    call(&repo, &["index", "--history", "--quiet"]).expect(0);
    let ask = || search(&repo, &["--all-history", "\"early_worm\""]);
    let answer = ask();
    assert_eq!(answer["complete"], false);
    assert_eq!(answer["absent"], Value::Null);
    let why = answer["incomplete_because"].to_string();
    assert!(why.contains("1 of 2 recorded file versions"), "{why}");
    assert!(why.contains("no indexed version contains"), "{why}");
    // If all versions are indexed, it is found.
    call(&repo, &["index", "--quiet", "HEAD~1"]).expect(0);
    let answer = ask();
    assert_eq!(answer["results"][0]["symbol"], "bird");
    assert_eq!(answer["complete"], true);
}

#[test]
fn the_last_version_of_a_removed_definition_is_found_and_every_version_if_asked_for() {
    let text = |functions: &[(&str, &str)]| -> String {
        // The functions are so long that each is a separate chunk.
        let function = |(name, body): &(&str, &str)| {
            let rest: String = (0..25)
                .map(|n| format!("    {name}.step_{n}(request, {n})\n"))
                .collect();
            format!("def {name}(request):\n    {body}\n{rest}    return request\n\n\n")
        };
        functions.iter().map(function).collect()
    };
    let repo = TestRepo::empty();
    let kept = ("kept", "log.debug('kept in place')");
    repo.write("app.py", text(&[kept, ("throttle", "bucket.begin_slowly()")]));
    let added = repo.commit("add");
    repo.write("app.py", text(&[kept, ("throttle", "bucket.refill_tokens()")]));
    let edited = repo.commit("edit");
    repo.write("other.py", text(&[("unrelated", "nothing()")]));
    let before = repo.commit("something else");
    repo.write("app.py", text(&[kept]));
    let removed = repo.commit("remove");
    call(&repo, &["index", "--history", "--quiet"]).expect(0);
    let ask = |query: &str| search(&repo, &["--all-history", query]);
    let found = ask("throttle");
    let first = &found["results"][0];
    assert_eq!(first["symbol"], "throttle");
    let life = &first["life"];
    let moments = ["first", "last", "gone_in"].map(|moment| life[moment]["commit"].as_str().unwrap());
    assert_eq!(moments, [&edited, &before, &removed]);
    let definition = &life["definition"];
    let moments = ["added_in", "removed_in"].map(|moment| definition[moment]["commit"].as_str().unwrap());
    assert_eq!(moments, [&added, &removed]);
    assert_eq!(ask("\"refill_tokens\"")["results"][0]["symbol"], "throttle");
    let printed = call(&repo, &["search", "--all-history", "throttle"]).expect(0).text();
    let wanted = format!("the definition was added in {}", &added[..10]);
    assert!(printed.contains(&wanted), "{printed}");
    let described = call(
        &repo,
        &["history", "--deleted", "--json", "refill the tokens of a bucket"],
    )
    .json();
    assert_eq!(described["results"][0]["symbol"], "throttle", "{described}");
    // A version between the first and the last is indexed only if all are requested. A collection keeps it, and later
    // runs index new versions too.
    let of_versions = |answer: &Value| answer["complete"] == true && !answer["results"].as_array().unwrap().is_empty();
    assert!(!of_versions(&ask("\"begin_slowly\"")));
    let outcome = call(&repo, &["index", "--history=all", "--json"]).expect(0).json();
    assert_eq!(
        (
            &outcome["history"]["past_versions"],
            &outcome["history"]["new_past_versions"]
        ),
        (&4.into(), &1.into())
    );
    assert!(of_versions(&ask("\"begin_slowly\"")));
    call(&repo, &["gc", "--aggressive", "--quiet"]).expect(0);
    call(&repo, &["verify"]).expect(0);
    assert!(of_versions(&ask("\"begin_slowly\"")));
    for body in ["passing_by()", "at_last()"] {
        repo.write("other.py", text(&[("unrelated", body)]));
        repo.commit("edit");
    }
    call(&repo, &["index", "--quiet"]).expect(0);
    assert!(of_versions(&ask("\"passing_by\"")));
    // The run with `last` ends that.
    call(&repo, &["index", "--history=last", "--quiet"]).expect(0);
    call(&repo, &["gc", "--aggressive", "--quiet"]).expect(0);
    assert!(!of_versions(&ask("\"begin_slowly\"")));
    assert_eq!(ask("\"refill_tokens\"")["results"][0]["symbol"], "throttle");
}

#[test]
fn what_is_gone_is_described_and_outlives_a_collection() {
    let (repo, commits) = past();
    call(&repo, &["index", "--history", "--quiet"]).expect(0);
    let ask = || {
        call(
            &repo,
            &["history", "--deleted", "--json", "writing sessions to the disk"],
        )
        .json()
    };
    let before = ask();
    assert_eq!(before["results"][0]["symbol"], "store_session");
    assert_eq!(before["results"][0]["life"]["gone_in"]["commit"], commits[2].as_str());
    // Changed code is not deleted code.
    let results = before["results"].as_array().unwrap();
    assert!(
        results.iter().all(|result| result["symbol"] != "time_of_day"),
        "{before}"
    );
    call(&repo, &["gc", "--aggressive", "--quiet"]).expect(0);
    call(&repo, &["verify"]).expect(0);
    assert_eq!(ask()["results"], before["results"]);
    call(&repo, &["config", "set", "gc.deleted_files", "0"]).expect(0);
    call(&repo, &["gc", "--aggressive", "--quiet"]).expect(0);
    assert!(ask()["results"].as_array().unwrap().is_empty());
}

#[test]
fn options_that_mean_nothing_there_are_refused() {
    let repo = story();
    for args in [
        &["--in", "diffs", "--mode", "semantic", "x"][..],
        &["--in", "commits", "--mode", "similar", "x"],
        &["--in", "commits", "--explain", "x"],
        &["--since", "1d", "x"],
        &["--all-history", "--mode", "regex", "x"],
        &["--all-history", "--refs", "HEAD", "x"],
        &["--in", "commits", "--since", "yesterday", "x"],
        &["--in", "diffs", "--mode", "regex", "("],
    ] {
        call(&repo, &[&["search"], args].concat()).expect(2);
    }
    let empty = TestRepo::empty();
    call(&empty, &["search", "--in", "commits", "x"]).expect(1);
    call(&empty, &["search", "--in", "diffs", "x"]).expect(1);
}
