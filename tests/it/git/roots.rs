//! Compares the list of trees to keep with git's own listings.

use std::collections::BTreeSet;
use std::time::Duration;

use codescout::git::{RefKind, Root, RootKind};

use super::oracle::open;
use crate::support::TestRepo;
use crate::support::cpu_time::cpu_time;

const ALL: i64 = i64::MIN;

fn trees(roots: &[Root], wanted: impl Fn(RootKind) -> bool) -> BTreeSet<String> {
    let found = roots.iter().filter(|root| wanted(root.kind));
    found.map(|root| root.tree.to_string()).collect()
}

/// Returns the trees of the commits in the output, one per line.
fn trees_of(repo: &TestRepo, commits: &str) -> BTreeSet<String> {
    commits.lines().map(|commit| repo.tree_of(commit)).collect()
}

fn assert_like_git(repo: &TestRepo) {
    let roots = open(repo).roots(ALL).unwrap();
    let refs = repo.git(["for-each-ref", "--format=%(refname)"]);
    let found = trees(&roots, |kind| matches!(kind, RootKind::Ref(_) | RootKind::Stash));
    let mut expected = trees_of(repo, &refs);
    if repo
        .try_git(["rev-parse", "--verify", "--quiet", "refs/stash"])
        .status
        .success()
    {
        expected.extend(trees_of(repo, &repo.git(["rev-list", "--walk-reflogs", "refs/stash"])));
    }
    assert_eq!(found, expected);

    let listed = repo.git(["worktree", "list", "--porcelain"]);
    let heads = listed.lines().filter_map(|line| line.strip_prefix("HEAD "));
    let heads: BTreeSet<String> = heads.map(|head| repo.tree_of(head)).collect();
    assert_eq!(trees(&roots, |kind| kind == RootKind::WorkTree), heads);

    let logged = repo.git(["rev-list", "--reflog", "--no-walk"]);
    let logged: BTreeSet<String> = trees_of(repo, &logged);
    let mut ours = trees(&roots, |kind| matches!(kind, RootKind::Reflog | RootKind::Stash));
    // Git's listing also includes old values of entries: those of deleted refs, and the parents of a stash.
    assert!(ours.is_subset(&logged), "{ours:?} {logged:?}");
    ours.extend(found);
    let mut news = BTreeSet::new();
    for name in refs.lines().chain(["HEAD"]) {
        let entries = repo.try_git(["rev-list", "--walk-reflogs", name]);
        news.extend(trees_of(repo, &String::from_utf8(entries.stdout).unwrap()));
    }
    assert!(news.is_subset(&ours), "{news:?} {ours:?}");
}

fn eventful(init: &[&str]) -> TestRepo {
    let repo = TestRepo::init(init);
    for number in 0..5 {
        repo.write("a.txt", format!("{number}"));
        repo.commit("step");
    }
    repo.tag("v1");
    repo.git(["tag", "light", "HEAD~1"]);
    repo.git(["tag", "of-a-tree", "HEAD~2^{tree}"]);
    repo.git(["reset", "--quiet", "--hard", "HEAD~2"]);
    repo.git(["update-ref", "refs/remotes/origin/main", "HEAD~1"]);
    repo.git(["update-ref", "refs/pull/7/head", "HEAD"]);
    repo.branch("side");
    for number in 0..3 {
        repo.write("a.txt", format!("stashed {number}"));
        repo.git(["stash", "--quiet"]);
    }
    let linked = repo.worktree("linked");
    linked.write("b.txt", "linked");
    linked.commit("linked");
    linked.git(["checkout", "--quiet", "--detach", "HEAD~1"]);
    repo
}

#[test]
fn what_git_lists_is_found_and_nothing_else() {
    let repo = eventful(&[]);
    assert_like_git(&repo);
    let roots = open(&repo).roots(ALL).unwrap();
    let kinds: BTreeSet<RootKind> = roots.iter().map(|root| root.kind).collect();
    let refs = [RefKind::Branch, RefKind::Tag, RefKind::Remote, RefKind::Other].map(RootKind::Ref);
    let expected = [RootKind::WorkTree, RootKind::Stash, RootKind::Reflog]
        .into_iter()
        .chain(refs);
    assert_eq!(kinds, expected.collect());
    // The result is the same from the linked worktree.
    let linked = open(&repo)
        .common_dir()
        .parent()
        .unwrap()
        .parent()
        .unwrap()
        .join("linked");
    let there = codescout::git::Repository::discover(&linked)
        .unwrap()
        .roots(ALL)
        .unwrap();
    assert_eq!(trees(&there, |_| true), trees(&roots, |_| true));
    // With packed refs and objects.
    repo.git(["pack-refs", "--all"]);
    repo.git(["gc", "--quiet"]);
    assert_like_git(&repo);
}

#[test]
fn reftable_says_the_same() {
    let repo = eventful(&["--ref-format=reftable"]);
    assert_like_git(&repo);
    let last = repo
        .git(["log", "-1", "--format=%ct", "linked"])
        .parse::<i64>()
        .unwrap();
    assert_eq!(
        trees(&open(&repo).roots(last + 1_000).unwrap(), |kind| kind
            == RootKind::Reflog)
        .len(),
        0
    );
}

#[test]
fn the_window_cuts_reflogs_and_nothing_else() {
    let repo = TestRepo::empty();
    for number in 0..4 {
        repo.write("a.txt", format!("{number}"));
        repo.commit("step");
    }
    let times = repo.git(["log", "--format=%ct", "--reverse"]);
    let times: Vec<i64> = times.lines().map(|time| time.parse().unwrap()).collect();
    repo.git(["reset", "--quiet", "--hard", "HEAD~3"]);
    let logged = |since| trees(&open(&repo).roots(since).unwrap(), |kind| kind == RootKind::Reflog).len();
    // The reset is the latest entry and returns to the first commit.
    assert_eq!(
        [times[0], times[1], times[2], times[3], times[3] + 1].map(logged),
        [4, 4, 3, 2, 1]
    );
    assert_eq!(logged(i64::MAX), 0);
    let branches = trees(&open(&repo).roots(i64::MAX).unwrap(), |kind| {
        kind == RootKind::Ref(RefKind::Branch)
    });
    assert_eq!(branches, [repo.tree_of("main")].into());
    repo.write("a.txt", "stashed");
    repo.git(["stash", "--quiet"]);
    let stashed = trees(&open(&repo).roots(i64::MAX).unwrap(), |kind| kind == RootKind::Stash);
    assert_eq!(stashed, [repo.tree_of("stash")].into());
}

#[test]
fn what_is_not_there_is_passed_over() {
    for init in [&[][..], &["--ref-format=reftable"]] {
        assert_eq!(open(&TestRepo::init(init)).roots(ALL).unwrap(), []);
    }
    let repo = TestRepo::new(
        "
        //- a.txt
        one
    ",
    );
    let lost = repo.rev_parse("HEAD");
    repo.write("a.txt", "two");
    repo.commit("two");
    let object = repo.path(format!(".git/objects/{}/{}", &lost[..2], &lost[2..]));
    std::fs::remove_file(object).unwrap();
    repo.git(["tag", "of-a-blob", "HEAD:a.txt"]);
    repo.write(".git/refs/heads/broken", format!("{lost}\n"));
    let roots = open(&repo).roots(ALL).unwrap();
    assert_eq!(trees(&roots, |_| true), [repo.tree_of("HEAD")].into());
}

#[test]
fn what_is_there_and_cannot_be_read_is_an_error() {
    let fresh = || {
        let repo = TestRepo::new(
            "
            //- a.txt
            one
        ",
        );
        repo.worktree("linked").git(["checkout", "--quiet", "--detach"]);
        open(&repo).roots(ALL).unwrap();
        repo
    };
    let replace_by_loop = |repo: &TestRepo, name: &str| {
        std::fs::remove_file(repo.path(name)).unwrap();
        std::os::unix::fs::symlink(repo.path(name), repo.path(name)).unwrap();
    };
    for name in [
        ".git/worktrees/linked/HEAD",
        ".git/logs/refs/heads/main",
        ".git/refs/heads/main",
    ] {
        let repo = fresh();
        replace_by_loop(&repo, name);
        assert!(open(&repo).roots(ALL).is_err(), "{name}");
    }
    let repo = fresh();
    repo.write(".git/worktrees/linked/HEAD", "what git does not write\n");
    assert!(open(&repo).roots(ALL).is_err(), "a damaged head");
    let repo = fresh();
    let tip = repo.rev_parse("HEAD");
    repo.write("a.txt", "two");
    repo.commit("two");
    let object = repo.path(format!(".git/objects/{}/{}", &tip[..2], &tip[2..]));
    std::fs::remove_file(&object).unwrap();
    std::fs::write(&object, "what git does not write").unwrap();
    assert!(open(&repo).roots(ALL).is_err(), "a damaged commit");
    // A missing list of worktrees is no error.
    let repo = fresh();
    std::fs::remove_dir_all(repo.path(".git/worktrees")).unwrap();
    open(&repo).roots(ALL).unwrap();
}

/// Looking for names like that of each ref takes time as the square of their number.
#[test]
fn refs_that_lead_to_no_commit_take_time_in_proportion() {
    const N_REFS: usize = 1_000;
    let repo = TestRepo::new("//- a\na\n");
    for at in 0..N_REFS {
        repo.write(
            format!(".git/refs/heads/chain/{at}"),
            format!("ref: refs/heads/chain/{}\n", at + 1),
        );
    }
    repo.git(["update-ref", "refs/tags/tree", &repo.tree_of("HEAD")]);
    let repository = open(&repo);
    let before = cpu_time();
    let roots = repository.roots(ALL).unwrap();
    let took = cpu_time().saturating_sub(before);
    assert!(roots.iter().any(|root| root.name == "refs/tags/tree"), "{roots:?}");
    assert!(took < Duration::from_secs(10), "{took:?}");
}
