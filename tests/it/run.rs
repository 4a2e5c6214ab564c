//! Tests `run`: which commands it runs, how, and what it shows of their output.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};

use crate::cli::{Called, call_in};
use crate::mcp::Client;
use crate::support::{InTime, TestRepo, user_state, wait_for_end, write_executable};

fn repo() -> TestRepo {
    let repo = TestRepo::new("//- a.txt\nx\n");
    repo.write("sub/b.txt", "y\n");
    repo
}

fn call(repo: &TestRepo, args: &[&str]) -> Called {
    call_in(repo.root(), args, b"")
}

fn configure(repo: &TestRepo, key: &str, value: &str) {
    call(repo, &["config", "set", key, value]).expect(0);
}

fn lines(answer: &Value) -> Vec<&str> {
    let results = answer["results"].as_array().unwrap().iter();
    results.filter_map(|row| row["text"].as_str()).collect()
}

/// Waits until a process has ended.
fn assert_ends(pid: &str) {
    let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    let stat = || fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    let began = Instant::now();
    while test_kill_process(pid).is_ok() && !stat().contains(") Z") {
        assert!(began.elapsed() < Duration::from_secs(20), "{pid:?} is still there");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn the_end_of_the_output_is_shown_and_the_rest_is_read_without_another_run() {
    let repo = repo();
    configure(
        &repo,
        "run.test",
        "sh -c 'echo run >> ran; pwd; seq 2 200; echo last >&2; exit 3'",
    );
    let answer = call(&repo, &["run", "test", "--json", "--repo", "sub"])
        .expect(1)
        .json();
    assert_eq!((&answer["exit_code"], &answer["ended"]), (&json!(3), &json!("exited")));
    assert_eq!((&answer["total"], &answer["not_kept"]), (&json!(201), &json!(0)));
    assert_eq!((lines(&answer).len(), lines(&answer)[49]), (50, "last"));
    assert_eq!(answer["results"][0]["line"], 152);
    let text = call(&repo, &["run", "test", "--lines", "1-2"]).expect(1).text();
    let root = fs::canonicalize(repo.root()).unwrap();
    assert!(text.contains("failed with exit code 3"), "{text}");
    assert!(text.ends_with(&format!("\n{}\n2\n", root.display())), "{text}");
    let page = call(&repo, &["run", "test", "--lines", "10-", "-n", "3", "--json"])
        .expect(1)
        .json();
    assert_eq!(lines(&page), ["10", "11", "12"]);
    let part = call(&repo, &["run", "test", "--lines", "5-9", "-n", "2"]).expect(1);
    assert!(part.stderr.contains("2 of 5, -n 0 for all"), "{}", part.stderr);
    let cursor = page["next_cursor"].as_str().unwrap();
    let args = ["run", "test", "--lines", "10-", "-n", "3", "--json", "--cursor", cursor];
    assert_eq!(lines(&call(&repo, &args).expect(1).json()), ["13", "14", "15"]);
    assert_eq!(repo.read("ran"), b"run\n");
    call(&repo, &["run", "test"]).expect(1);
    assert_eq!(repo.read("ran"), b"run\nrun\n");
    let stale = call(&repo, &args).expect(2);
    assert!(stale.stderr.contains("cursor"), "{}", stale.stderr);
}

#[test]
fn arguments_are_passed_on_as_they_are_and_standard_input_is_empty() {
    let repo = repo();
    configure(&repo, "run.lint", "printf '[%s]' * '$HOME' 'a b' --lines");
    let text = call(&repo, &["run", "lint"]).expect(0).text();
    assert!(text.ends_with("\n[*][$HOME][a b][--lines]\n"), "{text}");
    assert!(
        text.starts_with("printf '[%s]' '*' '$HOME' 'a b' --lines succeeded"),
        "{text}"
    );
    configure(&repo, "run.format", "cat");
    let answer = call_in(repo.root(), &["run", "format", "--json"], b"typed")
        .expect(0)
        .json();
    assert_eq!(answer["total"], 0);
    for text in ["cargo test && rm -r x", "a | b", "a > b", "a $(b)", "'a"] {
        let refused = call(&repo, &["config", "set", "run.test", text]).expect(2);
        assert!(
            refused
                .stderr
                .contains("a program with arguments; shell syntax has no effect"),
            "{}",
            refused.stderr
        );
    }
}

#[test]
fn without_a_configured_command_it_says_how_to_configure_one() {
    let repo = repo();
    let none = call(&repo, &["run"]).expect(1);
    assert!(none.stderr.contains("codescout config set run.test"), "{}", none.stderr);
    let refused = call(&repo, &["run", "build"]).expect(2);
    assert!(
        refused.stderr.contains("codescout config set run.build"),
        "{}",
        refused.stderr
    );
    let nothing = call(&repo, &["run", "build", "--lines", "1"]).expect(2);
    assert!(
        nothing.stderr.contains("no output of build is kept") && nothing.stderr.contains("codescout run build runs it"),
        "{}",
        nothing.stderr
    );
    configure(&repo, "run.build", "true");
    let listed = call(&repo, &["run", "--json"]).expect(0).json();
    assert_eq!(listed["results"], json!([{"name": "build", "command": ["true"]}]));
    call(&repo, &["run", "build"]).expect(0);
    call(&repo, &["run", "build", "--ref", "HEAD"]).expect(2);
}

#[test]
fn a_repository_cannot_bring_a_command() {
    let repo = repo();
    let command = "[run]\ntest = 'touch ran'\n";
    repo.write(".codescout.toml", command);
    call(&repo, &["run", "test"]).expect(2);
    repo.remove(".codescout.toml");
    repo.write(".codescout/config.toml", command);
    let refused = call(&repo, &["run", "test"]).expect(2);
    assert!(
        refused.stderr.contains("not recorded as written by this user"),
        "{}",
        refused.stderr
    );
    assert!(!repo.path("ran").exists());
}

#[test]
fn programs_of_the_repository_are_not_found() {
    let repo = repo();
    configure(&repo, "run.test", "frobnicate");
    write_executable(&repo.path("bin/frobnicate"), "#!/bin/sh\ntouch ran\n");
    let with_path = |path: &str| {
        let rest = std::env::var("PATH").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_codescout"));
        command.args(["run", "test"]).current_dir(repo.root()).env_clear();
        command.env("HOME", repo.root()).env("PATH", format!("{path}:{rest}"));
        command.envs(user_state());
        command.output_in_time().unwrap()
    };
    for path in [repo.path("bin").to_str().unwrap(), "bin", "."] {
        let refused = with_path(path);
        assert_eq!(refused.status.code(), Some(2), "{path}");
        assert!(
            String::from_utf8_lossy(&refused.stderr).contains("no program"),
            "{refused:?}"
        );
    }
    let linked = repo.beside("linked");
    fs::create_dir(&linked).unwrap();
    std::os::unix::fs::symlink(repo.path("bin/frobnicate"), linked.join("frobnicate")).unwrap();
    assert_eq!(with_path(linked.to_str().unwrap()).status.code(), Some(2));
    assert!(!repo.path("ran").exists());
    let outside = repo.beside("outside");
    write_executable(&outside.join("frobnicate"), "#!/bin/sh\necho \"$PATH\"\n");
    let ran = with_path(&format!("{}:{}", repo.path("bin").display(), outside.display()));
    let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(printed.contains(&format!("\n{}", outside.display())), "{printed}");
}

#[test]
fn entries_of_the_path_lead_to_no_program_of_the_repository() {
    let repo = repo();
    let remote = repo.beside("remote.git");
    repo.git(["init", "-q", "--bare", remote.to_str().unwrap()]);
    let ran = repo.beside("ran");
    let trap = format!("#!/bin/sh\necho \"$0\" >> '{}'\n", ran.display());
    for name in [
        "git",
        "sh",
        "less",
        "more",
        "ps",
        "ssh",
        "unshare",
        "scip-python",
        "pyright",
    ] {
        for folder in ["", "bin/", ".git/", ".git/bin/"] {
            write_executable(&repo.path(format!("{folder}{name}")), &trap);
        }
    }
    repo.git(["-c", "core.bare=false", "add", "-A"]);
    let link = repo.beside("link");
    std::os::unix::fs::symlink(repo.path("bin"), &link).unwrap();
    let inside = [repo.path("bin"), repo.path(".git/bin"), link].map(|folder| folder.display().to_string());
    let rest = std::env::var("PATH").unwrap();
    let run = |args: &[&str], search_path: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_codescout"));
        command.args(args).current_dir(repo.root()).env_clear();
        command.env("HOME", repo.beside("")).env("PATH", search_path);
        command.envs(user_state()).env("TERM", "xterm").env("PAGER", "more");
        command.output_in_time().unwrap();
        let ran = fs::read_to_string(&ran).unwrap_or_default();
        assert!(ran.is_empty(), "{args:?} with PATH={search_path} ran {ran}");
    };
    for search_path in [
        format!("::.:bin:{rest}"),
        format!("bin:.:{rest}"),
        format!("/proc/self/cwd/bin:{rest}"),
        format!("{}:{rest}", inside.join(":")),
        inside.join(":"),
        ".".to_owned(),
        String::new(),
    ] {
        for args in [
            &["hooks", "install"][..],
            &["doctor"],
            &["search", "total"],
            &["history", "README.md"],
            &["blame", "README.md"],
            &["precise", "run", "python"],
            &["precise", "status"],
            &["push", remote.to_str().unwrap()],
            &["pull", remote.to_str().unwrap()],
        ] {
            run(args, &search_path);
        }
    }
    let other = repo.beside("other");
    repo.git(["init", "-q", other.to_str().unwrap()]);
    for of in [&other, &remote] {
        let of = of.to_str().unwrap();
        for command in [&["doctor"][..], &["status"], &["pull", remote.to_str().unwrap()]] {
            run(
                &[&["--repo", of], command].concat(),
                &format!("{}:{rest}", inside.join(":")),
            );
        }
    }
}

#[test]
fn an_empty_path_and_other_worktrees_lead_to_no_program_of_the_repository() {
    let repo = repo();
    write_executable(&repo.path("bin/frobnicate"), "#!/bin/sh\ntouch ran\n");
    write_executable(&repo.path("frobnicate"), "#!/bin/sh\ntouch ran\n");
    repo.commit("programs");
    let linked = repo.beside("linked");
    repo.git(["worktree", "add", "-q", linked.to_str().unwrap()]);
    for (folder, path) in [(repo.root(), "bin"), (&*linked, "bin")] {
        let run = |line: &str, variable: (&str, &str)| {
            call_in(folder, &["config", "set", "run.test", line], b"").expect(0);
            let mut command = Command::new(env!("CARGO_BIN_EXE_codescout"));
            command.args(["run", "test"]).current_dir(folder).env_clear();
            command
                .env("PATH", repo.path(path))
                .env("HOME", repo.root())
                .envs(user_state());
            command.env(variable.0, variable.1).output_in_time().unwrap()
        };
        let ended = run("/bin/sh -c frobnicate", ("VIRTUAL_ENV", ""));
        assert_eq!(ended.status.code(), Some(1), "{ended:?}");
        let ended = run("frobnicate", ("LANG", "C"));
        assert_eq!(ended.status.code(), Some(2), "{ended:?}");
        assert!(!repo.path("ran").exists() && !linked.join("ran").exists());
    }
}

#[test]
fn a_command_is_stopped_with_its_children_at_the_time_limit_and_when_interrupted() {
    let repo = repo();
    configure(&repo, "run.timeout_s", "1");
    configure(&repo, "run.test", "sh -c 'setsid sleep 600 & echo $!; wait'");
    let answer = call(&repo, &["run", "test", "--json"]).expect(2).json();
    assert_eq!(
        (&answer["ended"], &answer["exit_code"]),
        (&json!("too_long"), &Value::Null)
    );
    assert_ends(lines(&answer)[0]);
    let text = call(&repo, &["run", "test", "--lines", "1-"]).expect(2).text();
    let first = text.lines().next().unwrap();
    assert!(
        first.contains(" was stopped after ") && first.ends_with(" s, the limit run.timeout_s"),
        "{text}"
    );

    for wrong in ["0", "3601"] {
        let refused = call(&repo, &["config", "set", "run.timeout_s", wrong]).expect(2);
        assert!(refused.stderr.contains("from 1 to 3600"), "{}", refused.stderr);
    }
    configure(&repo, "run.timeout_s", "600");
    configure(
        &repo,
        "run.test",
        "sh -c 'env -i setsid sleep 600 & echo $! > started; wait'",
    );
    let started = signalled_run(&repo, Signal::KILL);
    assert_ends(&started);
    repo.remove("started");
    assert_ends(&signalled_run(&repo, Signal::INT));
    let answer = call(&repo, &["run", "test", "--lines", "1-", "--json"])
        .expect(2)
        .json();
    assert_eq!(answer["ended"], "interrupted");
}

/// Sends a signal to a run once its command has written the file `started`. Returns the content of the file.
fn signalled_run(repo: &TestRepo, sent: Signal) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_codescout"));
    command
        .args(["run", "test"])
        .current_dir(repo.root())
        .env("HOME", repo.root());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    let started = loop {
        let started = fs::read_to_string(repo.path("started")).unwrap_or_default();
        if started.ends_with('\n') {
            break started;
        }
        assert!(began.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(10));
    };
    kill_process(Pid::from_child(&child), sent).unwrap();
    assert!(!wait_for_end(&mut child).success());
    started
}

#[test]
fn kept_output_is_read_from_regular_files_only_and_its_length_is_said() {
    let repo = repo();
    configure(&repo, "run.test", "seq 3");
    call(&repo, &["run", "test"]).expect(0);
    let past = call(&repo, &["run", "test", "--lines", "5-9"]).expect(0);
    assert!(
        past.stderr.contains("line 5 is past the end: there are 3 lines"),
        "{}",
        past.stderr
    );
    let kept = repo.path(".codescout/log/run-test.json");
    let outside = repo.beside("outside.json");
    fs::rename(&kept, &outside).unwrap();
    std::os::unix::fs::symlink(&outside, &kept).unwrap();
    call(&repo, &["run", "test", "--lines", "1"]).expect(2);
    fs::remove_file(&kept).unwrap();
    Command::new("mkfifo").arg(&kept).status_in_time().unwrap();
    call(&repo, &["run", "test", "--lines", "1"]).expect(2);
    fs::remove_file(&kept).unwrap();
    let text = fs::read_to_string(&outside).unwrap();
    let text = text.replace("\"n_lines_before\":0", &format!("\"n_lines_before\":{}", u64::MAX));
    fs::write(&kept, text).unwrap();
    let damaged = call(&repo, &["run", "test", "--lines", "1"]).expect(2);
    assert!(damaged.stderr.contains("is damaged"), "{}", damaged.stderr);
}

#[test]
fn very_long_output_is_bounded() {
    let repo = repo();
    configure(&repo, "run.build", "seq 1000000");
    let answer = call(&repo, &["run", "build", "-n", "1", "--json"]).expect(0).json();
    assert_eq!((&answer["total"], lines(&answer)), (&json!(1_000_000), vec!["1000000"]));
    let n_lost = answer["not_kept"].as_u64().unwrap();
    assert!(n_lost > 800_000, "{n_lost}");
    let first = call(&repo, &["run", "build", "--lines", "1-", "-n", "1", "--json"])
        .expect(0)
        .json();
    assert_eq!(first["results"][0]["line"], n_lost + 1);
    let kept = fs::metadata(repo.path(".codescout/log/run-build.json")).unwrap().len();
    assert!(kept < 2 << 20, "{kept}");
}

#[test]
fn the_tool_is_served_on_request_and_for_the_own_repository_only() {
    let repo = repo();
    let other = TestRepo::new("//- c.txt\nz\n");
    let names = |client: &mut Client| -> Vec<String> {
        let listed = client.request("tools/list", json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap().clone();
        tools
            .iter()
            .filter_map(|tool| Some(tool["name"].as_str()?.to_owned()))
            .collect()
    };
    assert!(!names(&mut Client::legacy(&repo, &[])).contains(&"run".to_owned()));
    configure(&repo, "run.test", "sh -c 'seq 3; exit 1'");
    configure(&other, "run.test", "touch ran");
    let root = other.root().to_str().unwrap();
    let mut client = Client::legacy(&repo, &["--profile", "run", "--root", root]);
    assert!(names(&mut client).contains(&"run".to_owned()));
    let listed = client.call("run", json!({}));
    assert_eq!(listed.results()[0]["name"], "test");
    let ran = client.call("run", json!({"name": "test"}));
    assert!(ran.text.contains("failed with exit code 1"), "{}", ran.text);
    assert!(ran.text.ends_with("\n```\n1\n2\n3\n```\n"), "{}", ran.text);
    let read = client.call("run", json!({"name": "test", "lines": "2"}));
    assert!(read.text.ends_with("\n```\n2\n```\n"), "{}", read.text);
    for wrong in [json!({"name": "test", "repo": root}), json!({"lines": "2"})] {
        let refused = client.request("tools/call", json!({"name": "run", "arguments": wrong}));
        assert_eq!(refused["result"]["isError"], true, "{refused}");
    }
    assert!(!Path::new(root).join("ran").exists());
}
