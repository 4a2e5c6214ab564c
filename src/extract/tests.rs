//! Checks properties of all languages: the chunks contain all bytes, time is bounded, and the result depends only on
//! the bytes.

#![expect(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;

use super::*;
use crate::model::{Lang, RepoPath};
use crate::support::assert_within;

/// Reads all samples. Returns the name, language and content of each.
fn samples() -> Vec<(String, Lang, Vec<u8>)> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/lang");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.retain(|path| path.extension().is_none_or(|extension| extension != "golden"));
    paths.sort();
    let read = |path: std::path::PathBuf| {
        let bytes = std::fs::read(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let lang = detect(&RepoPath::from(name.as_str()), &bytes);
        (name, lang, bytes)
    };
    paths.into_iter().map(read).collect()
}

/// Checks the invariants of every extraction.
fn check(bytes: &[u8], extraction: &Extraction) {
    check_with(bytes, extraction, &Options::default());
}

fn check_with(bytes: &[u8], extraction: &Extraction, options: &Options) {
    let lines = lines::LineIndex::new(bytes);
    let len = bytes.len() as u32;
    let mut covered = 0;
    let mut last_start = 0;
    for chunk in &extraction.chunks {
        assert!(!chunk.range.is_empty() && chunk.range.end <= len, "{chunk:?}");
        assert!(
            last_start <= chunk.range.start && chunk.range.start <= covered,
            "a gap before {chunk:?}"
        );
        assert!(chunk.start_line >= 1 && chunk.start_line <= chunk.end_line && chunk.end_line <= extraction.n_lines);
        let line = lines.line_of(chunk.range.start);
        let is_long = lines.range(line, line + 1).len() > options.max_bytes as usize;
        assert!(
            lines.start(line) == chunk.range.start || is_long,
            "{chunk:?} starts within a line"
        );
        assert!(
            chunk
                .definition
                .is_none_or(|at| (at as usize) < extraction.definitions.len())
        );
        (last_start, covered) = (chunk.range.start, covered.max(chunk.range.end));
    }
    assert_eq!(covered, len, "bytes without a chunk");
    let mut last_start = 0;
    for (at, definition) in extraction.definitions.iter().enumerate() {
        assert!(last_start <= definition.range.start, "{definition:?} is out of order");
        last_start = definition.range.start;
        for inner in [Some(definition.name_range), Some(definition.signature), definition.doc]
            .into_iter()
            .flatten()
        {
            assert!(definition.range.contains(inner), "{definition:?}");
        }
        assert!(definition.range.end <= len && !definition.name.is_empty());
        assert!(
            definition.container.is_none_or(|container| (container as usize) < at),
            "{definition:?}"
        );
    }
    assert!(
        extraction
            .references
            .is_sorted_by_key(|reference| reference.range.start)
    );
    assert!(
        extraction
            .references
            .iter()
            .all(|reference| reference.range.end <= len && !reference.name.is_empty())
    );
    assert!(extraction.bindings.iter().all(|binding| binding.scope.end <= len));
    assert!(extraction.imports.is_sorted_by_key(|import| import.range.start));
    assert!(extraction.imports.iter().all(|import| import.range.end <= len));
}

#[test]
fn extracting_twice_gives_the_same_whatever_came_between() {
    let mut extractor = Extractor::new(Options::default());
    let samples = samples();
    let first: Vec<Extraction> = samples
        .iter()
        .map(|(_, lang, bytes)| extractor.extract(bytes, *lang))
        .collect();
    for ((name, lang, bytes), first) in samples.iter().zip(&first).rev() {
        assert_eq!(&extractor.extract(bytes, *lang), first, "{name}");
        assert_eq!(&extract(bytes, *lang, &Options::default()), first, "{name}");
    }
}

#[test]
fn samples_keep_to_the_rules_with_any_line_ends_and_without_a_last_newline() {
    for (_, lang, bytes) in samples() {
        let crlf = String::from_utf8(bytes.clone())
            .unwrap()
            .replace('\n', "\r\n")
            .into_bytes();
        let trimmed = bytes.trim_ascii_end().to_vec();
        for bytes in [bytes, crlf, trimmed] {
            check(&bytes, &extract(&bytes, lang, &Options::default()));
        }
    }
}

/// At least half of the definitions in the first quarter of a sample are found if its second half is garbage.
#[test]
fn a_broken_file_still_yields_what_stands_before_the_damage() {
    for (name, lang, mut bytes) in samples() {
        let whole = extract(&bytes, lang, &Options::default());
        let half = bytes.len() as u32 / 2;
        bytes.truncate(half as usize);
        bytes.extend_from_slice(b"\n)]}>;; <<<<<<< HEAD @@ \xff\xfe $$$ ((((\n");
        let broken = extract(&bytes, lang, &Options::default());
        check(&bytes, &broken);
        let expected = whole
            .definitions
            .iter()
            .filter(|definition| definition.range.end < half / 2);
        let names: Vec<&str> = broken
            .definitions
            .iter()
            .map(|definition| definition.name.as_str())
            .collect();
        let n_expected = expected.clone().count();
        let n_found = expected
            .filter(|definition| names.contains(&definition.name.as_str()))
            .count();
        assert!(n_found * 2 >= n_expected, "{name}: {n_found} of {n_expected}");
    }
}

#[test]
fn nesting_as_deep_as_the_file_is_long_overflows_nothing() {
    let depth = if crate::support::is_long() { 100_000 } else { 20_000 };
    let of_brackets = ["(", "[", "{"].map(|opener| opener.repeat(depth));
    let of_others = [
        "f(",
        "{\"a\":",
        "<a>",
        "- ",
        "fn f() {",
        "class A {",
        "/*",
        "do ",
        "if a ",
        "m! { ",
        "m! { fn f( ",
        "#if A\n",
        "class A_B ",
        "context(",
    ];
    let of_others = of_others.map(|opener| opener.repeat(4_000 / opener.len()));
    for language in languages().filter(|language| language.has_structure()) {
        for text in of_brackets.iter().chain(&of_others) {
            check(
                text.as_bytes(),
                &extract(text.as_bytes(), language.lang, &Options::default()),
            );
        }
    }
}

#[test]
fn items_in_a_macro_call_count_once_and_only_if_they_parse() {
    let text = b"impl A {\n    cfg_x! { pub fn a(&self) { b() } }\n}\ncfg_y! { pub fn c(&self) { d() } else }\n";
    let found = extract(text, by_name("rust").unwrap(), &Options::default());
    let definitions: Vec<_> = found
        .definitions
        .iter()
        .map(|definition| (definition.name.as_str(), definition.kind, definition.container))
        .collect();
    let expected = [
        ("A", DefinitionKind::Impl, None),
        ("a", DefinitionKind::Method, Some(0)),
    ];
    assert_eq!(definitions, expected);
    let calls = found
        .references
        .iter()
        .filter(|reference| reference.kind == ReferenceKind::Call);
    let calls: Vec<&str> = calls.map(|reference| reference.name.as_str()).collect();
    assert_eq!(calls, ["b", "c", "d"]);
}

#[test]
fn a_word_in_capitals_after_class_is_a_macro_only_before_a_name_with_a_body() {
    let text = "struct FILE file;\nclass FOO final { int a; };\nclass API_X Bar final : Base { int b; };\n";
    let found = extract(text.as_bytes(), by_name("cpp").unwrap(), &Options::default());
    let names: Vec<&str> = found
        .definitions
        .iter()
        .map(|definition| definition.name.as_str())
        .collect();
    assert_eq!(names, ["file", "FOO", "a", "Bar", "b"]);
}

#[test]
fn fifty_thousand_definitions_in_a_file_are_all_found() {
    extract_definitions(50_000);
}

/// Extracts a file with `n` definitions. Returns the time in seconds.
fn extract_definitions(n: usize) -> f64 {
    let definition = |i| format!("/// Doc {i}.\nfn f_{i}() {{ g_{i}(C_{i}); }}\n");
    let text: String = (0..n).map(definition).collect();
    let start = std::time::Instant::now();
    let extraction = extract(text.as_bytes(), by_name("rust").unwrap(), &Options::default());
    assert_eq!((extraction.definitions.len(), extraction.references.len()), (n, 2 * n));
    start.elapsed().as_secs_f64()
}

#[test]
fn quoted_types_deep_inside_others_take_no_time_for_each_level() {
    let text = format!(
        "x: {}{}{} = 1\n",
        "A[\n".repeat(2_000),
        "\"a\",\n".repeat(20_000),
        "]".repeat(2_000)
    );
    let lang = languages().find(|language| language.name == "python").unwrap().lang;
    let start = std::time::Instant::now();
    extract(text.as_bytes(), lang, &Options::default());
    // A step for each string and level takes more than twice as long.
    assert_within(std::time::Duration::from_secs(5), start, "quoted types");
}

/// The index leaves minified code out. Other commands do not parse it either.
#[test]
fn minified_code_is_not_parsed() {
    let text = "function f() {}".repeat(1_000);
    let mut extractor = Extractor::new(Options::default());
    let lang = by_name("javascript").unwrap();
    assert_eq!(
        extractor.extract(text.as_bytes(), lang).unparsed,
        Some(Unparsed::TooMuchWork)
    );
    assert!(extractor.definitions(text.as_bytes(), lang).definitions.is_empty());
    assert_eq!(extractor.words(text.as_bytes(), lang, "f"), None);
    let lines = text.replace('}', "}\n");
    assert_eq!(extractor.definitions(lines.as_bytes(), lang).definitions.len(), 1_000);
    let data = format!("[{}1]", "1,".repeat(5_000));
    let found = extractor.extract(data.as_bytes(), by_name("json").unwrap());
    assert_eq!(found.unparsed, None);
}

#[test]
#[ignore = "measures time"]
fn fifty_thousand_definitions_in_a_file_take_linear_time() {
    extract_definitions(1_000);
    let (small, large) = (extract_definitions(5_000), extract_definitions(50_000));
    // Linear time gives a factor of about ten; quadratic time would give a hundred.
    assert!(large < 40.0 * small, "{small} s and {large} s");
}

proptest! {
    #![proptest_config(crate::support::properties(60))]

    #[test]
    fn any_cut_of_any_sample_keeps_to_the_rules(at in any::<prop::sample::Index>(), a in 0.0..1.0f64, b in 0.0..1.0f64) {
        let samples = samples();
        let (_, lang, bytes) = &samples[at.index(samples.len())];
        let cut = |fraction: f64| (bytes.len() as f64 * fraction) as usize;
        let part = &bytes[cut(a.min(b))..cut(a.max(b))];
        check(part, &extract(part, *lang, &Options::default()));
    }

    #[test]
    fn any_bytes_in_any_language_keep_to_the_rules(bytes in prop::collection::vec(any::<u8>(), 0..400), lang in any::<prop::sample::Index>()) {
        let all: Vec<Lang> = languages().map(|language| language.lang).collect();
        check(&bytes, &extract(&bytes, all[lang.index(all.len())], &Options::default()));
    }

    #[test]
    fn any_options_keep_to_the_rules(target in 50u32..3_000, small in 0u32..1_000, extra in 0u32..3_000, overlap in 0u32..5) {
        let options = Options { target_bytes: target, small_bytes: small.min(target), max_bytes: target + extra, overlap_lines: overlap };
        for (_, lang, bytes) in samples() {
            check_with(&bytes, &extract(&bytes, lang, &options), &options);
            check_with(&bytes, &extract(&bytes, Lang::TEXT, &options), &options);
        }
    }
}

#[test]
fn an_expression_keeps_at_most_four_steps() {
    let steps = [Step::Call; 4].into_iter();
    let four = steps.fold(Steps::default(), |steps, step| steps.then(step).unwrap());
    assert_eq!(four.iter().count(), 4);
    assert_eq!((four.then(Step::Element), four.after(Step::Element)), (None, None));
}
