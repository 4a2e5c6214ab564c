//! Tests hook managers by imitating the files that they write. `tests/peers/hook_managers.sh` tests the real programs.

use std::fs;
use std::process::Command;

use codescout::setup::hooks::{Foreign, Trial, trial};
use serde_json::Value;

use super::{PROGRAM, assert_fresh, commit_file, hooked, hooks, hooks_json, n_runs, open, settle};
use crate::support::{InTime, TestRepo, write_executable};

fn repo() -> TestRepo {
    TestRepo::new("\n//- start.rs\npub fn start() {}\n")
}

fn states(status: &Value) -> Vec<(&str, bool)> {
    let hooks = status["hooks"].as_array().unwrap();
    hooks
        .iter()
        .map(|hook| (hook["state"].as_str().unwrap(), hook["called"].as_bool().unwrap()))
        .collect()
}

#[test]
fn a_folder_outside_is_not_written_to_unasked() {
    let repo = repo();
    let shared = repo.beside("shared-hooks");
    fs::create_dir(&shared).unwrap();
    repo.git(["config", "core.hooksPath", shared.to_str().unwrap()]);
    let plan = hooks_json(&repo, &["install"], 1);
    assert_eq!(plan["standing"], "outside");
    assert!(plan["advice"][0].as_str().unwrap().contains("--force"), "{plan}");
    assert!(fs::read_dir(&shared).unwrap().next().is_none() && !repo.path(".git/hooks").exists());
    hooks(&repo, &["status"]).expect(1);

    hooks(&repo, &["install", "--force"]).expect(0);
    hooks(&repo, &["status"]).expect(0);
    commit_file(&repo, "first");
    assert_fresh(&repo);
    hooks(&repo, &["uninstall"]).expect(1);
    assert!(shared.join("post-commit").exists());
    hooks(&repo, &["uninstall", "--force"]).expect(0);
    assert!(fs::read_dir(&shared).unwrap().next().is_none());
}

#[test]
fn a_folder_of_the_users_own_configuration_is_outside_wherever_it_leads() {
    let repo = repo();
    // The home directory of the program is the repository.
    repo.write(".gitconfig", "[core]\n\thooksPath = .git/hooks\n");
    assert_eq!(hooks_json(&repo, &["install"], 1)["standing"], "outside");
    repo.write(".gitconfig", "[core]\n\thooksPath = ~/elsewhere\n");
    let plan = hooks_json(&repo, &["install"], 1);
    assert_eq!(plan["standing"], "outside");
    assert_eq!(plan["folder"], repo.path("elsewhere").to_str().unwrap());
    assert!(!repo.path("elsewhere").exists() && !repo.path(".git/hooks").exists());
}

#[test]
fn a_folder_in_the_work_tree_is_not_written_to_unasked() {
    let repo = repo();
    repo.git(["config", "core.hooksPath", ".githooks"]);
    assert_eq!(hooks_json(&repo, &["install"], 1)["standing"], "work_tree");
    assert!(!repo.path(".githooks").exists());
    // A link must not be used to write outside the git directory.
    repo.git(["config", "--unset", "core.hooksPath"]);
    fs::create_dir(repo.path("my-hooks")).unwrap();
    repo.symlink("../my-hooks", ".git/hooks");
    assert_eq!(hooks_json(&repo, &["install"], 1)["standing"], "work_tree");
    assert!(fs::read_dir(repo.path("my-hooks")).unwrap().next().is_none());
}

#[test]
fn hooks_that_are_switched_off_are_told_of() {
    let repo = hooked();
    repo.git(["config", "core.hooksPath", "/dev/null"]);
    let status = hooks_json(&repo, &["status"], 1);
    assert_eq!(status["standing"], "nowhere");
    hooks(&repo, &["install"]).expect(1);
    commit_file(&repo, "first");
    settle(&repo);
    assert_eq!(n_runs(&repo), 0);
    hooks(&repo, &["uninstall"]).expect(0);
    assert!(!repo.path(".git/hooks/post-commit").exists());
}

#[test]
fn husky_is_asked_for_its_own_lines() {
    let repo = hooked();
    // Imitates husky 9. It sets the path, and its hooks call those of the user through one script.
    repo.git(["config", "core.hooksPath", ".husky/_"]);
    for event in ["post-commit", "post-checkout", "post-merge", "post-rewrite"] {
        write_executable(
            &repo.path(format!(".husky/_/{event}")),
            "#!/usr/bin/env sh\nsh -e \"$(dirname \"$0\")/../${0##*/}\" \"$@\" 2>/dev/null || true\n",
        );
    }
    repo.write(".husky/_/.gitignore", "*");
    repo.write(".husky/post-commit", "echo theirs > told\n");
    let status = hooks_json(&repo, &["status"], 1);
    assert_eq!(status["managers"][0]["name"], "husky");
    let plan = hooks_json(&repo, &["install"], 1);
    assert!(
        plan["advice"][0].as_str().unwrap().contains(".husky/post-commit"),
        "{plan}"
    );
    assert_eq!(repo.read(".husky/post-commit"), b"echo theirs > told\n");

    hooks(&repo, &["install", "--husky"]).expect(0);
    hooks(&repo, &["status"]).expect(0);
    let shared = String::from_utf8(repo.read(".husky/post-commit")).unwrap();
    assert!(
        !shared.contains(PROGRAM),
        "no path of a machine in a shared file: {shared}"
    );
    hooks(&repo, &["uninstall"]).expect(0);
    assert_eq!(repo.read(".husky/post-commit"), b"echo theirs > told\n");
    assert!(!repo.path(".husky/post-merge").exists() && !repo.path(".git/hooks/post-merge").exists());
}

#[test]
fn husky_files_that_links_lead_out_of_the_worktree_are_not_written() {
    for (link, hooks_path) in [
        (".husky", ".husky/_"),
        (".husky", ".husky"),
        ("tools", "tools/.husky/_"),
        ("", ""),
    ] {
        let repo = repo();
        let outside = repo.beside("outside");
        fs::create_dir_all(outside.join(".husky/_")).unwrap();
        fs::create_dir_all(outside.join("_")).unwrap();
        // Without a link, a folder elsewhere.
        let elsewhere = outside.join(".husky/_");
        let hooks_path = match hooks_path {
            "" => elsewhere.to_str().unwrap(),
            path => {
                std::os::unix::fs::symlink(&outside, repo.path(link)).unwrap();
                path
            }
        };
        repo.git(["config", "core.hooksPath", hooks_path]);
        let files = || {
            let mut found = std::collections::BTreeMap::new();
            crate::install::list(&outside, &mut found);
            found
        };
        let before = files();
        let plan = hooks_json(&repo, &["install", "--husky"], 1);
        let why = plan["steps"][0]["why"].as_str().unwrap();
        assert!(why.contains("leads out of the worktree"), "{hooks_path}: {plan}");
        assert_eq!(files(), before, "{hooks_path}");
        hooks(&repo, &["install", "--husky", "--force"]).expect(0);
        let with_hooks = files();
        assert_ne!(with_hooks, before, "{hooks_path}");
        hooks(&repo, &["uninstall"]).expect(1);
        assert_eq!(files(), with_hooks, "{hooks_path}");
        hooks(&repo, &["uninstall", "--force"]).expect(0);
        assert_eq!(files(), before, "{hooks_path}");
    }
}

#[test]
fn hooks_that_lefthook_moved_are_told_of() {
    let repo = hooked();
    let hook = repo.path(".git/hooks/post-commit");
    fs::rename(&hook, repo.path(".git/hooks/post-commit.old")).unwrap();
    write_executable(&hook, "#!/bin/sh\n[ \"$LEFTHOOK\" = 0 ] || touch lefthook-ran\n");
    repo.write("lefthook.yml", "post-commit:\n  jobs: []\n");
    let status = hooks_json(&repo, &["status"], 1);
    assert_eq!(
        states(&status),
        [("replaced", false), ("own", true), ("own", true), ("own", true)]
    );
    assert!(
        status["hooks"][0]["note"].as_str().unwrap().contains("post-commit.old"),
        "{status}"
    );

    let before = fs::read(&hook).unwrap();
    let plan = hooks_json(&repo, &["install"], 1);
    assert!(
        plan["advice"][0]
            .as_str()
            .unwrap()
            .contains("codescout hooks run post-commit"),
        "{plan}"
    );
    assert_eq!(fs::read(&hook).unwrap(), before);
    repo.write(
        "lefthook.yml",
        "post-commit:\n  commands:\n    c:\n      run: codescout hooks run post-commit &\n",
    );
    hooks(&repo, &["install"]).expect(0);
    assert_eq!(states(&hooks_json(&repo, &["status"], 0))[0], ("managed", true));
    hooks(&repo, &["uninstall"]).expect(0);
    assert!(!repo.path(".git/hooks/post-commit.old").exists() && hook.exists());
}

#[test]
fn hooks_that_pre_commit_calls_count() {
    let repo = hooked();
    let hook = repo.path(".git/hooks/post-commit");
    fs::rename(&hook, repo.path(".git/hooks/post-commit.legacy")).unwrap();
    write_executable(
        &hook,
        "#!/usr/bin/env bash\n# File generated by pre-commit: https://pre-commit.com\nexec \"$0.legacy\"\n",
    );
    assert_eq!(states(&hooks_json(&repo, &["status"], 0))[0], ("managed", true));
    hooks(&repo, &["install"]).expect(0);
    commit_file(&repo, "first");
    assert_fresh(&repo);
    hooks(&repo, &["uninstall"]).expect(0);
    assert!(!repo.path(".git/hooks/post-commit.legacy").exists() && hook.exists());
}

#[test]
fn a_hook_that_was_moved_aside_comes_back_to_where_a_manager_calls_it() {
    for (ending, theirs) in [
        (
            ".legacy",
            "#!/usr/bin/env bash\n# File generated by pre-commit: https://pre-commit.com\nexec \"$0.legacy\"\n",
        ),
        (".old", "#!/bin/sh\n[ \"$LEFTHOOK\" = 0 ] || touch lefthook-ran\n"),
    ] {
        let repo = repo();
        let hook = repo.path(".git/hooks/post-commit");
        let mine = "#!/usr/bin/env python3\nopen('called', 'w')\n";
        write_executable(&hook, mine);
        hooks(&repo, &["install"]).expect(0);
        fs::rename(&hook, repo.path(format!(".git/hooks/post-commit{ending}"))).unwrap();
        write_executable(&hook, theirs);

        hooks(&repo, &["uninstall"]).expect(0);
        assert_eq!(repo.read(format!(".git/hooks/post-commit{ending}")), mine.as_bytes());
        assert_eq!(repo.read(".git/hooks/post-commit"), theirs.as_bytes());
        assert!(!repo.path(".git/hooks/post-commit.codescout-orig").exists());
        if ending == ".legacy" {
            commit_file(&repo, "first");
            assert!(repo.path("called").exists(), "it is called again");
        }
    }
}

#[test]
fn of_two_hooks_that_go_on_with_the_one_moved_aside_the_first_becomes_it() {
    let repo = repo();
    let hook = repo.path(".git/hooks/post-commit");
    let mine = "#!/usr/bin/env python3\n";
    write_executable(&hook, mine);
    hooks(&repo, &["install"]).expect(0);
    // A manager renamed the hook and was removed without restoring it.
    fs::rename(&hook, repo.path(".git/hooks/post-commit.legacy")).unwrap();
    hooks(&repo, &["install"]).expect(0);
    hooks(&repo, &["uninstall"]).expect(0);
    assert_eq!(repo.read(".git/hooks/post-commit"), mine.as_bytes());
    let left = fs::read_dir(repo.path(".git/hooks")).unwrap().count();
    assert_eq!(left, 1, "nothing of ours");
}

#[test]
fn the_real_ones_go_together_with_ours() {
    if std::env::var_os("CODESCOUT_PEER_TESTS").is_none() {
        crate::indexed::skip("husky, lefthook and pre-commit are tried with CODESCOUT_PEER_TESTS=1");
        return;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers/hook_managers.sh");
    let output = Command::new(script).arg(PROGRAM).output_in_time().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    for why in printed.lines().filter_map(|line| line.strip_prefix("SKIPPED: ")) {
        crate::indexed::skip(why);
    }
    assert!(output.status.success(), "{printed}");
}

#[test]
fn nothing_that_a_repository_configures_is_run() {
    let repo = repo();
    let canary = |name: &str| format!("sh -c 'touch {}'", repo.beside(name).display());
    for key in [
        "core.fsmonitor",
        "core.pager",
        "diff.external",
        "gpg.program",
        "hook.evil.command",
    ] {
        repo.git(["config", key, &canary("fired")]);
    }
    repo.git(["config", "hook.evil.event", "post-commit"]);
    let evil = repo.beside("evil");
    for event in [
        "post-commit",
        "post-checkout",
        "post-index-change",
        "reference-transaction",
    ] {
        write_executable(
            &evil.join(event),
            &format!("#!/bin/sh\ntouch {}\n", repo.beside("fired").display()),
        );
    }
    repo.git(["config", "core.hooksPath", evil.to_str().unwrap()]);
    let _ = fs::remove_file(repo.beside("fired"));
    hooks(&repo, &["install"]).expect(1);
    hooks(&repo, &["status"]).expect(1);
    hooks(&repo, &["run", "post-commit"]).expect(0);
    let outcomes = trial(
        &open(&repo),
        &repo.path(".codescout"),
        PROGRAM.as_ref(),
        Foreign::LeaveAlone,
    );
    assert!(
        outcomes.iter().all(|(_, outcome)| *outcome == Trial::NotInstalled),
        "{outcomes:?}"
    );
    assert_fresh(&repo);
    hooks(&repo, &["uninstall"]).expect(0);
    // The same with codescout's hooks installed; others are configured in addition.
    repo.git(["config", "--unset", "core.hooksPath"]);
    hooks(&repo, &["install"]).expect(0);
    let outcomes = trial(
        &open(&repo),
        &repo.path(".codescout"),
        PROGRAM.as_ref(),
        Foreign::LeaveAlone,
    );
    assert!(
        outcomes
            .iter()
            .all(|(_, outcome)| matches!(outcome, Trial::NotTried { .. })),
        "{outcomes:?}"
    );
    assert!(!repo.beside("fired").exists(), "something was run");
}
