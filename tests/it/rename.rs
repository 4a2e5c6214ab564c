//! Tests `codescout rename`: what it changes, what it only lists, and what it refuses.

use std::fs;

use serde_json::{Value, json};

use crate::cli::{Called, call};
use crate::support::TestRepo;

const PYTHON: &str = "
    //- shop/__init__.py
    from .store import Store, find as search

    __all__ = ['Store', 'search']
    //- shop/store.py
    '''Keeps items; find looks one up.'''
    LIMIT = 10

    def find(name):
        return name

    class Store:
        def load(self, path):
            find = len(path)
            return find + LIMIT

        def reload(self):
            return self.load('find')

    class Cache(Store):
        def load(self, path):
            return super().load(path)
    //- shop/use.py
    from shop.store import Store, find
    import shop.store as store

    def run(other):
        s = Store()
        s.load(find('a'))
        store.find('b')
        other.load('c')
        return other.find

    def shadow(find):
        return find(1)
    //- README.md
    Call find, or Store.load.
";

fn rename(repo: &TestRepo, args: &[&str]) -> Called {
    call(repo, &[&["rename"], args].concat())
}

/// Applies a rename and returns the answer.
#[track_caller]
fn applied(repo: &TestRepo, args: &[&str]) -> Value {
    serde_json::from_str(&rename(repo, &[args, &["--apply", "--json"]].concat()).expect(0).text()).unwrap()
}

#[track_caller]
fn refused(repo: &TestRepo, args: &[&str], why: &str) {
    let said = rename(repo, &[args, &["--apply"]].concat()).expect(2);
    assert!(said.stderr.contains(why), "{}", said.stderr);
    assert_eq!(repo.git(["status", "--porcelain"]), "");
}

fn text(repo: &TestRepo, path: &str) -> String {
    String::from_utf8(repo.read(path)).unwrap()
}

/// Returns the places of a kind as `path:line reason`.
fn places(answer: &Value, kind: &str) -> Vec<String> {
    let rows = answer["results"].as_array().unwrap().iter();
    let places = rows.filter(|row| row["kind"] == kind);
    let place = |place: &Value| {
        format!(
            "{}:{} {}",
            place["path"].as_str().unwrap(),
            place["line"],
            place["reason"].as_str().unwrap()
        )
    };
    places.map(place).collect()
}

#[test]
fn a_function_is_renamed_with_its_references_and_the_left_side_of_aliases() {
    let repo = TestRepo::new(PYTHON);
    let answer = applied(&repo, &["shop/store.py#find", "look_up"]);
    assert_eq!(answer["definitions"], json!(["shop/store.py#find"]));
    assert_eq!(answer["changed"], json!(5));
    assert!(text(&repo, "shop/__init__.py").contains("Store, look_up as search\n"));
    let used = text(&repo, "shop/use.py");
    assert!(
        used.contains("import Store, look_up\n") && used.contains("s.load(look_up('a'))\n"),
        "{used}"
    );
    assert!(
        used.contains("store.look_up('b')\n") && used.contains("def shadow(find):\n    return find(1)\n"),
        "{used}"
    );
    let store = text(&repo, "shop/store.py");
    assert!(
        store.contains("find = len(path)\n        return find + LIMIT"),
        "{store}"
    );
    // A member of an unknown value could be anything.
    assert_eq!(answer["renamed_all"], json!(false));
    assert_eq!(
        places(&answer, "candidate"),
        ["shop/store.py:13 string", "shop/use.py:9 unknown"]
    );
    assert_eq!(
        places(&answer, "mention"),
        ["README.md:1 other file", "shop/store.py:1 text"]
    );
}

#[test]
fn overriding_methods_are_renamed_together_and_candidates_one_by_one() {
    let repo = TestRepo::new(PYTHON);
    let dry = rename(&repo, &["Cache.load", "read"]).expect(0);
    assert!(dry.text().contains("candidate shop/use.py:8:11 (named)"));
    refused(
        &repo,
        &["Cache.load", "read", "--accept", "shop/use.py:7"],
        "no candidate or mention",
    );
    let answer = applied(
        &repo,
        &[
            "Cache.load",
            "read",
            "--accept",
            "shop/use.py:8",
            "--accept",
            "README.md:1:21",
        ],
    );
    assert_eq!(
        answer["definitions"],
        json!(["shop/store.py#Store.load", "shop/store.py#Cache.load"])
    );
    assert_eq!((&answer["changed"], &answer["renamed_all"]), (&json!(7), &json!(true)));
    assert!(!text(&repo, "shop/store.py").contains("load(") || text(&repo, "shop/store.py").contains("def reload("));
    assert!(text(&repo, "shop/use.py").contains("other.read('c')"));
    assert_eq!(text(&repo, "README.md"), "Call find, or Store.read.\n");
}

#[test]
fn exported_names_are_renamed_in_the_list_of_exports() {
    let repo = TestRepo::new(PYTHON);
    applied(&repo, &["Store", "Shop"]);
    assert!(text(&repo, "shop/__init__.py").contains("__all__ = ['Shop', 'search']\n"));
    assert!(text(&repo, "shop/store.py").contains("class Cache(Shop):\n"));
}

#[test]
fn names_that_are_taken_or_not_allowed_are_refused() {
    let repo = TestRepo::new(PYTHON);
    refused(&repo, &["find", "class"], "keyword of python");
    refused(&repo, &["find", "2nd"], "not a name in python");
    refused(&repo, &["find", "find"], "already");
    refused(
        &repo,
        &["shop/store.py#find", "LIMIT"],
        "the name is taken at shop/store.py:2",
    );
    refused(&repo, &["shop/store.py#find", "Store"], "the name is taken at");
    // A local variable would hide the constant.
    refused(&repo, &["LIMIT", "path"], "the name is taken at shop/store.py:8");
    refused(
        &repo,
        &["Cache.load", "reload"],
        "the name is taken at shop/store.py:12",
    );
    refused(&repo, &["load", "read", "--ref", "HEAD"], "only files of the worktree");
    refused(&repo, &["nothing", "read"], "no definition named \"nothing\"");
    repo.write("shop/more.py", "def find():\n    pass\n");
    repo.commit("more");
    refused(
        &repo,
        &["find", "look_up"],
        "codescout rename shop/more.py#find look_up; others: shop/store.py#find",
    );
}

#[test]
fn a_new_name_that_captures_other_code_is_refused() {
    let repo = TestRepo::new(
        "
        //- a.py
        def first():
            return 1

        def second():
            return max(first(), 2)
    ",
    );
    refused(
        &repo,
        &["first", "max"],
        "a name that means something else would mean this definition",
    );
}

#[test]
fn a_base_outside_of_the_repository_must_be_confirmed() {
    let repo = TestRepo::new(
        "
        //- a.py
        from http.server import BaseHTTPRequestHandler

        class Handler(BaseHTTPRequestHandler):
            def answer(self):
                return self.answer()
    ",
    );
    refused(&repo, &["answer", "reply"], "may need the name answer: a.py:3");
    refused(&repo, &["answer", "reply"], "with --accept");
    let answer = applied(&repo, &["answer", "reply", "--accept", "a.py:3"]);
    assert_eq!((&answer["changed"], &answer["renamed_all"]), (&json!(2), &json!(true)));
    assert!(
        text(&repo, "a.py")
            .contains("class Handler(BaseHTTPRequestHandler):\n    def reply(self):\n        return self.reply()")
    );
}

#[test]
fn a_dry_run_writes_nothing_and_git_applies_its_patch() {
    let repo = TestRepo::new(PYTHON);
    repo.write("shop/crlf.py", "from shop.store import find\r\n\r\nfind(1)\r\n");
    repo.write(".gitattributes", "crlf.py text eol=crlf\n");
    repo.commit("line endings");
    // Uncommitted code counts.
    repo.write("shop/new.py", "from shop.store import find\nfind(2)\n");
    let before = repo.git(["status", "--porcelain"]);
    let dry = rename(&repo, &["shop/store.py#find", "look_up"]).expect(0);
    assert_eq!(repo.git(["status", "--porcelain"]), before);
    assert!(!repo.path(".git/codescout-edit").exists());
    let patch = repo.beside("rename.patch");
    fs::write(&patch, &dry.stdout).unwrap();
    let files = [
        "shop/store.py",
        "shop/use.py",
        "shop/new.py",
        "shop/crlf.py",
        "shop/__init__.py",
    ];
    let old = files.map(|path| repo.read(path));
    repo.git(["apply", patch.to_str().unwrap()]);
    let by_git = files.map(|path| repo.read(path));
    files.iter().zip(old).for_each(|(path, old)| repo.write(path, old));
    let done = rename(&repo, &["shop/store.py#find", "look_up", "--apply"]).expect(0);
    assert_eq!(done.stdout, dry.stdout);
    assert_eq!(files.map(|path| repo.read(path)), by_git);
    assert_eq!(by_git[3], b"from shop.store import look_up\r\n\r\nlook_up(1)\r\n");
    assert_eq!(by_git[2], b"from shop.store import look_up\nlook_up(2)\n");
}

#[test]
fn a_field_that_a_parameter_defines_is_renamed_with_it() {
    let repo = TestRepo::new(
        "
        //- a.ts
        export class Pool {
            constructor(private readonly inner: number, public size = 1) {
                console.log(inner + this.inner);
            }
            left() { return this.inner - 1; }
        }
    ",
    );
    let answer = applied(&repo, &["Pool.inner", "used"]);
    assert_eq!(
        (&answer["changed"], &answer["renamed_all"]),
        (&json!(4), &json!(true)),
        "{answer:#}"
    );
    repo.commit("used");
    refused(&repo, &["Pool.used", "size"], "the name is taken");
}

#[test]
fn typescript_short_forms_are_expanded_or_listed() {
    let repo = TestRepo::new(
        "
        //- src/shapes.ts
        export interface Shape { size: number; }
        export class Box implements Shape { size = 1; }
        export function area(shape: Shape) { return shape.size; }
        //- src/index.ts
        export { area as surface } from './shapes';
        export { Box } from './shapes';
        //- src/use.ts
        import { area, Box } from './shapes';
        import { surface } from './index';
        export const tools = { area };
        export function sum(box: Box) {
            const { size } = box;
            return area(box) + surface(box) + size;
        }
    ",
    );
    let answer = applied(&repo, &["area", "measure"]);
    assert_eq!(answer["renamed_all"], json!(true), "{answer:#}");
    assert!(text(&repo, "src/index.ts").contains("export { measure as surface }"));
    let used = text(&repo, "src/use.ts");
    assert!(
        used.contains("import { measure, Box }") && used.contains("tools = { area: measure };"),
        "{used}"
    );
    assert!(used.contains("return measure(box) + surface(box) + size;"), "{used}");
    repo.commit("area");
    let answer = applied(&repo, &["Box.size", "extent", "--accept", "src/use.ts:5"]);
    assert_eq!(answer["renamed_all"], json!(true), "{answer:#}");
    assert!(text(&repo, "src/shapes.ts").contains("interface Shape { extent: number; }"));
    assert!(text(&repo, "src/use.ts").contains("const { extent: size } = box;"));
}

#[test]
fn rust_traits_paths_and_short_forms_are_renamed() {
    let repo = TestRepo::new(
        "
        //- Cargo.toml
        [package]
        name = \"shop\"
        //- src/lib.rs
        pub mod kinds;
        use crate::kinds::{Kind::{self, Small}, Price};
        pub fn price(kind: Kind) -> u32 { let cost = 1; match kind { Small => Item { cost }.total(), Kind::Large => 2 } }
        pub struct Item { pub cost: u32 }
        impl Price for Item { fn total(&self) -> u32 { self.cost } }
        pub fn all(items: &[Item]) -> u32 { items.iter().map(|item| item.total()).sum() }
        //- src/kinds.rs
        pub enum Kind { Small, Large }
        pub trait Price { fn total(&self) -> u32; }
    ",
    );
    applied(&repo, &["Kind", "Size"]);
    let lib = text(&repo, "src/lib.rs");
    assert!(
        lib.contains("kinds::{Size::{self, Small}, Price}")
            && lib.contains("kind: Size")
            && lib.contains("Size::Large"),
        "{lib}"
    );
    repo.commit("kind");
    let answer = applied(&repo, &["Item.total", "sum_up"]);
    assert_eq!(answer["definitions"].as_array().unwrap().len(), 2, "{answer:#}");
    assert!(text(&repo, "src/kinds.rs").contains("fn sum_up(&self)"));
    assert!(text(&repo, "src/lib.rs").contains("Item { cost }.sum_up()"));
    assert_eq!(places(&answer, "candidate"), ["src/lib.rs:6 named"]);
    repo.commit("total");
    let answer = applied(&repo, &["Item.cost", "amount", "--accept", "src/lib.rs:3"]);
    assert_eq!(answer["renamed_all"], json!(true), "{answer:#}");
    assert!(text(&repo, "src/lib.rs").contains("Item { amount: cost }.sum_up()"));
    repo.commit("cost");
    refused(&repo, &["price", "match"], "keyword of rust");
    // The fields of a tuple are no numbers.
    repo.write("src/lib.rs", "pub struct A;\nimpl A {\n    pub fn go(&self) {}\n}\npub struct B(A);\nimpl B {\n    pub fn run(&self) {\n        self.0.go()\n    }\n}\n");
    let answer = applied(&repo, &["A.go", "walk"]);
    assert_eq!(places(&answer, "candidate"), ["src/lib.rs:8 named"], "{answer:#}");
    // No field is a free function.
    repo.write("src/lib.rs", "pub fn cost() {}\npub fn f(x: Unknown) -> u32 {\n    x\n        .cost\n}\npub fn g() {\n    // All.\n    cost();\n    for _ in 0..cost() {}\n}\n");
    let answer = applied(&repo, &["src/lib.rs#cost", "price"]);
    assert_eq!(
        (&answer["changed"], &answer["renamed_all"]),
        (&json!(3), &json!(true)),
        "{answer:#}"
    );
}

#[test]
fn go_methods_are_renamed_with_the_interfaces_that_they_satisfy() {
    let repo = TestRepo::new(
        "
        //- go.mod
        module example.com/shop
        //- shop.go
        package shop

        type Store interface { Load(path string) int }
        type Log interface { Print(v ...any) }
        type Disk struct{}

        func (d *Disk) Load(path string) int { return 1 }
        func (d *Disk) String() string { return \"Load\" }
        func Open() *Disk { return &Disk{} }
        //- other/use.go
        package other

        import \"example.com/shop\"

        func Use(s shop.Store) int { return s.Load(\"x\") + shop.Open().Load(\"y\") }
        //- shop_test.go
        package shop

        func ExampleDisk_Load_twice() { (&Disk{}).Load(\"x\") }
        func ExampleOpen() { Open() }
    ",
    );
    refused(&repo, &["Disk.Load", "Fetch"], "may need the name Load: shop.go:3");
    refused(&repo, &["ExampleOpen", "ExampleShop"], "named after what it shows");
    let accept = ["--accept", "shop.go:3", "--accept", "shop_test.go:3:18"];
    let answer = applied(&repo, &[&["Disk.Load", "Fetch"][..], &accept].concat());
    assert_eq!(
        (&answer["changed"], &answer["renamed_all"]),
        (&json!(6), &json!(true)),
        "{answer:#}"
    );
    assert!(text(&repo, "shop_test.go").contains("func ExampleDisk_Fetch_twice() { (&Disk{}).Fetch"));
    assert!(text(&repo, "other/use.go").contains("s.Fetch(\"x\") + shop.Open().Fetch(\"y\")"));
    repo.commit("load");
    refused(&repo, &["Log.Print", "Show"], "may need the name Print: shop.go:4");
    refused(&repo, &["Disk.String", "Text"], "go gives the name String a meaning");
    refused(&repo, &["Open", "open"], "other/use.go");
    refused(&repo, &["Open", "Disk"], "the name is taken at shop.go:5");
}

#[test]
fn java_types_move_with_their_file_and_overloads_stay_together() {
    let repo = TestRepo::new(
        "
        //- src/shop/Store.java
        package shop;

        public class Store {
            private final int size;
            public Store(int size) { this.size = size; }
            public int load(String path) { return size; }
            public int load(int size) { return size; }
            public static class Part { public static int count() { return 1; } }
        }
        //- src/shop/Cache.java
        package shop;

        class Cache extends Store {
            Cache() { super(1); }
            @Override public int load(String path) { return new Store(2).load(3); }
        }
        //- src/use/Use.java
        package use;

        import shop.Store;
        import static shop.Store.Part.count;
        import static shop.Store.Part.*;

        class Use { int run(Store store) { int load = 1; return store.load(\"x\") + load + count(); } }
    ",
    );
    let answer = applied(&repo, &["Store", "Shop"]);
    assert_eq!(answer["renamed_all"], json!(true), "{answer:#}");
    assert!(!repo.path("src/shop/Store.java").exists());
    assert!(
        text(&repo, "src/shop/Shop.java")
            .contains("public class Shop {\n    private final int size;\n    public Shop(int size)")
    );
    let imports = "import shop.Shop;\nimport static shop.Shop.Part.count;\nimport static shop.Shop.Part.*;\n";
    assert!(text(&repo, "src/use/Use.java").contains(imports));
    repo.commit("store");
    let answer = applied(&repo, &["src/shop/Cache.java#Cache.load", "read"]);
    assert_eq!(answer["definitions"].as_array().unwrap().len(), 3, "{answer:#}");
    assert!(text(&repo, "src/use/Use.java").contains("int load = 1; return store.read(\"x\") + load + count();"));
    repo.commit("load");
    refused(&repo, &["Shop", "Cache"], "the name is taken at src/shop/Cache.java:3");
}

#[test]
fn files_that_may_not_be_changed_are_refused() {
    let repo = TestRepo::new(PYTHON);
    repo.write(
        "shop/more.py",
        "from shop.store import find\n<<<<<<< a\nfind(1)\n=======\nfind(2)\n>>>>>>> b\n",
    );
    repo.commit("conflict");
    refused(
        &repo,
        &["shop/store.py#find", "look_up"],
        "shop/more.py has conflict markers",
    );
    repo.remove("shop/more.py");
    repo.write("node_modules/use.py", "from shop.store import find\nfind(1)\n");
    repo.commit("vendored");
    let said = rename(&repo, &["shop/store.py#find", "look_up"]).expect(0);
    let text = said.text();
    assert!(text.contains("node_modules/use.py:1:24 (not parsed)"), "{text}");
}

#[test]
fn what_cannot_be_known_is_a_candidate() {
    for (files, target, new, wanted) in [
        (
            "
            //- src/lib.rs
            pub enum Color { Auto, Never }
            pub enum Strip { Auto }
            pub fn pick() -> Strip {
                use Strip::*;
                Auto
            }
            #[arg(default_value_t = <Color>::Auto)]
            pub struct Options;
            ",
            "src/lib.rs#Color.Auto",
            "Default",
            "src/lib.rs:7 macro",
        ),
        (
            "
            //- a.py
            try:
                from outside import parse
            except ImportError:
                parse = None

            def run(text):
                return parse(text)
            ",
            "a.py:4",
            "read",
            "a.py:2 import",
        ),
        (
            "
            //- a.py
            from typing import TypeVar
            Item = TypeVar('Item')
            ",
            "a.py#Item",
            "Thing",
            "a.py:2 string",
        ),
        (
            "
            //- a.ts
            export class Options {
                path = '';
            }
            export type Rest = Omit<Options, 'path'>;
            ",
            "a.ts#Options.path",
            "file",
            "a.ts:4 string",
        ),
        (
            "
            //- a/a.go
            package a

            type Named interface { Name(text string); own() }

            func Run(value Value) {
                switch v := value.Addr().Interface().(type) {
                case Named:
                    v.Name(text)
                }
            }
            ",
            "a/a.go#Named.Name",
            "Label",
            "a/a.go:8",
        ),
        (
            "
            //- Kind.java
            enum Kind { ONE, TWO }
            //- Use.java
            class Use {
                int of(Kind kind) {
                    switch (kind) {
                        case ONE: return 1;
                        default: return 2;
                    }
                }
            }
            ",
            "Kind.java#Kind.ONE",
            "UNO",
            "Use.java:4",
        ),
        (
            "
            //- a.py
            def outer():
                global count
                count = 3

            count = 0
            ",
            "a.py:5",
            "total",
            "a.py:3 global",
        ),
        (
            "
            //- compat.py
            native = str
            str = bytes
            def text(value): return str(value)
            ",
            "compat.py#str",
            "letters",
            "compat.py:1 unresolved",
        ),
        (
            "
            //- src/cli.rs
            fn command() {}
            //- build.rs
            include!(\"src/cli.rs\");
            fn main() { command(); }
            ",
            "src/cli.rs#command",
            "order",
            "build.rs:2",
        ),
        (
            "
            //- a.rs
            pub fn helper() {}
            pub fn run() {
                crate::helper()
            }
            ",
            "a.rs#helper",
            "aide",
            "a.rs:3",
        ),
    ] {
        let repo = TestRepo::new(files);
        let answer: Value = serde_json::from_str(&rename(&repo, &[target, new, "--json"]).expect(0).text()).unwrap();
        let listed = places(&answer, "candidate");
        assert!(
            listed.iter().any(|place| place.starts_with(wanted)),
            "{target}: {listed:?}"
        );
        assert_eq!(answer["renamed_all"], false);
    }
}

#[test]
fn exports_and_imports_of_commonjs_agree() {
    let repo = TestRepo::new(
        "
        //- e.js
        function total() { return 1; }
        module.exports = { total };
        //- d.js
        const { total } = require('./e');
        console.log(total());
        ",
    );
    applied(&repo, &["e.js#total", "sum"]);
    assert!(
        text(&repo, "e.js").contains("exports = { sum }"),
        "{}",
        text(&repo, "e.js")
    );
    assert!(
        text(&repo, "d.js").contains("const { sum } = require"),
        "{}",
        text(&repo, "d.js")
    );
}

#[test]
fn aliases_with_the_old_name_are_renamed_and_others_stay() {
    let repo = TestRepo::new(
        "
        //- run.ts
        export default function runAll(n: number) { return n }
        //- index.ts
        import runAll from './run'
        runAll(1)
        export { runAll }
        //- second.ts
        export { default as runAll } from './run'
        //- third.ts
        import start from './run'
        start(3)
        export { start as runAll }
        //- use.ts
        import { runAll } from './index'
        import { runAll as two } from './second'
        import * as third from './third'
        runAll(1)
        two(2)
        third.runAll(3)
        //- not.ts
        import runAll from './other'
        runAll()
        //- other.ts
        export default function other() {}
        //- m.js
        function one() {}
        function two(x) {
            if (x) { const { one } = require('./n'); return one() }
            return one()
        }
        //- n.js
        exports.one = function one() {}
        export function a() {}
        export function b() {}
        //- swap.js
        export { a as b, b as a } from './n'
        ",
    );
    let answer = applied(&repo, &["run.ts#runAll", "goAll"]);
    assert_eq!(
        (&answer["changed"], &answer["renamed_all"]),
        (&json!(10), &json!(true)),
        "{answer}"
    );
    assert_eq!(
        text(&repo, "index.ts"),
        "import goAll from './run'\ngoAll(1)\nexport { goAll }\n"
    );
    assert_eq!(text(&repo, "second.ts"), "export { default as goAll } from './run'\n");
    assert_eq!(
        text(&repo, "third.ts"),
        "import start from './run'\nstart(3)\nexport { start as goAll }\n"
    );
    assert!(text(&repo, "use.ts").ends_with("\ngoAll(1)\ntwo(2)\nthird.goAll(3)\n"));
    assert_eq!(text(&repo, "not.ts"), "import runAll from './other'\nrunAll()\n");
    repo.commit("go");
    applied(&repo, &["m.js#one", "first"]);
    assert!(text(&repo, "m.js").contains("require('./n'); return one() }\n    return first()"));
    let answer = applied(&repo, &["n.js#a", "c"]);
    assert_eq!(
        places(&answer, "candidate"),
        ["swap.js:1 unresolved", "swap.js:1 unresolved"],
        "{answer:#}"
    );
}

#[test]
fn what_is_declared_for_another_module_must_be_confirmed() {
    let repo = TestRepo::new(
        "
        //- a.ts
        declare module 'http' {
            interface Request { tries: number }
        }
        declare global {
            interface Window { shop: number }
        }
        interface Shop { a: number }
    ",
    );
    for name in ["Request", "Window"] {
        refused(&repo, &[name, "Other"], "outside of the repository");
    }
    let answer = applied(&repo, &["Shop", "Store"]);
    assert_eq!(answer["renamed_all"], json!(true), "{answer:#}");
}

#[test]
fn a_component_stays_no_element_of_html() {
    let repo = TestRepo::new(
        "
        //- app.tsx
        export function Counter() { return <div/> }
        class Box<T> {}
        export const all = <Counter/>
        export const box = new Box<Counter>()
    ",
    );
    refused(
        &repo,
        &["app.tsx#Counter", "counter"],
        "an element of HTML at app.tsx:3",
    );
    let answer = applied(&repo, &["app.tsx#Box", "box2"]);
    assert_eq!(answer["changed"], json!(2), "{answer:#}");
}

#[test]
fn types_in_quotes_are_renamed_and_other_strings_listed() {
    let repo = TestRepo::new(
        "
        //- shop.py
        import typing as t

        class Item:
            def join(self, other: 'Item') -> 'list[Item] | None':
                return t.cast('Item', other)

        def use(kind: t.Literal['Item'], item: t.Optional['Item'], text: 'an Item') -> 't.Sequence[Item]':
            return [item]
        //- web.py
        import shop
        from typing import Literal as L

        def show(item: '(shop.Item | other.Item)', kind: L['Item']): pass
        //- shop.pyi
        class Item:
            def join(self, other: Item) -> Item: ...
    ",
    );
    let answer = applied(&repo, &["Item", "Ware"]);
    let shop = text(&repo, "shop.py");
    for changed in [
        "class Ware:",
        "other: 'Ware') -> 'list[Ware] | None'",
        "t.cast('Item'",
        "use(kind: t.Literal['Item'], item: t.Optional['Ware'], text: 'an Item') -> 't.Sequence[Ware]'",
    ] {
        assert!(shop.contains(changed), "{changed}: {shop}");
    }
    assert!(text(&repo, "shop.pyi").contains("class Ware:\n    def join(self, other: Ware) -> Ware"));
    assert!(text(&repo, "web.py").contains("'(shop.Ware | other.Item)', kind: L['Item']"));
    assert_eq!(
        places(&answer, "candidate"),
        ["shop.py:5 string", "shop.py:7 string", "web.py:4 string"]
    );
    assert_eq!(places(&answer, "mention"), ["shop.py:7 text"]);
}

#[test]
fn functions_that_a_variable_gets_later_are_renamed_with_it() {
    let repo = TestRepo::new(
        "
        //- a.ts
        let jobs = async (one: number) => one;
        if (process.argv.length > 1) {
            jobs = async job => { await job; };
        }
        await jobs(1);
    ",
    );
    let answer = applied(&repo, &["jobs", "tasks"]);
    assert_eq!((&answer["renamed_all"], &answer["changed"]), (&json!(true), &json!(3)));
    assert!(!text(&repo, "a.ts").contains("jobs"));
}

#[test]
fn a_variable_of_a_block_is_not_that_of_the_function() {
    let repo = TestRepo::new(
        "
        //- a.ts
        export function outer(list: number[]) {
            if (list.length > 1) {
                const result = (item: number) => item + 1;
                console.log(result);
                return result;
            }
            const result = [1];
            return result;
        }
    ",
    );
    let answer = applied(&repo, &["result", "all"]);
    assert_eq!((&answer["renamed_all"], &answer["changed"]), (&json!(true), &json!(3)));
    let changed = text(&repo, "a.ts");
    assert!(
        changed.contains("log(all);") && changed.contains("return all;"),
        "{changed}"
    );
    assert!(changed.contains("const result = [1];\n    return result;"), "{changed}");
}

#[test]
fn an_untracked_path_with_control_characters_is_no_obstacle_unless_it_has_to_change() {
    let repo = TestRepo::new(PYTHON);
    repo.write("odd\u{1}\n.py", "x = 1\n");
    repo.write("odd\t.md", "Call find.\n");
    applied(&repo, &["shop/store.py#find", "look_up"]);
    assert!(text(&repo, "shop/use.py").contains("look_up('a')"));
    repo.write("shop/odd\u{1}.py", "from shop.store import look_up\n\nlook_up(2)\n");
    let said = rename(&repo, &["shop/store.py#look_up", "find", "--apply"]).expect(2);
    assert!(said.stderr.contains("control characters"), "{}", said.stderr);
}

#[test]
fn scopes_and_values_keep_their_names() {
    let cases = [
        (
            "a.js:1:7",
            "const go = () => 1;\nfunction f(a = go()) { { const go = () => 2; go(); } return go(); }\n",
            "const run = () => 1;\nfunction f(a = run()) { { const go = () => 2; go(); } return run(); }\n",
        ),
        (
            "a.js:1:32",
            "function f(x) { if (x) { const go = () => 1; return go(); } const go = () => 2; return go(); }\n",
            "function f(x) { if (x) { const run = () => 1; return run(); } const go = () => 2; return go(); }\n",
        ),
        (
            "a.js:1:25",
            "function f() { function go() {} const o = { go() { return go(); } }; return o.go(); }\n",
            "function f() { function run() {} const o = { go() { return run(); } }; return o.go(); }\n",
        ),
        (
            "a.js:1:10",
            "function go() {}\nuse({ go: () => go() });\nconst { d = go } = {};\nexport { go as gone };\n",
            "function run() {}\nuse({ go: () => run() });\nconst { d = run } = {};\nexport { run as gone };\n",
        ),
        (
            "a.rs:1:12",
            "pub struct Go;\npub fn f<T>(t: T) -> Go where Go: From<T> { Go::from(t) }\n",
            "pub struct run;\npub fn f<T>(t: T) -> run where run: From<T> { run::from(t) }\n",
        ),
        (
            "a.java:1:22",
            "interface Plan { int go(); }\nenum Way implements Plan { A { public int go() { return 1; } } }\n",
            "interface Plan { int run(); }\nenum Way implements Plan { A { public int run() { return 1; } } }\n",
        ),
        (
            "a.rs:1:12",
            "pub struct Go(u8);\npub fn f(x: Option<Go>) -> Option<u8> { x.map(|Go(n)| n) }\npub fn g(Go(n): Go) -> u8 { n }\n",
            "pub struct run(u8);\npub fn f(x: Option<run>) -> Option<u8> { x.map(|run(n)| n) }\npub fn g(run(n): run) -> u8 { n }\n",
        ),
        (
            "a.rs:1:14",
            "macro_rules! go { ($x:expr, $y:expr) => { $x + $y }; ($x:expr) => { go!($x, 0) }; }\nfn f() -> u8 { go!(1) }\n",
            "macro_rules! run { ($x:expr, $y:expr) => { $x + $y }; ($x:expr) => { run!($x, 0) }; }\nfn f() -> u8 { run!(1) }\n",
        ),
        (
            "a.js:1:7",
            "const go = 1;\nconst o = { go, in: { go: go } };\nconst { go: other, in: { go: deep = go } } = o;\n",
            "const run = 1;\nconst o = { go: run, in: { go: run } };\nconst { go: other, in: { go: deep = run } } = o;\n",
        ),
        (
            "a.js:1:17",
            "if (on()) { var go = 1; }\nuse(go);\n",
            "if (on()) { var run = 1; }\nuse(run);\n",
        ),
        (
            "a.js:1:10",
            "function go() {}\nmodule.exports = { go: go };\nexports.go = go;\n",
            "function run() {}\nmodule.exports = { run: run };\nexports.run = run;\n",
        ),
        (
            "a.py:1:1",
            "go = 1\ndef f(go=go): return go\ng = lambda go=go: go\n",
            "run = 1\ndef f(go=run): return go\ng = lambda go=run: go\n",
        ),
        ("a.py:1:5", "a = go = 1\nuse(a, go)\n", "a = run = 1\nuse(a, run)\n"),
        (
            "a.go:3:22",
            "package a\n\ntype Doer interface{ go1(string) }\ntype one struct{}\n\nfunc (one) go1(s string) {}\nfunc (o *two) go1(string) {}\n\ntype two struct{}\n",
            "package a\n\ntype Doer interface{ run(string) }\ntype one struct{}\n\nfunc (one) run(s string) {}\nfunc (o *two) run(string) {}\n\ntype two struct{}\n",
        ),
        (
            "a.py:1:7",
            "class Go: ...\ndef f(x: Annotated[str, Path(alias='Go')], y: 'dict[str,\\n Go]'): ...\n",
            "class run: ...\ndef f(x: Annotated[str, Path(alias='Go')], y: 'dict[str,\\n Go]'): ...\n",
        ),
    ];
    for (target, before, after) in cases {
        let repo = TestRepo::empty();
        let (path, _) = target.split_once(':').unwrap();
        repo.write(path, before);
        repo.commit("start");
        applied(&repo, &[target, "run"]);
        assert_eq!(text(&repo, path), after);
    }
}

#[test]
fn types_that_may_fit_each_other_without_saying_so_are_candidates() {
    let repo = TestRepo::new(
        "
        //- a.py
        from typing import Protocol

        class Closer(Protocol):
            def shut(self) -> int: ...

        class File:
            def shut(self): return 1

        def close(it: Closer): return it.shut()
        //- a.ts
        export interface Visitor { enter(n: number): void }
        export class Printer { enter(n: number) {} }
        declare function walk(v: Visitor): void;
        walk(new Printer());
        //- b.ts
        export interface Config { name: string }
        //- c.ts
        import './b';
        declare module './b' { interface Config { port?: number } }
        //- d.ts
        export function go() {}
        //- e.ts
        import * as d from './d';
        export const { go: other } = d;
        export const { go } = d;
        ",
    );
    for (target, wanted) in [
        ("File.shut", &["a.py:4 interface", "a.py:9 type"][..]),
        ("Visitor.enter", &["a.ts:2 interface"]),
        ("b.ts#Config", &["c.ts:2 module"]),
        ("d.ts#go", &["e.ts:2 short form", "e.ts:3 short form"]),
    ] {
        let answer: Value =
            serde_json::from_str(&rename(&repo, &[target, "Other", "--json"]).expect(0).text()).unwrap();
        assert_eq!(places(&answer, "candidate"), wanted);
    }
}

#[test]
fn names_that_members_share_a_place_with_are_taken_or_needed() {
    let repo = TestRepo::new(
        "
        //- go.mod
        module example.com/a
        //- a.go
        package a

        type Base struct{}
        type Outer struct {
            Base
            Size int
        }
        //- a.ts
        export enum Level { Low, High }
        export enum Level { Extra = 9 }
        //- a.js
        const seen = {};
        seen.show = function () {};
        //- Mark.java
        @interface Mark { String value(); }
        //- Cargo.toml
        [package]
        name = 'a'
        //- src/lib.rs
        mod deep;
        pub fn offset() {}
        //- src/deep.rs
        macro_rules! all { ($($x:expr),*) => { $( $crate::offset(); $crate::deep::own($x); )* }; }
        pub fn offset() {}
        pub fn own(n: u8) { all!(1, 2) }
        ",
    );
    refused(&repo, &["Outer.Size", "Base"], "the name is taken at a.go:3");
    refused(&repo, &["Level.High", "Extra"], "the name is taken at a.ts:2");
    refused(&repo, &["a.js:2:6", "display"], "may need the name show");
    refused(&repo, &["Mark.value", "text"], "by giving only its value");
    applied(&repo, &["src/deep.rs#own", "mine"]);
    applied(&repo, &["src/lib.rs#offset", "moved"]);
    let deep = text(&repo, "src/deep.rs");
    assert!(
        deep.contains("$crate::moved(); $crate::deep::mine($x);") && deep.contains("pub fn offset()"),
        "{deep}"
    );
}

#[test]
fn of_several_imports_of_a_name_the_visible_one_counts() {
    let repo = TestRepo::new(
        "
        //- Cargo.toml
        [package]
        name = 'x'
        //- src/a.rs
        pub fn mk() {}
        //- src/b.rs
        pub fn mk() {}
        //- src/lib.rs
        mod a;
        mod b;
        use a::mk;
        pub fn f() { mk() }
        pub fn g() { use crate::b::mk; mk() }
        #[cfg(test)] mod tests { use super::b::mk; fn t() { mk() } }
        //- m.py
        class Thing: ...
        //- n.py
        class Thing: ...
        //- use.py
        if fast:
            from m import Thing
        else:
            from n import Thing

        def make(): return Thing()
    ",
    );
    let answer = applied(&repo, &["src/a.rs#mk", "made"]);
    assert_eq!((&answer["renamed_all"], &answer["changed"]), (&json!(true), &json!(3)));
    let changed = text(&repo, "src/lib.rs");
    assert!(changed.contains("use a::made;\npub fn f() { made() }\npub fn g() { use crate::b::mk; mk() }"));
    repo.commit("a");
    let answer = applied(&repo, &["src/b.rs#mk", "built"]);
    assert_eq!((&answer["renamed_all"], &answer["changed"]), (&json!(true), &json!(5)));
    repo.commit("b");
    let answer = applied(&repo, &["m.py#Thing", "Item"]);
    assert_eq!(places(&answer, "candidate"), ["use.py:6 import"]);
}

#[test]
fn a_crate_name_with_two_meanings_is_a_candidate() {
    for other in ["a", "z"] {
        let repo = TestRepo::new(&format!(
            "
            //- Cargo.toml
            [workspace]
            members = [\"{other}\", \"m\", \"mine\"]
            //- mine/Cargo.toml
            [package]
            name = \"mine\"
            //- mine/src/lib.rs
            pub fn total() {{}}
            //- m/Cargo.toml
            [package]
            name = \"m\"
            [dependencies]
            x = {{ package = \"mine\", path = \"../mine\" }}
            //- m/src/lib.rs
            pub fn run() {{ x::total() }}
            //- {other}/Cargo.toml
            [package]
            name = \"{other}\"
            [dependencies]
            x = \"1\"
            //- {other}/src/lib.rs
            pub fn run() {{ x::total() }}
        "
        ));
        let answer = applied(&repo, &["mine/src/lib.rs#total", "sum"]);
        let places = places(&answer, "candidate");
        assert_eq!((places.len(), &answer["renamed_all"]), (2, &json!(false)), "{answer:#}");
        assert!(text(&repo, &format!("{other}/src/lib.rs")).contains("x::total()"));
    }
}

#[test]
fn twins_of_go_are_renamed_together() {
    let repo = TestRepo::new(
        "
        //- go.mod
        module x
        //- a/full.go
        //go:build !small

        package a

        const Kind = 1

        type Box struct{}

        func (b Box) Height() int { return Kind }
        //- a/small.go
        //go:build small

        package a

        const Kind = 2

        type Box struct{}

        func (b Box) Height() int { return Kind }
        //- a/use.go
        package a

        func Use(b Box) int { return b.Height() + Kind }
        ",
    );
    for (target, new) in [
        ("a/full.go#Kind", "Sort"),
        ("a/small.go#Box", "Crate"),
        ("a/full.go#Crate.Height", "Depth"),
    ] {
        let answer = applied(&repo, &[target, new]);
        assert_eq!(
            answer["definitions"].as_array().map(Vec::len),
            Some(2),
            "{target}: {answer}"
        );
        repo.commit(new);
    }
    let text = |path: &str| String::from_utf8(repo.read(path)).unwrap();
    for path in ["a/full.go", "a/small.go"] {
        let text = text(path);
        assert!(
            !text.contains("Kind") && !text.contains("Box") && !text.contains("Height"),
            "{text}"
        );
    }
    assert!(text("a/use.go").contains("func Use(b Crate) int { return b.Depth() + Sort }"));
}

/// What a macro, annotation or decorator reads from a string can be the name.
#[test]
fn strings_in_marks_are_candidates() {
    let repo = TestRepo::new(
        "
        //- src/lib.rs
        pub struct Opts {
            #[arg(long)]
            pub fixed: bool,
            #[arg(long, conflicts_with_all(&[\"fixed\", \"other\"]))]
            pub regex: bool,
        }
        pub fn text() -> &'static str { \"fixed\" }
        //- ATest.java
        class ATest {
            static Object names() { return null; }
            @MethodSource(\"names\")
            void test() {}
        }
        ",
    );
    let rows = |target: &str| {
        let answer: Value = serde_json::from_str(&rename(&repo, &[target, "renamed", "--json"]).text()).unwrap();
        let rows = answer["results"].as_array().unwrap().clone();
        let row = |row: &Value| format!("{} {}", row["kind"].as_str().unwrap_or_default(), row["line"]);
        rows.iter()
            .map(row)
            .filter(|row| !row.starts_with("change"))
            .collect::<Vec<_>>()
    };
    assert_eq!(rows("src/lib.rs#Opts.fixed"), ["candidate 4", "mention 7"]);
    assert_eq!(rows("ATest.java#ATest.names"), ["candidate 3"]);
}

/// Names that other programs, strings, examples and interfaces outside of the repository need.
#[test]
fn what_else_needs_a_name_is_a_candidate_or_refused() {
    let repo = TestRepo::new(
        "
        //- Cargo.toml
        [package]
        name = \"shop\"
        //- src/lib.rs
        mod width;
        mod seconds;
        pub use width::width;
        /// Doubles.
        ///
        /// ```
        /// assert_eq!(shop::twice(2), 4);
        /// ```
        pub fn twice(n: u32) -> u32 { n * 2 }
        pub struct Pause {
            #[serde(deserialize_with = \"seconds::read\")]
            pub length: u32,
        }
        //- src/width.rs
        pub fn width() -> usize { 80 }
        //- src/seconds.rs
        pub fn read() {}
        pub fn serialize() {}
        //- a.py
        class Adapter:
            size: int
            names = [\"size\"]
            def __init__(self):
                self.size = 1
            def state(self):
                return {name: getattr(self, name) for name in self.names}
        def double(n):
            \"\"\"
            >>> double(2)
            \"\"\"
            return n * 2
        //- test_a.py
        pytestmark = []
        //- docs/conf.py
        project = \"shop\"
        //- handler.go
        package shop
        import \"encoding/json\"
        type Writer struct { Name string }
        type Tagged struct { Key string `json:\"key\"` }
        type Checked struct { Size int `validate:\"required\"` }
        func (t *Tagged) Report() {}
        func (c *Checked) Handle() {}
        func (w *Writer) Announce(name string) {
            total := name
            json.Marshal(total)
        }
        var _ other.Announcer = (*Writer)(nil)
        var (
            _ other.Reporter = new(Tagged) // Reports.
        )
        const Sum8 = 1
        //- handler_test.go
        package shop
        const text = \"a\\nSum8 = 3\"
        ",
    );
    let rows = |target: &str| {
        let answer: Value = serde_json::from_str(&rename(&repo, &[target, "Renamed", "--json"]).text()).unwrap();
        let rows = answer["results"]
            .as_array()
            .unwrap_or_else(|| panic!("{target}: {answer}"))
            .clone();
        let row = |row: &Value| format!("{} {}", row["kind"].as_str().unwrap_or_default(), row["line"]);
        let rows = rows.iter().map(row).filter(|row| !row.starts_with("change"));
        rows.collect::<Vec<_>>()
    };
    assert_eq!(rows("src/lib.rs#twice"), ["candidate 7"]);
    assert_eq!(rows("src/seconds.rs#read"), ["candidate 11"]);
    assert_eq!(rows("a.py#Adapter.size"), ["candidate 3"]);
    assert_eq!(rows("a.py#double"), ["candidate 10"]);
    assert_eq!(rows("handler.go#Tagged.Key"), [""; 0]);
    assert_eq!(rows("handler.go#Sum8"), ["mention 2"]);
    refused(&repo, &["src/seconds.rs#serialize", "write"], "serde");
    refused(&repo, &["test_a.py#pytestmark", "marks"], "pytest");
    refused(&repo, &["docs/conf.py#project", "name"], "setting");
    refused(&repo, &["handler.go#Writer.Announce", "Say"], "handler.go:12");
    refused(&repo, &["handler.go#Tagged.Report", "Say"], "handler.go:14");
    refused(&repo, &["handler.go#Checked.Size", "Length"], "handler.go:2");
    refused(&repo, &["handler.go#Checked.Handle", "Take"], "handler.go:7");
    refused(&repo, &["handler.go#Writer.Name", "Title"], "handler.go:2");
    refused(&repo, &["handler.go:9:6", "sum"], "no name that can be renamed");
    applied(&repo, &["src/width.rs#width", "columns"]);
    assert!(
        text(&repo, "src/lib.rs").contains("pub use width::columns;"),
        "{}",
        text(&repo, "src/lib.rs")
    );
}
