//! Compares `grep` with `git grep`: the results must be the same for many generated patterns, at several revisions and
//! on disk.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use codescout::link::{Linker, Links};
use codescout::query::{
    FileFilter, GrepDetail, GrepRequest, Pattern, PatternOptions, Sources, SymbolQuery, SymbolRequest, files_below,
    grep, headings_of, map, summary, symbols, symbols_of,
};

use crate::indexed::{Indexed, NEVER, files_below as all_files_below};
use crate::support::{InTime, TestRepo, is_long};

/// A line of a result: path, line number (0 for a binary file) and bytes.
type Line = (Vec<u8>, u32, Vec<u8>);

#[derive(Clone, Debug)]
struct Case {
    pattern: String,
    options: PatternOptions,
}

#[test]
fn lines_are_those_of_git_grep() {
    let repo = generated_repository();
    let Some(kind) = pattern_kind(&repo) else { return };
    let cases = generated_cases(if is_long() { 180 } else { 60 }, kind);
    for reference in ["HEAD~2", "v1", "HEAD", "INDEX", "WORKTREE"] {
        compare(&repo, reference, &cases, kind);
    }
}

#[test]
fn what_is_binary_is_what_git_takes_for_it() {
    let repo = TestRepo::new(
        "
        //- .gitattributes
        *.txt diff
        *.svg -diff
        *.pic binary
        *.c diff=cpp
        //- sub/.gitattributes
        plain.rs -diff
        *.svg diff
    ",
    );
    for path in ["a.txt", "a.svg", "a.pic", "a.c", "a.rs", "sub/a.svg", "sub/plain.rs"] {
        repo.write(path, "one needle\n");
        repo.write(format!("nul-{}", path.replace('/', "-")), b"\0\none needle\n");
    }
    repo.commit("files");
    let case = Case {
        pattern: "needle".to_owned(),
        options: PatternOptions::default(),
    };
    let index = Indexed::new(repo.root());
    let same = |reference: &str| {
        let view = index.view(reference);
        let ours = ours(&Sources::new(&view, &index.workspace.repository), &case);
        let theirs = git_grep(repo.command(), reference, &case, "-E").unwrap();
        assert!(ours.iter().any(|line| line.1 == 0) && ours.iter().any(|line| line.1 > 0));
        assert_same(&case, ours, theirs, reference);
    };
    same("HEAD");
    same("WORKTREE");
    repo.write(".gitattributes", "*.rs -diff\n");
    same("WORKTREE");
}

#[test]
fn an_outline_that_nobody_wants_any_more_is_not_made() {
    let repo = TestRepo::new("//- a.rs\npub fn one() {}\n//- b.md\n# Two\n");
    let index = Indexed::new(repo.root());
    let view = index.view("HEAD");
    let files = files_below(&view, "", &FileFilter::default());
    let is_over = AtomicBool::new(true);
    let links = Links::new(&view, &mut index.workspace.repository.reader());
    for (flag, is_made) in [(&NEVER, true), (&is_over, false)] {
        let sources = Sources::new(&view, &index.workspace.repository).until(flag);
        assert_eq!(summary(&sources, "", &files).is_ok(), is_made);
        assert_eq!(symbols_of(&sources, &files, 9).is_ok(), is_made);
        assert_eq!(headings_of(&sources, &files, 9).is_ok(), is_made);
        assert_eq!(
            map(&sources, &Linker::new(&view, &links, flag), &files, &[], 1000).is_ok(),
            is_made
        );
        let request = SymbolRequest {
            query: SymbolQuery::Named("one".to_owned()),
            filter: FileFilter::default(),
            kinds: Vec::new(),
        };
        assert_eq!(symbols(&sources, &request, None).is_ok(), is_made);
    }
}

#[test]
fn lines_of_this_repository_are_those_of_git_grep() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders: &[&str] = if is_long() {
        &["src", "tests", "docs"]
    } else {
        &["src/query"]
    };
    let repo = TestRepo::empty();
    for folder in folders {
        for (path, bytes) in all_files_below(&source.join(folder)) {
            repo.write(Path::new(folder).join(path), bytes);
        }
    }
    repo.commit("source");
    let Some(kind) = pattern_kind(&generated_repository()) else {
        return;
    };
    let index = Indexed::new(repo.root());
    let view = index.view("HEAD");
    let sources = Sources::new(&view, &index.workspace.repository);
    let own = [
        ("fn [a-z_]+_index", ""),
        ("BlobId", "w"),
        ("todo|fixme", "i"),
        (r"^use std::", ""),
        (r"\bunwrap\(\)", ""),
        ("Result<Self,", "F"),
        (r"\.\w{12,}\(", ""),
        ("[äöüß漢]", ""),
        ("->", "F"),
        (r"^\s*\}$", ""),
        (r"\d{4,}", ""),
    ];
    for (pattern, flags) in own {
        let case = Case {
            pattern: pattern.to_owned(),
            options: PatternOptions {
                ignore_case: flags.contains('i'),
                whole_words: flags.contains('w'),
                literal: flags.contains('F'),
                ..PatternOptions::default()
            },
        };
        let theirs = git_grep(repo.command(), "HEAD", &case, kind).unwrap();
        assert_same(&case, ours(&sources, &case), theirs, "HEAD");
    }
}

#[test]
fn a_page_goes_on_where_the_one_before_ended() {
    let repo = generated_repository();
    let index = Indexed::new(repo.root());
    let view = index.view("HEAD");
    let sources = Sources::new(&view, &index.workspace.repository);
    let case = Case {
        pattern: "e".to_owned(),
        options: PatternOptions::default(),
    };
    let mut request = all_lines(&case.pattern, case.options);
    request.limit = 7;
    let mut paged = Vec::new();
    loop {
        let outcome = collect(&sources, &request, &mut paged);
        match outcome.next {
            Some(next) => {
                assert_eq!(outcome.n_lines, 7);
                request.from = Some(next);
            }
            None => break,
        }
    }
    assert_eq!(paged, ours(&sources, &case));
}

fn compare(repo: &TestRepo, reference: &str, cases: &[Case], kind: &str) {
    let index = Indexed::new(repo.root());
    let view = index.view(reference);
    let sources = Sources::new(&view, &index.workspace.repository);
    let (mut n_lines, mut n_given_up) = (0, 0);
    for case in cases {
        let Some(theirs) = git_grep(repo.command(), reference, case, kind) else {
            n_given_up += 1;
            continue;
        };
        n_lines += theirs.len();
        // The matches of a class or `.` next to invalid UTF-8 differ between versions of PCRE.
        let is_sure = |line: &Line| case.options.literal || line.0 != b"invalid.txt";
        let sure = |lines: Vec<Line>| lines.into_iter().filter(is_sure).collect();
        assert_same(case, sure(ours(&sources, case)), sure(theirs), reference);
    }
    assert!(n_lines > 1000, "too few matches to mean anything: {n_lines}");
    assert!(n_given_up * 10 < cases.len(), "git gave up on {n_given_up} patterns");
}

fn assert_same(case: &Case, ours: Vec<Line>, theirs: Vec<Line>, reference: &str) {
    if ours == theirs {
        return;
    }
    let set = |lines: &[Line]| lines.iter().cloned().collect::<BTreeSet<_>>();
    let show = |lines: BTreeSet<Line>| {
        let shown = lines.into_iter().take(5);
        shown
            .map(|(path, number, text)| {
                format!(
                    "{}:{number}:{}",
                    String::from_utf8_lossy(&path),
                    String::from_utf8_lossy(&text)
                )
            })
            .collect::<Vec<_>>()
    };
    let (ours, theirs) = (set(&ours), set(&theirs));
    panic!(
        "{case:?} at {reference}\nonly ours: {:#?}\nonly git's: {:#?}",
        show(&ours - &theirs),
        show(&theirs - &ours)
    );
}

/// Requests every matching line of every file.
pub(crate) fn all_lines(pattern: &str, options: PatternOptions) -> GrepRequest {
    GrepRequest {
        pattern: Pattern::new(pattern, options).unwrap(),
        filter: FileFilter::default(),
        detail: GrepDetail::Lines,
        before: 0,
        after: 0,
        limit: usize::MAX,
        from: None,
    }
}

fn ours(sources: &Sources<'_>, case: &Case) -> Vec<Line> {
    let mut lines = Vec::new();
    let outcome = collect(sources, &all_lines(&case.pattern, case.options), &mut lines);
    assert_eq!(outcome.unread, []);
    lines
}

fn collect(sources: &Sources<'_>, request: &GrepRequest, lines: &mut Vec<Line>) -> codescout::query::GrepOutcome {
    grep(sources, request, &NEVER, &mut |matches| {
        let path = sources.view().file(matches.file).path.to_vec();
        if matches.is_binary {
            lines.push((path, 0, Vec::new()));
        } else {
            lines.extend(
                matches
                    .lines
                    .into_iter()
                    .map(|line| (path.clone(), line.number, line.text)),
            );
        }
        ControlFlow::Continue(())
    })
}

/// Returns `None` if git gives up on a pattern, because its engine backtracks.
fn git_grep(mut command: Command, reference: &str, case: &Case, kind: &str) -> Option<Vec<Line>> {
    command
        .env("LC_ALL", "C.UTF-8")
        .args(["grep", "--no-color", "-n", "-z", "--full-name"]);
    command.arg(if case.options.literal { "-F" } else { kind });
    if case.options.ignore_case {
        command.arg("-i");
    }
    if case.options.whole_words {
        command.arg("-w");
    }
    match reference {
        "WORKTREE" => drop(command.arg("--untracked")),
        "INDEX" => drop(command.arg("--cached")),
        _ => {}
    }
    command.args(["-e", &case.pattern]);
    if !matches!(reference, "WORKTREE" | "INDEX") {
        command.arg(reference);
    }
    let output = command.output_in_time().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    if complaint.contains("match limit exceeded") {
        return None;
    }
    assert!(matches!(output.status.code(), Some(0 | 1)), "{case:?}: {complaint}");
    let prefix = format!("{reference}:");
    let strip = |path: &[u8]| path.strip_prefix(prefix.as_bytes()).unwrap_or(path).to_vec();
    let mut lines = Vec::new();
    let mut rest = output.stdout.as_slice();
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == b'\n').unwrap();
        if let Some(binary) = rest[..end].strip_prefix(b"Binary file ") {
            lines.push((strip(binary.strip_suffix(b" matches").unwrap()), 0, Vec::new()));
            rest = &rest[end + 1..];
            continue;
        }
        // A path may contain a line break, so the NUL after it is found first.
        let nul = rest.iter().position(|byte| *byte == 0).unwrap();
        let (path, after) = (strip(&rest[..nul]), &rest[nul + 1..]);
        let mark = after.iter().position(|byte| matches!(byte, b':' | 0)).unwrap();
        let number = std::str::from_utf8(&after[..mark]).unwrap().parse().unwrap();
        let end = mark + 1 + after[mark + 1..].iter().position(|byte| *byte == b'\n').unwrap();
        lines.push((path, number, after[mark + 1..end].to_vec()));
        rest = &after[end + 1..];
    }
    Some(lines)
}

/// Returns `-P` if git supports it, else `-E`; `None` if git does not support UTF-8 here.
fn pattern_kind(repo: &TestRepo) -> Option<&'static str> {
    let knows = |kind: &str| {
        let mut command = repo.command();
        command.env("LC_ALL", "C.UTF-8");
        let output = command
            .args(["grep", kind, "-q", "^s[^a-z]s$", "HEAD"])
            .output_in_time()
            .unwrap();
        output.status.success()
    };
    let kind = ["-P", "-E"].into_iter().find(|kind| knows(kind));
    match kind {
        None => skip("git grep does not know UTF-8 here"),
        Some("-E") => skip("the patterns that only PCRE knows"),
        Some(_) => {}
    }
    kind
}

#[allow(
    clippy::print_stderr,
    reason = "whoever runs the tests is to see what was not tested"
)]
fn skip(what: &str) {
    eprintln!("SKIPPED: {what}");
}

/// Creates files of many kinds, three commits, a tag, and a worktree with changes.
fn generated_repository() -> TestRepo {
    let repo = TestRepo::empty();
    let mut random = Random(7);
    for number in 0..24 {
        let ending = ["rs", "py", "txt", "md", "go", "c"][number % 6];
        repo.write(
            format!("src/m{}/file{number}.{ending}", number % 4),
            random.text(60, "\n"),
        );
    }
    repo.write("src/crlf.txt", random.text(40, "\r\n"));
    repo.write("one-char.txt", "sßs\nSÜS\n");
    repo.write("empty.txt", "");
    repo.write("newline.txt", "\n");
    repo.write("vendor/lib/copy.js", random.text(40, "\n"));
    repo.write("Cargo.lock", random.text(40, "\n"));
    repo.write(
        "gen.go",
        format!("// Code generated by x. DO NOT EDIT.\n{}", random.text(30, "\n")),
    );
    repo.write("min.js", random.text(700, " "));
    repo.commit("first");
    repo.write("invalid.txt", b"parse \xff\xfe index\n\xc3( retry\nplain query\n");
    repo.write(
        "data.bin",
        [b"parse\0query ".as_slice(), random.text(30, "\n").as_bytes()].concat(),
    );
    repo.write("name with blank.txt", random.text(20, "\n"));
    repo.write("größe.txt", random.text(20, "\n"));
    repo.write("odd\nname.txt", random.text(20, "\n"));
    #[cfg(unix)]
    repo.symlink("src/crlf.txt", "parse-link");
    repo.commit("second");
    repo.tag("v1");
    repo.remove("src/m0/file0.rs");
    repo.write("src/m1/file1.py", random.text(70, "\n"));
    repo.commit("third");
    repo.write(".gitignore", "ignored*\n");
    repo.write("ignored.txt", random.text(20, "\n"));
    repo.write("untracked.txt", random.text(20, "\n"));
    repo.write("big-untracked.txt", random.text(30_000, "\n"));
    repo.write("src/m2/file2.txt", random.text(50, "\n"));
    repo.git(["add", "src/m2/file2.txt"]);
    repo.write("src/m2/file2.txt", random.text(50, "\n"));
    repo.remove("src/m3/file3.md");
    repo
}

fn generated_cases(n_cases: usize, kind: &str) -> Vec<Case> {
    let mut random = Random(99);
    let mut cases: Vec<Case> = [
        "->",
        "()",
        "::",
        "{",
        ";;",
        "é",
        "parse",
        "Parse Query",
        "=",
        "no such text",
    ]
    .iter()
    .map(|text| Case {
        pattern: (*text).to_owned(),
        options: PatternOptions {
            literal: true,
            ..PatternOptions::default()
        },
    })
    .collect();
    let fixed = [
        "^$",
        "^",
        "$",
        "x*",
        ".",
        "^.$",
        r"\s$",
        r"^\s+",
        "[^a-z]+$",
        "a|b|",
        "(parse|query)+",
        "par.*ry",
        r"\(\)",
        "q{2}",
        "[[:digit:]]+[.]",
        r"r$",
    ];
    cases.extend(fixed.map(|pattern| Case {
        pattern: pattern.to_owned(),
        options: PatternOptions::default(),
    }));
    if kind == "-P" {
        let perl = [
            r"\w+\(",
            r"\bquery\b",
            r"\d+$",
            r"(?i)PARSE",
            r"\W\W\W",
            r"[^\x00-\x7f]",
            r"\Bery",
            r"a.*?b",
            r"\S{9,}",
        ];
        cases.extend(perl.map(|pattern| Case {
            pattern: pattern.to_owned(),
            options: PatternOptions::default(),
        }));
    }
    while cases.len() < n_cases {
        cases.push(Case {
            pattern: random.pattern(),
            options: PatternOptions {
                ignore_case: random.below(3) == 0,
                whole_words: random.below(4) == 0,
                ..PatternOptions::default()
            },
        });
    }
    cases
}

/// A deterministic pseudorandom number generator. Source: Marsaglia, "Xorshift RNGs", 2003.
struct Random(u64);

const WORDS: &[&str] = &[
    "parse",
    "query",
    "index",
    "retry",
    "Upload",
    "parse_query",
    "parseQuery",
    "HTTPServer",
    "fn",
    "x",
    "foo",
    "bar",
    "größe",
    "Éclair",
    "漢字",
    "12",
    "0x1f",
    "a",
    "e",
    "_",
    "utf8",
    "ΣΊΓΜΑ",
];
const JOINTS: &[&str] = &[
    " ", " ", " ", "(", ")", "->", "::", ".", ", ", " = ", "\t", "{", "}", ";", "_", "-", "\"", "#",
];

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    fn text(&mut self, n_lines: usize, line_end: &str) -> String {
        let mut text = String::new();
        for line in 0..n_lines {
            for _ in 0..self.below(9) {
                text.push_str(self.pick(WORDS));
                text.push_str(self.pick(JOINTS));
            }
            // Some files end without a line break.
            if line + 1 < n_lines || self.below(2) == 0 {
                text.push_str(line_end);
            }
        }
        text
    }

    fn pattern(&mut self) -> String {
        let n_pieces = 1 + self.below(4);
        let mut pattern = String::new();
        if self.below(6) == 0 {
            pattern.push('^');
        }
        for _ in 0..n_pieces {
            pattern.push_str(&self.piece());
        }
        if self.below(6) == 0 {
            pattern.push('$');
        }
        pattern
    }

    fn piece(&mut self) -> String {
        let word = self.pick(WORDS).to_owned();
        match self.below(9) {
            0 => word.chars().take(3).collect(),
            1 => format!("({word}|{})", self.pick(WORDS)),
            2 => format!("({word})?"),
            3 => {
                ["[a-f]", "[^ ]", "[A-Z]", "[0-9]", "[äöüß]", "."][self.below(6)].to_owned()
                    + ["", "+", "*", "{2}", "{1,3}"][self.below(5)]
            }
            4 => self
                .pick(JOINTS)
                .chars()
                .map(|c| {
                    if "(){}.".contains(c) {
                        format!("\\{c}")
                    } else {
                        c.to_string()
                    }
                })
                .collect(),
            5 => ".*".to_owned(),
            6 => format!("({word}|{}|{}e+)", self.pick(WORDS), self.pick(WORDS)),
            _ => word,
        }
    }
}

#[test]
fn options_of_ripgrep_and_git_mean_the_same() {
    let repo = TestRepo::new(
        "
        //- src/a.rs
        fn Parse() {}
        fn parse_it() {}
        let x = 1;
        //- docs/a.md
        parse
        ",
    );
    let grep = |args: &[&str]| {
        let called = crate::cli::call_in(repo.root(), &[&["grep"], args].concat(), b"");
        called.text()
    };
    assert_eq!(grep(&["-c", "parse", "docs"]), "docs/a.md:1\n");
    assert_eq!(grep(&["-l", "-S", "parse"]), "docs/a.md\nsrc/a.rs\n");
    assert_eq!(grep(&["-S", "Parse"]), "src/a.rs:1:fn Parse() {}\n");
    assert_eq!(
        grep(&["-e", "Parse", "-e", "x", "src"]),
        "src/a.rs:1:fn Parse() {}\nsrc/a.rs:3:let x = 1;\n"
    );
    assert_eq!(grep(&["-o", "parse\\w*", "src"]), "src/a.rs:2:parse_it\n");
    assert_eq!(grep(&["-v", "fn", "-t", "rust"]), "src/a.rs:3:let x = 1;\n");
    assert_eq!(grep(&["-c", "-v", "fn", "-g", "*.rs"]), "src/a.rs:1\n");
}
