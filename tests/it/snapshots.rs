//! Records the output of every operation on one repository: on the command line and over MCP, as text and as JSON.
//!
//! Review a changed snapshot before accepting it: `INSTA_UPDATE=always cargo test snapshots`, then `git diff`.

use serde_json::{Value, json};

use crate::cli::call_in;
use crate::mcp::{Answer, Client};
use crate::support::TestRepo;

/// A query in the form of each front end.
struct Case {
    cli: &'static [&'static str],
    mcp: Value,
}

fn case(cli: &'static [&'static str], mcp: Value) -> Case {
    Case { cli, mcp }
}

/// Creates a project with a renamed file, edited definitions, a deleted definition and an uncommitted edit.
fn project() -> TestRepo {
    let repo = TestRepo::new(
        "
        //- src/lexer.rs
        /// A piece of text.
        pub struct Token;

        /// Cuts text into tokens.
        pub fn lex(text: &str) -> Vec<Token> {
            Vec::new()
        }

        fn old_helper() {}
        //- src/parse.rs
        use crate::lexer::Token;

        /// Turns text into queries.
        pub struct Parser;

        impl Parser {
            /// Parses one query.
            pub fn parse(&self, text: &str) -> usize {
                lex(text).len()
            }
        }
        //- tests/parser_test.rs
        #[test]
        fn parse_is_called() {
            assert_eq!(Parser.parse(\"\"), 0);
        }
        //- app/session.py
        class Session:
            def login(self, user):
                return self.open(user)

            def open(self, user):
                return user
        //- settings.json
        {\"retries\": 3, \"server\": {\"port\": 80}}
        //- README.md
        # Sample

        Words about parsing.

        ## Use

        Call `parse`.
        ",
    );
    repo.rename("src/parse.rs", "src/parser.rs");
    repo.commit("move the parser");
    let parser = String::from_utf8(repo.read("src/parser.rs")).unwrap();
    repo.write(
        "src/parser.rs",
        parser.replace("lex(text).len()", "lex(text.trim()).len()"),
    );
    let lexer = String::from_utf8(repo.read("src/lexer.rs")).unwrap();
    repo.write("src/lexer.rs", lexer.replace("\nfn old_helper() {}\n", ""));
    repo.commit("trim text before parsing");
    repo.tag("v1");
    let session = String::from_utf8(repo.read("app/session.py")).unwrap();
    repo.write("app/session.py", session.replace("return user", "return user.strip()"));
    call_in(repo.root(), &["index", "--history", "--quiet"], b"").expect(0);
    repo
}

/// Replaces values that differ between runs.
fn settled(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                match &*value {
                    Value::Number(_) if name.ends_with("_ms") || name.contains("bytes") => *value = json!(0),
                    Value::Object(sizes) if name == "bytes" => *value = json!(sizes.keys().collect::<Vec<_>>()),
                    Value::Number(number) if number.is_f64() => {
                        *value = json!(format!("{:.2}", number.as_f64().unwrap()));
                    }
                    _ => settled(value),
                }
            }
        }
        Value::Array(all) => all.iter_mut().for_each(settled),
        _ => {}
    }
}

fn pretty(repo: &TestRepo, mut value: Value) -> String {
    settled(&mut value);
    plain(repo, &serde_json::to_string_pretty(&value).unwrap())
}

/// Replaces the repository's folder in a text.
fn plain(repo: &TestRepo, text: &str) -> String {
    text.replace(repo.root().to_str().unwrap(), "[REPO]")
}

fn check(command: &str, tool: &str, cases: Vec<Case>) {
    let repo = project();
    let mut client = Client::start(repo.root(), &["--bodies", "both", "--profile", "write"]);
    client.initialize("test");
    let mut sections = [const { String::new() }; 4];
    for Case { cli, mcp } in cases {
        let args = [&[command], cli].concat();
        let title = format!("$ codescout {}\n", args.join(" "));
        let text = call_in(repo.root(), &args, b"");
        let output = format!("{}{}", text.text(), text.stderr);
        sections[0] += &format!("{title}{}exit code {}\n\n", plain(&repo, &output), text.code);
        let facts = call_in(repo.root(), &[&args[..], &["--json"]].concat(), b"");
        sections[1] += &format!("{title}{}\n\n", pretty(&repo, facts.json()));
        let title = format!("{tool} {mcp}\n");
        let Answer { text, facts } = client.call(tool, mcp);
        sections[2] += &format!("{title}{}\n\n", plain(&repo, &text));
        sections[3] += &format!("{title}{}\n\n", pretty(&repo, facts));
    }
    for (form, text) in ["cli_text", "cli_json", "mcp_text", "mcp_json"]
        .into_iter()
        .zip(sections)
    {
        insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
            insta::assert_snapshot!(format!("{command}_{form}"), text);
        });
    }
}

#[test]
fn search() {
    check(
        "search",
        "search",
        vec![
            case(&["parse"], json!({"query": "parse"})),
            case(
                &["how is text cut into tokens", "-n", "2", "--ref", "v1"],
                json!({"query": "how is text cut into tokens", "limit": 2, "ref": "v1"}),
            ),
            case(
                &["--mode", "regex", "fn \\w+"],
                json!({"mode": "regex", "query": "fn \\w+"}),
            ),
            case(
                &["--in", "commits", "parser"],
                json!({"in": "commits", "query": "parser"}),
            ),
            case(
                &["--in", "diffs", "old_helper"],
                json!({"in": "diffs", "query": "old_helper"}),
            ),
            case(
                &["--all-history", "old helper"],
                json!({"all_history": true, "query": "old helper"}),
            ),
            case(
                &["--kind", "struct", "token parser"],
                json!({"kind": "struct", "query": "token parser"}),
            ),
            case(
                &["--in", "commits", "--until", "2020-01-01", "parser"],
                json!({"in": "commits", "until": "2020-01-01", "query": "parser"}),
            ),
            case(&["nothingofthatkind"], json!({"query": "nothingofthatkind"})),
        ],
    );
}

#[test]
fn symbol() {
    check(
        "symbol",
        "symbol",
        vec![
            case(&["parse"], json!({"name": "parse"})),
            case(
                &["Parser.parse", "--body", "--refs"],
                json!({"name": "Parser.parse", "include": ["body", "refs"]}),
            ),
            case(&["--prefix", "pars"], json!({"name": "pars", "prefix": true})),
            case(
                &["lex", "--history", "--docs"],
                json!({"name": "lex", "include": ["history", "docs"]}),
            ),
            case(
                &["parse", "--refs", "-n", "2"],
                json!({"name": "parse", "include": ["refs"], "limit": 2}),
            ),
            case(
                &["--id", "src/parser.rs#Parser.parze"],
                json!({"id": "src/parser.rs#Parser.parze"}),
            ),
            case(&["parze"], json!({"name": "parze"})),
        ],
    );
}

#[test]
fn graph() {
    check(
        "graph",
        "graph",
        vec![
            case(&["callers", "lex"], json!({"op": "callers", "target": "lex"})),
            case(&["refs", "Token"], json!({"op": "refs", "target": "Token"})),
            case(
                &["callees", "Session.login", "--depth", "2", "--ref", "v1"],
                json!({"op": "callees", "target": "Session.login", "depth": 2, "ref": "v1"}),
            ),
            case(
                &["callers", "open", "--format", "mermaid"],
                json!({"op": "callers", "target": "open", "format": "mermaid"}),
            ),
            case(
                &["path", "Session.login", "Session.open"],
                json!({"op": "path", "target": "Session.login", "to": "Session.open"}),
            ),
            case(&["imports", "src"], json!({"op": "imports", "target": "src"})),
            case(&["stats"], json!({"op": "stats"})),
            case(&["cycles"], json!({"op": "cycles"})),
            case(&["callers", "lexx"], json!({"op": "callers", "target": "lexx"})),
            case(
                &["importers", "src/lexr.rs"],
                json!({"op": "importers", "target": "src/lexr.rs"}),
            ),
        ],
    );
}

#[test]
fn outline() {
    check(
        "outline",
        "outline",
        vec![
            case(&[], json!({})),
            case(&["src/parser.rs"], json!({"at": "src/parser.rs"})),
            case(&["--view", "map"], json!({"view": "map"})),
            case(&["--view", "tree"], json!({"view": "tree"})),
            case(&["README.md"], json!({"at": "README.md"})),
            case(
                &["src", "--kind", "struct", "-n", "3"],
                json!({"at": "src", "kind": "struct", "limit": 3}),
            ),
            case(
                &["--view", "headings", "-p", "*.md"],
                json!({"view": "headings", "path": "*.md"}),
            ),
            case(&["app", "--view", "headings"], json!({"at": "app", "view": "headings"})),
            case(&["--view", "imports"], json!({"view": "imports"})),
            case(&["missing.rs"], json!({"at": "missing.rs"})),
        ],
    );
}

#[test]
fn read() {
    check(
        "read",
        "read",
        vec![
            case(&["src/lexer.rs"], json!({"target": "src/lexer.rs"})),
            case(
                &["app/session.py:2-3", "--ref", "v1"],
                json!({"target": "app/session.py:2-3", "ref": "v1"}),
            ),
            case(
                &["app/session.py", "--symbol", "Session.open"],
                json!({"target": "app/session.py", "symbol": "Session.open"}),
            ),
            case(
                &["settings.json", "--key", "server.port"],
                json!({"target": "settings.json", "key": "server.port"}),
            ),
            case(
                &["README.md", "--heading", "Use"],
                json!({"target": "README.md", "heading": "Use"}),
            ),
            case(&["src/lexer.rs:99"], json!({"target": "src/lexer.rs:99"})),
            case(&["missing.rs"], json!({"target": "missing.rs"})),
        ],
    );
}

#[test]
fn history() {
    check(
        "history",
        "history",
        vec![
            case(&["src/parser.rs"], json!({"target": "src/parser.rs"})),
            case(
                &["src/parser.rs#Parser.parse"],
                json!({"target": "src/parser.rs#Parser.parse"}),
            ),
            case(&["--introduced", "lex"], json!({"op": "introduced", "target": "lex"})),
            case(&["--deleted", "."], json!({"op": "deleted", "target": "."})),
            case(
                &["--last-seen", "old_helper"],
                json!({"op": "last_seen", "target": "old_helper"}),
            ),
            case(
                &["--cochange", "src/lexer.rs", "-n", "1"],
                json!({"op": "cochange", "target": "src/lexer.rs", "limit": 1}),
            ),
            case(
                &["--diff", "lex", "--no-formatting"],
                json!({"detail": "full", "target": "lex", "no_formatting": true}),
            ),
            case(&["missing"], json!({"target": "missing"})),
        ],
    );
}

#[test]
fn blame() {
    check(
        "blame",
        "blame",
        vec![
            case(&["src/parser.rs"], json!({"target": "src/parser.rs"})),
            case(
                &["app/session.py", "--by", "line"],
                json!({"target": "app/session.py", "by": "line"}),
            ),
            case(
                &["src/parser.rs", "--by", "line", "-w", "-M", "-C"],
                json!({"target": "src/parser.rs", "by": "line", "ignore_whitespace": true, "moved": true, "copied": 1}),
            ),
            case(&["src", "--by", "owner"], json!({"target": "src", "by": "owner"})),
            case(&["missing.rs"], json!({"target": "missing.rs"})),
        ],
    );
}

#[test]
fn diff() {
    check(
        "diff",
        "diff",
        vec![
            case(&[], json!({})),
            case(&["HEAD~2..v1"], json!({"from": "HEAD~2..v1"})),
            case(
                &["HEAD~1", "v1", "--by", "text"],
                json!({"from": "HEAD~1", "to": "v1", "by": "text"}),
            ),
            case(
                &["HEAD~1", "v1", "--by", "file"],
                json!({"from": "HEAD~1", "to": "v1", "by": "file"}),
            ),
            case(&["--by", "file"], json!({"level": "file"})),
            case(
                &["HEAD~1", "v1", "--path", "src", "--with", "tests"],
                json!({"from": "HEAD~1", "to": "v1", "path": "src", "with": "tests"}),
            ),
            case(
                &["HEAD~1", "v1", "-n", "1"],
                json!({"from": "HEAD~1", "to": "v1", "limit": 1}),
            ),
            case(&["no-such-ref"], json!({"from": "no-such-ref"})),
        ],
    );
}

#[test]
fn edit() {
    check(
        "edit",
        "edit",
        vec![
            case(
                &["create", "src/new.rs", "--text", "pub fn new() {}\n", "--dry-run"],
                json!({"dry_run": true, "edits": [{"op": "create", "target": "src/new.rs", "text": "pub fn new() {}\n"}]}),
            ),
            case(
                &["remove", "src/lexer.rs#lex", "--expect", "0123456789ab"],
                json!({"edits": [{"op": "remove", "target": "src/lexer.rs#lex", "expect": "0123456789ab"}]}),
            ),
            case(
                &["remove", "src/parser.rs#parze"],
                json!({"edits": [{"op": "remove", "target": "src/parser.rs#parze"}]}),
            ),
            case(
                &["create", "src/new.rs", "--text", "fn ("],
                json!({"edits": [{"op": "create", "target": "src/new.rs", "text": "fn ("}]}),
            ),
        ],
    );
}

#[test]
fn rename() {
    check(
        "rename",
        "rename",
        vec![
            case(
                &["src/lexer.rs#lex", "scan"],
                json!({"target": "src/lexer.rs#lex", "new_name": "scan"}),
            ),
            case(&["lex", "fn"], json!({"target": "lex", "new_name": "fn"})),
            case(&["parze", "x"], json!({"target": "parze", "new_name": "x"})),
        ],
    );
}

#[test]
fn status() {
    check(
        "status",
        "status",
        vec![case(&[], json!({})), case(&["--ref", "v1"], json!({"ref": "v1"}))],
    );
}

#[test]
fn index() {
    check(
        "index",
        "index",
        vec![
            case(&[], json!({})),
            case(&["--ref", "v1"], json!({"refs": ["v1"]})),
            case(&["--ref", "no-such-ref"], json!({"refs": ["no-such-ref"]})),
        ],
    );
}

#[test]
fn verify() {
    check("verify", "index", vec![case(&[], json!({"op": "verify"}))]);
}

#[test]
fn gc() {
    check(
        "gc",
        "index",
        vec![case(&["--dry-run"], json!({"op": "gc", "dry_run": true}))],
    );
}

#[test]
fn grep() {
    let repo = project();
    let mut text = String::new();
    for args in [
        &["grep", "parse"][..],
        &["grep", "-C", "1", "lex\\("],
        &["grep", "-l", "fn"],
        &["grep", "nothing"],
    ] {
        let called = call_in(repo.root(), args, b"");
        text += &format!(
            "$ codescout {}\n{}{}exit code {}\n\n",
            args.join(" "),
            called.text(),
            called.stderr,
            called.code
        );
        let facts = call_in(repo.root(), &[args, &["--json"]].concat(), b"");
        text += &format!("{}\n\n", pretty(&repo, facts.json()));
    }
    insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_snapshot!("grep_cli", text);
    });
}
