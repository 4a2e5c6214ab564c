//! `codescout review`: what a change does, as text, JSON, Markdown and a page.

use serde_json::{Value, json};

use super::call;
use crate::support::TestRepo;

const HOSTILE: &str = "`<script>alert(1)<!--\u{202e}.py";

/// A repository in which `topic` changes a signature with callers that do not change, removes, moves and formats.
fn sample() -> TestRepo {
    let repo = TestRepo::new(
        "
        //- src/shop/price.py
        def price(item):
            return item.cost

        def old_price(item):
            return item.cost * 2

        def tax(item):
            return price(item) * 0.2

        def untouched():
            return 1
        //- src/shop/cart.py
        from shop.price import old_price, price

        def total(items):
            return sum(price(item) for item in items)

        def before(items):
            return [old_price(item) for item in items]
        //- tests/test_cart.py
        from shop.cart import total
        from shop.price import price

        def test_total():
            assert total([]) == 0

        def test_price():
            assert price(None)
        //- docs/guide.md
        # Guide

        Use `old_price` for last year, and `untouched` never. The price is right.
        //- pyproject.toml
        [project]
        name = \"shop\"
        ",
    );
    repo.git(["branch", "-M", "main"]);
    call(
        &repo,
        &[
            "memory",
            "write",
            "prices",
            "--about",
            "price",
            "--text",
            "Without tax.",
        ],
    )
    .expect(0);
    repo.commit("note");
    repo.git(["checkout", "-q", "-b", "topic"]);
    let text = String::from_utf8(repo.read("src/shop/price.py")).unwrap();
    let text = text
        .replace(
            "def price(item):\n    return item.cost\n",
            "def price(item, date):\n    return item.cost_at(date)\n",
        )
        .replace("def old_price(item):\n    return item.cost * 2\n\n", "")
        .replace("    return price(item) * 0.2", "    return price(item, None) * 0.2");
    repo.write("src/shop/price.py", text);
    repo.write("pyproject.toml", "[project]\nname = \"shop\"\nversion = \"2\"\n");
    repo.commit("date prices");
    repo
}

fn review(repo: &TestRepo, args: &[&str]) -> Value {
    call(repo, &[&["review", "--json"], args].concat()).expect(0).json()
}

fn rows<'a>(answer: &'a Value, kind: &str) -> Vec<&'a Value> {
    let rows = answer["results"].as_array().unwrap().iter();
    rows.filter(|row| row["kind"] == kind).collect()
}

#[test]
fn the_gravest_change_comes_first_with_the_callers_that_did_not_change() {
    let repo = sample();
    // Without a range, it is what differs from the main branch.
    let answer = review(&repo, &[]);
    assert_eq!((&answer["since"], &answer["commits"]), (&json!("main"), &json!(1)));
    assert_eq!(
        answer["definitions"],
        json!([["removed", 1], ["with another signature", 1], ["with another body", 1]])
    );
    let definitions = rows(&answer, "definition");
    let ids: Vec<&str> = definitions.iter().map(|row| row["id"].as_str().unwrap()).collect();
    let place = "src/shop/price.py";
    assert_eq!(
        ids,
        [
            format!("{place}#price"),
            format!("{place}#old_price"),
            format!("{place}#tax")
        ]
    );
    let unchanged = |row: &Value| -> Vec<String> {
        let sites = row["unchanged"].as_array().unwrap().iter();
        sites
            .map(|site| site["name"].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    assert_eq!(unchanged(definitions[0]), ["total", "test_price"]);
    assert_eq!(
        (&definitions[0]["callers"], &definitions[0]["tests"]),
        (&json!(3), &json!(1))
    );
    assert_eq!(definitions[0]["notes"], json!(["prices"]));
    assert_eq!(definitions[0]["documents"], json!([]), "the word in prose is no name");
    assert_eq!(unchanged(definitions[1]), ["before"]);
    assert_eq!(
        definitions[1]["documents"],
        json!([{"path": "docs/guide.md", "line": 3}])
    );
    assert_eq!(answer["impact"]["tests"], 2);
    assert_eq!(
        answer["commands"],
        json!(["pytest tests/test_cart.py::test_price tests/test_cart.py::test_total"])
    );
    let others: Vec<&Value> = rows(&answer, "file").into_iter().map(|row| &row["path"]).collect();
    assert_eq!(others, ["pyproject.toml"]);
    assert_eq!(rows(&answer, "owner").len(), 1);
}

#[test]
fn the_text_says_what_is_not_known() {
    let repo = sample();
    let text = call(&repo, &["review", "main..topic"]).expect(0).text();
    assert!(
        text.starts_with("review main..topic: 1 commit, 2 files, +4 -6\n"),
        "{text}"
    );
    assert!(
        text.contains(
            "\nnot known: what the changes outside of definitions in 1 file do; 1 unresolved reference not followed\n"
        ),
        "{text}"
    );
    assert!(
        text.contains("    unchanged caller src/shop/cart.py:4 total\n"),
        "{text}"
    );
    assert!(text.contains("    note prices may no longer hold\n"), "{text}");
    assert!(!text.contains("@@"), "{text}");
    let with_lines = call(&repo, &["review", "main..topic", "--diff"]).expect(0).text();
    assert!(with_lines.contains("\n-def price(item):\n"), "{with_lines}");
    assert!(with_lines.contains("\n+def price(item, date):\n"), "{with_lines}");
    assert!(
        call(&repo, &["review", "HEAD"])
            .expect(1)
            .text()
            .contains(": nothing changed")
    );
}

/// Callers whose text around the call changed, or that only moved, still have the old arguments.
#[test]
fn callers_count_as_changed_only_where_they_use_it() {
    let before = "def f(a): return a\n";
    let repo = TestRepo::new("//- lib.py\n");
    let callers = |extra: &str| {
        format!(
            "from lib import f\n\ndef moved(): return f(1)\n\ndef documented():\n    return f(2)\n\ndef other():\n    x = {extra}\n    \
             return f(3)\n\ndef adapted(): return f(4)\n"
        )
    };
    repo.write("lib.py", before);
    repo.write("use.py", callers("1"));
    repo.commit("before");
    let after = callers("2")
        .replace("def moved(): return f(1)\n\n", "")
        .replace("def documented():\n", "def documented():\n    \"\"\"Says why.\"\"\"\n")
        .replace("return f(4)", "return f(4, 5)");
    repo.write("lib.py", "def f(a, b): return a + b\n");
    repo.write("use.py", after);
    repo.write("other.py", "from lib import f\n\ndef moved(): return f(1)\n");
    repo.commit("after");
    let answer = review(&repo, &["HEAD~1..HEAD"]);
    let row = rows(&answer, "definition")[0];
    assert_eq!(row["id"], "lib.py#f");
    let mut unchanged: Vec<&str> = row["unchanged"]
        .as_array()
        .unwrap()
        .iter()
        .map(|site| site["name"].as_str().unwrap())
        .collect();
    unchanged.sort_unstable();
    assert_eq!(unchanged, ["documented", "moved", "other"]);
}

#[test]
fn possible_callers_of_what_is_gone_are_named() {
    let repo = TestRepo::new(
        "
        //- lib.py
        class Gone:
            def defenestrate(self): pass
        def kept(): return 1
        //- use.py
        def use(x):
            x.defenestrate()
        ",
    );
    repo.write("lib.py", "def kept(): return 2\n");
    let answer = review(&repo, &["HEAD"]);
    let definitions = rows(&answer, "definition");
    assert_eq!(definitions[0]["id"], "lib.py#Gone.defenestrate", "{answer}");
    assert_eq!(definitions[0]["unchanged"][0]["path"], "use.py");
    assert_eq!(definitions[0]["possible_callers"], 1);
    assert!(answer["unknown"].to_string().contains("1 use may mean"), "{answer}");
}

#[test]
fn tests_run_in_the_folder_of_their_project() {
    let repo = TestRepo::new(
        "
        //- sub dir/go.mod
        module example.org/m
        //- sub dir/a.go
        package m
        func A() int { return 1 }
        //- sub dir/a_test.go
        package m
        import \"testing\"
        func TestA(t *testing.T) { A() }
        func BenchmarkA(b *testing.B) { A() }
        //- web/package.json
        {\"devDependencies\": {\"vitest\": \"1\"}}
        //- web/a.js
        export function a() { return 1 }
        //- web/a.test.js
        import { a } from './a.js'
        test('a', () => { a() })
        ",
    );
    repo.write("sub dir/a.go", "package m\nfunc A() int { return 2 }\n");
    repo.write("web/a.js", "export function a() { return 2 }\n");
    let answer = review(&repo, &["HEAD"]);
    assert_eq!(
        answer["commands"],
        json!([
            "(cd 'sub dir' && go test . -run '^(TestA)$')",
            "(cd web && npx vitest run a.test.js)"
        ])
    );
}

#[test]
fn comments_fit_and_pages_stay_small() {
    let repo = TestRepo::new("//- a.py\nx = 1\n");
    let body = |n: usize| {
        // Lines that are longer on the average make a file minified.
        let text = if n == 0 {
            format!("{}\n", "y".repeat(5_000)).repeat(14)
        } else {
            "y".repeat(n % 7 * 250)
        };
        format!("def f{n}():\n    return '''{text}'''\n")
    };
    repo.write("a.py", (0..400).map(body).collect::<String>());
    let tests = |n: usize| format!("def test_{n}():\n    f{n}()\n");
    repo.write(
        "test_a.py",
        format!("from a import *\n{}", (0..400).map(tests).collect::<String>()),
    );
    let markdown = call(&repo, &["review", "HEAD", "--markdown"]).expect(0).text();
    assert!(markdown.len() <= 60_000, "{}", markdown.len());
    // Long items do not hide the ones after them.
    assert!(markdown.matches("- **added** `f").count() > 100, "{markdown}");
    let page = call(&repo, &["review", "HEAD", "--html", "-"]).expect(0).text();
    assert!(page.len() <= 3_000_000, "{}", page.len());
}

/// Nothing calls it, but the package cannot be imported any more.
#[test]
fn imports_of_what_is_gone_are_unchanged_callers() {
    let repo = TestRepo::new(
        "
        //- p/__init__.py
        from .a import gone, stay
        //- p/a.py
        def gone(): return 1
        def stay(): return 2
        //- test_p.py
        import p
        def test_stay(): assert p.stay()
        ",
    );
    repo.write("p/a.py", "def stay(): return 2\n");
    let answer = review(&repo, &["HEAD"]);
    let definitions = rows(&answer, "definition");
    assert_eq!(definitions[0]["unchanged"][0]["path"], "p/__init__.py");
    assert_eq!(answer["unknown"], json!(["1 unresolved reference not followed"]));
    let called = call(&repo, &["graph", "impact", "HEAD..WORKTREE", "--ci"]).expect(3);
    assert!(
        called.stderr.contains("p/__init__.py:1 still imports p/a.py#gone"),
        "{}",
        called.stderr
    );
    repo.write("p/__init__.py", "from .a import stay\n");
    let answer = review(&repo, &["HEAD"]);
    assert_eq!(rows(&answer, "definition")[0]["unchanged"], json!([]));
}

#[test]
fn definitions_that_go_with_the_one_around_them_are_counted() {
    let repo = TestRepo::new("//- a.py\ndef keep(): pass\n");
    repo.write("b.py", "class A:\n    def f(self): pass\n    def g(self): pass\n");
    repo.commit("add A");
    let answer = review(&repo, &["HEAD~1..HEAD"]);
    let definitions = rows(&answer, "definition");
    assert_eq!(definitions.len(), 1);
    assert_eq!(
        (&definitions[0]["id"], &definitions[0]["inner"]),
        (&json!("b.py#A"), &json!(2))
    );
    assert_eq!(answer["definitions"], json!([["added", 3]]));
}

#[test]
fn files_that_usually_change_together_are_missed() {
    let repo = TestRepo::new("//- a.py\nx = 0\n//- b.py\ny = 0\n//- c.py\nz = 0\n");
    for number in 1..=10 {
        repo.write("a.py", format!("x = {number}\n"));
        repo.write("b.py", format!("y = {number}\n"));
        repo.commit("both");
    }
    repo.write("a.py", "x = 99\n");
    let answer = review(&repo, &["HEAD"]);
    let missed = rows(&answer, "together");
    assert_eq!(missed.len(), 1);
    assert_eq!(
        (&missed[0]["path"], &missed[0]["with"]),
        (&json!("b.py"), &json!("a.py"))
    );
    repo.write("b.py", "y = 99\n");
    assert!(rows(&review(&repo, &["HEAD"]), "together").is_empty());
}

#[test]
fn text_of_the_repository_is_no_markup() {
    let repo = TestRepo::new("//- a.py\ndef keep(): pass\n");
    let fence = "```\n</details><script>alert(2)</script>\n[x](javascript:alert(3)) @someone\n";
    repo.write(HOSTILE, format!("def f():\n    '''{fence}'''\n    return 1\n"));
    repo.commit("add");
    let markdown = call(&repo, &["review", "HEAD~1..HEAD", "--markdown"]).expect(0).text();
    assert!(markdown.starts_with("<!-- codescout review -->\n"), "{markdown}");
    // A line inside of a fence, and a name inside of a code span.
    assert!(markdown.contains("  ````diff\n"), "{markdown}");
    assert!(
        markdown.contains("``` `<script>") || markdown.contains("`` `<script>"),
        "{markdown}"
    );
    assert!(!markdown.contains('\u{202e}'), "{markdown}");
    let page = call(&repo, &["review", "HEAD~1..HEAD", "--html", "-"]).expect(0).text();
    assert!(!page.contains("<script") && !page.contains('\u{202e}'), "{page}");
    assert!(page.contains("&lt;script&gt;alert(2)"), "{page}");
    let linked = call(
        &repo,
        &[
            "review",
            "HEAD~1..HEAD",
            "--html",
            "-",
            "--link-base",
            "https://example.org/o/n/blob/main/",
        ],
    );
    let linked = linked.expect(0).text();
    assert!(
        linked.contains("https://example.org/o/n/blob/main/%60%3Cscript%3Ealert%281%29%3C%21--%E2%80%AE.py#L1"),
        "{linked}"
    );
    let refused = call(&repo, &["review", "--html", "-", "--link-base", "javascript:alert(1)"]);
    assert!(refused.expect(2).stderr.contains("not a web address"));
}

#[test]
fn the_page_is_the_same_in_each_clone() {
    let repo = sample();
    let clone = tempfile::tempdir().unwrap();
    let at = clone.path().join("other");
    repo.git(["clone", "-q", ".", at.to_str().unwrap()]);
    let range = format!(
        "{}..{}",
        repo.git(["rev-parse", "main"]).trim(),
        repo.git(["rev-parse", "topic"]).trim()
    );
    let page = |repo: &std::path::Path| {
        let args = ["--repo", repo.to_str().unwrap(), "review", &range, "--html", "-"];
        super::call_in(repo, &args, b"").expect(0).text()
    };
    let (one, other) = (page(repo.root()), page(&at));
    assert_eq!(one, other);
    assert!(!one.contains(repo.root().to_str().unwrap()));
    assert!(one.contains("use it and did not change"), "the picture is drawn");
}

#[test]
fn odd_ranges_are_answered_or_refused() {
    let repo = TestRepo::new("//- a.bin\n\0\0\n//- a.py\ndef f(): pass\n");
    repo.write("a.bin", "\0\u{1}\n");
    repo.commit("binary only");
    let answer = review(&repo, &["HEAD~1..HEAD"]);
    assert_eq!((&answer["definitions"], &answer["files"]), (&json!([]), &json!(1)));
    assert_eq!(
        answer["unknown"],
        json!(["what the changes outside of definitions in 1 file do"])
    );
    repo.git(["checkout", "-q", "--orphan", "lonely"]);
    repo.commit("other root");
    let refused = call(&repo, &["review", "HEAD~1...HEAD"]).expect(2).stderr;
    assert!(refused.contains("HEAD~1"), "{refused}");
    let refused = call(&repo, &["review", "nowhere..HEAD"]).expect(2).stderr;
    assert!(refused.contains("nowhere"), "{refused}");
    let main = repo.git(["rev-list", "--all"]).lines().last().unwrap().to_owned();
    let refused = call(&repo, &["review", &format!("{main}...HEAD")]).expect(2).stderr;
    assert!(refused.contains("no common ancestor"), "{refused}");
    let empty = TestRepo::new("");
    call(&empty, &["review"]).expect(1);
}

#[test]
fn a_page_is_not_written_through_a_link() {
    let repo = TestRepo::new("//- a.py\ndef f(): pass\n");
    let outside = repo.beside("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("victim"), "kept").unwrap();
    std::os::unix::fs::symlink(outside.join("victim"), repo.path("review.html")).unwrap();
    std::os::unix::fs::symlink(&outside, repo.path("pages")).unwrap();
    repo.write("a.py", "def f(): return 1\n");
    for file in ["review.html", "pages/new.html"] {
        let refused = call(&repo, &["review", "--html", file]).expect(2);
        assert!(refused.stderr.contains("symbolic link"), "{}", refused.stderr);
    }
    assert_eq!(std::fs::read(outside.join("victim")).unwrap(), b"kept");
    assert!(!outside.join("new.html").exists());
    call(&repo, &["review", "--html", "page.html"]).expect(0);
    assert!(repo.path("page.html").exists());
}

/// What is committed as a link leads nowhere; the file that the user names is replaced as it was.
#[test]
fn a_page_is_written_where_the_user_says_and_through_no_link() {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    let repo = sample();
    let write = |file: &str| call(&repo, &["review", "main..topic", "--html", file]);
    symlink(".git", repo.path("docs-link")).unwrap();
    symlink("src", repo.path("alias")).unwrap();
    fs::create_dir_all(repo.path("src")).unwrap();
    write("docs-link/config").expect(2);
    assert!(!fs::read_to_string(repo.path(".git/config")).unwrap().contains("<html"));
    write("alias/page.html").expect(0);
    assert!(repo.path("src/page.html").exists());
    fs::hard_link(repo.path(".git/config"), repo.path("report.html")).unwrap();
    write("report.html").expect(0);
    assert!(!fs::read_to_string(repo.path(".git/config")).unwrap().contains("<html"));
    fs::set_permissions(repo.path("report.html"), fs::Permissions::from_mode(0o600)).unwrap();
    write("report.html").expect(0);
    assert_eq!(
        fs::metadata(repo.path("report.html")).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let pipe = repo.path("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    let reader = std::thread::spawn(move || fs::read_to_string(pipe).unwrap());
    write("pipe").expect(0);
    assert!(reader.join().unwrap().contains("<html"));
}
