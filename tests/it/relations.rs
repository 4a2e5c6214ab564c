//! Tests the relations that `symbol`, `outline` and `search` show.

use serde_json::{Value, json};

use crate::cli::call_in;
use crate::support::TestRepo;

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
        repo.write(&format!("many/m{number}.py"), format!("start({number})\n"));
    }
    repo.commit("use the name in many files");
    let shown = text(&repo, &["symbol", "start"]);
    let expected = "    named in 302 files: codescout graph callers lib/core.py#start\n    calls 2: lib/core.py:1 Engine, lib/core.py:2 Engine.run\n";
    assert!(shown.ends_with(expected), "{shown}");
}
