//! Output on a terminal, which the program `script` provides.

use std::io::Write;
use std::process::{Child, Stdio};

use super::{PROGRAM, call, command_in};
use crate::support::{Printed, TestRepo, kill, wait_for_end};

/// A call on a terminal of ten rows.
struct OnTerminal {
    script: Child,
    printed: Printed,
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        kill(&mut self.script);
    }
}

impl OnTerminal {
    /// Begins a call with these variables.
    fn begin(repo: &TestRepo, columns: usize, variables: &[(&str, &str)], args: &str) -> Self {
        let call = format!("stty rows 10 columns {columns} -echo; exec '{PROGRAM}' {args}");
        let mut command = command_in("script", repo.root(), &["-qec", &call, "/dev/null"]);
        let mut script = command
            .env("TERM", "xterm")
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("script (util-linux) is installed");
        let printed = Printed::on(script.stdout.take().unwrap());
        Self { script, printed }
    }

    /// Types text after `prompt` was shown.
    fn type_after(&mut self, prompt: &str, text: &str) {
        self.printed.up_to(prompt);
        self.script.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Waits for the end. Returns the exit code and what was shown.
    fn end(mut self) -> (i32, String) {
        let shown = String::from_utf8(self.printed.all()).unwrap();
        let code = wait_for_end(&mut self.script).code().unwrap();
        (code, shown.replace("\r\n", "\n"))
    }
}

fn on_terminal(repo: &TestRepo, pager: &str, args: &str) -> (i32, String) {
    OnTerminal::begin(repo, 80, &[("PAGER", pager)], args).end()
}

/// A repository with files of 9, 10 and many lines.
fn files() -> TestRepo {
    let repo = TestRepo::empty();
    for (name, n_lines) in [("nine", 9), ("ten", 10), ("many", 100_000)] {
        let lines: Vec<String> = (1..=n_lines).map(|line| format!("line {line}\n")).collect();
        repo.write(name, lines.concat());
    }
    repo.commit("start");
    repo
}

#[test]
fn usage_errors_do_not_steer_the_terminal() {
    let repo = files();
    let name = "b\u{1b}]0;x\u{7}\u{202e}\u{9b}2J.py";
    for args in ["read a", "outline a", "status", "history a"] {
        let (code, shown) = on_terminal(&repo, "", &format!("{args} '{name}'"));
        assert_eq!(code, 2, "{shown}");
        let is_control = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
        assert!(
            shown.contains("2J.py") && !shown.contains(is_control),
            "{args}: {shown:?}"
        );
    }
}

#[test]
fn long_output_goes_through_the_pager() {
    const PAGER: &str = "sed s/^/paged:/";
    let repo = files();
    let n_paged = |pager: &str, args: &str| {
        let (code, shown) = on_terminal(&repo, pager, args);
        assert_eq!(code, 0, "{shown}");
        shown.matches("paged:").count()
    };
    assert_eq!(n_paged(PAGER, "read nine"), 0);
    assert_eq!(n_paged(PAGER, "read ten"), 10);
    assert_eq!(n_paged(PAGER, "grep -n 20 line"), 20);
    assert_eq!(n_paged("cat ten | sed s/^/paged:/", "read many"), 10);
    for args in ["read ten --no-pager", "read ten --json", "status", "read ten | cat"] {
        assert_eq!(n_paged(PAGER, args), 0, "{args}");
    }
    for pager in ["", "cat", "no-such-pager-here"] {
        let (code, shown) = on_terminal(&repo, pager, "read ten");
        assert_eq!((code, shown.lines().count()), (0, 10), "{shown}");
    }
}

#[test]
fn leaving_the_pager_early_is_no_error() {
    assert_eq!(
        on_terminal(&files(), "head -n 1", "read many"),
        (0, "line 1\n".to_owned())
    );
}

#[test]
fn remarks_follow_a_pager_that_is_left_early() {
    let (code, shown) = on_terminal(&files(), "head -n 1", "grep --color never -n 90000 line many");
    assert_eq!(code, 0, "{shown}");
    assert!(shown.starts_with("many:1:line 1\n"), "{shown}");
    assert!(shown.contains("more results: --cursor "), "{shown}");
}

#[test]
fn remarks_follow_the_pager() {
    let (code, shown) = on_terminal(&files(), "tail -n 1", "grep --color never -n 20 line");
    let (paged, remark) = shown.split_once('\n').unwrap();
    assert_eq!((code, paged), (0, "many:20:line 20"));
    assert!(remark.starts_with("codescout: more results: --cursor "), "{shown}");
}

#[test]
fn a_repository_does_not_name_the_pager() {
    let repo = files();
    repo.git(["config", "core.pager", "echo repository >&2; cat"]);
    repo.git(["config", "pager.grep", "echo repository >&2; cat"]);
    let (_, shown) = on_terminal(&repo, "sed s/^/paged:/", "grep -n 20 line");
    assert!(!shown.contains("repository"), "{shown}");
}

#[test]
fn ctrl_c_is_the_pagers() {
    // A signal stops a program that still writes, so everything is read first. A shell that receives a signal just before
    // it reads runs the trap only after it has read, so this one sleeps until it has received both signals.
    const PAGER: &str = "n=0; trap 'n=$((n + 1)); echo caught' INT; looks=$(seq 9999); cat > /dev/null; echo ready; \
                         for i in $looks; do [ $n -lt 2 ] || break; sleep 0.01; done; \
                         read key < /dev/tty; echo left";
    let repo = files();
    let mut call = OnTerminal::begin(&repo, 80, &[("PAGER", PAGER)], "read ten");
    call.type_after("ready", "\x03");
    call.type_after("caught", "\x03");
    call.type_after("caught", "q\n");
    let (code, shown) = call.end();
    assert_eq!(code, 0, "{shown}");
    assert!(shown.ends_with("left\n") && !shown.contains("stopping"), "{shown}");
}

/// A repository in which everything is long.
fn long_lines() -> TestRepo {
    let repo = TestRepo::new(
        "
        //- src/a.rs
        pub fn answer(first_parameter: usize, second_parameter: usize) -> usize { first_parameter + second_parameter }
        ",
    );
    let added = String::from_utf8(repo.read("src/a.rs")).unwrap();
    repo.write("src/a.rs", added.replace('+', "*"));
    repo.commit("multiply the first parameter by the second parameter instead of adding them");
    repo
}

#[test]
fn rows_are_cut_to_the_width() {
    let repo = long_lines();
    let widest = |args: &str, less: &str| {
        let call = OnTerminal::begin(&repo, 40, &[("LESS", less)], &format!("--color never {args}"));
        let (code, shown) = call.end();
        assert_eq!(code, 0, "{shown}");
        let widest = shown.lines().map(|line| line.chars().count()).max().unwrap();
        (widest, shown.contains('…'))
    };
    for args in [
        "history src/a.rs",
        "blame src/a.rs --by line",
        "symbol answer",
        "outline src/a.rs",
        "search answer -n 1",
    ] {
        assert_eq!(widest(args, "FRX"), (40, true), "{args}");
        assert_eq!(widest(&format!("{args} --no-pager"), "FRXS"), (40, true), "{args}");
        assert!(!widest(args, "FRXS").1, "{args}");
        assert!(!widest(&format!("{args} | cat"), "FRX").1, "{args}");
    }
    for args in [
        "read src/a.rs",
        "grep answer",
        "diff HEAD~1 --by text",
        "symbol answer --body",
    ] {
        let (width, is_cut) = widest(args, "FRX");
        assert!(width > 100 && !is_cut, "{args}");
    }
}

#[test]
fn head_lines_keep_line_and_name() {
    let repo = TestRepo::new("\n//- src/first/second/third/fourth.rs\npub fn answer() -> usize { 1 }\n");
    let shown = |columns| {
        OnTerminal::begin(&repo, columns, &[], "--color never search answer")
            .end()
            .1
    };
    for (columns, head) in [
        (80, "src/first/second/third/fourth.rs:1-1 function answer · name\n"),
        (40, "src/…/fourth.rs:1-1 function answer"),
        (32, "…/fourth.rs:1-1 function answer"),
    ] {
        let shown = shown(columns);
        assert!(shown.starts_with(head), "{columns}: {shown}");
    }
}

#[test]
fn line_numbers_do_not_shift_tabs() {
    let repo = TestRepo::empty();
    repo.write("a.go", "package a\n\nfunc answer() int {\n\tx\t:= 1\n\treturn x\n}\n");
    repo.commit("start");
    for args in ["search answer", "symbol answer --body"] {
        let shown = on_terminal(&repo, "cat", &format!("--color never {args}")).1;
        assert!(shown.contains("\n     4         x       := 1\n"), "{shown}");
        let piped = on_terminal(&repo, "cat", &format!("{args} | cat")).1;
        assert!(piped.contains("\n     4 \tx\t:= 1\n"), "{piped}");
    }
}

#[test]
fn code_is_highlighted() {
    let repo = TestRepo::empty();
    let text = "fn answer() {\n    /* a\n    b */\n    ask(\"c\")\n}\n";
    repo.write("a.rs", text);
    repo.commit("start");
    let parts = [
        "\x1b[36mfn\x1b[0m",
        "\x1b[2m/* a\x1b[0m\n",
        "\x1b[2m    b */\x1b[0m\n",
        "\x1b[32m\"c\"\x1b[0m",
    ];
    for args in ["read a.rs", "symbol answer --body"] {
        let (code, shown) = on_terminal(&repo, "cat", args);
        assert_eq!(code, 0);
        for part in parts {
            assert!(shown.contains(part), "{args}: {shown:?}");
        }
        assert!(
            !on_terminal(&repo, "cat", &format!("{args} --color never"))
                .1
                .contains('\x1b')
        );
        let plain = OnTerminal::begin(&repo, 80, &[("NO_COLOR", "1"), ("PAGER", "cat")], args)
            .end()
            .1;
        assert!(!plain.contains('\x1b'), "{plain:?}");
    }
    let colored = call(&repo, &["search", "answer", "-C", "5", "--color", "always"])
        .expect(0)
        .text();
    assert!(colored.contains(parts[3]), "{colored:?}");
    assert_eq!(
        call(&repo, &["read", "a.rs", "--color", "always"]).expect(0).text(),
        text
    );
}

#[test]
fn a_server_on_a_terminal_says_how_to_end_it() {
    let mut call = OnTerminal::begin(&files(), 80, &[], "serve");
    call.type_after("press Ctrl-D to end it", "\x04");
    assert_eq!(call.end().0, 0);
}

#[test]
fn paths_are_links_in_known_terminals() {
    const LINK: &str = "\x1b]8;;file://";
    let repo = long_lines();
    repo.rename("src/a.rs", "src/ä b.rs");
    let shown = |term: &str, args: &str| {
        let call = OnTerminal::begin(&repo, 80, &[("TERM", term), ("PAGER", "sed s/^/paged:/")], args);
        call.end().1
    };
    let target = format!("{LINK}{}/src/%C3%A4%20b.rs\x1b\\", repo.root().display());
    for args in [
        "grep answer",
        "grep -l answer",
        "symbol answer",
        "search answer -n 1",
        "outline src/",
    ] {
        assert_eq!(
            shown("xterm-kitty", args).contains(&target),
            args != "outline src/",
            "{args}"
        );
        assert!(!shown("xterm", args).contains(LINK), "{args}");
        assert!(!shown("xterm-kitty", &format!("{args} | cat")).contains(LINK), "{args}");
        assert!(
            !shown("xterm-kitty", &format!("{args} --color always | cat")).contains(LINK),
            "{args}"
        );
        assert!(
            !shown("xterm-kitty", &format!("{args} --color never")).contains(LINK),
            "{args}"
        );
    }
    let past = shown("xterm-kitty", "grep answer --ref HEAD");
    assert!(past.contains("src/a.rs") && !past.contains(LINK), "{past}");
    let history = shown("xterm-kitty", "history src/ --no-pager");
    assert!(history.contains(LINK), "{history}");
    let lines = "a\n".repeat(20);
    repo.write("long.txt", lines);
    let paged = shown("xterm-kitty", "grep a long.txt");
    assert_eq!(paged.matches("paged:").count(), 20, "{paged}");
    assert!(!paged.contains(LINK), "{paged}");
}

#[test]
fn what_is_searched_for_is_highlighted() {
    const MATCH: &str = "\x1b[1m\x1b[31m";
    let repo = long_lines();
    for (args, text) in [
        (&["grep", "fn answer"][..], "fn answer"),
        (&["search", "answers", "-n", "1"], "answer"),
        (&["search", "--mode", "regex", "fn \\w+"], "fn answer"),
        (&["search", "--in", "diffs", "first_parameter +"], "first_parameter +"),
    ] {
        let colored = call(&repo, &[args, &["--color", "always"]].concat()).expect(0).text();
        assert!(
            colored.contains(&format!("{MATCH}{text}\x1b[0m")),
            "{args:?}: {colored:?}"
        );
        assert!(!call(&repo, args).expect(0).text().contains('\x1b'), "{args:?}");
    }
}

#[test]
fn init_asks_once_and_does_nothing_after_no() {
    let repo = files();
    let answered = |text: &str| {
        let mut init = OnTerminal::begin(&repo, 120, &[], "init --without agents");
        init.type_after("Do this? [y/N] ", text);
        init.end()
    };
    let (code, shown) = answered("n\n");
    assert_eq!(code, 1, "{shown}");
    assert!(!repo.path(".codescout").exists() && !shown.contains("done:"), "{shown}");
    let (code, shown) = answered("y\n");
    assert_eq!(code, 0, "{shown}");
    assert!(
        shown.contains("done: index WORKTREE") && shown.contains("done: install git hooks"),
        "{shown}"
    );
}
