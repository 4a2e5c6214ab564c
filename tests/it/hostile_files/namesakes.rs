//! Tests files with very many definitions of one name, and with very many uses of one name.

use std::ops::ControlFlow;
use std::time::Duration;

use codescout::artifact::Extractor;
use codescout::extract::Options;
use codescout::history::{FilePair, FileShapes, symbol_deltas};
use codescout::link::{DefId, Linker, Links, MAX_CANDIDATES, Reach, Tier};
use codescout::model::RepoPath;
use codescout::query::{
    FileFilter, PartQuery, PatternOptions, Sources, SymbolQuery, SymbolRequest, grep, map, read, symbols, symbols_of,
    usages,
};
use codescout::snapshot::View;

use crate::grep::all_lines;
use crate::indexed::{Indexed, NEVER};
use crate::support::cpu_time::cpu_time;
use crate::support::{TestRepo, is_long};

const N_LINES: usize = 20_000;
/// Maximum CPU time of one query in a debug build. Measured only in a long run.
const MAX_CPU_TIME: Duration = Duration::from_secs(1);

/// Runs on a new thread, so that exactly its own time is measured.
fn timed<T: Send>(what: &str, ask: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(|| {
        let start = cpu_time();
        let answer = ask();
        let took = cpu_time().saturating_sub(start);
        assert!(!is_long() || took < MAX_CPU_TIME, "{what} took {took:?}");
        answer
    })
}

/// Runs a check on a repository with these files.
fn linked(files: &[(&str, String)], check: impl FnOnce(&View, &Sources<'_>, &Linker<'_>)) {
    let repo = TestRepo::new("//- b.c\nvoid b() {}\n");
    for (path, text) in files {
        repo.write(path, text);
    }
    repo.commit("namesakes");
    let index = Indexed::new(repo.root());
    let view = index.view("HEAD");
    let links = Links::new(&view, &mut index.workspace.repository.reader());
    let linker = Linker::new(&view, &links, &NEVER);
    check(&view, &Sources::new(&view, &index.workspace.repository), &linker);
}

/// Links each of these files, which has at least `n` references.
fn links_in_time(files: &[(&str, String)], n: usize) {
    linked(files, |view, _, linker| {
        for (path, _) in files {
            let file = view.find_text(path).unwrap();
            let found = timed(path, || linker.link_file(file).unwrap());
            assert!(found.len() >= n, "{path}: {}", found.len());
        }
    });
}

#[test]
fn definitions_of_one_name_take_time_in_proportion() {
    let files = [
        ("b.c", "void b() { a(); }\n".to_owned()),
        ("a.c", "fn a(){}\n".repeat(N_LINES)),
    ];
    linked(&files, |view, sources, linker| {
        let file = view.find_text("a.c").unwrap();

        let outline = timed("outline", || symbols_of(sources, &[file], usize::MAX).unwrap());
        assert_eq!(outline[0].definitions[N_LINES - 1].1.id, format!("a.c#a~{N_LINES}"));
        let part = PartQuery::Definition(format!("a~{N_LINES}"));
        let found = timed("read", || read(sources, file, &[part]).unwrap());
        assert_eq!(found.parts[0].start_line, N_LINES as u32);
        let files: Vec<_> = view.files().map(|(id, _)| id).collect();
        timed("map", || map(sources, linker, &files, &[], 1000).unwrap());
        for name in ["a", "a.c#a~3"] {
            let request = SymbolRequest {
                query: SymbolQuery::Named(name.to_owned()),
                filter: FileFilter::default(),
                kinds: Vec::new(),
            };
            let found = timed("symbol", || symbols(sources, &request, None).unwrap());
            assert_eq!(found.definitions.len(), if name == "a" { N_LINES } else { 1 });
        }
    });
}

/// Looking up each base among the members of the others would take minutes.
#[test]
fn bases_of_one_type_take_time_in_proportion() {
    const N_BASES: usize = 1_000;
    let bases = |start: &str, separator: &str, end: &str| {
        let names: Vec<String> = (0..N_BASES).map(|at| format!("Base{at}")).collect();
        format!("{start}{}{end}", names.join(separator))
    };
    let files = [
        ("a.java", bases("class A implements ", ",\n", " {}\n")),
        ("a.cpp", bases("class A : public ", ",\npublic ", " {};\n")),
        ("a.cs", bases("class A : ", ",\n", " {}\n")),
        ("a.kt", bases("class A : ", ",\n", " {}\n")),
        ("a.swift", bases("protocol A: ", ",\n", " {}\n")),
        ("a.scala", bases("class A extends B with ", "\nwith ", " {}\n")),
        ("a.dart", bases("class A extends B with ", ",\n", " {}\n")),
        ("a.rb", bases("class A\ninclude ", "\ninclude ", "\nend\n")),
    ];
    links_in_time(&files, N_BASES);
}

/// Looking at all imports of the file for each module would take a minute.
#[test]
fn modules_that_take_everything_from_each_other_take_time_in_proportion() {
    const N_MODULES: usize = 1_000;
    let module = |at: usize| {
        format!(
            "pub mod a{at} {{ pub use super::a{}::*; fn f() {{ sought(); }} }}\n",
            at + 1
        )
    };
    let chain: String = (0..N_MODULES).map(module).collect();
    let text = format!("{chain}pub mod a{N_MODULES} {{ pub fn sought() {{}} }}\n");
    linked(&[("src/lib.rs", text)], |view, _, linker| {
        let before = cpu_time();
        let found = linker.link_file(view.find_text("src/lib.rs").unwrap()).unwrap();
        let took = cpu_time().saturating_sub(before);
        assert!(took < MAX_CPU_TIME * 20, "{took:?}");
        let n_calls = found.iter().filter(|link| link.tier == Tier::Import).count();
        // Of the imports of a file, the first 256 are looked at for a name.
        assert_eq!(n_calls, 256);
    });
}

/// Each path may begin with a name that one of the other imports makes visible.
#[test]
fn imports_of_everything_take_time_in_proportion() {
    const N_IMPORTS: usize = 1_500;
    let repeated = |line: &str| {
        let lines = (0..N_IMPORTS).map(|at| line.replace('$', &at.to_string()));
        lines.collect::<String>()
    };
    let files = [
        ("a.rs", repeated("use a$::*;\n")),
        ("b.rs", repeated("use a$::*; mod a$;\n")),
        ("c.rs", repeated("use a$::*; mod a$ {}\n")),
        ("d.rs", repeated("mod a$ { use super::a$::*; }\n")),
    ];
    linked(&files, |view, _, linker| {
        for (path, _) in &files {
            let before = cpu_time();
            let found = linker.imports(view.find_text(path).unwrap());
            let took = cpu_time().saturating_sub(before);
            assert!(took < MAX_CPU_TIME * 5, "{path}: {took:?}");
            assert!(found.len() >= N_IMPORTS, "{path}: {}", found.len());
        }
    });
}

/// Each path could begin with a member of a type that another import names.
#[test]
fn imports_of_all_members_take_time_in_proportion() {
    const N_IMPORTS: usize = 600;
    let repeated = |start: &str, line: &str, end: &str, call: &str| {
        let numbered = |line: &str| {
            let lines = (0..N_IMPORTS).map(|at| line.replace('$', &at.to_string()));
            lines.collect::<String>()
        };
        format!("{start}{}{end}{}", numbered(line), numbered(call))
    };
    let files = [
        (
            "a.go",
            repeated("package a\nimport (\n", ". \"a/p$\"\n", ")\n", "func f$() { g$() }\n"),
        ),
        ("a.rs", repeated("", "use B$::*;\n", "", "fn f$() { g$() }\n")),
        ("a.kt", repeated("", "import B$.*\n", "", "fun f$() { g$() }\n")),
        (
            "a.scala",
            repeated("", "import b$._\n", "object A {\n", "def f$ = g$\n") + "}\n",
        ),
    ];
    linked(&files, |view, _, linker| {
        for (path, _) in &files {
            let before = cpu_time();
            let found = linker.link_file(view.find_text(path).unwrap()).unwrap();
            let took = cpu_time().saturating_sub(before);
            assert!(took < MAX_CPU_TIME * 10, "{path}: {took:?}");
            assert!(found.len() >= N_IMPORTS, "{path}: {}", found.len());
        }
    });
}

/// Each call could mean each of the members.
#[test]
fn members_of_one_name_take_time_in_proportion() {
    const N_MEMBERS: usize = 2_500;
    let members = |start: &str, member: &str, end: &str| format!("{start}{}{end}", member.repeat(N_MEMBERS));
    let files = [
        (
            "a.rs",
            members("struct A;\n", "impl A { fn f(&self) { self.f() } }\n", ""),
        ),
        ("a.ts", members("class A {\n", "f() { this.f(); }\n", "}\n")),
        ("A.java", members("class A {\n", "void f() { this.f(); }\n", "}\n")),
        ("a.kt", members("class A {\n", "fun f() { this.f() }\n", "}\n")),
    ];
    links_in_time(&files, N_MEMBERS);
}

/// Each use of the value asks for its type.
#[test]
fn uses_of_a_long_type_take_time_in_proportion() {
    const N_ARGUMENTS: usize = 8_000;
    let arguments: Vec<String> = (0..N_ARGUMENTS).map(|at| format!("T{at}")).collect();
    // A line of many kilobytes is not parsed.
    let (arguments, calls) = (arguments.join(",\n"), "x.g(1); f(x);\n".repeat(N_ARGUMENTS));
    let files = [
        (
            "A.java",
            format!("class A {{ void f(int x) {{}}\nvoid f(M<{arguments}> x) {{\n{calls}}} }}\n"),
        ),
        ("a.ts", format!("function f(x: M<{arguments}>) {{\n{calls}}}\n")),
        ("a.kt", format!("fun f(x: M<{arguments}>) {{\n{calls}}}\n")),
        ("a.rs", format!("fn f(x: M<{arguments}>) {{\n{calls}}}\n")),
    ];
    links_in_time(&files, 2 * N_ARGUMENTS);
}

/// Each of the methods could be a part of each other one.
#[test]
fn methods_of_many_types_take_time_in_proportion() {
    const N_TYPES: usize = 1_000;
    let methods = (0..N_TYPES).map(|at| format!("type T{at} struct{{}}\nfunc (t T{at}) F() {{}}\n"));
    linked(
        &[("a.go", format!("package a\n{}", methods.collect::<String>()))],
        |view, _, linker| {
            let file = view.find_text("a.go").unwrap();
            let definitions = linker.definitions(file).unwrap();
            let named = definitions
                .iter()
                .zip(0..)
                .filter(|(definition, _)| definition.name == "F");
            let all: Vec<DefId> = named.map(|(_, index)| DefId { file, index }).collect();
            assert_eq!(all.len(), N_TYPES);
            let meant = timed("meanings", || {
                all.iter().map(|of| linker.meanings(*of)).collect::<Vec<_>>()
            });
            assert_eq!(meant, all.iter().map(|of| vec![*of]).collect::<Vec<_>>());
        },
    );
}

/// Each import leads back to the name that all of them import.
#[test]
fn imports_of_one_name_take_time_in_proportion() {
    const N_IMPORTS: usize = 1_000;
    let repeated = |start: &str, line: &str, end: &str| {
        let lines = (0..N_IMPORTS).map(|at| line.replace('$', &at.to_string()));
        format!("{start}{}{end}", lines.collect::<String>())
    };
    let uses = "m()\n".repeat(N_IMPORTS);
    let files = [
        ("a.rs", repeated("", "use a::b$ as a;\n", "")),
        ("b.rs", repeated("use a::{\n", "a,\n", "};\n")),
        ("a.java", repeated("", "import a.b$.a;\n", "")),
        (
            "b.java",
            repeated(
                "",
                "import static a.A.*;\nimport static a.b.A.m;\n",
                "class B { void m() { m(); } }\n",
            ),
        ),
        (
            "c.java",
            repeated("", "import a$.b.A.*;\nimport a.A;\n", "class B { void m() { m(); } }\n"),
        ),
        (
            "a.scala",
            repeated(
                "",
                "import a$.b.A._\nimport a.A\n",
                &format!("class B {{ def m = {{\n{uses}}} }}\n"),
            ),
        ),
        (
            "b.scala",
            repeated(
                "class B { def m = {\n",
                "import a$.b.A._\nimport a.A\n",
                &format!("{uses}}} }}\n"),
            ),
        ),
        ("a.py", repeated("", "from a import b$ as a\n", "")),
        ("b.py", repeated("from a import (\n", "a,\n", ")\n")),
        ("a.js", repeated("", "import a from \"a\";\n", "")),
        ("b.js", repeated("import {\n", "a,\n", "} from \"a\";\n")),
        ("c.js", repeated("", "var a = a;\n", "")),
        ("a.php", repeated("<?php\n", "use a\\b$ as a;\n", "")),
    ];
    links_in_time(&files, N_IMPORTS);
}

/// Each value is what the call before it returns.
#[test]
fn chains_of_calls_take_time_in_proportion() {
    const N_CALLS: usize = 20_000;
    let chain = ".b(1)\n".repeat(N_CALLS);
    let files = [
        ("a.js", format!("x = a\n{chain}")),
        ("a.rs", format!("fn f() {{ a{chain} }}")),
        ("a.kt", format!("fun f() {{ a{chain} }}")),
    ];
    links_in_time(&files, N_CALLS);
}

/// Each definition is exported under the same name.
#[test]
fn exports_of_one_name_take_time_in_proportion() {
    let files = [("a.js", "module.exports = () => a;\n".repeat(2_000))];
    linked(&files, |view, _, linker| {
        let file = view.find_text("a.js").unwrap();
        let n_definitions = linker.definitions(file).unwrap().len() as u32;
        let is_exported = |&index: &u32| linker.is_exported(DefId { file, index });
        let n_exported = timed("exports", || (0..n_definitions).filter(is_exported).count());
        assert_eq!(n_exported, n_definitions as usize);
    });
}

#[test]
fn parts_of_one_type_take_time_in_proportion() {
    const N_PARTS: usize = 400;
    let part = |at| format!("partial class A : A {{ void m(T{at} x) {{ m(x); base.m(x); }} }}\n");
    linked(&[("a.cs", (0..N_PARTS).map(part).collect())], |view, _, linker| {
        let file = view.find_text("a.cs").unwrap();
        let found = timed("links", || linker.link_file(file).unwrap());
        assert!(found.len() >= 2 * N_PARTS);
        let n_definitions = linker.definitions(file).unwrap().len() as u32;
        timed("overridden", || {
            (0..n_definitions).for_each(|index| drop(linker.overridden(DefId { file, index })));
        });
    });
}

/// Each type has ten bases, all of which have the same ten.
#[test]
fn lattices_of_types_take_time_in_proportion() {
    const N_LAYERS: usize = 12;
    const N_WIDE: usize = 10;
    let lattice = |head: &str, bases: &str, separator: &str, body: &str, calls: &str| {
        let mut text = String::new();
        for layer in 0..N_LAYERS {
            let names: Vec<String> = (0..N_WIDE).map(|at| format!("T{}x{at}", layer + 1)).collect();
            let bases = if layer + 1 < N_LAYERS {
                bases.replace('$', &names.join(separator))
            } else {
                String::new()
            };
            (0..N_WIDE).for_each(|at| text += &format!("{head} T{layer}x{at}{bases} {body}\n"));
        }
        let lines: String = (0..200).map(|at| format!("x.gone{at}();\n")).collect();
        text + &calls.replace('$', &lines)
    };
    let files = [
        (
            "a.java",
            lattice(
                "interface",
                " extends $",
                ", ",
                "{ }",
                "class Z { void f(T0x0 x) {\n$} }\n",
            ),
        ),
        (
            "a.ts",
            lattice("interface", " extends $", ", ", "{ }", "function f(x: T0x0) {\n$}\n"),
        ),
        (
            "a.kt",
            lattice("interface", " : $", ", ", "{ }", "fun f(x: T0x0) {\n$}\n"),
        ),
        (
            "a.cs",
            lattice("interface", " : $", ", ", "{ }", "class Z { void f(T0x0 x) {\n$} }\n"),
        ),
        (
            "a.swift",
            lattice("protocol", ": $", ", ", "{ }", "func f(x: T0x0) {\n$}\n"),
        ),
        (
            "a.py",
            lattice("class", "($)", ", ", ": pass", "def f(x: T0x0):\n  (\n$)\n"),
        ),
        (
            "a.cpp",
            lattice("struct", " : $", ", ", "{ };", "void f(T0x0 x) {\n$}\n"),
        ),
    ];
    links_in_time(&files, N_LAYERS * N_WIDE);
}

/// Each module imports everything from all others.
#[test]
fn circles_of_imports_take_time_in_proportion() {
    const N_MODULES: usize = 24;
    const N_NAMES: usize = 20;
    let circle = |path: &str, star: &str, definition: &str, call: &str| -> Vec<(String, String)> {
        let numbered = |form: &str, n| (0..n).map(|at| form.replace('$', &at.to_string())).collect::<String>();
        let calls = numbered(call, N_NAMES);
        let file = |at: usize| {
            let own = definition.replace('$', &at.to_string());
            (
                path.replace('$', &at.to_string()),
                numbered(star, N_MODULES) + &own + &calls.replace('\0', "\n"),
            )
        };
        (0..N_MODULES).map(file).collect()
    };
    let modules: String = (0..N_MODULES).map(|at| format!("pub mod m{at};\n")).collect();
    let mut rust = circle(
        "src/m$.rs",
        "pub use crate::m$::*;\n",
        "pub fn f$() {}\n",
        "fn c$() { f$(); gone$(); }\n",
    );
    rust.push(("src/lib.rs".to_owned(), modules));
    rust.push((
        "Cargo.toml".to_owned(),
        "[package]\nname = \"a\"\nversion = \"0.1.0\"\n".to_owned(),
    ));
    let python = circle("m$.py", "from m$ import *\n", "def f$(): pass\n", "f$()\ngone$()\n");
    let script = circle(
        "m$.ts",
        "export * from './m$';\nimport * as n$ from './m$';\n",
        "export function f$() {}\n",
        "n$.f1();\nn$.gone();\n",
    );
    let dart = circle(
        "m$.dart",
        "export 'm$.dart';\nimport 'm$.dart';\n",
        "void f$() {}\n",
        "void c$() { f$(); gone$(); }\n",
    );
    for files in [rust, python, script, dart] {
        let files: Vec<(&str, String)> = files.iter().map(|(path, text)| (path.as_str(), text.clone())).collect();
        linked(&files, |view, _, linker| {
            let ids: Vec<_> = view.files().map(|(id, _)| id).collect();
            timed(files[0].0, || {
                for id in &ids {
                    let found = linker.link_file(*id).unwrap_or_default();
                    assert!(
                        found.iter().filter(|link| !link.targets.is_empty()).count() >= N_NAMES
                            || found.len() < N_NAMES
                    );
                }
            });
        });
    }
}

#[test]
fn many_names_in_one_line_take_time_in_proportion() {
    const N_NAMES: usize = 4_400;
    // Almost as long as a line of a file that is parsed can be.
    let line = format!("{}{}", "int a() {} ".repeat(N_NAMES), "\n".repeat(200));
    linked(&[("a.c", line)], |view, sources, _| {
        let file = view.find_text("a.c").unwrap();
        let part = PartQuery::Symbol("a".to_owned());
        let found = timed("read", || read(sources, file, &[part]).unwrap());
        assert_eq!(found.parts.len(), N_NAMES);
    });
}

#[test]
fn uses_of_one_name_take_time_in_proportion() {
    let calls = "foo();\n".repeat(N_LINES);
    let repo = TestRepo::new("//- a.rs\nfn foo() {}\n");
    repo.write("r.rs", format!("fn all() {{\n{calls}}}\n"));
    repo.write("v.rs", "use foo;\n".repeat(N_LINES));
    repo.write("d.rs", "fn foo() {}\n".repeat(N_LINES));
    repo.commit("uses");
    let index = Indexed::new(repo.root());
    let view = index.view("HEAD");
    let sources = Sources::new(&view, &index.workspace.repository);
    let mut found = Vec::new();
    grep(
        &sources,
        &all_lines("foo", PatternOptions::default()),
        &NEVER,
        &mut |matches| {
            found.push((matches.file, matches.lines.clone()));
            ControlFlow::Continue(())
        },
    );
    assert_eq!(found.len(), 4);
    let n_uses = found
        .iter()
        .map(|(file, lines)| timed("references", || usages(&sources, *file, "foo", lines).unwrap().len()));
    assert_eq!(n_uses.sum::<usize>(), 2 * N_LINES);
}

#[test]
fn changes_of_namesakes_take_time_in_proportion() {
    let path = RepoPath::new("a.c");
    let mut extractor = Extractor::new(Options::default());
    let text = "int a() { return 1; }\n".repeat(N_LINES);
    let mut shapes = |text: &str| {
        Some((
            path.clone(),
            FileShapes::of(&mut extractor, &path, text.as_bytes().to_vec()),
        ))
    };
    let pair = FilePair {
        old: shapes(&text),
        new: shapes(&text.replacen("return 1", "return 2", 1)),
    };
    let deltas = timed("diff", || symbol_deltas(&[pair]));
    assert_eq!(deltas.len(), 1);
}

#[test]
fn words_that_refer_to_many_definitions_take_time_in_proportion() {
    for (path, line) in [
        ("a.c", "begin\n"),
        ("a.c", "end\n"),
        ("a.c", "void a() { a(); b(); }\n"),
        ("a.py", "from a import *\nb\n"),
        ("a.js", "import { a } from './b';\na();\n"),
    ] {
        linked(&[(path, line.repeat(N_LINES / 2))], |view, sources, linker| {
            let files: Vec<_> = view.files().map(|(id, _)| id).collect();
            let counted = timed(line, || linker.usages(&files));
            if line.starts_with("void") {
                // Each is called in each other one, and none by itself counts.
                let file = view.find_text(path).unwrap();
                let here = counted.each().filter(|(of, _)| of.file == file);
                let possible = here.map(|(_, usage)| usage.possible).max();
                assert_eq!(possible, Some(N_LINES as u32 / 2 - 1));
            }
            timed("map", || map(sources, linker, &files, &[], 1000).unwrap());
        });
    }
}

/// A target for each definition and reference would fill the memory, and lists with gigabytes.
#[test]
fn references_to_any_of_very_many_definitions_are_candidates() {
    const N_DEFINITIONS: usize = 300;
    const N_USES: usize = 50;
    for (path, definition, before, use_) in [
        ("a.js", "function f() {}\n", "", "f();\n"),
        ("a.ts", "function f(): void;\n", "", "f();\n"),
        ("a.java", "void f() {}\n", "void g() {\n", "f();\n"),
        ("b.java", "class T {}\n", "void g() {\n", "T t;\n"),
        ("a.cpp", "int f(int);\n", "void g() {\n", "f(1);\n"),
        ("a.cs", "void f() {}\n", "void g() {\n", "f();\n"),
    ] {
        let is_in_class = !path.ends_with("s") || path.ends_with(".cs");
        let start = if is_in_class && !path.ends_with("cpp") {
            "class A {\n"
        } else {
            ""
        };
        let text = format!(
            "{start}{}{before}{}",
            definition.repeat(N_DEFINITIONS),
            use_.repeat(N_USES)
        );
        linked(&[(path, text)], |view, _, linker| {
            let file = view.find_text(path).unwrap();
            let found = linker.link_file(file).unwrap();
            let cut = found
                .iter()
                .filter(|link| (link.tier, link.targets.len()) == (Tier::Named, MAX_CANDIDATES));
            assert_eq!(cut.count(), N_USES, "{path}");
            let usages = linker.usages(&[file]);
            let is_used = usages.each().filter(|(_, usage)| usage.possible > 0);
            assert!(is_used.count() >= N_DEFINITIONS, "{path}");
        });
    }
}

#[test]
fn changes_of_namesakes_reach_others_in_time_in_proportion() {
    const N_USES: usize = 4_000;
    for (path, line, reached) in [
        ("a.py", "x = 1\n", 0),
        ("a.py", "def f(): f()\n", 0),
        ("a.js", "function f() { g(); }\n", 0),
        ("a.rs", "mod m { fn f() { g(); } }\n", 0),
        ("b.py", "def f(): pass\nf()\n", 1),
    ] {
        linked(&[(path, line.repeat(N_USES))], |view, _, linker| {
            let file = view.find_text(path).unwrap();
            let definitions = 0..linker.definitions(file).unwrap().len() as u32;
            let changed: Vec<DefId> = definitions.map(|index| DefId { file, index }).collect();
            let reach = Reach {
                max_depth: u32::MAX,
                max_reached: usize::MAX,
                max_candidates: 3,
            };
            let found = timed(line, || linker.impact(&changed, reach).unwrap());
            assert_eq!(found.reached.len(), reached, "{line}");
        });
    }
}

#[test]
fn families_take_time_in_proportion() {
    const N_TYPES: usize = 200;
    let interface = |n| format!("type I{n} interface {{ f(a, b, c int) }}\n");
    let go = |n| {
        format!(
            "{}type T{n} struct {{}}\nfunc (t T{n}) f(a, b, c int) {{}}\n",
            interface(n)
        )
    };
    let java = |n: usize| {
        format!(
            "class C{n} extends C{} {{ void f() {{ g(); }} }}\n",
            n.saturating_sub(1)
        )
    };
    let python = |n: usize| format!("class C{n}(C{}):\n  def f(self): self.g()\n", n.saturating_sub(1));
    let texts = [
        (
            "a.go",
            "package p\n".to_owned() + &(0..N_TYPES).map(go).collect::<String>(),
        ),
        ("A.java", (0..N_TYPES).map(java).collect()),
        ("a.py", (0..N_TYPES).map(python).collect()),
    ];
    for (path, text) in texts {
        linked(&[(path, text)], |view, _, linker| {
            let file = view.find_text(path).unwrap();
            let definitions = linker.definitions(file).unwrap();
            let last = definitions.iter().rposition(|definition| definition.name == "f");
            let of = DefId {
                file,
                index: last.unwrap() as u32,
            };
            let kin = timed(path, || linker.kin(of).unwrap().unwrap());
            timed(path, || {
                for of in &kin.definitions {
                    linker.overriding(*of).unwrap();
                }
            });
            let n_found = kin.definitions.len();
            assert!((N_TYPES..=2 * N_TYPES).contains(&n_found), "{path}: {n_found}");
        });
    }
}

/// Each of these types has 2^59 ways to its last base.
#[test]
fn bases_are_searched_once() {
    for (path, head, between, body, end) in [
        ("a.py", "class ", "(", "):\n  def f(self): self.q()\n", ""),
        (
            "A.java",
            "interface ",
            " extends ",
            " {}\n",
            "class A { void g(A a) {} void g(B b) {} void f(T59a t) { g(t); t.q(); } }\nclass B {}\n",
        ),
        (
            "a.ts",
            "interface ",
            " extends ",
            " {}\n",
            "function f(t: T59a) { t.q; t.q(); }\n",
        ),
        (
            "a.kt",
            "interface ",
            ": ",
            "\n",
            "class A\nclass B\nfun g(a: A) {}\nfun g(b: B) {}\nfun f(t: T59a) { g(t); t.q() }\n",
        ),
    ] {
        let level = |n: usize| {
            let of = |side| format!("{head}T{}{side}{between}T{n}a, T{n}b{body}", n + 1);
            of("a") + &of("b")
        };
        links_in_time(&[(path, (0..59).map(level).collect::<String>() + end)], 200);
    }
}

/// The names by which each file could be imported would take gigabytes.
#[test]
fn files_in_deep_folders_take_memory_in_proportion() {
    let repo = TestRepo::new("//- a.py\nimport d.d.d.m0\nm0.f()\n");
    let folder = "d/".repeat(500);
    for number in 0..500 {
        repo.write(format!("{folder}m{number}.py"), "def f(): pass\n");
    }
    repo.commit("deep");
    let index = Indexed::new(repo.root());
    let view = index.view("HEAD");
    let links = timed("links", || Links::new(&view, &mut index.workspace.repository.reader()));
    let linker = Linker::new(&view, &links, &NEVER);
    let found = linker.link_file(view.find_text("a.py").unwrap()).unwrap();
    assert!(found.iter().all(|link| link.tier != Tier::Named), "{found:?}");
}

/// Comparing each of them with each other one would take a minute and gigabytes.
#[test]
fn namesakes_that_all_go_to_other_types_take_time_in_proportion() {
    const N_TYPES: usize = 2_000;
    let mut extractor = Extractor::new(Options::default());
    let mut version = |of: &str| {
        let methods = (0..N_TYPES).map(|at| format!("impl {of}{at} {{ fn x() {{ a(); b(); c() }} }}\n"));
        let path = RepoPath::from("a.rs");
        let file = FileShapes::of(&mut extractor, &path, methods.collect::<String>().into_bytes());
        (path, file)
    };
    let pair = FilePair {
        old: Some(version("A")),
        new: Some(version("B")),
    };
    let before = cpu_time();
    let deltas = symbol_deltas(&[pair]);
    let took = cpu_time().saturating_sub(before);
    assert!(took < MAX_CPU_TIME * 10, "{took:?}");
    assert!(deltas.len() >= 2 * N_TYPES, "{}", deltas.len());
}
