//! Tests `search --pack` on small repositories.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cli::{Called, call_in};
use crate::mcp::Client;
use crate::support::{TestRepo, assert_within};

/// Number of characters that count as a token.
const CHARACTERS_PER_TOKEN: usize = 4;

/// Creates a project. The tag `v1` is the commit before the last.
fn project() -> TestRepo {
    let repo = TestRepo::new(
        "
        //- shop/__init__.py
        //- shop/base.py
        class Item:
            '''Something that is sold.'''

            def price(self):
                return 1
        //- shop/cart.py
        from shop.base import Item
        from shop.sums import total

        class Book(Item):
            def price(self):
                return 2

        class Cart:
            def checkout(self, items):
                return total(items)

            def empty(self):
                return []
        //- shop/sums.py
        LIMIT = 10

        def capped(value):
            return min(value, LIMIT)

        def total(items):
            '''Adds up the prices of all items of an order.'''
            result = 0
            for item in items:
                result += item.price()
            return capped(result)

        def obsolete():
            return 0
        //- tests/test_sums.py
        from shop.sums import total
        from shop.cart import Cart

        def test_total():
            def helper():
                return total([])
            assert helper() == 0

        def test_checkout():
            assert Cart().checkout([]) == 0
        ",
    );
    repo.tag("v1");
    let sums = String::from_utf8(repo.read("shop/sums.py")).unwrap();
    let sums = sums.replace("return capped(result)", "return capped(result + 1)");
    let sums = sums.replace("\ndef obsolete():\n    return 0\n", "");
    repo.write("shop/sums.py", sums.replace("LIMIT = 10", "LIMIT = 20"));
    repo.commit("charge one more");
    repo
}

/// Creates a function with many lines and many callers.
fn large() -> TestRepo {
    let repo = TestRepo::new("//- README.md\n# Large\n");
    let lines: String = (0..400).map(|n| format!("    step_{n} = {n} + value\n")).collect();
    let body = format!("def process(value):\n{lines}    quantum_flux = value\n    return quantum_flux\n");
    repo.write("engine.py", body);
    for n in 0..30 {
        let text = format!("from engine import process\n\ndef user_{n}(value):\n    return process(value)\n");
        repo.write(format!("users/use_{n:02}.py"), text);
    }
    repo.commit("add it");
    repo
}

fn pack(repo: &TestRepo, args: &[&str]) -> Called {
    call_in(repo.root(), &[&["search", "--pack"], args].concat(), b"")
}

fn json_of(repo: &TestRepo, args: &[&str]) -> Value {
    pack(repo, &[&["--json"], args].concat()).expect(0).json()
}

fn rows(answer: &Value) -> &Vec<Value> {
    answer["results"].as_array().unwrap()
}

/// Returns role, place and reason of each item.
fn described(answer: &Value) -> Vec<String> {
    let row = |row: &Value| {
        let place = row["id"].as_str().or(row["path"].as_str()).unwrap();
        format!(
            "{} {place}: {}",
            row["role"].as_str().unwrap(),
            row["reason"].as_str().unwrap()
        )
    };
    rows(answer).iter().map(row).collect()
}

/// Checks that the bodies of an answer are the bytes of their lines, and that no lines are shown twice.
#[track_caller]
fn check_bodies(repo: &TestRepo, answer: &Value) {
    let mut shown: Vec<(String, u64)> = Vec::new();
    for row in rows(answer).iter().filter(|row| row["role"] == "body") {
        let blob = repo.git_bytes(["cat-file", "blob", row["blob"].as_str().unwrap()]);
        let (first, last) = (row["start_line"].as_u64().unwrap(), row["end_line"].as_u64().unwrap());
        let lines = blob.split_inclusive(|byte| *byte == b'\n');
        let lines: Vec<u8> = lines
            .skip(first as usize - 1)
            .take((last - first + 1) as usize)
            .flatten()
            .copied()
            .collect();
        assert_eq!(row["text"].as_str().unwrap().as_bytes(), lines, "{row}");
        for line in first..=last {
            let place = (row["path"].as_str().unwrap().to_owned(), line);
            assert!(!shown.contains(&place), "shown twice: {place:?}");
            shown.push(place);
        }
    }
}

#[test]
fn a_name_gives_its_text_and_its_neighbours() {
    let repo = project();
    let answer = json_of(&repo, &["total"]);
    let expected = [
        "body shop/sums.py#total: named total",
        "signature shop/cart.py#Cart.checkout: calls total",
        "test tests/test_sums.py#test_total: test of total",
        "signature shop/sums.py#capped: called by total",
    ];
    assert_eq!(described(&answer), expected, "{answer}");
    check_bodies(&repo, &answer);
    assert_eq!(rows(&answer)[1]["line"], 10, "the call: {answer}");
    assert_eq!(answer["left_out"], json!({}));
    let member = json_of(&repo, &["Item.price"]);
    let expected = [
        "body shop/base.py#Item.price: named Item.price",
        "signature shop/base.py#Item: contains Item.price",
        "signature shop/cart.py#Book.price: overrides Item.price",
    ];
    assert_eq!(described(&member), expected, "{member}");
    let by_id = json_of(&repo, &["shop/sums.py#total"]);
    assert_eq!(rows(&by_id)[1..], rows(&answer)[1..]);
    let no_tests = json_of(&repo, &["total", "--tests", "no"]);
    assert!(
        !described(&no_tests).iter().any(|row| row.starts_with("test ")),
        "{no_tests}"
    );
}

#[test]
fn a_question_gives_the_definitions_that_match() {
    let repo = project();
    let answer = json_of(
        &repo,
        &["how", "are", "the", "prices", "of", "an", "order", "added", "up"],
    );
    let first = &rows(&answer)[0];
    assert_eq!(first["id"], "shop/sums.py#total", "{answer}");
    assert!(first["reason"].as_str().unwrap().contains("price"), "{first}");
    check_bodies(&repo, &answer);
    let ids: Vec<&str> = rows(&answer).iter().filter_map(|row| row["id"].as_str()).collect();
    let mut once = ids.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), ids.len(), "{ids:?}");
    let printed = pack(&repo, &["how are the prices added up"]).expect(0);
    assert_eq!(printed.text(), pack(&repo, &["how are the prices added up"]).text());
}

#[test]
fn a_range_gives_what_changed() {
    let repo = project();
    let answer = json_of(&repo, &["v1..HEAD"]);
    let described = described(&answer);
    assert_eq!(
        described[0], "body shop/sums.py#LIMIT: changed in v1..HEAD: signature",
        "{answer}"
    );
    assert!(described.contains(&"body shop/sums.py#total: changed in v1..HEAD: body".to_owned()));
    assert!(described.contains(&"signature shop/sums.py#obsolete: removed in v1..HEAD".to_owned()));
    assert!(described.contains(&"signature shop/cart.py#Cart.checkout: calls total".to_owned()));
    check_bodies(&repo, &answer);
    assert_eq!(answer["commit"], repo.rev_parse("HEAD"));
    let merge_base = json_of(&repo, &["v1...HEAD"]);
    assert_eq!(rows(&merge_base).len(), rows(&answer).len());
    // The text of the later state, not of the worktree.
    repo.write("shop/sums.py", "def total(items):\n    return 0\n");
    assert_eq!(rows(&json_of(&repo, &["v1..HEAD"])), rows(&answer));
    let uncommitted = json_of(&repo, &["HEAD..WORKTREE"]);
    assert_eq!(rows(&uncommitted)[0]["text"], "def total(items):\n    return 0\n");
}

#[test]
fn a_question_finds_the_member_of_a_short_type() {
    let repo = TestRepo::new(
        "
        //- src/lib.rs
        pub struct Uploads;

        impl Uploads {
            pub fn list(&self) -> u32 {
                1
            }

            /// Repeats a failed upload after a pause.
            pub fn retry(&self) -> u32 {
                self.list()
            }
        }

        pub fn run(uploads: &Uploads) -> u32 {
            uploads.retry()
        }
        ",
    );
    let answer = json_of(&repo, &["when is a failed upload repeated"]);
    let described = described(&answer);
    assert!(
        described[0].starts_with("body src/lib.rs#Uploads.retry: matches"),
        "{answer}"
    );
    assert!(
        described
            .iter()
            .any(|row| row.contains("Uploads: contains Uploads.retry")),
        "{described:?}"
    );
    assert!(
        described.iter().any(|row| row.contains("calls Uploads.retry")),
        "{described:?}"
    );
    assert!(
        described.iter().any(|row| row.contains("called by Uploads.retry")),
        "{described:?}"
    );
    check_bodies(&repo, &answer);
}

#[test]
fn removed_lines_and_shifted_blocks() {
    let repo = TestRepo::new(
        "
        //- src/lib.rs
        pub struct A;

        impl A {
            pub fn first(&self) {}
        }

        impl A {
            pub fn second(&self) {
                self.first();
                self.first();
            }
        }
        ",
    );
    let text = String::from_utf8(repo.read("src/lib.rs")).unwrap();
    let block = "impl A {\n    pub fn between(&self) {}\n}\n\nimpl A {\n    pub fn second";
    let text = text.replace("impl A {\n    pub fn second", block);
    repo.write("src/lib.rs", text.replacen("        self.first();\n", "", 1));
    repo.commit("add a block and remove a line");
    call_in(repo.root(), &["index", "--history"], b"").expect(0);
    let printed = pack(&repo, &["HEAD~..HEAD"]).expect(0).text();
    assert_eq!(printed.matches("add a block").count(), 1, "{printed}");
    assert_eq!(printed.matches(", as above").count(), 1, "{printed}");
    let answer = json_of(&repo, &["HEAD~..HEAD"]);
    let changed: Vec<&str> = rows(&answer)
        .iter()
        .filter(|row| row["reason"].as_str().unwrap().contains("HEAD~..HEAD"))
        .map(|row| row["text"].as_str().unwrap())
        .collect();
    assert_eq!(changed.len(), 2, "{answer}");
    assert!(changed[0].contains("fn between"), "{answer}");
    assert!(changed[1].contains("fn second"), "{answer}");
    check_bodies(&repo, &answer);
}

#[test]
fn an_answer_fits_into_its_budget() {
    let (small, big) = (project(), large());
    let queries = [
        (&small, "total"),
        (&small, "v1..HEAD"),
        (&small, "how are prices added up"),
        (&big, "process"),
        (&big, "where is the quantum flux computed"),
    ];
    for (repo, query) in queries {
        let mut before = 0;
        for budget in [100, 150, 250, 500, 1_000, 3_000, 20_000] {
            let budget_text = budget.to_string();
            let args = [query, "--max-tokens", &budget_text];
            let printed = pack(repo, &args);
            let n_characters = printed.text().len();
            assert!(
                n_characters <= budget * CHARACTERS_PER_TOKEN,
                "{query} {budget}: {n_characters}"
            );
            let answer = pack(repo, &[&["--json"], &args[..]].concat()).json();
            assert!(answer["tokens"].as_u64().unwrap() as usize <= budget, "{answer}");
            check_bodies(repo, &answer);
            let n_rows = rows(&answer).len();
            assert!(n_rows > 0, "{query} {budget}: {answer}");
            let left: u64 = answer["left_out"]
                .as_object()
                .unwrap()
                .values()
                .map(|n| n.as_u64().unwrap())
                .sum();
            assert_eq!(left > 0, printed.text().contains(" more: "), "{}", printed.text());
            before = before.max(n_rows);
        }
        assert!(before > 2, "{query}");
    }
}

#[test]
fn what_is_left_out_is_counted() {
    let repo = large();
    for budget in ["300", "1000", "20000"] {
        let answer = json_of(&repo, &["process", "--max-tokens", budget]);
        let callers = described(&answer);
        let n_shown = callers.iter().filter(|row| row.ends_with(": calls process")).count();
        let n_left = answer["left_out"]["caller"].as_u64().unwrap_or(0);
        assert_eq!(n_shown + n_left as usize, 30, "{budget}: {answer}");
    }
}

#[test]
fn a_long_definition_has_its_signature_and_matching_lines() {
    let repo = large();
    let answer = json_of(&repo, &["where is the quantum flux", "--max-tokens", "1000"]);
    let first = &rows(&answer)[0];
    assert_eq!(
        (&first["role"], &first["id"]),
        (&json!("signature"), &json!("engine.py#process"))
    );
    let part = &rows(&answer)[1];
    assert_eq!(
        (&part["role"], &part["reason"]),
        (&json!("body"), &json!("matching lines"))
    );
    assert!(
        part["text"].as_str().unwrap().contains("quantum_flux = value"),
        "{part}"
    );
    check_bodies(&repo, &answer);
    // A change in its middle is shown, too.
    let text = String::from_utf8(repo.read("engine.py")).unwrap();
    repo.write("engine.py", text.replace("step_200 = 200", "step_200 = 201"));
    repo.commit("correct a step");
    let answer = json_of(&repo, &["HEAD~..HEAD", "--max-tokens", "1000"]);
    let part = &rows(&answer)[1];
    assert_eq!(part["reason"], "changed lines");
    assert!(part["text"].as_str().unwrap().contains("step_200 = 201"), "{part}");
}

#[test]
fn the_last_change_is_shown_if_commits_are_recorded() {
    let repo = project();
    let changes = |answer: &Value| -> Vec<String> {
        let rows = rows(answer).iter().filter(|row| row["role"] == "change");
        rows.map(|row| row["text"].as_str().unwrap().to_owned()).collect()
    };
    for _ in 0..2 {
        let printed = pack(&repo, &["total"]).expect(0);
        assert!(
            printed.stderr.contains("definitions are not traced"),
            "{}",
            printed.stderr
        );
        assert!(
            changes(&json_of(&repo, &["total"])).is_empty(),
            "nothing is recorded for a pack"
        );
    }
    call_in(repo.root(), &["index", "--history"], b"").expect(0);
    let change = changes(&json_of(&repo, &["total"]));
    assert_eq!(change.len(), 1);
    assert!(change[0].starts_with(&repo.rev_parse("HEAD")[..10]), "{change:?}");
    assert!(change[0].ends_with(": charge one more"), "{change:?}");
    let older = changes(&json_of(&repo, &["capped"]));
    assert!(older[0].starts_with(&repo.rev_parse("HEAD~")[..10]), "{older:?}");
}

#[test]
fn bytes_that_are_not_utf8_are_marked() {
    let repo = TestRepo::new("//- README.md\n# Bytes\n");
    repo.write("a.py", b"def odd():\r\n    return '\xff'\r\n");
    repo.write("b.py", b"def even():\r\n    return 1\r\n");
    repo.commit("add them");
    let odd = json_of(&repo, &["odd"]);
    assert_eq!(rows(&odd)[0]["lossy"], true, "{odd}");
    assert!(rows(&odd)[0]["text"].as_str().unwrap().contains('\u{fffd}'));
    let even = json_of(&repo, &["even"]);
    assert_eq!(rows(&even)[0]["text"], "def even():\r\n    return 1\r\n");
    assert!(rows(&even)[0].get("lossy").is_none());
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let repo = project();
    for args in [
        &["--in", "commits", "total"][..],
        &["--in", "diffs", "total"],
        &["--refs", "v1,HEAD", "total"],
        &["--all-history", "total"],
        &["--mode", "regex", "total"],
        &["--explain", "total"],
    ] {
        let refused = pack(&repo, args).expect(2);
        assert!(refused.stderr.contains("pack"), "{args:?}: {}", refused.stderr);
    }
    call_in(repo.root(), &["search", "--max-tokens", "500", "total"], b"").expect(2);
    pack(&repo, &["--max-tokens", "10", "total"]).expect(2);
    pack(&repo, &["--path", "nowhere", "total"]).expect(1);
}

#[test]
fn the_tool_packs_into_max_tokens() {
    let repo = large();
    let mut client = Client::legacy(&repo, &[]);
    client.call_complete("search", json!({"query": "process"}));
    for (budget, query) in [
        (500, "process"),
        (1_500, "process"),
        (6_000, "where is the quantum flux"),
    ] {
        let arguments = json!({"query": query, "detail": "pack", "max_tokens": budget});
        let answer = client.call("search", arguments.clone());
        assert!(answer.text.len() <= budget * CHARACTERS_PER_TOKEN, "{}", answer.text);
        assert!(answer.facts.get("next_cursor").is_none(), "{}", answer.text);
        assert_eq!(answer.results()[0]["id"], "engine.py#process");
        assert!(answer.results()[0].get("truncated").is_none(), "{}", answer.text);
        let again = client.call("search", arguments);
        assert_eq!(again.results(), answer.results());
    }
    // Structured content is longer, so it comes in pages, which together are the answer.
    let mut client = Client::legacy(&repo, &["--bodies", "structured"]);
    let mut arguments = json!({"query": "process", "detail": "pack", "max_tokens": 1_500});
    let first = client.call_complete("search", arguments.clone());
    let mut ids = first.all("id");
    let mut page = first;
    while let Some(cursor) = page.facts["next_cursor"].as_str() {
        arguments["cursor"] = json!(cursor);
        page = client.call("search", arguments.clone());
        ids.extend(page.all("id"));
    }
    let left = page.facts["left_out"]["caller"].as_u64().unwrap();
    let callers = ids.iter().filter(|id| id.starts_with("users/"));
    assert_eq!(callers.count() as u64 + left, 30, "{ids:?}");
    let refused = client.call("search", json!({"query": "process", "detail": "pack", "mode": "regex"}));
    assert!(
        refused.failure().contains("pack cannot be used with mode regex"),
        "{refused:?}"
    );
    let other = client.call("symbol", json!({"name": "process", "detail": "pack"}));
    assert!(other.failure().contains("detail"), "{other:?}");
}

/// Reading the file, or all references to the name, again for each of them would take minutes.
#[test]
fn packs_of_namesakes_take_time_in_proportion() {
    const N_NAMESAKES: usize = 1_500;
    let repo = TestRepo::new("//- b.py\ndef b(): pass\n");
    let write = |n: usize| {
        let properties = "  @property\n  def f(self): return self.f\n".repeat(n);
        repo.write("a.py", format!("class A:\n{properties}"));
        repo.write("a.rs", "mod m { fn f() { f() } }\n".repeat(n));
        repo.commit("namesakes");
    };
    write(N_NAMESAKES / 2);
    write(N_NAMESAKES);
    call_in(repo.root(), &["index"], b"").expect(0);
    for query in ["a.py#A.f", "HEAD~1..HEAD"] {
        let started = Instant::now();
        let called = call_in(
            repo.root(),
            &["search", "--pack", "--json", "--max-tokens", "1000", query],
            b"",
        )
        .expect(0);
        assert_within(Duration::from_secs(20), started, query);
        let answer: Value = serde_json::from_str(&called.text()).unwrap();
        let left_out = answer["left_out"].as_object().unwrap().values();
        let n_left_out: u64 = left_out.filter_map(Value::as_u64).sum();
        assert!(n_left_out as usize >= N_NAMESAKES / 2, "{}", answer["left_out"]);
    }
}

#[test]
fn definitions_beyond_the_limit_are_counted() {
    let repo = TestRepo::empty();
    for number in 0..30 {
        repo.write(format!("m{number}.py"), "def same():\n    return 1\n");
    }
    repo.commit("many");
    let called = call_in(repo.root(), &["search", "--pack", "same"], b"").expect(0);
    assert!(
        called.stderr.contains("6 more definitions of same; symbol lists all"),
        "{}",
        called.stderr
    );
}
