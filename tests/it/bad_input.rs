//! Tests that unusual input is handled or reported and never causes a panic.

use std::process::Command;

use codescout::artifact::SkipReason;
use codescout::config::{Config, Environment, Overrides, RepositoryFiles};
use codescout::extract;
use codescout::model::RepoPath;
use codescout::query::Mode;

use crate::indexed::{Indexed, MODES};
use crate::support::{InTime, TestRepo, is_long};

const FIXTURE: &str = "
    //- src/lib.rs
    pub fn parse() { lex() }
    fn lex() {}
";

#[test]
fn queries_that_ask_nothing_find_nothing() {
    let repo = TestRepo::new(FIXTURE);
    let index = Indexed::new(repo.root());
    let view = index.view("HEAD");
    for query in [
        "",
        " \t\n",
        "?!",
        "...",
        "\"\"",
        "``",
        "::",
        "\u{0}",
        "\u{feff}\u{200b}",
        "🦀",
        "é́́",
    ] {
        for mode in MODES {
            index
                .try_search(&view, mode, query)
                .unwrap_or_else(|error| panic!("{query:?} {mode:?}: {error:#}"));
        }
        assert_eq!(index.search(&view, Mode::Keyword, query).len(), 0, "{query:?}");
    }
}

#[test]
fn a_query_as_long_as_a_file_is_answered() {
    let n_bytes = if is_long() { 1 << 20 } else { 1 << 16 };
    let repo = TestRepo::new(FIXTURE);
    let index = Indexed::new(repo.root());
    let view = index.view("HEAD");
    let distinct: String = (0..n_bytes / 9)
        .map(|i| format!("word{i:04} "))
        .chain(["parse".to_owned()])
        .collect();
    for query in [
        distinct,
        "parse ".repeat(n_bytes / 6),
        "x".repeat(n_bytes),
        "\"".repeat(n_bytes),
        "a::".repeat(n_bytes / 3),
    ] {
        for mode in [Mode::Auto, Mode::Semantic] {
            index.try_search(&view, mode, &query).unwrap();
        }
    }
}

#[test]
fn large_blobs_are_left_out_by_their_size() {
    let repo = TestRepo::new(FIXTURE);
    let huge = std::fs::File::create(repo.path("huge.bin")).unwrap();
    huge.set_len(100 << 20).unwrap();
    drop(huge);
    repo.write("line.js", "x=1;".repeat(3 << 18));
    repo.git([
        "-c",
        "core.compression=0",
        "-c",
        "core.bigFileThreshold=1m",
        "add",
        "--all",
    ]);
    repo.commit_index("large");
    let index = Indexed::new(repo.root());
    for reference in ["HEAD", "WORKTREE"] {
        let opened = index.try_open(reference).unwrap();
        let skipped = &opened.view.coverage().skipped;
        assert_eq!(skipped.get(&SkipReason::TooLarge), Some(&2), "{reference}: {skipped:?}");
        assert!(opened.ingested.n_text_bytes < 1000, "{:?}", opened.ingested);
    }
    repo.write("untracked.txt", "y".repeat(3 << 20));
    assert_eq!(
        index.view("WORKTREE").coverage().skipped.get(&SkipReason::TooLarge),
        Some(&3)
    );

    // With a higher size limit the file is read, and recognized as not written by a person.
    std::fs::write(
        index.workspace.storage.root().join("config.toml"),
        "[index]\nmax_blob_bytes = 4194304\n",
    )
    .unwrap();
    let raised = Indexed::new(repo.root());
    let skipped = raised.view("HEAD").coverage().skipped.clone();
    assert_eq!(skipped.get(&SkipReason::Minified), Some(&1), "{skipped:?}");
    assert_eq!(skipped.get(&SkipReason::TooLarge), Some(&1), "{skipped:?}");
}

#[test]
fn hostile_texts_are_extracted_without_losing_a_byte() {
    let line = "x + ".repeat(1 << 16);
    let nested = |open: &str, close: &str| format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
    let many: String = (0..50_000).map(|i| format!("def f{i}(): return {i}\n")).collect();
    let texts: Vec<(&str, Vec<u8>)> = vec![
        ("line.py", line.clone().into_bytes()),
        ("line.txt", line.into_bytes()),
        ("nested.js", nested("(", ")").into_bytes()),
        ("nested.json", nested("[", "]").into_bytes()),
        ("nested.rs", format!("fn f() {{ {} }}", nested("{", "}")).into_bytes()),
        ("nested.c", format!("int x = {};", nested("(", ")")).into_bytes()),
        // The grammar keeps a stack of open tags and copies it for every tag.
        (
            "nested.html",
            format!("{}{}", "<div>".repeat(5_000), "</div>".repeat(5_000)).into_bytes(),
        ),
        ("open.py", "(".repeat(100_000).into_bytes()),
        (
            "deep.py",
            (0..600)
                .map(|i| format!("{}if x:\n", " ".repeat(i)))
                .collect::<String>()
                .into_bytes(),
        ),
        ("quote.md", format!("{} deep\n", ">".repeat(100_000)).into_bytes()),
        ("many.py", many.into_bytes()),
        ("nul.rs", b"fn f() {}\0fn g() {}".to_vec()),
        (
            "broken.rs",
            b"fn caf\xe9() { \xff\xfe\xc0 }\n// \xed\xa0\x80\n".to_vec(),
        ),
        (
            "utf16.rs",
            "fn f() {}\n".encode_utf16().flat_map(u16::to_le_bytes).collect(),
        ),
        ("cut.rs", "// é".as_bytes()[..4].to_vec()),
        ("breaks.py", b"a = 1\r\rb = 2\x0b\x0c\xe2\x80\xa8c = 3\r\n".to_vec()),
        ("blank.go", vec![b'\n'; 300_000]),
        ("spaces.yaml", vec![b' '; 300_000]),
    ];
    let options = Config::resolve(
        &Overrides::default(),
        &Environment::default(),
        &RepositoryFiles::default(),
    )
    .unwrap()
    .build_options();
    for (path, text) in texts {
        let lang = extract::lang_of_path(&RepoPath::from(path));
        let extraction = extract::extract(&text, lang, &options.extract);
        let mut covered = 0;
        for chunk in &extraction.chunks {
            let range = chunk.range.as_usize();
            assert!(
                range.start <= covered && range.end <= text.len(),
                "{path}: {range:?} after {covered}"
            );
            covered = covered.max(range.end);
        }
        let rest = &text[covered..];
        assert!(
            rest.iter().all(u8::is_ascii_whitespace),
            "{path}: {} bytes are in no chunk",
            rest.len()
        );
    }
}

#[test]
fn hostile_files_are_indexed_or_counted() {
    let repo = TestRepo::new(FIXTURE);
    let wide: Vec<u8> = "fn wide() {}\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    repo.write("utf16.rs", [&b"\xff\xfe"[..], &wide].concat());
    repo.write("nul.rs", b"fn nul() {}\0");
    repo.write("broken.rs", b"fn caf\xe9_pangolin() { \xff\xfe }\n");
    let many: String = (0..50_000).map(|i| format!("fn f{i}() {{}}\n")).collect();
    repo.write("many.rs", many);
    repo.write(
        "nested.js",
        format!("let pangolin = {}1{};\n", "(\n".repeat(100_000), ")\n".repeat(100_000)),
    );
    repo.write("empty.rs", "");
    repo.commit("hostile");
    let index = Indexed::new(repo.root());
    let view = index.view("HEAD");
    assert_eq!(
        view.coverage().skipped.get(&SkipReason::Binary),
        Some(&2),
        "{:?}",
        view.coverage()
    );
    assert_eq!(index.paths(&view, "pangolin"), ["broken.rs", "nested.js"]);
    let hits = index.search(&view, Mode::Auto, "f49999");
    let symbol = hits[0].symbol.as_ref();
    assert!(
        symbol.is_none_or(|symbol| symbol.qualified_name.starts_with('f')),
        "{symbol:?}"
    );
    assert_eq!(index.paths(&view, "f49999"), ["many.rs"]);
}

#[test]
fn a_tree_of_very_many_entries_is_listed() {
    let n_files = if is_long() { 1_000_000 } else { 20_000 };
    let repo = TestRepo::empty();
    // One blob under many names. Half of them are in one folder; the other half are in folders that share one tree.
    let object = |arguments: &[&str], input: &str| {
        let printed = repo.git_with_input(arguments, input.as_bytes());
        String::from_utf8(printed).unwrap().trim().to_owned()
    };
    let blob = object(&["hash-object", "-w", "--stdin"], "fn platypus() { }\n");
    let files = |n_files: usize| -> String {
        (0..n_files)
            .map(|i| format!("100644 blob {blob}\tfile{i}.rs\n"))
            .collect()
    };
    let flat = object(&["mktree"], &files(n_files / 2));
    let folder = object(&["mktree"], &files(1_000));
    let folders: String = (0..n_files / 2_000)
        .map(|i| format!("040000 tree {folder}\tfolder{i}\n"))
        .collect();
    let root = object(&["mktree"], &format!("040000 tree {flat}\tflat\n{folders}"));
    let commit = repo.git(["commit-tree", "-m", "many", &root]);
    repo.git(["update-ref", "refs/heads/main", &commit]);
    let index = Indexed::new(repo.root());
    let opened = index.try_open("HEAD").unwrap();
    assert_eq!((opened.ingested.n_new_blobs, opened.ingested.n_new_chunks), (1, 1));
    assert_eq!(opened.view.n_files() as usize, n_files);
    let hits = index.search(&opened.view, Mode::Auto, "platypus");
    assert_eq!((hits.len(), hits[0].places.len()), (1, n_files));
}

#[test]
fn what_is_no_repository_or_no_revision_is_an_answer() {
    let repo = TestRepo::new(FIXTURE);
    let outside = repo.beside("outside");
    std::fs::create_dir(&outside).unwrap();
    let at = |path: &std::path::Path| Indexed::with(path, Overrides::default()).err();
    assert!(at(&outside).is_some());
    assert!(at(&repo.beside("nowhere")).is_some());
    let index = Indexed::new(repo.root());
    for reference in [
        "",
        "nosuch",
        "HEAD~99",
        "HEAD^{blob}",
        "-x",
        "a..b",
        "\u{0}",
        "HEAD:src/lib.rs",
        "@{",
        "^",
        "00000000",
    ] {
        let error = index.try_open(reference).err();
        let error = error.unwrap_or_else(|| panic!("{reference:?} is no revision"));
        assert!(!format!("{error:#}").is_empty());
    }
    let broken = repo.beside("broken");
    let made = Command::new("cp")
        .arg("-r")
        .arg(repo.root())
        .arg(&broken)
        .status_in_time()
        .unwrap();
    assert!(made.success());
    for file in ["HEAD", "index", "config"] {
        std::fs::write(broken.join(".git").join(file), b"\xff\x00garbage").unwrap();
        // Any result is fine, as long as it does not panic.
        if let Ok(index) = Indexed::with(&broken, Overrides::default()) {
            drop(index.try_open("WORKTREE"));
        }
    }
}
