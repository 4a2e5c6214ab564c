//! Tests `init`: what it plans, does and undoes, with and without a home directory.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::install::{User, list};
use crate::support::{InTime, write_executable};

const YES: &[&str] = &["init", "--yes", "--json"];
const CI_FILE: &str = ".github/workflows/codescout.yml";

/// A user of two agents and a repository on GitHub, with files that belong to the user.
fn user() -> User {
    let user = User::new();
    user.write(".codex/config.toml", "# mine\nmodel = \"x\"\n");
    user.write(".claude.json", "{ \"theme\": 1 }");
    user.write(".claude/x", "");
    user.repo.git(["remote", "add", "origin", "git@github.com:a/b.git"]);
    write_executable(&user.repo.path(".git/hooks/post-commit"), "#!/bin/sh\necho mine\n");
    user
}

/// Returns the files of the home directory and the worktree, and the hooks, without the index.
fn everything(user: &User) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = user.everything();
    found.retain(|path, _| !path.to_string_lossy().contains("/.codescout"));
    list(&user.repo.path(".git/hooks"), &mut found);
    found
}

/// Returns part and state of each step.
fn steps(answer: &Value) -> Vec<String> {
    let text = |step: &Value, field: &str| step[field].as_str().unwrap().to_owned();
    let steps = answer["steps"].as_array().unwrap().iter();
    steps
        .map(|step| format!("{} {}", text(step, "part"), text(step, "state")))
        .collect()
}

fn details(answer: &Value) -> String {
    let steps = answer["steps"].as_array().unwrap().iter();
    steps
        .filter_map(|step| step["detail"].as_str())
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn without_a_terminal_the_plan_is_shown_and_nothing_changes() {
    let user = user();
    let before = everything(&user);
    let shown = user.call_as_it_is(&["init"]).expect(1);
    let named = [
        "- index",
        "- install git hooks",
        "- add codescout to Claude Code",
        "- add codescout to Codex",
        CI_FILE,
    ];
    for part in named {
        assert!(shown.stdout.contains(part), "{part}: {}", shown.stdout);
    }
    assert!(shown.stderr.contains("codescout init --yes"), "{}", shown.stderr);
    let answer = user.call_as_it_is(&["init", "--json"]).expect(1).json();
    assert_eq!(answer["done"], false);
    assert_eq!(
        steps(&answer),
        [
            "index planned",
            "hooks planned",
            "agent planned",
            "agent planned",
            "ci planned"
        ]
    );
    assert_eq!(everything(&user), before);
    assert!(!user.repo.path(".codescout").exists());
}

#[test]
fn all_is_done_once_and_undone_byte_for_byte() {
    let user = user();
    let before = everything(&user);
    let answer = user.call_as_it_is(YES).expect(0).json();
    assert_eq!(
        steps(&answer),
        ["index done", "hooks done", "agent done", "agent done", "ci done"]
    );
    assert!(user.repo.path(".codescout/state").exists());
    assert!(user.read(".codex/config.toml").contains("codescout"));
    let ci = include_str!("../../docs/ci/github.yml");
    assert_eq!(user.repo.read(CI_FILE), ci.as_bytes());
    let hook = String::from_utf8(user.repo.read(".git/hooks/post-commit")).unwrap();
    assert!(hook.contains("codescout") && hook.contains("echo mine"), "{hook}");

    let after = everything(&user);
    let again = user.call_as_it_is(YES).expect(0).json();
    assert_eq!(steps(&again), ["index already", "hooks already", "ci already"]);
    assert_eq!(everything(&user), after);

    user.call_as_it_is(&["init", "--undo"]).expect(1);
    assert_eq!(everything(&user), after);
    let undone = user
        .call_as_it_is(&["init", "--undo", "--yes", "--json"])
        .expect(0)
        .json();
    assert_eq!(steps(&undone), ["ci done", "agent done", "agent done", "hooks done"]);
    assert_eq!(everything(&user), before);
    let nothing = user.call_as_it_is(&["init", "--undo", "--json"]).expect(0).json();
    assert!(steps(&nothing).is_empty());
}

#[test]
fn what_was_there_before_is_not_undone() {
    let user = user();
    user.call_as_it_is(&["install", "codex", "--yes"]).expect(0);
    user.call_as_it_is(&["hooks", "install"]).expect(0);
    let before = everything(&user);
    let answer = user.call_as_it_is(YES).expect(0).json();
    assert_eq!(steps(&answer), ["index done", "hooks already", "agent done", "ci done"]);
    user.repo.write(CI_FILE, "mine\n");
    let undone = user
        .call_as_it_is(&["init", "--undo", "--yes", "--json"])
        .expect(0)
        .json();
    assert_eq!(steps(&undone), ["ci left", "agent done"]);
    assert_eq!(user.repo.read(CI_FILE), b"mine\n");
    fs::remove_dir_all(user.repo.path(".github")).unwrap();
    assert_eq!(everything(&user), before);
}

#[test]
fn steps_can_be_left_out_and_others_say_why_they_are_not_done() {
    let user = user();
    user.write(".codex/config.toml", "not = = toml");
    user.write(".codeium/windsurf/x", "");
    user.repo.git(["config", "core.hooksPath", "/nowhere/shared"]);
    user.repo
        .git(["remote", "set-url", "origin", "https://gitlab.example/a/b"]);
    let answer = user.call_as_it_is(YES).expect(0).json();
    let expected = [
        "index done",
        "hooks left",
        "agent done",
        "agent left",
        "agent left",
        "ci left",
    ];
    assert_eq!(steps(&answer), expected);
    let details = details(&answer);
    for why in [
        "hooks install --force",
        "cannot edit",
        "install windsurf --root DIR",
        "add this to .gitlab-ci.yml",
    ] {
        assert!(details.contains(why), "{why}: {details}");
    }
    assert!(details.contains("codescout ci restore"), "{details}");
    assert_eq!(user.read(".codex/config.toml"), "not = = toml");

    let answer = user
        .call_as_it_is(&[YES, &["--without", "hooks,agents,ci"]].concat())
        .expect(0)
        .json();
    assert_eq!(steps(&answer), ["index already"]);
    user.repo.git(["remote", "remove", "origin"]);
    user.repo.git(["config", "--unset", "core.hooksPath"]);
    user.repo.write(".github", "a file\n");
    user.repo.git(["remote", "add", "origin", "https://github.com/a/b"]);
    let answer = user
        .call_as_it_is(&[YES, &["--without", "hooks,agents"]].concat())
        .expect(0)
        .json();
    assert_eq!(steps(&answer), ["index already", "ci left"]);
}

#[test]
fn without_a_home_directory_the_rest_is_done() {
    let user = user();
    let output = Command::new(env!("CARGO_BIN_EXE_codescout"))
        .args(YES)
        .current_dir(user.repo.root())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .stdin(Stdio::null())
        .output_in_time()
        .unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(steps(&answer), ["index done", "hooks done", "agent left", "ci done"]);
    assert!(details(&answer).contains("set HOME"), "{answer}");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn hosts_and_commands_of_ci_are_recognised_exactly() {
    let user = user();
    let ci = || -> Value {
        let answer = user.call_as_it_is(&["init", "--json", "--without", "hooks,agents"]);
        answer.json()["steps"][1].clone()
    };
    for address in ["ssh://git@ssh.github.com:443/a/b.git", "git@ssh.github.com:a/b.git"] {
        user.repo.git(["remote", "set-url", "origin", address]);
        assert_eq!(ci()["state"], "planned", "{address}");
    }
    user.repo
        .git(["remote", "set-url", "origin", "https://notgitlab.example/a/b"]);
    assert!(
        ci()["detail"]
            .as_str()
            .unwrap()
            .contains("no template for notgitlab.example")
    );
    user.repo.git(["remote", "set-url", "origin", "git@gitlab.example:a/b"]);
    user.repo.write(".gitlab-ci.yml", "# codescout ci restore\n");
    assert_eq!(ci()["state"], "left");
    user.repo
        .write(".gitlab-ci.yml", "a:\n  script:\n    - codescout ci restore\n");
    assert_eq!(ci()["state"], "already");
}

#[test]
fn a_killed_run_leaves_no_part_of_the_ci_file() {
    let user = user();
    user.call_as_it_is(&["index"]).expect(0);
    // The template is longer than a file may be, which ends the process in the middle of writing it.
    let script = "ulimit -f 1; exec \"$0\" init --yes --without hooks,agents";
    let mut killed = Command::new("sh");
    killed.args(["-c", script, env!("CARGO_BIN_EXE_codescout")]);
    let killed = killed
        .current_dir(user.repo.root())
        .env("HOME", user.path(""))
        .output_in_time()
        .unwrap();
    assert!(!killed.status.success(), "{killed:?}");
    assert!(user.repo.path(".github/workflows").is_dir(), "{killed:?}");
    assert!(!user.repo.path(CI_FILE).exists());
    user.call_as_it_is(&["init", "--yes", "--without", "hooks,agents"])
        .expect(0);
    assert_eq!(user.repo.read(CI_FILE), include_bytes!("../../docs/ci/github.yml"));
}

/// Clones the user's repository. Returns the path of the clone.
fn clone(user: &User, name: &str) -> String {
    let folder = user.repo.beside(name);
    user.repo.git(["clone", "-q", ".", folder.to_str().unwrap()]);
    folder.to_str().unwrap().to_owned()
}

#[test]
fn an_agent_keeps_its_entry_while_another_clone_uses_it() {
    let user = user();
    user.repo.commit("base");
    let before = user.read(".claude.json");
    let has_entry = || user.read(".claude.json") != before;
    let init = |clone: &str| user.call_as_it_is(&[YES, &["--without", "hooks,ci", "--repo", clone]].concat());
    let undo = |clone: &str| {
        let answer = user.call_as_it_is(&["init", "--undo", "--yes", "--json", "--repo", clone]);
        answer.expect(0).json()
    };
    let clones = ["one", "two", "three"].map(|name| clone(&user, name));
    for clone in &clones {
        assert_eq!(
            steps(&init(clone).expect(0).json()),
            ["index done", "agent done", "agent done"]
        );
        // Once is enough.
        assert_eq!(steps(&init(clone).expect(0).json()), ["index already"]);
    }
    let kept = undo(&clones[0]);
    assert_eq!(steps(&kept), ["agent done", "agent done"]);
    let what = kept["steps"][0]["what"].as_str().unwrap();
    assert!(
        what.contains("keep codescout") && what.contains("two") && what.contains("three"),
        "{kept}"
    );
    assert!(has_entry());
    // A clone that was deleted uses nothing.
    fs::remove_dir_all(&clones[1]).unwrap();
    let removed = undo(&clones[2]).to_string();
    assert!(removed.contains(".codex/config.toml"), "{removed}");
    assert!(!has_entry());
    assert!(steps(&undo(&clones[0])).is_empty());
}

#[test]
fn an_agent_keeps_an_entry_that_was_installed_since() {
    let user = user();
    user.repo.commit("base");
    let (one, two) = (clone(&user, "one"), clone(&user, "two"));
    let agents = ["--yes", "--json", "--without", "hooks,ci", "--repo"];
    user.call_as_it_is(&[&["init"], &agents[..], &[&one]].concat())
        .expect(0);
    user.call_as_it_is(&["install", "claude-code", "--yes"]).expect(0);
    let installed = user.read(".claude.json");
    // The entry is no longer one of `init`, so that other clones do not count as users.
    let answer = user
        .call_as_it_is(&[&["init"], &agents[..], &[&two]].concat())
        .expect(0);
    assert_eq!(steps(&answer.json()), ["index done", "agent done"]);
    let undo = ["init", "--undo", "--yes", "--json", "--repo"];
    let undone = user.call_as_it_is(&[&undo[..], &[&one]].concat()).expect(0).json();
    assert_eq!(steps(&undone), ["agent left", "agent done"]);
    assert!(details(&undone).contains("codescout uninstall claude-code"), "{undone}");
    assert_eq!(user.read(".claude.json"), installed);
    // `uninstall` removes it, and the clones' claims with it.
    user.call_as_it_is(&["uninstall", "claude-code", "--yes"]).expect(0);
    user.call_as_it_is(&[&["init"], &agents[..], &[&two]].concat())
        .expect(0);
    user.call_as_it_is(&[&undo[..], &[&two]].concat()).expect(0);
    assert_eq!(user.read(".claude.json"), "{ \"theme\": 1 }");
}

#[test]
fn plan_and_help_name_the_files_of_all_projects() {
    let user = user();
    let plan = user.call_as_it_is(&["init"]).expect(1).stdout;
    for file in [".claude.json", ".codex/config.toml"] {
        let file = user.path(file).display().to_string();
        let is_named = |line: &str| line.contains("for all your projects") && line.contains(&file);
        assert!(plan.lines().any(is_named), "{plan}");
    }
    let help = user.call_as_it_is(&["init", "--help"]).expect(0).stdout;
    assert!(
        help.contains("all your projects") && help.contains("~/.claude.json"),
        "{help}"
    );
    user.call_as_it_is(YES).expect(0);
    let plan = user.call_as_it_is(&["init", "--undo"]).expect(1).stdout;
    assert!(
        plan.contains(&user.path(".claude.json").display().to_string()),
        "{plan}"
    );
}

#[test]
fn undoing_fails_if_an_entry_stays() {
    let user = user();
    user.call_as_it_is(YES).expect(0);
    user.write(".codex/config.toml", "not = = toml");
    let undone = user
        .call_as_it_is(&["init", "--undo", "--yes", "--json"])
        .expect(2)
        .json();
    assert_eq!(steps(&undone), ["ci done", "agent done", "agent failed", "hooks done"]);
    assert!(details(&undone).contains("cannot edit"), "{undone}");
}

#[test]
fn each_worktree_undoes_its_own_ci_file_and_says_that_hooks_are_shared() {
    let user = user();
    user.repo.commit("base");
    let linked = user.repo.beside("linked");
    user.repo.git(["worktree", "add", "-q", linked.to_str().unwrap()]);
    let other = linked.to_str().unwrap();
    user.call_as_it_is(YES).expect(0);
    user.call_as_it_is(&[YES, &["--repo", other]].concat()).expect(0);
    let undo = ["init", "--undo", "--yes", "--json"];
    let undone = user.call_as_it_is(&undo).expect(0).json();
    assert!(
        undone.to_string().contains("remove the git hooks of all worktrees"),
        "{undone}"
    );
    assert!(!user.repo.path(CI_FILE).exists() && linked.join(CI_FILE).exists());
    let undone = user
        .call_as_it_is(&[&undo[..], &["--repo", other]].concat())
        .expect(0)
        .json();
    assert_eq!(steps(&undone), ["ci done"]);
    assert!(!linked.join(CI_FILE).exists());
}

#[test]
fn a_home_directory_that_is_no_folder_is_left_and_a_step_that_fails_is_reported() {
    let user = user();
    // Nobody, not even root, can create a folder below a file.
    fs::remove_dir_all(user.path(".codex")).unwrap();
    user.write(".state", "a file");
    let answer = user.call_as_it_is(&["init", "--yes", "--json"]).expect(2).json();
    assert_eq!(steps(&answer), ["index done", "hooks done", "agent failed", "ci done"]);
    assert_eq!(user.read(".claude.json"), "{ \"theme\": 1 }");
}
