//! Tests that folders of git and of codescout are neither edited nor read, whatever their names.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::{edit, with_file};
use crate::cli::call_in;
use crate::support::TestRepo;

const TOKEN: &str = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";

/// Checks that no command shows or changes the files of a folder of the worktree.
#[track_caller]
fn assert_closed(repo: &TestRepo, folder: &str) {
    let config = repo.path(folder).join("config");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("{text}[x]\n\ttoken = {TOKEN}\n")).unwrap();
    let before = fs::read(&config).unwrap();
    let target = format!("{folder}/config");
    for operation in [
        json!({"op": "replace_text", "target": target, "old": "token", "text": "fsmonitor"}),
        json!({"op": "insert_last", "target": target, "text": "x"}),
        json!({"op": "delete", "target": target}),
        json!({"op": "create", "target": format!("{folder}/hooks/post-commit"), "text": "x"}),
        json!({"op": "create", "target": format!("{folder}/new"), "text": "x"}),
        json!({"op": "create", "target": format!("{folder}/refs/heads/new"), "text": "x"}),
    ] {
        let found = edit(repo, &json!([operation]), &[]).expect(2);
        let said = ["of git or codescout", "git or to codescout", "another repository"];
        assert!(
            said.iter().any(|said| found.stderr.contains(said)),
            "{operation}: {}",
            found.stderr
        );
    }
    assert_eq!(fs::read(&config).unwrap(), before);
    assert!(!repo.path(folder).join("new").exists());
    for args in [
        &["read", target.as_str()][..],
        &["search", TOKEN],
        &["search", "token in the config"],
        &["grep", "token"],
        &["grep", "--fixed-strings", TOKEN],
        &["outline", target.as_str()],
        &["diff", "HEAD", "WORKTREE"],
    ] {
        let found = call_in(repo.root(), args, b"");
        let said = String::from_utf8_lossy(&found.stdout);
        let is_search = matches!(args[0], "search" | "grep");
        assert!(!(is_search && said.contains(&target)), "{args:?}: {said}");
        // The query itself is repeated.
        assert!(!said.contains(&format!("= {TOKEN}")), "{args:?}: {said}");
    }
    edit(
        repo,
        &json!([{"op": "insert_last", "target": "a.txt", "text": "x"}]),
        &[],
    )
    .expect(0);
}

/// Moves the git directory of a repository to a folder of the worktree.
fn with_git_dir_at(folder: &str) -> TestRepo {
    let repo = with_file("a.txt", b"a\n");
    fs::rename(repo.path(".git"), repo.path(folder)).unwrap();
    repo
}

#[test]
fn a_separate_git_directory_is_closed() {
    let repo = with_git_dir_at("gitdata");
    repo.write(".git", "gitdir: gitdata\n");
    assert_closed(&repo, "gitdata");
    let deep = with_file("a.txt", b"a\n");
    fs::create_dir_all(deep.path("x/y")).unwrap();
    fs::rename(deep.path(".git"), deep.path("x/y/data")).unwrap();
    deep.symlink("x/y/data", ".git");
    assert_closed(&deep, "x/y/data");
}

#[test]
fn a_separate_git_directory_that_was_committed_is_closed() {
    let repo = with_git_dir_at("gitdata");
    repo.write(".git", "gitdir: gitdata\n");
    repo.git(["add", "--force", "a.txt", "gitdata/config", "gitdata/HEAD"]);
    repo.commit_index("all");
    assert_closed(&repo, "gitdata");
}

#[test]
fn the_common_directory_of_a_linked_worktree_is_closed() {
    let repo = with_file("a.txt", b"a\n");
    let bare = repo.bare_clone("bare");
    let linked = bare.worktree("linked");
    fs::rename(bare.root(), linked.path("store")).unwrap();
    linked.write(".git", "gitdir: store/worktrees/linked\n");
    linked.git(["status"]);
    assert_closed(&linked, "store");
}

#[test]
fn git_directories_of_other_repositories_are_closed() {
    let repo = with_file("a.txt", b"a\n");
    let bare = repo.bare_clone("repo/tools/cache.git");
    assert_closed(&repo, "tools/cache.git");
    // Also if it was committed.
    let root = bare.root().strip_prefix(repo.root()).unwrap();
    for folder in ["refs/heads", "objects/info"] {
        repo.write(root.join(folder).join("keep"), "");
    }
    repo.commit("with a repository");
    assert_closed(&repo, "tools/cache.git");
    // The git directory of a linked worktree.
    repo.write("claim/HEAD", "ref: refs/heads/main\n");
    repo.write("claim/commondir", "../tools/cache.git\n");
    repo.write("claim/config", "");
    assert_closed(&repo, "claim");
}

#[test]
fn files_in_git_directories_that_are_not_tracked_are_not_indexed() {
    let repo = with_file("a.txt", b"a\n");
    repo.bare_clone("repo/fixture");
    repo.write("fixture/refs/heads/keep", "kept needle\n");
    repo.write("fixture/objects/keep", "kept needle\n");
    repo.commit("fixture");
    repo.write("fixture/refs/heads/new.txt", "new needle\n");
    repo.write("fixture/deep/new.txt", "new needle\n");
    repo.write("HEAD", "needle of a file in the root\n");
    repo.write("objects/x", "");
    repo.write("refs/x", "");
    let found = call_in(repo.root(), &["grep", "needle"], b"").expect(0).text();
    assert!(
        found.contains("fixture/objects/keep") && found.contains("HEAD"),
        "{found}"
    );
    assert!(!found.contains("new.txt"), "{found}");
}

#[test]
fn an_index_elsewhere_in_the_worktree_is_closed() {
    let repo = with_file("a.txt", b"a\n");
    let index = |sidecar: &Path, args: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_codescout"));
        command
            .args(args)
            .current_dir(repo.root())
            .env("CODESCOUT_SIDECAR", sidecar);
        let output = crate::support::InTime::output_in_time(&mut command).unwrap();
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
    };
    fs::create_dir(repo.path("data")).unwrap();
    let direct = repo.path("data/idx");
    // Through a link to a parent.
    std::os::unix::fs::symlink(repo.path("data"), repo.beside("link")).unwrap();
    let through = repo.beside("link/idx");
    index(&direct, &["index"]);
    fs::remove_file(direct.join(".gitignore")).unwrap();
    fs::write(direct.join("config.toml"), "# needle\n").unwrap();
    for sidecar in [&direct, &through] {
        let said = index(
            sidecar,
            &[
                "edit",
                "replace_text",
                "data/idx/config.toml",
                "--old",
                "needle",
                "--text",
                "x",
            ],
        );
        assert!(said.contains("codescout"), "{said}");
        let said = index(sidecar, &["edit", "create", "data/idx/new", "--text", "x"]);
        assert!(said.contains("codescout"), "{said}");
        let said = index(sidecar, &["grep", "needle"]);
        assert!(!said.contains("config.toml"), "{said}");
    }
    assert_eq!(fs::read(direct.join("config.toml")).unwrap(), b"# needle\n");
    assert!(!direct.join("new").exists());
}

#[test]
fn an_edit_does_not_make_a_git_directory() {
    let repo = with_file("a.txt", b"a\n");
    let create = |path: &str| json!({"op": "create", "target": path, "text": "x\n"});
    let all = json!([
        create("x/HEAD"),
        create("x/config"),
        create("x/objects/a"),
        create("x/refs/a")
    ]);
    let found = edit(&repo, &all, &[]).expect(2);
    assert!(
        found.stderr.contains("would make its folder a git directory"),
        "{}",
        found.stderr
    );
    assert!(!repo.path("x").exists());
    edit(
        &repo,
        &json!([create("x/config"), create("x/objects/a"), create("x/refs/a")]),
        &[],
    )
    .expect(0);
    for path in ["x/HEAD", "x/HEAD/a"] {
        edit(&repo, &json!([create(path)]), &[]).expect(2);
    }
    edit(&repo, &json!([create("y/HEAD")]), &[]).expect(0);
    edit(&repo, &json!([create("y/commondir")]), &[]).expect(2);
    // The root has a .git, which git takes first.
    edit(
        &repo,
        &json!([create("HEAD"), create("objects/a"), create("refs/a")]),
        &[],
    )
    .expect(0);
}
