//! Gives readers of untrusted bytes inputs that are nearly valid. A reader may refuse them, but must not panic.

use std::path::Path;

use codescout::bundle::{BundleFile, decode_keys};
use codescout::precise::{Index, check};
use codescout::query::{Mode, Pattern, PatternOptions, parse_lines, parse_place, parse_target, read_target};
use codescout::sidecar::{Bytes, SectionFile, SectionWriter, Sidecar};
use proptest::prelude::*;
use proptest::sample::Index as At;

use crate::cli::call_in;
use crate::indexed::Indexed;
use crate::support::{TestRepo, properties, scip};

/// Number of inputs for each reader; a long run tries ten times as many.
const N_CASES: u32 = 2_000;

/// A change of valid bytes.
#[derive(Clone, Debug)]
enum Change {
    Flip(At, u8),
    Cut(At),
    Insert(At, Vec<u8>),
    Repeat(At, u8),
    /// Eight bytes that a reader may take for a length.
    Length(At, u64),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        (any::<At>(), any::<u8>()).prop_map(|(at, bits)| Change::Flip(at, bits)),
        any::<At>().prop_map(Change::Cut),
        (any::<At>(), prop::collection::vec(any::<u8>(), 1..12)).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        (any::<At>(), any::<u8>()).prop_map(|(at, n)| Change::Repeat(at, n)),
        (any::<At>(), any::<u64>(), 0..64u32).prop_map(|(at, length, by)| Change::Length(at, length >> by)),
    ];
    prop::collection::vec(change, 1..6)
}

fn changed(valid: &[u8], changes: &[Change]) -> Vec<u8> {
    let mut bytes = valid.to_vec();
    for change in changes {
        let place = |at: &At| at.index(bytes.len() + 1);
        match change {
            Change::Flip(at, bits) => {
                let at = place(at);
                bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= bits);
            }
            Change::Cut(at) => bytes.truncate(place(at)),
            Change::Insert(at, inserted) => {
                let at = place(at);
                bytes.splice(at..at, inserted.iter().copied());
            }
            Change::Repeat(at, n) => {
                let at = place(at);
                let repeated = bytes[at..].iter().copied().take(40).collect::<Vec<_>>();
                bytes.splice(at..at, repeated.repeat(usize::from(*n)));
            }
            Change::Length(at, length) => {
                let at = place(at);
                let end = (at + 8).min(bytes.len());
                bytes.splice(at..end, length.to_le_bytes());
            }
        }
    }
    bytes
}

/// Tries inputs made from each of the valid ones.
fn try_each(valid: &[Vec<u8>], n_cases: u32, read: impl Fn(&[u8])) {
    valid.iter().for_each(|bytes| read(bytes));
    let input = (any::<At>(), changes());
    let mut runner = proptest::test_runner::TestRunner::new(properties(n_cases));
    let tried = runner.run(&input, |(at, changes)| {
        read(&changed(&valid[at.index(valid.len())], &changes));
        Ok(())
    });
    tried.unwrap();
}

#[test]
fn indexes_of_compilers() {
    let text = "fn a() { b(); }\nfn b() { a(); a(); }\n";
    let names = [("a", 0, "=x a"), ("b", 0, "x b"), ("b", 1, "=x b"), ("a", 1, "x a")];
    let documents = [scip::document("a.rs", text, &names), scip::document("ü.rs", "", &[])];
    let valid = [scip::index("tool", &documents), scip::index("", &[])];
    try_each(&valid, N_CASES, |bytes| {
        let Ok(index) = Index::read(bytes) else { return };
        for document in index.documents().flatten() {
            let _ = check(&document, text.as_bytes());
        }
    });
}

#[test]
fn files_of_the_sidecar() {
    let mut writer = SectionWriter::new(7);
    writer.add("first", b"some bytes".repeat(20));
    writer.add("second", Vec::new());
    let valid = [writer.finish(), SectionWriter::new(7).finish()];
    try_each(&valid, N_CASES, |bytes| {
        let Ok(file) = SectionFile::from_bytes(Path::new("file"), Bytes::from_vec(bytes.to_vec()), 7) else {
            return;
        };
        for name in ["first", "second", "third"] {
            let _ = file.section(name);
        }
        let _ = file.verify();
        let _ = decode_keys(bytes);
    });
}

#[test]
fn bundles() {
    /// Length of the magic, the format and the length of the header. A hash of 32 bytes follows.
    const START_BYTES: usize = 16;
    const HASH_BYTES: usize = 32;
    let repo = TestRepo::new("//- a.rs\nfn a() { b(); }\n//- b.py\ndef b(): pass\n");
    call_in(repo.root(), &["index", "--history"], b"").expect(0);
    let path = repo.root().join("x.bundle");
    call_in(repo.root(), &["export", "x.bundle"], b"").expect(0);
    let valid = std::fs::read(path).unwrap();
    let sidecar = Sidecar::open_or_create(&repo.root().join("other")).unwrap();
    assert!(BundleFile::open(&valid[..]).unwrap().stage(&sidecar).is_ok());
    let read = |bytes: &[u8]| {
        let Ok(bundle) = BundleFile::open(bytes) else { return };
        let _ = bundle.n_bytes();
        if let Ok(entries) = bundle.stage(&sidecar) {
            entries.iter().for_each(|entry| drop(decode_keys(entry)));
        }
    };
    let n_header = u32::from_le_bytes([valid[12], valid[13], valid[14], valid[15]]) as usize;
    let (start, rest) = (
        valid[..START_BYTES].to_vec(),
        valid[START_BYTES + HASH_BYTES..].to_vec(),
    );
    let (header, after) = rest.split_at(n_header);
    // The hash of the header is right, so that its content is read.
    try_each(&[header.to_vec()], N_CASES, |header| {
        let mut bytes = start.clone();
        bytes[12..].copy_from_slice(&(header.len() as u32).to_le_bytes());
        let hash = blake3::Hasher::new().update(&bytes).update(header).finalize();
        bytes.extend_from_slice(hash.as_bytes());
        read(&[&bytes, header, after].concat());
    });
    try_each(&[after.to_vec()], N_CASES / 10, |after| {
        read(&[&valid[..valid.len() - rest.len() + n_header], after].concat());
    });
}

#[test]
fn targets_and_queries() {
    let repo = TestRepo::new("//- src/a#b.rs\nstruct S;\nimpl S { fn a() {} }\n//- b.py\ndef b(): pass\n");
    let index = Indexed::new(repo.root());
    let view = index.view("HEAD");
    let valid = [
        "src/a#b.rs#S.a~1",
        "src/a#b.rs:2:9-11",
        "b.py:1-",
        "crate::S::a()",
        "S.a|b OR \"struct S\" -x path:src lang:rust",
        "  File \"/app/b.py\", line 1, in b\nTypeError: b() takes 0",
        "thread 'main' panicked at src/a#b.rs:2:10:\n   1: S::a",
    ]
    .map(|text| text.as_bytes().to_vec());
    try_each(&valid, N_CASES / 10, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let _ = parse_target(&view, &text);
        let _ = parse_place(&view, &text);
        let _ = parse_lines(&text);
        let _ = read_target(&view, &text);
        let _ = Pattern::new(&text, PatternOptions::default());
        for mode in [Mode::Auto, Mode::Keyword] {
            let _ = index.try_search(&view, mode, &text);
        }
    });
}
