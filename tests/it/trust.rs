//! Tests whose settings determine servers and keys: only those of the user, never those of a checked-out or unpacked
//! file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use codescout::git::{OpenError, Repository};
use serde_json::json;

use crate::cli::call_in;
use crate::mcp::Client;
use crate::support::{InTime, Reply, Stub, TestRepo};

const QUESTION: &str = "how is the header of a packet parsed";
const FIXTURE: &str = "
    //- packet.py
    def parse_header(packet):
        \"\"\"Parses the header of a packet.\"\"\"
        return packet[0]
";

/// A clone that contains a bare repository as ordinary files in `tools`, with its own settings.
struct Planted {
    clone: TestRepo,
    stub: Stub,
}

impl Planted {
    fn new() -> Self {
        let stub = Stub::start(|_| Reply::status(500));
        let outer = TestRepo::new(FIXTURE);
        let bare = outer.bare_clone("bare");
        copy(bare.root(), &outer.path("tools"));
        let url = stub.url();
        let settings = format!(
            "[rerank]\nserver = '{url}'\napi = 'tei'\nkey_variable = 'TEST_SECRET'\n\
             [embedding]\nserver = '{url}'\nmodel = 'm'\nkey_file = '/etc/passwd'\n\
             [serve]\nroots = '/'\n"
        );
        outer.write("tools/codescout/config.toml", settings);
        for folder in ["tools/refs/heads", "tools/objects/info"] {
            outer.write(format!("{folder}/.keep"), "");
        }
        outer.commit("with a repository among the files");
        let clone = outer.clone_with("clone", &[]);
        Self { clone, stub }
    }

    fn tools(&self) -> PathBuf {
        self.clone.path("tools")
    }

    #[track_caller]
    fn assert_nothing_was_sent(&self) {
        assert!(self.stub.requests().is_empty(), "{:?}", self.stub.requests());
    }
}

fn copy(from: &Path, to: &Path) {
    assert!(
        Command::new("cp")
            .arg("-R")
            .arg(from)
            .arg(to)
            .status_in_time()
            .unwrap()
            .success()
    );
}

/// Runs the program in a folder with variables set and a separate home directory.
fn call_with(folder: &Path, home: &Path, args: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_codescout"));
    command.args(args).current_dir(folder).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", home);
    command.env("TEST_SECRET", "canary").envs(variables.iter().copied());
    command.output_in_time().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_repository_among_the_files_of_a_clone_does_not_configure_itself() {
    let planted = Planted::new();
    let home = planted.clone.beside("home");
    for args in [&["search", QUESTION][..], &["index"], &["config"]] {
        let output = call_with(&planted.tools(), &home, args, &[]);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains("is tracked"), "{args:?}: {}", stderr(&output));
    }
    // Also if the checked-out files are no longer tracked.
    planted.clone.git(["rm", "-r", "-q", "--cached", "tools"]);
    for args in [&["search", QUESTION][..], &["index"]] {
        let output = call_with(&planted.tools(), &home, args, &[]);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("ignoring "), "{args:?}: {}", stderr(&output));
    }
    // With a worktree or a sidecar elsewhere.
    let elsewhere = planted.clone.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::rename(planted.tools().join("codescout"), elsewhere.join(".codescout")).unwrap();
    let config = planted.tools().join("config");
    let text = fs::read_to_string(&config)
        .unwrap()
        .replace("bare = true", "bare = false");
    fs::write(&config, format!("{text}[core]\n\tworktree = {}\n", elsewhere.display())).unwrap();
    let search = |variables: &[(&str, &str)]| {
        stderr(&call_with(
            &planted.tools(),
            &home,
            &["search", QUESTION, "--ref", "HEAD"],
            variables,
        ))
    };
    let refused = search(&[]);
    assert!(refused.contains("do not refer to each other"), "{refused}");
    let tools = planted.tools();
    let named = [("GIT_DIR", &tools), ("GIT_WORK_TREE", &elsewhere)];
    let ignored = search(&named.map(|(name, path)| (name, path.to_str().unwrap())));
    assert!(ignored.contains("ignoring "), "{ignored}");
    planted.assert_nothing_was_sent();
}

#[test]
fn what_was_unpacked_names_no_server() {
    let planted = Planted::new();
    // As unpacked from an archive, outside any repository.
    let unpacked = planted.clone.beside("unpacked");
    copy(&planted.tools(), &unpacked);
    let home = planted.clone.beside("home");
    let settings = unpacked.join("codescout/config.toml");
    for args in [&["search", QUESTION][..], &["index"]] {
        let output = call_with(&unpacked, &home, args, &[]);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let message = stderr(&output);
        assert!(
            message.contains("not recorded") && message.contains("config trust"),
            "{args:?}: {message}"
        );
    }
    let mut client = Client::start(&unpacked, &[]);
    client.initialize("test");
    let message = client.call("search", json!({"query": QUESTION})).failure();
    assert!(message.contains("not recorded"), "{message}");
    // Setting one value does not make the other values in the file trusted.
    let set = call_with(&unpacked, &home, &["config", "set", "search.limit", "3"], &[]);
    assert!(
        stderr(&set).contains("the settings are still invalid"),
        "{}",
        stderr(&set)
    );
    let output = call_with(&unpacked, &home, &["search", QUESTION], &[]);
    assert_eq!(output.status.code(), Some(2));
    planted.assert_nothing_was_sent();
    // After reviewing and fixing the file, the user may approve it.
    let text = fs::read_to_string(&settings).unwrap();
    fs::write(&settings, text.replace("key_file = '/etc/passwd'", "")).unwrap();
    let trusted = call_with(&unpacked, &home, &["config", "trust"], &[]);
    let printed = String::from_utf8_lossy(&trusted.stdout).into_owned();
    assert!(
        printed.contains("rerank.server") && printed.contains("TEST_SECRET"),
        "{printed}{}",
        stderr(&trusted)
    );
    assert!(!printed.contains("gc.auto"), "{printed}");
    call_with(&unpacked, &home, &["index"], &[]);
    assert!(!planted.stub.requests().is_empty());
    let n_requests = planted.stub.requests().len();
    let text = fs::read_to_string(&settings).unwrap();
    fs::write(&settings, text + "# changed\n").unwrap();
    assert_eq!(call_with(&unpacked, &home, &["index"], &[]).status.code(), Some(2));
    assert_eq!(planted.stub.requests().len(), n_requests);
}

#[test]
fn what_the_user_sets_counts_for_one_repository_or_for_all() {
    let repo = TestRepo::new(FIXTURE);
    let other = repo.clone_with("other", &[]);
    let home = repo.beside("home");
    let stub = Stub::start(|_| Reply::status(500));
    let call = |folder: &Path, args: &[&str]| call_with(folder, &home, args, &[]);
    let get = |folder: &Path, key: &str| {
        let output = call(folder, &["config", "--json"]);
        let answer: serde_json::Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
        let setting = answer["results"]
            .as_array()
            .unwrap()
            .iter()
            .find(|setting| setting["key"] == key);
        let setting = setting.unwrap();
        (
            setting["value"].as_str().unwrap().to_owned(),
            setting["origin"].as_str().unwrap().to_owned(),
        )
    };
    assert!(
        call(repo.root(), &["config", "set", "rerank.server", &stub.url()])
            .status
            .success()
    );
    assert_eq!(get(repo.root(), "rerank.server").0, stub.url());
    assert_eq!(get(other.root(), "rerank.server").0, "none");
    // Outside any repository too.
    let file = home.join(".config/codescout/config.toml");
    assert!(
        call(
            Path::new("/"),
            &["config", "set", "--user", "embedding.key_file", "/my/key"]
        )
        .status
        .success()
    );
    assert!(
        call(other.root(), &["config", "set", "--user", "search.limit", "7"])
            .status
            .success()
    );
    let expected = ("7".to_owned(), file.display().to_string());
    assert_eq!(
        (get(repo.root(), "search.limit"), get(other.root(), "search.limit")),
        (expected.clone(), expected)
    );
    assert_eq!(get(other.root(), "embedding.key_file").0, "/my/key");
    call(repo.root(), &["config", "set", "search.limit", "8"]);
    assert_eq!(
        (get(repo.root(), "search.limit").0, get(other.root(), "search.limit").0),
        ("8".into(), "7".into())
    );
    assert_eq!(get(repo.root(), "rerank.server").0, stub.url());
    let wrong = call(Path::new("/"), &["config", "set", "--user", "gc.auto", "perhaps"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        call(Path::new("/"), &["config", "unset", "--user", "search.limit"])
            .status
            .success()
    );
    assert_eq!(get(other.root(), "search.limit").0, "10");
    // A clone inside another repository is indexed like any other, but only the user's settings apply.
    let nested = repo.path("nested");
    copy(other.root(), &nested);
    fs::write(nested.join(".codescout.toml"), "[search]\nlimit = 1\n").unwrap();
    assert_eq!(get(&nested, "search.limit").0, "10");
    assert!(call(&nested, &["config", "set", "search.limit", "5"]).status.success());
    assert_eq!(get(&nested, "search.limit").0, "5");
    assert!(call(&nested, &["search", "parse_header"]).status.success());
    // A worktree inside another worktree of the same repository does not count as nested.
    repo.git(["worktree", "add", "-q", repo.path("linked").to_str().unwrap()]);
    assert_eq!(get(&repo.path("linked"), "search.limit").0, "8");
}

#[test]
fn bare_repositories_are_come_upon_only_where_git_is_told_so() {
    let repo = TestRepo::new(FIXTURE);
    let bare = repo.bare_clone("bare");
    let home = repo.beside("home");
    fs::create_dir(&home).unwrap();
    let explicit = [
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "safe.bareRepository"),
        ("GIT_CONFIG_VALUE_0", "explicit"),
    ];
    let status = |folder: &Path, variables: &[(&str, &str)]| {
        let output = call_with(folder, &home, &["status"], variables);
        if !output.status.success() {
            assert!(stderr(&output).contains("safe.bareRepository"), "{}", stderr(&output));
        }
        output.status.success()
    };
    assert!(status(bare.root(), &[]));
    assert!(!status(bare.root(), &explicit));
    assert!(!status(&bare.path("objects"), &explicit));
    assert!(!status(
        bare.root(),
        &[("GIT_CONFIG_PARAMETERS", "'safe.barerepository'='explicit'")]
    ));
    // Named by variables as in git's hooks. A repository with a worktree is not bare.
    let named = [&explicit[..], &[("GIT_DIR", bare.root().to_str().unwrap())]].concat();
    assert!(status(bare.root(), &named));
    assert!(status(repo.root(), &explicit) && status(&repo.path(".git"), &explicit));
    // The repository's own settings are ignored; those of the user apply.
    bare.git(["config", "safe.bareRepository", "explicit"]);
    assert!(status(bare.root(), &[]));
    let global = repo.beside("global");
    fs::write(&global, "[safe]\n\tbareRepository = explicit\n").unwrap();
    assert!(!status(bare.root(), &[("GIT_CONFIG_GLOBAL", global.to_str().unwrap())]));
    fs::copy(&global, home.join(".gitconfig")).unwrap();
    bare.git(["config", "safe.bareRepository", "all"]);
    assert!(!status(bare.root(), &[]));
}

#[test]
fn a_server_without_roots_speaks_of_its_own_repository_alone() {
    let planted = Planted::new();
    let clone = &planted.clone;
    let nested = clone.path("nested");
    copy(TestRepo::new(FIXTURE).root(), &nested);
    // A folder that claims to be a worktree of the clone, with files elsewhere.
    let outside = TestRepo::new("//- secret.txt\nhidden\n");
    let claims = clone.path("claims");
    fs::create_dir_all(claims.join("objects")).unwrap();
    fs::create_dir_all(claims.join("refs")).unwrap();
    fs::write(claims.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(claims.join("commondir"), "../.git\n").unwrap();
    fs::write(claims.join("gitdir"), format!("{}\n", outside.path(".git").display())).unwrap();
    let linked = clone.worktree("linked");
    let mut client = Client::legacy(clone, &[]);
    for repo in [planted.tools(), nested.clone(), claims, outside.root().to_owned()] {
        for target in ["packet.py", "secret.txt"] {
            let answer = client.call("read", json!({"target": target, "repo": repo}));
            assert!(
                answer.failure().contains("is refused"),
                "{}: {answer:?}",
                repo.display()
            );
        }
    }
    for repo in [linked.root(), &clone.path(".git"), clone.root()] {
        let answer = client.call("read", json!({"target": "packet.py", "repo": repo}));
        assert!(answer.text.contains("parse_header"), "{}: {answer:?}", repo.display());
    }
    let mut client = Client::legacy(clone, &["--root", nested.to_str().unwrap()]);
    let answer = client.call("read", json!({"target": "packet.py", "repo": nested}));
    assert!(answer.text.contains("parse_header"), "{answer:?}");
    planted.assert_nothing_was_sent();
}

#[test]
fn only_what_git_lists_is_a_work_tree_of_a_repository() {
    let repo = TestRepo::new(FIXTURE);
    let linked = repo.worktree("linked");
    let [main, work_tree] = [repo.root(), linked.root()].map(|root| Repository::discover(root).unwrap());
    assert!(work_tree.is_work_tree_of(&main) && main.is_work_tree_of(&work_tree));
    assert!(!main.is_inside_another() && !work_tree.is_inside_another());
    let bare = repo.bare_clone("repo/inside.git");
    let inside = Repository::discover(bare.root()).unwrap();
    assert!(inside.is_inside_another() && !inside.is_work_tree_of(&main));
    assert!(matches!(
        Repository::discover(&repo.beside("")),
        Err(OpenError::NotARepository { .. })
    ));
    call_in(bare.root(), &["index"], b"").expect(0);
}
