//! Tests malicious remotes: the amount of data that they can send is limited, wrong data is refused, and messages
//! reveal no credentials of the address.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::project;
use crate::cli::call_in;
use crate::indexed::files_below;
use crate::support::{Reply, Stub, TestRepo, assert_within, output_of, wait_until};

/// A clone and its bare origin, which contains an index that is valid at first.
pub(super) struct Trap {
    remote: TestRepo,
    reference: String,
    files: String,
    pub(super) clone: TestRepo,
}

impl Trap {
    pub(super) fn new() -> Self {
        let repo = project();
        let remote = repo.bare_clone("remote.git");
        remote.git(["config", "uploadpack.allowFilter", "true"]);
        let mine = remote.clone_with("mine", &[]);
        call_in(mine.root(), &["push", "--yes"], b"").expect(0);
        let reference = remote.git(["for-each-ref", "--format=%(refname)", "refs/codescout"]);
        let files = remote.git(["ls-tree", &reference]) + "\n";
        let clone = remote.clone_with("clone", &[]);
        fs::create_dir(clone.beside("tmp")).unwrap();
        Self {
            remote,
            reference,
            files,
            clone,
        }
    }

    fn blob(&self, bytes: &[u8]) -> String {
        let id = self.remote.git_with_input(["hash-object", "-w", "--stdin"], bytes);
        String::from_utf8(id).unwrap().trim().to_owned()
    }

    /// Replaces the files on the ref. `files` are lines for `git mktree`.
    fn put(&self, files: &str) {
        let tree = self.remote.git_with_input(["mktree", "--missing"], files.as_bytes());
        let commit = self
            .remote
            .git(["commit-tree", "-m", "x", String::from_utf8(tree).unwrap().trim()]);
        self.remote.git(["update-ref", &self.reference, &commit]);
    }

    /// Returns the id of the file with this extension.
    fn id_of(&self, ending: &str) -> String {
        let line = self.files.lines().find(|line| line.ends_with(ending)).unwrap();
        line.split([' ', '\t']).nth(2).unwrap().to_owned()
    }

    /// Returns the bundle on the remote.
    pub(super) fn part(&self) -> Vec<u8> {
        self.remote.git_bytes(["cat-file", "blob", &self.id_of(".bundle")])
    }

    /// Replaces the bundle on the remote.
    pub(super) fn put_part(&self, bytes: &[u8]) {
        let part = self.part().len();
        let files = self.files.replace(&self.id_of(".bundle"), &self.blob(bytes));
        self.put(&files.replace(&format!("-{part}."), &format!("-{}.", bytes.len())));
    }

    fn start(&self, args: &[&str]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_codescout"));
        command.args(args).current_dir(self.clone.root()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap());
        command
            .env("HOME", self.clone.beside("tmp"))
            .env("TMPDIR", self.clone.beside("tmp"));
        command.env("CODESCOUT_LOG", "trace");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    /// Runs a command that must fail with this message and leave no files. Returns its output.
    #[track_caller]
    pub(super) fn refuses(&self, about: &str, args: &[&str], said: &str) -> String {
        let output = output_of(self.start(args), Vec::new());
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        assert_eq!(output.status.code(), Some(2), "{about}: {text}");
        assert!(text.contains(said) && !text.contains("panicked"), "{about}: {text}");
        let left = files_below(&self.clone.beside("tmp"));
        assert!(left.is_empty(), "{about}: {:?}", left.keys());
        text
    }
}

/// Returns bytes that cannot be compressed.
fn noise(n_bytes: usize) -> Vec<u8> {
    let mut reader = blake3::Hasher::new().finalize_xof();
    let mut bytes = vec![0; n_bytes];
    reader.fill(&mut bytes);
    bytes
}

#[test]
fn more_than_was_told_or_is_allowed_is_not_taken() {
    let trap = Trap::new();
    let (part, keys) = (trap.id_of(".bundle"), trap.id_of(".keys"));
    let name = trap
        .files
        .split('\t')
        .nth(1)
        .unwrap()
        .split('.')
        .next()
        .unwrap()
        .to_owned();
    trap.refuses("less is allowed", &["pull", "--yes", "--max-size", "1K"], "--max-size");

    // The file name claims a few hundred bytes.
    let (digits, _) = name.split_once('-').unwrap();
    let large = trap.blob(&noise(8 << 20));
    trap.put(
        &trap
            .files
            .replace(&part, &large)
            .replace(&name, &format!("{digits}-900")),
    );
    trap.refuses("a part of another size", &["pull", "--yes"], "the transfer exceeds");
    assert!(!trap.clone.path(".codescout").exists(), "nothing was begun");

    // Key lists with invalid content, and lists that are too large.
    trap.put(&trap.files.replace(&keys, &large));
    trap.refuses("long lists", &["pull", "--yes", "--max-size", "1M"], "--max-size");
    let zeros = trap.blob(&vec![0; 70 << 20]);
    trap.put(&trap.files.replace(&keys, &zeros));
    trap.refuses("a list that opens to much", &["pull", "--yes"], "lists");

    // A remote that cannot filter objects sends everything at once.
    trap.remote.git(["config", "uploadpack.allowFilter", "false"]);
    trap.put(&format!("{}100644 blob {large}\tsomething else\n", trap.files));
    trap.refuses("no filter", &["pull", "--yes", "--max-size", "2M"], "--max-size");
    trap.put(&trap.files);
    let output = output_of(trap.start(&["pull", "--yes", "--max-size", "2M"]), Vec::new());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn what_is_no_plain_file_is_refused() {
    let trap = Trap::new();
    let line = trap.files.lines().find(|line| line.ends_with(".bundle")).unwrap();
    for (about, other) in [
        ("a link", line.replace("100644 blob", "120000 blob")),
        ("a program", line.replace("100644 blob", "100755 blob")),
        ("a repository", format!("160000 commit {}\tx-1.bundle", "1".repeat(40))),
    ] {
        trap.put(&trap.files.replace(line, &other));
        trap.refuses(about, &["pull", "--yes"], "not written by codescout");
    }
    // Files whose names are not those of parts are ignored, regardless of their content.
    for name in [
        "-1.bundle",
        "x-1.bundle",
        "..bundle",
        "a b-9.bundle",
        &format!("{}-1e9.bundle", "0".repeat(32)),
    ] {
        trap.put(&line.replace(line.split('\t').nth(1).unwrap(), name));
        let output = output_of(trap.start(&["pull", "--yes", "--json"]), Vec::new());
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(
            (&answer["parts_there"], &answer["pulled"]),
            (&0.into(), &false.into()),
            "{name}"
        );
    }
    // A bundle of another repository under the name of this build.
    let other = TestRepo::new("//- other.rs\nfn somewhere_else() {}\n");
    let bytes = call_in(other.root(), &["export", "-", "-q"], b"").expect(0).stdout;
    let (id, name) = (trap.blob(&bytes), format!("{}-{}.bundle", "0".repeat(32), bytes.len()));
    let keys = trap.id_of(".keys");
    trap.put(&format!(
        "100644 blob {id}\t{name}\n100644 blob {keys}\t{}\n",
        name.replace("bundle", "keys")
    ));
    trap.refuses("another repository's", &["pull", "--yes"], "in this repository");
}

#[test]
fn a_server_that_says_nothing_is_left_when_asked() {
    let trap = Trap::new();
    let silent = Stub::start(|_| Reply::status(200).after(Duration::from_secs(300)));
    let child = trap.start(&["pull", "--yes", &silent.url()]);
    wait_until("the server is asked", || !silent.requests().is_empty());
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let stopped = Instant::now();
    let output = output_of(child, Vec::new());
    assert_eq!(
        output.status.code(),
        Some(130),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_within(Duration::from_secs(20), stopped, "a silent server");
    assert!(files_below(&trap.clone.beside("tmp")).is_empty());
}

#[test]
fn what_an_address_holds_is_told_to_nobody_else() {
    let trap = Trap::new();
    let stub = Stub::start(|seen| match seen.header("authorization") {
        None => Reply::status(401).with("www-authenticate", "Basic realm=\"me:s3cr3t\""),
        Some(_) => Reply::status(500).body(b"s3cr3t? fatal: s3cr3t"),
    });
    let host = stub.url().replace("http://", "");
    let addresses = [
        format!("http://me:s3cr3t@{host}/x"),
        format!("http://s3cr3t@{host}/x"),
        format!("http://me:s3%63r3t@{host}/x?key=s3cr3t"),
        format!("http://me:a/s3cr3t@{host}/x"),
        format!("gopher://me:s3cr3t@{host}/x"),
        "http://me:s3cr3t@127.0.0.1:1/x".to_owned(),
    ];
    for address in &addresses {
        trap.clone.git(["config", "remote.odd.url", address]);
        for args in [
            &["pull", "--yes", "--json", "--", address][..],
            &["pull", "--yes", "odd"],
            &["push", "--yes", "-vv", "--", address],
        ] {
            let text = trap.refuses(address, args, "");
            assert!(
                !text.contains("s3cr3t") && !text.contains("s3%63r3t"),
                "{address}: {text}"
            );
        }
    }
    assert!(
        stub.requests()
            .iter()
            .any(|seen| seen.header("authorization").is_some()),
        "git does use it"
    );
    for (path, bytes) in files_below(&trap.clone.path(".codescout")) {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("s3cr3t"), "{}", path.display());
    }
}
