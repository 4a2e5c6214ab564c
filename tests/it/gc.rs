//! Tests garbage collection: unused data is deleted, and nothing else changes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use codescout::config::Overrides;
use codescout::ingest::{Cause, CollectOutcome, Survey, Trigger};
use codescout::model::{Ctx, Progress, Stage};
use codescout::session::Workspace;
use codescout::sidecar::{Sidecar, State};
use codescout::snapshot::{SnapshotStore, View};
use serde_json::Value;

use crate::cli::call;
use crate::incremental::{commit_something, compare};
use crate::indexed::{Answer, CheckedProgress, Dice, Indexed, NEVER, files_below};
use crate::support::{Ending, TestRepo};

const QUERIES: [&str; 5] = [
    "function_3",
    "shared retry",
    "only_on_side",
    "where are things flushed",
    "Shape",
];

/// Settings that delete all dead data and ignore reflogs.
const EAGER: &str = "reflog_days = 0\ndead_percent = 0\n";

/// Returns a file with several functions.
fn source(name: &str) -> String {
    let function = |number: usize| {
        format!(
            "/// Flushes {name} after a shared retry.\npub fn {name}_{number}(shape: Shape) -> u32 {{\n    shape.area({number})\n}}\n"
        )
    };
    (0..6).map(function).collect()
}

/// Creates `main` with three commits and the tags `v1` and `v2`, and branches `side` and `other` with their own files.
fn sample() -> TestRepo {
    let repo = TestRepo::empty();
    for number in 0..6 {
        repo.write(
            format!("src/function_{number}.rs"),
            source(&format!("function_{number}")),
        );
    }
    // A file that is skipped because of its content. That decision is stored for its blob.
    repo.write("src/data.bin", [0; 2_000]);
    repo.commit("start");
    repo.tag("v1");
    for branch in ["side", "other"] {
        repo.git(["checkout", "--quiet", "-b", branch, "main"]);
        for number in 0..4 {
            repo.write(
                format!("{branch}/{number}.rs"),
                source(&format!("only_on_{branch}_{number}")),
            );
        }
        repo.remove("src/function_5.rs");
        repo.commit(branch);
    }
    repo.checkout("main");
    repo.write("src/function_0.rs", source("function_0_again"));
    repo.commit("again");
    repo.tag("v2");
    repo.write("README.md", "# Shape\n\nAbout shared things.\n");
    repo.commit("read me");
    repo
}

/// Opens a workspace with these collection settings and a sidecar outside the repository.
fn indexed(repo: &TestRepo, name: &str, settings: &str) -> Indexed {
    let sidecar = repo.beside(name);
    Sidecar::open_or_create(&sidecar).unwrap();
    std::fs::write(sidecar.join("config.toml"), format!("[gc]\n{settings}")).unwrap();
    Indexed::at(repo.root(), sidecar)
}

fn collect(indexed: &Indexed) -> CollectOutcome {
    let collected = indexed
        .workspace
        .collect(Trigger::Asked, Ctx::new(&CheckedProgress::default(), &NEVER));
    collected.unwrap().unwrap()
}

fn survey(indexed: &Indexed) -> Survey {
    indexed.workspace.survey().unwrap().unwrap()
}

fn state(sidecar: &Path) -> State {
    Sidecar::open(sidecar).unwrap().state().unwrap().unwrap()
}

/// Returns the trees that have a snapshot, in order.
fn stored(sidecar: &Path) -> Vec<String> {
    let state = state(sidecar);
    let opened = Sidecar::open(sidecar).unwrap();
    let trees = SnapshotStore::new(&opened, state.epoch, state.recipe).trees().unwrap();
    let mut trees: Vec<String> = trees.iter().map(ToString::to_string).collect();
    trees.sort();
    trees
}

fn trees(repo: &TestRepo, references: &[&str]) -> Vec<String> {
    let mut trees: Vec<String> = references.iter().map(|reference| repo.tree_of(reference)).collect();
    trees.sort();
    trees
}

/// Returns a view that needs no indexing.
fn known_view(indexed: &Indexed, reference: &str) -> View {
    let opened = indexed.try_open(reference).unwrap();
    assert_eq!(opened.ingested.n_new_blobs, 0, "{reference}");
    opened.view.clone()
}

fn answers(indexed: &Indexed, view: &View) -> Vec<Answer> {
    indexed.answers(view, &QUERIES)
}

/// Compares the answers with those of a sidecar built in one run.
fn assert_like_fresh(indexed: &Indexed, repo: &TestRepo, references: &[&str], name: &str) {
    for reference in references {
        let fresh = Indexed::at(
            repo.root(),
            repo.beside(&format!("fresh-{name}-{}", repo.tree_of(reference))),
        );
        compare(indexed, &fresh, reference, &format!("{name}: {reference}"));
    }
}

#[test]
fn what_was_set_aside_goes_when_somebody_asks() {
    let repo = sample();
    let indexed = indexed(&repo, "sidecar", EAGER);
    indexed.view("HEAD");
    let aside = repo.beside("sidecar/damaged");
    std::fs::create_dir(&aside).unwrap();
    std::fs::write(aside.join("old.vec"), "old").unwrap();
    let unasked = indexed
        .workspace
        .collect(Trigger::Unasked(&[]), Ctx::new(&CheckedProgress::default(), &NEVER));
    unasked.unwrap().unwrap();
    assert!(aside.join("old.vec").exists());
    collect(&indexed);
    assert!(!aside.join("old.vec").exists());
}

#[test]
fn a_deleted_branch_takes_its_blobs_along_and_nothing_else() {
    let repo = sample();
    let grown = Indexed::new(repo.root());
    for reference in ["v1", "v2", "side", "other", "HEAD"] {
        grown.view(reference);
    }
    let sidecar = repo.path(".codescout");
    std::fs::write(sidecar.join("config.toml"), format!("[gc]\n{EAGER}")).unwrap();
    let questions: &[&[&str]] = &[
        &["search", "shared retry", "--json", "--explain", "-n", "50"],
        &["search", "only_on_other_2", "--json", "-n", "50"],
        &["grep", "area", "--json"],
        &["symbol", "function_1_3", "--refs", "--body", "--json"],
        &["outline", "--view", "map", "--json"],
    ];
    let ask = || -> Vec<Value> {
        let mut answers = Vec::new();
        for reference in ["v1", "v2", "other", "WORKTREE"] {
            for question in questions {
                let mut args = question.to_vec();
                args.extend(["--ref", reference]);
                let called = call(&repo, &args);
                assert!(called.code < 2, "{args:?}: {}", called.stderr);
                let mut value = called.json();
                value.as_object_mut().unwrap().remove("took_ms");
                answers.push(value);
            }
        }
        answers
    };
    let before = ask();
    repo.git(["branch", "-D", "side"]);
    let planned = call(&repo, &["gc", "--dry-run", "--json"]).expect(0).json();
    assert_eq!(planned["dead_snapshots"]["count"], 1);
    // The branch has four files of its own; other snapshots contain its unchanged files.
    assert_eq!(planned["dead_blobs"]["count"], 4);
    let done = call(&repo, &["gc", "--json"]).expect(0).json();
    assert_eq!(
        (&done["rewrote"], &done["segments_after"]),
        (&Value::Bool(true), &Value::from(1))
    );
    assert!(done["freed_bytes"].as_u64().unwrap() > 4_000, "{done}");
    assert_eq!(ask(), before);
    assert_eq!(stored(&sidecar), trees(&repo, &["v1", "v2", "other", "HEAD"]));
    let again = call(&repo, &["gc", "--dry-run", "--json"]).expect(0).json();
    for dead in ["dead_snapshots", "dead_blobs", "leftover_files"] {
        assert_eq!(again[dead]["count"], 0, "{dead}");
    }
    let left = Indexed::new(repo.root());
    let found = left.paths(&known_view(&left, "other"), "only_on_side_1");
    assert!(found.iter().all(|path| !path.starts_with("side/")), "{found:?}");
    assert_like_fresh(&left, &repo, &["v1", "v2", "other", "HEAD"], "deleted");
    // The decisions to skip files are still stored. A tree whose files are all listed again has one new blob, the
    // rules.
    repo.write(".gitattributes", "*.none -text\n");
    repo.commit("rules");
    assert_eq!(left.ingested("HEAD").n_new_blobs, 1);
    repo.git(["reset", "--quiet", "--hard", "HEAD~1"]);
    collect(&left);
    // Nothing is left to delete, so the next collection changes nothing.
    let files = files_below(&sidecar.join("artifacts-v1"));
    assert!(!collect(&left).rewrote);
    assert_eq!(files_below(&sidecar.join("artifacts-v1")), files);
}

#[test]
fn what_git_keeps_is_kept() {
    let repo = sample();
    let linked = repo.worktree("linked");
    linked.write("linked.rs", source("linked"));
    linked.commit("linked");
    linked.git(["checkout", "--quiet", "--detach"]);
    linked.git(["branch", "--quiet", "-D", "linked"]);
    let detached = linked.rev_parse("HEAD");
    repo.write("README.md", "stashed");
    repo.git(["stash", "--quiet"]);
    repo.git(["update-ref", "refs/remotes/origin/side", "side"]);
    repo.git(["update-ref", "refs/pull/1/head", "other"]);
    repo.git(["branch", "--quiet", "-D", "side", "other"]);
    let lost = {
        repo.write("lost.rs", source("lost"));
        let lost = repo.commit("lost");
        repo.git(["reset", "--quiet", "--hard", "HEAD~1"]);
        lost
    };
    let references = [
        "v1",
        "v2",
        "HEAD",
        "stash",
        "origin/side",
        "refs/pull/1/head",
        &detached,
    ];
    let short = indexed(&repo, "short", EAGER);
    let long = indexed(&repo, "long", "reflog_days = 100000\ndead_percent = 0\n");
    for each in [&short, &long] {
        references.iter().for_each(|reference| drop(each.view(reference)));
        each.view(&lost);
    }
    let causes = |survey: &Survey| -> Vec<(Cause, u64)> {
        let all = survey.by_cause().into_iter();
        all.map(|(cause, share)| (cause, share.n)).collect()
    };
    let mut expected = vec![
        (Cause::WorkTree, 2),
        (Cause::Remote, 1),
        (Cause::Tag, 2),
        (Cause::OtherRef, 1),
        (Cause::Stash, 1),
    ];
    assert_eq!(causes(&collect(&short).survey), expected);
    assert_eq!(stored(&repo.beside("short")), trees(&repo, &references));
    expected.push((Cause::Reflog, 1));
    assert_eq!(causes(&collect(&long).survey), expected);
    let mut all = references.to_vec();
    all.push(&lost);
    assert_eq!(stored(&repo.beside("long")), trees(&repo, &all));
    assert_like_fresh(&short, &repo, &references, "short");
    assert_like_fresh(&long, &repo, &all, "long");
}

#[test]
fn a_dry_run_changes_nothing() {
    let repo = sample();
    let grown = Indexed::new(repo.root());
    for reference in ["side", "other", "v1", "HEAD"] {
        grown.view(reference);
    }
    std::fs::create_dir(repo.path(".codescout/artifacts-v0")).unwrap();
    repo.write(".codescout/artifacts-v0/old.art", [0; 1000]);
    repo.write(format!(".codescout/lexical-v1/{}.lex", "a".repeat(32)), [0; 500]);
    repo.git(["branch", "-D", "side"]);
    let before = files_below(repo.root());
    let planned = call(&repo, &["gc", "--dry-run", "--json"]).expect(0).json();
    assert_eq!(files_below(repo.root()), before);
    assert_eq!(
        (&planned["old_folders"]["count"], &planned["old_folders"]["bytes"]),
        (&1.into(), &1000.into())
    );
    assert_eq!(
        (&planned["leftover_files"]["count"], &planned["leftover_files"]["bytes"]),
        (&1.into(), &500.into())
    );
    // The shares add up to the total.
    let sum = |value: &Value| value["bytes"].as_u64().unwrap();
    let kept: u64 = planned["kept"].as_array().unwrap().iter().map(sum).sum();
    let parts = kept + sum(&planned["dead_snapshots"]) + sum(&planned["dead_blobs"]) + sum(&planned["leftover_files"]);
    assert!(
        parts.abs_diff(planned["bytes_before"].as_u64().unwrap()) < 10,
        "{planned}"
    );
    let status = call(&repo, &["status", "--bytes", "--json"]).expect(0).json();
    assert_eq!(status["causes"]["kept"], planned["kept"]);
    assert_eq!(status["bytes"]["leftover"], 500);
    assert_eq!(files_below(repo.root()), before);

    let done = call(&repo, &["gc"]).expect(0).text();
    assert!(done.contains("freed"), "{done}");
    assert!(!repo.path(".codescout/artifacts-v0").exists());
    assert!(
        !repo
            .path(format!(".codescout/lexical-v1/{}.lex", "a".repeat(32)))
            .exists()
    );
    // Without an index, a collection does nothing and creates none.
    let empty = TestRepo::new(
        "
        //- a.txt
        one
    ",
    );
    assert_eq!(call(&empty, &["gc", "--json"]).expect(0).json()["freed_bytes"], 0);
    assert!(!empty.path(".codescout").exists());
}

#[test]
fn pins_outlive_their_commits() {
    let repo = sample();
    let side = repo.rev_parse("side");
    let tree = repo.tree_of("side");
    call(&repo, &["index", "--all-branches"]).expect(0);
    call(&repo, &["gc", "--pin", "side", "--pin", "v1"]).expect(0);
    let pins = call(&repo, &["gc", "--pins", "--json"]).expect(0).json();
    assert_eq!(
        (&pins["results"][0]["commit"], &pins["results"][1]["indexed"]),
        (&side.as_str().into(), &true.into())
    );
    let ask = |reference: &str| {
        let value = call(&repo, &["search", "only_on_side_2", "--json", "--ref", reference])
            .expect(0)
            .json();
        value["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|hit| hit["path"].clone())
            .collect::<Vec<_>>()
    };
    let before = ask("side");
    repo.git(["tag", "-d", "v1"]);
    forget_branch(&repo, "side");
    repo.write(".codescout/config.toml", format!("[gc]\n{EAGER}"));
    call(&repo, &["gc", "--aggressive"]).expect(0);
    for reference in ["side", &side, &side[..10], &tree, &tree[..10]] {
        assert_eq!(ask(reference), before, "{reference}");
        let value = call(&repo, &["search", "x", "--json", "--ref", reference]).json();
        assert_eq!(value["complete"], false);
    }
    assert_eq!(call(&repo, &["gc", "--unpin", "nothing"]).code, 2);
    call(&repo, &["gc", "--unpin", "side"]).expect(0);
    call(&repo, &["gc"]).expect(0);
    for reference in ["side", &side, &tree] {
        assert_eq!(call(&repo, &["search", "x", "--ref", reference]).code, 2, "{reference}");
    }
    assert_eq!(call(&repo, &["gc", "--pins"]).expect(0).text().lines().count(), 1);
    // Unreadable pins must not be treated as no pins.
    let pins = repo.read(".codescout/pins");
    repo.write(".codescout/pins", &pins[..pins.len() - 1]);
    let before = files_below(&repo.path(".codescout"));
    let refused = call(&repo, &["gc"]).expect(2);
    assert!(refused.stderr.contains("pins"), "{}", refused.stderr);
    assert_eq!(files_below(&repo.path(".codescout")), before);
}

/// Deletes a branch and all objects that only it had.
fn forget_branch(repo: &TestRepo, branch: &str) {
    repo.git(["branch", "--quiet", "-D", branch]);
    repo.git(["reflog", "expire", "--expire=now", "--all"]);
    repo.git(["gc", "--quiet", "--prune=now"]);
}

#[test]
fn a_vanished_commit_is_answered_from_the_index_until_it_is_collected() {
    let repo = sample();
    let (commit, tree) = (repo.rev_parse("side"), repo.tree_of("side"));
    call(&repo, &["index", "side", "HEAD"]).expect(0);
    forget_branch(&repo, "side");
    let found = call(&repo, &["search", "only_on_side_1", "--ref", &tree, "--json"])
        .expect(0)
        .json();
    assert_eq!(
        (&found["tree"], &found["complete"]),
        (&tree.as_str().into(), &false.into())
    );
    assert!(
        found["incomplete_because"][0]
            .as_str()
            .unwrap()
            .contains("no longer in git"),
        "{found}"
    );
    assert_eq!(found["results"][0]["path"], "side/1.rs");
    let others: &[&[&str]] = &[
        &["grep", "only_on_side"],
        &["symbol", "only_on_side_1_2", "--body", "--refs"],
        &["outline"],
        &["outline", "--view", "map"],
        &["outline", "side/1.rs"],
        &["read", "side/1.rs"],
        &["read", "src/function_1.rs"],
        &["status"],
        &["index"],
    ];
    for args in others {
        let mut args = args.to_vec();
        args.extend(["--ref", &tree]);
        let called = call(&repo, &args);
        assert!(
            called.code <= 2 && !called.stderr.contains("panicked"),
            "{args:?}: {}",
            called.stderr
        );
    }
    // Unless the commit is pinned, only the tree's id is in the index.
    assert_eq!(call(&repo, &["search", "x", "--ref", &commit]).code, 2);
    call(&repo, &["gc"]).expect(0);
    assert_eq!(call(&repo, &["search", "only_on_side_1", "--ref", &tree]).code, 2);
    call(&repo, &["search", "function_1_2"]).expect(0);
}

#[test]
fn differences_whose_base_goes_pass_to_an_heir() {
    for (settings, rewrites) in [(EAGER, true), ("reflog_days = 0\ndead_percent = 100\n", false)] {
        let repo = sample();
        let name = format!("grown{rewrites}");
        let grown = indexed(&repo, &name, settings);
        // All other manifests are differences from the first one.
        let references = ["v1", "side", "other", "v2", "HEAD"];
        references.iter().for_each(|reference| drop(grown.view(reference)));
        repo.git(["tag", "-d", "v1"]);
        repo.git(["branch", "-D", "side"]);
        let left = ["other", "v2", "HEAD"];
        let before = left.map(|reference| answers(&grown, &known_view(&grown, reference)));
        let epoch = state(&repo.beside(&name)).epoch;
        assert_eq!(collect(&grown).rewrote, rewrites);
        assert_eq!(state(&repo.beside(&name)).epoch != epoch, rewrites);
        assert_eq!(stored(&repo.beside(&name)), trees(&repo, &left));
        assert_eq!(
            left.map(|reference| answers(&grown, &known_view(&grown, reference))),
            before
        );
        assert_like_fresh(&grown, &repo, &left, &name);
        let opened = Sidecar::open(&repo.beside(&name)).unwrap();
        let state = state(&repo.beside(&name));
        let snapshots = SnapshotStore::new(&opened, state.epoch, state.recipe);
        let bases = snapshots
            .trees()
            .unwrap()
            .into_iter()
            .map(|tree| snapshots.manifest(tree).unwrap().unwrap().base());
        assert_eq!(bases.flatten().count(), 2, "one is whole, the others rest on it");
    }
}

#[test]
fn a_store_over_its_limit_loses_the_least_important_first() {
    let repo = sample();
    repo.git(["tag", "-d", "v2"]);
    // One commit of each kind, each with the same amount of new data.
    let commits: Vec<String> = ["passing", "tagged", "remote", "local"]
        .map(|name| {
            repo.git(["checkout", "--quiet", "--detach", "main"]);
            for number in 0..20 {
                let path = format!("{name}/{number}.rs");
                repo.write(
                    path,
                    source(&format!("{name}_{number}")).replace("shape", &format!("{name}_{number}_form")),
                );
            }
            repo.commit(name)
        })
        .to_vec();
    repo.git(["update-ref", "refs/tags/tagged", &commits[1]]);
    repo.git(["update-ref", "refs/remotes/origin/remote", &commits[2]]);
    repo.git(["update-ref", "refs/heads/local", &commits[3]]);
    repo.git(["branch", "--quiet", "-D", "side", "other"]);
    repo.checkout("main");
    let fill = |name: &str, max_bytes: u64| {
        let each = indexed(&repo, name, &format!("reflog_days = 100000\nmax_bytes = {max_bytes}\n"));
        let all = ["v1", "HEAD"].into_iter().chain(commits.iter().map(String::as_str));
        all.for_each(|reference| drop(each.view(reference)));
        each
    };
    let all = fill("unlimited", 0);
    let survey = survey(&all);
    let (live, causes) = (survey.live_bytes(), survey.by_cause());
    assert_eq!(collect(&all).survey.over_budget, []);
    let of = |wanted| causes.iter().find(|(cause, _)| *cause == wanted).unwrap().1.bytes;
    // The limit leaves space for all reasons up to one. Snapshots of later reasons are deleted; others remain.
    let order = [Cause::Reflog, Cause::Tag, Cause::Remote, Cause::Branch];
    let mut max_bytes = live;
    for (step, cause) in order.into_iter().enumerate() {
        let limited = fill(&format!("limited{step}"), max_bytes - of(cause).min(max_bytes) / 3);
        let done = collect(&limited);
        assert!(done.fits, "{cause:?}");
        let gone: Vec<Cause> = done.survey.over_budget.iter().map(|gone| gone.keep.cause).collect();
        assert!(gone.contains(&cause), "{cause:?}: {gone:?}");
        let spared = &order[step + 1..];
        assert!(gone.iter().all(|gone| !spared.contains(gone)), "{cause:?}: {gone:?}");
        assert_like_fresh(&limited, &repo, &["HEAD"], &format!("limited{step}"));
        assert_eq!(limited.ingested("HEAD").n_new_blobs, 0);
        max_bytes -= of(cause);
    }
    let hopeless = fill("hopeless", 1);
    hopeless
        .workspace
        .pin("v1", Ctx::new(&CheckedProgress::default(), &NEVER))
        .unwrap();
    let done = collect(&hopeless);
    assert!(!done.fits);
    assert_eq!(stored(&repo.beside("hopeless")), trees(&repo, &["v1", "HEAD"]));
}

#[test]
fn a_reader_keeps_its_view_over_a_collection() {
    let repo = sample();
    let grown = indexed(&repo, "grown", EAGER);
    for reference in ["v1", "side", "HEAD"] {
        grown.view(reference);
    }
    let held = known_view(&grown, "side");
    let before = answers(&grown, &held);
    let kept = answers(&grown, &known_view(&grown, "v1"));
    repo.git(["branch", "-D", "side"]);
    assert!(collect(&grown).rewrote);
    assert_eq!(answers(&grown, &held), before);
    assert_eq!(answers(&grown, &known_view(&grown, "v1")), kept);
}

#[test]
fn unasked_only_what_is_old_goes_and_what_goes_waits() {
    let repo = sample();
    let grown = indexed(&repo, "grown", EAGER);
    for reference in ["v1", "side", "HEAD"] {
        grown.view(reference);
    }
    repo.git(["branch", "-D", "side"]);
    let unasked = || {
        grown
            .workspace
            .collect(Trigger::Unasked(&[]), Ctx::new(&CheckedProgress::default(), &NEVER))
            .unwrap()
            .unwrap()
    };
    assert!(!unasked().rewrote, "made a moment ago");
    let folder = repo.beside("grown").join("snapshots-v1");
    for entry in std::fs::read_dir(folder).unwrap() {
        let file = std::fs::File::options()
            .append(true)
            .open(entry.unwrap().path())
            .unwrap();
        let before = std::time::SystemTime::now() - std::time::Duration::from_secs(48 * 3600);
        file.set_modified(before).unwrap();
    }
    let done = unasked();
    assert!(done.rewrote && done.waiting.n > 0, "{done:?}");
    assert_eq!(collect(&grown).waiting.n, 0);
    // A collection does not wait for another writer, and is not due after few snapshots.
    assert_eq!(
        grown
            .workspace
            .collect_if_due(&[], Ctx::new(&CheckedProgress::default(), &NEVER))
            .unwrap(),
        None
    );
}

/// Ends the run at one of its steps, as a kill would.
struct Killer {
    left: AtomicUsize,
}

impl Progress for Killer {
    fn begin(&self, _stage: Stage, _n_blobs: usize) {}

    fn advance(&self, _n_bytes: u64) {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 0 {
            std::panic::resume_unwind(Box::new("killed"));
        }
    }

    fn end(&self) {}
}

fn copy_folder(from: &Path, to: &Path) {
    for (path, bytes) in files_below(from) {
        let path = to.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

#[test]
fn killed_at_any_step_the_old_or_the_new_stands() {
    for (settings, least_steps) in [(EAGER, 5), ("reflog_days = 0\ndead_percent = 100\n", 3)] {
        let repo = sample();
        let original = format!("original{least_steps}");
        let grown = indexed(&repo, &original, settings);
        let pinned = repo.tree_of("other");
        for reference in ["v1", "side", "other", "v2", "HEAD"] {
            grown.view(reference);
        }
        grown
            .workspace
            .pin("other", Ctx::new(&CheckedProgress::default(), &NEVER))
            .unwrap();
        let left = ["v2", "HEAD", pinned.as_str()];
        repo.git(["branch", "--quiet", "-D", "other"]);
        repo.git(["tag", "-d", "v1"]);
        forget_branch(&repo, "side");
        // Without the text of files, words side by side are not found.
        let before = left.map(|reference| answers(&grown, &known_view(&grown, reference)));
        let mut n_steps = 0;
        loop {
            let sidecar = repo.beside(&format!("killed{least_steps}-{n_steps}"));
            copy_folder(&repo.beside(&original), &sidecar);
            std::fs::create_dir_all(sidecar.join("snapshots-v1")).unwrap();
            let killed = Indexed::at(repo.root(), sidecar.clone());
            let killer = Killer {
                left: AtomicUsize::new(n_steps),
            };
            let run = || killed.workspace.collect(Trigger::Asked, Ctx::new(&killer, &NEVER));
            let ended = catch_unwind(AssertUnwindSafe(run));
            for (reference, before) in left.iter().zip(&before) {
                let again = Indexed::at(repo.root(), sidecar.clone());
                assert_eq!(
                    &answers(&again, &known_view(&again, reference)),
                    before,
                    "{n_steps}: {reference}"
                );
            }
            let done = collect(&killed);
            assert_eq!((done.waiting.n, survey(&killed).dead_snapshots.n), (0, 0), "{n_steps}");
            assert_eq!(stored(&sidecar).len(), 3, "{n_steps}");
            for (reference, before) in left.iter().zip(&before) {
                assert_eq!(
                    &answers(&killed, &known_view(&killed, reference)),
                    before,
                    "{n_steps}: {reference}"
                );
            }
            if let Ok(ended) = ended {
                assert!(!ended.unwrap().unwrap().interrupted);
                break;
            }
            n_steps += 1;
        }
        assert!(n_steps >= least_steps, "{n_steps}");
    }
}

#[test]
fn an_interrupted_collection_leaves_everything_as_it_was() {
    let repo = sample();
    let grown = indexed(&repo, "grown", EAGER);
    for reference in ["v1", "side", "HEAD"] {
        grown.view(reference);
    }
    repo.git(["branch", "-D", "side"]);
    let before = files_below(&repo.beside("grown"));
    let interrupt = AtomicBool::new(true);
    let done = grown
        .workspace
        .collect(Trigger::Asked, Ctx::new(&CheckedProgress::default(), &interrupt))
        .unwrap()
        .unwrap();
    assert!(done.interrupted && !done.rewrote);
    assert_eq!(files_below(&repo.beside("grown")), before);
}

#[test]
fn writers_and_readers_at_once_lose_nothing() {
    let repo = sample();
    let sidecar = repo.beside("grown");
    let grown = indexed(&repo, "grown", EAGER);
    let kept = ["v1", "v2", "other", "HEAD"];
    kept.iter().for_each(|reference| drop(grown.view(reference)));
    let expected = kept.map(|reference| answers(&grown, &known_view(&grown, reference)));
    // Commits without refs. Writers index them and collectors delete them again.
    let passing: Vec<String> = (0..6)
        .map(|number| {
            repo.git(["checkout", "--quiet", "--detach", "main"]);
            repo.write(format!("passing/{number}.rs"), source(&format!("passing_{number}")));
            repo.commit("passing")
        })
        .collect();
    repo.checkout("main");
    let is_over = AtomicBool::new(false);
    let root = repo.root().to_owned();
    let open = || Indexed::at(&root, sidecar.clone());
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let reader = open();
                    let mut n_reads = 0;
                    while !is_over.load(Ordering::Relaxed) {
                        for (reference, expected) in kept.iter().zip(&expected) {
                            assert_eq!(&answers(&reader, &known_view(&reader, reference)), expected);
                            n_reads += 1;
                        }
                    }
                    n_reads
                })
            })
            .collect();
        let writers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let writer = open();
                    for commit in &passing {
                        let view = writer.view(commit);
                        assert_eq!(view.provenance().commit.unwrap().to_string(), *commit);
                        writer
                            .workspace
                            .collect(Trigger::Aggressive, Ctx::new(&CheckedProgress::default(), &NEVER))
                            .unwrap();
                    }
                })
            })
            .collect();
        {
            let _ending = Ending(&is_over);
            writers.into_iter().for_each(|writer| writer.join().unwrap());
        }
        let n_reads: usize = readers.into_iter().map(|reader| reader.join().unwrap()).sum();
        assert!(n_reads > 0);
    });
    collect(&grown);
    assert_eq!(stored(&sidecar), trees(&repo, &kept));
}

#[test]
fn after_any_events_it_is_as_if_made_at_once() {
    for seed in 0..4 {
        let mut dice = Dice::new(0x6763 + seed);
        let repo = TestRepo::new(
            "
            //- src/start.rs
            fn start() { retry(); }
        ",
        );
        let grown = indexed(&repo, "grown", EAGER);
        grown.view("HEAD");
        for step in 0..10 {
            let did = commit_something(&repo, &mut dice);
            let about = format!("seed {seed}, step {step}: {did}");
            let listed = repo.git(["for-each-ref", "--format=%(refname:short)", "refs/heads"]);
            let branches: Vec<&str> = listed.lines().collect();
            if dice.below(3) == 0 {
                // Git refuses to delete the checked-out branch.
                repo.try_git(["branch", "--quiet", "-D", dice.one_of::<&str>(&branches)]);
            } else {
                grown.view(dice.one_of::<&str>(&branches));
            }
            if dice.below(2) == 0 {
                let occasion = *dice.one_of(&[Trigger::Asked, Trigger::Aggressive]);
                grown
                    .workspace
                    .collect(occasion, Ctx::new(&CheckedProgress::default(), &NEVER))
                    .unwrap();
                assert_eq!(survey(&grown).dead_blobs.n, 0, "{about}");
            }
            if dice.below(3) == 0 {
                let fresh = Indexed::at(repo.root(), repo.beside(&format!("fresh{step}")));
                compare(&grown, &fresh, "HEAD", &about);
            }
        }
        let fresh = Indexed::at(repo.root(), repo.beside("fresh-last"));
        compare(&grown, &fresh, "WORKTREE", &format!("seed {seed}"));
    }
}

/// A missing sidecar is no error, and neither is one that is deleted after it was opened.
#[test]
fn without_a_sidecar_there_is_nothing_to_collect() {
    let repo = sample();
    let overrides = Overrides {
        sidecar: Some(repo.beside("none")),
        ..Overrides::default()
    };
    let workspace = Workspace::open(repo.root(), &overrides).unwrap();
    assert_eq!(
        workspace
            .collect(Trigger::Asked, Ctx::new(&CheckedProgress::default(), &NEVER))
            .unwrap(),
        None
    );
    assert_eq!(workspace.survey().unwrap(), None);
    assert!(!repo.beside("none").exists());
}

#[test]
fn a_pinned_snapshot_that_cannot_be_read_for_now_is_not_thrown_away() {
    let repo = sample();
    let tree = repo.tree_of("side");
    call(&repo, &["index", "side", "HEAD"]).expect(0);
    call(&repo, &["gc", "--pin", "side"]).expect(0);
    forget_branch(&repo, "side");
    repo.write(".codescout/config.toml", format!("[gc]\n{EAGER}"));
    let folder = repo.path(".codescout/snapshots-v1");
    let mut files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let manifest = files
        .find(|path| path.file_name().unwrap().to_string_lossy().starts_with(&tree))
        .unwrap();
    let good = std::fs::read(&manifest).unwrap();
    // Opening fails for a reason other than the content, as if no file descriptors were left.
    std::fs::remove_file(&manifest).unwrap();
    std::os::unix::fs::symlink("elsewhere", &manifest).unwrap();
    let refused = call(&repo, &["gc"]).expect(2);
    assert!(refused.stderr.contains(&tree), "{}", refused.stderr);
    assert!(manifest.is_symlink());
    // The manifest is damaged, and git no longer has the tree.
    std::fs::remove_file(&manifest).unwrap();
    std::fs::write(&manifest, &good[..good.len() / 2]).unwrap();
    let refused = call(&repo, &["gc"]).expect(2);
    assert!(refused.stderr.contains("pinned as \"side\""), "{}", refused.stderr);
    std::fs::write(&manifest, &good).unwrap();
    call(&repo, &["gc"]).expect(0);
    call(&repo, &["search", "only_on_side_1", "--ref", &tree]).expect(0);
    // After the pin is removed, a collection succeeds.
    call(&repo, &["gc", "--unpin", "side"]).expect(0);
    call(&repo, &["gc"]).expect(0);
    assert_eq!(stored(&repo.path(".codescout")), trees(&repo, &["HEAD"]));
}

#[test]
fn a_damaged_note_of_the_last_collection_counts_as_none() {
    let repo = sample();
    let grown = indexed(&repo, "grown", EAGER);
    grown.view("HEAD");
    collect(&grown);
    let note = repo.beside("grown").join("gc");
    let good = std::fs::read(&note).unwrap();
    std::fs::write(&note, &good[..good.len() - 1]).unwrap();
    assert_eq!(
        grown
            .workspace
            .collect_if_due(&[], Ctx::new(&CheckedProgress::default(), &NEVER))
            .unwrap(),
        None
    );
    collect(&grown);
    assert_eq!(std::fs::read(&note).unwrap().len(), good.len());
}
