//! Tests `graph` on a repository of Python, Go and TypeScript at several revisions.

use serde_json::{Value, json};

use crate::cli::{Called, call_in};
use crate::support::TestRepo;

/// Creates a project. The tag `v1` is the commit before the last.
fn project() -> TestRepo {
    let repo = TestRepo::new(
        "
        //- shop/__init__.py
        from .cart import Cart as Basket
        //- shop/base.py
        class Item:
            def price(self):
                return 1
        //- shop/cart.py
        from shop.base import Item
        from shop import sums
        import os

        class Book(Item):
            def price(self):
                return 2

        class Cart:
            def add(self, item):
                # add is not total
                return sums.total(item)

            def checkout(self, item):
                self.add(item)
                return os.path.join(item.add)
        //- shop/sums.py
        from shop.cart import Cart

        def total(item):
            return item.price()
        //- app.py
        from shop import Basket
        from shop.sums import total

        def main():
            total(Basket())
        //- web/index.ts
        import load from './load';
        import { helper as assist } from './helper';
        export function start() {
            load();
            assist();
        }
        //- web/load.ts
        export default function fetchAll() {
            return 1;
        }
        //- web/helper.ts
        export function helper() {}
        //- go.mod
        module example.com/shop
        //- server/a.go
        package server

        func Serve() { start() }

        func start() {}
        ",
    );
    repo.tag("v1");
    let app = String::from_utf8(repo.read("app.py")).unwrap();
    repo.write(
        "app.py",
        format!("{app}\n\ndef again():\n    main()\n    return total(1)\n"),
    );
    repo.commit("call it again");
    repo
}

fn graph(repo: &TestRepo, args: &[&str]) -> Called {
    call_in(repo.root(), &[&["graph"], args].concat(), b"")
}

/// Returns the rows of an answer: from, to, tier and place.
fn edges(answer: &Value) -> Vec<String> {
    let row = |row: &Value| {
        let ids: Vec<&str> = row["to"]
            .as_array()
            .unwrap()
            .iter()
            .map(|id| id.as_str().unwrap())
            .collect();
        let from = row["from"].as_str().unwrap_or("-");
        let (path, line) = (row["path"].as_str().unwrap(), &row["line"]);
        format!(
            "{from} -> {} {} {path}:{line}",
            ids.join("|"),
            row["tier"].as_str().unwrap()
        )
    };
    answer["results"].as_array().unwrap().iter().map(row).collect()
}

fn edges_of(repo: &TestRepo, args: &[&str]) -> Vec<String> {
    edges(&graph(repo, &[args, &["--json"]].concat()).expect(0).json())
}

#[test]
fn callers_differ_between_revisions() {
    let repo = project();
    let (total, now) = ("shop/sums.py#total", ["graph", "callers", "total", "--json"]);
    let before = [
        format!("app.py#main -> {total} import app.py:5"),
        format!("shop/cart.py#Cart.add -> {total} receiver shop/cart.py:12"),
    ];
    assert_eq!(edges_of(&repo, &["callers", "total", "--ref", "v1"]), before);
    let answer = call_in(repo.root(), &now, b"").expect(0).json();
    let again = format!("app.py#again -> {total} import app.py:10");
    assert_eq!(edges(&answer), [before[0].clone(), again, before[1].clone()]);
    assert_eq!((&answer["total"], &answer["files"]), (&Value::from(3), &Value::from(2)));
    assert_eq!(answer["in_text"], 1, "{answer}");
    assert_eq!(answer["other_references"], 1, "{answer}");
}

#[test]
fn totals_are_counted_before_the_limit() {
    let repo = project();
    let called = graph(&repo, &["callers", "shop/sums.py#total", "-n", "1"]).expect(0);
    let expected = "3 callers in 2 files (import 2, receiver 1) · 1 other reference · 1 mention in text";
    assert!(called.text().starts_with(&format!("{expected}\n")), "{}", called.text());
    assert_eq!(called.text().lines().count(), 2, "{}", called.text());
    let first = graph(&repo, &["callers", "total", "-n", "1", "--json"])
        .expect(0)
        .json();
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = graph(&repo, &["callers", "total", "-n", "1", "--json", "--cursor", cursor])
        .expect(0)
        .json();
    assert_eq!(second["results"][0]["from"], "app.py#again");
    assert_eq!(second["total"], 3);
}

#[test]
fn a_walk_visits_each_definition_once() {
    let repo = project();
    let rows = edges_of(&repo, &["callers", "Item.price", "--candidates"]);
    assert_eq!(
        rows,
        ["shop/sums.py#total -> shop/base.py#Item.price|shop/cart.py#Book.price named shop/sums.py:4"]
    );
    let answer = graph(&repo, &["callers", "total", "--depth", "0", "--json"])
        .expect(0)
        .json();
    assert_eq!(answer["depths"], serde_json::json!([3, 2]));
    let far: Vec<String> = edges(&answer).split_off(3);
    assert_eq!(
        far,
        [
            "app.py#again -> app.py#main import app.py:9".replace("import", "scope"),
            "shop/cart.py#Cart.checkout -> shop/cart.py#Cart.add self shop/cart.py:15".to_owned(),
        ]
    );
    let callees = edges_of(&repo, &["callees", "again", "--depth", "2"]);
    assert_eq!(
        callees,
        [
            "app.py#again -> app.py#main scope app.py:9",
            "app.py#again -> shop/sums.py#total import app.py:10",
            "app.py#main -> shop/sums.py#total import app.py:5",
            "app.py#main -> shop/cart.py#Cart import app.py:5",
        ]
    );
}

#[test]
fn aliases_and_default_exports_are_followed() {
    let repo = project();
    let refs = edges_of(&repo, &["refs", "fetchAll"]);
    assert_eq!(
        refs.last().unwrap(),
        "web/index.ts#start -> web/load.ts#fetchAll import web/index.ts:4"
    );
    let calls = edges_of(&repo, &["callers", "helper"]);
    assert_eq!(
        calls,
        ["web/index.ts#start -> web/helper.ts#helper import web/index.ts:5"]
    );
    let cart = edges_of(&repo, &["callers", "Cart"]);
    assert_eq!(cart, ["app.py#main -> shop/cart.py#Cart import app.py:5"]);
    assert_eq!(
        edges_of(&repo, &["callers", "server/a.go#start"]),
        ["server/a.go#Serve -> server/a.go#start scope server/a.go:3"]
    );
}

#[test]
fn implementations_are_subtypes_and_overrides() {
    let repo = project();
    assert_eq!(
        edges_of(&repo, &["implementations", "Item"]),
        ["shop/cart.py#Book -> shop/base.py#Item import shop/cart.py:5"]
    );
    for reference in ["v1", "WORKTREE"] {
        let rows = edges_of(
            &repo,
            &["implementations", "shop/base.py#Item.price", "--ref", reference],
        );
        assert_eq!(
            rows,
            ["shop/cart.py#Book.price -> shop/base.py#Item.price import shop/cart.py:6"]
        );
    }
}

#[test]
fn a_path_is_the_shortest_chain_of_calls() {
    let repo = project();
    assert_eq!(
        edges_of(&repo, &["path", "Cart.checkout", "total"]),
        [
            "shop/cart.py#Cart.checkout -> shop/cart.py#Cart.add self shop/cart.py:15",
            "shop/cart.py#Cart.add -> shop/sums.py#total receiver shop/cart.py:12",
        ]
    );
    let none = graph(&repo, &["path", "total", "Cart.checkout"]).expect(1);
    assert!(none.text().contains("no chain of sure calls"), "{}", none.text());
}

#[test]
fn imports_name_files_packages_and_what_is_outside() {
    let repo = project();
    let text = graph(&repo, &["imports", "shop/cart.py"]).expect(0).text();
    assert_eq!(
        text,
        "3 imports in 1 file · 1 outside\n\
         shop/cart.py:1 file shop/base.py: from shop.base import Item\n\
         shop/cart.py:2 file shop/sums.py: from shop import sums\n\
         shop/cart.py:3 outside os: import os\n"
    );
    let importers = graph(&repo, &["importers", "shop", "--json"]).expect(0).json();
    assert_eq!(
        (&importers["total"], &importers["results"][0]["path"]),
        (&Value::from(2), &Value::from("app.py"))
    );
    let cycles = graph(&repo, &["cycles"]).expect(0).text();
    assert!(
        cycles.contains("\nshop/cart.py → shop/sums.py → shop/cart.py\n"),
        "{cycles}"
    );
}

#[test]
fn each_definition_of_a_name_is_answered_for() {
    let repo = project();
    let called = graph(&repo, &["callers", "start"]).expect(0).text();
    assert_eq!(
        called,
        "definition server/a.go#start: 1 caller in 1 file (scope 1)\n\
         server/a.go:3 scope call Serve: func Serve() { start() }\n\
         \n\
         definition web/index.ts#start: no caller; 2 files with the name searched · 1 mention of something else\n"
    );
    let answer = graph(&repo, &["callers", "start", "--json"]).expect(0).json();
    assert_eq!(answer["results"][0]["target"], "server/a.go#start");
    let groups: Vec<(&Value, &Value)> = answer["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| (&group["target"], &group["total"]))
        .collect();
    assert_eq!(
        groups,
        [
            (&"server/a.go#start".into(), &1.into()),
            (&"web/index.ts#start".into(), &0.into())
        ]
    );
    let callees = graph(&repo, &["callees", "start", "-n", "1", "--json"])
        .expect(0)
        .json();
    assert_eq!(callees["results"][0]["target"], "web/index.ts#start");
    let cursor = callees["next_cursor"].as_str().unwrap();
    let rest = ["callees", "start", "-n", "1", "--json", "--cursor", cursor];
    let rest = graph(&repo, &rest).expect(0).json();
    assert_eq!(
        (&rest["results"][0]["kind"], &rest["next_cursor"]),
        (&"call".into(), &Value::Null)
    );
    let drawn = graph(&repo, &["callees", "start", "--format", "mermaid"]).expect(0);
    assert!(drawn.text().starts_with("graph LR\n"), "{}", drawn.text());
    assert_eq!(drawn.text().matches("-->").count(), 2, "{}", drawn.text());
    let picture = graph(&repo, &["callees", "start", "--format", "svg"]).expect(0).text();
    assert!(
        picture.starts_with("<svg ") && picture.trim_end().ends_with("</svg>"),
        "{picture}"
    );
    assert_eq!(picture.matches("<path ").count(), 2, "{picture}");
    let nothing = graph(&repo, &["importers", "web/index.ts", "--format", "svg"]);
    let nothing = nothing.text();
    assert!(
        nothing.starts_with("<svg ") && nothing.contains(" width=\"2\""),
        "{nothing}"
    );
    assert!(
        drawn.stderr.contains("definition server/a.go#start: no callee"),
        "{}",
        drawn.stderr
    );
    for args in [
        &["impact", "start"][..],
        &["flow", "start"],
        &["path", "start", "helper"],
    ] {
        let text = graph(&repo, args).text();
        assert_eq!(
            text.matches("definition server/a.go#start: ").count(),
            1,
            "{args:?}: {text}"
        );
        assert_eq!(
            text.matches("definition web/index.ts#start: ").count(),
            1,
            "{args:?}: {text}"
        );
    }
    let refused = graph(&repo, &["impact", "start", "--ci"]).expect(2);
    assert!(
        refused.stderr.contains("start is ambiguous: 2 definitions"),
        "{}",
        refused.stderr
    );
    repo.write(
        "web/more.ts",
        "import { start } from './index';\nexport function more() { start(); }\n",
    );
    repo.commit("more");
    let since = graph(&repo, &["callers", "start", "--since", "v1"]).expect(0).text();
    assert!(
        since.ends_with("definition web/index.ts#start: 1 added · 0 removed since v1 · 1 now, 0 results then\n+ web/more.ts:2 import call more: export function more() { start(); }\n"),
        "{since}"
    );
}

#[test]
fn unknown_names_get_a_suggestion() {
    let repo = project();
    let called = graph(&repo, &["callers", "totla"]).expect(1);
    assert!(
        called.stderr.contains("no definition named \"totla\""),
        "{}",
        called.stderr
    );
    assert!(called.stderr.contains("did you mean total?"), "{}", called.stderr);
    let missing = graph(&repo, &["importers", "shop/crat.py"]).expect(2);
    assert!(missing.stderr.contains("shop/cart.py"), "{}", missing.stderr);
}

#[test]
fn nothing_found_says_what_was_looked_at() {
    let repo = project();
    let called = graph(&repo, &["callers", "main", "--ref", "v1"]).expect(2);
    assert_eq!(
        called.text(),
        "no caller names it, but it may run without; 1 file with the name searched\n"
    );
    let excluded = graph(&repo, &["callers", "total", "-p", "web"]).expect(1);
    assert_eq!(
        excluded.text(),
        "no caller; 0 files with the name searched · 3 files excluded\n"
    );
}

#[test]
fn diagrams_are_drawn() {
    let repo = project();
    let dot = graph(&repo, &["callers", "Item.price", "--candidates", "--format", "dot"]).expect(0);
    assert_eq!(
        dot.text(),
        "digraph {\n  n0 [label=\"shop/sums.py#total\"];\n  n1 [label=\"shop/base.py#Item.price\"];\n  \
         n0 -> n1 [label=\"named\", style=dashed];\n  n2 [label=\"shop/cart.py#Book.price\"];\n  \
         n0 -> n2 [label=\"named\", style=dashed];\n}\n"
    );
    let mermaid = graph(&repo, &["callers", "helper", "--format", "mermaid"]).expect(0);
    assert!(
        mermaid.text().starts_with("graph LR\n  n0[\"web/index.ts#start\"]\n"),
        "{}",
        mermaid.text()
    );
    assert!(mermaid.text().contains("  n0 -->|import| n1\n"), "{}", mermaid.text());
}

#[test]
fn a_name_with_thousands_of_definitions_is_counted() {
    let repo = TestRepo::new("//- one.py\ndef use(x):\n    x.same()\n");
    let many: String = (0..10_000)
        .map(|n| format!("class C{n}:\n    def same(self): pass\n"))
        .collect();
    repo.write("many.py", many);
    let others: String = (0..30).map(|n| format!("class D{n} {{ same() {{}} }}\n")).collect();
    repo.write("other.ts", others + "function use(x) { x.same(); }\n");
    repo.commit("many");
    let answer = graph(&repo, &["callers", "C7.same", "--candidates", "--json"])
        .expect(0)
        .json();
    assert_eq!(
        (&answer["total"], &answer["candidates"]),
        (&Value::from(0), &Value::from(1))
    );
    assert_eq!(answer["results"][0]["to"].as_array().unwrap().len(), 24);
    let listed = graph(&repo, &["callers", "same", "--json"]).expect(0).json();
    assert_eq!(
        (&listed["total"], listed["results"].as_array().unwrap().len()),
        (&Value::from(10_030), 100)
    );
}

#[test]
fn export_prints_one_link_per_line() {
    let repo = project();
    let text = graph(&repo, &["export", "-p", "app.py"]).expect(0).text();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let call = rows
        .iter()
        .find(|row| row["name"] == "total" && row["kind"] == "call")
        .unwrap();
    assert_eq!(
        (&call["line"], &call["tier"]),
        (&Value::from(5), &Value::from("import"))
    );
    assert_eq!(
        (&call["target_file"], &call["target_start"]),
        (&Value::from("shop/sums.py"), &Value::from(3))
    );
}

/// Returns what an answer about impact lists: kind, name, relation, chain and certainty.
fn reached(repo: &TestRepo, args: &[&str]) -> Vec<String> {
    let answer = graph(repo, &[args, &["--json", "--candidates"]].concat())
        .expect(0)
        .json();
    let row = |row: &Value| {
        let via: Vec<&str> = row["via"]
            .as_array()
            .unwrap()
            .iter()
            .map(|id| id.as_str().unwrap())
            .collect();
        let certainty = if row["sure"] == true { "" } else { "?" };
        let name = row["name"].as_str().unwrap_or("-");
        let (kind, relation) = (row["kind"].as_str().unwrap(), row["relation"].as_str().unwrap());
        format!("{certainty}{kind} {name}: {relation} {}", via.join(" "))
    };
    answer["results"].as_array().unwrap().iter().map(row).collect()
}

/// Creates a project with tests that depend on `store.py#save` in several ways.
fn tested() -> TestRepo {
    let repo = TestRepo::new(
        "
        //- store.py
        def save(item):
            return item

        def unused():
            return 1

        class Base:
            def run(self):
                pass

        class Job(Base):
            def run(self):
                save(1)

        def work(job: Base):
            job.run()
        //- tests/conftest.py
        import pytest
        from store import save

        @pytest.fixture
        def saved():
            return save(2)
        //- tests/test_store.py
        import unittest
        from store import Job, save, work

        def test_fixture(saved):
            assert saved

        def test_override():
            work(Job())

        def test_import_only():
            pass

        class Prepared(unittest.TestCase):
            def setUp(self):
                save(3)

            def test_after(self):
                pass
        ",
    );
    repo.tag("v1");
    repo
}

#[test]
fn impact_reaches_tests_through_fixtures_overrides_and_set_up() {
    let repo = tested();
    assert_eq!(
        reached(&repo, &["impact", "save"]),
        [
            "test test_fixture: call tests/conftest.py#saved store.py#save",
            "test Prepared.test_after: prepared by tests/test_store.py#Prepared.setUp store.py#save",
            "test test_override: call store.py#work store.py#Base.run store.py#Job.run store.py#save",
            "definition Job.run: call store.py#save",
            "definition saved: call store.py#save",
            "definition Prepared.setUp: call store.py#save",
            "definition Base.run: overridden by store.py#Job.run store.py#save",
            "definition work: call store.py#Base.run store.py#Job.run store.py#save",
        ]
    );
    let near = reached(&repo, &["impact", "save", "--depth", "2", "--tests", "only"]);
    assert_eq!(
        near.iter().filter(|row| row.starts_with("test ")).count(),
        2,
        "{near:?}"
    );
    assert!(near.iter().all(|row| !row.contains("Job.run:")), "{near:?}");
}

#[test]
fn impact_lists_some_tests_before_definitions() {
    let repo = TestRepo::new("//- a.py\ndef f(): pass\ndef g(): f()\n");
    let tests: String = (10..45).map(|n| format!("def test_{n}(): f()\n")).collect();
    repo.write("test_a.py", format!("from a import f\n{tests}"));
    repo.commit("tests");
    let text = graph(&repo, &["impact", "f"]).expect(0).text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines[1], lines.len()), ("tests:", 1 + 35 + 1 + 3), "{text}");
    assert!(lines[2].starts_with("test test_a.py:2 test_10"), "{text}");
    assert_eq!(lines[32], "definitions:", "{text}");
    assert!(lines[33].starts_with("definition a.py:2 g"), "{text}");
    assert_eq!(lines[34], "other tests:", "{text}");
}

#[test]
fn long_chains_of_an_impact_are_shortened() {
    let chain: String = (1..60).map(|n| format!("def f{n}(): f{}()\n", n - 1)).collect();
    let repo = TestRepo::new(&format!("//- a.py\ndef f0(): pass\n{chain}"));
    let answer = graph(&repo, &["impact", "f0", "-n", "0", "--json"]).expect(0).json();
    let rows = answer["results"].as_array().unwrap();
    assert_eq!((rows.len(), answer["definitions"].as_u64()), (59, Some(59)));
    let (near, far) = (&rows[31], &rows[58]);
    assert_eq!(
        (near["depth"].as_u64(), near["via"][31].as_str()),
        (Some(32), Some("a.py#f0"))
    );
    assert_eq!(
        (far["depth"].as_u64(), far["via"][0].as_str()),
        (Some(59), Some("a.py#f58"))
    );
    let via = far["via"].as_array().unwrap();
    assert_eq!(
        (via.len(), via[30].as_str(), via[31].as_str()),
        (32, Some("a.py#f28"), Some("a.py#f0"))
    );
    let text = graph(&repo, &["impact", "f0", "-n", "0"]).expect(0).text();
    assert!(text.contains("→ f28 → 27 more → f0"), "{text}");
    assert!(
        text.contains("by depth 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 and 49 deeper\n"),
        "{text}"
    );
}

#[test]
fn impact_of_a_range_follows_changed_and_removed_definitions() {
    let repo = tested();
    let store = String::from_utf8(repo.read("store.py")).unwrap();
    repo.write(
        "store.py",
        store.replace("def save(item):\n    return item\n", "def unsaved():\n    pass\n"),
    );
    repo.commit("Remove save");
    let rows = reached(&repo, &["impact", "v1..HEAD", "--depth", "2"]);
    assert!(
        rows.contains(&"test test_fixture: call tests/conftest.py#saved store.py#save".to_owned()),
        "{rows:?}"
    );
    assert!(rows.iter().all(|row| !row.contains("test_import_only")), "{rows:?}");
    graph(&repo, &["impact", "unused"]).expect(1);
}

#[test]
fn a_flow_lists_each_definition_once_below_its_caller() {
    let repo = tested();
    let called = graph(&repo, &["flow", "work"]).expect(0);
    assert_eq!(
        called.text(),
        "4 definitions in the flow · by depth 1, 1, 1, 1\n\
         work store.py:15\n  \
           Base.run store.py:8\n    \
             Job.run store.py:12 (overrides)\n      \
               save store.py:1\n"
    );
    let near = graph(&repo, &["flow", "work", "--depth", "1", "--json"])
        .expect(0)
        .json();
    assert_eq!(near["total"], 2);
    assert_eq!(near["results"][1]["from"], "store.py#work");
    let drawn = graph(&repo, &["flow", "work", "--format", "mermaid"]).expect(0).text();
    assert!(drawn.contains("|overrides|"), "{drawn}");
}

/// Returns the reason and the id, or the path, of each row.
fn reasons(answer: &Value) -> Vec<String> {
    let row = |row: &Value| {
        let what = row["id"].as_str().or(row["path"].as_str()).unwrap();
        format!("{} {what}", row["reason"].as_str().unwrap())
    };
    answer["results"].as_array().unwrap().iter().map(row).collect()
}

/// Creates a project with definitions that nothing refers to, for different reasons.
fn unreferenced() -> TestRepo {
    TestRepo::new(
        "
        //- app.py
        from web import route

        def helper(x):
            return x

        @route('/')
        def index():
            return helper(1)

        def _dead():
            return _dead

        def _tested():
            pass

        def run(x):
            x._possible()

        class Handler:
            def __len__(self):
                return 0

            def _possible(self):
                pass

        run(Handler())
        //- src/lib.rs
        pub fn exported() { used() }
        fn used() {}
        fn dead() { dead() }
        // dead is mentioned here
        pub struct Point;
        impl std::fmt::Display for Point {
            fn fmt(&self) {}
        }
        //- src/main.rs
        fn main() { lib::exported() }
        //- tests/test_app.py
        from app import _tested, index

        def test_index():
            assert index
            _tested()

        def _unused_in_tests():
            pass
        ",
    )
}

#[test]
fn unused_definitions_are_those_that_nothing_can_reach() {
    let repo = unreferenced();
    let answer = graph(&repo, &["unused", "--json"]).expect(0).json();
    assert_eq!(
        reasons(&answer),
        [
            "unused app.py#_dead",
            "unused src/lib.rs#dead",
            "unused tests/test_app.py#_unused_in_tests"
        ]
    );
    assert_eq!((&answer["total"], &answer["candidates"]), (&3.into(), &1.into()));
    assert_eq!(answer["results"][1]["in_text"], 1);
    let all = graph(&repo, &["unused", "--json", "--candidates", "-p", "app.py"])
        .expect(0)
        .json();
    assert_eq!(
        reasons(&all),
        ["unused app.py#_dead", "unused app.py#Handler._possible"]
    );
    let text = graph(&repo, &["unused", "--tests", "no"]).expect(0).text();
    assert!(text.starts_with("3 unused of "), "{text}");
    assert!(text.contains("unused function _tested"), "{text}");
}

#[test]
fn entry_points_are_what_code_outside_runs() {
    let repo = unreferenced();
    let answer = graph(&repo, &["entrypoints", "--json"]).expect(0).json();
    assert_eq!(
        reasons(&answer)[..3],
        ["main src/main.rs#main", "script app.py", "marked app.py#index"]
    );
    assert_eq!(answer["results"][2]["mark"], "@route");
    assert_eq!(answer["reasons"]["test"], 1);
    let same = graph(&repo, &["flow", "--json"]).expect(0).json();
    assert_eq!(same["results"], answer["results"]);
}

#[test]
fn answers_of_two_revisions_are_compared() {
    let repo = project();
    let shown = graph(&repo, &["callers", "total", "--since", "v1"]).expect(0).text();
    assert_eq!(
        shown,
        "1 added · 0 removed since v1 · 3 now, 2 results then\n\
         + app.py:10 import call again: return total(1)\n"
    );
    let back = graph(
        &repo,
        &["callers", "total", "--since", "WORKTREE", "--ref", "v1", "--json"],
    );
    let back = back.expect(0).json();
    assert_eq!((&back["added"], &back["removed"]), (&0.into(), &1.into()));
    assert_eq!(back["results"][0]["change"], "removed");
    let new = graph(&repo, &["callers", "again", "--since", "v1"]).expect(1);
    assert!(new.stderr.contains("the target does not exist at v1"), "{}", new.stderr);
    graph(&repo, &["cycles", "--since", "v1"]).expect(1);
    let refused = graph(&repo, &["stats", "--since", "v1"]).expect(2);
    assert!(refused.stderr.contains("since cannot be used"), "{}", refused.stderr);
}

#[test]
fn tests_of_a_change_are_printed_for_another_program() {
    let repo = tested();
    let files = graph(&repo, &["impact", "save", "--ci"]).expect(0);
    assert_eq!(files.text(), "tests/test_store.py\n");
    let ids = graph(&repo, &["impact", "save", "--ci=ids"]).expect(0).text();
    let first = ids.lines().next();
    assert_eq!(
        (ids.lines().count(), first),
        (3, Some("tests/test_store.py#test_fixture"))
    );
    graph(&repo, &["impact", "unused", "--ci"]).expect(1);
    graph(&repo, &["callers", "save", "--ci"]).expect(2);
}

#[test]
fn owners_are_the_authors_of_the_affected_files() {
    let repo = tested();
    repo.write(
        "store.py",
        String::from_utf8(repo.read("store.py"))
            .unwrap()
            .replace("return item", "return 2"),
    );
    repo.commit("change save");
    let args = ["diff", "v1..HEAD", "--with", "tests,owners", "--json"];
    let answer = call_in(repo.root(), &args, b"").expect(0).json();
    let rows = answer["results"].as_array().unwrap();
    let owner = rows.last().unwrap();
    assert_eq!((&owner["kind"], &owner["commits"]), (&"owner".into(), &2.into()));
    assert!(rows.iter().any(|row| row["kind"] == "test"), "{answer}");
}

#[test]
fn broken_manifests_are_named() {
    let repo = TestRepo::new(
        "
        //- package.json
        { broken
        //- a/tsconfig.json
        { // a comment
          \"compilerOptions\": {}, }
        //- b/Cargo.toml
        [package
        //- b/src/lib.rs
        pub fn one() {}
        pub fn two() { one() }
        ",
    );
    let called = graph(&repo, &["callers", "one"]).expect(0);
    assert!(
        called
            .stderr
            .contains("not parsed, so the modules that they name are unknown: b/Cargo.toml and 1 more")
            || called.stderr.contains("unknown: package.json and 1 more"),
        "{}",
        called.stderr
    );
}

#[test]
fn types_of_go_implement_the_interfaces_whose_methods_they_have() {
    let repo = TestRepo::new(
        "
        //- go.mod
        module example.com/shapes
        //- shape.go
        package shapes

        type Shape interface {
            Area() int
            Scale(by int)
        }

        type base struct{}

        func (b *base) Scale(by int) {}

        type Square struct{ base }

        func (s Square) Area() int { return side() }

        func side() int { return 1 }

        type Line struct{}

        func (l Line) Area() int { return 0 }

        func Total(s Shape) int { return s.Area() }
        //- shape_test.go
        package shapes

        import \"testing\"

        func TestTotal(t *testing.T) { Total(Square{}) }
        ",
    );
    assert_eq!(
        edges_of(&repo, &["implementations", "Shape"]),
        ["shape.go#Square -> shape.go#Shape type shape.go:12"]
    );
    assert_eq!(
        edges_of(&repo, &["implementations", "Shape.Area"]),
        ["shape.go#Square.Area -> shape.go#Shape.Area type shape.go:14"]
    );
    assert_eq!(
        reached(&repo, &["impact", "side"])[0],
        "test TestTotal: call shape.go#Total shape.go#Shape.Area shape.go#Square.Area shape.go#side"
    );
}

#[test]
fn impact_of_files_is_that_of_their_definitions() {
    let repo = TestRepo::new(
        "
        //- src/x.ts
        export function a() {}
        export function b() { a() }
        //- src/only.md
        Text.
        //- src/x.test.ts
        import { b } from \"./x\";
        test(\"b\", () => { b() })
        //- other/c.py
        def src(): pass
        //- other/test_c.py
        from c import src
        def test_src(): src()
        ",
    );
    assert_eq!(reached(&repo, &["impact", "src/x.ts"])[0], "test b: call src/x.ts#b");
    assert_eq!(reached(&repo, &["impact", "src/"]).len(), 1);
    assert_eq!(
        reached(&repo, &["impact", "src"]),
        ["test test_src: call other/c.py#src"]
    );
    let ci = graph(&repo, &["impact", "other/c.py", "--ci"]);
    assert_eq!(ci.expect(0).stdout, b"other/test_c.py\n");
    let none = graph(&repo, &["impact", "src/only.md"]).expect(2);
    assert!(none.stderr.contains("no definitions in src/only.md"), "{}", none.stderr);
}

#[test]
fn manifests_cannot_make_a_look_up_long() {
    let chain: String = (0..3_000)
        .map(|n| {
            format!(
                "//- c/tsconfig.{n}.json\n{{\"extends\": \"./tsconfig.{}.json\"}}\n",
                n + 1
            )
        })
        .collect();
    let names: Vec<String> = (0..256)
        .map(|n| format!("\"#{}*{}\"", "a".repeat(n / 16), "a".repeat(n % 16)))
        .collect();
    let loops = vec!["\"#aaa*aaa\""; 16].join(",");
    let imports: Vec<String> = names.iter().map(|name| format!("{name}: [{loops}]")).collect();
    let repo = TestRepo::new(&format!(
        "{chain}//- package.json\n{{\"name\": \"own\", \"imports\": {{{}}}}}\n//- a.js\nimport {{ f }} from '#{}';\nf();\n//- b.js\nexport function f() {{}}\n",
        imports.join(","),
        "a".repeat(64),
    ));
    let found = graph(&repo, &["callers", "f", "--json"]).expect(2).json();
    assert_eq!(found["candidates"], 1, "{found}");
}

#[test]
fn only_declared_packages_are_outside() {
    let repo = TestRepo::new(
        "
        //- package.json
        {\"name\": \"own\", \"dependencies\": {\"lodash\": \"4\", \"utils\": \"file:../lib/utils\"}}
        //- src/parts.js
        export function alias() {}
        export function folder() {}
        export function local() {}
        export function node() {}
        export function part() {}
        export function merge() {}
        //- a.js
        import { alias } from '@parts/Button';
        import { folder } from 'constants/types';
        import { local } from 'utils';
        import { node } from 'node:sqlite';
        import { part } from 'fs/promises';
        import { merge } from 'lodash/merge';
        alias(); folder(); local(); node(); part(); merge();
        //- go.mod
        module own
        replace other.name/lib => ../lib
        // replace third.name/lib => ./lib
        //- lib/l.go
        package lib

        func Help() {}
        //- main.go
        package main

        import \"other.name/lib\"

        func main() { lib.Help() }
        ",
    );
    for name in ["alias", "folder", "local"] {
        assert_eq!(callers(&repo, name).2, ["named"], "{name}");
    }
    for name in ["node", "src/parts.js#part", "merge"] {
        assert_eq!(callers(&repo, name).2, [""; 0], "{name}");
    }
    assert_eq!(callers(&repo, "Help").0, 0, "the folder is outside of the repository");
}

#[test]
fn each_of_many_namesakes_may_be_meant() {
    let class = |n: usize| format!("//- m{n:02}.py\nclass C{n}:\n    def run(self): pass\n");
    let classes: String = (0..40).map(class).collect();
    let repo = TestRepo::new(&format!(
        "{classes}//- test_run.py\ndef test_run(thing):\n    thing.run()\n"
    ));
    for n in [0, 39] {
        graph(&repo, &["impact", &format!("m{n:02}.py#C{n}.run"), "--ci"]).expect(3);
    }
}

#[test]
fn modules_of_scripts_are_where_manifests_say() {
    let repo = TestRepo::new(
        "
        //- package.json
        {\"private\": true, \"workspaces\": [\"packages/*\"]}
        //- packages/kit/package.json
        {\"name\": \"@own/kit\", \"imports\": {\"#config\": {\"node\": \"./src/config.ts\"}, \"#deep/*\": \"./src/deep/*.ts\", \"#loop\": \"#loop\"},
         \"exports\": {\".\": {\"types\": \"./dist/index.d.ts\", \"default\": \"./dist/esm/index.js\"}, \"./named\": \"./src/features/named.ts\", \"./parts/*\": [\"./src/parts/*/main.ts\"]}}
        //- packages/kit/src/index.ts
        export function entry() {}
        //- packages/kit/src/features/named.ts
        export function named() {}
        //- packages/kit/src/parts/one/main.ts
        export function part() {}
        //- packages/kit/src/config.ts
        export function config() {}
        //- packages/kit/src/deep/down.ts
        export function deep() {}
        //- packages/kit/src/use.ts
        import { config } from \"#config\";
        import { deep } from \"#deep/down\";
        import { lost } from \"#loop\";
        export function uses() { config(); deep(); lost(); }
        //- packages/copy/package.json
        {\"name\": \"same\"}
        //- packages/copy/index.js
        export function twin() {}
        //- packages/copy/use.js
        import { twin } from \"same\";
        export function own() { twin(); }
        //- fixtures/copy/package.json
        {\"name\": \"same\"}
        //- fixtures/copy/index.js
        export function twin() {}
        //- apps/tsconfig.base.json
        {\"extends\": \"./tsconfig.base.json\", \"compilerOptions\": {\"paths\": {\"@here/*\": [\"${configDir}/src/*\"]}}}
        //- apps/one/tsconfig.json
        {\"extends\": [\"./none.json\", \"../tsconfig.base\"], \"files\": []} // a comment
        //- apps/one/src/local.ts
        export function local() {}
        //- apps/two/tsconfig.json
        {\"files\": [], \"references\": [{\"path\": \"./tsconfig.app.json\"}]}
        //- apps/two/tsconfig.app.json
        {\"extends\": \"./config/paths.json\"}
        //- apps/two/config/paths.json
        {\"compilerOptions\": {\"paths\": {\"lib/*\": [\"../gone/*\", \"../lib/*\"]}}}
        //- apps/two/lib/shared.ts
        export function shared() {}
        //- apps/two/package.json
        {\"name\": \"two\"}
        //- apps/one/src/use.ts
        import { entry } from \"@own/kit\";
        import { named } from \"@own/kit/named\";
        import { part } from \"@own/kit/parts/one\";
        import { local } from \"@here/local\";
        export function all() { entry(); named(); part(); local(); }
        //- apps/two/src/use.ts
        import { shared } from \"lib/shared\";
        export function both() { shared(); }
        ",
    );
    for (name, caller) in [
        ("entry", "apps/one/src/use.ts#all"),
        ("named", "apps/one/src/use.ts#all"),
        ("part", "apps/one/src/use.ts#all"),
        ("local", "apps/one/src/use.ts#all"),
        ("config", "packages/kit/src/use.ts#uses"),
        ("deep", "packages/kit/src/use.ts#uses"),
        ("packages/copy/index.js#twin", "packages/copy/use.js#own"),
        ("shared", "apps/two/src/use.ts#both"),
    ] {
        let edges = edges_of(&repo, &["callers", name]);
        assert_eq!(edges.len(), 1, "{name}: {edges:?}");
        assert!(edges[0].starts_with(&format!("{caller} ->")), "{name}: {edges:?}");
    }
    let other = graph(&repo, &["callers", "fixtures/copy/index.js#twin", "--json"]);
    assert_eq!(other.expect(1).json()["total"], 0);
}

#[test]
fn methods_of_go_implement_those_with_the_same_types_in_their_signatures() {
    let repo = TestRepo::new(
        "
        //- go.mod
        module example.com/serve
        //- serve.go
        package serve

        import \"io\"

        type Reply struct{}
        type Answer = Reply

        type Handler interface {
            Serve(Reply, *io.Reader) error
        }

        type Unnamed struct{}

        func (Unnamed) Serve(Reply, *io.Reader) error { return nil }

        type Named struct{}

        func (n *Named) Serve(reply Reply, reader *io.Reader) (err error) { return nil }

        type Aliased struct{}

        func (Aliased) Serve(reply Answer, _ *io.Reader) error { return nil }

        type More struct{}

        func (More) Serve(reply Reply, reader *io.Reader, next Handler) error { return nil }

        type NoResult struct{}

        func (NoResult) Serve(reply Reply, reader *io.Reader) {}

        type Other struct{}

        func (Other) Serve(reply Reply, reader *io.Writer) error { return nil }

        type Adder interface {
            Add(int, int, func(n int) any) any
        }

        type Sum struct{}

        func (Sum) Add(a, b int, then func(int) interface{}) interface{} { return a + b }

        type Once struct{}

        func (Once) Add(a int, then func(int) any) any { return a }

        type Pusher[T any] interface {
            Push(T)
        }

        type Numbers struct{}

        func (Numbers) Push(n int) {}

        type Stack[E any] struct{}

        func (s Stack[E]) Push(e E) {}
        ",
    );
    for (interface, types) in [
        ("Handler", &["Aliased", "Named", "Unnamed"][..]),
        ("Adder", &["Sum"]),
        ("Pusher", &["Numbers", "Stack"]),
    ] {
        let edges = edges_of(&repo, &["implementations", interface]);
        let mut found: Vec<&str> = edges
            .iter()
            .map(|edge| edge.split_once(" ->").unwrap().0.strip_prefix("serve.go#").unwrap())
            .collect();
        found.sort_unstable();
        assert_eq!(found, types, "{interface}");
    }
}

#[test]
fn changes_that_are_not_followed_make_ci_run_all_tests() {
    let repo = tested();
    let store = String::from_utf8(repo.read("store.py")).unwrap();
    let ci = |range: &str| graph(&repo, &["impact", range, "--ci"]);
    repo.write("README.md", "# Read me\n");
    repo.commit("prose");
    ci("HEAD~1..HEAD").expect(1);
    repo.write("store.py", format!("import os\n{store}"));
    repo.commit("import");
    let called = ci("HEAD~1..HEAD").expect(3);
    assert!(
        called.stderr.contains("store.py changed outside of definitions")
            && called
                .stderr
                .contains("cannot tell which tests the change reaches: run all"),
        "{}",
        called.stderr
    );
    repo.git(["mv", "store.py", "shop.py"]);
    repo.commit("rename");
    ci("HEAD~1..HEAD").expect(3);
    let named = graph(&repo, &["impact", "run", "--ci"]).expect(2);
    assert_eq!(named.text(), "");
    graph(&repo, &["impact", "nosuch", "--ci"]).expect(2);
    graph(&repo, &["impact", "save", "--ci", "--depth", "1"]).expect(2);
}

#[test]
fn options_that_mean_nothing_are_refused() {
    let repo = project();
    for args in [
        &["unused", "shop"][..],
        &["stats", "shop"],
        &["callers", "total", "main"],
        &["unused", "--format", "dot"],
    ] {
        graph(&repo, args).expect(2);
    }
}

#[test]
fn bodies_of_constants_override_the_methods_of_their_enum() {
    let repo = TestRepo::new(
        "
        //- shop/State.java
        package shop;
        enum State {
            First {
                @Override
                boolean run(int n) { return true; }
            };
            abstract boolean run(int n);
        }
        //- shop/User.java
        package shop;
        class User {
            void use(State state) { state.run(1); }
        }
        //- pkg/__init__.py
        //- pkg/json/__init__.py
        import json as _json

        def dumps(x):
            return _json.dumps(x)
        ",
    );
    let rows = edges_of(&repo, &["implementations", "shop/State.java#State.run"]);
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert!(rows[0].starts_with("shop/State.java#State.First.run -> "), "{rows:?}");
    let impact = reached(&repo, &["impact", "shop/State.java#State.First.run"]);
    assert!(
        impact.iter().any(|row| row.starts_with("definition User.use: call")),
        "{impact:?}"
    );
    // Inside a package, `json` is not the package beside the file.
    graph(&repo, &["callers", "dumps"]).expect(1);
}

#[test]
fn a_package_with_the_name_of_another_is_no_sure_target() {
    let repo = TestRepo::new(
        "
        //- x/package.json
        {\"name\": \"same\", \"main\": \"i.js\"}
        //- x/i.js
        export function load() {}
        //- y/package.json
        {\"name\": \"same\", \"main\": \"i.js\"}
        //- y/i.js
        export function load() {}
        //- app.js
        import { load } from 'same';
        load();
        ",
    );
    for id in ["x/i.js#load", "y/i.js#load"] {
        let answer = graph(&repo, &["callers", id, "--json"]).expect(2).json();
        assert_eq!(
            (&answer["total"], &answer["candidates"], &answer["uncertain"]),
            (&0.into(), &1.into(), &true.into()),
            "{id}"
        );
    }
}

/// Returns the number of certain and possible callers, and the tiers of all.
fn callers(repo: &TestRepo, of: &str) -> (u64, u64, Vec<String>) {
    let called = call_in(repo.root(), &["graph", "callers", of, "--candidates", "--json"], b"");
    let answer: Value = serde_json::from_slice(&called.stdout).unwrap();
    let tiers = answer["results"].as_array().unwrap().iter();
    let tiers = tiers.map(|row| row["tier"].as_str().unwrap().to_owned());
    let n = |key: &str| answer[key].as_u64().unwrap();
    (n("total"), n("candidates"), tiers.collect())
}

#[test]
fn members_of_values_of_unknown_types_are_candidates() {
    let repo = TestRepo::new(
        "
        //- s.swift
        class Svc { func run1() {} }
        //- u.swift
        func go(p: Svc) { p.run1() }
        //- s.dart
        class Svc { void run2() {} }
        //- u.dart
        import 'dart:io';
        void go(Svc p) { p.run2(); }
        //- S.scala
        package a
        class Svc { def run3() = 1 }
        //- U.scala
        package b
        class U { def go(p: Svc) = p.run3() }
        //- S.cs
        class Svc { void run4() {} }
        //- U.cs
        class U { void Go() { var p = Make(); p.run4(); Own.Part.run4(); } }
        //- s.rb
        class Svc
          def run5; end
        end
        //- u.rb
        def go
          n = Svc.new
          n.run5(1)
        end
        //- s.lua
        local Svc = {}
        function Svc:run6() end
        return Svc
        //- u.lua
        local svc = require('s')
        local function go(p) p:run6() end
        //- s.kt
        package a
        fun String.run7() = 1
        //- u.kt
        package b
        fun go() = \"x\".run7()
        ",
    );
    for of in 1..=7 {
        let (total, candidates, _) = callers(&repo, &format!("run{of}"));
        assert!(total + candidates >= 1, "run{of}");
        let text = graph(&repo, &["callers", &format!("run{of}")]);
        let zero = "no certain callers; ";
        assert!(total > 0 || text.text().starts_with(zero), "{}", text.text());
    }
}

#[test]
fn outside_needs_a_proof() {
    let repo = TestRepo::new(
        "
        //- package.json
        {\"name\": \"own\", \"dependencies\": {\"lodash\": \"4\"}}
        //- src/lib/fmt.js
        export function fmt() {}
        export function merge() {}
        export function open() {}
        //- a.js
        import { fmt } from '@parts/lib/fmt';
        import { merge } from 'lodash';
        import { open } from 'lib/fmt';
        fmt();
        merge();
        open();
        //- b.py
        from .missing import close
        from os import path
        close()
        path()
        print()
        //- shop/c.py
        def close(): ...
        def path(): ...
        def print(): ...
        ",
    );
    let tiers = |of: &str| callers(&repo, of).2;
    assert_eq!(tiers("fmt"), ["named"], "an alias that no manifest names");
    assert_eq!(tiers("src/lib/fmt.js#open"), ["named"], "a folder of the repository");
    assert_eq!(tiers("merge"), [""; 0], "a declared package");
    assert_eq!(tiers("close"), ["named"], "a relative import");
    assert_eq!(tiers("path"), [""; 0], "a module of the standard library");
    assert_eq!(tiers("shop/c.py#print"), [""; 0], "a builtin");
    let merge = graph(&repo, &["callers", "merge"]).expect(1);
    assert!(merge.text().starts_with("no caller; "), "{}", merge.text());
}

#[test]
fn no_test_is_certain_only_if_nothing_may_mean_the_change() {
    let repo = TestRepo::new(
        "
        //- a.rb
        class Svc
          def used; end
          def idle; end
        end
        //- test/u_test.rb
        def go(p)
          p.send(:x)
          p.used
        end
        //- h.ts
        export function helper() { return 1; }
        //- V.vue
        <script>
        import { helper } from './h';
        helper();
        </script>
        ",
    );
    let ci = |of: &str| graph(&repo, &["impact", of, "--ci"]);
    ci("idle").expect(1);
    let helper = ci("helper").expect(3);
    assert!(
        helper.stderr.contains("2 unresolved references may mean h.ts#helper"),
        "{}",
        helper.stderr
    );
    let unread = graph(&repo, &["callers", "helper"]).expect(2).text();
    assert!(unread.starts_with("no certain callers; "), "{unread}");
    let importers = graph(&repo, &["importers", "h.ts"]).expect(2).text();
    assert_eq!(
        importers,
        "importers of 1 file are not known · 1 not resolved (html 1)\n"
    );
    let rename = call_in(repo.root(), &["rename", "helper", "other"], b"")
        .expect(0)
        .stderr;
    assert!(rename.contains("not complete: 2 candidates"), "{rename}");
}

#[test]
fn imports_that_cannot_be_resolved_are_counted_by_language() {
    let repo = TestRepo::new(
        "
        //- lib/App.hs
        import Util
        //- lib/Util.hs
        help = 1
        //- lib/app.rb
        require_relative \"util\"
        //- lib/util.rb
        def help; 1; end
        //- a.c
        #include <stdio.h>
        #include \"a.h\"
        //- a.h
        int f(void);
        ",
    );
    let importers = graph(&repo, &["importers", "lib/Util.hs", "--json"]).expect(2).json();
    assert_eq!(importers["unknown_by_language"]["haskell"], 1, "{importers}");
    assert_eq!(importers["uncertain"], true);
    let of_ruby = graph(&repo, &["importers", "lib/util.rb", "--json"]).expect(0).json();
    assert_eq!(
        (&of_ruby["total"], &of_ruby["unknown"]),
        (&1.into(), &0.into()),
        "{of_ruby}"
    );
    let of_c = graph(&repo, &["importers", "a.h", "--json"]).expect(0).json();
    assert_eq!((&of_c["total"], &of_c["unknown"]), (&1.into(), &0.into()), "{of_c}");
    let cycles = graph(&repo, &["cycles"]).expect(2).text();
    assert!(cycles.ends_with("1 not resolved (haskell 1)\n"), "{cycles}");
    graph(&repo, &["importers", "a.c"]).expect(1);
}

#[test]
fn hubs_are_used_by_most_files_and_orphans_by_none() {
    let repo = TestRepo::new(
        "
        //- core.py
        def much(): pass
        def little(): pass
        //- one.py
        from core import much, little
        much()
        little()
        //- two.py
        from core import much
        much()
        much()
        //- alone.py
        def lonely(): pass
        lonely()
        //- doubtful.py
        class Door:
            def close(self): pass
        //- user.py
        import core
        def f(value): value.close()
        //- notes.md
        # Notes
        ",
    );
    let hubs = graph(&repo, &["hubs", "--json"]).expect(0).json();
    let hub = &hubs["results"][0];
    assert_eq!(
        (&hub["path"], &hub["used_by"]),
        (&"core.py".into(), &3.into()),
        "{hubs}"
    );
    let degree = |at: usize| {
        let one = &hub["definitions"][at];
        json!([one["id"], one["files"], one["references"]])
    };
    assert_eq!(degree(0), json!(["core.py#much", 2, 3]));
    assert_eq!(degree(1), json!(["core.py#little", 1, 1]));
    assert_eq!(hubs["total"], 1);
    let text = graph(&repo, &["orphans"]).expect(0).text();
    assert_eq!(
        text,
        "1 orphan of 6 code files · 1 with candidates (--candidates)\nalone.py\n"
    );
    let all = graph(&repo, &["orphans", "--candidates"]).expect(0).text();
    assert!(all.ends_with("alone.py\ndoubtful.py 1 possible\n"), "{all}");
    graph(&repo, &["orphans", "-p", "doubtful.py"]).expect(2);
    graph(&repo, &["orphans", "-p", "core.py"]).expect(1);
}

#[test]
fn routes_lead_to_what_answers_them() {
    let repo = TestRepo::new(
        "
        //- app.py
        @app.route('/items/<int:id>', methods=['GET', 'POST'])
        def item(id): pass

        @router.get(\"/health\")
        async def health(): pass

        cache.get('/not/a/route', 1)
        client.get('/health')
        //- shop/urls.py
        from shop import views
        urlpatterns = [path('cart/', views.cart)]
        //- shop/views.py
        def cart(request): pass
        //- server.js
        function list(req, res) {}
        app.get('/users', auth, list)
        app.post('/users', (req, res) => { res.end() })
        fetch.get('/users?page=2')
        //- main.go
        package main
        func show(w http.ResponseWriter, r *http.Request) {}
        func main() {
            http.HandleFunc(\"GET /go/{id}\", show)
            r.GET(\"/gin\", show)
        }
        //- Users.java
        package a;
        @RequestMapping(\"/api\")
        class Users {
            @GetMapping(\"/all\")
            List<User> all() { return null; }
            @PostMapping
            void add() {}
        }
        //- src/main.rs
        async fn list() {}
        async fn create() {}
        fn main() { Router::new().route(\"/rs\", get(list).post(create)); }
        //- config/routes.rb
        Rails.application.routes.draw do
          get 'about', to: 'pages#about'
          resources :posts
        end
        //- app/controllers/pages_controller.rb
        class PagesController
          def about; end
        end
        //- app/controllers/posts_controller.rb
        class PostsController
          def index; end
          def show; end
        end
        //- Cars.cs
        [Route(\"api/[controller]\")]
        public class CarsController {
            [HttpGet(\"{id}\")]
            public Car Get(int id) { return null; }
        }
        ",
    );
    let answer = graph(&repo, &["routes", "--candidates", "--json"]).expect(0).json();
    let row = |row: &Value| {
        let handlers = row["handlers"].as_array().unwrap().iter();
        let handlers: Vec<&str> = handlers.filter_map(|id| id.as_str()?.split('#').nth(1)).collect();
        let requests = row["requests"].as_array().map_or(0, Vec::len);
        let [method, route] = ["method", "route"].map(|field| row[field].as_str().unwrap());
        format!("{method} {route} {} {requests}", handlers.join(" "))
    };
    let rows: Vec<String> = answer["results"].as_array().unwrap().iter().map(row).collect();
    assert_eq!(
        rows,
        [
            "GET /api/Cars/{id} CarsController.Get 0",
            "GET /api/all Users.all 0",
            "POST /api Users.add 0",
            "GET /items/<int:id> item 0",
            "POST /items/<int:id> item 0",
            "GET /health health 1",
            "GET /about PagesController.about 0",
            "GET /posts PostsController.index 0",
            "GET /posts/:id PostsController.show 0",
            "GET /go/{id} show 0",
            "GET /gin show 0",
            "GET /users list 1",
            "POST /users  0",
            "ANY /cart/ cart 0",
            "GET /rs list 0",
            "POST /rs create 0",
        ]
    );
}

/// Each of these functions has no call, but something else may run it.
#[test]
fn zeros_of_what_is_registered_or_passed_on_are_doubtful() {
    let repo = TestRepo::new(
        "
        //- app.py
        @router.post('/items')
        def create(): pass
        def passed(): pass
        def alone(): pass
        table = [passed]
        //- base.rb
        class Base < Outside::Record
        end
        //- story.rb
        class Story < Base
          def inherited_by_outside; end
        end
        class Plain
          def by_symbol; end
          def by_nobody; end
        end
        run(:by_symbol)
        //- agent.ex
        defmodule Agent do
          @impl true
          def connect(opts), do: opts
          def lonely(opts), do: opts
        end
        //- meta.lua
        local M = {}
        function M.__index(t, k) return k end
        return M
        //- response.js
        const res = Object.create(base);
        res.get = function (field) { return field; };
        res.links = function () { return this.get(1); };
        const users = { get() { return 2; } };
        ",
    );
    for (target, code) in [
        ("app.py#create", 2),
        ("app.py#passed", 2),
        ("app.py#alone", 1),
        ("story.rb#Story.inherited_by_outside", 2),
        ("story.rb#Plain.by_symbol", 2),
        ("story.rb#Plain.by_nobody", 1),
        ("agent.ex#Agent.connect", 2),
        ("agent.ex#Agent.lonely", 1),
        ("meta.lua#M.__index", 2),
        ("response.js#get", 2),
    ] {
        let found = graph(&repo, &["callers", target]);
        assert_eq!(found.code, code, "{target}: {}", found.text());
    }
}

#[test]
fn a_type_argument_of_scala_calls_apply() {
    let repo = TestRepo::new(
        "
        //- Decoder.scala
        package a
        trait Decoder[A] {
          def decode(text: String): A = parse(text)
        }
        object Decoder {
          def apply[A](implicit instance: Decoder[A]): Decoder[A] = instance
          val decode: Decoder[Int] = new Decoder[Int] {
            override def decode(text: String): Int = 1
          }
        }
        //- Use.scala
        package a
        class Use {
          def use = Decoder[Int].decode(\"1\")
        }
        ",
    );
    let found = graph(&repo, &["callees", "Use.use", "--json"]).expect(0).json();
    let to = found["results"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|row| row["to"].as_array().unwrap());
    let to: Vec<&str> = to.filter_map(Value::as_str).collect();
    assert!(to.contains(&"Decoder.scala#Decoder.decode"), "{found}");
    assert!(!to.contains(&"Decoder.scala#Decoder~2.decode"), "{found}");
}
