//! Tests `--precise`: commands ask a server, and keep what it says.

use std::process::Output;

use serde_json::Value;

use super::*;

/// A scene whose worktree is a repository.
struct Project(Scene);

impl Project {
    fn new() -> Self {
        let scene = Scene::with_fake("late", "");
        scene.write("late.py", "def f(x):\n    x.sought()\n    x.elsewhere()\n");
        let project = Self(scene);
        project.git(&["init", "-q", "-b", "main"]);
        project.commit();
        project
    }

    fn git(&self, args: &[&str]) {
        let who = ["-c", "user.name=A", "-c", "user.email=a@example.org"];
        let mut git = Command::new("git");
        assert!(
            git.args(who)
                .args(args)
                .current_dir(&self.0.root)
                .status_in_time()
                .unwrap()
                .success()
        );
    }

    fn commit(&self) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-qm", "x"]);
    }

    fn run(&self, args: &[&str]) -> Output {
        let base = self.0.root.with_file_name("user");
        let mut command = Command::new(PROGRAM);
        command
            .args(args)
            .current_dir(&self.0.root)
            .env("PATH", &self.0.search_path);
        for name in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"] {
            command.env(name, base.join(name));
        }
        command.output_in_time().unwrap()
    }

    fn trust(&self) {
        let root = self.0.root.to_str().unwrap();
        let output = self.run(&["config", "set", "--user", "precise.trusted", root]);
        assert!(output.status.success(), "{output:?}");
    }

    fn json(&self, args: &[&str]) -> Value {
        let output = self.run(args);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
    }
}

#[test]
fn what_a_server_says_is_kept_for_every_revision() {
    let project = Project::new();
    let callers = ["graph", "callers", "tools.py#sought", "--json"];
    let before = project.json(&callers);
    assert_eq!(
        (&before["total"], &before["unknown"]),
        (&2.into(), &1.into()),
        "{before}"
    );
    project.trust();
    let answer = project.json(&[&callers[..], &["--precise"]].concat());
    assert_eq!(
        (&answer["tiers"]["compiler"], &answer["unknown"]),
        (&3.into(), &0.into()),
        "{answer}"
    );
    assert!(
        answer["notes"][0]
            .as_str()
            .unwrap()
            .ends_with("resolved by pyright 1.2"),
        "{answer}"
    );
    // Later questions need no server, at any revision with the files.
    project.0.write("other.txt", "x\n");
    project.commit();
    for reference in ["WORKTREE", "HEAD", "HEAD~1"] {
        let answer = project.json(&[&callers[..], &["--ref", reference]].concat());
        assert_eq!(answer["tiers"]["compiler"], 3, "{reference}: {answer}");
    }
    // A changed file is unknown again, until the server is asked.
    project.0.write("late.py", "def f(x):\n    pass\n    x.sought()\n");
    assert_eq!(project.json(&callers)["tiers"]["compiler"], 2);
    let answer = project.json(&[&callers[..], &["--precise"]].concat());
    assert_eq!(answer["tiers"]["compiler"], 3, "{answer}");
    // Of uncommitted code, nothing is kept.
    assert_eq!(project.json(&callers)["tiers"]["compiler"], 2);
    assert_eq!(project.0.n_noted("started"), 1);
}

#[test]
fn files_with_other_bytes_on_disk_are_left_out() {
    let project = Project::new();
    project.trust();
    project.git(&["config", "core.autocrlf", "true"]);
    project.0.write("more.py", "import tools\r\ntools.sought()\r\n");
    project.git(&["add", "-A"]);
    let answer = project.json(&["graph", "callers", "tools.py#sought", "--precise", "--json"]);
    // The places on disk are not those in the blob, so the reference there stays as it was.
    assert_eq!(
        (&answer["dirty_files"], &answer["tiers"]["receiver"]),
        (&0.into(), &1.into()),
        "{answer}"
    );
    let why = answer["incomplete_because"].to_string();
    assert!(answer["complete"] == false && why.contains("other bytes"), "{answer}");
}

#[test]
fn the_name_at_a_place_is_asked_for() {
    let project = Project::new();
    project.trust();
    let at = |place: &str| project.json(&["symbol", "--at", place, "--precise", "--json"]);
    let answer = at("late.py:2:7");
    assert_eq!(
        (&answer["found_by"], &answer["results"][0]["id"]),
        (&"link".into(), &"tools.py#sought".into()),
        "{answer}"
    );
    // It means something outside of the repository: no definition is found, only the one around it.
    let answer = at("late.py:3:7");
    assert_eq!(answer["found_by"], "enclosing", "{answer}");
    let answer = project.json(&["graph", "callees", "late.py#f", "--precise", "--json"]);
    assert_eq!(
        (&answer["tiers"]["compiler"], &answer["outside"]),
        (&1.into(), &1.into()),
        "{answer}"
    );
}

#[test]
fn only_the_user_can_trust_a_repository() {
    let project = Project::new();
    let ask = ["graph", "callers", "tools.py#sought", "--precise"];
    let refused = |project: &Project, args: &[&str], why: &str| {
        let output = project.run(args);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(why), "{stderr}");
    };
    refused(&project, &ask, "config set --user precise.trusted");
    project.0.write(".codescout.toml", "[precise]\ntrusted = '/'\n");
    refused(&project, &ask, "precise.trusted");
    fs::remove_file(project.0.root.join(".codescout.toml")).unwrap();
    project.trust();
    refused(&project, &[&ask[..], &["--ref", "HEAD"]].concat(), "read the worktree");
    refused(
        &project,
        &["graph", "flow", "tools.py#sought", "--precise"],
        "callers, callees and refs",
    );
    assert_eq!(project.0.n_noted("started"), 0);
}

#[test]
fn what_a_server_knows_is_renamed() {
    let project = Project::new();
    let rename = ["rename", "tools.py#sought", "found", "--json"];
    let before = project.json(&rename);
    assert_eq!(
        (
            &before["renamed_all"],
            &before["results"][3]["kind"],
            &before["results"][3]["path"]
        ),
        (&false.into(), &"candidate".into(), &"late.py".into()),
        "{before}"
    );
    project.trust();
    let after = project.json(&[&rename[..], &["--precise", "--apply"]].concat());
    assert_eq!(
        (&after["renamed_all"], &after["changed"]),
        (&true.into(), &5.into()),
        "{after}"
    );
    let late = std::fs::read_to_string(project.0.root.join("late.py")).unwrap();
    assert_eq!(late, "def f(x):\n    x.found()\n    x.elsewhere()\n");
}
