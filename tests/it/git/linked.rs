//! Tests worktrees that are not the parent of their git directory. A worktree is opened only if it and the repository
//! refer to each other.

use std::fs;
use std::path::{Path, PathBuf};

use codescout::git::{OpenError, Repository, RepositoryKind};
use serde_json::json;

use crate::cli::call_in;
use crate::mcp::Client;
use crate::support::TestRepo;

const FILES: &str = "//- a.rs\nfn needle() {}\n";

/// Writes a folder that git could accept as the git directory of a linked worktree.
fn claim(folder: &Path, common_dir: &str, work_dir: &Path) {
    for part in ["refs", "objects"] {
        fs::create_dir_all(folder.join(part)).unwrap();
        fs::write(folder.join(part).join("keep"), "").unwrap();
    }
    fs::write(folder.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(folder.join("commondir"), format!("{common_dir}\n")).unwrap();
    fs::write(folder.join("gitdir"), format!("{}\n", work_dir.join(".git").display())).unwrap();
}

#[track_caller]
fn assert_work_dir(from: &Path, root: &Path) {
    let found = Repository::discover(from).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
    assert_eq!(found.work_dir().unwrap(), fs::canonicalize(root).unwrap());
}

#[test]
fn a_committed_folder_that_names_a_work_tree_elsewhere_is_refused() {
    let victim = TestRepo::new("//- secret.rs\nfn needle() {}\n");
    let repo = TestRepo::new(FILES);
    claim(&repo.path("c"), "../.git", victim.root());
    claim(&repo.path("own"), ".", victim.root());
    // The repository that lists the worktree is committed too.
    claim(&repo.path("both/worktrees/x"), "../..", victim.root());
    let bare = repo.bare_clone("bare");
    for part in ["HEAD", "config", "packed-refs"] {
        fs::copy(bare.path(part), repo.path("both").join(part)).unwrap();
    }
    for part in ["refs", "objects"] {
        repo.write(format!("both/{part}/keep"), "");
    }
    repo.commit("claims");
    let clone = repo.clone_with("clone", &[]);
    for folder in ["c", "own"] {
        let found = Repository::discover(&clone.path(folder));
        assert!(matches!(found, Err(OpenError::Unlisted { .. })), "{folder}: {found:?}");
    }
    let found = Repository::discover(&clone.path("both/worktrees/x"));
    assert!(matches!(found, Err(OpenError::NotItsWorkTree { .. })), "{found:?}");
    for folder in ["c", "own", "both/worktrees/x"] {
        let called = call_in(&clone.path(folder), &["grep", "needle"], b"");
        let message = String::from_utf8_lossy(&called.stdout).into_owned() + &called.stderr;
        assert!(
            called.code == 2 && !message.contains("secret.rs"),
            "{folder}: {message}"
        );
    }
}

#[test]
fn a_committed_repository_does_not_lead_out_of_its_folder() {
    let repo = TestRepo::new(FILES);
    let bare = repo.bare_clone("repo/tools/bare");
    let elsewhere = repo.beside("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("secret.rs"), "fn needle() {}\n").unwrap();
    fs::create_dir(repo.path("tools/files")).unwrap();
    bare.git(["config", "core.bare", "false"]);
    repo.symlink(&elsewhere, "tools/link");
    for outside in [elsewhere.to_str().unwrap(), "../../../elsewhere", "../link", "../.."] {
        bare.git(["config", "core.worktree", outside]);
        let found = Repository::discover(bare.root());
        assert!(
            matches!(found, Err(OpenError::NotItsWorkTree { .. })),
            "{outside}: {found:?}"
        );
        for args in [&["grep", "needle"][..], &["status"], &["index"]] {
            let called = call_in(bare.root(), args, b"");
            assert!(
                called.code == 2 && called.stderr.contains("does not point back"),
                "{}",
                called.stderr
            );
        }
    }
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 1);
    bare.git(["config", "core.worktree", "../files"]);
    assert_work_dir(bare.root(), &repo.path("tools/files"));
}

#[test]
fn work_trees_that_git_made_are_opened() {
    let repo = TestRepo::new(FILES);
    let linked = repo.worktree("linked");
    let git_dir = repo.path(".git/worktrees/linked");
    assert_work_dir(linked.root(), linked.root());
    assert_work_dir(&git_dir, linked.root());
    // Opened through a symbolic link.
    let link = repo.beside("link");
    std::os::unix::fs::symlink(linked.root(), &link).unwrap();
    assert_work_dir(&link, linked.root());
    fs::rename(repo.path(".git"), repo.beside("moved.git")).unwrap();
    repo.symlink(repo.beside("moved.git"), ".git");
    for from in [linked.root(), repo.root(), &git_dir] {
        let expected = if from == repo.root() {
            repo.root()
        } else {
            linked.root()
        };
        assert_work_dir(from, expected);
    }
    // With relative paths, as written with `worktree.useRelativePaths`.
    fs::write(git_dir.join("gitdir"), "../../../linked/.git\n").unwrap();
    fs::write(linked.path(".git"), "gitdir: ../repo/.git/worktrees/linked\n").unwrap();
    for from in [linked.root(), &git_dir] {
        assert_work_dir(from, linked.root());
    }
    let main = Repository::discover(repo.root()).unwrap();
    assert_eq!(main.linked_work_trees(), [fs::canonicalize(linked.root()).unwrap()]);
    // Moved by hand. Git finds the repository from the new location.
    let moved = repo.beside("moved");
    fs::write(linked.path(".git"), format!("gitdir: {}\n", git_dir.display())).unwrap();
    fs::rename(linked.root(), &moved).unwrap();
    assert_work_dir(&moved, &moved);
    let bare = repo.bare_clone("bare");
    let of_bare = bare.worktree("of-bare");
    assert_work_dir(of_bare.root(), of_bare.root());
}

#[test]
fn submodules_and_git_directories_that_were_put_elsewhere_are_opened() {
    let inner = TestRepo::new(FILES);
    let repo = TestRepo::new(FILES);
    repo.git(["submodule", "--quiet", "add", inner.root().to_str().unwrap(), "lib"]);
    let git_dir = repo.path(".git/modules/lib");
    for from in [&repo.path("lib"), &git_dir] {
        assert_work_dir(from, &repo.path("lib"));
        assert_eq!(Repository::discover(from).unwrap().kind(), RepositoryKind::Submodule);
    }
    let linked = repo.beside("of-submodule");
    repo.git([
        "-C",
        "lib",
        "worktree",
        "add",
        "--quiet",
        "--detach",
        linked.to_str().unwrap(),
    ]);
    assert_work_dir(&linked, &linked);
    // In the worktree of another repository, with a worktree that refers back to it.
    let (separate, root): (PathBuf, PathBuf) = (repo.path("store/x"), repo.beside("separate"));
    fs::create_dir(repo.path("store")).unwrap();
    let option = format!("--separate-git-dir={}", separate.display());
    repo.git(["init", "--quiet", &option, root.to_str().unwrap()]);
    assert_work_dir(&root, &root);
    repo.git([
        "config",
        "--file",
        separate.join("config").to_str().unwrap(),
        "core.worktree",
        root.to_str().unwrap(),
    ]);
    assert_work_dir(&separate, &root);
}

#[test]
fn a_server_does_not_follow_an_entry_whose_folder_is_another_repository_now() {
    let repo = TestRepo::new(FILES);
    let linked = repo.worktree("linked");
    fs::remove_dir_all(linked.root()).unwrap();
    let other = repo.clone_with("linked", &[]);
    other.write("secret.rs", "fn needle() {}\n");
    other.commit("secret");
    let entry = repo.path(".git/worktrees/linked");
    let found = Repository::discover(&entry);
    assert!(matches!(found, Err(OpenError::NotItsWorkTree { .. })), "{found:?}");
    let mut client = Client::start(repo.root(), &[]);
    client.initialize("test");
    for named in [entry.as_path(), other.root()] {
        let answer = client.call("search", json!({"query": "needle", "repo": named}));
        assert!(
            answer.failure().contains("is refused"),
            "{}: {answer:?}",
            named.display()
        );
    }
}
