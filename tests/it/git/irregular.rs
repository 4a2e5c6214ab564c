//! Tests pipes and devices in place of git's files, and files with content that gix does not expect. The result must be
//! an error that names the file, not a hang or a crash.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::AtomicBool;

use codescout::git::{BlameOptions, CommandError, OpenError, Repository};
use codescout::model::RepoPath;
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::support::{InTime, TestRepo, in_time};

fn make_pipe(path: &Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let _ = std::fs::remove_file(path);
    assert!(Command::new("mkfifo").arg(path).status_in_time().unwrap().success());
}

/// Opens a repository. Fails the test if that takes too long.
fn discover(path: &Path) -> Result<(), OpenError> {
    let path = path.to_owned();
    in_time("the repository is open", move || Repository::discover(&path).map(drop))
}

/// Runs the program with a time limit. The exit code is 124 if the limit is reached.
fn call(repo: &TestRepo, args: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new("timeout");
    command
        .args(["60", env!("CARGO_BIN_EXE_codescout")])
        .args(args)
        .current_dir(repo.root());
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", repo.beside(""));
    let Output { status, stderr, .. } = command.output_in_time().unwrap();
    (status.code(), String::from_utf8_lossy(&stderr).into_owned())
}

#[test]
fn a_pipe_or_device_in_the_git_directory_is_named() {
    let repo = TestRepo::new("//- a.py\ndef first():\n    return 1\n//- sub/b.py\nx = 1\n");
    for name in [
        "HEAD",
        "config",
        "config.worktree",
        "commondir",
        "index",
        "packed-refs",
        "shallow",
        "sharedindex.x",
        "info/attributes",
        "info/exclude",
        "info/grafts",
        "hooks/post-commit",
        "logs/HEAD",
        "logs/refs/heads/main",
        "objects/aa/an-object",
        "objects/info/alternates",
        "objects/info/commit-graph",
        "objects/info/commit-graphs/commit-graph-chain",
        "objects/pack/multi-pack-index",
        "refs/heads/main",
        "refs/tags/v1",
        "worktrees/x/HEAD",
    ] {
        let path = repo.path(".git").join(name);
        let before = std::fs::read(&path).ok();
        make_pipe(&path);
        let found = discover(&repo.path("sub"));
        assert!(
            matches!(&found, Err(OpenError::Irregular { path: output }) if *output == path),
            "{name}: {found:?}"
        );
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        assert!(
            matches!(discover(repo.root()), Err(OpenError::Irregular { .. })),
            "{name}"
        );
        std::fs::remove_file(&path).unwrap();
        if let Some(before) = before {
            std::fs::write(&path, before).unwrap();
        }
        if name.starts_with("worktrees") || name == "commondir" {
            let _ = std::fs::remove_dir_all(repo.path(".git/worktrees"));
        }
        let empty = repo.path(".git/empty");
        std::os::unix::fs::symlink("/dev/null", &empty).unwrap();
        discover(repo.root()).unwrap_or_else(|error| panic!("{name}: {error}"));
        std::fs::remove_file(&empty).unwrap();
    }
    // In an alternate object directory, and behind a symbolic link to a folder.
    let lent = repo.beside("lent");
    std::fs::create_dir_all(lent.join("pack")).unwrap();
    std::fs::write(repo.path(".git/objects/info/alternates"), "../../../lent\n").unwrap();
    discover(repo.root()).unwrap();
    for name in ["aa/an-object", "info/alternates", "pack/multi-pack-index"] {
        make_pipe(&lent.join(name));
        let found = discover(repo.root());
        assert!(
            matches!(&found, Err(OpenError::Irregular { path }) if path.ends_with(name)),
            "{found:?}"
        );
        std::fs::remove_file(lent.join(name)).unwrap();
    }
    std::fs::remove_file(repo.path(".git/objects/info/alternates")).unwrap();
    std::fs::remove_dir_all(repo.path(".git/objects/pack")).unwrap();
    std::os::unix::fs::symlink(lent.join("pack"), repo.path(".git/objects/pack")).unwrap();
    make_pipe(&lent.join("pack/multi-pack-index"));
    assert!(matches!(discover(repo.root()), Err(OpenError::Irregular { .. })));
    std::fs::remove_file(lent.join("pack/multi-pack-index")).unwrap();
    // In the git directory of a linked worktree, and as a file that the configuration names.
    let linked = repo.worktree("linked");
    let index = repo.path(".git/worktrees/linked/index");
    make_pipe(&index);
    assert!(matches!(discover(linked.root()), Err(OpenError::Irregular { .. })));
    std::fs::remove_file(&index).unwrap();
    make_pipe(&repo.beside("rules"));
    repo.git(["config", "core.excludesFile", repo.beside("rules").to_str().unwrap()]);
    let (code, output) = call(&repo, &["grep", "first"]);
    assert!(
        code == Some(2) && output.contains("rules is not a regular file"),
        "{code:?} {output}"
    );
}

#[test]
fn a_pipe_that_the_configuration_includes_or_names_is_named() {
    let repo = TestRepo::new("//- a.py\ndef first():\n    return 1\n");
    make_pipe(&repo.beside("pipe"));
    let config = std::fs::read_to_string(repo.path(".git/config")).unwrap();
    std::fs::write(repo.beside("nested"), "[Include]\npath = pipe\n").unwrap();
    for section in [
        "[include]\npath = ../../pipe",
        "[include]\npath = nowhere\npath = ../../pipe",
        "[includeif \"gitdir:nowhere\"]\npath = ~/pipe",
        "[include]\npath = ../../nested",
        "[blame]\nignoreRevsFile = ../pipe",
        "[diff]\norderFile = ../pipe",
    ] {
        repo.write(".git/config", format!("{config}{section}\n"));
        let (code, output) = call(&repo, &["blame", "a.py", "--by", "line"]);
        assert!(
            code == Some(2) && output.contains("pipe is not a regular file"),
            "{section}: {code:?} {output}"
        );
    }
    std::fs::write(repo.beside("nested"), "[include]\npath = /dev/null\n").unwrap();
    repo.write(".git/config", format!("{config}[include]\npath = ../../nested\n"));
    let (code, output) = call(&repo, &["blame", "a.py", "--by", "line"]);
    assert_eq!(code, Some(0), "{output}");
}

#[test]
fn a_blame_that_nobody_wants_any_more_ends_git() {
    let repo = TestRepo::new("//- a.py\nx = 1\n");
    let list = repo.beside("revisions");
    std::fs::write(&list, "").unwrap();
    repo.git(["config", "blame.ignoreRevsFile", list.to_str().unwrap()]);
    let opened = Repository::discover(repo.root()).unwrap();
    let head = opened.head().unwrap().commit().unwrap();
    make_pipe(&list);
    let outcome = in_time("the blame ends", move || {
        let options = BlameOptions::default();
        opened.blame(head, &RepoPath::from("a.py"), &options, &AtomicBool::new(true))
    });
    assert!(matches!(outcome, Err(CommandError::Interrupted)), "{outcome:?}");
    // The file is no longer read.
    let written = OpenOptions::new()
        .write(true)
        .custom_flags(OFlags::NONBLOCK.bits() as i32)
        .open(&list);
    assert_eq!(
        written.map_err(|error| error.raw_os_error()).unwrap_err(),
        Some(Errno::NXIO.raw_os_error())
    );
}

#[test]
fn files_that_include_one_another_many_times_are_refused() {
    let repo = TestRepo::new("//- a.py\nx = 1\n");
    let include = |name: &str| format!("[include]\n{}", format!("path = {name}\n").repeat(100));
    for (name, next) in [("one", "two"), ("two", "three"), ("three", "four"), ("four", "none")] {
        std::fs::write(repo.beside(name), include(next)).unwrap();
    }
    repo.write(".git/config", include("../../one"));
    let found = discover(repo.root());
    assert!(matches!(found, Err(OpenError::TooManyIncludes { .. })), "{found:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_link_to_a_file_of_the_system_is_named() {
    let repo = TestRepo::new("//- a.py\nx = 1\n");
    for name in [
        "HEAD",
        "config.worktree",
        "hooks/post-commit",
        "index",
        "info/attributes",
        "info/exclude",
        "info/grafts",
        "objects/info/alternates",
        "objects/aa/an-object",
        "packed-refs",
        "shallow",
    ] {
        let path = repo.path(".git").join(name);
        let before = std::fs::read(&path).ok();
        let _ = std::fs::remove_file(&path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        // Files in /proc and /sys have the type of regular files.
        for target in ["/proc/version", "/sys/kernel/uevent_seqnum"] {
            std::os::unix::fs::symlink(target, &path).unwrap();
            let found = discover(repo.root());
            assert!(
                matches!(&found, Err(OpenError::Irregular { path: reported }) if *reported == path),
                "{name}: {found:?}"
            );
            std::fs::remove_file(&path).unwrap();
        }
        if let Some(before) = before {
            std::fs::write(&path, before).unwrap();
        }
    }
    repo.git(["config", "core.excludesFile", "/proc/version"]);
    assert!(matches!(discover(repo.root()), Err(OpenError::Irregular { .. })));
}

#[test]
fn a_file_that_is_no_small_one_is_not_read() {
    let repo = TestRepo::new("//- a.py\ndef first():\n    return 1\n");
    let make_large = |path: &str| {
        repo.write(path, "");
        let file = OpenOptions::new().write(true).open(repo.path(path)).unwrap();
        file.set_len(1 << 40).unwrap();
    };
    for name in [
        "config.worktree",
        "info/exclude",
        "objects/info/alternates",
        "refs/tags/large",
        "shallow",
        "worktrees/x/HEAD",
    ] {
        let path = repo.path(".git").join(name);
        make_large(&format!(".git/{name}"));
        let found = discover(repo.root());
        assert!(
            matches!(&found, Err(OpenError::Inaccessible { path: output, .. }) if *output == path),
            "{name}: {found:?}"
        );
        std::fs::remove_file(&path).unwrap();
    }
    // An unreadable file is not treated as an empty one.
    repo.symlink("shallow", ".git/shallow");
    let found = discover(repo.root());
    assert!(matches!(found, Err(OpenError::Inaccessible { .. })), "{found:?}");
    repo.remove(".git/shallow");
    make_large(".mailmap");
    let (code, output) = call(&repo, &["blame", "a.py", "--by", "line"]);
    assert!(
        code == Some(2) && output.contains("cannot read .mailmap: larger than 64 MiB"),
        "{code:?} {output}"
    );
    let (code, output) = call(&repo, &["grep", "first"]);
    assert_eq!(code, Some(0), "{output}");
    repo.remove(".mailmap");
    make_large(".gitattributes");
    repo.write("a.py", "def first():\n    return 2\n");
    let (_, output) = call(&repo, &["grep", "first"]);
    assert!(output.contains("cannot read .gitattributes"), "{output}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_list_of_alternates_that_cannot_be_read_is_named() {
    let repo = TestRepo::new("//- a.py\nx = 1\n");
    let list = repo.path(".git/objects/info/alternates");
    std::os::unix::fs::symlink("/nowhere", &list).unwrap();
    discover(repo.root()).unwrap();
    std::fs::remove_file(&list).unwrap();
    std::os::unix::fs::symlink("alternates", &list).unwrap();
    let found = discover(repo.root());
    assert!(
        matches!(&found, Err(OpenError::Inaccessible { path, .. }) if *path == list),
        "{found:?}"
    );
}

#[test]
fn pipes_in_place_of_rules_in_the_work_tree_are_not_waited_for() {
    let repo = TestRepo::new("//- a.py\ndef first():\n    return 1\n//- sub/b.py\nx = 1\n");
    repo.write("sub/b.py", "x = 2\n");
    repo.write("sub/new.py", "y = 1\n");
    for name in [
        "sub/.gitattributes",
        ".gitignore",
        ".gitattributes",
        ".codescoutignore",
        ".codescout.toml",
    ] {
        make_pipe(&repo.path(name));
        let (code, output) = call(&repo, &["grep", "first"]);
        let is_read_by_git = name.contains(".git");
        assert!(matches!(code, Some(0 | 2)), "{name}: {code:?} {output}");
        assert!(
            !is_read_by_git || output.contains("is a pipe or a device"),
            "{name}: {output}"
        );
        repo.remove(name);
    }
    make_pipe(&repo.path(".mailmap"));
    let (code, output) = call(&repo, &["blame", "a.py", "--by", "line"]);
    assert!(
        code == Some(2) && output.contains(".mailmap is a pipe"),
        "{code:?} {output}"
    );
}

#[test]
fn a_pipe_in_place_of_the_configuration_of_a_hook_manager_is_not_waited_for() {
    let repo = TestRepo::new("//- a.py\nx = 1\n");
    make_pipe(&repo.path("lefthook.yml"));
    for args in [&["hooks", "install"][..], &["hooks", "status"]] {
        let (code, output) = call(&repo, args);
        assert!(matches!(code, Some(0 | 1)), "{args:?}: {code:?} {output}");
    }
}

#[test]
fn a_pipe_in_place_of_a_hook_is_not_waited_for() {
    let repo = TestRepo::new("//- a.py\nx = 1\n");
    repo.git(["config", "core.hooksPath", ".h"]);
    std::fs::create_dir(repo.path(".h")).unwrap();
    make_pipe(&repo.path(".h/post-commit"));
    let (code, output) = call(&repo, &["hooks", "status"]);
    assert!(matches!(code, Some(0 | 1)), "{code:?} {output}");
}

#[test]
fn a_malformed_shallow_file_is_named() {
    let repo = TestRepo::new("//- a.py\nx = 1\n");
    repo.commit("again");
    let id = repo.rev_parse("HEAD");
    for text in [
        "x".to_owned(),
        format!("{id}x"),
        id[1..].to_owned(),
        format!("{id}\n\0"),
        "\n".repeat(3),
        format!("{id} \n"),
    ] {
        repo.write(".git/shallow", &text);
        assert!(
            matches!(discover(repo.root()), Err(OpenError::Shallow { .. })),
            "{text:?}"
        );
        let (code, output) = call(&repo, &["grep", "x", "--ref", "HEAD~1"]);
        assert!(
            code == Some(2) && output.contains(".git/shallow has a line"),
            "{text:?}: {code:?} {output}"
        );
    }
    repo.write(".git/shallow", format!("{id}\n"));
    discover(repo.root()).unwrap();
}
