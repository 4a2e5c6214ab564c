//! Tests operations on definitions of real files: what was inserted can be removed without a trace, a part replaced by
//! itself does not change, and nothing outside an operation changes.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::file::{applied, parts_of};
use super::locate::{FileText, Part};
use super::text::trimmed;
use super::{Batch, Operation, Verb};
use crate::model::ByteRange;

/// Generates numbers (xorshift64*).
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n
    }
}

/// Applies one operation.
fn edited(path: &str, bytes: &[u8], op: Verb, part: Part, text: &str, old: Option<&str>) -> Result<Vec<u8>, String> {
    let operations = [Operation {
        op,
        target: path.to_owned(),
        text: Some(text.to_owned()),
        old: old.map(str::to_owned),
        ..Operation::default()
    }];
    let batch = Batch {
        operations: &operations,
        allow_errors: false,
    };
    applied(path, bytes, batch, &[(0, part)]).map_err(|error| error.message)
}

/// Returns the bytes that differ: the range in the old content, without the common start and end.
fn difference(old: &[u8], new: &[u8]) -> std::ops::Range<usize> {
    let same = |(a, b): &(&u8, &u8)| a == b;
    let start = old.iter().zip(new).take_while(same).count();
    let limit = old.len().min(new.len()) - start;
    let end = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take(limit)
        .take_while(same)
        .count();
    start..old.len() - end
}

/// The outcomes of edits, by kind.
#[derive(Default)]
struct Tally {
    applied: BTreeMap<(&'static str, String), usize>,
    refused: BTreeMap<&'static str, usize>,
    wrong: Vec<String>,
}

impl Tally {
    fn n_applied(&self) -> usize {
        self.applied.values().sum()
    }
}

/// Makes random edits of a file, each of the original content.
fn try_file(path: &str, bytes: &[u8], n_edits: usize, dice: &mut Dice, tally: &mut Tally) {
    let text = FileText::new(path, bytes);
    let names = text.names();
    if names.is_empty() || std::str::from_utf8(bytes).is_err() {
        return;
    }
    for _ in 0..n_edits {
        let index = dice.below(names.len());
        let part = Part::Name(names[index].clone());
        if text.find(&part).ok() != Some(super::locate::Place::Definition(index)) {
            continue;
        }
        let range = text.range(index);
        let own = String::from_utf8_lossy(&bytes[range.clone()]).into_owned();
        let (kind, outcome) = match dice.below(8) {
            0 => ("replace", replaced_by_itself(path, bytes, part, &own)),
            1 => ("replace_body", body_replaced(&text, index, part)),
            2 => ("replace_doc", doc_replaced(&text, index, part)),
            3 => ("remove", removed(&text, index, part)),
            4 => ("replace_text", text_replaced(path, bytes, part, &own)),
            5 => ("insert_before", inserted(&text, index, Verb::InsertBefore, dice)),
            _ => ("insert_after", inserted(&text, index, Verb::InsertAfter, dice)),
        };
        match outcome {
            Ok(true) => *tally.applied.entry((kind, text.language.to_owned())).or_default() += 1,
            Ok(false) => *tally.refused.entry(kind).or_default() += 1,
            Err(wrong) => tally.wrong.push(format!("{kind} {path}#{}: {wrong}", names[index])),
        }
    }
}

/// Returns true if an edit was applied, false if it was refused, and an error if its result is wrong.
type Outcome = Result<bool, String>;

fn replaced_by_itself(path: &str, bytes: &[u8], part: Part, own: &str) -> Outcome {
    match edited(path, bytes, Verb::Replace, part, own, None) {
        Ok(new) if new == bytes => Ok(true),
        Ok(new) => Err(format!("replaced by itself: {}", shown(bytes, &new))),
        Err(_) => Ok(false),
    }
}

fn body_replaced(text: &FileText<'_>, index: usize, part: Part) -> Outcome {
    let Some(body) = super::body::body_of(text, index) else {
        return Ok(false);
    };
    let own = String::from_utf8_lossy(&text.bytes[body.range.clone()]).into_owned();
    let Ok(new) = edited(text.path, text.bytes, Verb::ReplaceBody, part, &own, None) else {
        return Ok(false);
    };
    let changed = difference(text.bytes, &new);
    if changed.is_empty() || body.range.start <= changed.start && changed.end <= body.range.end {
        Ok(true)
    } else {
        Err(format!("changed {changed:?} outside of {:?}", body.range))
    }
}

fn doc_replaced(text: &FileText<'_>, index: usize, part: Part) -> Outcome {
    let Some(doc) = text.definition(index).doc else {
        return Ok(false);
    };
    let doc = trimmed(text.bytes, doc.as_usize());
    let own = String::from_utf8_lossy(&text.bytes[doc.clone()]).into_owned();
    match edited(text.path, text.bytes, Verb::ReplaceDoc, part, &own, None) {
        Ok(new) if new == text.bytes => Ok(true),
        Ok(new) => Err(format!("doc replaced by itself: {}", shown(text.bytes, &new))),
        Err(_) => Ok(false),
    }
}

fn removed(text: &FileText<'_>, index: usize, part: Part) -> Outcome {
    let Ok(new) = edited(text.path, text.bytes, Verb::Remove, part, "", None) else {
        return Ok(false);
    };
    // Only blank space, a separator and a comment on the last line may go with it.
    let range = text.range(index);
    let n_after = text.bytes[range.end..]
        .iter()
        .take_while(|byte| **byte != b'\n')
        .count();
    let rest = &text.bytes[range.end + n_after..];
    let n_blank = rest.len() - rest.trim_ascii_start().len();
    let before = text.bytes[..range.start].trim_ascii_end();
    let before = before.strip_suffix(b",").unwrap_or(before).len();
    let changed = difference(text.bytes, &new);
    let is_inside = before <= changed.start && changed.end <= range.end + n_after + n_blank;
    // If the text after repeats the removed one, the difference can be seen further down.
    let gone = text.bytes.len() - new.len();
    let is_shifted =
        text.bytes.len() > new.len() && gone >= range.len() && gone <= range.end + n_after + n_blank - before;
    (is_inside || is_shifted)
        .then_some(true)
        .ok_or_else(|| format!("changed {changed:?} outside of {range:?}"))
}

fn text_replaced(path: &str, bytes: &[u8], part: Part, own: &str) -> Outcome {
    let old: String = own.chars().take(60).collect();
    let new = format!("{old}{old}");
    let edit = |bytes: &[u8], old: &str, new: &str, part: &Part| {
        let operations = [Operation {
            op: Verb::ReplaceText,
            text: Some(new.to_owned()),
            old: Some(old.to_owned()),
            ..Operation::default()
        }];
        let batch = Batch {
            operations: &operations,
            allow_errors: true,
        };
        applied(path, bytes, batch, &[(0, part.clone())])
    };
    let Ok(changed) = edit(bytes, &old, &new, &part) else {
        return Ok(false);
    };
    match edit(&changed, &new, &old, &Part::Whole) {
        Ok(back) if back == bytes => Ok(true),
        Ok(back) => Err(format!("text not restored: {}", shown(bytes, &back))),
        Err(_) => Ok(false),
    }
}

/// Inserts a copy of a neighbour next to a definition, and removes it again.
fn inserted(text: &FileText<'_>, index: usize, verb: Verb, dice: &mut Dice) -> Outcome {
    let own = text.definition(index);
    let is_alike = |other: &usize| {
        let other = text.definition(*other);
        other.container == own.container && other.kind == own.kind
    };
    let alike: Vec<usize> = (0..text.extraction.definitions.len()).filter(is_alike).collect();
    let model = alike[dice.below(alike.len())];
    if text.twin(index).is_some() || text.twin(model).is_some() {
        return Ok(false);
    }
    let copied = String::from_utf8_lossy(&text.bytes[text.range(model)]).into_owned();
    let part = Part::Name(text.names()[index].clone());
    let Ok(new) = edited(text.path, text.bytes, verb, part, &copied, None) else {
        return Ok(false);
    };
    // An insertion keeps every byte before and after it.
    let place = difference(text.bytes, &new);
    if place.len() > 1 {
        return Err(format!("inserting changed {place:?}: {}", shown(text.bytes, &new)));
    }
    let after = FileText::new(text.path, &new);
    let names = after.names();
    let name = text.definition(model).name.clone();
    let at = ByteRange::new(text.range(index).start as u32, text.range(index).end as u32);
    let is_copy = |candidate: &usize| {
        let found = after.definition(*candidate);
        let range = after.range(*candidate);
        let is_there = match verb {
            Verb::InsertBefore => range.start.abs_diff(at.start as usize) <= 1,
            _ => range.start >= at.end as usize,
        };
        let words = |text: &[u8]| {
            text.iter()
                .copied()
                .filter(|byte| !byte.is_ascii_whitespace())
                .collect::<Vec<u8>>()
        };
        let is_same = words(&new[range]) == words(copied.as_bytes());
        found.name == name && is_there && is_same && names.len() > text.extraction.definitions.len()
    };
    let copies = (0..names.len()).filter(is_copy);
    let copy = match verb {
        Verb::InsertBefore => copies.max_by_key(|index| after.range(*index).start),
        _ => copies.min_by_key(|index| after.range(*index).start),
    };
    let Some(copy) = copy else {
        // The copy was merged with its neighbour, such as clauses of one function.
        return Ok(false);
    };
    let part = Part::Name(names[copy].clone());
    if after.find(&part).ok() != Some(super::locate::Place::Definition(copy)) {
        return Ok(false);
    }
    match edited(text.path, &new, Verb::Remove, part, "", None) {
        Ok(back) if back == text.bytes => Ok(true),
        Ok(back) => Err(format!("not restored: {}", shown(text.bytes, &back))),
        Err(error) => Err(format!("cannot remove the copy: {error}")),
    }
}

/// Returns the lines that differ.
fn shown(old: &[u8], new: &[u8]) -> String {
    let diff = crate::git::unified_diff(old, new, (1, 1));
    diff.lines().take(14).collect::<Vec<_>>().join("\n")
}

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_symlink() || path.ends_with(".git") {
            continue;
        } else if path.is_dir() {
            files_below(&path, found);
        } else if path.extension().is_none_or(|ending| ending != "golden") {
            found.push(path);
        }
    }
    found.sort();
}

/// Makes random edits of the files below a folder, in versions with other line endings too.
fn try_folder(folder: &Path, n_edits: usize, seed: u64) -> Tally {
    let mut files = Vec::new();
    files_below(folder, &mut files);
    let (mut dice, mut tally) = (Dice(seed), Tally::default());
    for file in files {
        let Ok(bytes) = fs::read(&file) else { continue };
        if bytes.len() > 200_000 {
            continue;
        }
        let path = file.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
        let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
        let bytes = match dice.below(4) {
            0 => text.replace('\n', "\r\n").into_bytes(),
            1 => text.trim_end().as_bytes().to_vec(),
            2 => ["\u{feff}", &text].concat().into_bytes(),
            _ => bytes,
        };
        try_file(&path, &bytes, n_edits, &mut dice, &mut tally);
    }
    tally
}

#[test]
fn random_edits_of_every_language_change_nothing_else() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/lang");
    let tally = try_folder(&folder, 20, 7);
    assert!(
        tally.wrong.is_empty(),
        "{}\n{}",
        tally.wrong.len(),
        tally.wrong.join("\n")
    );
    assert!(tally.n_applied() > 400, "{} {:?}", tally.n_applied(), tally.refused);
}

#[test]
#[ignore = "needs clones in CODESCOUT_LONG_TESTS"]
#[expect(clippy::print_stderr, reason = "its figures are in docs/evaluation.md")]
fn random_edits_of_real_files_change_nothing_else() {
    let clones = std::env::var_os("CODESCOUT_LONG_TESTS").unwrap_or_default();
    let n_edits = std::env::var("CODESCOUT_N_EDITS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(4);
    let mut wrong = Vec::new();
    for clone in std::env::split_paths(&clones) {
        let tally = try_folder(&clone, n_edits, 11);
        let mut by_language: BTreeMap<&str, usize> = BTreeMap::new();
        tally
            .applied
            .iter()
            .for_each(|((_, language), n)| *by_language.entry(language).or_default() += n);
        eprintln!(
            "{}: {} applied {by_language:?}, refused {:?}, {} wrong",
            clone.display(),
            tally.n_applied(),
            tally.refused,
            tally.wrong.len()
        );
        wrong.extend(tally.wrong);
    }
    eprintln!("{}", wrong.iter().take(40).cloned().collect::<Vec<_>>().join("\n"));
    assert!(wrong.is_empty(), "{} wrong", wrong.len());
}

#[test]
fn targets_are_paths_lines_and_names() {
    let parts: Vec<String> = parts_of("a#b.md#C:5")
        .iter()
        .map(|(path, part)| format!("{} {part:?}", path.to_text()))
        .collect();
    assert_eq!(
        parts,
        [
            "a#b.md#C:5 Whole",
            "a#b.md#C Line(5)",
            "a#b.md Name(\"C:5\")",
            "a Name(\"b.md#C:5\")"
        ]
    );
    assert!(matches!(parts_of("a:3-").as_slice(), [_, (_, Part::Lines(3, None))]));
}
