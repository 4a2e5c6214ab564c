//! Runs the templates for CI systems as their runners do: each step in a shell, with a folder in place of the system's
//! caches.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{QUERIES, project};
use crate::cli::call_in;
use crate::indexed::Indexed;
use crate::support::{InTime, TestRepo, scip, write_executable};

type Words = BTreeMap<String, String>;

/// Caches by key. Each is a folder, in the order in which they were saved.
struct Caches {
    folder: PathBuf,
    keys: Vec<String>,
}

impl Caches {
    fn new(folder: PathBuf) -> Self {
        fs::create_dir(&folder).unwrap();
        Self {
            folder,
            keys: Vec::new(),
        }
    }

    fn place(&self, key: &str) -> PathBuf {
        self.folder.join(key.replace('/', "%"))
    }

    /// Saves a folder of a job. `may_replace` is true if an existing cache is replaced.
    fn put(&mut self, key: &str, from: &Path, may_replace: bool) {
        if self.keys.iter().any(|known| known == key) {
            if !may_replace {
                return;
            }
            fs::remove_dir_all(self.place(key)).unwrap();
            self.keys.retain(|known| known != key);
        }
        copy(from, &self.place(key));
        self.keys.push(key.to_owned());
    }

    /// Restores the cache of a key, if there is one.
    fn get(&self, key: Option<&String>, to: &Path) {
        if let Some(key) = key {
            copy(&self.place(key), to);
        }
    }
}

fn copy(from: &Path, to: &Path) {
    assert!(
        Command::new("cp")
            .arg("-a")
            .args([from, to])
            .status_in_time()
            .unwrap()
            .success()
    );
}

/// Splits a template into lines, each with its indentation, key and value.
fn lines(text: &str) -> Vec<(usize, String, String)> {
    let of_line = |line: &str| {
        let content = line.trim_start();
        let (key, value) = content.split_once(':').unwrap_or((content, ""));
        let value = value.split(" # ").next().unwrap_or_default().trim();
        (line.len() - content.len(), key.to_owned(), unquoted(value))
    };
    let counts = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    text.lines().filter(counts).map(of_line).collect()
}

fn unquoted(text: &str) -> String {
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    inner.unwrap_or(text).to_owned()
}

fn template(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/ci").join(name)).unwrap()
}

/// Runs a line of a job with only the environment of a runner. Returns its output.
#[track_caller]
fn shell(job: &TestRepo, line: &str, variables: &Words) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_codescout")).parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap();
    let path = std::env::join_paths([program].into_iter().chain(std::env::split_paths(&path))).unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", line]).current_dir(job.root()).env_clear();
    let output = shell
        .env("PATH", path)
        .env("HOME", job.beside(""))
        .envs(variables)
        .output_in_time()
        .unwrap();
    assert!(
        output.status.success(),
        "{line}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

fn words<const N: usize>(pairs: [(&str, &str); N]) -> Words {
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

/// Returns the steps of the GitHub template with their keys, including those of `with`.
fn github_steps() -> Vec<Words> {
    let mut steps: Vec<Words> = Vec::new();
    let mut is_steps = false;
    for (indent, key, value) in lines(&template("github.yml")) {
        is_steps |= key == "steps";
        if is_steps && indent == 6 && key.starts_with("- ") {
            steps.push(Words::new());
        }
        if let Some(step) = steps.last_mut() {
            step.insert(key.trim_start_matches("- ").to_owned(), value);
        }
    }
    steps
}

/// Replaces `${{ … }}` expressions by their values.
fn filled(text: &str, outputs: &Words) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${{ ") {
        let (name, left) = after.split_once(" }}").unwrap();
        filled += before;
        filled += outputs.get(name).map_or("", String::as_str);
        rest = left;
    }
    filled + rest
}

/// Evaluates a condition of the form `a == 'x'` or `a == b`, possibly joined by `&&`.
fn holds(condition: &str, known: &Words) -> bool {
    let value = |side: &str| match side.strip_prefix('\'') {
        Some(text) => text.trim_end_matches('\'').to_owned(),
        None => known.get(side).cloned().unwrap_or_default(),
    };
    condition.split(" && ").all(|part| {
        let (left, right) = part.split_once(" == ").unwrap();
        value(left) == value(right)
    })
}

/// Runs a workflow like GitHub. Returns the output of its steps.
fn run_github(job: &TestRepo, caches: &mut Caches, event: &str, branch: &str) -> String {
    let mut known = words([
        ("github.event_name", event),
        ("github.ref_name", branch),
        ("github.event.repository.default_branch", "main"),
    ]);
    let mut said = String::new();
    for step in github_steps() {
        if step.get("if").is_some_and(|condition| !holds(condition, &known)) {
            continue;
        }
        if let Some(line) = step.get("run") {
            let outputs = job.beside("github-output");
            fs::write(&outputs, "").unwrap();
            let variables = words([
                ("GITHUB_OUTPUT", outputs.to_str().unwrap()),
                ("GITHUB_EVENT_NAME", event),
                ("CI", "true"),
            ]);
            said += &shell(job, line, &variables);
            for line in fs::read_to_string(&outputs).unwrap().lines() {
                let (name, value) = line.split_once('=').unwrap();
                known.insert(format!("steps.{}.outputs.{name}", step["id"]), value.to_owned());
            }
            continue;
        }
        let field = |name: &str| filled(&step[name], &known);
        match step["uses"].split('@').next().unwrap() {
            "actions/checkout" => {}
            "actions/cache/restore" => {
                let (key, prefix) = (field("key"), field("restore-keys"));
                assert!(
                    key.starts_with("codescout-") && key.starts_with(&prefix) && prefix.len() > 20,
                    "{key} {prefix}"
                );
                let exact = caches.keys.iter().find(|known| **known == key);
                let found = exact.or_else(|| caches.keys.iter().rev().find(|known| known.starts_with(&prefix)));
                caches.get(found, &job.path(&step["path"]));
            }
            "actions/cache/save" => caches.put(&field("key"), &job.path(&step["path"]), false),
            other => panic!("{other}"),
        }
    }
    said
}

#[test]
fn on_github_a_run_pays_for_what_is_new_and_only_trusted_ones_save() {
    let repo = project();
    let mut caches = Caches::new(repo.beside("caches"));
    let mut n_jobs = 0;
    let mut run = |caches: &mut Caches, event: &str, branch: &str| {
        n_jobs += 1;
        let job = repo.clone_with(&format!("job{n_jobs}"), &["--depth=1"]);
        (run_github(&job, caches, event, branch), job)
    };
    let (said, _) = run(&mut caches, "pull_request", "7/merge");
    assert!(said.contains("no archive found") && caches.keys.is_empty(), "{said}");
    run(&mut caches, "push", "main");
    assert_eq!(caches.keys.len(), 1);
    repo.write("src/added.rs", "pub fn added_since() {}\n");
    repo.commit("one file more");
    let (said, _) = run(&mut caches, "push", "topic");
    assert!(
        said.contains("imported without comparison") && said.contains("1 new blob,"),
        "{said}"
    );
    assert_eq!(caches.keys.len(), 1, "a branch saves nothing");
    let (said, job) = run(&mut caches, "push", "main");
    assert!(said.contains("1 new blob,"), "{said}");
    assert_eq!(caches.keys.len(), 2);
    let (said, _) = run(&mut caches, "push", "main");
    assert!(said.contains("up to date"), "{said}");
    assert_eq!(caches.keys.len(), 2, "what is there is not written again");

    assert!(job.git(["status", "--porcelain"]).is_empty());
    let (ours, theirs) = (Indexed::new(job.root()), Indexed::new(repo.root()));
    let (view, other) = (ours.view("WORKTREE"), theirs.view("HEAD"));
    assert_eq!(ours.answers(&view, &QUERIES), theirs.answers(&other, &QUERIES));
    call_in(job.root(), &["verify", "--deep"], b"").expect(0);
}

/// Returns the list items or the value under a key of the GitLab template.
fn gitlab(key: &str) -> Vec<String> {
    let lines = lines(&template("gitlab.yml"));
    let at = lines.iter().position(|(_, name, _)| name == key).unwrap();
    let (indent, _, value) = &lines[at];
    if !value.is_empty() {
        return vec![value.clone()];
    }
    let text = template("gitlab.yml");
    let start = text
        .lines()
        .position(|line| line == format!("{}{key}:", " ".repeat(*indent)))
        .unwrap();
    let inner = text
        .lines()
        .skip(start + 1)
        .take_while(|line| line.starts_with(&" ".repeat(indent + 1)));
    let items = inner.filter_map(|line| line.trim_start().strip_prefix("- "));
    items.map(unquoted).collect()
}

/// Runs a job like GitLab. The first rule that matches determines whether its cache is saved.
fn run_gitlab(job: &TestRepo, caches: &mut Caches, branch: &str, is_protected: bool) -> String {
    let mut variables = words([
        ("CI_COMMIT_BRANCH", branch),
        ("CI_COMMIT_REF_SLUG", branch),
        ("CI_DEFAULT_BRANCH", "main"),
        ("CI_COMMIT_REF_PROTECTED", if is_protected { "true" } else { "false" }),
        ("CI_PIPELINE_SOURCE", "push"),
        ("CODESCOUT_CACHE_POLICY", &gitlab("CODESCOUT_CACHE_POLICY")[0]),
    ]);
    let expand = |text: &str, variables: &Words| {
        let mut names: Vec<&String> = variables.keys().collect();
        names.sort_by_key(|name| std::cmp::Reverse(name.len()));
        names.into_iter().fold(text.to_owned(), |text, name| {
            text.replace(&format!("${name}"), &variables[name])
        })
    };
    let rules = gitlab("rules");
    assert!(
        rules[0].contains("$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH && $CI_COMMIT_REF_PROTECTED == \"true\""),
        "{rules:?}"
    );
    if branch == "main" && is_protected {
        variables.insert("CODESCOUT_CACHE_POLICY".to_owned(), "pull-push".to_owned());
    }
    // GitLab separates the caches of protected and other branches by a suffix, unless a project disables that.
    let key = expand(&gitlab("key")[0], &variables);
    let fallbacks = gitlab("fallback_keys").into_iter().map(|key| expand(&key, &variables));
    let wanted: Vec<String> = [key.clone()].into_iter().chain(fallbacks).collect();
    let found = wanted.iter().find(|key| caches.keys.contains(key)).cloned();
    let folder = job.path(gitlab("paths")[0].trim_end_matches('/'));
    caches.get(found.as_ref(), &folder);
    let said = shell(job, &gitlab("script").join("\n"), &variables);
    if expand(&gitlab("policy")[0], &variables) == "pull-push" {
        caches.put(&key, &folder, true);
    }
    said
}

#[test]
fn on_gitlab_the_cache_moves_with_the_default_branch() {
    let repo = project();
    let mut caches = Caches::new(repo.beside("caches"));
    let mut n_jobs = 0;
    let mut run = |caches: &mut Caches, branch: &str, is_protected| {
        n_jobs += 1;
        let job = repo.clone_with(&format!("job{n_jobs}"), &["--depth=20"]);
        run_gitlab(&job, caches, branch, is_protected)
    };
    let said = run(&mut caches, "main", false);
    assert!(said.contains("no archive found") && caches.keys.is_empty(), "{said}");
    let said = run(&mut caches, "main", true);
    assert!(said.contains("saved:") && caches.keys == ["codescout-main"], "{said}");
    repo.write("src/added.rs", "pub fn added_since() {}\n");
    repo.commit("one file more");
    let said = run(&mut caches, "topic", false);
    assert!(
        said.contains("imported without comparison") && said.contains("1 new blob,"),
        "{said}"
    );
    assert_eq!(caches.keys, ["codescout-main"], "a branch saves nothing");
    let said = run(&mut caches, "main", true);
    assert!(said.contains("1 new blob,") && said.contains("saved:"), "{said}");
    let said = run(&mut caches, "main", true);
    assert!(said.contains("up to date") && said.contains("not saved"), "{said}");
    assert_eq!(caches.keys, ["codescout-main"]);
}

/// Returns the commands of a template that begin after its installation, once for each indexer that it lists.
fn precise_jobs(name: &str) -> Vec<Vec<String>> {
    let text = template(name);
    let listed = text.lines().filter_map(|line| line.trim_start().strip_prefix("#   "));
    let steps = text.lines().filter_map(|line| {
        let line = line.trim_start();
        line.strip_prefix("run: ")
            .or_else(|| line.strip_prefix("- ").filter(|_| name.contains("gitlab")))
    });
    let steps: Vec<&str> = steps.skip_while(|line| !line.starts_with("npm")).collect();
    assert!(listed.clone().any(|indexer| indexer == steps[0]), "{steps:?}");
    let job = |indexer: &str| {
        [indexer]
            .into_iter()
            .chain(steps[1..].iter().copied())
            .map(str::to_owned)
            .collect()
    };
    listed.map(job).collect()
}

#[test]
fn facts_of_every_indexer_reach_the_other_clones() {
    for name in ["precise-github.yml", "precise-gitlab.yml"] {
        let jobs = precise_jobs(name);
        assert_eq!(jobs.len(), 5, "{name}");
        for steps in jobs {
            let repo = crate::precise::project();
            let remote = repo.bare_clone("remote.git");
            let job = remote.clone_with("job", &["--depth=1"]);
            // Each program does what the last one in the step is to do.
            let programs = job.beside("programs");
            let made = job.beside("made.scip");
            fs::write(&made, scip::index("scip", &crate::precise::documents())).unwrap();
            for program in ["npm", "npx", "pip", "rust-analyzer", "scip-go", "scip-java"] {
                let script = format!("#!/bin/sh\ncp {} index.scip\n", made.display());
                write_executable(&programs.join(program), &script);
            }
            let variables = words([("REMOTE", remote.root().to_str().unwrap())]);
            for step in &steps {
                let line = format!("PATH={}:$PATH; {step}", programs.display());
                shell(&job, &line, &variables);
            }
            let clone = remote.clone_with("clone", &[]);
            let pulled = call_in(clone.root(), &["pull", "--yes", "--json"], b"")
                .expect(0)
                .json();
            assert_eq!(pulled["new_fact_files"], 2, "{name}: {steps:?}: {pulled}");
        }
    }
}
