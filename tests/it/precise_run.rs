//! Tests `precise run` with programs in place of an indexer.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::cli::Called;
use crate::precise::{callers, documents, project};
use crate::support::scip::index;
use crate::support::{InTime, TestRepo, write_executable};

/// Writes a program that runs a script. `$out` is the path of the index, and `$scip` an index to copy.
fn install(repo: &TestRepo, folder: &Path, name: &str, script: &str) {
    let scip = repo.beside("made.scip");
    fs::write(&scip, index("scip-python", &documents())).unwrap();
    let script = format!("#!/bin/sh\nfor out; do :; done\nscip={}\n{script}\n", scip.display());
    write_executable(&folder.join(name), &script);
}

/// Returns a new folder whose parents only this user and root can write.
fn private_folder() -> TempDir {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let places = [Some(env!("CARGO_TARGET_TMPDIR").into()), home];
    let is_private = |folder: &PathBuf| {
        let mut parents = folder.ancestors().map(|folder| folder.metadata().unwrap());
        parents.all(|found| found.mode() & 0o022 == 0)
    };
    let place = places.into_iter().flatten().find(is_private);
    let place =
        place.expect("these tests need a home or target folder that, like its parents, no other user can write");
    TempDir::new_in(place).unwrap()
}

/// Runs the program with a folder in front of the path.
fn run(repo: &TestRepo, path: &str, args: &[&str]) -> Called {
    let folder = private_folder();
    let called = run_in(repo, path, args, folder.path(), Path::new(""));
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        0,
        "the checkout is removed"
    );
    called
}

/// Runs the program with folders for temporary and cached files.
fn run_in(repo: &TestRepo, path: &str, args: &[&str], temporary: &Path, cache: &Path) -> Called {
    let rest = std::env::var("PATH").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_codescout"));
    command.args(["precise", "run"]).args(args).current_dir(repo.root());
    command
        .env_clear()
        .env("HOME", repo.beside(""))
        .env("PATH", format!("{path}:{rest}"));
    command.env("TMPDIR", temporary).env("XDG_CACHE_HOME", cache);
    let output = command.stdin(Stdio::null()).output_in_time().unwrap();
    Called {
        code: output.status.code().unwrap(),
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Runs a script as the indexer of Python.
fn run_script(repo: &TestRepo, script: &str, args: &[&str]) -> Called {
    let folder = repo.beside("programs");
    install(repo, &folder, "scip-python", script);
    run(repo, folder.to_str().unwrap(), &[&["python"], args].concat())
}

#[test]
fn an_indexer_reads_a_clean_checkout_and_its_index_is_imported() {
    let repo = project();
    repo.write("items.py", "# not committed\n");
    repo.write("new.py", "");
    let script = "ls >&2; git log >&2; grep -c committed items.py >&2; echo \"$@\" >&2; cp $scip $out";
    let ran = run_script(&repo, script, &["--json", "-v"]).expect(0);
    let answer = ran.json();
    assert_eq!(
        (&answer["joined"], &answer["files_left_out"]),
        (&2.into(), &0.into()),
        "{answer}"
    );
    assert!(ran.stderr.contains("README.md\nitems.py\ntotal.py\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("not a git repository"), "{}", ran.stderr);
    assert!(ran.stderr.contains("--project-name=project"), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("it executes nothing of the repository"),
        "{}",
        ran.stderr
    );
    assert_eq!(callers(&repo, "HEAD", "Item.price")["tiers"]["compiler"], 1);
    // At `v1`, the definition is in another text.
    let other = run_script(&repo, "cp $scip $out", &["--ref", "v1"]).expect(2);
    assert!(
        other.stderr.contains("does not describe this revision"),
        "{}",
        other.stderr
    );
}

#[test]
fn an_indexer_that_fails_imports_nothing_and_is_explained() {
    let repo = project();
    let cases = [
        (
            "echo no such module >&2; cp $scip $out; exit 3",
            "did not finish: exit status: 3\n  no such module",
        ),
        ("echo done", "wrote no index\n  done"),
        ("mkdir $out", "wrote no index"),
        ("echo text > $out", "not a SCIP index"),
    ];
    for (script, said) in cases {
        let failed = run_script(&repo, script, &[]).expect(2);
        assert!(failed.stderr.contains(said), "{script}: {}", failed.stderr);
    }
    let slow = run_script(&repo, "sleep 600 & sleep 600", &["--timeout", "1"]).expect(2);
    assert!(
        slow.stderr.contains("stopped after 1 seconds") && slow.stderr.contains("--timeout"),
        "{}",
        slow.stderr
    );
    assert_eq!(callers(&repo, "HEAD", "Item.price")["candidates"], 1);
}

#[test]
fn programs_of_the_repository_are_not_run() {
    let repo = project();
    let evil = "touch ../evil; cp $scip $out";
    for folder in ["bin", "."] {
        install(&repo, &repo.path(folder), "scip-python", evil);
        install(&repo, &repo.path(folder), "unshare", evil);
    }
    repo.git(["add", "--all"]);
    repo.commit_index("programs");
    let inside = repo.path("bin");
    let linked = repo.beside("linked");
    std::os::unix::fs::symlink(&inside, &linked).unwrap();
    for path in ["bin", ".", "", inside.to_str().unwrap(), linked.to_str().unwrap()] {
        let missing = run(&repo, path, &["python"]).expect(2);
        assert!(
            missing.stderr.contains("scip-python is not installed"),
            "{path}: {}",
            missing.stderr
        );
        assert!(
            missing.stderr.contains("npm install -g @sourcegraph/scip-python"),
            "{}",
            missing.stderr
        );
    }
    // Neither does the indexer find them.
    let folder = repo.beside("programs");
    install(
        &repo,
        &folder,
        "scip-python",
        "command -v helper && exit 1; cp $scip $out",
    );
    install(&repo, &repo.path("."), "helper", evil);
    run(&repo, &format!(".:{}", folder.display()), &["python"]).expect(0);
    assert!(!repo.beside("evil").exists());
}

#[test]
fn an_indexer_runs_below_no_folder_that_others_can_write() {
    let repo = project();
    let programs = repo.beside("programs");
    install(&repo, &programs, "scip-python", "pwd -P >&2; cp $scip $out");
    let base = private_folder();
    let base = base.path().canonicalize().unwrap();
    let folder = |path: &str, mode: u32| {
        let folder = base.join(path);
        fs::create_dir_all(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
        folder
    };
    let run_in =
        |temporary: &Path, cache: &Path| run_in(&repo, programs.to_str().unwrap(), &["python", "-v"], temporary, cache);
    let (own, cache) = (folder("own", 0o755), folder("cache", 0o700));
    let usual = run_in(&own, &cache).expect(0).stderr;
    assert!(usual.contains(own.to_str().unwrap()), "{usual}");

    let mut open = vec![
        folder("all", 0o777),
        folder("sticky", 0o1777),
        folder("group", 0o775),
        folder("above", 0o777).join("below"),
        base.join("link"),
        base.join("missing"),
        repo.path("inside"),
        PathBuf::from("inside"),
    ];
    folder("above/below", 0o700);
    std::os::unix::fs::symlink(base.join("above/below"), base.join("link")).unwrap();
    fs::create_dir(repo.path("inside")).unwrap();
    let other = folder("other", 0o755);
    // Only root can give folders away.
    if std::os::unix::fs::chown(&other, Some(12345), None).is_ok() {
        open.push(other);
    }
    for temporary in &open {
        let ran = run_in(temporary, &cache).expect(0).stderr;
        let inside = cache.join("codescout");
        assert!(ran.contains(inside.to_str().unwrap()), "{}: {ran}", temporary.display());
        assert_eq!(fs::read_dir(inside).unwrap().count(), 0, "the checkout is removed");
        let refused = run_in(temporary, &base.join("all")).expect(2).stderr;
        assert!(
            refused.contains("other users could place") && refused.contains("set TMPDIR"),
            "{refused}"
        );
        assert!(!refused.contains("project\n"), "the indexer ran: {refused}");
    }
}

#[test]
fn a_build_is_executed_only_if_the_user_allows_it() {
    let repo = project();
    let folder = repo.beside("programs");
    install(&repo, &folder, "rust-analyzer", "cp $scip $out");
    let path = folder.to_str().unwrap();
    let refused = run(&repo, path, &["rust"]).expect(2);
    assert!(
        refused.stderr.contains("build scripts and procedural macros") && refused.stderr.contains("--allow-build"),
        "{}",
        refused.stderr
    );
    run(&repo, path, &["rust", "--allow-build"]).expect(0);
    run(&repo, path, &["cobol"]).expect(2);
}

#[test]
#[cfg(target_os = "linux")]
fn the_network_is_blocked_where_the_system_allows_it() {
    let repo = project();
    let count = "wc -l < /proc/net/dev >&2; cp $scip $out";
    let said = |args: &[&str]| run_script(&repo, count, args).expect(0);
    let blocked = said(&["-v", "--json"]);
    if blocked.json()["network_blocked"] == false {
        assert!(
            blocked.stderr.contains("which cannot be blocked here"),
            "{}",
            blocked.stderr
        );
        return crate::indexed::skip("user namespaces are not allowed");
    }
    assert!(
        blocked.stderr.contains("without network") && blocked.stderr.contains("\n3\n"),
        "{}",
        blocked.stderr
    );
    let open = said(&["-v", "--json", "--allow-network"]);
    assert!(
        open.json()["network_blocked"] == false && open.stderr.contains("with network"),
        "{}",
        open.stderr
    );
}
