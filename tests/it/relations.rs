//! Tests the relations that `symbol`, `outline` and `search` show.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cli::call_in;
use crate::support::{TestRepo, assert_within};

/// Creates a project in which two types have a method `run`.
fn project() -> TestRepo {
    TestRepo::new(
        "
        //- lib/core.py
        class Engine:
            def run(self, item):
                return self.step(item)

            def step(self, item):
                return item.step()

        def start():
            engine = Engine()
            engine.run(1)
            engine.run(2)

        def idle():
            pass
        //- lib/other.py
        from lib.core import Engine

        def one():
            Engine().run(1)

        def two():
            Engine().run(2)

        def three():
            Engine().run(3)
        //- lib/walk.py
        class Walker:
            def run(self, item):
                return item

        def walk(item):
            Walker().run(item)
        //- tests/test_core.py
        from lib.core import Engine

        def test_run():
            Engine().run(1)

        def test_again():
            Engine().run(2)
        ",
    )
}

fn text(repo: &TestRepo, args: &[&str]) -> String {
    call_in(repo.root(), args, b"").expect(0).text()
}

fn answer(repo: &TestRepo, args: &[&str]) -> Value {
    call_in(repo.root(), &[args, &["--json"]].concat(), b"")
        .expect(0)
        .json()
}

#[test]
fn a_definition_is_shown_with_its_callers_and_callees() {
    let repo = project();
    let shown = text(&repo, &["symbol", "Engine.run"]);
    let expected = "    called by 7 in 3 files: lib/core.py:10 start, lib/other.py:4 one, lib/other.py:7 two, …; 2 tests\n    \
                    calls 1: lib/core.py:5 Engine.step\n";
    assert!(shown.ends_with(expected), "{shown}");
    let relations = &answer(&repo, &["symbol", "Engine.run"])["results"][0]["relations"];
    let callers = &relations["callers"];
    assert_eq!(
        [
            &callers["total"],
            &callers["files"],
            &callers["tests"],
            &callers["candidates"]
        ],
        [7, 3, 2, 0]
    );
    let first = json!({"path": "lib/core.py", "line": 10, "id": "lib/core.py#start"});
    assert_eq!(callers["first"][0], first, "{callers}");
    assert_eq!(relations["callees"]["total"], 1, "{relations}");
    let of_type = &answer(&repo, &["symbol", "Engine"])["results"][0]["relations"];
    assert_eq!(of_type["references"]["total"], 6, "{of_type}");
}

#[test]
fn without_callers_the_answer_says_what_was_searched() {
    let repo = project();
    let step = text(&repo, &["symbol", "Engine.step"]);
    assert!(
        step.contains(
            "called by 1 in 1 file: lib/core.py:3 Engine.run; 1 candidate\n    no sure callees; 1 uncertain\n"
        ),
        "{step}"
    );
    let idle = text(&repo, &["symbol", "idle"]);
    assert!(
        idle.ends_with("    no callers; 1 file with the name searched\n"),
        "{idle}"
    );
    // A test runner calls tests.
    assert!(!text(&repo, &["symbol", "test_run"]).contains("no callers"));
}

#[test]
fn relations_are_left_out_of_long_lists_and_of_names_in_very_many_files() {
    let repo = project();
    let listed = answer(&repo, &["symbol", "run", "--prefix"]);
    assert_eq!(listed["results"][0]["relations"], Value::Null, "{listed}");
    for number in 0..301 {
        repo.write(format!("many/m{number}.py"), format!("start({number})\n"));
    }
    repo.commit("use the name in many files");
    let shown = text(&repo, &["symbol", "start"]);
    let expected = "    named in 302 files: codescout graph callers lib/core.py#start\n    calls 2: lib/core.py:1 Engine, lib/core.py:2 Engine.run\n";
    assert!(shown.ends_with(expected), "{shown}");
}

#[test]
fn a_position_leads_to_the_definition_that_the_reference_means() {
    let repo = project();
    let at = |place: &str| {
        let answer = answer(&repo, &["symbol", "--at", place]);
        let ids = answer["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["id"].clone());
        (answer["found_by"].as_str().unwrap().to_owned(), ids.collect::<Vec<_>>())
    };
    let found = |by: &str, ids: &[&str]| (by.to_owned(), ids.iter().map(|id| json!(id)).collect::<Vec<_>>());
    assert_eq!(at("lib/other.py:4:14"), found("link", &["lib/core.py#Engine.run"]));
    assert_eq!(at("lib/walk.py:6:14"), found("link", &["lib/walk.py#Walker.run"]));
    let both = ["lib/core.py#Engine", "lib/core.py#Engine.run"];
    assert_eq!(at("lib/other.py:4"), found("link", &both));
    // The type of the parameter is unknown.
    assert_eq!(at("lib/core.py:6:21"), found("reference", &["lib/core.py#Engine.step"]));
    assert_eq!(at("lib/core.py:2:10"), found("definition", &["lib/core.py#Engine.run"]));
    let callers = answer(&repo, &["graph", "callers", "lib/walk.py:6:14"]);
    assert_eq!(
        (&callers["target"], &callers["total"]),
        (&json!("lib/walk.py#Walker.run"), &json!(1))
    );
    // A selection that excludes the definition leaves those with the name.
    let selected = answer(&repo, &["symbol", "--at", "lib/other.py:4:14", "--path", "lib/walk.py"]);
    assert_eq!(
        (&selected["found_by"], &selected["total"]),
        (&json!("reference"), &json!(1))
    );
}

#[test]
fn the_map_begins_with_what_most_files_refer_to() {
    let repo = TestRepo::new(
        "
        //- lib/a.py
        def often(): pass
        def wide(): pass
        def tested(): pass
        def format(x): pass
        //- lib/b.py
        from lib.a import often, wide
        often(), often(), often(), wide(), '{}'.format(1)
        //- lib/c.py
        from lib.a import wide
        wide(), '{}'.format(1)
        //- lib/d.py
        '{}'.format(1)
        //- tests/test_a.py
        from lib.a import tested
        tested()
        //- tests/test_b.py
        from lib.a import tested
        tested()
        //- tests/test_c.py
        from lib.a import tested
        tested()
        ",
    );
    let names = |tokens: &str| {
        let map = answer(&repo, &["outline", "--view", "map", "--max-tokens", tokens]);
        let names = map["results"].as_array().unwrap().iter().map(|row| row["name"].clone());
        names.filter(|name| !name.is_null()).collect::<Vec<_>>()
    };
    assert_eq!(names("8"), ["wide"]);
    assert_eq!(names("13"), ["often", "wide"]);
}

#[test]
fn search_shows_how_often_a_function_is_called() {
    let repo = project();
    let callers = |args: &[&str]| {
        let answer = answer(&repo, &[&["search"], args].concat());
        let rows = answer["results"].as_array().unwrap().iter();
        let mut callers = rows
            .map(|row| (row["symbol"].clone(), row["callers"].clone()))
            .collect::<Vec<_>>();
        callers.retain(|(symbol, _)| symbol.as_str().is_some_and(|name| name.starts_with("Engine.")));
        callers
    };
    let expected = (json!("Engine.run"), json!(7));
    assert!(callers(&["run"]).contains(&expected), "{:?}", callers(&["run"]));
    let of_past = callers(&["run", "--refs", "HEAD"]);
    assert!(of_past.contains(&(json!("Engine.run"), Value::Null)), "{of_past:?}");
    let shown = text(&repo, &["search", "run"]);
    assert!(shown.contains(" Engine.run called by 7 · name\n"), "{shown}");
}

#[test]
fn the_first_commit_is_compared_with_nothing() {
    let repo = TestRepo::empty();
    repo.write("a.py", "def first():\n    return 1\n");
    repo.commit("start");
    repo.write("a.py", "def first():\n    return 2\n");
    repo.commit("go on");
    let call = |args: &[&str]| call_in(repo.root(), args, b"");
    let diff = call(&["diff", "HEAD~1^..HEAD~1", "--json"]).expect(0).json();
    assert_eq!(diff["results"][0]["symbols"][0]["id"], "a.py#first", "{diff}");
    assert_eq!(diff["results"][0]["symbols"][0]["events"], json!(["added"]), "{diff}");
    let review = call(&["review", "HEAD~1^..HEAD~1"]).expect(0).text();
    assert!(review.contains("1 added"), "{review}");
    let back = call(&["diff", "HEAD", "HEAD~1^", "--json"]).expect(0).json();
    assert_eq!(back["results"][0]["kind"], "deleted", "{back}");
    call(&["diff", "WORKTREE^", "HEAD"]).expect(2);
    call(&["diff", "HEAD~1^^..HEAD"]).expect(2);
    call(&["diff", "nothing^..HEAD"]).expect(2);
}

/// The tree of a folder that equals the index is not read; that of another folder can be the same.
#[test]
fn a_deleted_folder_that_equals_another_one_is_missed_nowhere() {
    let repo = TestRepo::empty();
    repo.write("a/x/f.py", "def f():\n    return 1\n");
    repo.write("b/x/f.py", "def f():\n    return 1\n");
    repo.commit("start");
    repo.git(["status"]);
    repo.write("a/new.py", "n = 1\n");
    repo.git(["add", "a/new.py"]);
    repo.git(["rm", "-q", "-r", "b"]);
    let call = |args: &[&str]| call_in(repo.root(), args, b"");
    for to in ["INDEX", "WORKTREE"] {
        let diff = call(&["diff", "HEAD", to]).expect(0).text();
        assert!(diff.contains("b/x/f.py"), "{to}: {diff}");
    }
    let found = call(&["grep", "def f"]).expect(0).text();
    assert!(!found.contains("b/x/f.py"), "{found}");
}

#[test]
fn a_call_can_mean_methods_in_blocks_of_two_files() {
    let repo = TestRepo::empty();
    repo.write("Cargo.toml", "[package]\nname = \"shop\"\n");
    repo.write("src/lib.rs", "mod a;\nmod z;\n");
    repo.write(
        "src/a.rs",
        "use crate::z::Ctx;\n\nimpl outside::Like for Ctx {\n    fn get(&self) {\n        self.get()\n    }\n}\n",
    );
    // The block here has a number that the other file does not have.
    let many: String = (0..60).map(|n| format!("fn f{n}() {{}}\n")).collect();
    let block = "pub struct Ctx;\nimpl Ctx {\n    pub fn get(&self) {}\n}\n";
    repo.write("src/z.rs", many + block);
    repo.commit("start");
    let callers = call_in(repo.root(), &["graph", "callers", "src/z.rs#Ctx.get"], b"");
    let callers = callers.expect(0).text();
    assert!(callers.contains("src/a.rs:5 self call"), "{callers}");
}

#[test]
fn default_exports_of_an_index_are_called_from_everywhere() {
    for (path, module) in [
        ("src/other.ts", "./index"),
        ("src/other.ts", "."),
        ("src/deep/other.ts", ".."),
        ("src/deep/deeper/other.ts", "../../"),
        ("app/other.ts", "../src"),
        ("app/other.ts", "@acme/util"),
    ] {
        let repo = TestRepo::empty();
        repo.write("package.json", "{\"name\": \"@acme/util\", \"main\": \"src/index.ts\"}");
        repo.write("src/index.ts", "export default function made() {}\n");
        repo.write(
            path,
            format!("import w from \"{module}\";\nexport function u() {{ w(); }}\n"),
        );
        repo.commit("start");
        let callers = call_in(repo.root(), &["graph", "callers", "made"], b"")
            .expect(0)
            .text();
        assert!(callers.contains(&format!("{path}:2")), "{module}: {callers}");
    }
}

#[test]
fn the_function_main_is_meant_before_its_package() {
    let repo = TestRepo::new(
        "
        //- go.mod
        module example.com/shop
        //- main.go
        package main

        func helper() {}

        func main() {
        \thelper()
        }
        ",
    );
    let callees = text(&repo, &["graph", "callees", "main.go#main"]);
    assert!(callees.contains("main.go:6 scope call → helper"), "{callees}");
}

#[test]
fn names_that_no_star_import_has_are_soon_known() {
    let repo = TestRepo::empty();
    let stars: String = (0..500).map(|n| format!("from m{n} import *\n")).collect();
    let names: String = (0..500).map(|n| format!("x{n}()\n")).collect();
    repo.write("b.py", stars + &names);
    repo.commit("start");
    let started = Instant::now();
    call_in(repo.root(), &["graph", "hubs"], b"").expect(1);
    assert_within(Duration::from_secs(20), started, "hubs of a file with many stars");
}
