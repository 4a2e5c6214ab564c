use serde_json::json;

use super::{call, call_in, project};

#[test]
fn bytes_come_as_they_are() {
    let repo = project();
    let odd = b"\x1b[31mred\r\n\xff\xfe\x00\x7f\n";
    repo.write("odd.bin", odd);
    assert_eq!(call(&repo, &["read", "odd.bin"]).expect(0).stdout, odd);
    let answer = call(&repo, &["read", "odd.bin", "--json"]).expect(0).json();
    assert_eq!(answer["results"][0]["lossy"], json!(true));
    assert!(answer["results"][0]["text"].as_str().unwrap().contains('\u{7f}'));
    assert_eq!(answer["bytes"], json!(odd.len()));
}

#[test]
fn parts_are_found_by_lines_headings_and_names() {
    let repo = project();
    let read = |args: &[&str]| call(&repo, &[&["read"], args].concat()).expect(0).text();
    assert_eq!(read(&["src/lexer.rs:1"]), "pub struct Token;\n");
    assert_eq!(read(&["./src/lexer.rs:6-7"]), "    Vec::new()\n}\n");
    assert_eq!(
        read(&["src/lexer.rs", "--lines", "7-", "--lines", "1"]),
        "}\npub struct Token;\n"
    );
    assert_eq!(
        read(&["README.md", "--heading", "installation"]),
        "## Installation\n\nRun it.\n\n"
    );
    let both = read(&["README.md", "--heading", "Licence", "--heading", "Installation"]);
    assert!(
        both.starts_with("# Licence") && both.contains("## Installation"),
        "{both}"
    );
    assert_eq!(read(&["src/lexer.rs", "--symbol", "Token"]), "pub struct Token;\n");
    assert!(read(&["src/parser.rs#Parser.parse"]).starts_with("    /// Parses one query.\n"));
    let absolute = repo.path("src/lexer.rs").display().to_string();
    assert_eq!(read(&[&format!("{absolute}:1")]), "pub struct Token;\n");
}

#[test]
fn an_old_revision_has_its_own_text() {
    let repo = project();
    repo.write("src/lexer.rs", "now\n");
    repo.commit("change");
    assert_eq!(call(&repo, &["read", "src/lexer.rs"]).expect(0).text(), "now\n");
    let old = call(&repo, &["read", "src/lexer.rs:1", "--ref", "v1", "--json"])
        .expect(0)
        .json();
    assert_eq!(old["results"][0]["text"], json!("pub struct Token;\n"));
    assert_eq!(old["commit"].as_str().unwrap(), repo.rev_parse("v1^{commit}"));
}

#[test]
fn what_is_not_there_is_said_with_a_hint() {
    let repo = project();
    let fails = |args: &[&str], wanted: &[&str]| {
        let called = call(&repo, &[&["read"], args].concat()).expect(2);
        wanted
            .iter()
            .for_each(|wanted| assert!(called.stderr.contains(wanted), "{wanted}: {}", called.stderr));
        assert!(called.stdout.is_empty());
    };
    fails(&["src/lexr.rs"], &["no file", "did you mean src/lexer.rs?"]);
    fails(&["lexer.rs"], &["did you mean src/lexer.rs?"]);
    fails(&["src"], &["is a folder", "codescout outline src"]);
    fails(&["src/lexer.rs:99"], &["(7 lines)"]);
    fails(
        &["README.md", "--heading", "Instalation"],
        &["did you mean Installation?"],
    );
    fails(&["README.md#Installation"], &["did you mean Sample.Installation?"]);
    fails(&["src/parser.rs#Other.parse"], &["did you mean Parser.parse or"]);
    fails(&["src/lexer.rs", "--lines", "x"], &["5-9"]);
    let answer = call(&repo, &["read", "src/lexr.rs", "--json"]).expect(2).json();
    assert!(answer["error"].as_str().unwrap().contains("lexr.rs"));
    assert_eq!(answer["hint"], json!("did you mean src/lexer.rs?"));
}

#[cfg(unix)]
#[test]
fn links_are_not_followed() {
    let repo = project();
    std::fs::write(repo.beside("secret"), "secret").unwrap();
    repo.symlink("../secret", "link");
    for reference in ["WORKTREE", "HEAD"] {
        if reference == "HEAD" {
            repo.commit("link");
        }
        let answer = call(&repo, &["read", "link", "--json", "--ref", reference])
            .expect(0)
            .json();
        assert_eq!(
            (&answer["symlink"], &answer["results"][0]["text"]),
            (&json!(true), &json!("../secret"))
        );
    }
}

#[test]
fn a_file_left_out_for_its_size_is_read_and_searched() {
    let repo = project();
    let big = "needle in hay\n".repeat(100_000);
    repo.write("big.txt", &big);
    assert_eq!(call(&repo, &["read", "big.txt"]).expect(0).stdout.len(), big.len());
    assert_eq!(
        call(&repo, &["grep", "-c", "needle"]).expect(0).text(),
        "big.txt:100000\n"
    );
}

#[test]
fn commands_work_in_any_folder_of_the_repository() {
    let repo = project();
    let called = call_in(&repo.path("src"), &["read", "src/lexer.rs:1"], b"").expect(0);
    assert_eq!(called.text(), "pub struct Token;\n");
}

#[test]
fn hints_name_no_parameters_of_tools() {
    let repo = project();
    let hints = [
        call(&repo, &["symbol", "zzzqqq"]).expect(1),
        call(&repo, &["graph", "callers", "zzzqqq"]).expect(1),
        call(&repo, &["symbol", "parse", "-p", "nowhere"]).expect(1),
        call(&repo, &["read", "src/main.rs", "--heading", "x"]).expect(2),
        call(&repo, &["edit", "remove", "src/main.rs#zzzqqq"]).expect(2),
    ];
    for (at, hint) in hints.iter().enumerate() {
        let has_parameter = ["mode=", "view=", "path=", "at="]
            .iter()
            .any(|word| hint.stderr.contains(word));
        assert!(!hint.stderr.is_empty() && !has_parameter, "{at}: {}", hint.stderr);
    }
}

#[test]
fn hints_name_options_as_they_are_typed() {
    let repo = project();
    let in_past = ["graph", "callers", "lex", "--precise", "--ref", "HEAD"];
    for (args, hint) in [
        (&in_past[..], "omit --ref or --precise"),
        (&["graph", "impact", "lex", "--precise"], "omit --precise"),
        (&["graph", "stats", "--format", "dot"], "omit --format"),
        (&["graph", "stats", "src"], "use --path src"),
        (&["graph", "callers", "lex", "parse"], "use graph path"),
        (
            &["outline", "--view", "tree", "--kind", "function"],
            "use --view symbols",
        ),
        (&["search", "lex", "--since", "2w"], "add --in commits"),
        (
            &["search", "lex", "--in", "diffs", "--mode", "semantic"],
            "use --mode auto",
        ),
        (
            &["search", "lex", "--in", "commits", "--mode", "similar"],
            "use --mode auto",
        ),
        (&["search", "lex", "--rerank"], "omit --rerank"),
        (&["symbol", " "], "give a name, --at or --id"),
        (&["docs", "audit", "--kind", "decision"], "omit --kind"),
        (&["docs", "list", "--fix"], "omit --fix"),
        (&["edit", "replace", "src/lexer.rs#lex"], "with --text"),
        (&["edit", "replace_text", "src/lexer.rs", "--text", "x"], "with --old"),
        (
            &["edit", "remove", "src/lexer.rs#lex", "--expect", "0123456789ab"],
            "with --expect",
        ),
    ] {
        let stderr = call(&repo, args).expect(2).stderr;
        let found = stderr.lines().find_map(|line| line.strip_prefix("hint: "));
        assert!(found.is_some_and(|found| found.contains(hint)), "{args:?}: {stderr}");
    }
}
