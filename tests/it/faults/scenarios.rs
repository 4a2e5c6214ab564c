//! The operations that are disturbed in the tests of faults.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, SystemTime};

use codescout::sidecar::FileLock;
use serde_json::{Value, json};

use super::{Told, check_sound, copy_of, history, program, stderr, succeed, told_by};
use crate::indexed::files_below;
use crate::support::model::openai;
use crate::support::scip::{document, index};
use crate::support::{InTime, Stub, TestRepo};

/// An operation on a copy of a repository. Together the scenarios pass every fail point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scenario {
    /// Changes a setting and builds the first index.
    First,
    /// An update that merges segments and removes files that killed writers left.
    Update,
    /// Adds a pin next to one whose commit git has deleted, and collects garbage: first snapshots, then blobs.
    Collect,
    /// Repairs a damaged segment and a damaged snapshot.
    Repair,
    /// A hook leaves a request for a running worker.
    Request,
    /// A worker indexes pushed commits, writes to a full log, and collects garbage automatically.
    Hook,
    /// Imports a bundle of another clone and a SCIP index into an existing index.
    Import,
    /// Computes vectors on a server.
    Embed,
    /// Edits two files of the worktree.
    Edit,
}

pub(super) const SCENARIOS: [Scenario; 9] = [
    Scenario::First,
    Scenario::Update,
    Scenario::Collect,
    Scenario::Repair,
    Scenario::Request,
    Scenario::Hook,
    Scenario::Import,
    Scenario::Embed,
    Scenario::Edit,
];

/// The pin of a commit that git has deleted.
const PINNED: &str = "kept";
/// A tag in every template except the first.
const TAG: &str = "v1";
const CONFIG: &str = ".codescout/config.toml";
const BUNDLE: &str = ".git/shared.bundle";
const SCIP: &str = ".git/index.scip";
const EDITS: &str = ".git/edits.json";
const NO_EDITS: &str = ".git/no-edits.json";
const WORK: &[&str] = &["hooks", "run", "--worker", "post-receive", "--repo", ".git"];

/// The facts that must hold for every copy afterwards.
pub(super) struct Outlook {
    revisions: Vec<String>,
    expected: Told,
    /// The answer of the pinned snapshot.
    pinned: Value,
}

/// The repositories that scenarios start from, and their answers.
pub(super) struct Start {
    pub(super) repo: TestRepo,
    pub(super) outlook: Outlook,
    /// The server for the repositories that use one.
    _server: Stub,
}

impl Start {
    pub(super) fn new() -> Self {
        let (repo, commits) = history(9);
        let revisions = vec![commits[8].clone(), commits[2].clone()];
        let expected = told_by(repo.root(), Some(repo.beside("sidecar")), &revisions);
        copy_of(repo.root(), &repo.beside("first"));
        for commit in &commits[..7] {
            succeed(repo.root(), &["index", commit]);
        }
        let import = repo.beside("import");
        copy_of(&repo.beside("first"), &import);
        succeed(&import, &["index", &commits[2]]);
        let maker = repo.beside("maker");
        copy_of(repo.root(), &maker);
        succeed(&maker, &["export", BUNDLE, &commits[6], &commits[5], "--history"]);
        fs::rename(maker.join(BUNDLE), import.join(BUNDLE)).unwrap();
        fs::write(import.join(SCIP), scip(&repo)).unwrap();
        let server = Stub::start(|seen| openai(seen, 16));
        let embed = repo.beside("embed");
        copy_of(repo.root(), &embed);
        let settings = format!("[embedding]\nserver = '{}'\nmodel = 'm'\nbatch = 4\n", server.url());
        fs::write(embed.join(CONFIG), settings).unwrap();
        let update = repo.beside("update");
        copy_of(repo.root(), &update);
        leave_behind(&update.join(".codescout"));

        repo.git(["tag", TAG, commits[4].as_str()]);
        pin_and_forget(&repo);
        let sidecar = repo.path(".codescout");
        fs::write(sidecar.join("config.toml"), "[gc]\nmax_bytes = 1\n").unwrap();
        let days = Duration::from_secs(2 * 24 * 3600);
        for path in files_below(&sidecar.join("snapshots-v1")).into_keys() {
            let file = File::options()
                .append(true)
                .open(sidecar.join("snapshots-v1").join(path));
            file.unwrap().set_modified(SystemTime::now() - days).unwrap();
        }
        fs::create_dir(sidecar.join("log")).unwrap();
        fs::write(sidecar.join("log/hooks.log"), "{}\n".repeat(44_000)).unwrap();
        let hook = repo.beside("hook");
        copy_of(repo.root(), &hook);

        fs::write(
            sidecar.join("config.toml"),
            "[gc]\ndead_percent = 90\nreflog_days = 0\n",
        )
        .unwrap();
        succeed(repo.root(), &["index"]);
        let repair = repo.beside("repair");
        copy_of(repo.root(), &repair);
        succeed(&repair, &["gc", "--pin", TAG]);
        damage(&repair.join(".codescout"), "dense-v1");
        damage(&repair.join(".codescout"), "snapshots-v1");

        leave_behind(&sidecar);
        for folder in ["damaged", "lexical-v0"] {
            fs::create_dir(sidecar.join(folder)).unwrap();
            fs::write(sidecar.join(folder).join("old"), "old").unwrap();
        }
        let pinned = told_of_pin(repo.root());
        assert!(pinned.to_string().contains("kept_for_ever"), "{pinned}");
        copy_of(repo.root(), &repo.beside("collect"));
        let outlook = Outlook {
            revisions,
            expected,
            pinned,
        };
        Self {
            repo,
            outlook,
            _server: server,
        }
    }

    pub(super) fn template(&self, scenario: Scenario) -> PathBuf {
        self.repo.beside(match scenario {
            Scenario::First | Scenario::Edit => "first",
            Scenario::Update => "update",
            Scenario::Collect => "collect",
            Scenario::Repair => "repair",
            Scenario::Request | Scenario::Hook => "hook",
            Scenario::Import => "import",
            Scenario::Embed => "embed",
        })
    }
}

impl Scenario {
    fn commands(self) -> &'static [&'static [&'static str]] {
        match self {
            Self::First => &[&["config", "set", "search.limit", "7"], &["index"]],
            Self::Update => &[&["index", "--history=all", "--graph"]],
            Self::Collect => &[&["gc", "--pin", TAG], &["gc"], &["gc", "--aggressive"]],
            Self::Repair => &[&["verify", "--repair"]],
            Self::Request => &[&["hooks", "run", "post-commit"]],
            Self::Hook => &[WORK],
            Self::Import => &[&["import", BUNDLE], &["import", "scip", SCIP]],
            Self::Embed => &[&["index"]],
            Self::Edit => &[&["edit", EDITS]],
        }
    }

    /// Runs the scenario in a copy of `template` with a variable set, up to the first command that fails. Returns the
    /// output.
    pub(super) fn run(self, template: &Path, copy: &Path, variable: (&str, &str)) -> Output {
        copy_of(template, copy);
        let _worker = match self {
            Self::Request => Some(lock_of_worker(copy)),
            Self::Hook => {
                leave_request(copy);
                None
            }
            Self::Embed => {
                succeed(copy, &["config", "trust"]);
                None
            }
            Self::Edit => {
                let edit = |path| json!({"op": "insert_last", "target": path, "text": "# edited\n"});
                fs::write(
                    copy.join(EDITS),
                    json!([edit("README.md"), edit("src/part1.py")]).to_string(),
                )
                .unwrap();
                None
            }
            _ => None,
        };
        let mut said = Vec::new();
        let mut last = None;
        for command in self.commands() {
            let output = program(copy, command)
                .env(variable.0, variable.1)
                .output_in_time()
                .unwrap();
            said.extend_from_slice(&output.stderr);
            let goes_on = is_done(&output);
            last = Some(output);
            if !goes_on {
                break;
            }
        }
        Output {
            stderr: said,
            ..last.unwrap()
        }
    }

    /// Checks everything that must hold afterwards (see [`check_sound`]), and that the next run completes the scenario.
    pub(super) fn check(self, copy: &Path, outlook: &Outlook, after: &str) {
        // Hooks remove files that hooks left.
        if matches!(self, Self::Request | Self::Hook) {
            leave_request(copy);
            succeed(copy, WORK);
            let status = program(copy, &["hooks", "status", "--json"]).output_in_time().unwrap();
            let status: Value = serde_json::from_slice(&status.stdout).unwrap();
            assert_eq!(status["last_run"]["outcome"], "indexed", "{after}: {status}");
            assert_eq!(status["waiting"], 0, "{after}: {status}");
        }
        // Missing vectors are computed. Then the answers of the built-in model are unchanged.
        if self == Self::Embed {
            let indexed: Value = serde_json::from_slice(&succeed(copy, &["index", "--json"]).stdout).unwrap();
            assert_eq!(indexed["vectors"]["missing"], 0, "{after}: {indexed}");
            fs::remove_file(copy.join(CONFIG)).unwrap();
        }
        // The next edit completes one that was interrupted.
        if self == Self::Edit {
            fs::write(copy.join(NO_EDITS), "[]").unwrap();
            let completed = program(copy, &["edit", NO_EDITS]).output_in_time().unwrap();
            assert!(is_done(&completed), "{after}: {}", stderr(&completed));
            let is_edited = ["README.md", "src/part1.py"]
                .map(|path| fs::read_to_string(copy.join(path)).unwrap().ends_with("# edited\n"));
            assert_eq!(is_edited[0], is_edited[1], "{after}");
        }
        check_sound(copy, &outlook.revisions, &outlook.expected, after);
        match self {
            Self::First | Self::Update | Self::Request | Self::Import | Self::Embed | Self::Edit => {}
            Self::Hook => check_pin(copy, outlook, after),
            Self::Collect => {
                check_pin(copy, outlook, after);
                succeed(copy, &["gc", "--aggressive"]);
                check_pin(copy, outlook, after);
                assert!(files_below(&copy.join(".codescout/damaged")).is_empty(), "{after}");
                assert!(!copy.join(".codescout/lexical-v0").exists(), "{after}");
                let verified = program(copy, &["verify"]).output_in_time().unwrap();
                assert!(verified.status.success(), "{after}: {}", stdout(&verified));
            }
            Self::Repair => {
                let repaired = program(copy, &["verify", "--repair"]).output_in_time().unwrap();
                assert!(is_done(&repaired), "{after}: {}", stderr(&repaired));
                let verified = program(copy, &["verify"]).output_in_time().unwrap();
                assert!(verified.status.success(), "{after}: {}", stdout(&verified));
                let names: Vec<Value> = pins(copy).iter().map(|pin| pin["name"].clone()).collect();
                assert_eq!(names, [PINNED, TAG], "{after}");
                succeed(copy, &["--ref", TAG, "search", "parse header"]);
            }
        }
    }
}

/// Returns a SCIP index of one file.
fn scip(repo: &TestRepo) -> Vec<u8> {
    let text = fs::read_to_string(repo.path("src/part1.py")).unwrap();
    let name = (
        "handle_packet_1",
        0,
        "=scip-python python parts 1 part1/handle_packet_1().",
    );
    index("scip-python", &[document("src/part1.py", &text, &[name])])
}

/// Exit code 1 means that something was found, as in `verify`.
pub(super) fn is_done(output: &Output) -> bool {
    matches!(output.status.code(), Some(0 | 1))
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn pins(root: &Path) -> Vec<Value> {
    let output = succeed(root, &["gc", "--pins", "--json"]);
    let pins: Value = serde_json::from_slice(&output.stdout).unwrap();
    pins["results"].as_array().unwrap().clone()
}

/// Checks the pinned snapshot, which cannot be rebuilt.
#[track_caller]
fn check_pin(root: &Path, outlook: &Outlook, after: &str) {
    let pins = pins(root);
    let is_kept = |pin: &Value| pin["name"] == PINNED && pin["indexed"] == true;
    assert!(pins.iter().any(is_kept), "{after}: {pins:?}");
    assert!(
        told_of_pin(root) == outlook.pinned,
        "{after}: the pinned snapshot says something else"
    );
}

fn told_of_pin(root: &Path) -> Value {
    let asked = ["--ref", PINNED, "search", "handle broken packet", "--json"];
    let answer: Value = serde_json::from_slice(&succeed(root, &asked).stdout).unwrap();
    answer["results"].clone()
}

/// Indexes two branches, pins one of them, and deletes both from git.
fn pin_and_forget(repo: &TestRepo) {
    for branch in [PINNED, "gone"] {
        repo.git(["checkout", "--quiet", "-b", branch, TAG]);
        for n in 0..3 {
            let name = format!("{branch}_for_ever_{n}");
            let text = format!("def {name}(packet):\n    \"\"\"Does handle a broken packet.\"\"\"\n    return {n}\n");
            repo.write(format!("src/{name}.py"), text);
        }
        repo.commit(branch);
        succeed(repo.root(), &["index"]);
    }
    succeed(repo.root(), &["gc", "--pin", PINNED]);
    repo.checkout("main");
    repo.git(["branch", "--quiet", "-D", PINNED, "gone"]);
    repo.git(["reflog", "expire", "--expire=now", "--all"]);
    repo.git(["gc", "--quiet", "--prune=now"]);
}

/// Creates a half-written file of a killed writer, and an old segment file that no state lists.
fn leave_behind(sidecar: &Path) {
    fs::write(sidecar.join("lexical-v1/.writing-old"), "half").unwrap();
    let orphan = sidecar.join(format!("artifacts-v1/{}.art", "0".repeat(32)));
    fs::write(&orphan, "old").unwrap();
    let file = File::options().append(true).open(orphan).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(9000))
        .unwrap();
}

/// Flips a bit in the first file of a store.
fn damage(sidecar: &Path, store: &str) {
    let folder = sidecar.join(store);
    let (name, mut bytes) = files_below(&folder).pop_first().unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(folder.join(name), bytes).unwrap();
}

/// Creates the request of a hook.
fn leave_request(root: &Path) {
    let folder = root.join(".git/codescout-hooks");
    fs::create_dir_all(&folder).unwrap();
    let request = format!("post-receive\n{}", root.join(".git").display());
    fs::write(folder.join("request main work tree"), request).unwrap();
}

/// Locks the queue as a running worker does, until dropped.
fn lock_of_worker(root: &Path) -> FileLock {
    let folder = root.join(".git/codescout-hooks");
    fs::create_dir_all(&folder).unwrap();
    FileLock::take(File::create(folder.join("lock")).unwrap())
        .unwrap()
        .unwrap()
}
