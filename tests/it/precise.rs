//! Tests `import scip`: what a compiler says about a file holds at every revision with the file.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::cli::{Called, call_in};
use crate::support::TestRepo;
use crate::support::scip::{document, index};

const ITEMS: &str =
    "class Item:\n    def price(self):\n        return 1\n\nclass Coupon:\n    def price(self):\n        return 2\n";
pub(crate) const TOTAL: &str = "import os\n\ndef total(thing):\n    os.getcwd()\n    return thing.price()\n";
const PRICE: &str = "scip-python python shop 1.0 items/Item#price().";

fn run(repo: &TestRepo, args: &[&str]) -> Called {
    call_in(repo.root(), args, b"")
}

/// Creates a project in which only a compiler can know what `thing.price` means. At the tag `v1`, the definition is in
/// another version of its file.
pub(crate) fn project() -> TestRepo {
    let repo = TestRepo::empty();
    repo.write("items.py", format!("# first\n{ITEMS}"));
    repo.write("total.py", TOTAL);
    repo.commit("one");
    repo.git(["tag", "v1"]);
    repo.write("items.py", ITEMS);
    repo.commit("two");
    repo.git(["tag", "v2"]);
    repo.write("README.md", "Prices\n");
    repo.commit("three");
    repo
}

pub(crate) fn documents() -> [Vec<u8>; 2] {
    let items = [
        ("Item", 0, "=scip-python python shop 1.0 items/Item#"),
        ("price", 0, &format!("={PRICE}")),
        ("price", 1, "=scip-python python shop 1.0 items/Coupon#price()."),
        ("self", 0, "local 0"),
    ];
    let total = [
        ("total", 0, "=scip-python python shop 1.0 total/total()."),
        ("getcwd", 0, "scip-python python python-stdlib 3.11 os/getcwd()."),
        ("price", 0, PRICE),
    ];
    [document("items.py", ITEMS, &items), document("total.py", TOTAL, &total)]
}

/// Writes an index to a file, and returns its path.
fn written(repo: &TestRepo, documents: &[Vec<u8>]) -> PathBuf {
    let path = repo.path(".git/index.scip");
    fs::write(&path, index("scip-python", documents)).unwrap();
    path
}

pub(crate) fn import(repo: &TestRepo, documents: &[Vec<u8>]) -> Called {
    let path = written(repo, documents);
    run(repo, &["import", "scip", path.to_str().unwrap(), "--json"])
}

pub(crate) fn callers(repo: &TestRepo, revision: &str, target: &str) -> Value {
    let args = ["--ref", revision, "graph", "callers", target, "--json"];
    call_in(repo.root(), &args, b"").json()
}

pub(crate) fn facts_file(repo: &TestRepo) -> PathBuf {
    let files = fs::read_dir(repo.path(".codescout/artifacts-v1")).unwrap();
    let mut paths = files.map(|entry| entry.unwrap().path());
    paths
        .find(|path| path.extension().is_some_and(|ending| ending == "precise"))
        .unwrap()
}

#[test]
fn a_compiler_decides_at_every_revision_with_the_same_files() {
    let repo = project();
    assert_eq!(callers(&repo, "HEAD", "Item.price")["candidates"], 1);
    let imported = import(&repo, &documents()).expect(0).json();
    assert_eq!(
        (&imported["joined"], &imported["names"]),
        (&2.into(), &6.into()),
        "{imported}"
    );
    assert_eq!(imported["refused"], Value::Object(Default::default()));
    let status = run(&repo, &["status", "--json"]).expect(0).json();
    assert_eq!(status["precise"][0]["files"], 2, "{status}");
    for revision in ["WORKTREE", "HEAD", "v2"] {
        let found = callers(&repo, revision, "Item.price");
        assert_eq!(found["tiers"]["compiler"], 1, "{revision}: {found}");
        assert_eq!(found["results"][0]["tier"], "compiler");
        assert_eq!(found["results"][0]["path"], "total.py");
        let other = callers(&repo, revision, "Coupon.price");
        assert_eq!(
            (&other["total"], &other["candidates"]),
            (&0.into(), &0.into()),
            "{other}"
        );
    }
    let callees = run(&repo, &["graph", "callees", "total"]).expect(0);
    assert!(
        callees.text().contains("1 callee in 1 file (compiler 1) · 1 outside"),
        "{}",
        callees.text()
    );
    // The definition is in a version of its file of which the compiler said nothing.
    let before = callers(&repo, "v1", "Item.price");
    assert_eq!(
        (&before["candidates"], &before["without_compiler"]),
        (&1.into(), &1.into()),
        "{before}"
    );
}

#[test]
fn a_file_of_another_repository_or_commit_is_refused() {
    let repo = project();
    let other = [document(
        "total.py",
        "def f(): pass\ndef g(): pass\n",
        &[
            ("f", 1, "=scip-python python shop 1.0 total/f()."),
            ("g", 0, "=scip-python python shop 1.0 total/g()."),
        ],
    )];
    let refused = import(&repo, &other).expect(2);
    assert!(
        refused
            .stderr
            .contains("does not describe this revision: of 1 documents, 0 fit"),
        "{}",
        refused.stderr
    );
    let absent = import(
        &repo,
        &[document("../etc/passwd", "root", &[("root", 0, "a b c d root.")])],
    )
    .expect(2);
    assert!(
        absent.stderr.contains("1 are about files that it does not have"),
        "{}",
        absent.stderr
    );
    let path = written(&repo, &documents());
    let scip = path.to_str().unwrap();
    let at_v1 = run(&repo, &["import", "scip", scip, "--commit", "v1", "--json"]).expect(2);
    assert!(at_v1.stderr.contains("1 fit; 0 are about files"), "{}", at_v1.stderr);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
    let cut = run(&repo, &["import", "scip", scip]).expect(2);
    assert!(cut.stderr.contains("not a SCIP index, or truncated"), "{}", cut.stderr);
    assert_eq!(callers(&repo, "HEAD", "Item.price")["candidates"], 1);
}

#[test]
fn one_document_that_does_not_fit_does_not_stop_the_others() {
    let repo = project();
    let [items, total] = documents();
    let outside = document("README.md", "Prices\n\n\n\nPrices", &[("Prices", 1, "a b c d Prices.")]);
    let imported = import(&repo, &[items.clone(), total, items, outside]).expect(0).json();
    assert_eq!((&imported["documents"], &imported["joined"]), (&4.into(), &2.into()));
    assert_eq!(imported["refused"]["listed twice"]["documents"], 1, "{imported}");
    assert_eq!(
        imported["refused"]["places outside of the file"]["paths"][0],
        "README.md"
    );
}

#[test]
fn paths_can_be_relative_to_the_current_folder() {
    let repo = TestRepo::empty();
    repo.write("packages/shop/items.py", ITEMS);
    repo.write("packages/shop/total.py", TOTAL);
    repo.commit("one");
    let path = written(&repo, &documents());
    let args = ["import", "scip", path.to_str().unwrap(), "--json"];
    let imported = call_in(&repo.path("packages/shop"), &args, b"").expect(0).json();
    assert_eq!(
        (&imported["folder"], &imported["joined"]),
        (&"packages/shop".into(), &2.into())
    );
}

#[test]
fn a_damaged_file_is_found_dropped_and_imported_again() {
    let repo = project();
    import(&repo, &documents()).expect(0);
    run(&repo, &["verify"]).expect(0);
    let path = facts_file(&repo);
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&path, bytes).unwrap();
    let found = callers(&repo, "HEAD", "Item.price");
    assert_eq!(found["candidates"], 1);
    let said = || run(&repo, &["--ref", "HEAD", "graph", "callers", "Item.price"]).stderr;
    assert!(said().contains("the facts of scip-python are not used"), "{}", said());
    run(&repo, &["verify"]).expect(1);
    run(&repo, &["verify", "--repair"]).expect(1);
    run(&repo, &["verify"]).expect(0);
    assert!(!said().contains("not used"), "{}", said());
    import(&repo, &documents()).expect(0);
    assert_eq!(callers(&repo, "HEAD", "Item.price")["tiers"]["compiler"], 1);
}

#[test]
fn importing_again_replaces_and_garbage_collection_drops() {
    let repo = project();
    let [items, total] = documents();
    import(&repo, &[items.clone(), total.clone()]).expect(0);
    let again = import(&repo, std::slice::from_ref(&total)).expect(0).json();
    assert_eq!(
        (&again["joined"], &again["stored_documents"]),
        (&1.into(), &2.into()),
        "{again}"
    );
    repo.write("total.py", format!("{TOTAL}# more\n"));
    repo.git(["commit", "-q", "--all", "--amend", "--message", "other"]);
    repo.git(["tag", "-d", "v1", "v2"]);
    repo.git(["checkout", "-q", "--orphan", "only"]);
    repo.commit("only");
    repo.git(["branch", "-D", "main"]);
    repo.git(["reflog", "expire", "--expire=now", "--all"]);
    run(&repo, &["index"]).expect(0);
    run(&repo, &["gc", "--aggressive"]).expect(0);
    run(&repo, &["verify"]).expect(0);
    let left = import(&repo, &[items]).expect(0).json();
    assert_eq!(left["stored_documents"], 1, "{left}");
}

#[test]
fn names_in_an_index_do_not_steer_a_terminal() {
    for hostile in ["x\u{1b}[2Jy", "x\u{9b}2Jy", "x\u{202e}y", "x\u{200b}y", "x\ny", "x\ry"] {
        let repo = project();
        let path = repo.beside("hostile.scip");
        let foreign = document(&format!("{hostile}.py"), "a = 1\n", &[("a", 0, "=local 1")]);
        fs::write(&path, index(hostile, &[&documents()[..], &[foreign]].concat())).unwrap();
        for args in [
            &["import", "scip", path.to_str().unwrap()][..],
            &["status"],
            &["doctor"],
            &["graph", "callers", "Item.price"],
            &["verify"],
        ] {
            let called = run(&repo, args);
            let text = format!("{}{}", called.text(), called.stderr);
            let is_hostile = |c: char| c.is_control() && c != '\n' || matches!(c, '\u{200b}' | '\u{202e}');
            assert!(!text.contains(is_hostile), "{args:?}: {text:?}");
            assert!(!text.lines().any(|line| line.starts_with('y')), "{args:?}: {text:?}");
        }
    }
}
