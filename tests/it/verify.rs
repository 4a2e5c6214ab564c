//! Tests `verify`: the files it reads, the damage it finds, and the result of `--repair`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use codescout::history::{Batch, BatchWriter, CommitData, SymbolBatch, symbol_batch_bytes};
use codescout::ingest::{Depth, Repair, Verification};
use codescout::model::Ctx;
use codescout::sidecar::{Sidecar, Store, StoredFile};
use std::time::{Duration, Instant};

use crate::cli::call;
use crate::indexed::{Answer, CheckedProgress, Indexed, NEVER, files_below};
use crate::support::TestRepo;

const DEEP: Depth = Depth {
    from_blobs: true,
    sample: None,
};

const FIXTURE: &str = "
    //- src/packet.rs
    /// Reads the header; a broken packet is dropped.
    pub fn parse_header(bytes: &[u8]) -> Option<Header> {
        Header::read(bytes.get(..16)?)
    }
    //- src/lib.py
    class Packet:
        def handle(self):
            self.drop_if_broken()
    //- image.bin
    \0\0\0
    //- README.md
    # Packets

    How they are handled.
";

pub(crate) fn verify(index: &Indexed, depth: Depth) -> Verification {
    let sidecar = index.workspace.storage.open_to_check().unwrap().unwrap();
    index
        .workspace
        .writer(&sidecar)
        .verify(depth, Ctx::new(&CheckedProgress::default(), &NEVER))
        .unwrap()
}

fn repair(index: &Indexed, depth: Depth) -> Repair {
    let sidecar = index.workspace.storage.open_to_check().unwrap().unwrap();
    index
        .workspace
        .writer(&sidecar)
        .repair(depth, Ctx::new(&CheckedProgress::default(), &NEVER))
        .unwrap()
}

/// Creates an index with two segments, one of them merged from many, and many manifests.
fn indexed() -> (TestRepo, Indexed) {
    let repo = TestRepo::new(FIXTURE);
    let index = Indexed::new(repo.root());
    for number in 0..10 {
        index.view("HEAD");
        repo.write(
            format!("src/more{number}.go"),
            format!("package more\n\nfunc Number{number}() {{\n\treturn\n}}\n"),
        );
        repo.commit("more");
    }
    index.view("HEAD");
    (repo, index)
}

fn answers(index: &Indexed) -> Vec<Answer> {
    index.answers(&index.view("HEAD"), &["parse_header", "a broken packet"])
}

#[test]
fn verifying_commits_counts_every_file_once() {
    let (repo, index) = indexed();
    let head = index.workspace.target("HEAD").unwrap().unwrap().commit.unwrap();
    let progress = CheckedProgress::default();
    index
        .workspace
        .records()
        .record_history(&[head], Ctx::new(&progress, &NEVER))
        .unwrap();
    assert!(verify(&index, DEEP).is_sound());
    drop(repo);
}

#[test]
fn a_sound_sidecar_is_read_in_full_and_is_what_the_blobs_give() {
    let (repo, index) = indexed();
    let found = verify(&index, DEEP);
    assert!(found.is_sound(), "{:?}", found.findings);
    let sidecar = files_below(&repo.path(".codescout"));
    // All files except the lock.
    assert_eq!(found.n_files, sidecar.len() - 1);
    let state = index.workspace.storage.open_with_state().unwrap().unwrap().1.unwrap();
    assert!(
        state.segments.len() > 1 && state.segments[0].n_blobs > 8,
        "nothing was merged"
    );
    assert_eq!(
        (found.n_segments, found.n_blobs),
        (state.segments.len(), u64::from(state.n_blobs()))
    );
    assert_eq!((found.n_docs, found.n_manifests), (u64::from(state.n_docs()), 11));
    let derived = found.derived.unwrap();
    assert_eq!((derived.n_blobs, derived.n_docs), (found.n_blobs, found.n_docs));
    assert_eq!((derived.n_manifests, derived.n_absent_blobs), (11, 0));
    assert!(!found.leftovers.is_empty() && found.unknown.is_empty());
    assert!(
        files_below(&repo.path(".codescout")) == sidecar,
        "checking changed something"
    );
}

#[test]
fn a_sample_and_a_limit_say_what_was_not_looked_at() {
    let (_repo, index) = indexed();
    let sample = Depth {
        from_blobs: true,
        sample: Some(4),
    };
    let found = verify(&index, sample);
    let derived = found.derived.unwrap();
    assert!((1..=4).contains(&derived.n_blobs), "{derived:?}");
    assert_eq!(derived.n_blobs + derived.n_skipped_blobs, found.n_blobs);
    assert_eq!(derived.n_manifests + derived.n_skipped_manifests, 11);
    assert!(found.is_sound(), "{:?}", found.findings);

    let progress = CheckedProgress::default();
    let over = Ctx::new(&progress, &NEVER).until(Some(Instant::now() - Duration::from_secs(1)));
    let sidecar = index.workspace.storage.open_to_check().unwrap().unwrap();
    let found = index.workspace.writer(&sidecar).verify(DEEP, over).unwrap();
    assert!(found.is_sound() && found.n_unread > 11, "{found:?}");
    let derived = found.derived.unwrap();
    assert_eq!(
        (derived.n_blobs, derived.n_manifests, derived.n_skipped_manifests),
        (0, 0, 11)
    );
    assert!(derived.n_skipped_blobs > 0);
}

#[test]
fn what_git_has_lost_is_counted_and_what_is_left_is_compared() {
    let (repo, index) = indexed();
    repo.git(["checkout", "--quiet", "--orphan", "other"]);
    repo.remove("src/packet.rs");
    repo.commit("other");
    repo.git(["branch", "--quiet", "-D", "main"]);
    repo.git(["reflog", "expire", "--expire=now", "--all"]);
    repo.git(["gc", "--quiet", "--prune=now"]);
    let found = verify(&index, DEEP);
    assert!(found.is_sound(), "{:?}", found.findings);
    let derived = found.derived.unwrap();
    assert_eq!((derived.n_absent_blobs, derived.n_blobs), (1, found.n_blobs - 1));
    assert_eq!((derived.n_absent_trees, derived.n_manifests), (11, 0));
}

#[test]
fn every_cut_is_found_and_mended() {
    let (repo, index) = indexed();
    let expected = answers(&index);
    let sidecar = repo.path(".codescout");
    // By default one file of each kind is tested; other files of a kind are similar.
    for path in one_of_each_kind(&sidecar) {
        let bytes = fs::read(sidecar.join(&path)).unwrap();
        for cut in [0, 1, bytes.len() / 2, bytes.len() - 1] {
            fs::write(sidecar.join(&path), &bytes[..cut]).unwrap();
            let found = verify(&index, Depth::default());
            let blamed = found.findings.iter().any(|finding| path.ends_with(&finding.name));
            assert!(blamed, "{} cut to {cut}: {:?}", path.display(), found.findings);
            let mended = repair(&index, Depth::default());
            assert!(
                mended.after.is_sound(),
                "{}: {:?}",
                path.display(),
                mended.after.findings
            );
            assert_eq!((mended.n_trees, mended.n_lost_trees), (11, 0), "{}", path.display());
            assert_eq!(answers(&index), expected, "{}", path.display());
            // The files of a rebuilt sidecar have other names.
            if !sidecar.join(&path).exists() {
                break;
            }
        }
    }
    let aside = Sidecar::open(&sidecar).unwrap();
    assert!(aside.damaged_bytes().unwrap() > 0);
}

#[test]
fn a_file_that_is_gone_is_found_and_mended() {
    let (repo, index) = indexed();
    let expected = answers(&index);
    let sidecar = repo.path(".codescout");
    for path in ["FORMAT", ".gitignore", "state"] {
        fs::remove_file(sidecar.join(path)).unwrap();
        let mended = repair(&index, Depth::default());
        let named: Vec<&str> = mended
            .before
            .findings
            .iter()
            .map(|finding| finding.name.as_str())
            .collect();
        assert_eq!(named, [path]);
        assert!(mended.after.is_sound(), "{path}: {:?}", mended.after.findings);
        assert_eq!(mended.n_trees, 11, "{path}");
        assert_eq!(answers(&index), expected, "{path}");
    }
    // An empty sidecar is not damaged.
    fs::remove_dir_all(&sidecar).unwrap();
    index.workspace.storage.open_or_create(&AtomicBool::new(false)).unwrap();
    assert!(verify(&index, Depth::default()).is_sound());
}

fn one_of_each_kind(sidecar: &Path) -> Vec<PathBuf> {
    let state = Sidecar::open(sidecar).unwrap().state().unwrap().unwrap();
    let last = state.segments.last().unwrap();
    let mut paths: Vec<PathBuf> = ["FORMAT", ".gitignore", "state"].map(PathBuf::from).into();
    let manifests = fs::read_dir(sidecar.join("snapshots-v1")).unwrap();
    let manifest = manifests.map(|entry| entry.unwrap().file_name()).min().unwrap();
    paths.push(Path::new("snapshots-v1").join(manifest));
    paths.push(Path::new("artifacts-v1").join(&last.artifacts.name));
    paths.push(Path::new("lexical-v1").join(&last.lexical.name));
    paths.push(Path::new("dense-v1").join(&last.vectors[0].file.name));
    paths
}

/// Well-formed files with correct checksums but of other blobs, which only `--deep` can detect.
#[test]
fn what_the_blobs_do_not_say_is_found_and_mended() {
    let repo = TestRepo::new(FIXTURE);
    let index = Indexed::new(repo.root());
    let expected = answers(&index);
    let other = TestRepo::new(
        &FIXTURE
            .replace("broken", "mended")
            .replace("Header::read", "Footer::read"),
    );
    Indexed::new(other.root()).view("HEAD");
    let of_other = Sidecar::open(&other.path(".codescout"))
        .unwrap()
        .state()
        .unwrap()
        .unwrap();
    for store in [Store::Artifacts, Store::Lexical, Store::Dense] {
        let sidecar = Sidecar::open(&repo.path(".codescout")).unwrap();
        let mut state = sidecar.state().unwrap().unwrap();
        let (entry, theirs) = (&mut state.segments[0], &of_other.segments[0]);
        assert_eq!((entry.n_blobs, entry.n_docs), (theirs.n_blobs, theirs.n_docs));
        let file: &mut StoredFile = match store {
            Store::Artifacts => &mut entry.artifacts,
            Store::Lexical => &mut entry.lexical,
            _ => &mut entry.vectors[0].file,
        };
        let from = match store {
            Store::Artifacts => &theirs.artifacts,
            Store::Lexical => &theirs.lexical,
            _ => &theirs.vectors[0].file,
        };
        let bytes = fs::read(other.path(".codescout").join(store.folder()).join(&from.name)).unwrap();
        sidecar.write(store, &from.name, &bytes).unwrap();
        *file = from.clone();
        sidecar
            .publish(&state, &sidecar.lock(Duration::from_secs(20)).unwrap())
            .unwrap();

        let shallow = verify(&index, Depth::default());
        // A manifest that refers to blobs of this repository does not match the artifacts of the other one.
        assert_eq!(shallow.is_sound(), store != Store::Artifacts, "{:?}", shallow.findings);
        let found = repair(&index, DEEP);
        if store != Store::Artifacts {
            let blamed: Vec<_> = found.before.findings.iter().map(|finding| finding.store).collect();
            assert!(blamed.contains(&Some(store)), "{:?}", found.before.findings);
        } else if found
            .before
            .findings
            .iter()
            .all(|finding| finding.store == Some(Store::Snapshots))
        {
            // The manifest was reported and rebuilt. The next run compares the blobs.
            assert!(repair(&index, DEEP).after.is_sound());
        }
        assert!(verify(&index, DEEP).is_sound());
        assert_eq!(answers(&index), expected, "{store:?}");
    }
}

/// Records with correct checksums of what no commit did, which only `--deep` can detect.
#[test]
fn commits_that_git_does_not_have_like_this_are_found_and_recorded_again() {
    let (repo, index) = indexed();
    let head = index.workspace.target("HEAD").unwrap().unwrap().commit.unwrap();
    let record = || {
        let records = index.workspace.records();
        records
            .record_history(&[head], Ctx::new(&CheckedProgress::default(), &NEVER))
            .unwrap();
        records
            .trace_history(Ctx::new(&CheckedProgress::default(), &NEVER))
            .unwrap();
    };
    record();
    let sound = verify(&index, DEEP);
    assert!(sound.is_sound(), "{:?}", sound.findings);
    let derived = sound.derived.unwrap();
    assert_eq!((derived.n_commits, derived.n_skipped_commits), (11, 0));
    let sidecar = Sidecar::open(&repo.path(".codescout")).unwrap();
    let stored = |bytes: &[u8], ending: &str| {
        let file = StoredFile::of(bytes, ending);
        sidecar.write(Store::History, &file.name, bytes).unwrap();
        file
    };
    let publish = |state| {
        let lock = sidecar.lock(Duration::from_secs(20)).unwrap();
        sidecar.publish(&state, &lock).unwrap();
    };
    let change_records = |change: &dyn Fn(&mut CommitData)| {
        let mut state = sidecar.state().unwrap().unwrap();
        let entry = &mut state.history[0];
        let batch = Batch::open(&sidecar, &entry.records.name).unwrap();
        let mut writer = BatchWriter::new(batch.base());
        for (local, (mut data, parents)) in batch.commits().unwrap().into_iter().enumerate() {
            if local == 5 {
                change(&mut data);
            }
            writer.add(data, &parents);
        }
        entry.records = stored(&writer.finish(), "hist");
        publish(state);
    };
    let change_symbols = || {
        let mut state = sidecar.state().unwrap().unwrap();
        let entry = &mut state.history[0];
        let batch = Batch::open(&sidecar, &entry.records.name).unwrap();
        let file = entry.symbols.as_ref().unwrap();
        let symbols = SymbolBatch::open(&sidecar, &file.name).unwrap();
        let mut paths = symbols.all(&batch).unwrap();
        paths.pop_last().unwrap();
        let bytes = symbol_batch_bytes(&batch, symbols.first(), symbols.recipe(), &paths);
        entry.symbols = Some(stored(&bytes, file.name.rsplit('.').next().unwrap()));
        publish(state);
    };
    let forgeries: [(&str, &dyn Fn()); 4] = [
        ("message", &|| change_records(&|data| data.message = "planted".into())),
        ("author", &|| {
            change_records(&|data| data.author.name = "Mallory".into())
        }),
        ("changes", &|| {
            change_records(&|data| data.changes[0].is_combined = true)
        }),
        ("definitions", &change_symbols),
    ];
    for (what, forge) in forgeries {
        forge();
        let found = repair(&index, DEEP);
        let blamed: Vec<_> = found.before.findings.iter().map(|finding| finding.store).collect();
        assert!(
            !blamed.is_empty() && blamed.iter().all(|store| *store == Some(Store::History)),
            "{what}: {:?}",
            found.before.findings
        );
        assert!(
            found
                .before
                .findings
                .iter()
                .all(|finding| finding.what.contains("does not match git")),
            "{what}: {:?}",
            found.before.findings
        );
        record();
        assert!(verify(&index, DEEP).is_sound(), "{what}");
    }
}

#[test]
fn a_manifest_of_another_tree_is_no_answer() {
    let (repo, index) = indexed();
    let (old, new) = (repo.tree_of("HEAD~3"), repo.tree_of("HEAD"));
    let expected = answers(&index);
    let snapshots = repo.path(".codescout/snapshots-v1");
    let path = |tree: &str| {
        let names = fs::read_dir(&snapshots)
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        let of_tree: Vec<_> = names.filter(|name| name.to_str().unwrap().starts_with(tree)).collect();
        assert_eq!(of_tree.len(), 1);
        snapshots.join(&of_tree[0])
    };
    fs::copy(path(&old), path(&new)).unwrap();
    let found = verify(&index, Depth::default());
    assert_eq!(found.findings.len(), 1, "{:?}", found.findings);
    assert!(found.findings[0].what.contains("another tree"), "{:?}", found.findings);
    assert_eq!(answers(&index), expected);
    assert!(verify(&index, DEEP).is_sound());
}

#[test]
fn the_command_says_what_it_saw() {
    let repo = TestRepo::new(FIXTURE);
    let none = call(&repo, &["verify", "--json"]).expect(0).json();
    assert_eq!(none["health"], "none");
    call(&repo, &["index"]).expect(0);
    let sound = call(&repo, &["verify", "--deep", "--json"]).expect(0).json();
    assert_eq!(sound["health"], "sound");
    assert_eq!(sound["from_blobs"]["blobs"], 4);
    let text = call(&repo, &["verify"]).expect(0).text();
    assert!(
        text.contains("1 segment, 4 blobs") && text.ends_with("no damage found\n"),
        "{text}"
    );

    for args in [
        &["verify", "--max-duration", "0"][..],
        &["verify", "--repair", "--max-duration", "0"],
    ] {
        let text = call(&repo, args).expect(0).text();
        assert!(
            text.contains("not read    ") && text.contains("in the files checked so far"),
            "{text}"
        );
        let cut = call(&repo, &[args, &["--json"]].concat()).expect(0).json();
        assert_eq!(cut["health"], "partial");
    }

    repo.write(".codescout/mine.txt", "x");
    let dense = fs::read_dir(repo.path(".codescout/dense-v1"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    fs::remove_file(dense).unwrap();
    let damaged = call(&repo, &["verify", "--json"]).expect(1).json();
    assert_eq!(damaged["health"], "damaged");
    assert_eq!(damaged["results"][0]["what"], "file is missing");
    assert_eq!(damaged["unknown"][0]["file"], "mine.txt");
    let repaired = call(&repo, &["verify", "--repair", "--json"]).expect(1).json();
    assert_eq!(repaired["health"], "repaired");
    assert_eq!(repaired["repair"]["rebuilt_snapshots"], 1);
    assert!(
        call(&repo, &["verify"])
            .expect(0)
            .text()
            .contains("unknown     mine.txt")
    );
    assert_eq!(repo.read(".codescout/mine.txt"), b"x");

    // With other settings, the blobs would give different results.
    call(&repo, &["config", "set", "index.max_blob_bytes", "5000"]).expect(0);
    call(&repo, &["verify"]).expect(0);
    let cannot = call(&repo, &["verify", "--deep"]).expect(2);
    assert!(cannot.stderr.contains("other settings"), "{}", cannot.stderr);
}

/// Writes a file after the first check.
struct Mender<'a> {
    path: &'a Path,
    good: &'a [u8],
}

impl codescout::model::Progress for Mender<'_> {
    fn begin(&self, _stage: codescout::model::Stage, _n_blobs: usize) {}

    fn advance(&self, _n_bytes: u64) {}

    fn end(&self) {
        fs::write(self.path, self.good).unwrap();
    }
}

#[test]
fn what_somebody_else_has_mended_meanwhile_is_not_set_aside() {
    let (repo, index) = indexed();
    let store = repo.path(".codescout/lexical-v1");
    let damaged = fs::read_dir(store).unwrap().next().unwrap().unwrap().path();
    let good = fs::read(&damaged).unwrap();
    fs::write(&damaged, &good[..good.len() / 2]).unwrap();
    let mender = Mender {
        path: &damaged,
        good: &good,
    };
    let sidecar = index.workspace.storage.open_to_check().unwrap().unwrap();
    let writer = index.workspace.writer(&sidecar);
    let done = writer.repair(Depth::default(), Ctx::new(&mender, &NEVER)).unwrap();
    assert!(!done.before.is_sound() && done.after.is_sound());
    assert_eq!((done.n_set_aside, sidecar.damaged_bytes().unwrap()), (0, 0));
    assert_eq!(fs::read(&damaged).unwrap(), good);
}

#[test]
fn a_damaged_state_without_manifests_is_mended_at_once() {
    let (repo, index) = indexed();
    fs::remove_dir_all(repo.path(".codescout/snapshots-v1")).unwrap();
    fs::create_dir(repo.path(".codescout/snapshots-v1")).unwrap();
    let state = repo.path(".codescout/state");
    let good = fs::read(&state).unwrap();
    fs::write(&state, &good[..good.len() - 1]).unwrap();
    let mended = repair(&index, Depth::default());
    assert!(!mended.before.is_sound() && mended.after.is_sound(), "{mended:?}");
    index.view("HEAD");
    assert!(verify(&index, Depth::default()).is_sound());
}

#[test]
fn a_shallow_look_after_a_deep_repair_is_not_called_well() {
    let repo = TestRepo::new(FIXTURE);
    call(&repo, &["index"]).expect(0);
    let lexical = fs::read_dir(repo.path(".codescout/lexical-v1"))
        .unwrap()
        .next()
        .unwrap();
    fs::remove_file(lexical.unwrap().path()).unwrap();
    let text = call(&repo, &["verify", "--repair", "--deep"]).expect(1).text();
    assert!(
        text.contains("repaired") && text.contains("codescout verify --deep") && !text.contains("no damage"),
        "{text}"
    );
    call(&repo, &["verify", "--deep"]).expect(0);
}

#[test]
fn a_damaged_log_is_found_and_set_aside() {
    let (repo, _) = indexed();
    let sidecar = Sidecar::open(&repo.path(".codescout")).unwrap();
    sidecar.write_log("run-test.json", b"{\"text\":\"ok\"}").unwrap();
    let in_repo = |args: &[&str]| crate::cli::call_in(repo.root(), args, b"");
    in_repo(&["verify"]).expect(0);
    for damaged in [&b"{\"text\":\"oK\"}"[..], b"{\"text", b""] {
        sidecar.write_log("run-test.json", b"{\"text\":\"ok\"}").unwrap();
        fs::write(repo.path(".codescout/log/run-test.json"), damaged).unwrap();
        let found = in_repo(&["verify"]).expect(1).text();
        assert!(found.contains("damaged     log/run-test.json"), "{found}");
        in_repo(&["verify", "--repair"]).expect(1);
        in_repo(&["verify"]).expect(0);
        assert!(!repo.path(".codescout/log/run-test.json").exists());
    }
}
