#![allow(clippy::unwrap_used, reason = "tests")]

use crate::git::{FileMode, Person};
use crate::model::{CommitId, Oid, RepoPath};
use crate::sidecar::FileError;

use super::*;

fn oid(n: u64) -> Oid {
    let mut bytes = [7; 20];
    bytes[..8].copy_from_slice(&n.to_be_bytes());
    Oid::from_bytes(&bytes).unwrap()
}

fn entry(n: u64) -> Option<Entry> {
    (n > 0).then(|| Entry {
        mode: if n.is_multiple_of(5) {
            FileMode::Executable
        } else {
            FileMode::File
        },
        oid: oid(n),
    })
}

fn commit(n: u64, changes: Vec<Change>) -> CommitData {
    let person = |name: String| Person {
        name: name.into(),
        email: "x@y".into(),
        time: n as i64 * 60 - 90,
        utc_offset: -3600,
    };
    CommitData {
        id: CommitId(oid(1_000 + n * 7 % 64)),
        parents: Vec::new(),
        author: person(format!("author {}", n % 3)),
        committer: person("committer".to_owned()),
        message: format!("subject {n}\nsecond line\n\nbody {n}\n").into(),
        encoding: None,
        boundary: Boundary::None,
        is_unknown: n == 4,
        changes,
    }
}

fn change(path: &str, old: u64, new: u64, from: Option<&str>) -> Change {
    Change {
        path: path.into(),
        old: entry(old),
        new: entry(new),
        origin: from.map(|path| Origin {
            path: path.into(),
            similarity: 87,
        }),
        is_combined: new % 2 == 1,
    }
}

fn sample(base: u32) -> BatchWriter {
    let mut writer = BatchWriter::new(base);
    for n in 0..40u64 {
        let mut changes = vec![change("a/x", n, n + 1, None)];
        match n {
            3 => changes.push(change("b", 0, 9, Some("never/changed"))),
            5 => changes.push(change("b", 9, 0, None)),
            8 => changes.push(change("b", 0, 9, None)),
            _ => {}
        }
        let parent = (base + n as u32).checked_sub(1);
        let parents = if n == 0 && base == 0 { vec![] } else { vec![parent] };
        writer.add(commit(u64::from(base) + n, changes), &parents);
    }
    writer
}

#[test]
fn a_batch_gives_back_what_it_was_given() {
    let batch = Batch::from_bytes(sample(0).finish()).unwrap();
    assert_eq!((batch.n_commits(), batch.n_changes()), (40, 43));
    let changes = batch.changes_of(b"b").unwrap();
    let found: Vec<_> = changes
        .iter()
        .map(|change| (change.commit, change.old, change.new))
        .collect();
    assert_eq!(found, [(3, None, entry(9)), (5, entry(9), None), (8, None, entry(9))]);
    assert_eq!(
        changes[0].origin.as_ref().unwrap().path,
        RepoPath::from("never/changed")
    );
    assert_eq!(batch.changes_of(b"a/x").unwrap().len(), 40);
    assert!(batch.changes_of(b"a").unwrap().is_empty());
    assert_eq!(batch.touched(3).unwrap(), [RepoPath::from("a/x"), RepoPath::from("b")]);
    assert_eq!(batch.message(39).unwrap(), "subject 39\nsecond line\n\nbody 39\n");
    let mut history = History::default();
    history.push(batch).unwrap();
    let heads = history.heads(&[39, 0, 4]).unwrap();
    assert_eq!(heads[&39].subject, "subject 39 second line");
    assert_eq!((heads[&0].commit_time, heads[&0].author_offset), (-90, -3600));
    assert_eq!(heads[&4].author.name, "author 1");
    assert_eq!(history.unknown(), [4]);
    for number in 0..40 {
        assert_eq!(history.number(history.id(number).unwrap()), Some(number));
    }
}

#[test]
fn a_merged_batch_says_what_its_parts_said() {
    let parts = [sample(0), sample(40)].map(|writer| Batch::from_bytes(writer.finish()).unwrap());
    let one = Batch::from_bytes(merged(&[&parts[0], &parts[1]]).unwrap()).unwrap();
    assert_eq!((one.base(), one.n_commits(), one.n_changes()), (0, 80, 86));
    let (mut of_parts, mut of_one) = (History::default(), History::default());
    parts.into_iter().for_each(|part| of_parts.push(part).unwrap());
    of_one.push(one).unwrap();
    let all: Vec<u32> = (0..80).collect();
    assert_eq!(of_parts.heads(&all).unwrap(), of_one.heads(&all).unwrap());
    for path in ["a/x", "b", "never/changed"] {
        assert_eq!(
            of_parts.changes_of(path.as_bytes()).unwrap(),
            of_one.changes_of(path.as_bytes()).unwrap()
        );
    }
    for number in all {
        assert_eq!(of_parts.parents(number), of_one.parents(number));
        assert_eq!(of_parts.touched(number).unwrap(), of_one.touched(number).unwrap());
        assert_eq!(of_parts.message(number).unwrap(), of_one.message(number).unwrap());
    }
}

#[test]
fn equal_input_gives_equal_bytes() {
    assert_eq!(sample(0).finish(), sample(0).finish());
}

#[test]
fn a_flipped_bit_is_noticed_or_changes_nothing() {
    let good = sample(0).finish();
    let everything = |bytes: Vec<u8>| -> Result<String, FileError> {
        let batch = Batch::from_bytes(bytes)?;
        let mut history = History::default();
        history.push(batch).map_err(|error| match error {
            HistoryError::File(error) => error,
            other => panic!("{other}"),
        })?;
        let batch = &history.batches()[0];
        let mut text = String::new();
        for number in 0..batch.n_commits() {
            text += &batch.message(number)?;
            text += &format!("{:?}{:?}", batch.touched(number)?, batch.heads_of_block(number)?);
        }
        text += &format!("{:?}{:?}", batch.changes_of(b"a/x")?, batch.changes_of(b"b")?);
        Ok(text)
    };
    let wanted = everything(good.clone()).unwrap();
    for at in (0..good.len()).step_by(7) {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        if let Ok(text) = everything(bad) {
            assert_eq!(text, wanted, "byte {at}");
        }
    }
}

#[test]
fn batches_have_to_adjoin() {
    let mut history = History::default();
    let second = Batch::from_bytes(sample(40).finish());
    assert!(matches!(
        history.push(second.unwrap()),
        Err(HistoryError::Gap { expected: 0, found: 40 })
    ));
}

fn record(name: &str, nth: u32, from: Option<(&str, &str)>) -> SymbolRecord {
    let is_gone = from.is_none() && nth == 3;
    SymbolRecord {
        name: name.to_owned(),
        nth,
        kind: crate::extract::DefinitionKind::Method,
        events: SymbolEvents {
            added: from.is_none() && !is_gone,
            removed: is_gone,
            formatting: from.is_some(),
            ..SymbolEvents::default()
        },
        old_lines: (is_gone || from.is_some()).then_some((700, 712)),
        new_lines: (!is_gone).then_some((5, 5 + nth)),
        text: if is_gone { 0 } else { 0xdead_beef },
        origin: from.map(|(path, name)| {
            let key = SymbolKey {
                path: path.into(),
                name: name.to_owned(),
                nth: 2,
            };
            (key, 77)
        }),
        goes_on: is_gone,
    }
}

/// Returns changes of the batch [`sample`] from commit 2 on. Path 0 is `a/x`, path 1 is `b`.
fn traced() -> TracedPaths {
    let change = |local: u32, records: Vec<SymbolRecord>| TracedChange {
        local,
        is_unknown: local == 4,
        records,
    };
    let of_a = vec![
        change(2, vec![record("A.f", 1, None), record("A.g", 3, None)]),
        change(4, Vec::new()),
        change(9, vec![record("A.f", 1, Some(("b", "A.h")))]),
    ];
    let of_b = vec![change(5, vec![record("A.f", 2, Some(("b", "A.f")))])];
    TracedPaths::from([(0, of_a), (1, of_b)])
}

#[test]
fn records_of_definitions_come_back() {
    let batch = Batch::from_bytes(sample(0).finish()).unwrap();
    let bytes = symbol_batch_bytes(&batch, 2, 7, &traced());
    assert_eq!(bytes, symbol_batch_bytes(&batch, 2, 7, &traced()));
    let symbols = SymbolBatch::from_bytes(bytes).unwrap();
    symbols.verify(&batch).unwrap();
    assert_eq!((symbols.first(), symbols.recipe(), symbols.n_records()), (2, 7, 4));
    assert_eq!(symbols.all(&batch).unwrap(), traced());
    let of_f = symbols.changes_of(&batch, 0, Some("A.f")).unwrap();
    let found: Vec<_> = of_f.iter().map(|change| (change.local, change.records.len())).collect();
    assert_eq!(found, [(2, 1), (4, 0), (9, 1)]);
    assert!(symbols.changes_of(&batch, 1, Some("A")).unwrap().is_empty());
    let named = symbols.named(&batch, &|name| name.ends_with(b".g")).unwrap();
    let names: Vec<_> = named[&0].iter().flat_map(|change| &change.records).collect();
    assert_eq!(names, [&record("A.g", 3, None)]);
    let other = Batch::from_bytes(sample(40).finish()).unwrap();
    assert!(!symbols.belongs_to(&other));
    assert!(symbols.verify(&other).is_err());
}

#[test]
fn merged_records_of_definitions_say_what_their_parts_said() {
    let parts = [sample(0), sample(40)].map(|writer| Batch::from_bytes(writer.finish()).unwrap());
    let whole = Batch::from_bytes(merged(&[&parts[0], &parts[1]]).unwrap()).unwrap();
    let known = |first: u32| {
        move |batch: &Batch| SymbolBatch::from_bytes(symbol_batch_bytes(batch, first, 7, &traced())).unwrap()
    };
    for (older, newer, first) in [(0, 0, 0), (2, 0, 2), (0, 2, 42), (2, 2, 42)] {
        let (older, newer) = (known(older)(&parts[0]), known(newer)(&parts[1]));
        let both = [(&parts[0], Some(&older)), (&parts[1], Some(&newer))];
        let symbols = SymbolBatch::from_bytes(merged_symbols(&both, &whole).unwrap().unwrap()).unwrap();
        symbols.verify(&whole).unwrap();
        assert_eq!(symbols.first(), first);
        let n_parts = if first == 42 { 1 } else { 2 };
        assert_eq!(symbols.n_records(), 4 * n_parts);
        let of_b = symbols.changes_of(&whole, 1, Some("A.f")).unwrap();
        assert_eq!(of_b.last().unwrap().local, 45);
    }
    assert!(
        merged_symbols(&[(&parts[0], None), (&parts[1], None)], &whole)
            .unwrap()
            .is_none()
    );
}

#[test]
fn flipped_bits_under_right_checksums_are_noticed_or_harmless() {
    let batch = Batch::from_bytes(sample(0).finish()).unwrap();
    let bytes = symbol_batch_bytes(&batch, 0, 7, &traced());
    let read = |bytes: Vec<u8>| {
        let symbols = SymbolBatch::from_bytes(bytes)?;
        symbols.changes_of(&batch, 0, Some("A.f"))?;
        symbols.named(&batch, &|_| true)?;
        symbols.verify(&batch)
    };
    for at in (0..bytes.len()).step_by(3) {
        let mut bad = bytes.clone();
        bad[at] ^= 0x81;
        // A change may go unnoticed only in the padding between sections.
        let is_noticed = read(bad).is_err();
        assert!(is_noticed || bytes[at] == 0, "byte {at}");
    }
    let names = ["meta", "names", "name_ends", "run_ends", "blocks", "block_ends"];
    let path = std::path::Path::new("records");
    let file = crate::sidecar::SectionFile::from_bytes(path, crate::sidecar::Bytes::from_vec(bytes), 1).unwrap();
    for name in names {
        for at in 0..file.section(name).unwrap().len() {
            let mut forged = crate::sidecar::SectionWriter::new(1);
            for other in names {
                let mut section = file.section(other).unwrap().to_vec();
                if other == name {
                    section[at] ^= 0x81;
                }
                forged.add(other, section);
            }
            // Reading any content must not panic or use much memory.
            let _ = read(forged.finish());
        }
    }
}

#[test]
fn what_is_checked_can_be_read() {
    let batch = Batch::from_bytes(sample(0).finish()).unwrap();
    let mut paths = traced();
    for changes in paths.values_mut() {
        changes.retain(|change| !change.is_unknown);
    }
    let bytes = symbol_batch_bytes(&batch, 0, 7, &paths);
    SymbolBatch::from_bytes(bytes.clone()).unwrap().check(&batch).unwrap();
    let unread = symbol_batch_bytes(&batch, 0, 7, &traced());
    assert!(SymbolBatch::from_bytes(unread).unwrap().check(&batch).is_err());
    let names = ["meta", "names", "name_ends", "run_ends", "blocks", "block_ends"];
    let path = std::path::Path::new("records");
    let file = crate::sidecar::SectionFile::from_bytes(path, bytes.into(), 1).unwrap();
    let run = crate::sidecar::decompress(&file.section("blocks").unwrap(), run_length(&file), 1 << 16).unwrap();
    for at in 0..run.len() {
        for flip in [0x01, 0x02, 0x08, 0x80, 0xff] {
            let mut changed = run.clone();
            changed[at] ^= flip;
            let block = crate::sidecar::compress(&changed);
            let mut forged = crate::sidecar::SectionWriter::new(1);
            for name in names {
                forged.add(
                    name,
                    match name {
                        "blocks" => block.clone(),
                        "block_ends" => (block.len() as u32).to_le_bytes().to_vec(),
                        _ => file.section(name).unwrap().to_vec(),
                    },
                );
            }
            let symbols = SymbolBatch::from_bytes(forged.finish()).unwrap();
            if symbols.check(&batch).is_ok() {
                symbols.all(&batch).unwrap();
            }
        }
    }
}

fn run_length(file: &crate::sidecar::SectionFile) -> usize {
    let ends = file.section("run_ends").unwrap();
    u32::from_le_bytes(*ends.last_chunk().unwrap()) as usize
}

/// Records two interleaved chains of commits in the given order, in batches of the given sizes. Each commit has a
/// changed definition and a line signature.
fn recorded(order: &[u64], sizes: &[usize]) -> (History, Vec<LineChanges>) {
    let (mut history, mut lines) = (History::default(), Vec::new());
    let mut rest = order;
    for &size in sizes {
        let (own, others) = rest.split_at(size);
        rest = others;
        let base = history.n_commits();
        let mut writer = BatchWriter::new(base);
        let mut signatures = super::lines::LinesWriter::new(base);
        for &n in own {
            let at = |n: u64| order.iter().position(|other| *other == n).map(|at| at as u32);
            let parents: Vec<Option<u32>> = n.checked_sub(2).map(at).into_iter().collect();
            let path = format!("a/{}", n % 3);
            let data = CommitData {
                is_unknown: false,
                ..commit(n, vec![change(&path, n, n + 1, None)])
            };
            writer.add(data, &parents);
            signatures.add(&[[n as u8]]);
        }
        let batch = Batch::from_bytes(writer.finish()).unwrap();
        let mut paths = TracedPaths::new();
        for (local, n) in (0..).zip(own) {
            let number = batch.path_number(format!("a/{}", n % 3).as_bytes()).unwrap();
            paths.entry(number).or_default().push(TracedChange {
                local,
                is_unknown: false,
                records: vec![record(&format!("f{n}"), 1, None)],
            });
        }
        let symbols = SymbolBatch::from_bytes(symbol_batch_bytes(&batch, 0, 7, &paths)).unwrap();
        history.push(batch).unwrap();
        history.add_symbols(symbols);
        lines.push(LineChanges::from_bytes(signatures.finish()).unwrap());
    }
    (history, lines)
}

#[test]
fn what_others_get_follows_from_the_commits_alone() {
    let in_turns: Vec<u64> = (0..40).collect();
    let one_after_the_other: Vec<u64> = (0..40).step_by(2).chain((1..40).step_by(2)).collect();
    let selected = |order: &[u64], sizes: &[usize], tips: &[u64]| {
        let (history, lines) = recorded(order, sizes);
        let number = |n: &u64| order.iter().position(|other| other == n).unwrap() as u32;
        let reached = history.reachable(&tips.iter().map(number).collect::<Vec<_>>());
        let mut all = Vec::new();
        let keep = |selected: Selected| {
            all.push((selected.records, selected.symbols, selected.lines));
            Ok::<_, HistoryError>(())
        };
        super::selection::select_in(&history, &lines, &reached, 7, (7, usize::MAX), keep).unwrap();
        all
    };
    let files = selected(&in_turns, &[40], &[38, 39]);
    assert_eq!(files.len(), 6);
    assert!(files == selected(&one_after_the_other, &[3, 20, 1, 16], &[38, 39]));
    assert!(files == selected(&in_turns, &[10; 4], &[38, 39]));

    let (history, lines) = recorded(&in_turns, &[40]);
    let mut sizes = Vec::new();
    let keep = |selected: Selected| {
        sizes.push(selected.n_commits);
        Ok::<_, HistoryError>(())
    };
    let all = history.reachable(&[38, 39]);
    super::selection::select_in(&history, &lines, &all, 7, (40, 15), keep).unwrap();
    assert_eq!(sizes, [15, 15, 10], "each changes one path");

    // Export one chain only, with its definition changes and line signatures.
    let files = selected(&one_after_the_other, &[13, 13, 13, 1], &[39]);
    let (mut history, mut n) = (History::default(), 1);
    for (records, symbols, lines) in files {
        let batch = Batch::from_bytes(records).unwrap();
        batch.verify().unwrap();
        let symbols = SymbolBatch::from_bytes(symbols).unwrap();
        symbols.check(&batch).unwrap();
        let lines = LineChanges::from_bytes(lines).unwrap();
        lines.verify(&batch).unwrap();
        for local in 0..batch.n_commits() {
            let expected = commit(n, Vec::new());
            assert_eq!(batch.id(local).unwrap(), expected.id);
            assert_eq!(lines.copied(local), [[n as u8]]);
            let path = format!("a/{}", n % 3);
            assert_eq!(batch.changes_at(local).unwrap()[0].path.as_bytes(), path.as_bytes());
            let number = batch.path_number(path.as_bytes()).unwrap();
            let traced = symbols.changes_of(&batch, number, Some(&format!("f{n}"))).unwrap();
            assert_eq!((traced.len(), traced[0].local), (1, local));
            n += 2;
        }
        history.push(batch).unwrap();
    }
    assert_eq!((history.n_commits(), n), (20, 41));
    assert!((1..20).all(|number| history.parents(number) == [Some(number - 1)]));
}

#[test]
fn damaged_lengths_are_noticed() {
    let mut file = crate::sidecar::SectionWriter::new(1);
    file.add("meta", vec![0xff; 24]);
    for name in ["names", "name_ends", "run_ends", "blocks", "block_ends"] {
        file.add(name, vec![0xff; 80]);
    }
    let batch = Batch::from_bytes(sample(0).finish()).unwrap();
    let opened = SymbolBatch::from_bytes(file.finish());
    assert!(opened.and_then(|symbols| symbols.verify(&batch)).is_err());
}

#[test]
fn a_text_lives_along_parents_and_not_across_branches() {
    // The parents of each commit, and the old and the new version of the file `m`.
    let commits = [
        (&[][..], Some((0, 1))),
        (&[0], Some((1, 2))),
        (&[0], None),
        // This merge takes nothing from the side branch.
        (&[2, 1], None),
        (&[3], Some((1, 3))),
        (&[4], Some((3, 4))),
        (&[5], Some((4, 6))),
        (&[5], None),
        // This merge takes the change of the side branch.
        (&[7, 6], Some((4, 6))),
        (&[8], Some((6, 7))),
        (&[8], None),
        (&[10, 9], Some((6, 7))),
    ];
    let mut writer = BatchWriter::new(0);
    for ((parents, edit), n) in commits.iter().zip(0..) {
        let changes = match edit {
            Some((old, new)) => vec![change("m", *old, *new, None)],
            None => vec![change("x", n, n + 1, None)],
        };
        let parents: Vec<Option<u32>> = parents.iter().copied().map(Some).collect();
        writer.add(commit(n, changes), &parents);
    }
    let mut history = History::default();
    history.push(Batch::from_bytes(writer.finish()).unwrap()).unwrap();
    let (tip, reached) = (11, history.reachable(&[11]));
    for (blob, with, wanted) in [
        (1, &[1, 3][..], (Some(0), Some(5), Some(4))),
        (3, &[1, 3], (Some(0), Some(5), Some(4))),
        // On a side branch whose change was not merged.
        (2, &[2], (Some(1), Some(3), Some(1))),
        // Removed and added on a side branch whose change was merged.
        (4, &[4], (Some(5), Some(6), Some(5))),
        (7, &[7], (Some(9), None, None)),
        (1, &[1, 2, 3, 4, 6, 7], (Some(0), None, None)),
    ] {
        let mut has_text = |found: Oid| Ok::<_, HistoryError>(with.iter().any(|n| oid(*n) == found));
        let path = RepoPath::from("m");
        let life = text_lifetime(&history, (tip, &reached), (&path, oid(blob)), &mut has_text).unwrap();
        assert_eq!((life.first, life.gone, life.last), wanted, "{blob}");
    }
}
