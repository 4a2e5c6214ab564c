//! Tests the operations, each in several languages.

use serde_json::json;

use super::{after, edit, with_file};

const RUST: &str = "\
use std::io;

/// A parser.
#[derive(Debug)]
pub struct Parser {
    /// The depth.
    depth: usize, // levels
    name: String,
}

impl Parser {
    /// Parses.
    #[inline]
    pub fn parse(&self) -> usize {
        self.depth
    }

    fn reset(&mut self) {}
}
";

const PYTHON: &str = "\
import os


@decorated
class Parser:
    \"\"\"Parses.\"\"\"

    def parse(self):
        \"\"\"Parses one.\"\"\"
        return 1

    def reset(self):
        pass


def main():
    pass
";

#[test]
fn a_definition_is_replaced_and_keeps_its_comment_and_attributes() {
    let code = "pub fn parse(&self) -> u8 {\n    1\n}";
    let new = after("a.rs", RUST, "replace", "#Parser.parse", json!({"text": code}));
    assert_eq!(new, RUST.replace("usize {\n        self.depth\n", "u8 {\n        1\n"));
    let code = "/// Reads.\nfn parse() {}";
    let new = after("a.rs", RUST, "replace", "#parse", json!({"text": code}));
    let old = &RUST[RUST.find("/// Parses.").unwrap()..RUST.find("\n\n    fn reset").unwrap()];
    assert_eq!(new, RUST.replace(old, "/// Reads.\n    #[inline]\n    fn parse() {}"));
    let code = "class Parser:\n    pass";
    let new = after("a.py", PYTHON, "replace", "#Parser", json!({"text": code}));
    assert!(
        new.starts_with("import os\n\n\n@decorated\nclass Parser:\n    pass\n\n\ndef main"),
        "{new}"
    );
    let c = "struct a {\n\tint x;\n};\n\nint f(void);\n";
    let new = after(
        "a.c",
        c,
        "replace",
        "#a",
        json!({"text": "struct a {\n    long x;\n};"}),
    );
    assert_eq!(new, c.replace("int x", "long x"));
}

#[test]
fn a_body_is_replaced() {
    for (path, code, part, text, new) in [
        ("a.rs", "fn a() {}\n", "#a", "b();", "fn a() {\n    b();\n}\n"),
        ("a.rs", "fn a() { b() }\n", "#a", "c()", "fn a() { c() }\n"),
        (
            "a.rs",
            "fn a() {\n\tb()\n}\n",
            "#a",
            "{\n    c();\n    if d {\n        e()\n    }\n}",
            "fn a() {\n\tc();\n\tif d {\n\t\te()\n\t}\n}\n",
        ),
        (
            "a.py",
            "def a():\n    \"\"\"Doc.\"\"\"\n    b()\n",
            "#a",
            "c()\nd()",
            "def a():\n    \"\"\"Doc.\"\"\"\n    c()\n    d()\n",
        ),
        (
            "a.py",
            "def a():\n    \"\"\"Doc.\"\"\"\n    b()\n",
            "#a",
            "'''New.'''\nc()",
            "def a():\n    '''New.'''\n    c()\n",
        ),
        ("a.py", "def a(): pass\n", "#a", "c()", "def a():\n    c()\n"),
        (
            "a.rb",
            "class A\n  def b\n    1\n  end\nend\n",
            "#A.b",
            "2\n3",
            "class A\n  def b\n    2\n    3\n  end\nend\n",
        ),
        (
            "a.lua",
            "local function a(n)\n  return n\nend\n",
            "#a",
            "return 2",
            "local function a(n)\n  return 2\nend\n",
        ),
        (
            "a.ex",
            "defmodule A do\n  def b(n) do\n    n\n  end\nend\n",
            "#A.b",
            "n + 1",
            "defmodule A do\n  def b(n) do\n    n + 1\n  end\nend\n",
        ),
        (
            "a.js",
            "const a = (x) => x + 1;\n",
            "#a",
            "x + 2;",
            "const a = (x) => x + 2;\n",
        ),
        ("a.go", "func a() {\n\tb()\n}\n", "#a", "c()", "func a() {\n\tc()\n}\n"),
        (
            "a.java",
            "class A {\n    int b() {\n        return 1;\n    }\n}\n",
            "#A.b",
            "return 2;",
            "class A {\n    int b() {\n        return 2;\n    }\n}\n",
        ),
        ("a.sh", "a() {\n  b\n}\n", "#a", "c", "a() {\n  c\n}\n"),
        (
            "a.css",
            ".a {\n  color: red;\n}\n",
            "#.a",
            "color: blue;",
            ".a {\n  color: blue;\n}\n",
        ),
        ("a.hs", "a :: Int\na = 1\n", "#a", "a = 2", "a :: Int\na = 2\n"),
    ] {
        assert_eq!(
            after(path, code, "replace_body", part, json!({"text": text})),
            new,
            "{path} {code}"
        );
    }
}

#[test]
fn documentation_is_replaced_added_and_removed() {
    let replaced = after(
        "a.rs",
        RUST,
        "replace_doc",
        "#Parser.parse",
        json!({"text": "/// Reads\n/// all."}),
    );
    assert_eq!(
        replaced,
        RUST.replace("    /// Parses.\n", "    /// Reads\n    /// all.\n")
    );
    let added = after(
        "a.rs",
        RUST,
        "replace_doc",
        "#Parser.reset",
        json!({"text": "/// Forgets."}),
    );
    assert_eq!(added, RUST.replace("    fn reset", "    /// Forgets.\n    fn reset"));
    let removed = after("a.rs", RUST, "replace_doc", "#Parser.depth", json!({"text": ""}));
    assert_eq!(removed, RUST.replace("    /// The depth.\n", ""));
    let replaced = after(
        "a.py",
        PYTHON,
        "replace_doc",
        "#Parser.parse",
        json!({"text": "\"\"\"Reads.\"\"\""}),
    );
    assert_eq!(replaced, PYTHON.replace("Parses one.", "Reads."));
    let added = after(
        "a.py",
        PYTHON,
        "replace_doc",
        "#main",
        json!({"text": "\"\"\"Starts.\"\"\""}),
    );
    assert_eq!(
        added,
        PYTHON.replace("def main():\n", "def main():\n    \"\"\"Starts.\"\"\"\n")
    );
    let repo = with_file("a.rs", RUST.as_bytes());
    let plain = json!([{"op": "replace_doc", "target": "a.rs#reset", "text": "Forgets."}]);
    let refused = edit(&repo, &plain, &[]).expect(2);
    assert!(
        refused.stderr.contains("syntax error") || refused.stderr.contains("not documentation"),
        "{}",
        refused.stderr
    );
    assert_eq!(repo.read("a.rs"), RUST.as_bytes());
}

#[test]
fn code_is_inserted_with_the_distance_of_its_neighbours() {
    let new = "fn next(&self) {}";
    let inserted = after("a.rs", RUST, "insert_before", "#Parser.parse", json!({"text": new}));
    assert_eq!(
        inserted,
        RUST.replace("    /// Parses.", "    fn next(&self) {}\n\n    /// Parses.")
    );
    for op in ["insert_after", "insert_last"] {
        let part = if op == "insert_last" {
            "#Parser~2"
        } else {
            "#Parser.reset"
        };
        let inserted = after("a.rs", RUST, op, part, json!({"text": new}));
        assert_eq!(
            inserted,
            RUST.replace(
                "reset(&mut self) {}\n",
                "reset(&mut self) {}\n\n    fn next(&self) {}\n"
            )
        );
    }
    let inserted = after("a.rs", RUST, "insert_last", "#Parser", json!({"text": "size: u8"}));
    assert_eq!(inserted, RUST.replace("String,\n", "String,\n    size: u8,\n"));
    let inserted = after(
        "a.py",
        PYTHON,
        "insert_after",
        "#Parser",
        json!({"text": "def f():\n    pass"}),
    );
    assert_eq!(
        inserted,
        PYTHON.replace("\n\n\ndef main", "\n\n\ndef f():\n    pass\n\n\ndef main")
    );
    let inserted = after(
        "a.py",
        PYTHON,
        "insert_last",
        "#Parser",
        json!({"text": "def f(self):\n    pass"}),
    );
    assert_eq!(
        inserted,
        PYTHON.replace(
            "pass\n\n\ndef main",
            "pass\n\n    def f(self):\n        pass\n\n\ndef main"
        )
    );
    let inserted = after(
        "a.ts",
        "enum A { B, C }\n",
        "insert_after",
        "#A.C",
        json!({"text": "D"}),
    );
    assert_eq!(inserted, "enum A { B, C, D }\n");
    let inserted = after(
        "a.rs",
        "struct A;\nimpl A {}\n",
        "insert_last",
        "#A~2",
        json!({"text": new}),
    );
    assert_eq!(inserted, "struct A;\nimpl A {\n    fn next(&self) {}\n}\n");
    let inserted = after(
        "a.go",
        "package a\n\nfunc A() {}",
        "insert_after",
        "#A",
        json!({"text": "func B() {}\n"}),
    );
    assert_eq!(inserted, "package a\n\nfunc A() {}\n\nfunc B() {}");
    assert_eq!(
        after("a.txt", "a\r\n", "insert_last", "", json!({"text": "b\nc\n"})),
        "a\r\nb\r\nc\r\n"
    );
}

#[test]
fn a_definition_is_removed_with_everything_that_belongs_to_it() {
    let removed = after("a.rs", RUST, "remove", "#Parser.parse", json!({}));
    let old = &RUST[RUST.find("    /// Parses.").unwrap()..RUST.find("    fn reset").unwrap()];
    assert_eq!(removed, RUST.replace(old, ""));
    let removed = after("a.rs", RUST, "remove", "#Parser.reset", json!({}));
    assert_eq!(removed, RUST.replace("\n    fn reset(&mut self) {}\n", ""));
    let removed = after("a.rs", RUST, "remove", "#Parser.depth", json!({}));
    assert_eq!(
        removed,
        RUST.replace("    /// The depth.\n    depth: usize, // levels\n", "")
    );
    let removed = after("a.rs", RUST, "remove", ":8", json!({}));
    assert_eq!(removed, RUST.replace("    name: String,\n", ""));
    let removed = after("a.py", PYTHON, "remove", "#Parser", json!({}));
    assert_eq!(removed, "import os\n\n\ndef main():\n    pass\n");
    let removed = after("a.py", PYTHON, "remove", "#main", json!({}));
    assert_eq!(
        removed,
        PYTHON.split("\n\n\ndef main").next().unwrap().to_owned() + "\n"
    );
    let removed = after(
        "a.c",
        "struct a {\n\tint x;\n};\n\nint f(void);\n",
        "remove",
        "#a",
        json!({}),
    );
    assert_eq!(removed, "int f(void);\n");
    let repo = with_file("a.py", b"left, right = 1, 2\n");
    let refused = edit(&repo, &json!([{"op": "remove", "target": "a.py#left"}]), &[]).expect(2);
    assert!(refused.stderr.contains("together with \"right\""), "{}", refused.stderr);
}

#[test]
fn text_is_replaced_where_it_occurs_once() {
    let text = "a = 1\nb = 1\nc = 2\n";
    let replace = |more| after("a.txt", text, "replace_text", "", more);
    assert_eq!(
        replace(json!({"old": "c = 2", "text": "c = 3"})),
        "a = 1\nb = 1\nc = 3\n"
    );
    assert_eq!(
        replace(json!({"old": "= 1", "text": "= 4", "count": 2})),
        "a = 4\nb = 4\nc = 2\n"
    );
    assert_eq!(
        replace(json!({"old": "=", "text": ":", "all": true})),
        "a : 1\nb : 1\nc : 2\n"
    );
    assert_eq!(
        after("a.txt", text, "replace_text", ":2-3", json!({"old": "= 1", "text": ""})),
        "a = 1\nb \nc = 2\n"
    );
    let new = after(
        "a.txt",
        "a\r\nb\r\nc\r\n",
        "replace_text",
        "",
        json!({"old": "a\nb", "text": "x\ny\nz"}),
    );
    assert_eq!(new, "x\r\ny\r\nz\r\nc\r\n");
    let repo = with_file("a.txt", text.as_bytes());
    for (old, said) in [
        ("= 1", "occurs 2 times in \"a.txt\", not 1: at line 1, 2"),
        ("d", "does not occur"),
        ("", "old is empty"),
    ] {
        let edits = json!([{"op": "replace_text", "target": "a.txt", "old": old, "text": "x"}]);
        let refused = edit(&repo, &edits, &[]).expect(2);
        assert!(refused.stderr.contains(said), "{}", refused.stderr);
    }
    assert_eq!(repo.read("a.txt"), text.as_bytes());
}

#[test]
fn lines_are_edited_as_they_are() {
    let text = "a\n  b\nc";
    let lines = |op, part, text_given: &str| after("a.txt", text, op, part, json!({"text": text_given}));
    assert_eq!(lines("replace", ":2-2", " x\ny"), "a\n x\ny\nc");
    assert_eq!(lines("replace", ":3-", "x\n"), "a\n  b\nx");
    assert_eq!(lines("insert_before", ":2-2", "x"), "a\nx\n  b\nc");
    assert_eq!(lines("insert_after", ":3-3", "x"), "a\n  b\nc\nx");
    assert_eq!(lines("remove", ":1-2", ""), "c");
}

#[test]
fn sections_and_front_matter_of_markdown_are_edited() {
    let text = "---\na: 1\n---\n\n# One\n\nWords.\n\n## Two\n\nMore.\n\n# Three\n";
    let new = after(
        "a.md",
        text,
        "replace_body",
        "#One.Two",
        json!({"text": "New words.\n"}),
    );
    assert_eq!(new, text.replace("More.", "New words."));
    let new = after("a.md", text, "replace", "#Two", json!({"text": "## Second\n\nNew."}));
    assert_eq!(new, text.replace("## Two\n\nMore.", "## Second\n\nNew."));
    let new = after("a.md", text, "replace_body", "#Three", json!({"text": "Last."}));
    assert_eq!(new, format!("{}\n\nLast.\n", text.trim_end()));
    let new = after("a.md", text, "remove", "#Two", json!({}));
    assert_eq!(new, text.replace("## Two\n\nMore.\n\n", ""));
    let new = after("a.md", text, "insert_last", "#One", json!({"text": "## Half\n\nX."}));
    assert_eq!(new, text.replace("More.\n", "More.\n\n## Half\n\nX.\n"));
    for (given, new) in [
        ("b: 2\n", text.replace("a: 1", "b: 2")),
        ("---\nb: 2\nc: 3\n---", text.replace("a: 1", "b: 2\nc: 3")),
        ("", text.split_once("---\n\n").unwrap().1.to_owned()),
    ] {
        assert_eq!(
            after("a.md", text, "replace_front_matter", "", json!({"text": given})),
            new
        );
    }
    let new = after("a.md", "# One\n", "replace_front_matter", "", json!({"text": "a: 1"}));
    assert_eq!(new, "---\na: 1\n---\n\n# One\n");
}

#[test]
fn keys_of_data_files_are_edited() {
    let toml = "top = 1\n\n[package]\nname = \"a\"\nversion = \"1\" # old\n";
    let json_text = "{\n  \"a\": 1,\n  \"b\": {\n    \"c\": [1],\n    \"d\": \"x\"\n  }\n}\n";
    let yaml = "a: 1 # one\nb:\n  c: 2\n  d: [1]\n";
    for (path, old, op, part, text, new) in [
        (
            "a.toml",
            toml,
            "replace_body",
            "#package.version",
            "\"2\"",
            toml.replace("\"1\"", "\"2\""),
        ),
        (
            "a.toml",
            toml,
            "replace_body",
            "#package",
            "name = \"b\"",
            "top = 1\n\n[package]\nname = \"b\"\n".to_owned(),
        ),
        (
            "a.toml",
            toml,
            "insert_last",
            "#package",
            "edition = 1",
            format!("{toml}edition = 1\n"),
        ),
        (
            "a.toml",
            toml,
            "remove",
            "#package.version",
            "",
            toml.replace("version = \"1\" # old\n", ""),
        ),
        (
            "a.json",
            json_text,
            "replace_body",
            "#b.c",
            "[\n  1,\n  2\n]",
            json_text.replace("[1]", "[\n      1,\n      2\n    ]"),
        ),
        (
            "a.json",
            json_text,
            "insert_last",
            "#b",
            "\"e\": 2",
            json_text.replace("\"x\"", "\"x\",\n    \"e\": 2"),
        ),
        (
            "a.json",
            json_text,
            "insert_before",
            "#a",
            "\"e\": 2",
            json_text.replace("  \"a\"", "  \"e\": 2,\n  \"a\""),
        ),
        (
            "a.json",
            json_text,
            "remove",
            "#b.d",
            "",
            json_text.replace(",\n    \"d\": \"x\"", ""),
        ),
        (
            "a.json",
            json_text,
            "remove",
            "#b.c",
            "",
            json_text.replace("    \"c\": [1],\n", ""),
        ),
        ("a.yaml", yaml, "replace_body", "#a", "2", yaml.replace("1 #", "2 #")),
        (
            "a.yaml",
            yaml,
            "replace_body",
            "#b",
            "x: 1\ny: 2",
            "a: 1 # one\nb:\n  x: 1\n  y: 2\n".to_owned(),
        ),
        (
            "a.yaml",
            yaml,
            "insert_after",
            "#b.c",
            "e: 3",
            yaml.replace("2\n", "2\n  e: 3\n"),
        ),
    ] {
        assert_eq!(
            after(path, old, op, part, json!({"text": text})),
            new,
            "{op} {path}{part}"
        );
    }
}

#[test]
fn line_endings_byte_order_mark_and_final_newline_stay() {
    let text = "\u{feff}fn a() {}\r\n\r\nfn b() {\n\tc()\n}\r\n\r\nfn d() {}";
    let new = after("a.rs", text, "replace_body", "#b", json!({"text": "e();\nf()"}));
    assert_eq!(
        new,
        text.replace("\tc()\n", "\te();\r\n\tf()\r\n")
            .replace("fn b() {\n", "fn b() {\r\n")
    );
    let new = after("a.rs", text, "insert_before", "#a", json!({"text": "fn x() {}"}));
    assert_eq!(new, text.replacen("fn a", "fn x() {}\r\n\r\nfn a", 1));
    let new = after("a.rs", text, "insert_after", "#d", json!({"text": "fn x() {}\n"}));
    assert_eq!(new, format!("{text}\r\n\r\nfn x() {{}}"));
    let new = after("a.rs", text, "remove", "#d", json!({}));
    assert_eq!(new, text.replace("\r\n\r\nfn d() {}", ""));
    let repo = with_file("a.py", b"# caf\xe9\na = 1\n");
    let edits = |text: &str| json!([{"op": "replace_body", "target": "a.py#a", "text": text}]);
    let refused = edit(
        &repo,
        &json!([{"op": "replace_text", "target": "a.py", "old": "1", "text": "\u{e9}"}]),
        &[],
    )
    .expect(2);
    assert!(refused.stderr.contains("not UTF-8"), "{}", refused.stderr);
    edit(&repo, &edits("2"), &[]).expect(2);
    edit(
        &repo,
        &json!([{"op": "replace_text", "target": "a.py", "old": "1", "text": "2"}]),
        &[],
    )
    .expect(0);
    assert_eq!(repo.read("a.py"), b"# caf\xe9\na = 2\n");
}

#[test]
fn several_operations_refer_to_the_file_before() {
    let repo = with_file("a.rs", b"fn a() {}\nfn b() {}\nfn c() {}\n");
    let edits = json!([
        {"op": "remove", "target": "a.rs:1-1"},
        {"op": "replace", "target": "a.rs:2", "text": "fn x() {}"},
        {"op": "insert_after", "target": "a.rs#c", "text": "fn y() {}"},
        {"op": "insert_after", "target": "a.rs#c", "text": "fn z() {}"},
        {"op": "create", "target": "new/b.rs", "text": "fn n() {}\n"},
    ]);
    edit(&repo, &edits, &[]).expect(0);
    assert_eq!(repo.read("a.rs"), b"fn x() {}\nfn c() {}\nfn y() {}\nfn z() {}\n");
    assert_eq!(repo.read("new/b.rs"), b"fn n() {}\n");
    let overlapping = json!([
        {"op": "remove", "target": "a.rs#c"},
        {"op": "replace_body", "target": "a.rs#c", "text": "1;"},
    ]);
    let refused = edit(&repo, &overlapping, &[]).expect(2);
    assert!(refused.stderr.contains("change the same text"), "{}", refused.stderr);
}

#[test]
fn one_operation_is_given_by_arguments() {
    let repo = with_file("src/a.rs", b"fn a() {}\n");
    let call = |folder: &str, args: &[&str], input: &str| {
        crate::cli::call_in(&repo.path(folder), &[&["edit"], args].concat(), input.as_bytes())
    };
    call("src", &["insert_after", "a.rs#a", "--text", "-"], "fn b() {}\n").expect(0);
    call("src", &["create", "c.rs", "--text", "fn c() {}\n"], "").expect(0);
    call(".", &["replace_text", "src/a.rs", "--old", "a()", "--text", "x()"], "").expect(0);
    assert_eq!(repo.read("src/a.rs"), b"fn x() {}\n\nfn b() {}\n");
    assert_eq!(repo.read("src/c.rs"), b"fn c() {}\n");
    call(".", &["delete", "src/c.rs"], "").expect(0);
    assert!(!repo.path("src/c.rs").exists());
    let unknown = call(".", &["rename", "src/a.rs#x"], "").expect(2);
    assert!(
        unknown.stderr.contains("unknown operation \"rename\""),
        "{}",
        unknown.stderr
    );
    call(".", &["replace_text", "src/a.rs", "--old", "zzz", "--text", "x"], "").expect(2);
    call(".", &["replace_body", "src/a.rs#x", "--text", "{}"], "").expect(1);
}

#[test]
fn text_that_looks_like_a_fence_is_kept_or_refused() {
    let front = |text: &str, given: &str| after("a.md", text, "replace_front_matter", "", json!({"text": given}));
    assert_eq!(
        front("---\na: 1\n---\nx\n", "title: a---"),
        "---\ntitle: a---\n---\nx\n"
    );
    assert_eq!(front("+++\na = 1\n+++\nx\n", "+++\nb = 2\n+++"), "+++\nb = 2\n+++\nx\n");
    let repo = super::with_file("a.md", b"---\na: 1\n---\nx\n");
    for (op, target, text) in [
        ("replace_front_matter", "a.md", "a: 1\n---\nb: 2"),
        ("replace_front_matter", "a.md", "+++\na = 1\n+++"),
        ("remove", "a.md:2-9", ""),
    ] {
        let operation = json!([{"op": op, "target": target, "text": text}]);
        super::edit(&repo, &operation, &[]).expect(2);
    }
    assert_eq!(repo.read("a.md"), b"---\na: 1\n---\nx\n");
}

#[test]
fn comments_of_a_file_belong_to_no_definition() {
    for (path, head, code) in [
        ("a.sh", "#!/bin/sh\n", "f() {\n  :\n}\n"),
        ("a.sh", "#!/bin/sh\n", "# Prints.\nf() {\n  :\n}\n"),
        ("a.py", "# -*- coding: latin-1 -*-\n", "def f():\n    pass\n"),
        ("a.rb", "# frozen_string_literal: true\n", "# Prints.\ndef f\nend\n"),
        ("a.rs", "// Copyright\n// the authors\n", "fn f() {}\n"),
        ("a.ts", "/* SPDX-License-Identifier: MIT */\n", "function f() {}\n"),
    ] {
        let all = format!("{head}{code}");
        assert_eq!(after(path, &all, "remove", "#f", json!({})), head, "{all}");
        let mark = if matches!(path, "a.rs" | "a.ts") { "//" } else { "#" };
        let inserted = after(path, &all, "insert_before", "#f", json!({"text": format!("{mark} x")}));
        assert!(inserted.starts_with(&format!("{head}{mark} x\n")), "{inserted}");
    }
    let documented = after(
        "a.rs",
        "// Copyright\nfn f() {}\n",
        "replace_doc",
        "#f",
        json!({"text": "/// Does."}),
    );
    assert_eq!(documented, "// Copyright\n\n/// Does.\nfn f() {}\n");
}

#[test]
fn one_of_several_declarators_is_not_a_definition_of_its_own() {
    for (code, part) in [("const a = 1, b = 2;\n", "#a"), ("export let e = 1,\n  g = 2;\n", "#g")] {
        let repo = with_file("k.js", code.as_bytes());
        let edits = json!([{"op": "remove", "target": format!("k.js{part}")}]);
        let found = edit(&repo, &edits, &[]).expect(2);
        assert!(found.stderr.contains("declare"), "{}", found.stderr);
        assert_eq!(repo.read("k.js"), code.as_bytes());
    }
}

#[test]
fn a_name_of_several_definitions_is_refused_and_the_first_is_numbered() {
    let code = "class A:\n    @property\n    def x(self):\n        return 1\n\n    @x.setter\n    def x(self, v):\n        pass\n";
    let repo = with_file("a.py", code.as_bytes());
    let edits = json!([{"op": "remove", "target": "a.py#A.x"}]);
    let found = edit(&repo, &edits, &[]).expect(2);
    assert!(
        found.stderr.contains("a.py#A.x~1; others: a.py#A.x~2"),
        "{}",
        found.stderr
    );
    let first = after("a.py", code, "replace_body", "#A.x~1", json!({"text": "return 2"}));
    assert_eq!(first, code.replace("return 1", "return 2"));
    // The name of a Rust type does not mean its impl blocks.
    let first = after("a.rs", RUST, "replace_doc", "#Parser", json!({"text": "/// New."}));
    assert_eq!(first, RUST.replace("/// A parser.", "/// New."));
}

#[test]
fn a_replacement_keeps_the_parts_before_a_definition_that_it_lacks() {
    let rust = "/// A test.\n#[test]\nfn a() {}\n";
    let python = "# Why.\n@decorated\ndef a():\n    pass\n";
    for (path, old, text, new) in [
        (
            "a.rs",
            rust,
            "/// New.\nfn a() { b() }",
            "/// New.\n#[test]\nfn a() { b() }\n",
        ),
        (
            "a.rs",
            rust,
            "#[ignore]\nfn a() {}",
            "/// A test.\n#[ignore]\nfn a() {}\n",
        ),
        (
            "a.rs",
            rust,
            "/// New.\n#[ignore]\nfn a() {}",
            "/// New.\n#[ignore]\nfn a() {}\n",
        ),
        (
            "a.rs",
            "#[test]\nfn a() {}\n",
            "/// New.\nfn a() {}",
            "/// New.\n#[test]\nfn a() {}\n",
        ),
        (
            "a.py",
            python,
            "# New.\ndef a():\n    b()",
            "# New.\n@decorated\ndef a():\n    b()\n",
        ),
        (
            "a.py",
            python,
            "@other\ndef a():\n    b()",
            "# Why.\n@other\ndef a():\n    b()\n",
        ),
    ] {
        assert_eq!(after(path, old, "replace", "#a", json!({"text": text})), new, "{text}");
    }
}

#[test]
fn a_block_of_yaml_goes_below_its_key() {
    let old = "on:\n  push: x\nname: a\n";
    for (part, text, new) in [
        (
            "#on.push",
            "branches: [x]",
            "on:\n  push:\n    branches: [x]\nname: a\n",
        ),
        ("#on.push", "- c", "on:\n  push:\n    - c\nname: a\n"),
        ("#name", "\"b: c\"", "on:\n  push: x\nname: \"b: c\"\n"),
        ("#name", "[a, b]", "on:\n  push: x\nname: [a, b]\n"),
    ] {
        assert_eq!(
            after("a.yml", old, "replace_body", part, json!({"text": text})),
            new,
            "{text}"
        );
    }
    let anchored = "a: &x !t # one\n  b: 1\nc: &y 2\n";
    for (part, text, new) in [
        ("#a", "d: 2", "a: &x\n  d: 2\nc: &y 2\n"),
        ("#c", "3", "a: &x !t # one\n  b: 1\nc: &y 3\n"),
        ("#c", "!u &z 3", "a: &x !t # one\n  b: 1\nc: !u &z 3\n"),
        ("#c", "*x", "a: &x !t # one\n  b: 1\nc: *x\n"),
    ] {
        let found = after("a.yml", anchored, "replace_body", part, json!({"text": text}));
        assert_eq!(found, new, "{text}");
    }
    let repo = with_file("a.yml", old.as_bytes());
    for text in ["a: b: c", "[a", "%x"] {
        let edits = json!([{"op": "replace_body", "target": "a.yml#name", "text": text}]);
        let found = edit(&repo, &edits, &[]).expect(2);
        assert!(found.stderr.contains("is not a value in YAML"), "{}", found.stderr);
    }
}

#[test]
fn blanks_become_tabs_although_a_brace_at_the_margin_is_known() {
    let go = "package a\n\nfunc F() {\n\tg()\n}\n";
    let text = "func F() {\n    h()\n}";
    assert_eq!(
        after("t.go", go, "replace", "#F", json!({"text": text})),
        go.replace("g()", "h()")
    );
}
