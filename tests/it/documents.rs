//! Tests `docs` and `search --in`: what documents say about code, and which documents there are.

use serde_json::Value;

use crate::cli::{Called, call_in};
use crate::support::TestRepo;

const CODE: &str = "class Parser:\n    def parse_words(self, text):\n        words = text.split()\n        return [word.lower() for word in words if word]\n\n    def close_all(self):\n        return self.parse_words('')\n\n\ndef read_table(path):\n    rows = [line.split(',') for line in open(path)]\n    return rows[1:]\n";
const README: &str = "# Words\n\nCall `Parser.parse_words()` on each text, or [see](src/words.py) how\n`read_table` reads `src/words.py`.\n\nFor others there is `os.parse_words_of` and `tests/x.py`.\n\n```python\nparser.parse_words(text)\n```\n";

fn run(repo: &TestRepo, args: &[&str]) -> Called {
    call_in(repo.root(), args, b"")
}

fn json(repo: &TestRepo, args: &[&str]) -> Value {
    let called = run(repo, &[args, &["--json"]].concat());
    serde_json::from_slice(&called.stdout).unwrap_or_else(|_| panic!("{}", called.stderr))
}

fn texts<'a>(answer: &'a Value, field: &str) -> Vec<&'a str> {
    let results = answer["results"].as_array().unwrap().iter();
    results.map(|result| result[field].as_str().unwrap_or("-")).collect()
}

fn project() -> TestRepo {
    let repo = TestRepo::empty();
    repo.write("src/words.py", CODE);
    repo.write("README.md", README);
    repo.write("CHANGELOG.md", "Added `Parser.parse_words`.\n");
    repo.commit("one");
    repo
}

#[test]
fn what_is_right_and_what_never_was_is_no_finding() {
    let repo = project();
    let answer = json(&repo, &["docs", "audit"]);
    assert_eq!((&answer["total"], &answer["documents"]), (&0.into(), &1.into()));
    assert_eq!(answer["mentions"], 6);
    let called = run(&repo, &["docs", "audit"]);
    assert_eq!((called.code, called.text().as_str()), (0, ""), "{}", called.stderr);
}

#[test]
fn renames_are_found_with_their_commits_and_fixed() {
    let repo = project();
    repo.write("src/words.py", CODE.replace("parse_words", "split_text"));
    let renamed = repo.commit("rename a method");
    repo.rename("src/words.py", "src/text.py");
    let moved = repo.commit("move the file");
    repo.write(
        "src/text.py",
        CODE.replace("parse_words", "split_text")
            .replace("read_table", "load_table"),
    );
    let answer = json(&repo, &["docs", "audit"]);
    assert_eq!(
        texts(&answer, "text"),
        ["Parser.parse_words", "src/words.py", "read_table", "src/words.py"]
    );
    assert_eq!(
        texts(&answer, "fix"),
        ["Parser.split_text", "src/text.py", "load_table", "src/text.py"]
    );
    assert_eq!(texts(&answer, "commit"), [&renamed, &moved, "-", &moved]);
    assert_eq!(answer["results"][0]["now"][0], "src/text.py#Parser.split_text");
    let called = run(&repo, &["docs", "audit"]);
    assert_eq!(called.code, 1);
    let first = format!(
        "README.md:3: Parser.parse_words is now src/text.py#Parser.split_text since {} rename a method\n",
        &renamed[..10]
    );
    assert!(called.text().starts_with(&first), "{}", called.text());
    // The code of the document is an example, and a change log is about its time.
    let fixed = run(&repo, &["docs", "audit", "--fix"]);
    assert_eq!(fixed.code, 0, "{}", fixed.stderr);
    let expected = README
        .replacen("parse_words", "split_text", 1)
        .replace("src/words", "src/text")
        .replace("read_table", "load_table");
    assert_eq!(String::from_utf8(repo.read("README.md")).unwrap(), expected);
    assert_eq!(repo.read("CHANGELOG.md"), b"Added `Parser.parse_words`.\n");
    assert_eq!(run(&repo, &["docs", "audit"]).code, 0);
    // Before the renames, all of it was right.
    assert_eq!(run(&repo, &["docs", "audit", "--ref", "HEAD~2"]).code, 0);
}

#[test]
fn links_are_found_in_all_forms_and_stay_links() {
    let repo = TestRepo::empty();
    for name in ["a b", "ünï", "(p)", "c"] {
        repo.write(format!("docs/{name}.md"), "# X\n\ntext\n");
    }
    repo.write("img/p.png", "x\n");
    let index = "[a](docs/a%20b.md) [b](<docs/a b.md>) [c](docs/%C3%BCn%C3%AF.md) [d](docs/(p).md)\n\
                 [e](docs/c.md?raw=true#x) <img src=\"img/p.png\"> <A HREF='docs/c.md'>x</A>\n\n\
                 [f]: docs/c.md \"title\"\n[g]: <docs/a b.md> (title)\n\n\
                 [web](https://e.org/docs/c.md) [host](//docs/c.md) <a href=\"//docs/c.md\">y</a>\n";
    repo.write("index.md", index);
    repo.commit("one");
    repo.rename("docs", "manual");
    repo.rename("img", "pics");
    repo.commit("move");
    let answer = json(&repo, &["docs", "audit"]);
    let found = [
        "docs/a%20b.md",
        "docs/a b.md",
        "docs/%C3%BCn%C3%AF.md",
        "docs/(p).md",
        "docs/c.md",
        "img/p.png",
        "docs/c.md",
        "docs/c.md",
        "docs/a b.md",
    ];
    assert_eq!(texts(&answer, "text"), found);
    let fixes = found.map(|text| text.replace("docs/", "manual/").replace("img/", "pics/"));
    assert_eq!(texts(&answer, "fix"), fixes);
    assert_eq!(run(&repo, &["docs", "audit", "--fix"]).code, 0);
    let fixed = index
        .replace("docs/", "manual/")
        .replace("img/", "pics/")
        .replace("e.org/manual", "e.org/docs")
        .replace("//manual", "//docs");
    assert_eq!(String::from_utf8(repo.read("index.md")).unwrap(), fixed);
    repo.commit("fix");
    assert_eq!(run(&repo, &["docs", "audit"]).code, 0);
}

#[test]
fn fixed_paths_are_written_so_that_links_stay_links() {
    let repo = TestRepo::empty();
    let names = ["new name", "n(1", "<n>", "50% n?#1", "n\"'n", "a:b"];
    let (mut markdown, mut restructured) = (String::new(), String::new());
    for (number, name) in names.iter().enumerate() {
        repo.write(format!("d/c{number}.md"), format!("# {number}\n\n{name}\n"));
        markdown += &format!(
            "One [a](d/c{number}.md) two [b](<d/c{number}.md#x>) three <img src='d/c{number}.md'> four `./d/c{number}.md`.\n\n"
        );
        restructured += &format!("One `a <d/c{number}.md>`_ two.\n\n.. image:: d/c{number}.md\n\n");
    }
    repo.write("index.md", &markdown);
    repo.write("index.rst", &restructured);
    repo.commit("one");
    for (number, name) in names.iter().enumerate() {
        repo.rename(format!("d/c{number}.md"), format!("d/{name}.md"));
    }
    repo.commit("move");
    let called = run(&repo, &["docs", "audit", "--fix"]);
    // A space ends the argument of a directive; `<` and `>` mean something else in it.
    let left = "the new path cannot be written in its form";
    assert_eq!(called.text().matches(left).count(), 4, "{}", called.text());
    let text = |path| String::from_utf8(repo.read(path)).unwrap();
    let paragraphs = [
        "One [a](d/new%20name.md) two [b](<d/new name.md#x>) three <img src='d/new%20name.md'> four `./d/new name.md`.",
        "One [a](d/n%281.md) two [b](<d/n%281.md#x>) three <img src='d/n%281.md'> four `./d/n(1.md`.",
        "One [a](d/%3Cn%3E.md) two [b](<d/%3Cn%3E.md#x>) three <img src='d/%3Cn%3E.md'> four `./d/c2.md`.",
        "One [a](d/50%25%20n%3F%231.md) two [b](<d/50%25 n%3F%231.md#x>) three <img src='d/50%25%20n%3F%231.md'> four `./d/50% n?#1.md`.",
        "One [a](d/n%22%27n.md) two [b](<d/n%22%27n.md#x>) three <img src='d/n%22%27n.md'> four `./d/n\"'n.md`.",
        "One [a](d/a%3Ab.md) two [b](<d/a%3Ab.md#x>) three <img src='d/a%3Ab.md'> four `./d/a:b.md`.",
    ];
    assert_eq!(text("index.md"), paragraphs.map(|text| format!("{text}\n\n")).concat());
    let restructured = text("index.rst");
    assert!(
        restructured.starts_with("One `a <d/new%20name.md>`_ two.\n\n.. image:: d/c0.md\n"),
        "{restructured}"
    );
    assert!(restructured.contains(".. image:: d/n(1.md\n"), "{restructured}");
    // What was written leads to the files.
    repo.commit("fix");
    let answer = json(&repo, &["docs", "audit"]);
    assert_eq!(texts(&answer, "text"), ["./d/c2.md", "d/c0.md", "d/c2.md", "d/c3.md"]);
}

#[test]
fn what_is_gone_has_no_fix() {
    let repo = project();
    repo.write(
        "README.md",
        format!("{README}\nSee [the rules](guide.md#the-rules) and `src/old/`.\n"),
    );
    repo.write("guide.md", "# Guide\n\n## The rules\n\ntext\n");
    repo.write("src/old/a.py", "A = 1\n");
    repo.commit("guide");
    repo.write("guide.md", "# Guide\n\n## What applies\n\ntext\n");
    repo.remove("src/old/a.py");
    repo.write("src/words.py", &CODE[..CODE.find("\n\ndef read_table").unwrap()]);
    let gone = repo.commit("delete");
    let answer = json(&repo, &["docs", "audit", "README.md"]);
    assert_eq!(texts(&answer, "text"), ["read_table", "the-rules", "src/old/"]);
    assert_eq!(texts(&answer, "kind"), ["name", "heading", "path"]);
    assert_eq!(texts(&answer, "verdict"), ["gone"; 3]);
    assert_eq!(texts(&answer, "commit"), [gone.as_str(); 3]);
    let left = run(&repo, &["docs", "audit", "--fix"]);
    assert_eq!(left.code, 1);
    assert_eq!(
        left.text().matches("; left: there is no new name").count(),
        3,
        "{}",
        left.text()
    );
    // A document that speaks of the deletion is right.
    let readme = String::from_utf8(repo.read("README.md")).unwrap();
    repo.write(
        "README.md",
        readme.replace("`read_table` reads", "the former `read_table` read"),
    );
    let answer = json(&repo, &["docs", "audit", "README.md"]);
    assert_eq!(texts(&answer, "text"), ["the-rules", "src/old/"]);
}

#[test]
fn a_name_that_another_definition_has_proves_nothing() {
    let repo = TestRepo::empty();
    let other =
        "class Other:\n    def close_all(self):\n        return [number * 2 for number in range(9) if number]\n";
    repo.write("src/words.py", CODE);
    repo.write("src/other.py", other);
    repo.write(
        "docs/a.rst",
        "Use\n===\n\n:meth:`~words.Parser.close_all` or ``close_all()``.\n",
    );
    repo.commit("one");
    repo.write("src/words.py", CODE.replace("close_all", "finish_all"));
    repo.commit("rename one of two");
    let answer = json(&repo, &["docs", "audit"]);
    assert_eq!(texts(&answer, "text"), ["words.Parser.close_all"]);
    assert_eq!(texts(&answer, "fix"), ["words.Parser.finish_all"]);
}

#[test]
fn what_is_right_now_needs_no_history() {
    let repo = project();
    repo.write(
        "README.md",
        "`read_table` reads [words](src/words.py), see [above](#words).\n\n# Words\n",
    );
    repo.commit("two");
    let sidecar = repo.root().join(".codescout");
    assert_eq!(run(&repo, &["docs", "audit"]).code, 0);
    assert!(!sidecar.exists());
    repo.write("src/words.py", "x = 1\n");
    repo.commit("delete");
    assert_eq!(run(&repo, &["docs", "audit"]).code, 1);
    assert!(sidecar.exists());
}

#[test]
fn names_that_can_mean_something_else_are_no_finding_when_they_are_gone() {
    let repo = project();
    let stale = "Call `read_table` first.\n";
    repo.write("lib/a/deep/x/own.py", "A = 1\n");
    repo.write(
        "src/words.py",
        format!("{CODE}\n\ndef sign(text):\n    return [ord(letter) + 1 for letter in text]\n"),
    );
    let documents = [
        ("word.md", "The `sign` option.\n"),
        ("reader.md", "Your file `x/own.py` is read.\n"),
        (
            "js.md",
            "Call `read_table` first.\n\n```js\nimport { read_table } from 'tables'\n```\n",
        ),
        (
            "py.md",
            "Call `read_table` first.\n\n    from tables.csv import read_table\n",
        ),
        (
            "rs.md",
            "Call `read_table` first.\n\n```rust\nuse tables::{read_table, T};\n```\n",
        ),
        ("adr/3.md", stale),
        ("minutes/3.md", stale),
        (
            "dated.md",
            "---\ntitle: x\ndate: 2024-02-03\n---\nCall `read_table` first.\n",
        ),
        (
            "decided.md",
            "# 3. Tables\n\n* Status: **Accepted**\n\nCall `read_table` first.\n",
        ),
        // These are findings.
        ("call.md", "Call `sign()` first.\n"),
        (
            "own.md",
            "Call `read_table` first.\n\n```py\nfrom words import read_table\n```\n",
        ),
        (
            "late.md",
            "Call `read_table` first.\n\nA status is accepted if its date: 2024-02-03 is known.\n",
        ),
    ];
    documents.iter().for_each(|(path, text)| repo.write(path, text));
    repo.remove("README.md");
    repo.commit("documents");
    repo.write("src/words.py", "x = 1\n");
    repo.remove("lib/a/deep/x/own.py");
    repo.commit("delete");
    let answer = json(&repo, &["docs", "audit"]);
    assert_eq!(texts(&answer, "path"), ["call.md", "late.md", "own.md"]);
}

#[test]
fn a_shallow_clone_is_not_said_to_be_right() {
    let repo = project();
    repo.write("src/words.py", "x = 1\n");
    repo.commit("delete");
    let clone = repo.clone_with("clone", &["--depth=1"]);
    let called = run(&clone, &["docs", "audit"]);
    assert_eq!(called.code, 2, "{}", called.stderr);
    assert!(called.stderr.contains("this clone is shallow"), "{}", called.stderr);
}

#[test]
fn documents_are_listed_by_kind_and_status_at_a_revision() {
    let repo = project();
    repo.write(
        "docs/one.md",
        "---\nkind: decision\nstatus: \"accepted\"\n---\n# One index\n",
    );
    repo.write(".agents/notes/two.md", "---\nkind: spec\n---\n\nTwo\n");
    repo.commit("decide");
    repo.write(
        "docs/one.md",
        "---\nkind: decision\nstatus: superseded\n---\n# One index\n",
    );
    let answer = json(&repo, &["docs", "list"]);
    assert_eq!(texts(&answer, "path"), [".agents/notes/two.md", "docs/one.md"]);
    assert_eq!(texts(&answer, "title"), ["Two", "One index"]);
    let listed = |args: &[&str]| run(&repo, &[&["docs", "list"], args].concat());
    let accepted = ["--kind", "decision", "--status", "accepted"];
    assert_eq!(listed(&accepted).code, 1);
    let then = listed(&[&accepted[..], &["--ref", "HEAD"]].concat());
    assert_eq!(then.text(), "docs/one.md decision accepted: One index\n");
    assert_eq!(listed(&["--fix"]).code, 2);
    assert_eq!(run(&repo, &["docs", "audit", "--kind", "spec"]).code, 2);
}

#[test]
fn search_is_limited_to_documents_or_notes() {
    let repo = project();
    repo.write(
        ".agents/notes/a.md",
        "# Splitting\n\nWords are split at spaces in parse_words.\n",
    );
    repo.commit("note");
    let paths = |inside: &str, more: &[&str]| {
        let args = [&["search", "--in", inside, "parse_words"], more].concat();
        let found = json(&repo, &args);
        let mut paths: Vec<String> = texts(&found, "path").into_iter().map(str::to_owned).collect();
        paths.sort();
        paths
    };
    assert_eq!(paths("memory", &[]), [".agents/notes/a.md"]);
    assert_eq!(paths("docs", &[]), [".agents/notes/a.md", "CHANGELOG.md", "README.md"]);
    assert_eq!(paths("docs", &["--ref", "HEAD~1"]), ["CHANGELOG.md", "README.md"]);
    assert_eq!(
        paths("docs", &["--mode", "regex", "--path", "README.md"])[0],
        "README.md"
    );
    assert_eq!(run(&repo, &["search", "--in", "memory", "x", "--path", "src"]).code, 2);
    assert_eq!(run(&repo, &["search", "--in", "docs", "x", "--lang", "rust"]).code, 2);
}

#[test]
fn sections_of_documents_are_read_by_their_headings() {
    let repo = TestRepo::empty();
    repo.write("a.rst", "Guide\n=====\n\nOne.\n\nFirst steps\n-----------\n\nTwo.\n");
    repo.write("b.adoc", "= Guide\n\nOne.\n\n== First steps\n\nTwo.\n");
    repo.write("c.txt", "1. Guide\n\nOne.\n\n1.1 First steps\n\nTwo.\n");
    repo.commit("documents");
    for (path, heading) in [
        ("a.rst", "First steps"),
        ("b.adoc", "First steps"),
        ("c.txt", "1.1 First steps"),
    ] {
        let read = run(&repo, &["read", path, "--heading", heading]);
        assert!(
            read.text().contains(heading) && read.text().ends_with("Two.\n"),
            "{path}: {}",
            read.stderr
        );
        assert!(!read.text().contains("One."), "{path}");
    }
}

#[test]
fn a_document_of_many_links_headings_and_names_is_audited_in_time() {
    let repo = TestRepo::empty();
    let units = [
        "[a](#a)",
        "[a](#a)\n\n",
        "`old_name` ",
        "[b](gone.md) ",
        "](",
        "`a ``b ",
        "<a href=\"",
        "[a](gone.md?x ",
        "](((",
    ];
    for (number, unit) in units.iter().enumerate() {
        repo.write(format!("d{number}.md"), unit.repeat(60_000 / unit.len()));
    }
    repo.write("a.py", "def old_name():\n    pass\n");
    repo.write("gone.md", "# Here\n");
    repo.commit("before");
    repo.write("a.py", "def new_name():\n    pass\n");
    repo.remove("gone.md");
    repo.commit("after");
    let began = std::time::Instant::now();
    let audited = run(&repo, &["docs", "audit", "--json", "-n", "1"]);
    assert!(audited.code < 2, "{}", audited.stderr);
    // Quadratic time would be minutes.
    assert!(began.elapsed().as_secs() < 100, "{:?}", began.elapsed());
}
