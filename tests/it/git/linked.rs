//! Tests worktrees that are not the parent of their git directory. A worktree is opened only if it and the repository
//! refer to each other.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use codescout::git::{OpenError, Repository, RepositoryKind};
use serde_json::json;

use crate::cli::call_in;
use crate::mcp::Client;
use crate::support::{InTime, TestRepo};

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
    let outsides = [
        elsewhere.to_str().unwrap(),
        "../../../elsewhere",
        "../link",
        "../..",
        "..",
        "../files",
        ".",
    ];
    for outside in outsides {
        bare.git(["config", "core.worktree", outside]);
        let found = Repository::discover(bare.root());
        assert!(
            matches!(found, Err(OpenError::NotItsWorkTree { .. })),
            "{outside}: {found:?}"
        );
        for args in [&["grep", "needle"][..], &["status"], &["index"]] {
            let called = call_in(bare.root(), args, b"");
            assert!(
                called.code == 2 && called.stderr.contains("do not refer to each other"),
                "{}",
                called.stderr
            );
        }
    }
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 1);
}

/// Runs the program in a folder with variables set.
fn call_with(folder: &Path, args: &[&str], variables: &[(&str, &Path)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_codescout"));
    command.args(args).current_dir(folder).envs(variables.iter().copied());
    command.output_in_time().unwrap()
}

#[test]
fn an_archive_does_not_lead_into_the_folder_that_contains_it() {
    // The folder with the archive contains its git directory, too.
    let (home, archive) = (TestRepo::empty(), TestRepo::new(FILES));
    fs::remove_dir_all(home.path(".git")).unwrap();
    home.write("secret.rs", "fn needle() {}\n");
    let unpacked = home.path("downloads/archive");
    fs::create_dir(home.path("downloads")).unwrap();
    fs::rename(archive.root(), &unpacked).unwrap();
    let git_dir = unpacked.join(".git");
    let set = |to: &str| {
        let file = git_dir.join("config");
        home.git(["config", "--file", file.to_str().unwrap(), "core.worktree", to]);
    };
    for to in [home.root().to_str().unwrap(), "../../..", "../..", "..", "../sub", "."] {
        set(to);
        fs::create_dir_all(unpacked.join("sub")).unwrap();
        for args in [
            &["search", "needle"][..],
            &["grep", "needle"],
            &["index"],
            &["edit", "create", "x", "--text", "x"],
            &["memory", "write", "x", "--text", "x"],
            &["hooks", "run", "post-commit"],
        ] {
            let called = call_in(&unpacked, args, b"");
            if to == ".." {
                assert!(!called.stderr.contains("do not refer"), "{args:?}: {}", called.stderr);
                continue;
            }
            // A hook says nothing.
            assert!(
                args[0] == "hooks" || called.stderr.contains("do not refer to each other"),
                "{to}: {args:?}: {}",
                called.stderr
            );
            assert!(!called.text().contains("secret"), "{args:?}");
        }
        fs::remove_dir_all(unpacked.join("sub")).unwrap();
        let _ = fs::remove_file(unpacked.join("x"));
    }
    for left in [".codescout", "x", ".agents", "downloads/.codescout", "downloads/x"] {
        assert!(!home.path(left).exists(), "{left}");
    }
    // The user names both.
    set("../../..");
    let search = |variables: &[(&str, &Path)]| call_with(&unpacked, &["grep", "needle"], variables);
    let (work_tree, named) = (("GIT_WORK_TREE", home.root()), ("GIT_DIR", git_dir.as_path()));
    assert!(String::from_utf8_lossy(&search(&[named, work_tree]).stdout).contains("secret.rs"));
    // For a hook, git sets `GIT_DIR` alone.
    for variables in [
        &[named][..],
        &[work_tree],
        &[("GIT_DIR", home.root()), work_tree],
        &[named, ("GIT_WORK_TREE", &unpacked)],
    ] {
        let output = search(variables);
        assert_eq!(output.status.code(), Some(2), "{variables:?}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains("GIT_WORK_TREE="),
            "{output:?}"
        );
    }
}

#[test]
fn a_git_file_does_not_lead_to_the_repository_of_another_folder() {
    let inner = TestRepo::new(FILES);
    let victim = TestRepo::new(FILES);
    victim.git(["submodule", "--quiet", "add", inner.root().to_str().unwrap(), "lib"]);
    let bare = victim.bare_clone("bare.git");
    let archive = victim.beside("archive");
    for (target, is_link) in [
        (victim.path(".git/modules/lib"), false),
        (victim.path(".git/modules/lib"), true),
        (victim.path(".git"), false),
        (victim.path(".git"), true),
        (bare.root().to_owned(), false),
        (bare.root().to_owned(), true),
    ] {
        fs::create_dir_all(archive.join("sub")).unwrap();
        fs::write(archive.join("a.rs"), "fn needle() {}\n").unwrap();
        if is_link {
            std::os::unix::fs::symlink(&target, archive.join(".git")).unwrap();
        } else {
            fs::write(archive.join(".git"), format!("gitdir: {}\n", target.display())).unwrap();
        }
        for args in [
            &["search", "needle"][..],
            &["index"],
            &["edit", "create", "x", "--text", "x"],
            &["memory", "write", "x", "--text", "x"],
            &["hooks", "install"],
            &["hooks", "run", "post-commit"],
        ] {
            for folder in [&archive, &archive.join("sub")] {
                let called = call_in(folder, args, b"");
                let is_refused = called.stderr.contains("do not refer to each other");
                assert!(
                    args == ["hooks", "run", "post-commit"] || is_refused,
                    "{target:?} {args:?}: {}",
                    called.stderr
                );
            }
        }
        fs::remove_dir_all(&archive).unwrap();
    }
    for left in [
        ".codescout",
        "lib/.codescout",
        ".git/codescout-edit",
        ".git/hooks/post-commit",
        ".git/info/exclude",
        "lib/x",
        "lib/.agents",
    ] {
        assert!(!victim.path(left).exists(), "{left}");
    }
    assert!(!bare.path(".codescout").exists() && !bare.path("hooks/post-commit").exists());
    // A bare repository in the folder of its worktrees.
    let around = victim.beside("around");
    fs::create_dir(&around).unwrap();
    fs::rename(bare.root(), around.join(".bare")).unwrap();
    fs::write(around.join(".git"), "gitdir: ./.bare\n").unwrap();
    assert!(Repository::discover(&around).is_ok());
}

#[test]
fn a_folder_that_claims_to_be_a_linked_worktree_is_refused() {
    let repo = TestRepo::new(FILES);
    let linked = repo.worktree("linked");
    let archive = repo.beside("archive");
    fs::create_dir(&archive).unwrap();
    fs::copy(linked.path(".git"), archive.join(".git")).unwrap();
    for is_there in [true, false] {
        for args in [
            &["grep", "needle"][..],
            &["index"],
            &["edit", "create", "x", "--text", "x"],
        ] {
            let called = call_in(&archive, args, b"").expect(2);
            assert!(called.stderr.contains("git worktree repair"), "{}", called.stderr);
        }
        if is_there {
            fs::remove_dir_all(linked.root()).unwrap();
        }
    }
    assert_eq!(fs::read_dir(&archive).unwrap().count(), 1);
    assert!(!repo.path(".codescout").exists());
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
    // Moved by hand. git finds the repository from the new location, but the repository does not know that.
    let moved = repo.beside("moved");
    fs::write(linked.path(".git"), format!("gitdir: {}\n", git_dir.display())).unwrap();
    fs::rename(linked.root(), &moved).unwrap();
    let found = Repository::discover(&moved);
    assert!(
        matches!(found, Err(OpenError::NotItsWorkTree { is_linked: true, .. })),
        "{found:?}"
    );
    repo.git(["-C", moved.to_str().unwrap(), "worktree", "repair"]);
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
