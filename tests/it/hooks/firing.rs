//! Tests which hooks each git command calls, and what they do.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use codescout::sidecar::Sidecar;

use super::{assert_fresh, commit_file, git_says, held, hooked, hooks, indexed, log, n_runs, settle, worker_in};
use crate::cli::call_in;
use crate::support::{InTime, TestRepo, assert_within, wait_for_end, wait_until};

#[test]
fn a_commit_is_indexed_and_nothing_is_printed() {
    let repo = hooked();
    repo.write("a.rs", "pub fn a() {}\n");
    repo.git(["add", "a.rs"]);
    assert_eq!(git_says(&repo, &["commit", "--quiet", "-m", "a"]), "");
    assert_fresh(&repo);
    assert_eq!(n_runs(&repo), 1);
    assert_eq!(log(&repo).last().unwrap().event, "post-commit");
    assert_eq!(repo.git(["status", "--porcelain"]), "");
}

#[test]
fn messages_are_always_recorded_and_lines_where_they_were_before() {
    let repo = hooked();
    let recorded = || {
        let sidecar = Sidecar::open(&repo.path(".codescout")).unwrap();
        let state = sidecar.state().unwrap().unwrap();
        let entries = state.history.iter();
        (
            state.n_commits(),
            entries.clone().all(|entry| entry.messages.is_some()),
            entries.clone().all(|entry| entry.lines.is_some()),
        )
    };
    commit_file(&repo, "one");
    settle(&repo);
    assert_eq!(recorded(), (2, true, false));
    call_in(repo.root(), &["index", "--history"], b"").expect(0);
    assert_eq!(recorded(), (2, true, true));
    commit_file(&repo, "two");
    settle(&repo);
    assert_eq!(recorded(), (3, true, true));
}

#[test]
fn amend_merge_switch_and_worktree_are_followed() {
    let repo = hooked();
    commit_file(&repo, "one");
    assert_fresh(&repo);
    repo.write("one.rs", "pub fn amended() {}\n");
    assert_eq!(
        git_says(&repo, &["commit", "--quiet", "--amend", "--all", "--no-edit"]),
        ""
    );
    assert_fresh(&repo);

    git_says(&repo, &["switch", "--quiet", "--create", "side"]);
    commit_file(&repo, "side");
    assert_fresh(&repo);
    git_says(&repo, &["switch", "--quiet", "main"]);
    assert_fresh(&repo);
    git_says(&repo, &["merge", "--quiet", "side"]);
    assert_fresh(&repo);
    commit_file(&repo, "two");
    git_says(&repo, &["switch", "--quiet", "side"]);
    commit_file(&repo, "three");
    repo.merge("main");
    assert_fresh(&repo);

    let linked = repo.worktree("linked");
    settle(&repo);
    commit_file(&linked, "four");
    assert_fresh(&linked);
    let runs = log(&repo);
    let last = runs.last().unwrap();
    assert_eq!(
        Path::new(&last.repo),
        linked.root(),
        "the work trees share one log: {last:?}"
    );
}

#[test]
fn a_rebase_of_63_commits_is_one_run() {
    let repo = hooked();
    git_says(&repo, &["switch", "--quiet", "--create", "side"]);
    commit_file(&repo, "elsewhere");
    git_says(&repo, &["switch", "--quiet", "main"]);
    for n in 0..63 {
        commit_file(&repo, &format!("commit_{n}"));
    }
    settle(&repo);
    let before = n_runs(&repo);
    let printed = git_says(&repo, &["rebase", "--quiet", "side"]);
    assert_eq!(printed, "");
    assert_fresh(&repo);
    let n_runs = n_runs(&repo) - before;
    assert!((1..=2).contains(&n_runs), "{n_runs} runs");

    // The other rebase backend calls different hooks.
    git_says(&repo, &["switch", "--quiet", "--create", "third", "side"]);
    commit_file(&repo, "third");
    git_says(&repo, &["switch", "--quiet", "main"]);
    settle(&repo);
    let before = super::n_runs(&repo);
    git_says(&repo, &["rebase", "--quiet", "--apply", "third"]);
    assert_fresh(&repo);
    assert!(super::n_runs(&repo) - before <= 2);
}

#[test]
fn cherry_picks_reverts_and_bisects_are_one_run_each() {
    let repo = hooked();
    git_says(&repo, &["switch", "--quiet", "--create", "side"]);
    let commits: Vec<String> = (0..3).map(|n| commit_file(&repo, &format!("side_{n}"))).collect();
    git_says(&repo, &["switch", "--quiet", "main"]);
    settle(&repo);

    let mut before = n_runs(&repo);
    let mut is_one_run = |what: &str| {
        assert_fresh(&repo);
        let now = n_runs(&repo);
        assert_eq!(now - before, 1, "{what}");
        before = now;
    };
    git_says(&repo, &[&["cherry-pick".to_owned()], commits.as_slice()].concat());
    is_one_run("cherry-pick");
    git_says(&repo, &["revert", "--no-edit", "HEAD", "HEAD~1"]);
    is_one_run("revert");
    git_says(&repo, &["bisect", "start", "HEAD", "HEAD~5"]);
    git_says(&repo, &["bisect", "good"]);
    git_says(&repo, &["bisect", "reset"]);
    settle(&repo);
    // The worktree is at the same commit again, which is already indexed.
    assert_eq!(n_runs(&repo), before);
    assert_eq!(indexed(&repo).last(), Some(&repo.rev_parse("HEAD")));
}

/// Sets the modification time of a file to `age` ago.
fn make_older(path: &Path, age: Duration) {
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - age).unwrap();
}

#[test]
fn a_bisect_that_goes_on_elsewhere_keeps_no_worker() {
    let repo = hooked();
    let linked = repo.worktree("linked");
    settle(&repo);
    repo.write(".git/worktrees/linked/BISECT_LOG", "");
    let request = repo.path(".git/codescout-hooks/request linked");
    let git_dir = linked.git(["rev-parse", "--absolute-git-dir"]);
    fs::write(&request, format!("post-checkout\n{git_dir}")).unwrap();
    make_older(&request, Duration::from_secs(11));
    let started = Instant::now();
    hooks(&repo, &["run", "--worker", "post-commit"]).expect(0);
    // A worker that waited would take at least ten seconds.
    assert_within(Duration::from_secs(9), started, "the worker waits");
    assert!(request.exists(), "it waits for the next worker");
    repo.remove(".git/worktrees/linked/BISECT_LOG");
    hooks(&repo, &["run", "--worker", "post-commit"]).expect(0);
    assert!(!request.exists());
    assert_eq!(indexed(&repo).last(), Some(&linked.rev_parse("HEAD")));
}

#[test]
#[ignore = "counts context switches for ten seconds"]
fn a_waiting_worker_looks_less_and_less_often() {
    let repo = hooked();
    repo.write(".git/BISECT_LOG", "");
    let mut command = Command::new(super::PROGRAM);
    command.args(["hooks", "run", "post-commit"]).current_dir(repo.root());
    assert!(command.status_in_time().unwrap().success());
    wait_until("the worker starts", || worker_in(repo.root()).is_some());
    let mut most = 0;
    // The worker ends by itself after ten seconds.
    wait_until("the worker ends", || {
        let worker = worker_in(repo.root());
        let status = worker.and_then(|worker| fs::read_to_string(format!("/proc/{worker}/status")).ok());
        let n_waits = status.as_deref().and_then(|status| {
            let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches"));
            line?.rsplit('\t').next()?.parse::<u32>().ok()
        });
        most = most.max(n_waits.unwrap_or_default());
        worker.is_none()
    });
    // There are about 24 checks in ten seconds, and some waits at startup. Checks at a constant interval would be 400.
    assert!((5..200).contains(&most), "{most}");
}

#[test]
fn a_worker_clears_away_what_nobody_waits_for() {
    let repo = hooked();
    let folder = repo.path(".git/codescout-hooks");
    fs::create_dir(&folder).unwrap();
    // Both numbers are process ids.
    let writing = format!("writing {}", std::process::id());
    let names = [
        "trial 00 post-receive",
        "writing 1",
        "trial 11 post-commit",
        &writing,
        "else",
    ];
    for (name, hours) in names.iter().zip([25, 25, 23, 23, 25]) {
        fs::write(folder.join(name), "").unwrap();
        make_older(&folder.join(name), Duration::from_secs(hours * 60 * 60));
    }
    commit_file(&repo, "first");
    assert_fresh(&repo);
    let is_left = names.map(|name| folder.join(name).exists());
    assert_eq!(is_left, [false, false, true, true, true]);
}

#[test]
fn a_checkout_of_files_is_nothing() {
    let repo = hooked();
    repo.write("start.rs", "changed\n");
    git_says(&repo, &["checkout", "--", "start.rs"]);
    settle(&repo);
    assert_eq!(n_runs(&repo), 0);
    git_says(&repo, &["checkout", "--quiet", "--detach"]);
    assert_fresh(&repo);
}

#[test]
fn a_captured_commit_does_not_wait_for_the_run() {
    let (repo, before, lock) = held();
    for n in 0..5 {
        // Waits until the command's output ends. A background process that kept the pipes open would delay that.
        commit_file(&repo, &format!("during_{n}"));
    }
    wait_until("a run begins", || n_runs(&repo) > before);
    let worker = worker_in(repo.root()).unwrap();
    assert_is_detached(worker);
    drop(lock);
    assert_fresh(&repo);
    let n_runs = n_runs(&repo) - before;
    assert!((1..=2).contains(&n_runs), "five commits, {n_runs} runs");
}

/// Checks that the worker has its own session, inherits no open files and none of git's variables, and has a low
/// priority.
fn assert_is_detached(worker: u32) {
    let fields = || {
        let stat = fs::read_to_string(format!("/proc/{worker}/stat")).unwrap();
        let fields = stat.rsplit_once(") ").unwrap().1.split(' ');
        fields.map(str::to_owned).collect::<Vec<_>>()
    };
    let own = worker.to_string();
    // The process exists before it begins its session.
    wait_until("the worker has its own group and session", || {
        fields()[2..4] == [own.clone(), own.clone()]
    });
    let nice = fields().swap_remove(16);
    let of_the_caller = rustix::process::getpriority_process(None).unwrap();
    assert_eq!(nice, (of_the_caller + 10).min(19).to_string());
    for descriptor in 0..3 {
        let open = fs::read_link(format!("/proc/{worker}/fd/{descriptor}")).unwrap();
        assert_eq!(open, Path::new("/dev/null"), "{descriptor}");
    }
    let environment = fs::read(format!("/proc/{worker}/environ")).unwrap();
    let of_git: Vec<_> = environment
        .split(|byte| *byte == 0)
        .filter(|variable| variable.starts_with(b"GIT_"))
        .map(String::from_utf8_lossy)
        .collect();
    assert!(of_git.is_empty(), "{of_git:?}");
}

#[test]
fn of_many_requests_at_once_none_is_lost() {
    let repo = hooked();
    let trees: Vec<TestRepo> = (0..4).map(|n| repo.worktree(&format!("tree_{n}"))).collect();
    settle(&repo);
    for round in 0..6 {
        let commits: Vec<_> = trees
            .iter()
            .map(|tree| {
                let message = format!("round {round}");
                let mut command = tree.command();
                command.args(["commit", "--quiet", "--allow-empty", "-m", &message]);
                command.spawn().unwrap()
            })
            .collect();
        for mut commit in commits {
            assert!(wait_for_end(&mut commit).success());
        }
    }
    settle(&repo);
    let done = indexed(&repo);
    for tree in &trees {
        assert!(done.contains(&tree.rev_parse("HEAD")), "{done:#?}");
    }
    let left = fs::read_dir(repo.path(".git/codescout-hooks")).unwrap().flatten();
    let mut left: Vec<_> = left.map(|entry| entry.file_name().into_string().unwrap()).collect();
    left.retain(|name| name != "lock" && name != "hooks.log");
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_push_into_a_bare_repository_is_followed() {
    let repo = TestRepo::new("\n//- start.rs\npub fn start() {}\n");
    let bare = repo.bare_clone("server.git");
    hooks(&bare, &["install"]).expect(0);
    assert!(bare.path("hooks/post-receive").is_file() && !bare.path("hooks/post-commit").exists());
    let url = bare.root().to_str().unwrap().to_owned();

    let main = commit_file(&repo, "main");
    git_says(&repo, &["switch", "--quiet", "--create", "side"]);
    let side = commit_file(&repo, "side");
    git_says(&repo, &["push", "--quiet", &url, "main", "side"]);
    settle(&bare);
    let mut done = indexed(&bare);
    done.sort();
    done.dedup();
    let mut expected = vec![main, side];
    expected.sort();
    assert_eq!(done, expected);
    assert!(bare.path("codescout/FORMAT").is_file());

    let before = indexed(&bare).len();
    let side = commit_file(&repo, "more");
    git_says(&repo, &["push", "--quiet", &url, "side"]);
    settle(&bare);
    let done = indexed(&bare)[before..].to_vec();
    assert_eq!(done, [side], "what was pushed and no more");
    hooks(&bare, &["status"]).expect(0);
}

#[test]
fn submodules_have_hooks_of_their_own() {
    let inner = TestRepo::new("\n//- inner.rs\npub fn inner() {}\n");
    let outer = hooked();
    let url = inner.root().to_str().unwrap();
    git_says(&outer, &["submodule", "--quiet", "add", url, "inner"]);
    outer.commit("a submodule");
    settle(&outer);
    let inside = |args: &[&str]| git_says(&outer, &[&["-C", "inner"], args].concat());
    let called = call_in(&outer.path("inner"), &["hooks", "install"], b"").expect(0);
    assert!(called.text().contains(".git/modules/inner/hooks"), "{}", called.text());

    let before = n_runs(&outer);
    fs::write(outer.path("inner/new.rs"), "pub fn new() {}\n").unwrap();
    inside(&["add", "new.rs"]);
    inside(&["-c", "user.name=a", "commit", "--quiet", "-m", "new"]);
    settle(&outer);
    assert_eq!(n_runs(&outer), before, "the outer one is not concerned");
    let status = call_in(&outer.path("inner"), &["hooks", "status", "--json"], b"")
        .expect(0)
        .json();
    assert_eq!(status["last_run"]["outcome"], "indexed");
    assert_eq!(status["last_run"]["commit"], inside(&["rev-parse", "HEAD"]).trim());
}

#[test]
fn templates_bring_the_hooks_into_clones() {
    let repo = hooked();
    let template = repo.beside("template");
    fs::create_dir(&template).unwrap();
    fs::create_dir(template.join("hooks")).unwrap();
    for event in ["post-checkout", "post-commit"] {
        fs::copy(
            repo.path(format!(".git/hooks/{event}")),
            template.join("hooks").join(event),
        )
        .unwrap();
    }
    let clone = repo.beside("clone");
    let arguments = [
        "clone",
        "--quiet",
        "--template",
        template.to_str().unwrap(),
        repo.root().to_str().unwrap(),
    ];
    assert_eq!(
        git_says(&repo, &[arguments.as_slice(), &[clone.to_str().unwrap()]].concat()),
        ""
    );
    settle(&repo);
    let status = call_in(&clone, &["hooks", "status", "--json"], b"").expect(1).json();
    assert_eq!(status["last_run"]["outcome"], "indexed");
}

#[test]
fn the_environment_of_a_hook_leads_to_its_own_repository() {
    let repo = hooked();
    let other = TestRepo::new("\n//- other.rs\npub fn other() {}\n");
    // From a subfolder, with a different index file.
    repo.write("sub/deep/file.rs", "pub fn deep() {}\n");
    repo.git(["add", "--all"]);
    fs::copy(repo.path(".git/index"), repo.path(".git/another-index")).unwrap();
    let done = repo
        .command()
        .current_dir(repo.path("sub/deep"))
        .env("GIT_INDEX_FILE", repo.path(".git/another-index"))
        .args(["commit", "--quiet", "-m", "deep"])
        .status_in_time();
    assert!(done.unwrap().success());
    assert_fresh(&repo);

    // From another repository, which is specified by variables or options.
    for n in 0..2 {
        let mut command = repo.command();
        command.current_dir(other.root());
        match n {
            0 => command
                .env("GIT_DIR", repo.path(".git"))
                .env("GIT_WORK_TREE", repo.root()),
            _ => command
                .arg("--git-dir")
                .arg(repo.path(".git"))
                .arg("--work-tree")
                .arg(repo.root()),
        };
        let done = command
            .args(["commit", "--quiet", "--allow-empty", "-m", "from afar"])
            .output_in_time()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
        assert_fresh(&repo);
    }
    settle(&other);
    assert_eq!(n_runs(&other), 0);
    assert!(!other.path(".codescout").exists());

    // From a linked worktree that is specified by its git directory.
    let linked = repo.worktree("linked");
    settle(&repo);
    let mut command = repo.command();
    command
        .current_dir(linked.root())
        .env("GIT_DIR", repo.path(".git/worktrees/linked"));
    let done = command
        .args(["commit", "--quiet", "--allow-empty", "-m", "linked"])
        .output_in_time()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    assert_fresh(&linked);
}

#[test]
fn what_no_hook_tells_is_found_by_the_next_question() {
    let repo = hooked();
    commit_file(&repo, "gone");
    commit_file(&repo, "kept");
    settle(&repo);
    let before = n_runs(&repo);
    git_says(&repo, &["reset", "--quiet", "--hard", "HEAD~2"]);
    repo.write("plumbing.rs", "pub fn plumbing() {}\n");
    repo.git(["add", "plumbing.rs"]);
    let tree = repo.git(["write-tree"]);
    let commit = repo.git(["commit-tree", &tree, "-p", "HEAD", "-m", "plumbing"]);
    repo.git(["update-ref", "HEAD", &commit]);
    settle(&repo);
    assert_eq!(n_runs(&repo), before);
    let search = |word: &str, code| {
        call_in(repo.root(), &["grep", "-l", word, "--json"], b"")
            .expect(code)
            .json()
    };
    assert_eq!(search("fn plumbing", 0)["commit"], commit);
    search("fn gone", 1);
}
