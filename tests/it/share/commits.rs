//! Tests recorded commits that are transferred to clones, which then need not record them.

use std::fs;
use std::path::Path;

use codescout::sidecar::{Bytes, SectionFile, SectionWriter};
use serde_json::Value;

use super::audit::audited;
use super::hostile::Victim;
use super::raw::Raw;
use super::{PRIVATE_KEY, PUBLIC_KEY, project};
use crate::cli::call_in;
use crate::support::TestRepo;

/// Creates [`project`] with a function that is changed and moved, and a merged branch.
fn past() -> TestRepo {
    let repo = project();
    let text = fs::read_to_string(repo.path("src/upload.rs")).unwrap();
    repo.write("src/upload.rs", text.replace("is_ok()", "is_sent()"));
    repo.commit("retry: ask whether it was sent");
    repo.git(["checkout", "-q", "-b", "side", "HEAD~1"]);
    repo.write("docs/side.md", "# Beside\n\nSomething else.\n");
    repo.commit("docs: what stands beside");
    repo.git(["checkout", "-q", "-"]);
    repo.git(["merge", "-q", "--no-ff", "-m", "merge the side", "side"]);
    repo.rename("src/upload.rs", "src/send.rs");
    repo.commit("move uploading");
    repo
}

fn json(repo: &TestRepo, args: &[&str]) -> Value {
    call_in(repo.root(), args, b"").expect(0).json()
}

/// Returns answers about history without their duration.
fn answers(repo: &TestRepo) -> Vec<Value> {
    [
        &["history", "--json", "retry_upload"][..],
        &["history", "--json", "src/send.rs"],
        &["blame", "--json", "--by", "symbol", "src/send.rs"],
        &["search", "--json", "--in", "commits", "ask whether it was sent"],
        &["search", "--json", "--in", "diffs", "--mode", "regex", "is_sent"],
    ]
    .iter()
    .map(|args| {
        let answer = json(repo, args);
        let results = answer.get("results").or(answer.get("symbols"));
        results.cloned().unwrap_or_default()
    })
    .collect()
}

fn exported(repo: &TestRepo, args: &[&str]) -> Vec<u8> {
    let args = [&["export", "-", "-q", "--history"], args].concat();
    call_in(repo.root(), &args, b"").expect(0).stdout
}

#[test]
fn a_clone_has_the_past_without_recording_it() {
    let repo = past();
    let other = repo.clone_with("other", &[]);
    let clone = repo.clone_with("clone", &[]);
    let n_commits: u64 = repo.git(["rev-list", "--count", "HEAD"]).trim().parse().unwrap();
    let bundle = exported(&repo, &[]);
    // The exported records are identical, even in a clone with an additional private branch.
    other.git(["checkout", "-q", "-b", "private", "HEAD~2"]);
    other.write("secret.rs", "fn nobody_else_s_business() {}\n");
    other.commit("private: nobody else's business");
    call_in(other.root(), &["index", "--history"], b"").expect(0);
    assert!(exported(&other, &["origin/HEAD"]) == bundle, "the same bytes");

    let answer = call_in(clone.root(), &["import", "-", "--json"], &bundle)
        .expect(0)
        .json();
    assert_eq!(
        (
            &answer["new_commits"],
            &answer["compared_commits"],
            &answer["bundle"]["commits"]
        ),
        (&n_commits.into(), &n_commits.into(), &n_commits.into())
    );
    assert!(answer["commits_passed_over"].is_null(), "{answer}");
    let theirs = answers(&repo);
    assert!(theirs.iter().all(|results| results[0].is_object()), "{theirs:#?}");
    assert_eq!(answers(&clone), theirs);
    call_in(clone.root(), &["verify", "--deep"], b"").expect(0);
    let indexed = json(&clone, &["index", "--history", "--json"]);
    let history = &indexed["history"];
    assert_eq!(
        (&history["new_commits"], &history["traced_commits"]),
        (&0.into(), &0.into()),
        "{indexed}"
    );
    // The local record is equivalent, so it is not replaced.
    let again = call_in(clone.root(), &["import", "-", "--json"], &bundle)
        .expect(0)
        .json();
    assert!(
        again["commits_passed_over"]
            .as_str()
            .unwrap()
            .contains("already recorded"),
        "{again}"
    );

    // Later commits are recorded and traced on top of it.
    let newer = repo.clone_with("newer", &[]);
    newer.write("src/later.rs", "pub fn later() {}\n");
    newer.commit("later");
    call_in(newer.root(), &["import", "-"], &bundle).expect(0);
    let indexed = json(&newer, &["index", "--json"]);
    assert_eq!(indexed["history"]["new_commits"], 1, "{indexed}");
    assert_eq!(
        json(&newer, &["history", "--json", "later"])["results"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn what_is_gone_is_found_by_what_it_was_about() {
    let repo = project();
    let clone = repo.clone_with("clone", &[]);
    repo.write(
        "src/bucket.rs",
        "/// Fills the bucket with tokens.\npub fn fill_bucket() {}\n",
    );
    repo.commit("bucket: fill it");
    repo.git(["rm", "-q", "src/bucket.rs"]);
    repo.commit("bucket: not needed any more");
    call_in(repo.root(), &["index", "--history"], b"").expect(0);
    clone.git(["pull", "-q"]);
    call_in(clone.root(), &["import", "-"], &exported(&repo, &[])).expect(0);
    let asked = ["history", "--json", "--deleted", "how are tokens put into the bucket"];
    let found = json(&repo, &asked)["results"].clone();
    assert!(found[0].to_string().contains("fill_bucket"), "{found}");
    assert_eq!(json(&clone, &asked)["results"], found);
}

#[test]
fn a_maker_who_is_trusted_is_believed() {
    let repo = past();
    let (key, archive) = (repo.beside("key.pem"), repo.beside("cache/index.bundle"));
    fs::write(&key, PRIVATE_KEY).unwrap();
    let signed = exported(&repo, &["--ready", "--sign", key.to_str().unwrap()]);
    let file = archive.to_str().unwrap();
    let saved = json(&repo, &["ci", "save", file, "--history", "--json"]);
    assert_eq!(
        (&saved["saved"], &saved["commits"]),
        (&true.into(), &7.into()),
        "{saved}"
    );
    assert_eq!(
        json(&repo, &["ci", "save", file, "--history", "--json"])["saved"],
        false
    );
    let trusting = repo.clone_with("trusting", &[]);
    let answer = call_in(
        trusting.root(),
        &["import", "-", "--trust", PUBLIC_KEY, "--json"],
        &signed,
    )
    .expect(0)
    .json();
    let job = repo.clone_with("job", &[]);
    let restored = json(&job, &["ci", "restore", file, "--json"]);
    for (clone, answer) in [(&trusting, answer), (&job, restored)] {
        assert_eq!(
            (&answer["new_commits"], &answer["compared_commits"]),
            (&7.into(), &0.into()),
            "{answer}"
        );
        assert_eq!(answers(clone), answers(&repo));
        call_in(clone.root(), &["verify", "--deep"], b"").expect(0);
    }
    // An archive without history is replaced if history is requested.
    call_in(repo.root(), &["ci", "save", "../plain.bundle"], b"").expect(0);
    let saved = json(&repo, &["ci", "save", "../plain.bundle", "--history", "--json"]);
    assert_eq!(saved["saved"], true, "{saved}");
}

#[test]
fn what_is_of_no_use_is_passed_over_and_the_rest_is_taken() {
    let repo = past();
    let behind = repo.clone_with("behind", &[]);
    let shallow = repo.clone_with("shallow", &["--depth=1"]);
    let other = repo.clone_with("rules", &[]);
    repo.write("src/later.rs", "pub fn later() {}\n");
    repo.commit("later");
    let bundle = exported(&repo, &[]);
    fs::write(other.path(".codescout.toml"), "[history]\nmax_commits = 2\n").unwrap();
    other.git(["pull", "-q"]);
    let short = exported(&other, &[]);
    for (clone, bundle, why) in [
        (&behind, &bundle, "not all of its commits are in this clone"),
        (&shallow, &bundle, "not all of its commits are in this clone"),
        (&repo.clone_with("whole", &[]), &short, "it ends at different commits"),
    ] {
        let answer = call_in(clone.root(), &["import", "-", "--json"], bundle)
            .expect(0)
            .json();
        let said = answer["commits_passed_over"].as_str().unwrap_or_default();
        assert!(said.contains(why), "{answer}");
        assert!(answer["new_blobs"].as_u64() > Some(0), "{answer}");
    }
    let called = call_in(shallow.root(), &["export", "-", "-q", "--history"], b"").expect(2);
    assert!(
        called.stderr.contains("this clone lacks older commits"),
        "{}",
        called.stderr
    );
    let called = call_in(shallow.root(), &["ci", "save", "--history"], b"").expect(0);
    assert!(called.stderr.contains("this clone is shallow"), "{}", called.stderr);
    assert!(called.text().starts_with("saved"), "{}", called.text());
}

#[test]
fn a_clone_that_lacks_objects_is_neither_believed_nor_compared() {
    let repo = past();
    repo.git(["config", "uploadpack.allowFilter", "true"]);
    let partial = repo.clone_with("partial", &["--filter=blob:none"]);
    fs::write(repo.beside("key.pem"), PRIVATE_KEY).unwrap();
    let bundle = exported(&repo, &["--sign", "../key.pem"]);
    let called = call_in(partial.root(), &["export", "-", "-q", "--history"], b"").expect(2);
    assert!(called.stderr.contains("this clone lacks"), "{}", called.stderr);
    fs::remove_dir_all(partial.path(".codescout")).unwrap();
    let answer = call_in(partial.root(), &["import", "-", "--json"], &bundle)
        .expect(0)
        .json();
    let why = answer["commits_passed_over"].as_str().unwrap_or_default();
    assert!(why.contains("partial"), "{answer}");
    let args = ["import", "-", "--trust", PUBLIC_KEY, "--json"];
    let answer = call_in(partial.root(), &args, &bundle).expect(0).json();
    assert_eq!(answer["new_commits"], 7, "{answer}");
}

#[test]
fn nothing_that_is_recorded_is_lost() {
    let repo = past();
    let old = exported(&repo, &["HEAD~1"]);
    let clone = repo.clone_with("clone", &[]);
    let none = repo.clone_with("none", &[]);
    // The commits are recorded but not traced, as after a query.
    call_in(clone.root(), &["history", "src/send.rs"], b"").expect(0);
    let answer = call_in(clone.root(), &["import", "-", "--json"], &old).expect(0).json();
    assert_eq!(answer["new_commits"], 6, "{answer}");
    let answer = json(&clone, &["index", "--history", "--json"]);
    let (new, traced) = (&answer["history"]["new_commits"], &answer["history"]["traced_commits"]);
    assert_eq!((new, traced), (&0.into(), &0.into()), "{answer}");
    assert_eq!(answers(&clone), answers(&repo));
    call_in(clone.root(), &["verify", "--deep"], b"").expect(0);

    // Unless git no longer has the commit.
    none.write("src/secret.rs", "fn secret() {}\n");
    none.commit("secret");
    call_in(none.root(), &["history", "src/secret.rs"], b"").expect(0);
    none.git(["reset", "-q", "--hard", "HEAD~1"]);
    none.git(["reflog", "expire", "--expire=now", "--all"]);
    none.git(["gc", "-q", "--prune=now"]);
    let answer = call_in(none.root(), &["import", "-", "--json"], &old).expect(0).json();
    let why = answer["commits_passed_over"].as_str().unwrap_or_default();
    assert!(why.starts_with("it lacks 1 of the commits recorded here"), "{answer}");
}

#[test]
fn a_record_alone_does_not_depend_on_how_files_are_read() {
    let repo = past();
    let mut raw = Raw::parse(&exported(&repo, &[]));
    let n_files = 2 * raw.header.parts.len();
    raw.header.entries.drain(..n_files);
    raw.frames.drain(..n_files);
    raw.header.parts.clear();
    (raw.header.kind, raw.header.recipe, raw.header.profile) = (2, 0, [0; 16]);
    let clone = repo.clone_with("clone", &[]);
    let answer = call_in(clone.root(), &["import", "-", "--json"], &raw.to_bytes())
        .expect(0)
        .json();
    assert_eq!(answer["new_commits"], 7, "{answer}");
}

#[test]
fn more_than_the_limit_lets_is_taken_and_said() {
    let repo = past();
    let bundle = exported(&repo, &[]);
    fs::write(repo.path(".codescout.toml"), "[history]\nmax_commits = 2\n").unwrap();
    fs::remove_dir_all(repo.path(".codescout")).unwrap();
    let called = call_in(repo.root(), &["import", "-", "--json"], &bundle).expect(0);
    assert!(
        called.stderr.contains("more than history.max_commits (2)"),
        "{}",
        called.stderr
    );
    assert_eq!(called.json()["new_commits"], 7);
}

#[test]
fn a_record_whose_end_was_passed_by_later_ones_is_given_to_nobody() {
    let repo = past();
    let base = repo.git(["rev-parse", "HEAD"]).trim().to_owned();
    for name in ["a", "b", "c"] {
        repo.write(format!("src/{name}.rs"), format!("fn {name}() {{}}\n"));
        repo.commit(name);
    }
    fs::write(repo.path(".codescout.toml"), "[history]\nmax_commits = 3\n").unwrap();
    call_in(repo.root(), &["index", "--history"], b"").expect(0);
    call_in(repo.root(), &["export", "-", "-q", "--history"], b"").expect(0);
    repo.git(["checkout", "-q", "-b", "late", &base]);
    repo.write("src/late.rs", "fn late() {}\n");
    repo.commit("late");
    repo.git(["merge", "-q", "--no-ff", "-m", "both", "@{-1}"]);
    let called = call_in(repo.root(), &["export", "-", "-q", "--history"], b"").expect(2);
    assert!(
        called.stderr.contains("recorded after their children"),
        "{}",
        called.stderr
    );
}

#[test]
fn ids_of_any_length_travel() {
    let repo = TestRepo::sha256("//- a.rs\nfn long_ids() {}\n");
    repo.write("a.rs", "fn long_ids() { changed() }\n");
    repo.commit("changed");
    let bundle = exported(&repo, &[]);
    let clone = repo.clone_with("clone", &[]);
    let answer = call_in(clone.root(), &["import", "-", "--json"], &bundle)
        .expect(0)
        .json();
    assert_eq!(answer["new_commits"], 2, "{answer}");
    let answer = json(&clone, &["history", "--json", "long_ids"]);
    assert_eq!(answer["total"], 2, "{answer}");
}

#[test]
fn the_record_stands_on_the_remote_for_who_asks() {
    let repo = past();
    let remote = repo.bare_clone("remote.git");
    remote.git(["config", "uploadpack.allowFilter", "true"]);
    let (mine, clone) = (remote.clone_with("mine", &[]), remote.clone_with("clone", &[]));
    let yes = |repo: &TestRepo, args: &[&str]| json(repo, &[args, &["--yes", "--json"]].concat());
    let answer = yes(&mine, &["push"]);
    assert_eq!(
        (&answer["commits"], &answer["parts_after"]),
        (&0.into(), &1.into()),
        "{answer}"
    );
    let answer = yes(&clone, &["pull", "--history", "--dry-run"]);
    let why = answer["commits_passed_over"].as_str().unwrap_or_default();
    assert!(why.starts_with("the remote has none"), "{answer}");
    let called = call_in(
        mine.root(),
        &["push", "--history", "--yes", "origin", "HEAD^{tree}"],
        b"",
    )
    .expect(2);
    assert!(called.stderr.contains("a tree has no history"), "{}", called.stderr);
    let answer = yes(&mine, &["push", "--history"]);
    assert_eq!(
        (&answer["commits"], &answer["parts_after"]),
        (&7.into(), &2.into()),
        "{answer}"
    );
    assert_eq!(yes(&mine, &["push", "--history"])["pushed"], false);

    assert_eq!(yes(&clone, &["pull"])["new_commits"], 0);
    let shallow = remote.clone_with("shallow", &["--depth=1"]);
    yes(&shallow, &["pull"]);
    let answer = yes(&shallow, &["pull", "--history"]);
    let why = answer["commits_passed_over"].as_str().unwrap_or_default();
    assert!(
        answer["parts"] == 0 && why.contains("not all of its commits"),
        "{answer}"
    );
    let answer = yes(&clone, &["pull", "--history"]);
    assert_eq!(
        (&answer["parts"], &answer["new_commits"]),
        (&1.into(), &7.into()),
        "{answer}"
    );
    assert_eq!(answers(&clone), answers(&mine));
    assert_eq!(yes(&clone, &["pull", "--history"])["parts"], 0);

    // A newer record replaces the one that it extends. Clones that lack its commits skip it.
    mine.write("src/later.rs", "pub fn later() {}\n");
    mine.commit("later");
    let answer = yes(&mine, &["push", "--history"]);
    assert_eq!(
        (&answer["commits"], &answer["parts_after"]),
        (&8.into(), &3.into()),
        "{answer}"
    );
    assert_eq!(yes(&clone, &["pull", "--history"])["parts"], 0);
    mine.git(["push", "--quiet", "origin", "HEAD"]);
    clone.git(["pull", "--quiet"]);
    let answer = yes(&clone, &["pull", "--history"]);
    assert_eq!(answer["new_commits"], 8, "{answer}");
    // An older record is not pushed, because the remote's record contains it.
    mine.git(["checkout", "-q", "HEAD~2"]);
    let answer = yes(&mine, &["push", "--history", "origin", "HEAD"]);
    assert_eq!(
        (&answer["commits"], &answer["parts_after"]),
        (&0.into(), &3.into()),
        "{answer}"
    );
}

const COMMITS: &[&str] = &[
    "meta",
    "ids",
    "by_id",
    "flags",
    "times",
    "parents",
    "parent_ends",
    "people",
    "heads",
    "head_blocks",
    "bodies",
    "body_blocks",
    "paths",
    "path_ends",
    "runs",
    "run_ends",
    "touched",
    "touched_ends",
];
const DEFINITIONS: &[&str] = &["meta", "names", "name_ends", "run_ends", "blocks", "block_ends"];
const LINES: &[&str] = &["meta", "commit_ends", "signatures", "ends"];

/// Changes one section of an entry and updates the checksums.
fn section(raw: &mut Raw, stem: &str, wanted: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let at = raw
        .header
        .entries
        .iter()
        .position(|entry| entry.name.starts_with(stem))
        .unwrap();
    let names = match stem {
        "commits" => COMMITS,
        "definitions" => DEFINITIONS,
        _ => LINES,
    };
    let file = SectionFile::from_bytes(Path::new(stem), Bytes::from_vec(raw.opened(at)), 1).unwrap();
    let mut writer = SectionWriter::new(1);
    let mut change = Some(change);
    for name in names {
        let mut bytes = file.section(name).unwrap().to_vec();
        if *name == wanted {
            (change.take().unwrap())(&mut bytes);
        }
        writer.add(name, bytes);
    }
    raw.put(at, &writer.finish());
}

/// Sets the line number in the first record to 0.
fn without_lines(mut run: Vec<u8>) -> Vec<u8> {
    // The bytes are the number of commits since, number of records, parts, events, and name, followed by the new lines
    // if there are no old ones.
    assert_eq!(run[2] & 3, 2, "it is added: {:?}", &run[..12]);
    run[5] = 0;
    run
}

fn entry(raw: &mut Raw, stem: &str, bytes: &[u8]) {
    let at = raw
        .header
        .entries
        .iter()
        .position(|entry| entry.name.starts_with(stem))
        .unwrap();
    raw.put(at, bytes);
}

type Change = fn(&mut Raw);

/// Invalid headers of the commit record. Nothing after them is read.
const LYING_HEADERS: &[(&str, Change, &str)] = &[
    (
        "a batch too many",
        |raw| raw.header.commits.as_mut().unwrap().2.push(1),
        "wrong entries",
    ),
    (
        "no batches",
        |raw| raw.header.commits.as_mut().unwrap().2.clear(),
        "wrong entries",
    ),
    ("no record of commits", |raw| raw.header.commits = None, "wrong entries"),
    (
        "a huge batch",
        |raw| raw.header.commits.as_mut().unwrap().2[0] = u32::MAX,
        "too many commits",
    ),
    (
        "a batch of nothing",
        |raw| raw.header.commits.as_mut().unwrap().2[0] = 0,
        "an empty batch",
    ),
    (
        "very many tips",
        |raw| raw.header.commits.as_mut().unwrap().1 = vec![vec![1; 20]; 2000],
        "too many",
    ),
    (
        "a tip of another format",
        |raw| raw.header.commits.as_mut().unwrap().1[0] = vec![1; 32],
        "object format",
    ),
];

/// Wrong records of commits. They are skipped, but the other content of the bundle is imported.
const LIES: &[(&str, Change, &str)] = &[
    (
        "another size",
        |raw| raw.header.commits.as_mut().unwrap().2[0] += 1,
        "differ from the header",
    ),
    ("no records", |raw| entry(raw, "commits", b"nonsense"), ""),
    ("no definitions", |raw| entry(raw, "definitions", b"nonsense"), ""),
    ("no lines", |raw| entry(raw, "lines", b"nonsense"), ""),
    ("nothing", |raw| entry(raw, "definitions", b""), ""),
    (
        "lines for definitions",
        |raw| {
            let at = raw.header.entries.len() - 1;
            let bytes = raw.opened(at);
            entry(raw, "definitions", &bytes);
        },
        "",
    ),
    (
        "other numbers",
        |raw| section(raw, "commits", "meta", |meta| meta[0] = 1),
        "differ from those in git",
    ),
    (
        "another time",
        |raw| section(raw, "commits", "times", |times| times[8] ^= 1),
        "differ from those in git",
    ),
    (
        "another author",
        |raw| section(raw, "commits", "people", |people| *people.last_mut().unwrap() ^= 1),
        "differ from those in git",
    ),
    (
        "a change less",
        |raw| section(raw, "commits", "runs", |runs| runs.truncate(30)),
        "differ from those in git",
    ),
    (
        "another parent",
        |raw| section(raw, "commits", "parents", |parents| parents[4] ^= 1),
        "differ from those in git",
    ),
    (
        "no parent",
        |raw| section(raw, "commits", "parents", |parents| parents[..4].fill(0xff)),
        "differ from those in git",
    ),
    (
        "an end where none is",
        |raw| section(raw, "commits", "flags", |flags| flags[2] = 1),
        "unexpected end",
    ),
    (
        "a flag that is none",
        |raw| section(raw, "commits", "flags", |flags| flags[2] = 9),
        "damaged",
    ),
    (
        "a commit twice",
        |raw| section(raw, "commits", "ids", |ids| ids.copy_within(0..20, 20)),
        "duplicate commits",
    ),
    (
        "children first",
        |raw| {
            section(raw, "commits", "ids", |ids| {
                let (first, rest) = ids.split_at_mut(20);
                first.swap_with_slice(&mut rest[..20]);
            })
        },
        "",
    ),
    (
        "not from the beginning",
        |raw| section(raw, "definitions", "meta", |meta| meta[8] = 1),
        "some commits are not traced",
    ),
    (
        "other rules",
        |raw| section(raw, "definitions", "meta", |meta| meta[16] ^= 1),
        "some commits are not traced",
    ),
    (
        "versions that were not there",
        |raw| section(raw, "definitions", "meta", |meta| meta[24] = 1),
        "some commits are not traced",
    ),
    (
        "another number of records",
        |raw| section(raw, "definitions", "meta", |meta| meta[12] ^= 1),
        "number of records",
    ),
    (
        "another name",
        |raw| section(raw, "definitions", "names", |names| names[0] ^= 1),
        "definitions",
    ),
    (
        "names that no search by halves finds",
        |raw| {
            section(raw, "definitions", "names", |names| names.extend(b"!\0\0"));
            section(raw, "definitions", "name_ends", |ends| {
                let last = u32::from_le_bytes(ends[ends.len() - 4..].try_into().unwrap());
                ends.extend((last + 3).to_le_bytes());
            });
        },
        "names",
    ),
    (
        "lines from 0 on",
        |raw| {
            let mut n_bytes = 0;
            section(raw, "definitions", "blocks", |blocks| {
                let opened = zstd::decode_all(&**blocks).unwrap();
                *blocks = zstd::encode_all(&*without_lines(opened), 3).unwrap();
                n_bytes = blocks.len() as u32;
            });
            section(raw, "definitions", "block_ends", |ends| {
                *ends = n_bytes.to_le_bytes().to_vec()
            });
        },
        "a run of records",
    ),
    (
        "a kind that is none",
        |raw| section(raw, "definitions", "names", |names| *names.last_mut().unwrap() = 0xfe),
        "names",
    ),
    (
        "runs that go back",
        |raw| section(raw, "definitions", "run_ends", |ends| ends[..4].fill(0xff)),
        "run_ends",
    ),
    (
        "a block less",
        |raw| section(raw, "definitions", "block_ends", Vec::clear),
        "",
    ),
    (
        "a bomb",
        |raw| {
            section(raw, "definitions", "run_ends", |ends| {
                let at = ends.len() - 4;
                ends[at..].copy_from_slice(&(200u32 << 20).to_le_bytes());
            });
        },
        "its size",
    ),
    (
        "records of nothing",
        |raw| {
            section(raw, "definitions", "blocks", |blocks| {
                let n = zstd::decode_all(&**blocks).unwrap().len();
                *blocks = zstd::encode_all(&*vec![0; n], 3).unwrap();
            })
        },
        "",
    ),
    (
        "other signatures",
        |raw| {
            section(raw, "lines", "signatures", |bytes| {
                bytes.iter_mut().for_each(|byte| *byte ^= 0xff)
            })
        },
        "changed lines",
    ),
    (
        "signatures of nothing",
        |raw| section(raw, "lines", "commit_ends", |ends| ends.fill(0)),
        "signatures",
    ),
];

/// Results of a trusted sender are not recomputed, but a damaged file is not published.
#[test]
fn damaged_records_of_a_trusted_sender_are_not_published() {
    let victim = Victim::of(&["export", "-", "-q", "--history"]);
    let archive = victim.repo.beside("archive");
    for (stem, name) in [
        ("commits", "paths"),
        ("commits", "runs"),
        ("definitions", "blocks"),
        ("lines", "signatures"),
    ] {
        let mut raw = victim.honest.clone();
        section(&mut raw, stem, name, |bytes| bytes.truncate(bytes.len() / 2));
        fs::write(&archive, raw.to_bytes()).unwrap();
        fs::remove_dir_all(victim.repo.path(".codescout")).unwrap();
        let restored = call_in(victim.repo.root(), &["ci", "restore", "../archive"], b"").expect(1);
        let said = restored.text();
        assert!(
            said.contains("skipped commit history: it is damaged"),
            "{stem} {name}: {said}"
        );
        call_in(victim.repo.root(), &["index", "--history"], b"").expect(0);
        call_in(victim.repo.root(), &["verify", "--deep"], b"").expect(0);
    }
}

#[test]
fn records_that_lie_are_refused() {
    let victim = Victim::of(&["export", "-", "-q", "--history"]);
    for (about, change, said) in LYING_HEADERS {
        let mut raw = victim.honest.clone();
        change(&mut raw);
        victim.refuses(about, &raw.to_bytes(), &[], said);
    }
    for (about, change, said) in LIES {
        let mut raw = victim.honest.clone();
        change(&mut raw);
        let (called, outside) = audited(
            victim.repo.root(),
            &["import", "-", "--json"],
            &raw.to_bytes(),
            &victim.repo.path(".codescout"),
        );
        assert!(outside.is_empty(), "{about}: {outside:#?}");
        let answer = called.expect(1).json();
        assert_eq!(
            (&answer["commits_untrue"], &answer["new_commits"]),
            (&true.into(), &0.into()),
            "{about}: {answer}"
        );
        let why = answer["commits_passed_over"].as_str().unwrap();
        assert!(why.starts_with("it is damaged") && why.contains(said), "{about}: {why}");
        // The clone records its own commits instead.
        let history = &json(&victim.repo, &["status", "--json"])["history"];
        assert_eq!(
            (&history["commits"], &history["traced"]),
            (&3.into(), &0.into()),
            "{about}"
        );
    }
    let mut raw = victim.honest.clone();
    raw.header.commits.as_mut().unwrap().0 ^= 1;
    let answer = call_in(victim.repo.root(), &["import", "-", "--json"], &raw.to_bytes())
        .expect(0)
        .json();
    assert!(
        answer["commits_passed_over"]
            .as_str()
            .unwrap()
            .contains("other settings"),
        "{answer}"
    );
    let answer = call_in(
        victim.repo.root(),
        &["import", "-", "--json"],
        &victim.honest.to_bytes(),
    )
    .expect(0)
    .json();
    assert_eq!(answer["new_commits"], 3, "{answer}");
}

/// Names in the table that no record uses. All information about commits is right, but this program would not have
/// written them.
#[test]
fn what_nothing_reads_is_refused_where_all_is_compared() {
    let victim = Victim::of(&["export", "-", "-q", "--history"]);
    let mut raw = victim.honest.clone();
    section(&mut raw, "definitions", "names", |names| names.extend(b"~\0\0"));
    section(&mut raw, "definitions", "name_ends", |ends| {
        let last = u32::from_le_bytes(ends[ends.len() - 4..].try_into().unwrap());
        ends.extend((last + 3).to_le_bytes());
    });
    let args = ["import", "-", "--compare-all", "--json"];
    let answer = call_in(victim.repo.root(), &args, &raw.to_bytes()).expect(1).json();
    assert_eq!(
        (&answer["commits_untrue"], &answer["new_commits"]),
        (&true.into(), &0.into()),
        "{answer}"
    );
    let answer = call_in(victim.repo.root(), &args, &victim.honest.to_bytes())
        .expect(0)
        .json();
    assert_eq!(
        (&answer["new_commits"], &answer["compared_commits"]),
        (&3.into(), &3.into()),
        "{answer}"
    );
}
