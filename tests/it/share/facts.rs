//! Tests sharing the facts of indexers: a clone answers like the one that imported them, and a bundle that lies about
//! names is not believed.

use codescout::model::{BlobId, Oid};
use codescout::precise::{FactsFile, FactsWriter, Index, check};
use codescout::sidecar::{SectionFile, SectionWriter};
use serde_json::Value;

use super::raw::{Raw, RawEntry};
use super::{PRIVATE_KEY, PUBLIC_KEY};
use crate::cli::{Called, call_in};
use crate::precise::{TOTAL, callers, documents, facts_file, import, project};
use crate::support::TestRepo;
use crate::support::scip::{document, index};

fn run(repo: &TestRepo, args: &[&str]) -> Called {
    call_in(repo.root(), args, b"")
}

fn exported(repo: &TestRepo, args: &[&str]) -> Vec<u8> {
    run(repo, &[&["export", "-", "-q"], args].concat()).expect(0).stdout
}

fn take(repo: &TestRepo, bytes: &[u8], args: &[&str]) -> Called {
    call_in(repo.root(), &[&["import", "-", "--json"], args].concat(), bytes)
}

fn n_by_compiler(repo: &TestRepo) -> Value {
    callers(repo, "HEAD", "Item.price")["tiers"]["compiler"].clone()
}

/// Creates a project with facts, and a clone of it without.
fn maker_and_clone() -> (TestRepo, TestRepo) {
    let maker = project();
    import(&maker, &documents()).expect(0);
    let clone = maker.clone_with("clone", &[]);
    (maker, clone)
}

#[test]
fn a_bundle_has_the_facts_about_its_files() {
    let (maker, clone) = maker_and_clone();
    let bytes = exported(&maker, &[]);
    assert_eq!(Raw::parse(&bytes).facts, [2]);
    let answer = take(&clone, &bytes, &[]).expect(0).json();
    assert_eq!(
        (&answer["new_fact_files"], &answer["bundle"]["fact_files"]),
        (&2.into(), &2.into()),
        "{answer}"
    );
    let results = |repo: &TestRepo| callers(repo, "HEAD", "Item.price")["results"].clone();
    assert_eq!(results(&clone), results(&maker));
    assert_eq!(n_by_compiler(&clone), 1);
    assert_eq!(exported(&clone, &[]), bytes, "equal input gives equal bytes");
    run(&clone, &["verify", "--deep"]).expect(0);
    let again = take(&clone, &bytes, &[]).expect(0).json();
    assert_eq!(again["new_fact_files"], 0, "{again}");
    // At `v1`, another blob is at the path of the definition.
    assert_eq!(Raw::parse(&exported(&maker, &["v1"])).facts, [1]);
    let moved = maker.clone_with("moved", &[]);
    moved.rename("total.py", "sum.py");
    moved.commit("move");
    take(&moved, &bytes, &[]).expect(0);
    assert_eq!(Raw::parse(&exported(&moved, &[])).facts, [1], "a path counts too");
}

#[test]
fn a_bundle_without_facts_has_the_format_that_older_builds_read() {
    let (maker, clone) = maker_and_clone();
    let with = exported(&clone, &[]);
    assert_eq!(Raw::parse(&with).format, 2);
    let answer = take(&maker, &with, &[]).expect(0).json();
    assert_eq!(answer["new_fact_files"], 0, "{answer}");
    assert_eq!(Raw::parse(&exported(&maker, &[])).format, 3);
}

#[test]
fn facts_that_are_there_stay_and_answer_first() {
    let (maker, clone) = maker_and_clone();
    // The clone has a fact that `thing.price` means the other definition.
    let [items, _] = documents();
    let coupon = "scip-python python shop 1.0 items/Coupon#price().";
    let names = [
        ("total", 0, "=scip-python python shop 1.0 total/total()."),
        ("price", 0, coupon),
    ];
    import(&clone, &[items, document("total.py", TOTAL, &names)]).expect(0);
    let answer = take(&clone, &exported(&maker, &[]), &[]).expect(0).json();
    assert_eq!(answer["new_fact_files"], 0, "{answer}");
    assert_eq!(callers(&clone, "HEAD", "Coupon.price")["tiers"]["compiler"], 1);

    // Facts of another indexer are added, and those that are there still answer.
    let third = maker.clone_with("third", &[]);
    let path = third.path(".git/other.scip");
    std::fs::write(&path, index("other", &documents())).unwrap();
    run(&third, &["import", "scip", path.to_str().unwrap()]).expect(0);
    let answer = take(&clone, &exported(&third, &[]), &[]).expect(0).json();
    assert_eq!(answer["new_fact_files"], 2, "{answer}");
    assert_eq!(callers(&clone, "HEAD", "Coupon.price")["tiers"]["compiler"], 1);
    let status = run(&clone, &["status", "--json"]).expect(0).json();
    assert_eq!(status["precise"][0]["indexer"], "other", "{status}");
    assert_eq!(status["precise"][1]["indexer"], "scip-python", "{status}");
    run(&clone, &["verify"]).expect(0);
}

#[test]
fn an_archive_of_ci_has_the_facts_and_is_saved_again_for_new_ones() {
    let maker = project();
    let save = || run(&maker, &["ci", "save", "../archive", "--json"]).expect(0).json();
    assert_eq!(save()["fact_files"], 0);
    import(&maker, &documents()).expect(0);
    let saved = save();
    assert_eq!(
        (&saved["saved"], &saved["fact_files"]),
        (&true.into(), &2.into()),
        "{saved}"
    );
    assert_eq!(save()["saved"], false);
    let job = maker.clone_with("job", &["--depth=1"]);
    let answer = run(&job, &["ci", "restore", "../archive", "--json"]).expect(0).json();
    assert_eq!(
        (&answer["new_fact_files"], &answer["adopted"]),
        (&2.into(), &true.into()),
        "{answer}"
    );
    assert_eq!(n_by_compiler(&job), 1);
    let said = run(&job, &["ci", "save", "../archive"]).expect(0).text();
    assert!(said.contains("the archive already has this tree"), "{said}");
}

#[test]
fn a_remote_has_the_facts_beside_the_index() {
    let remote = project().bare_clone("remote.git");
    let maker = remote.clone_with("maker", &[]);
    let json = |repo: &TestRepo, args: &[&str]| run(repo, &[args, &["--json"]].concat()).expect(0).json();
    json(&maker, &["push", "--yes"]);
    import(&maker, &documents()[..1]).expect(0);
    let pushed = json(&maker, &["push", "--yes"]);
    assert_eq!(
        (&pushed["blobs"], &pushed["fact_files"]),
        (&0.into(), &1.into()),
        "{pushed}"
    );
    import(&maker, &documents()).expect(0);
    assert_eq!(
        json(&maker, &["push", "--yes"])["fact_files"],
        1,
        "only what the remote lacks"
    );
    assert_eq!(json(&maker, &["push", "--yes"])["pushed"], false);

    let clone = remote.clone_with("clone", &[]);
    let pulled = json(&clone, &["pull", "--yes"]);
    assert_eq!(
        (&pulled["parts"], &pulled["new_fact_files"]),
        (&3.into(), &2.into()),
        "{pulled}"
    );
    assert_eq!(n_by_compiler(&clone), 1);
    assert_eq!(json(&clone, &["pull", "--yes"])["parts"], 0);
    assert_eq!(json(&clone, &["push", "--yes"])["pushed"], false);
    let careful = remote.clone_with("careful", &[]);
    let pulled = json(&careful, &["pull", "--yes", "--compare-all"]);
    assert_eq!(pulled["new_fact_files"], 0);
    assert_eq!(pulled["facts_passed_over"], "they can only be verified by the indexer");
    let replaced = json(&maker, &["push", "--yes", "--replace"]);
    assert_eq!(
        (&replaced["fact_files"], &replaced["parts_after"]),
        (&2.into(), &2.into()),
        "{replaced}"
    );
}

#[test]
fn garbage_collection_and_repair_know_imported_facts() {
    let (maker, clone) = maker_and_clone();
    take(&clone, &exported(&maker, &[]), &[]).expect(0);
    run(&clone, &["gc", "--aggressive"]).expect(0);
    assert_eq!(n_by_compiler(&clone), 1);
    let path = facts_file(&clone);
    let mut bytes = std::fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&path, bytes).unwrap();
    run(&clone, &["verify", "--repair"]).expect(1);
    run(&clone, &["verify"]).expect(0);
    let answer = take(&clone, &exported(&maker, &[]), &[]).expect(0).json();
    assert_eq!(answer["new_fact_files"], 2, "{answer}");
}

/// Returns a file of facts that says about `total.py` what is true of another text.
fn untrue(repo: &TestRepo) -> Vec<u8> {
    let text = TOTAL.replace("import os\n", "");
    let names = [
        ("total", 0, "=scip-python python shop 1.0 total/total()."),
        ("price", 0, "scip-python python shop 1.0 items/Item#price()."),
    ];
    let bytes = index("scip-python", &[document("total.py", &text, &names)]);
    let document = Index::read(&bytes).unwrap().documents().next().unwrap().unwrap();
    let checked = check(&document, text.as_bytes()).unwrap().unwrap();
    let blob = repo.rev_parse("HEAD:total.py");
    let mut writer = FactsWriter::new("scip-python");
    writer.add(BlobId(Oid::from_hex(&blob).unwrap()), b"total.py", "1", &checked);
    writer.finish()
}

#[test]
fn names_that_are_not_in_the_file_are_not_believed() {
    let (maker, clone) = maker_and_clone();
    let key = maker.beside("key.pem");
    std::fs::write(&key, PRIVATE_KEY).unwrap();
    let mut raw = Raw::parse(&exported(&maker, &[]));
    let last = raw.frames.len() - 1;
    raw.put(last, &untrue(&maker));
    raw.facts = vec![1];
    let answer = take(&clone, &raw.to_bytes(), &[]).expect(1).json();
    assert_eq!(
        (&answer["untrue_fact_files"], &answer["new_fact_files"]),
        (&1.into(), &0.into()),
        "{answer}"
    );
    assert!(answer["new_blobs"].as_u64() > Some(0), "the rest is imported: {answer}");
    assert_eq!(callers(&clone, "HEAD", "Item.price")["candidates"], 1);
    // A maker who is trusted is believed, as about everything else.
    let signed = exported(&maker, &["--sign", key.to_str().unwrap()]);
    let answer = take(&clone, &signed, &["--trust", PUBLIC_KEY]).expect(0).json();
    assert_eq!(answer["new_fact_files"], 2, "{answer}");
}

/// The id of a blob, a path, a version, a block, a start in the block, a length.
type Row = (Vec<u8>, Vec<u8>, u32, u32, u32, u32);

fn opened(bytes: &[u8]) -> SectionFile {
    let path = std::path::Path::new("facts");
    SectionFile::from_bytes(path, bytes.to_vec().into(), FactsFile::FORMAT).unwrap()
}

fn section_of(bytes: &[u8], name: &str) -> Vec<u8> {
    opened(bytes).section(name).unwrap().to_vec()
}

/// Returns a file of facts with another section.
fn with_section(bytes: &[u8], name: &'static str, content: Vec<u8>) -> Vec<u8> {
    let file = opened(bytes);
    let mut writer = SectionWriter::new(FactsFile::FORMAT);
    for section in [
        "meta",
        "symbols",
        "packages",
        "suffixes",
        "definers",
        "documents",
        "block_ends",
        "blocks",
    ] {
        let old = file.section(section).unwrap().to_vec();
        writer.add(section, if section == name { content.clone() } else { old });
    }
    writer.finish()
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let frame = zstd::stream::encode_all(bytes, 3).unwrap();
    [&(bytes.len() as u64).to_le_bytes()[..], &frame].concat()
}

#[test]
fn files_of_facts_that_lie_are_refused() {
    let (maker, clone) = maker_and_clone();
    let honest = Raw::parse(&exported(&maker, &[]));
    let last = honest.frames.len() - 1;
    let facts = honest.opened(last);
    let row = |path: &str, block: u32, start: u32| (vec![1u8; 20], path.as_bytes().to_vec(), 0u32, block, start, 2u32);
    let rows = |rows: &[Row]| packed(&codescout::sidecar::encode(&rows));
    let many: Vec<_> = (0..20_000).map(|n| row(&format!("{n:06}"), 0, 0)).collect();
    let long = "x".repeat(1000);
    let cases = [
        (
            "a name with a line break",
            "meta",
            codescout::sidecar::encode(&("a\nb", ["1"])),
        ),
        ("a long name", "meta", codescout::sidecar::encode(&(&long, ["1"]))),
        ("more than fits into memory", "suffixes", packed(&vec![b'#'; 65 << 20])),
        (
            "symbols that grow",
            "symbols",
            packed(&[vec![0, 100], vec![b'x'; 100], [100, 0].repeat(1 << 20)].concat()),
        ),
        (
            "one block for two documents",
            "documents",
            rows(&[row("a", 0, 0), row("b", 0, 0)]),
        ),
        ("a block that is not there", "documents", rows(&[row("a", 7, 0)])),
        ("very many documents", "documents", rows(&many)),
        ("nothing", "blocks", Vec::new()),
    ];
    for (about, section, content) in cases {
        let mut raw = honest.clone();
        raw.put(last, &with_section(&facts, section, content));
        let refused = take(&clone, &raw.to_bytes(), &[]);
        assert_eq!(refused.code, 2, "{about}: {}{}", refused.text(), refused.stderr);
        assert!(refused.stderr.contains("facts"), "{about}: {}", refused.stderr);
        assert!(!refused.stderr.contains("panicked"), "{about}: {}", refused.stderr);
    }
    let suffixes = section_of(&facts, "suffixes");
    let n_symbols = u64::from_le_bytes(suffixes[..8].try_into().unwrap()) as usize;
    let zeros = packed(&vec![0; 60 << 20]);
    for (section, content, said) in [
        ("packages", zeros.clone(), "packages cannot be decompressed"),
        ("block_ends", zeros.clone(), "block_ends cannot be decompressed"),
        ("definers", zeros.clone(), "definers cannot be decompressed"),
        ("symbols", zeros, "symbols cannot be decompressed"),
        ("symbols", packed(&vec![0; 2 * n_symbols]), "content of section symbols"),
        (
            "suffixes",
            packed(&vec![b'?'; n_symbols]),
            "content of section suffixes",
        ),
        ("definers", packed(&vec![0; n_symbols]), "content of section definers"),
    ] {
        let mut raw = honest.clone();
        raw.put(last, &with_section(&facts, section, content));
        let refused = take(&clone, &raw.to_bytes(), &[]).expect(2);
        assert!(refused.stderr.contains(said), "{said}: {}", refused.stderr);
    }
    let mut raw = honest.clone();
    raw.facts = vec![3];
    let refused = take(&clone, &raw.to_bytes(), &[]).expect(2);
    assert!(
        refused.stderr.contains("the sizes of its facts differ"),
        "{}",
        refused.stderr
    );
    let mut raw = honest.clone();
    raw.facts = vec![1; 5000];
    let more = RawEntry {
        name: "facts-0001".to_owned(),
        ..raw.header.entries[last].clone()
    };
    raw.header.entries.push(more);
    let refused = take(&clone, &raw.to_bytes(), &[]).expect(2);
    assert!(refused.stderr.contains("too many files of facts"), "{}", refused.stderr);
    assert_eq!(
        take(&clone, &honest.to_bytes(), &[]).expect(0).json()["new_fact_files"],
        2
    );
}
