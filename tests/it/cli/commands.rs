use serde_json::{Value, json};

use super::{call, project};
use crate::support::TestRepo;

fn strings(list: &Value, key: &str) -> Vec<String> {
    let items = list.as_array().unwrap().iter();
    items.map(|item| item[key].as_str().unwrap().to_owned()).collect()
}

#[test]
fn grep_finds_every_line_also_of_files_that_are_left_out() {
    let repo = project();
    let text = call(&repo, &["grep", "-i", "todo"]).expect(0).text();
    let expected = "Cargo.lock:1:# locked todo\nsrc/main.rs:4:    Parser.parse(\"a TODO b\");\nvendor/lib.rs:1:fn vendored_todo() {}\n";
    assert_eq!(text, expected);
    assert_eq!(
        call(&repo, &["grep", "-l", "-w", "TODO"]).expect(0).text(),
        "src/main.rs\n"
    );
    assert_eq!(
        call(&repo, &["grep", "-c", "lex", "-p", "src"]).expect(0).text(),
        "src/lexer.rs:2\nsrc/parser.rs:2\n"
    );
    assert_eq!(call(&repo, &["grep", "nowhere at all"]).expect(1).text(), "");
    let around = call(&repo, &["grep", "-C1", "-F", "Vec::new()"]).expect(0).text();
    let expected = "src/lexer.rs-5-    // lex is not recursive\nsrc/lexer.rs:6:    Vec::new()\nsrc/lexer.rs-7-}\n";
    assert_eq!(around, expected);
}

#[test]
fn grep_tells_of_the_revision_that_was_asked_for() {
    let repo = project();
    repo.write("src/main.rs", "fn main() { changed() }\n");
    repo.write("new.txt", "changed too\n");
    let now = call(&repo, &["grep", "changed", "--json"]).expect(0).json();
    assert_eq!(strings(&now["results"], "path"), ["new.txt", "src/main.rs"]);
    assert_eq!((&now["ref"], &now["dirty_files"]), (&json!("WORKTREE"), &json!(2)));
    let line = &now["results"][1]["lines"][0];
    assert_eq!((&line["line"], &line["spans"]), (&json!(1), &json!([[12, 19]])));
    call(&repo, &["grep", "changed", "--ref", "v1"]).expect(1);
}

#[test]
fn symbol_gives_every_definition() {
    let repo = project();
    let answer = call(&repo, &["symbol", "parse", "--json", "--refs"]).expect(0).json();
    let ids = [&answer["results"][0]["id"], &answer["results"][1]["id"]];
    assert_eq!(ids, ["src/parser.rs#Parser.parse", "src/parser.rs#parse"]);
    assert_eq!(answer["results"][0]["doc"], json!("/// Parses one query."));
    assert_eq!(answer["results"][0]["start_line"], json!(7));
    assert_eq!(answer["results"][0]["name_line"], json!(8));
    assert_eq!(answer["references"], json!({"syntactic": 2, "textual": 0, "files": 2}));
    assert_eq!(answer["total"], json!(4));
    let lines = &answer["results"].as_array().unwrap()[2..];
    let found: Vec<(&str, &str)> = lines
        .iter()
        .map(|line| (line["path"].as_str().unwrap(), line["kind"].as_str().unwrap()))
        .collect();
    assert_eq!(found, [("src/main.rs", "call"), ("tests/parser_test.rs", "call")]);

    let one = call(&repo, &["symbol", "Parser::parse", "--body"]).expect(0).text();
    assert!(
        one.starts_with("src/parser.rs:8 method Parser.parse 7-10\n     7     /// Parses one query.\n"),
        "{one}"
    );
    let types = call(&repo, &["symbol", "parser", "--kind", "struct"]).expect(0);
    assert_eq!(
        types.text(),
        "src/parser.rs:4 struct Parser 3-4\n    pub struct Parser\n    1 reference in 1 file: src/main.rs:4 main; 1 candidate\n"
    );
    assert!(types.stderr.contains("differ only in spelling"), "{}", types.stderr);
    let by_id = call(&repo, &["symbol", "src/parser.rs#parse", "--json"])
        .expect(0)
        .json();
    assert_eq!(by_id["total"], json!(1));
    let same = call(&repo, &["symbol", "--id", "src/parser.rs#parse", "--json"])
        .expect(0)
        .json();
    assert_eq!(same["results"], by_id["results"]);
    let changes = call(&repo, &["symbol", "Parser.parse", "--history", "--json"])
        .expect(0)
        .json();
    assert_eq!(changes["total_changes"], json!(1));
    assert_eq!(
        changes["results"][1]["symbol"]["id"],
        json!("src/parser.rs#Parser.parse")
    );
}

#[test]
fn symbol_knows_what_stands_at_a_place() {
    let repo = project();
    let at = |place: &str| {
        let answer = call(&repo, &["symbol", "--at", place, "--json"]).expect(0).json();
        (
            answer["found_by"].as_str().unwrap().to_owned(),
            strings(&answer["results"], "id"),
        )
    };
    assert_eq!(
        at("src/parser.rs:9:9"),
        ("reference".to_owned(), vec!["src/lexer.rs#lex".to_owned()])
    );
    assert_eq!(
        at("src/parser.rs:8"),
        ("definition".to_owned(), vec!["src/parser.rs#Parser.parse".to_owned()])
    );
    assert_eq!(at("src/lexer.rs:5:30").0, "enclosing");
}

#[test]
fn symbol_that_is_nowhere_is_not_found_but_near() {
    let repo = project();
    let answer = call(&repo, &["symbol", "prase", "--json"]).expect(1).json();
    assert_eq!(answer["near"], json!(["parse", "Parser"]));
    let listed = call(&repo, &["symbol", "pars", "--prefix", "--json"]).expect(0).json();
    assert_eq!(listed["found_by"], json!("prefix"));
    let parts = call(&repo, &["symbol", "arse", "--prefix", "--json", "--tests", "no"])
        .expect(0)
        .json();
    assert_eq!(
        (
            &parts["found_by"],
            strings(&parts["results"], "name").contains(&"Parser".to_owned())
        ),
        (&json!("part"), true)
    );
}

#[test]
fn outline_shows_the_whole_a_folder_and_a_file() {
    let repo = project();
    let summary = call(&repo, &["outline", "--json"]).expect(0).json();
    let summary = &summary["summary"];
    assert_eq!(summary["files"], json!(8));
    assert_eq!(summary["entry_points"], json!(["src/main.rs"]));
    assert_eq!(summary["build_files"], json!(["Cargo.toml"]));
    assert_eq!(summary["test_folders"], json!(["tests"]));
    assert_eq!(strings(&summary["languages"], "name")[0], "rust");

    let tree = call(&repo, &["outline", "src", "--json"]).expect(0).json();
    assert_eq!(
        strings(&tree["results"], "path"),
        ["src", "src/lexer.rs", "src/main.rs", "src/parser.rs"]
    );
    let structs = call(&repo, &["outline", "src", "--kind", "struct"]).expect(0).text();
    assert_eq!(
        structs,
        "src/lexer.rs\n     1 pub struct Token\nsrc/parser.rs\n     4 pub struct Parser\n"
    );
    call(&repo, &["outline", "--view", "tree", "--kind", "struct"]).expect(2);
    let symbols = call(&repo, &["outline", "src/parser.rs"]).expect(0).text();
    let expected = "src/parser.rs\n     4 pub struct Parser\n     6 impl Parser\n     8   pub fn parse(&self, text: &str) -> usize\n    13 pub fn parse()\n";
    assert_eq!(symbols, expected);
    let headings = call(&repo, &["outline", "--view", "headings"]).expect(0).text();
    assert_eq!(
        headings,
        "README.md\n     1   Sample\n     5     Installation\n     9   Licence\n"
    );
    let imports = call(&repo, &["outline", "src/main.rs", "--view", "imports", "--json"])
        .expect(0)
        .json();
    assert_eq!(imports["results"][1]["module"], json!("parser"));
}

#[test]
fn the_map_fits_its_budget_and_does_not_change() {
    let repo = project();
    let map = |tokens: &str| {
        call(&repo, &["outline", "--view", "map", "--max-tokens", tokens])
            .expect(0)
            .text()
    };
    let whole = map("1000");
    assert!(
        whole.contains("pub struct Parser") && whole.contains("pub fn lex"),
        "{whole}"
    );
    assert!(!whole.contains("parse_is_called"), "{whole}");
    let small = map("12");
    assert!(small.len() <= 48 && small.contains("pub struct"), "{small}");
    assert_eq!(map("1000"), whole);
}

#[test]
fn config_shows_origins_and_sets() {
    let repo = project();
    call(&repo, &["config", "set", "search.limit", "3"]).expect(0);
    assert_eq!(call(&repo, &["config", "get", "search.limit"]).expect(0).text(), "3\n");
    let all = call(&repo, &["config", "--json"]).expect(0).json();
    let limit = all["results"]
        .as_array()
        .unwrap()
        .iter()
        .find(|s| s["key"] == json!("search.limit"))
        .unwrap();
    assert!(
        limit["origin"].as_str().unwrap().ends_with(".codescout/config.toml"),
        "{limit}"
    );
    let wrong = call(&repo, &["config", "set", "search.limt", "3"]).expect(2);
    assert!(
        wrong.stderr.contains("hint: did you mean search.limit?"),
        "{}",
        wrong.stderr
    );
    call(&repo, &["config", "set", "search.limit", "many"]).expect(2);
    let gone = call(&repo, &["config", "unset", "search.limit", "--json"])
        .expect(0)
        .json();
    assert_eq!(
        (&gone["results"][0]["value"], &gone["results"][0]["origin"]),
        (&json!("10"), &json!("default"))
    );
    call(&repo, &["config", "unset", "search.limit"]).expect(1);
    call(&repo, &["config", "unset", "search.limt"]).expect(2);
    assert_eq!(repo.git(["status", "--porcelain"]), "");
}

#[test]
fn status_tells_coverage_once_there_is_an_index() {
    let repo = project();
    let before = call(&repo, &["status", "--json"]).expect(0).json();
    assert_eq!((&before["index"], &before["coverage"]), (&json!("none"), &Value::Null));
    call(&repo, &["index"]).expect(0);
    let after = call(&repo, &["status", "--json"]).expect(0).json();
    assert_eq!(after["index"], json!("up_to_date"));
    assert_eq!(after["coverage"]["skipped"], json!({"lock_file": 1, "vendored": 1}));
    assert_eq!(after["languages"][0], json!({"name": "rust", "files": 4}));
    let text = call(&repo, &["status"]).expect(0).text();
    assert!(
        text.contains("files       8, 6 of them searched by content; not indexed: 1 lock_file, 1 vendored\n"),
        "{text}"
    );
}

#[test]
fn search_finds_by_words_and_by_expression() {
    let repo = project();
    let answer = call(&repo, &["search", "cuts text into tokens", "--json"])
        .expect(0)
        .json();
    assert_eq!(answer["results"][0]["path"], json!("src/lexer.rs"));
    let lines = call(&repo, &["search", "--mode", "regex", r"^pub fn \w+", "--json"])
        .expect(0)
        .json();
    assert_eq!(strings(&lines["results"], "path"), ["src/lexer.rs", "src/parser.rs"]);
    assert_eq!(lines["results"][1]["kind"], json!("line"));
}

#[test]
fn what_an_order_of_one_leg_goes_by_is_explained() {
    let repo = project();
    for (mode, feature, rank) in [
        ("semantic", "cosine", "rank_dense"),
        ("keyword", "bm25", "rank_lexical"),
    ] {
        let args = ["search", "parse the query", "--mode", mode, "--explain", "--json"];
        let found = call(&repo, &args).expect(0).json();
        let features = &found["results"][0]["features"];
        assert_eq!(
            (&features[feature], &features[rank]),
            (&json!(1.0), &json!(1.0)),
            "{found}"
        );
        let second = found["results"][1]["features"][feature].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&second), "{found}");
    }
}

#[test]
fn text_in_quotes_is_found_as_it_stands() {
    let repo = project();
    let many = "/// Is lex recursive or not? Not recursive, lex is not: lexers are not recursive.\npub fn not_recursive_lex() {}\n";
    repo.write("src/many.rs", many);
    let search = |args: &[&str], code: i32| call(&repo, &[&["search", "--json"], args].concat()).expect(code).json();
    let first = |answer: &serde_json::Value| {
        let result = &answer["results"][0];
        format!("{}:{}", result["path"].as_str().unwrap(), result["start_line"])
    };
    for mode in ["auto", "keyword"] {
        let answer = search(&["--mode", mode, r#"why "lex is not recursive""#], 0);
        assert_eq!(first(&answer), "src/lexer.rs:5", "{mode}");
        let snippet = answer["results"][0]["snippet"].as_str().unwrap();
        assert!(snippet.starts_with("    // lex is not recursive\n"), "{snippet}");
    }
    assert_eq!(first(&search(&["Vec<Token>"], 0)), "src/lexer.rs:4");
    assert_eq!(first(&search(&[r#""A TODO B""#], 0)), "src/main.rs:4");
    let answer = search(&[r#""is never written" lex"#], 0);
    assert_eq!(answer["absent"], json!(["is never written"]));
    assert!(answer["results"].as_array().is_some_and(|results| !results.is_empty()));
    assert_eq!(search(&["lex"], 0).get("absent"), None);
}

#[test]
fn eval_reports_a_missing_clone_and_measures_the_others() {
    let repo = project();
    let head = repo.rev_parse("HEAD");
    let judged = |name: &str, id: &str| {
        let relevant = json!([{"path": "src/lexer.rs", "start": 1, "end": 7, "grade": 2}]);
        let query = json!({"id": id, "category": "symbol", "query": "lex", "relevant": relevant});
        let file = json!({"repository": name, "commit": head, "language": "rust", "root": ".", "queries": [query]});
        repo.write(format!(".git/judged/{id}.json"), file.to_string());
    };
    judged("Some/Gone", "a-1");
    judged("Some/Project", "b-1");
    judged("Other/Flat", "c-1");
    for clone in [".git/clones/some+project/repo", ".git/clones/FLAT"] {
        repo.git(["clone", "--quiet", ".", clone]);
    }
    let args = [
        "eval",
        "--judgements",
        ".git/judged",
        "--clones",
        ".git/clones",
        "--settings",
        "auto",
    ];
    let partial = call(&repo, &[&args[..], &["--json"]].concat()).expect(1).json();
    assert_eq!(partial["complete"], false);
    assert_eq!(strings(&partial["not_evaluated"], "repository"), ["Some/Gone"]);
    assert_eq!((&partial["queries"], &partial["repositories"]), (&json!(2), &json!(2)));
    let text = call(&repo, &args).expect(1);
    assert!(text.text().contains("partial: skipped Some/Gone"), "{}", text.text());
    assert!(text.stderr.contains("no clone of Some/Gone"), "{}", text.stderr);

    std::fs::remove_dir_all(repo.path(".git/clones")).unwrap();
    std::fs::create_dir(repo.path(".git/clones")).unwrap();
    call(&repo, &args).expect(2);
    repo.git(["clone", "--quiet", ".", ".git/clones/gone"]);
    std::fs::remove_file(repo.path(".git/judged/b-1.json")).unwrap();
    std::fs::remove_file(repo.path(".git/judged/c-1.json")).unwrap();
    call(&repo, &args).expect(0);
}

#[test]
fn the_map_counts_mentions_that_can_mean_the_definition() {
    let repo = TestRepo::new(
        "
        //- app/engine.py
        class Engine:
            def start(self):
                pass
        //- app/format.py
        def format(text):
            return text
        //- examples/blog.py
        def update():
            pass
        //- web/filter.js
        function filter() {}
        ",
    );
    for number in 0..6 {
        let imports = if number < 3 {
            "from app.engine import Engine\n"
        } else {
            ""
        };
        let body = "def use(x):\n    x.update()\n    filter(x)\n    return format(Engine)\n";
        repo.write(format!("lib/part_{number}.py"), format!("{imports}{body}"));
    }
    repo.commit("start");
    let map = call(&repo, &["outline", "--view", "map", "--json"]).expect(0).json();
    assert_eq!(map["results"][0]["path"], "app/engine.py", "{map}");
    let small = call(&repo, &["outline", "--view", "map", "--max-tokens", "12"])
        .expect(0)
        .text();
    assert!(small.contains("class Engine") && !small.contains("update"), "{small}");
}

#[test]
fn a_selection_without_files_is_reported() {
    let repo = project();
    let why = |args: &[&str]| call(&repo, args).expect(1).stderr;
    for (command, options, selection) in [
        (&["grep", "lex"][..], &["-g", "*.xyz"][..], "path *.xyz"),
        (&["grep", "lex"], &["-t", "elixir"], "lang elixir"),
        (&["grep", "lex"], &["nowhere", "-g", "!src"], "path !src, nowhere"),
        (&["search", "lex"], &["--lang", "elixir"], "lang elixir"),
        (
            &["search", "lex"],
            &["-p", "src", "--tests", "only"],
            "path src and tests only",
        ),
        (&["search", "--mode", "regex", "lex"], &["-p", "*.xyz"], "path *.xyz"),
        (&["symbol", "lex"], &["--lang", "elixir"], "lang elixir"),
        (&["outline"], &["--lang", "elixir"], "lang elixir"),
        (&["outline", "--view", "map"], &["-p", "*.xyz"], "path *.xyz"),
    ] {
        let args = [command, options].concat();
        let stderr = why(&args);
        let said = format!("no file of WORKTREE matches {selection}");
        assert!(stderr.contains(&said), "{args:?}: {stderr}");
    }
    assert_eq!(why(&["grep", "lex", "-g", "*.xyz", "--quiet"]), "");
    assert_eq!(why(&["grep", "nothing of the kind", "-g", "*.rs"]), "");
}
