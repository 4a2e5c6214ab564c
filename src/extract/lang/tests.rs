#![expect(clippy::unwrap_used, reason = "tests")]

mod kotlin;

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::*;
use crate::extract::lines::LineIndex;
use crate::extract::rules::{Body, ENDS, Name, Role, Rule, Tables};
use crate::extract::types::Extraction;
use crate::extract::{Options, detect, extract};
use crate::model::{ByteRange, RepoPath};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/lang")
}

/// Reads all samples. Returns the name, language and content of each, sorted by name.
fn samples() -> Vec<(String, &'static Language, Vec<u8>)> {
    let entries = std::fs::read_dir(fixtures()).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.retain(|name| !name.ends_with(".golden"));
    names.sort();
    let read = |name: String| {
        let bytes = std::fs::read(fixtures().join(&name)).unwrap();
        let lang = detect(&RepoPath::from(name.as_str()), &bytes);
        (name, language(lang).unwrap(), bytes)
    };
    names.into_iter().map(read).collect()
}

#[test]
fn names_numbers_and_extensions_belong_to_one_language() {
    let mut seen = HashSet::new();
    for language in languages() {
        assert!(seen.insert(language.lang.0.to_string()), "number {}", language.lang.0);
        assert_ne!(language.lang, Lang::TEXT);
        for name in [language.name].iter().chain(language.aliases) {
            assert!(seen.insert(format!("name {name}")), "{name}");
        }
        for extension in language.extensions {
            assert!(seen.insert(format!(".{extension}")), "{extension}");
        }
        for name in language.file_names.iter().chain(language.interpreters) {
            assert!(seen.insert(format!("file or program {name}")), "{name}");
        }
    }
}

#[test]
fn languages_are_found_by_name_and_alias_in_any_case() {
    for (name, expected) in [
        ("Rust", "rust"),
        ("js", "javascript"),
        ("C++", "cpp"),
        ("golang", "go"),
        ("py", "python"),
    ] {
        assert_eq!(language(by_name(name).unwrap()).unwrap().name, expected);
    }
    assert_eq!(by_name("unheard-of"), None);
    assert!(language(Lang::TEXT).is_none());
}

/// Returns the node kinds and the fields that a rule mentions. Omits the field `body`, which is the default of all
/// rules.
fn names_in(rule: &Rule) -> (Vec<&'static str>, Vec<&'static str>) {
    let mut kinds = rule.kinds.to_vec();
    let mut fields = Vec::new();
    match &rule.role {
        Role::Define(define) => {
            match define.name {
                Name::Field(field) => fields.push(field),
                Name::Child(children) => kinds.extend(children),
                Name::By(_) => {}
            }
            match define.body {
                Body::Fields(bodies) => fields.extend(bodies.iter().filter(|field| **field != "body")),
                Body::Child(children) => kinds.extend(children),
                Body::By(_) => {}
            }
        }
        Role::Call(callee) => fields.extend([callee.field, callee.receiver]),
        Role::Path(path) => fields.extend([path.qualifier, path.name]),
        Role::FieldZone(field, _) | Role::Through(field) => {
            fields.push(field);
        }
        _ => {}
    }
    fields.retain(|field| !field.is_empty() && *field != ENDS);
    (kinds, fields)
}

#[test]
fn rules_name_node_kinds_and_fields_that_exist() {
    let grammars = || {
        languages().filter_map(|language| match language.structure {
            Structure::Grammar(grammar) | Structure::Data(grammar) => Some((language.name, grammar)),
            _ => None,
        })
    };
    let mut unknown = Vec::new();
    for (name, grammar) in grammars() {
        for rules in grammar.rules {
            // A shared list may contain kinds that one of the languages does not have.
            let shares = |other: &Grammar| other.rules.iter().any(|list| std::ptr::eq(*list, *rules));
            let sharing: Vec<tree_sitter::Language> = grammars()
                .filter(|(_, other)| shares(other))
                .filter_map(|(_, other)| other.language())
                .collect();
            for rule in rules.iter() {
                let (kinds, fields) = names_in(rule);
                let is_kind = |kind: &&str| {
                    let has = |is_named| {
                        sharing
                            .iter()
                            .any(|grammar| grammar.id_for_node_kind(kind, is_named) != 0)
                    };
                    has(true) || has(false)
                };
                let is_field = |field: &&str| sharing.iter().any(|grammar| grammar.field_id_for_name(field).is_some());
                unknown.extend(
                    kinds
                        .iter()
                        .filter(|kind| !is_kind(kind))
                        .map(|kind| format!("{name}: {kind}")),
                );
                unknown.extend(
                    fields
                        .iter()
                        .filter(|field| !is_field(field))
                        .map(|field| format!("{name}: .{field}")),
                );
            }
        }
        grammar.language().map(|language| Tables::compile(grammar, language));
    }
    assert!(unknown.is_empty(), "{unknown:#?}");
}

#[test]
fn every_language_with_a_structure_has_a_sample() {
    let sampled: HashSet<&str> = samples().iter().map(|(_, language, _)| language.name).collect();
    let missing: Vec<&str> = languages()
        .filter(|l| l.has_structure() && !sampled.contains(l.name))
        .map(|l| l.name)
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn samples_parse_without_errors() {
    for (name, language, bytes) in samples() {
        assert_eq!(
            extract(&bytes, language.lang, &Options::default()).n_parse_errors,
            0,
            "{name}"
        );
    }
}

/// Returns the definitions in `text`, a file with this name: the kind and the path of names of each.
fn outlined(name: &str, text: impl AsRef<[u8]>) -> Vec<String> {
    let bytes = text.as_ref();
    let found = extract(bytes, detect(&RepoPath::from(name), bytes), &Options::default()).definitions;
    let path = |mut at: usize| {
        let mut path = vec![found[at].name.as_str()];
        while let Some(outer) = found[at].container {
            at = outer as usize;
            path.insert(0, &found[at].name);
        }
        path.join(".")
    };
    let one = |at: usize| format!("{:?} {}", found[at].kind, path(at));
    (0..found.len()).map(one).collect()
}

/// Returns the references in `text`: the kind and the name of each.
fn referred(name: &str, text: &str) -> Vec<String> {
    let found = extract(
        text.as_bytes(),
        detect(&RepoPath::from(name), text.as_bytes()),
        &Options::default(),
    );
    let references = found.references.iter();
    references.map(|one| format!("{:?} {}", one.kind, one.name)).collect()
}

#[test]
fn javascript_functions_are_not_what_calls_return() {
    let text = "export const App = React.memo(() => 1)\nexport const run = wrap(async () => 1)\n\
                const names = list.map(x => {\n  const inner = x\n  return inner\n})\n\
                const timer = setTimeout(() => 1)\napp.handle = function () {}\nwindow.onload = () => {}\n\
                exports.close = _.debounce(function () {})\n\
                class Q {\n  queue = start()\n  constructor() {\n    this.stop = () => 1\n    this.later = debounce(() => 1)\n    \
                this.all = this.all.then(() => 1)\n    this.el.onclick = () => 1\n  }\n}\n\
                function f(el) {\n  let timer\n  timer = setTimeout(() => 1)\n  el.value = computed(() => 1)\n  el.run = () => 1\n  \
                const ids = el.ids.filter(id => id)\n  const onClick = useCallback(() => 1)\n}\n";
    let expected = [
        "Function App",
        "Function run",
        "Variable names",
        "Variable timer",
        "Method handle",
        "Function close",
        "Class Q",
        "Field Q.queue",
        "Constructor Q.constructor",
        "Method Q.constructor.stop",
        "Method Q.constructor.later",
        "Function f",
        "Method f.run",
        "Function f.onClick",
    ];
    for name in ["a.js", "a.ts"] {
        assert_eq!(outlined(name, text), expected, "{name}");
    }
}

#[test]
fn byte_order_marks_hide_nothing() {
    let texts = [
        ("a.md", "# One\n\ntext\n\n## Two\n", "Section One"),
        ("a.md", "---\nkind: x\n---\n# One\n", "Section One"),
        ("a.rst", "One\n===\n\ntext\n", "Section One"),
        ("a.adoc", "= One\n\ntext\n", "Section One"),
        ("a.txt", "One\n===\n\ntext\n", "Section One"),
        ("a.yaml", "one: 1\ntwo: 2\n", "Key one"),
        ("a.toml", "one = 1\n", "Key one"),
        ("a.py", "def one(): pass\n", "Function one"),
        ("a.kt", "fun one() {}\n", "Function one"),
    ];
    for (name, text, first) in texts {
        let marked = format!("\u{feff}{text}");
        let lang = detect(&RepoPath::from(name), marked.as_bytes());
        let [plain, marked] = [text, &marked].map(|text| extract(text.as_bytes(), lang, &Options::default()));
        assert_eq!(
            outlined(name, format!("\u{feff}{text}")),
            outlined(name, text),
            "{name}"
        );
        assert_eq!(outlined(name, text)[0], first, "{name}");
        let places = |found: &Extraction, offset: u32| -> Vec<u32> {
            found
                .definitions
                .iter()
                .map(|one| one.name_range.start + offset)
                .collect()
        };
        assert_eq!(places(&marked, 0), places(&plain, 3), "{name}");
        assert_eq!(marked.headings.len(), plain.headings.len());
    }
}

#[test]
fn other_encodings_hide_nothing() {
    let files: [(&str, &[u8]); 6] = [
        // Shift-JIS in a string and at the end of a comment
        (
            "a.c",
            b"int a(void) { return 1; }\nconst char *s = \"\x83\x5c\";\nint b(void) { return 2; }\n",
        ),
        (
            "a.c",
            b"int a(void) { return 1; }\nint s; // \x95\x5c\nint b(void) { return 2; }\n",
        ),
        ("a.py", b"def a(): return '\x94\x5c'\ns = 1\ndef b(): pass\n"),
        // Big5 with a brace
        (
            "a.js",
            b"function a() {}\nvar s = '\xa4\x7b' + \"\xb3\x5c\"\nfunction b() {}\n",
        ),
        // Latin-1: a name, and a backslash that is one
        (
            "a.java",
            b"class A { void a() {}\nString s = \"caf\xe9\\n\";\nvoid b() {} }\n",
        ),
        (
            "a.c",
            b"int a(void) { return 1; }\nconst char *s = \"\xe9\\\"\";\nint b(void) { return 2; }\n",
        ),
    ];
    for (name, text) in files {
        let mut found = outlined(name, text);
        found.retain(|one| !one.contains("Class"));
        let names: Vec<&str> = found.iter().filter_map(|one| one.rsplit([' ', '.']).next()).collect();
        assert_eq!(names, ["a", "s", "b"], "{name}");
    }
    let found = outlined("a.c", b"int caf\xe9(void) { return 1; }\n");
    assert_eq!(found, ["Function caf\u{fffd}"]);
}

#[test]
fn comments_behind_attributes_do_not_hide_tests() {
    let text = "#[test]\n#[cfg_attr(miri, ignore)] // slow\nfn one() {}\n#[test] // why\nfn two() {}\n\
                #[test] /* why */\nfn three() {}\n#[test]\n// why\nfn four() {}\n#[test] fn five() {} // end\nfn six() {}\n";
    let expected = [
        "Test one",
        "Test two",
        "Test three",
        "Test four",
        "Test five",
        "Function six",
    ];
    assert_eq!(outlined("a.rs", text), expected);
    assert_eq!(
        outlined("a.cs", "class A {\n[Test] // why\nvoid One() {}\n}\n"),
        ["Class A", "Test A.One"]
    );
    assert_eq!(
        outlined("a.php", "<?php class A {\n#[Test] // why\nfunction one() {}\n}\n"),
        ["Class A", "Test A.one"]
    );
}

#[test]
fn names_of_macro_arguments_are_no_references() {
    let referred = |text: &str| {
        let mut found = referred("a.rs", &format!("fn f() {{ {text} }}"));
        found.retain(|one| one.contains("count") || one.contains("user"));
        found
    };
    assert_eq!(referred("info!(count = count())"), ["Call count"]);
    assert_eq!(referred("info!(count = 1, user.count = %count)"), ["Value count"]);
    assert_eq!(referred("info!(target: \"x\", count)"), ["Value count"]);
    assert_eq!(referred("assert!(count == 1)"), ["Value count"]);
    assert_eq!(referred("assert!(count::x >= 1)"), ["Value count"]);
    assert_eq!(referred("vec![A { count: 1 }]"), ["Member count"]);
    assert_eq!(referred("run! { count = 1; }"), ["Value count"]);
    let attribute = "#[serde(default = \"x\", count = 1)]\nstruct A;\n";
    assert!(!self::referred("a.rs", attribute).iter().any(|one| one == "Value count"));
}

#[test]
fn macros_between_members_hide_no_member() {
    let text = "#define X(a) \\\n  class B { a\n/// doc\nclass EXPORT Win : public QWidget {\n  Q_OBJECT\n  Q_PROPERTY(int value READ value\n    \
                NOTIFY changed)\npublic:\n  explicit Win(QWidget *p = nullptr);\n  GENERATED_BODY() // unreal\n  void show();\n\
                signals:\n  void changed();\npublic slots:\n  void slot();\n  enum E {\n    RED,\n    BLUE\n  };\n  \
                static const char c = '\\'';\n  CRC\n  *pointer;\n};\nint run() {\n  int x =\n    MAX\n    ;\n  return x;\n}\n";
    assert_eq!(
        outlined("a.cpp", text),
        [
            "Macro X",
            "Class Win",
            "Method Win.Win",
            "Method Win.show",
            "Method Win.changed",
            "Method Win.slot",
            "Enum Win.E",
            "Variant Win.E.RED",
            "Variant Win.E.BLUE",
            "Field Win.c",
            "Field Win.pointer",
            "Function run"
        ]
    );
    let references = referred("a.cpp", text);
    for expected in [
        "Macro Q_OBJECT",
        "Macro Q_PROPERTY",
        "Value value",
        "Value changed",
        "Macro GENERATED_BODY",
    ] {
        assert!(
            references.iter().any(|one| one == expected),
            "{expected} {references:?}"
        );
    }
    assert!(
        !references
            .iter()
            .any(|one| one.ends_with("READ") || one.ends_with("public"))
    );
}

#[test]
fn macros_above_types_hide_no_type() {
    let text = "LIBRARY_NAMESPACE_BEGIN\n\n/// doc\ntemplate <typename A, typename>\nstruct First {\n  int a;\n};\n\nMY_BEGIN\n\
                // note\nclass Second : public First<int> {};\nEXTERN_START\n/* note */\nnamespace third {\nint b();\n}\nUINT\n\
                get(int a) { return a; }\n";
    let expected = [
        "Struct First",
        "Field First.a",
        "Class Second",
        "Module third",
        "Function third.b",
        "Function get",
    ];
    assert_eq!(outlined("a.cpp", text), expected);
}

#[test]
fn macros_before_names_hide_no_function() {
    let text = "int ZEXPORT one(z_streamp stream) { return 0; }\nint CDECL two(void)\n{\n  return 1;\n}\n\
                static char * WINAPI three(void) { return 0; }\nstatic UINT four(void) { return 0; }\n\
                struct FIVE five(void) { return 0; }\n";
    let expected = ["one", "two", "three", "four", "five"].map(|name| format!("Function {name}"));
    for name in ["a.c", "a.cpp"] {
        assert_eq!(outlined(name, text), expected, "{name}");
        let references = referred(name, text);
        for expected in ["Macro ZEXPORT", "Macro CDECL", "Macro WINAPI", "Type UINT"] {
            let n = references.iter().filter(|one| *one == expected).count();
            assert_eq!(n, 1, "{name} {expected} {references:?}");
        }
    }
}

#[test]
fn comments_in_macros_hide_no_definition() {
    let text = "#define one(a) do { /* nothing */ } while (0)\n#  define two(a) \\\n  do { /* first */ \\\n    f(a); /* second */ \\\n  } while (0)\n\
                #define three(a) f(\"/*\", a /* last */, \"*/\")\n#define four 1 /* own */\nint five(void) { return 5; }\n";
    let expected = [
        "Macro one",
        "Macro two",
        "Macro three",
        "Constant four",
        "Function five",
    ];
    for name in ["a.c", "a.cpp"] {
        assert_eq!(outlined(name, text), expected, "{name}");
    }
}

#[test]
fn keywords_of_csharp_that_are_names_hide_no_method() {
    let text = "class A {\n  async Task First(bool async) { if (async) { } }\n  int Second(bool async) => async ? 1 : 2;\n  \
                void Third() { Call(async, 1); await Task.Run(async () => await Call(async)); }\n  \
                bool Fourth(bool await) { return await; }\n  void Fifth() { async.Run(); }\n}\n";
    assert_eq!(
        outlined("a.cs", text),
        [
            "Class A",
            "Method A.First",
            "Method A.Second",
            "Method A.Third",
            "Method A.Fourth",
            "Method A.Fifth"
        ]
    );
    assert!(referred("a.cs", text).iter().any(|one| one == "Value async"));
}

#[test]
fn quotes_after_angles_in_ruby_hide_no_definition() {
    let long = "# a line without quotes\n".repeat(20);
    for text in [
        "a == '<<' && b\n",
        "# respond to #<<\"\n",
        "# the operators `=`, `<<` \nb = ['<<', 1]\n",
        "a << \"b\\n\"\n",
    ] {
        let text = format!("{text}{long}class A\n  def first\n    <<~'END'\n      text\n    END\n  end\nend\n");
        assert_eq!(outlined("a.rb", &text), ["Class A", "Method A.first"], "{text}");
    }
}

#[test]
fn functions_that_a_macro_names_have_the_name() {
    let text = "static void FNAME(first)(void)\n{\n}\nvoid FTNC(second)(double *v, int *i);\n\
                int *BIND(mod, third)(void) { return 0; }\nint (*pointer)(void);\nint (*get(int a))(void) { return 0; }\n";
    let expected = [
        "Function first",
        "Function second",
        "Function third",
        "Variable pointer",
        "Function get",
    ];
    for name in ["a.c", "a.cpp"] {
        assert_eq!(outlined(name, text), expected, "{name}");
    }
}

#[test]
fn functions_of_several_arities_are_several_definitions() {
    let text = "defmodule M do\n  def go(a), do: go(a, 1)\n  def go(a, b \\\\ 1)\n  def go(a, 0), do: a\n  def go(a, b) when a > b, do: b\n  \
                def go, do: 1\n  defmacro go(a, b, c), do: 1\nend\n";
    let found = extract(
        text.as_bytes(),
        detect(&RepoPath::from("a.ex"), b""),
        &Options::default(),
    );
    let arities = found.definitions.iter().filter_map(|one| one.arity);
    let arities: Vec<(u8, u8)> = arities.map(|arity| (arity.fewest, arity.most)).collect();
    assert_eq!(arities, [(1, 1), (1, 2), (0, 0), (3, 3)]);
    let calls = "defmodule M do\n  def f(x) do\n    go(1)\n    x |> go(1)\n    Enum.map(x, &go/3)\n    M.go()\n    \
                 go 1 do\n      x\n    end\n  end\nend\n";
    let found = extract(
        calls.as_bytes(),
        detect(&RepoPath::from("a.ex"), b""),
        &Options::default(),
    );
    let calls = found.references.iter().filter(|one| one.name == "go");
    let numbers: Vec<Option<u8>> = calls.map(|one| one.n_arguments).collect();
    assert_eq!(numbers, [Some(1), Some(2), Some(3), Some(0), Some(2)]);
}

#[test]
fn parse_errors_have_a_line() {
    let line = |name: &str, text: &str| {
        let lang = detect(&RepoPath::from(name), text.as_bytes());
        extract(text.as_bytes(), lang, &Options::default()).first_error_line
    };
    assert_eq!(line("a.py", "def a(): pass\n"), 0);
    assert_eq!(line("a.java", "class A {}\n\nclass B { int }\n"), 3);
    assert_eq!(
        line(
            "a.html",
            "<p></p>\n<script>\nfunction a() {}\nfunction b( {}\n</script>\n"
        ),
        4
    );
    assert_eq!(line("a.md", "# A\n"), 0);
}

/// The `.golden` file next to each sample contains its expected extraction. To update these files, run
/// `UPDATE_GOLDEN=1 cargo test`.
#[test]
fn samples_give_what_stands_beside_them() {
    let mut differing = Vec::new();
    for (name, language, bytes) in samples() {
        let found = describe(&bytes, &extract(&bytes, language.lang, &Options::default()));
        let path = fixtures().join(format!("{name}.golden"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &found).unwrap();
        } else if std::fs::read_to_string(&path).unwrap_or_default() != found {
            differing.push(format!("{name}:\n{found}"));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n\n"));
}

/// Formats an extraction so that people can review it.
fn describe(bytes: &[u8], extraction: &Extraction) -> String {
    let lines = LineIndex::new(bytes);
    let text = |range: ByteRange| String::from_utf8_lossy(&bytes[range.as_usize()]).into_owned();
    let one_line = |range: ByteRange| text(range).split_whitespace().collect::<Vec<_>>().join(" ");
    let line = |at: u32| lines.line_of(at) + 1;
    let mut out = String::new();
    writeln!(out, "## definitions").unwrap();
    for definition in &extraction.definitions {
        let mut path = Vec::new();
        let mut at = definition.container;
        while let Some(container) = at {
            path.push(extraction.definitions[container as usize].name.clone());
            at = extraction.definitions[container as usize].container;
        }
        path.reverse();
        path.extend(definition.qualifier.iter().map(|qualifier| format!("({qualifier})")));
        path.push(definition.name.clone());
        let range = definition.range;
        write!(
            out,
            "{}-{} {:?} {}",
            line(range.start),
            line(range.end - 1),
            definition.kind,
            path.join(" > ")
        )
        .unwrap();
        write!(out, " | {}", one_line(definition.signature)).unwrap();
        if let Some(doc) = definition.doc {
            write!(out, " | {}", one_line(doc)).unwrap();
        }
        out.push('\n');
    }
    if !extraction.headings.is_empty() {
        writeln!(out, "\n## headings").unwrap();
    }
    for heading in &extraction.headings {
        let (first, last) = (line(heading.range.start), line(heading.range.end - 1));
        writeln!(out, "{first}-{last} {} {}", heading.level, heading.title).unwrap();
    }
    writeln!(out, "\n## imports").unwrap();
    for import in &extraction.imports {
        let names: Vec<String> = import
            .names
            .iter()
            .map(|name| {
                format!(
                    "{:?}{}",
                    name.name,
                    name.alias.as_ref().map_or(String::new(), |a| format!(" as {a:?}"))
                )
            })
            .collect();
        let verb = if import.is_reexport { "re-exports" } else { "imports" };
        writeln!(
            out,
            "{} {verb} {:?}: {}",
            line(import.range.start),
            import.module,
            names.join(", ")
        )
        .unwrap();
    }
    writeln!(out, "\n## references").unwrap();
    let mut last = 0;
    for reference in &extraction.references {
        let at = line(reference.range.start);
        let separator = if at == last { "," } else { "\n" };
        let number = if at == last { String::new() } else { format!("{at}:") };
        let qualifier = reference
            .qualifier
            .as_ref()
            .map_or(String::new(), |qualifier| format!("{qualifier}."));
        write!(
            out,
            "{separator}{number} {:?} {qualifier}{}",
            reference.kind, reference.name
        )
        .unwrap();
        last = at;
    }
    writeln!(out, "\n\n## chunks").unwrap();
    for chunk in &extraction.chunks {
        let name = chunk
            .definition
            .map_or("-", |at| extraction.definitions[at as usize].name.as_str());
        let n_bytes = chunk.range.len();
        writeln!(
            out,
            "{}-{} {:?} {name} part {} ({n_bytes} bytes)",
            chunk.start_line, chunk.end_line, chunk.kind, chunk.part
        )
        .unwrap();
    }
    out
}
