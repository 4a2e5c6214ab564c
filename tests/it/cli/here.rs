//! Tests that paths are read and printed relative to the current directory.

use super::call_in;
use crate::support::TestRepo;

fn project() -> TestRepo {
    let repo = TestRepo::new(
        "
        //- src/lexer.rs
        pub fn lex() {}
        //- src/deep/tree.rs
        pub fn lex_tree() {}
        //- src/gone.rs
        pub fn old_lex() {}
        //- docs/lex.md
        # How to lex
        //- lexer.rs
        pub fn lex_at_root() {}
        ",
    );
    repo.remove("src/gone.rs");
    repo.commit("remove the old lexer");
    repo
}

fn text_of(repo: &TestRepo, args: &[&str]) -> String {
    let called = call_in(&repo.path("src"), args, b"").expect(0);
    called.text()
}

#[test]
fn a_path_is_relative_to_the_directory() {
    let repo = project();
    assert_eq!(text_of(&repo, &["read", "lexer.rs"]), "pub fn lex() {}\n");
    assert_eq!(text_of(&repo, &["read", ":/lexer.rs"]), "pub fn lex_at_root() {}\n");
    assert_eq!(text_of(&repo, &["read", "../lexer.rs"]), "pub fn lex_at_root() {}\n");
    assert_eq!(text_of(&repo, &["read", "docs/lex.md"]), "# How to lex\n");
    assert_eq!(
        text_of(&repo, &["read", "gone.rs", "--ref", "HEAD~1"]),
        "pub fn old_lex() {}\n"
    );
    assert!(text_of(&repo, &["history", "gone.rs"]).contains("remove the old lexer"));
    let similar = text_of(&repo, &["search", "--mode", "similar", "deep/tree.rs:1", "--explain"]);
    assert_eq!(
        similar,
        text_of(
            &repo,
            &["search", "--mode", "similar", ":/src/deep/tree.rs:1", "--explain"]
        )
    );
    assert!(text_of(&repo, &["blame", "deep/tree.rs"]).contains("lex_tree"));
    assert!(text_of(&repo, &["outline", "deep"]).contains("tree.rs"));
    assert!(text_of(&repo, &["outline"]).starts_with("4 files"));
    assert!(text_of(&repo, &["outline", "."]).starts_with("src/ 2 files"));
}

#[test]
fn paths_are_printed_from_the_directory() {
    let repo = project();
    let lines = text_of(&repo, &["grep", "-l", "lex"]);
    assert_eq!(lines, "../docs/lex.md\n../lexer.rs\ndeep/tree.rs\nlexer.rs\n");
    let lines = text_of(&repo, &["grep", "-l", "lex", "--full-name"]);
    assert_eq!(lines, "docs/lex.md\nlexer.rs\nsrc/deep/tree.rs\nsrc/lexer.rs\n");
    let found = text_of(&repo, &["search", "lex_tree", "-n", "1"]);
    assert!(found.starts_with("deep/tree.rs:1"), "{found}");
    repo.rename("src/deep/tree.rs", "docs/tree.rs");
    let moved = text_of(&repo, &["diff"]);
    assert!(
        moved.starts_with(
            "renamed ../docs/tree.rs from deep/tree.rs +0 -0\n    moved: function lex_tree from deep/tree.rs#lex_tree\n"
        ),
        "{moved}"
    );
    repo.rename("docs/tree.rs", "src/deep/tree.rs");
    let facts = call_in(&repo.path("src"), &["search", "lex_tree", "-n", "1", "--json"], b"").json();
    assert_eq!(facts["results"][0]["path"], "src/deep/tree.rs");
    let symbol = text_of(&repo, &["symbol", "lex_tree"]);
    assert!(symbol.starts_with("deep/tree.rs:1 "), "{symbol}");
    let history = text_of(&repo, &["history", "deep/tree.rs"]);
    assert!(history.starts_with("file deep/tree.rs: 1 commit\n"), "{history}");
    let whole = text_of(&repo, &["history", "--deleted"]);
    assert!(
        whole.starts_with("1 deleted file\n") && whole.ends_with("    deleted gone.rs\n"),
        "{whole}"
    );
}

#[test]
fn globs_select_files_below_the_directory() {
    let repo = project();
    let files = |args: &[&str]| text_of(&repo, &[&["grep", "-l", "lex"], args].concat());
    assert_eq!(files(&["-p", "*.rs"]), "deep/tree.rs\nlexer.rs\n");
    assert_eq!(files(&["-p", "deep"]), "deep/tree.rs\n");
    assert_eq!(files(&["-p", "deep/*.rs"]), "deep/tree.rs\n");
    assert_eq!(files(&["-p", "!deep"]), "../docs/lex.md\n../lexer.rs\nlexer.rs\n");
    assert_eq!(files(&["-p", ":/*.md"]), "../docs/lex.md\n");
    assert_eq!(files(&["-p", "../docs"]), "../docs/lex.md\n");
    assert_eq!(files(&["-p", "!*.rs"]), "../docs/lex.md\n");
}

#[test]
fn an_existing_path_is_matched_literally() {
    let repo = TestRepo::new(
        "//- src/a.rs\nfn lex() {}\n//- other/src/b.rs\nfn lex() {}\n//- app/[slug]/page.ts\nlex();\n//- app/s/page.ts\nlex();\n",
    );
    let files = |from: &str, path: &str| {
        call_in(&repo.path(from), &["grep", "-l", "lex", path], b"")
            .expect(0)
            .text()
    };
    for path in ["src", "./src", ":/src", "src/"] {
        assert_eq!(files("", path), "src/a.rs\n", "{path}");
    }
    assert_eq!(files("src", "."), "a.rs\n");
    assert_eq!(files("other/src", "."), "b.rs\n");
    assert_eq!(files("", "app/[slug]"), "app/[slug]/page.ts\n");
    assert_eq!(files("app/[slug]", "."), "page.ts\n");
    assert_eq!(files("app/[slug]", "*.ts"), "page.ts\n");
    assert_eq!(
        call_in(&repo.path(""), &["grep", "-l", "lex", "src", "--ref", "HEAD"], b"")
            .expect(0)
            .text(),
        "src/a.rs\n"
    );
}
