//! Tests several repositories in one server, and repositories that change while it runs.

use std::fs;

use serde_json::json;

use super::{Answer, Client, building, project};
use crate::support::{InTime, TestRepo};

fn text(path: &std::path::Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn only_what_lies_below_a_root_may_be_named() {
    let home = project();
    let roots = tempfile::tempdir().unwrap();
    let outside = TestRepo::new("//- secret.txt\nhidden\n");
    fs::create_dir(roots.path().join("plain")).unwrap();
    std::os::unix::fs::symlink(outside.root(), roots.path().join("link")).unwrap();
    fs::create_dir(roots.path().join("elsewhere")).unwrap();
    let git_file = format!("gitdir: {}\n", outside.root().join(".git").display());
    fs::write(roots.path().join("elsewhere/.git"), git_file).unwrap();
    let mut client = Client::legacy(&home, &["--root", text(roots.path())]);
    let escape = format!("{}/plain/../../", roots.path().display());
    for repo in [
        text(outside.root()),
        "link",
        "elsewhere",
        "plain",
        "../",
        &escape,
        "/",
        "/etc",
        "--help",
        "-c",
        "~",
        "",
        "a\nb",
        &"x".repeat(5000),
    ] {
        let answer = client.call("search", json!({"query": "hidden", "repo": repo}));
        let failure = answer.failure();
        assert!(!failure.contains("secret.txt"), "{failure}");
        let is_named = failure.contains("is refused") || failure.contains("not inside a git repository");
        assert!(is_named, "{repo:?}: {failure}");
    }
    // The message is the same for missing and forbidden repositories.
    let absent = client
        .call("search", json!({"query": "x", "repo": "/nowhere/at/all"}))
        .failure();
    let present = client.call("search", json!({"query": "x", "repo": "/etc"})).failure();
    assert_eq!(absent.replace("/nowhere/at/all", ""), present.replace("/etc", ""));
}

/// Creates a repository with one file below `roots`.
fn below(roots: &std::path::Path, name: &str, file: &str, content: &str) -> std::path::PathBuf {
    let git = TestRepo::new("//- a\n");
    let path = roots.join(name);
    git.git(["init", "-q", text(&path)]);
    fs::write(path.join(file), content).unwrap();
    git.git(["-C", text(&path), "add", "--all"]);
    git.git(["-C", text(&path), "commit", "-q", "-m", "first"]);
    path
}

#[test]
fn nothing_outside_of_the_roots_is_read_through_a_foreign_repository() {
    let home = project();
    let roots = tempfile::tempdir().unwrap();
    let outside = TestRepo::new("//- secret.txt\nhidden-text\n");
    let secret = outside.git(["rev-parse", "HEAD"]);
    let elsewhere = outside.root().join(".git/objects");
    fs::write(outside.root().join("words"), "hidden-text = [and more\n").unwrap();
    let include = |file: &std::path::Path| format!("[include]\n\tpath = {}\n", file.display());

    let including = below(roots.path(), "including", "README.md", "# Here\n");
    let config = fs::read_to_string(including.join(".git/config")).unwrap();
    fs::write(
        including.join(".git/config"),
        config.clone() + &include(&outside.root().join("words")),
    )
    .unwrap();
    let linked_config = below(roots.path(), "linked_config", "README.md", "# Here\n");
    fs::remove_file(linked_config.join(".git/config")).unwrap();
    std::os::unix::fs::symlink(outside.root().join("words"), linked_config.join(".git/config")).unwrap();
    let borrowing = below(roots.path(), "borrowing", "README.md", "# Here\n");
    fs::write(
        borrowing.join(".git/objects/info/alternates"),
        format!("{}\n", elsewhere.display()),
    )
    .unwrap();
    let linked = below(roots.path(), "linked", "README.md", "# Here\n");
    fs::remove_dir_all(linked.join(".git/objects")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, linked.join(".git/objects")).unwrap();
    let linked_refs = below(roots.path(), "linked_refs", "README.md", "# Here\n");
    fs::create_dir_all(linked_refs.join(".git/refs/remotes")).unwrap();
    std::os::unix::fs::symlink(
        outside.root().join(".git/refs/heads"),
        linked_refs.join(".git/refs/remotes/origin"),
    )
    .unwrap();

    let mut client = Client::legacy(&home, &["--root", text(roots.path())]);
    for repo in ["linked_config", "borrowing", "linked", "linked_refs"] {
        for target in ["README.md", "secret.txt"] {
            let answer = client.call("read", json!({"target": target, "repo": repo, "ref": secret}));
            let failure = answer.failure();
            assert!(failure.contains("is refused"), "{repo}: {failure}");
            assert!(!failure.contains("hidden-text"), "{repo}: {failure}");
        }
    }
    // Configuration files that are included are ignored.
    let answer = client.call("read", json!({"target": "README.md", "repo": "including"}));
    assert!(answer.text.contains("# Here"), "{answer:?}");
    // Alternate objects below the roots are allowed. A repository that later gets alternates elsewhere is rejected from
    // then on.
    let lender = below(roots.path(), "lender", "lent.txt", "lent\n");
    fs::write(
        borrowing.join(".git/objects/info/alternates"),
        format!("{}\n", lender.join(".git/objects").display()),
    )
    .unwrap();
    let answer = client.call("read", json!({"target": "README.md", "repo": "borrowing"}));
    assert!(answer.text.contains("# Here"), "{answer:?}");
    fs::write(
        lender.join(".git/objects/info/alternates"),
        format!("{}\n", elsewhere.display()),
    )
    .unwrap();
    fs::write(
        borrowing.join(".git/objects/info/alternates"),
        format!("# again\n{}\n", lender.join(".git/objects").display()),
    )
    .unwrap();
    let answer = client.call("read", json!({"target": "README.md", "repo": "borrowing"}));
    assert!(answer.failure().contains("outside the allowed roots"), "{answer:?}");
}

#[test]
fn one_repository_is_held_once_whichever_folder_is_named() {
    let home = project();
    let roots = tempfile::tempdir().unwrap();
    let other = below(roots.path(), "other", "lib.py", "def only_here():\n    pass\n");
    fs::create_dir_all(other.join("deep/er")).unwrap();
    let mut client = Client::legacy(&home, &["--root", text(roots.path())]);
    for repo in ["other", "other/deep", "other/deep/er", "other"] {
        let answer = client.call_complete("symbol", json!({"name": "only_here", "repo": repo}));
        assert_eq!(answer.all("path"), ["lib.py"], "{repo}");
    }
    let builds = client.call("status", json!({"op": "jobs", "repo": "other/deep"}));
    assert_eq!(builds.results().len(), 1, "{}", builds.text);
    // A repository that is created in one of the folders is a different one.
    let git = TestRepo::new("//- a\n");
    git.git(["init", "-q", text(&other.join("deep"))]);
    fs::write(other.join("deep/new.py"), "def deeper():\n    pass\n").unwrap();
    let answer = client.call_complete("symbol", json!({"name": "deeper", "repo": "other/deep"}));
    assert_eq!(answer.all("path"), ["new.py"]);
    // The same applies to the default repository.
    client.call_complete("symbol", json!({"name": "lex"}));
    let inside = home.root().join("src");
    assert_eq!(
        client
            .call("symbol", json!({"name": "lex", "repo": text(&inside)}))
            .all("path"),
        ["src/lexer.rs"]
    );
    let builds = client.call("status", json!({"op": "jobs", "repo": text(&inside)}));
    assert_eq!(builds.results().len(), 1, "{}", builds.text);
}

#[test]
fn a_foreign_repository_is_only_read() {
    let home = project();
    let other = TestRepo::new("//- lib.py\ndef only_here():\n    pass\n");
    let root = other.root().parent().unwrap();
    let mut client = Client::legacy(&home, &["--root", text(root)]);
    let name = other.root().file_name().unwrap().to_str().unwrap();
    for repo in [text(other.root()), name] {
        let answer = client.call_complete("symbol", json!({"name": "only_here", "repo": repo}));
        assert_eq!(answer.all("path"), ["lib.py"]);
        assert_eq!(answer.facts["repo"], text(other.root()));
        assert_eq!(answer.facts["complete"], true, "{}", answer.text);
        assert!(answer.text.contains("kept in memory"), "{}", answer.text);
    }
    assert!(!other.root().join(".codescout").exists());
    for op in ["build", "gc", "verify", "pin", "remove"] {
        let refused = client.call("index", json!({"repo": name, "op": op, "refs": ["HEAD"]}));
        assert!(refused.failure().contains("read-only"), "{refused:?}");
    }
    let history = client.call("history", json!({"repo": name, "target": "lib.py"}));
    assert_eq!(history.facts["total"], 1, "{}", history.text);
    assert!(!other.root().join(".codescout").exists());
    assert!(other.git(["status", "--porcelain"]).is_empty());
    // The repository's own index is used if there is one.
    let made = super::command(other.root(), &["index", "-q"]).output_in_time().unwrap();
    assert!(made.status.success());
    let mut client = Client::legacy(&home, &["--root", text(root)]);
    let answer = client.call_complete("symbol", json!({"name": "only_here", "repo": name}));
    assert_eq!(answer.facts["complete"], true, "{}", answer.text);
    assert!(!answer.text.contains("kept in memory"), "{}", answer.text);
    for op in ["gc", "verify", "pin", "remove"] {
        let refused = client.call("index", json!({"repo": name, "op": op, "refs": ["HEAD"]}));
        assert!(refused.failure().contains("read-only"), "{refused:?}");
    }
}

#[test]
fn an_index_in_memory_on_top_of_others_answers_like_one_of_its_own() {
    // More than the number of in-memory indexes that are stacked.
    const N_COMMITS: usize = 12;
    let home = project();
    let other = TestRepo::empty();
    for number in 0..N_COMMITS {
        let text =
            format!("def counted_{number}():\n    \"\"\"Counts packets, way {number}.\"\"\"\n    return {number}\n");
        other.write("lib.py", &text);
        other.write(format!("way_{}.py", number % 4), &text);
        other.commit(&format!("way {number}"));
    }
    let root = text(other.root().parent().unwrap()).to_owned();
    let ask = |client: &mut Client, back: usize| {
        let reference = format!("HEAD~{back}");
        let arguments =
            json!({"query": "where are packets counted", "repo": text(other.root()), "ref": reference, "limit": 0});
        let answer = client.call_complete("search", arguments);
        assert!(answer.text.contains("kept in memory"), "{}", answer.text);
        answer.results().clone()
    };
    let mut client = Client::legacy(&home, &["--root", &root]);
    for back in (0..N_COMMITS).rev() {
        let answer = ask(&mut client, back);
        assert!(!answer.is_empty());
        if back % 5 == 0 {
            assert_eq!(
                answer,
                ask(&mut Client::legacy(&home, &["--root", &root]), back),
                "{back}"
            );
        }
    }
}

#[test]
fn what_a_foreign_repository_takes_from_outside_is_refused() {
    let home = project();
    let roots = tempfile::tempdir().unwrap();
    let outside = TestRepo::new("//- secret.txt\nhidden\n");
    let secret = outside.git(["rev-parse", "HEAD"]);
    let inside = |name: &str| roots.path().join(name);
    let make = |name: &str| {
        let made = outside.try_git(["init", "-q", text(&inside(name))]);
        assert!(made.status.success());
    };
    make("alternates");
    let objects = outside.root().join(".git/objects");
    fs::write(
        inside("alternates/.git/objects/info/alternates"),
        format!("{}\n", objects.display()),
    )
    .unwrap();
    make("linked");
    fs::remove_dir_all(inside("linked/.git/objects")).unwrap();
    std::os::unix::fs::symlink(&objects, inside("linked/.git/objects")).unwrap();
    for (name, included) in [("present", "/etc/passwd"), ("absent", "/nowhere/at/all")] {
        make(name);
        let config = inside(name).join(".git/config");
        let text = fs::read_to_string(&config).unwrap();
        fs::write(&config, format!("{text}[include]\n\tpath = {included}\n")).unwrap();
    }
    make("plain");
    let mut client = Client::legacy(&home, &["--root", text(roots.path())]);
    let mut words = Vec::new();
    for name in ["alternates", "linked", "present", "absent"] {
        let answer = client.call("read", json!({"target": "secret.txt", "ref": secret, "repo": name}));
        let failure = answer.failure();
        let is_borrowing = ["alternates", "linked"].contains(&name);
        assert_eq!(failure.contains("is refused"), is_borrowing, "{name}: {failure}");
        assert!(!failure.contains("root:") && !failure.contains("passwd"), "{failure}");
        words.push(failure.replace(name, ""));
    }
    assert_eq!(words[2], words[3]);
    let projects = client.call("status", json!({"op": "projects"}));
    for name in ["alternates", "plain"] {
        assert!(
            projects.all("path").contains(&text(&inside(name)).to_owned()),
            "{}",
            projects.text
        );
    }
    let elsewhere = tempfile::tempdir().unwrap();
    let mut client = Client::start(elsewhere.path(), &["--root", text(roots.path())]);
    client.initialize("test");
    let projects = client.call("status", json!({"op": "projects"}));
    assert!(
        projects.all("path").contains(&text(&inside("plain")).to_owned()),
        "{}",
        projects.text
    );
}

#[test]
fn calls_for_several_work_trees_do_not_mix() {
    let repo = project();
    let trees: Vec<std::path::PathBuf> = (0..3)
        .map(|number| {
            let path = repo.root().parent().unwrap().join(format!("tree-{number}"));
            repo.git(["worktree", "add", "-q", "-b", &format!("b{number}"), text(&path)]);
            fs::write(path.join("mine.rs"), format!("pub fn mine() {{ {number} }}\n")).unwrap();
            path
        })
        .collect();
    let mut client = Client::legacy(&repo, &[]);
    client.call_complete("symbol", json!({"name": "lex"}));
    // All requests are sent before any response is read.
    let mut asked = Vec::new();
    for round in 0..10 {
        for (number, tree) in trees.iter().enumerate() {
            let arguments = json!({"target": "mine.rs", "repo": text(tree), "limit": 1 + round});
            asked.push((
                number,
                client.begin("tools/call", json!({"name": "read", "arguments": arguments})),
            ));
        }
    }
    let mut answers = std::collections::HashMap::new();
    while answers.len() < asked.len() {
        let message = client.next();
        if let Some(id) = message["id"].as_i64() {
            answers.insert(id, message);
        }
    }
    for (number, id) in asked {
        let text = answers[&id]["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(&format!("{{ {number} }}")), "{number}: {text}");
    }
    let home = client.call("read", json!({"target": "mine.rs"}));
    assert!(home.failure().contains("no file"), "{home:?}");
}

#[test]
fn a_server_recovers_from_what_happens_to_its_repository() {
    let repo = project();
    let mut client = Client::legacy(&repo, &[]);
    client.call_complete("symbol", json!({"name": "lex"}));
    let mut lex = || client.call_complete("symbol", json!({"name": "lex"})).all("path");
    // After the index is deleted, cached data is still right, and other data is built again.
    fs::remove_dir_all(repo.root().join(".codescout")).unwrap();
    assert_eq!(lex(), ["src/lexer.rs"]);
    repo.git(["mv", "src/lexer.rs", "src/cutter.rs"]);
    repo.commit("rename");
    fs::remove_dir_all(repo.root().join(".codescout")).unwrap_or_default();
    assert_eq!(lex(), ["src/cutter.rs"]);
    repo.git(["checkout", "-q", "v1"]);
    assert_eq!(lex(), ["src/lexer.rs"]);
    repo.git(["checkout", "-q", "main"]);
    repo.git(["gc", "-q", "--prune=now"]);
    assert_eq!(lex(), ["src/cutter.rs"]);
    fs::write(repo.root().join(".codescout.toml"), "[index]\nmax_blob_bytes = 2000\n").unwrap();
    assert_eq!(lex(), ["src/cutter.rs"]);
}

#[test]
fn every_edit_is_seen_by_the_next_call() {
    edit_and_read(std::time::Duration::ZERO);
}

#[test]
#[ignore = "waits for the server to watch the files, which nothing reports"]
fn every_edit_of_watched_files_is_seen_by_the_next_call() {
    edit_and_read(std::time::Duration::from_millis(350));
}

/// Edits a file and reads it, 40 times. A pause is long enough for a new watch to start.
fn edit_and_read(pause: std::time::Duration) {
    let repo = project();
    let mut client = Client::legacy(&repo, &[]);
    client.call_complete("symbol", json!({"name": "lex"}));
    let file = repo.root().join("src/lexer.rs");
    for round in 0..40 {
        // The new content always has the same length. Some reads follow at once, some after a pause.
        if round % 8 == 7 {
            std::thread::sleep(pause);
            client.call("read", json!({"target": "src/lexer.rs"}));
        }
        let text = format!("pub fn round_{round:02}() {{}}\n");
        match round % 3 {
            0 => fs::write(&file, &text).unwrap(),
            1 => {
                let new = repo.root().join("src/new.tmp");
                fs::write(&new, &text).unwrap();
                fs::rename(&new, &file).unwrap();
            }
            _ => {
                let mut open = fs::OpenOptions::new().write(true).open(&file).unwrap();
                std::io::Write::write_all(&mut open, text.as_bytes()).unwrap();
            }
        }
        let read = client.call("read", json!({"target": "src/lexer.rs"}));
        assert!(read.text.contains(text.trim_end()), "round {round}: {}", read.text);
    }
    // A branch is changed without changing the worktree.
    repo.commit("rounds");
    client.call("read", json!({"target": "src/lexer.rs"}));
    let v1 = repo.git(["rev-parse", "v1^{commit}"]);
    repo.git(["update-ref", "refs/heads/main", &v1]);
    let moved = client.call_complete("symbol", json!({"name": "lex"}));
    assert_eq!(moved.facts["commit"], v1);
    assert_eq!(moved.facts["dirty_files"], 1, "{}", moved.text);
}

#[test]
fn a_bare_repository_is_served() {
    let repo = project();
    let bare = repo.bare_clone("bare");
    let mut client = Client::legacy(&bare, &[]);
    let answer = client.call_complete("symbol", json!({"name": "lex"}));
    assert_eq!(answer.all("path"), ["src/lexer.rs"]);
    assert_eq!(answer.facts["ref"], "HEAD");
}

#[test]
fn an_empty_repository_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let repo = TestRepo::new("//- a.rs\nfn a() {}\n");
    let made = repo.try_git(["init", "-q", text(folder.path())]);
    assert!(made.status.success());
    fs::write(folder.path().join("b.rs"), "fn before_any_commit() {}\n").unwrap();
    let mut client = Client::start(folder.path(), &[]);
    client.initialize("test");
    let answer = client.call_complete("symbol", json!({"name": "before_any_commit"}));
    assert_eq!(answer.all("path"), ["b.rs"]);
}

#[test]
fn reading_through_revisions_begins_no_builds() {
    let repo = project();
    for round in 0..6 {
        repo.write("round.txt", format!("{round}\n"));
        repo.commit("round");
    }
    let mut client = Client::legacy(&repo, &[]);
    for back in 0..6 {
        let reference = format!("HEAD~{back}");
        let read = client.call("read", json!({"target": "round.txt", "ref": reference}));
        assert!(read.text.contains(&format!("{}\n", 5 - back)), "{}", read.text);
        assert_eq!(read.facts["complete"], true, "{}", read.text);
        let tree = client.call("outline", json!({"view": "tree", "ref": reference}));
        assert!(tree.text.contains("round.txt"), "{}", tree.text);
        assert_eq!(tree.facts["complete"], true, "{}", tree.text);
    }
    let builds = client.call("status", json!({"op": "jobs"}));
    assert!(builds.results().is_empty(), "{}", builds.text);
}

#[test]
fn one_call_does_not_end_the_build_that_another_wants() {
    let (_repo, mut client, id) = building();
    let answer = client.call("search", json!({"query": "f_1_1", "ref": "HEAD"}));
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    // Unless the build was faster than the cancellation.
    assert_eq!(answer.facts["error"], serde_json::Value::Null, "{}", answer.text);
    let done = client.call("index", json!({"wait": 100}));
    assert_eq!(done.results()[0]["state"], "done", "{}", done.text);
    let builds = client.call("status", json!({"op": "jobs"}));
    assert!(!builds.text.contains("stopped"), "{}", builds.text);
}

#[test]
fn stopping_builds_leaves_those_that_a_call_waits_for_unless_they_are_named() {
    let (_repo, mut client, id) = building();
    for arguments in [json!({"op": "stop"}), json!({"op": "stop", "refs": ["HEAD~1"]})] {
        let kept = client.call("index", arguments);
        assert_eq!(
            (&kept.facts["stopped"], &kept.facts["kept"]),
            (&json!(0), &json!(1)),
            "{}",
            kept.text
        );
        assert_eq!(kept.all("state"), ["running"], "{}", kept.text);
    }
    let asked = client.call("index", json!({"op": "stop", "refs": ["HEAD"], "dry_run": true}));
    assert!(asked.text.contains("1 builds would stop"), "{}", asked.text);
    assert_eq!(asked.all("state"), ["running"], "{}", asked.text);
    let stopped = client.call("index", json!({"op": "stop", "refs": ["HEAD"]}));
    assert_eq!(stopped.facts["stopped"], 1, "{}", stopped.text);
    let waited = client.notifications.iter().find(|message| message["id"] == id).cloned();
    let waited = Answer::of(waited.unwrap_or_else(|| client.answer(id)));
    assert_eq!(waited.all("state"), ["stopped"], "{}", waited.text);
    // A build that no call waits for.
    let begun = client.call("index", json!({"wait": 0}));
    assert!(
        ["waiting", "running"].contains(&begun.all("state")[0].as_str()),
        "{}",
        begun.text
    );
    let stopped = client.call("index", json!({"op": "stop"}));
    assert_eq!(
        (&stopped.facts["stopped"], &stopped.facts["kept"]),
        (&json!(1), &json!(0)),
        "{}",
        stopped.text
    );
}
