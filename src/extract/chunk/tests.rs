#![expect(clippy::unwrap_used, reason = "tests")]

use std::fmt::Write as _;

use super::*;
use crate::extract::types::Extraction;
use crate::extract::{by_name, extract};
use crate::model::Lang;

fn run(language: &str, text: &str) -> Extraction {
    let extraction = extract(
        text.as_bytes(),
        by_name(language).unwrap_or(Lang::TEXT),
        &Options::default(),
    );
    assert_covers(&extraction, text.len());
    extraction
}

/// Asserts that the chunks are in order and contain every byte.
fn assert_covers(extraction: &Extraction, len: usize) {
    let mut covered = 0;
    let mut last_start = 0;
    for chunk in &extraction.chunks {
        assert!(
            chunk.range.start >= last_start && chunk.range.start <= covered,
            "{chunk:?}"
        );
        assert!(
            chunk.start_line <= chunk.end_line && chunk.end_line <= extraction.n_lines,
            "{chunk:?}"
        );
        last_start = chunk.range.start;
        covered = covered.max(chunk.range.end);
    }
    assert_eq!(covered as usize, len);
}

/// Returns a Rust function of about `n_bytes` bytes.
fn function(name: &str, n_bytes: usize) -> String {
    let mut text = format!("/// About {name}.\nfn {name}() {{\n");
    let mut i = 0;
    while text.len() + 2 < n_bytes {
        writeln!(text, "    let value_{i} = compute_{i}({i});").unwrap();
        i += 1;
    }
    text.push_str("}\n");
    text
}

fn chunk_with<'a>(extraction: &'a Extraction, text: &str, word: &str) -> &'a Chunk {
    let at = text.find(word).unwrap() as u32;
    extraction
        .chunks
        .iter()
        .find(|chunk| chunk.range.start <= at && at < chunk.range.end)
        .unwrap()
}

fn name_of<'a>(extraction: &'a Extraction, chunk: &Chunk) -> &'a str {
    &extraction.definitions[chunk.definition.unwrap() as usize].name
}

#[test]
fn a_function_is_one_chunk_with_its_doc_and_without_its_neighbours() {
    let text = [function("before", 500), function("upload", 700), function("after", 500)].join("\n");
    let extraction = run("rust", &text);
    assert_eq!(extraction.chunks.len(), 3);
    let chunk = chunk_with(&extraction, &text, "fn upload");
    assert!(text[chunk.range.as_usize()].starts_with("/// About upload."));
    assert_eq!(chunk.kind, ChunkKind::Function);
    assert_eq!(name_of(&extraction, chunk), "upload");
}

#[test]
fn the_last_line_of_a_long_function_is_in_a_chunk_about_it() {
    let mut text = function("long", 12_000);
    text.truncate(text.len() - 2);
    text.push_str("    needle();\n}\n");
    assert!(text.lines().count() > 300);
    let extraction = run("rust", &text);
    let chunk = chunk_with(&extraction, &text, "needle");
    assert_eq!(name_of(&extraction, chunk), "long");
    assert!(chunk.part > 5, "{chunk:?}");
    let parts: Vec<u16> = extraction.chunks.iter().map(|chunk| chunk.part).collect();
    assert_eq!(parts, (0..extraction.chunks.len() as u16).collect::<Vec<_>>());
    assert!(extraction.chunks.iter().all(|chunk| chunk.range.len() <= 2_000));
}

#[test]
fn small_neighbours_are_merged_up_to_the_target() {
    let text: String = (0..40).map(|i| format!("fn small_{i}() -> u32 {{ {i} }}\n")).collect();
    let extraction = run("rust", &text);
    assert_eq!(extraction.chunks.len(), 2);
    assert_eq!(extraction.chunks[0].kind, ChunkKind::Items);
    assert_eq!(name_of(&extraction, &extraction.chunks[0]), "small_0");
}

#[test]
fn the_head_of_a_class_stands_apart_from_its_methods() {
    let mut text = "class Uploader:\n    \"\"\"Sends files.\"\"\"\n    size: int\n    name: str\n\n".to_owned();
    for i in 0..3 {
        writeln!(text, "    def method_{i}(self):").unwrap();
        (0..20).for_each(|line| writeln!(text, "        self.call_{line}({i})").unwrap());
        text.push('\n');
    }
    let extraction = run("python", &text);
    let heads: Vec<(&str, ChunkKind)> = extraction
        .chunks
        .iter()
        .map(|chunk| (name_of(&extraction, chunk), chunk.kind))
        .collect();
    let method = ChunkKind::Function;
    assert_eq!(
        heads,
        [
            ("Uploader", ChunkKind::Type),
            ("method_0", method),
            ("method_1", method),
            ("method_2", method)
        ]
    );
}

#[test]
fn cuts_fall_between_statements_and_after_blank_lines() {
    let mut text = "fn long() {\n".to_owned();
    for i in 0..60 {
        writeln!(
            text,
            "    if condition_{i} {{\n        act(\"{i}\");\n        act(\n            {i},\n        );\n    }}\n"
        )
        .unwrap();
    }
    text.push_str("}\n");
    let extraction = run("rust", &text);
    assert!(extraction.chunks.len() > 3);
    for chunk in &extraction.chunks[1..] {
        assert!(
            text[chunk.range.as_usize()].starts_with("    if condition"),
            "{chunk:?}"
        );
    }
}

#[test]
fn long_lines_are_cut_between_characters() {
    let text = "ü€😀".repeat(5_000);
    let extraction = run("text", &text);
    assert!(extraction.chunks.len() > 10);
    for chunk in &extraction.chunks {
        assert!(text.get(chunk.range.as_usize()).is_some(), "{chunk:?}");
        assert!(chunk.range.len() <= 2_300);
    }
}

#[test]
fn windows_overlap_unless_a_blank_line_parts_them() {
    let text: String = (0..200).map(|i| format!("line number {i} of the text\n")).collect();
    let extraction = run("text", &text);
    assert!(extraction.chunks.len() > 3);
    for pair in extraction.chunks.windows(2) {
        assert_eq!(pair[1].start_line + 1, pair[0].end_line);
        assert_eq!(pair[1].kind, ChunkKind::Window);
    }
}

#[test]
fn empty_and_blank_blobs_have_no_chunk_or_one() {
    assert!(run("rust", "").chunks.is_empty());
    assert_eq!(run("rust", "\n\n").chunks.len(), 1);
    assert_eq!(run("text", " ").chunks.len(), 1);
    assert_eq!(run("markdown", "\n").chunks.len(), 1);
}

#[test]
fn sections_of_prose_are_cut_at_headings() {
    let section =
        |level: usize, name: &str| format!("{} {name}\n\n{}\n", "#".repeat(level), "Some words.\n".repeat(50));
    let text = [section(1, "One"), section(2, "Two"), section(2, "Three")].concat();
    let extraction = run("markdown", &text);
    let names: Vec<&str> = extraction
        .chunks
        .iter()
        .map(|chunk| name_of(&extraction, chunk))
        .collect();
    assert_eq!(names, ["One", "Two", "Three"]);
}
