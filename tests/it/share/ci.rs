//! Tests caching the index between CI jobs.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use super::{PRIVATE_KEY, PUBLIC_KEY, QUERIES, project};
use crate::cli::call_in;
use crate::indexed::Indexed;
use crate::support::{InTime, TestRepo};

const YAML: [&str; 6] = [
    "github.yml",
    "gitlab.yml",
    "precise-github.yml",
    "precise-gitlab.yml",
    "review-github.yml",
    "review-gitlab.yml",
];

fn templates(names: &[&str]) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/ci");
    let read = |name: &&str| ((*name).to_owned(), fs::read_to_string(folder.join(name)).unwrap());
    names.iter().map(read).collect()
}

/// Creates the checkout of a job as a runner does: a shallow clone.
fn job(repo: &TestRepo, name: &str) -> TestRepo {
    repo.clone_with(name, &["--depth=1"])
}

fn run_template(job: &TestRepo, store: &Path, mode: &str, variables: &[(&str, &str)]) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_codescout")).parent().unwrap().to_owned();
    let path = std::env::join_paths(
        [program]
            .into_iter()
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    );
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/ci/cache.sh");
    let mut shell = Command::new("sh");
    shell.arg(script).arg(store).arg(mode).current_dir(job.root());
    shell.env_clear().env("PATH", path.unwrap()).env("HOME", job.root());
    shell.envs(variables.iter().copied());
    let output = shell.output_in_time().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_template_for_a_shell_carries_an_index_from_job_to_job() {
    let repo = project();
    let store = repo.beside("store");
    let first = run_template(&job(&repo, "first"), &store, "save", &[]);
    let said = stdout(&first);
    assert!(
        said.contains("not restored: no archive found") && said.contains("saved:"),
        "{said}"
    );

    repo.write("src/added.rs", "pub fn added_since() {}\n");
    repo.commit("one file more");
    let second = job(&repo, "second");
    let said = stdout(&run_template(&second, &store, "save", &[]));
    assert!(said.contains("imported without comparison"), "{said}");
    assert!(said.contains("1 new blob,"), "only the difference is built: {said}");
    assert_eq!(fs::read_dir(&store).unwrap().count(), 2);
    assert!(second.git(["status", "--porcelain"]).is_empty());
    let (ours, theirs) = (Indexed::new(second.root()), Indexed::new(repo.root()));
    let (view, other) = (ours.view("WORKTREE"), theirs.view("HEAD"));
    assert_eq!(ours.answers(&view, &QUERIES), theirs.answers(&other, &QUERIES));
    call_in(second.root(), &["verify", "--deep"], b"").expect(0);

    // For the same tree again, nothing is built and nothing is saved.
    let said = stdout(&run_template(&job(&repo, "third"), &store, "save", &[]));
    assert!(
        said.contains("up to date") && said.contains("not saved: the archive already has this tree"),
        "{said}"
    );
    assert_eq!(fs::read_dir(&store).unwrap().count(), 2);
}

#[test]
fn jobs_of_pull_requests_save_nothing() {
    let repo = project();
    for (name, value) in [
        ("GITHUB_EVENT_NAME", "pull_request_target"),
        ("CI_MERGE_REQUEST_IID", "7"),
    ] {
        let mut save = Command::new(env!("CARGO_BIN_EXE_codescout"));
        save.args(["ci", "save", "--github"])
            .current_dir(repo.root())
            .env_clear();
        save.env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", repo.root())
            .env(name, value);
        let output = save.output_in_time().unwrap();
        assert_eq!(stdout(&output), "saved=false\n");
        assert!(String::from_utf8_lossy(&output.stderr).contains(name));
        assert!(!repo.path(".codescout-ci").exists());
        assert_eq!(stdout(&save.arg("--force").output_in_time().unwrap()), "saved=true\n");
        fs::remove_dir_all(repo.path(".codescout-ci")).unwrap();
    }
}

#[test]
fn keys_follow_tree_and_settings_alone() {
    let repo = project();
    let keys = |root: &Path, args: &[&str]| {
        call_in(root, &[&["ci", "key", "--json"], args].concat(), b"")
            .expect(0)
            .json()
    };
    let ours = keys(repo.root(), &[]);
    let prefix = ours["prefix"].as_str().unwrap();
    assert_eq!(ours["key"], format!("{prefix}{}", repo.tree_of("HEAD")));
    assert_eq!(keys(job(&repo, "job").root(), &[]), ours);
    assert_ne!(keys(repo.root(), &["--ref", "HEAD~1"])["key"], ours["key"]);
    assert_eq!(
        keys(repo.root(), &["--branch", "feature/ä b"])["moving_key"],
        format!("{prefix}feature---b")
    );
    repo.write(".codescout.toml", "[index]\nmax_blob_bytes = 5000\n");
    assert_ne!(keys(repo.root(), &[])["prefix"], ours["prefix"]);
    let github = call_in(repo.root(), &["ci", "key", "--github"], b"").expect(0).text();
    assert!(
        github.starts_with("key=codescout-") && github.contains("\nrestore-keys=codescout-"),
        "{github}"
    );
}

#[test]
fn archives_of_other_builds_are_passed_over_and_bad_ones_are_not() {
    let repo = project();
    call_in(repo.root(), &["ci", "save"], b"").expect(0);
    let archive = fs::read(repo.path(".codescout-ci/index.bundle")).unwrap();
    let clone = repo.clone_with("clone", &[]);
    let file = repo.beside("archive");
    let restore = |bytes: &[u8], args: &[&str], code| {
        fs::write(&file, bytes).unwrap();
        let all = [&["ci", "restore", file.to_str().unwrap(), "--json"], args].concat();
        call_in(clone.root(), &all, b"").expect(code).json()
    };
    let mut other = super::raw::Raw::parse(&archive);
    other.header.recipe ^= 1;
    let answer = restore(&other.to_bytes(), &[], 0);
    assert_eq!(answer["restored"], false);
    assert!(answer["because"].as_str().unwrap().contains("recipe"), "{answer}");
    restore(&archive[..archive.len() - 1], &[], 2);
    restore(&archive, &["--trust", PUBLIC_KEY], 2);
    let answer = restore(&archive, &["--compare"], 0);
    assert_eq!((&answer["restored"], &answer["adopted"]), (&true.into(), &false.into()));

    fs::write(repo.beside("key.pem"), PRIVATE_KEY).unwrap();
    let signed = repo.beside("signed");
    let args = ["ci", "save", signed.to_str().unwrap(), "--sign", "../key.pem"];
    call_in(repo.root(), &args, b"").expect(0);
    let another = repo.clone_with("another", &[]);
    let args = [
        "ci",
        "restore",
        signed.to_str().unwrap(),
        "--trust",
        PUBLIC_KEY,
        "--json",
    ];
    assert_eq!(call_in(another.root(), &args, b"").expect(0).json()["adopted"], true);
}

#[test]
fn an_archive_that_a_cache_kept_alone_is_no_file_of_the_work_tree() {
    let repo = project();
    let said = call_in(repo.root(), &["ci", "save"], b"").expect(0);
    assert!(said.stdout.starts_with(b"saved: 6 blobs in "), "{}", said.text());
    let clone = repo.clone_with("clone", &[]);
    fs::create_dir(clone.path(".codescout-ci")).unwrap();
    fs::copy(
        repo.path(".codescout-ci/index.bundle"),
        clone.path(".codescout-ci/index.bundle"),
    )
    .unwrap();
    call_in(clone.root(), &["ci", "restore"], b"").expect(0);
    assert_eq!(clone.git(["status", "--porcelain"]), "");
}

#[test]
fn an_archive_of_which_nothing_is_left_is_passed_over() {
    let repo = project();
    call_in(repo.root(), &["ci", "save", "../archive"], b"").expect(0);
    repo.git(["rm", "-rqf", "."]);
    repo.write("new.rs", "pub fn all_is_new() {}\n");
    repo.commit("everything is another");
    let next = job(&repo, "next");
    let answer = call_in(next.root(), &["ci", "restore", "../archive", "--json"], b"")
        .expect(0)
        .json();
    assert_eq!(answer["restored"], false);
    assert!(
        answer["because"].as_str().unwrap().contains("in this repository"),
        "{answer}"
    );
    let saved = call_in(next.root(), &["ci", "save", "../archive", "--json"], b"")
        .expect(0)
        .json();
    assert_eq!(saved["saved"], true);
}

#[test]
fn an_archive_that_came_with_the_code_is_refused() {
    let repo = project();
    call_in(repo.root(), &["ci", "save"], b"").expect(0);
    repo.git(["add", "-f", ".codescout-ci/index.bundle"]);
    repo.git(["commit", "-qm", "a cache as a gift"]);
    let job = job(&repo, "job");
    for args in [
        &["ci", "restore"][..],
        &["ci", "save"],
        &["ci", "restore", ".codescout-ci/index.bundle"],
    ] {
        let refused = call_in(job.root(), args, b"").expect(2);
        assert!(
            refused.stderr.contains("is tracked by git"),
            "{args:?}: {}",
            refused.stderr
        );
    }
    let worktree = repo.beside("linked");
    repo.git(["worktree", "add", "-q", worktree.to_str().unwrap(), "HEAD"]);
    call_in(&worktree, &["ci", "restore"], b"").expect(2);
}

#[test]
fn what_is_no_bundle_is_not_written_over() {
    let repo = project();
    for args in [&["export", "docs/guide.md"][..], &["ci", "save", "docs/guide.md"]] {
        let refused = call_in(repo.root(), args, b"").expect(2);
        assert!(!refused.stderr.is_empty());
        assert!(
            fs::read_to_string(repo.path("docs/guide.md"))
                .unwrap()
                .starts_with("# Installing")
        );
    }
    fs::write(repo.beside("empty"), "").unwrap();
    call_in(repo.root(), &["export", "../empty"], b"").expect(0);
    call_in(repo.root(), &["export", "../empty"], b"").expect(0);
}

#[test]
fn an_archive_without_the_signature_is_written_anew() {
    let repo = project();
    fs::write(repo.beside("key.pem"), PRIVATE_KEY).unwrap();
    call_in(repo.root(), &["ci", "save", "../archive"], b"").expect(0);
    let signed = ["ci", "save", "../archive", "--sign", "../key.pem", "--json"];
    assert_eq!(call_in(repo.root(), &signed, b"").expect(0).json()["saved"], true);
    assert_eq!(call_in(repo.root(), &signed, b"").expect(0).json()["saved"], false);
    call_in(
        repo.root(),
        &["ci", "restore", "../archive", "--trust", PUBLIC_KEY],
        b"",
    )
    .expect(0);
}

#[test]
fn a_damaged_archive_is_in_the_way_once() {
    let repo = project();
    let store = repo.beside("store");
    run_template(&job(&repo, "first"), &store, "save", &[]);
    let archive = fs::read_dir(&store).unwrap().next().unwrap().unwrap().path();
    let bytes = fs::read(&archive).unwrap();
    fs::write(&archive, &bytes[..bytes.len() - 9]).unwrap();
    let called = run_template(&job(&repo, "second"), &store, "save", &[]);
    assert!(String::from_utf8_lossy(&called.stderr).contains("cannot restore"));
    assert!(stdout(&called).contains("saved:"), "{}", stdout(&called));
    let said = stdout(&run_template(&job(&repo, "third"), &store, "save", &[]));
    assert!(said.contains("imported without comparison"), "{said}");
}

#[test]
fn a_link_in_the_place_of_the_archive_is_refused() {
    let repo = project();
    let outside = repo.beside("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("index.bundle"), "mine").unwrap();
    std::os::unix::fs::symlink(&outside, repo.path(".codescout-ci")).unwrap();
    call_in(repo.root(), &["ci", "save"], b"").expect(2);
    fs::remove_file(repo.path(".codescout-ci")).unwrap();
    fs::create_dir(repo.path(".codescout-ci")).unwrap();
    std::os::unix::fs::symlink(outside.join("index.bundle"), repo.path(".codescout-ci/index.bundle")).unwrap();
    call_in(repo.root(), &["ci", "restore"], b"").expect(2);
    call_in(repo.root(), &["ci", "save"], b"").expect(2);
    assert_eq!(fs::read_to_string(outside.join("index.bundle")).unwrap(), "mine");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
}

#[test]
fn jobs_of_pull_requests_leave_the_store_as_it_is() {
    let repo = project();
    let store = repo.beside("store");
    let proposed = [("GITHUB_EVENT_NAME", "pull_request")];
    let said = stdout(&run_template(&job(&repo, "first"), &store, "save", &proposed));
    assert!(said.contains("not saved"), "{said}");
    assert_eq!(fs::read_dir(&store).unwrap().count(), 0);
    run_template(&job(&repo, "second"), &store, "save", &[]);
    repo.write("src/added.rs", "pub fn added_since() {}\n");
    repo.commit("one file more");
    run_template(&job(&repo, "third"), &store, "save", &proposed);
    assert_eq!(fs::read_dir(&store).unwrap().count(), 1);
}

/// Returns the calls of this program in a template.
fn calls(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
        for (at, start) in line.match_indices("codescout ") {
            let is_command = at == 0 || line[..at].ends_with([' ', '(']);
            let rest = line[at + start.len()..].split([';', '>', '|', ')']).next().unwrap();
            let words: Vec<String> = rest.split_whitespace().map(str::to_owned).collect();
            if is_command {
                found.push(words);
            }
        }
    }
    found
}

#[test]
fn what_templates_call_is_there() {
    let repo = project();
    for (name, text) in templates(&["github.yml", "gitlab.yml", "cache.sh"]) {
        let calls = calls(&text);
        assert!(calls.len() >= 3, "{name}: {calls:?}");
        for call in calls {
            let words: Vec<&str> = call.iter().map(String::as_str).collect();
            call_in(repo.root(), &words, b"").expect(0);
        }
    }
}

/// Checks only the YAML that the templates use: indentation by two, no tabs, unique keys in a mapping, paired quotes.
#[test]
fn templates_are_well_formed() {
    for (name, text) in templates(&YAML) {
        let mut open: Vec<(usize, Vec<&str>)> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let about = format!("{name}:{}: {line}", number + 1);
            assert!(!line.contains('\t') && line.trim_end() == line, "{about}");
            let content = line.trim_start();
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            assert_eq!(content.matches('"').count() % 2, 0, "{about}");
            let dashed = content.strip_prefix("- ");
            let indent = line.len() - content.len() + if dashed.is_some() { 2 } else { 0 };
            assert_eq!(indent % 2, 0, "{about}");
            open.retain(|(depth, _)| *depth <= indent && (dashed.is_none() || *depth < indent));
            let Some((key, _)) = dashed.unwrap_or(content).split_once(':') else {
                continue;
            };
            if !key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_') {
                continue;
            }
            match open.last_mut() {
                Some((depth, keys)) if *depth == indent => {
                    assert!(!keys.contains(&key), "{about}");
                    keys.push(key);
                }
                _ => open.push((indent, vec![key])),
            }
        }
    }
    // If Python has a YAML parser, it must accept the templates.
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/ci");
    let parse = "import sys, yaml\nfor name in sys.argv[1:]: assert isinstance(yaml.safe_load(open(name)), dict)";
    let has_parser = Command::new("python3").args(["-c", "import yaml"]).output_in_time();
    if !has_parser.is_ok_and(|output| output.status.success()) {
        return crate::indexed::skip("no YAML parser in Python");
    }
    let parsed = Command::new("python3")
        .args(["-c", parse])
        .args(YAML)
        .current_dir(folder)
        .output_in_time()
        .unwrap();
    assert!(parsed.status.success(), "{}", String::from_utf8_lossy(&parsed.stderr));
}

#[test]
fn a_pipe_is_no_archive_and_nobody_waits_for_it() {
    let repo = project();
    assert!(
        Command::new("mkfifo")
            .arg(repo.beside("pipe"))
            .status_in_time()
            .unwrap()
            .success()
    );
    for args in [
        &["ci", "restore", "../pipe"][..],
        &["import", "../pipe"],
        &["import", "--inspect", "../pipe"],
    ] {
        let called = call_in(repo.root(), args, b"").expect(2);
        assert!(
            called.stderr.contains("not a regular file"),
            "{args:?}: {}",
            called.stderr
        );
    }
}
