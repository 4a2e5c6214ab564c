//! Tests how queries are read: as places, names, stack traces, messages, questions about tests and whole reports.

use serde_json::Value;

use crate::cli::{Called, call_in};
use crate::support::TestRepo;

/// Creates a project with enough ordinary code that a few words say little.
fn project() -> TestRepo {
    let repo = TestRepo::new(
        "
        //- src/pkg/core.py
        class Command:
            def parse_args(self, ctx, args):
                '''Parses the arguments of a command.'''
                return args


        class Group:
            def parse_args(self, ctx, args):
                '''Parses the arguments of a group.'''
                return args


        def raise_if_locked(host, lock):
            if lock:
                raise LockError('Deploy lock found on {}. Run the lock help command for more information')
            return host
        //- src/pkg/errors.py
        class LockError(Exception):
            '''Raised when the deploy lock is found.'''
        //- examples/core/core_copy.py
        def core_copy(a, b):
            '''copies the core of a package to another core'''
            return a
        //- src/exclude.py
        def exclude_patterns(paths, wildcards):
            '''Applies the exclude patterns with wildcards to paths.'''
            return [p for p in paths if wildcards]
        //- tests/test_exclude.py
        from src.exclude import exclude_patterns


        def test_wildcards():
            assert exclude_patterns(['a'], '*') == ['a']
        //- lib/response.rb
        module Faraday
          class Response
            def success?
              true
            end
          end
        end
        //- server/repository.go
        package server

        type Repository struct{}

        func (r *Repository) LoadBlob(id string) error { return nil }
        //- native/shape.cc
        namespace geo {
        struct Shape { int area(int scale) const { return scale; } };
        }
        //- CHANGES.rst
        Changes
        -------

        - Fix how setting keys for session signing are selected when key rotation is used.
        //- yarn.lock
        # yarn lockfile v1
        walrus-tusk@^1.0.0:
        ",
    );
    for number in 0..40 {
        let text = format!(
            "def handler_{number}(request, options):\n    '''Handles request number {number} with the given options and \
             returns a key.'''\n    return options.get('key', {number})\n"
        );
        repo.write(format!("src/handlers/h{number}.py"), text);
    }
    repo.commit("start");
    repo
}

fn called(repo: &TestRepo, query: &str) -> Called {
    call_in(repo.root(), &["search", "--json", query], b"")
}

/// The first results of a query as `path:line symbol (match)`.
fn first(repo: &TestRepo, query: &str, n: usize) -> Vec<String> {
    let answer = called(repo, query).json();
    let results = answer["results"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let shown = results.iter().take(n).map(|result| {
        let (path, symbol) = (text(&result["path"]), text(&result["symbol"]));
        format!("{path}:{} {symbol} ({})", result["start_line"], text(&result["match"]))
    });
    shown.collect()
}

#[test]
fn a_path_finds_its_file_and_the_definition_at_the_line() {
    let repo = project();
    for query in [
        "src/pkg/core.py",
        "core.py",
        "what does src/pkg/core.py do",
        "src/pkg/core",
    ] {
        assert!(first(&repo, query, 1)[0].starts_with("src/pkg/core.py:"), "{query}");
    }
    let group = "src/pkg/core.py:8 Group.parse_args (path)";
    for query in [
        "src/pkg/core.py:9",
        "core.py:9:4",
        "/srv/build/project/src/pkg/core.py:9",
        r"C:\\work\\src\\pkg\\core.py:9",
        "src/pkg/core.py(9,3): error",
        "File \"/srv/src/pkg/core.py\", line 9, in parse_args",
    ] {
        assert_eq!(first(&repo, query, 1), [group], "{query}");
    }
}

#[test]
fn a_path_that_does_not_exist_is_named() {
    let repo = project();
    let noted = |query: &str, code| call_in(repo.root(), &["search", query], b"").expect(code).stderr;
    let near = noted("src/pkg/cores.py:3", 1);
    assert!(
        near.contains("no file") && near.contains("did you mean src/pkg/core.py"),
        "{near}"
    );
    let foreign = noted("/srv/other/nowhere.py:3", 1);
    assert!(foreign.contains("no file \"srv/other/nowhere.py\""), "{foreign}");
    let beyond = noted("src/pkg/core.py:999", 0);
    assert!(beyond.contains("past the end"), "{beyond}");
}

#[test]
fn printed_names_find_their_definitions() {
    let repo = project();
    for (query, found) in [
        (
            "Response#success?",
            "lib/response.rb:3 Faraday.Response.success? (name)",
        ),
        (
            "Faraday::Response#success?",
            "lib/response.rb:3 Faraday.Response.success? (name)",
        ),
        (
            "(*Repository).LoadBlob",
            "server/repository.go:5 Repository.LoadBlob (name)",
        ),
        (
            "server.(*Repository).LoadBlob(...)",
            "server/repository.go:5 Repository.LoadBlob (name)",
        ),
        ("Command.parse_args", "src/pkg/core.py:2 Command.parse_args (name)"),
        (
            "what does Group.parse_args do",
            "src/pkg/core.py:8 Group.parse_args (name)",
        ),
        ("parse_args of Group", "src/pkg/core.py:8 Group.parse_args (name)"),
    ] {
        assert_eq!(first(&repo, query, 1), [found], "{query}");
    }
    let shape = first(&repo, "geo::Shape::area(int) const", 1);
    assert!(
        shape[0].starts_with("native/shape.cc:") && shape[0].ends_with("area (name)"),
        "{shape:?}"
    );
}

#[test]
fn a_stack_trace_lists_its_frames_innermost_first() {
    let repo = project();
    let trace = "Traceback (most recent call last):\n  File \"/usr/lib/python3/runpy.py\", line 9, in run\n    run()\n  \
                 File \"/srv/src/exclude.py\", line 3, in exclude_patterns\n    call()\n  File \
                 \"/srv/src/pkg/core.py\", line 15, in raise_if_locked\n    raise LockError()\nLockError: no";
    assert_eq!(
        first(&repo, trace, 2),
        [
            "src/pkg/core.py:13 raise_if_locked (path)",
            "src/exclude.py:1 exclude_patterns (path)"
        ]
    );
    let go = "panic: boom\n\ngoroutine 1 [running]:\nserver.(*Repository).LoadBlob(0x1)\n\t/srv/server/repository.go:5 \
              +0x1d\nmain.main()\n\t/usr/local/go/src/runtime/proc.go:250 +0x2";
    assert_eq!(
        first(&repo, go, 1)[0],
        "server/repository.go:5 Repository.LoadBlob (path)"
    );
}

#[test]
fn a_pasted_message_finds_the_line_that_writes_it() {
    let repo = project();
    let message =
        "ERROR (errors.LockError): Deploy lock found on web-1. Run the lock help command for more information";
    assert_eq!(
        first(&repo, message, 1),
        ["src/pkg/core.py:13 raise_if_locked (exact_text)"]
    );
}

#[test]
fn the_values_of_a_pasted_message_are_no_places() {
    let repo = project();
    repo.write("src/main.ts", "import './foo'\nexport const main = 1\n");
    repo.write(
        "src/resolve.ts",
        "export function missing(url: string, importer: string) {\n  \
         throw new Error(`Failed to resolve import \"${url}\" from \"${importer}\". Does the file exist?`)\n}\n",
    );
    repo.write(
        "docs/exist.md",
        "# Files\n\nFailed attempts to import and to resolve the file that does not exist.\n",
    );
    repo.commit("modules");
    let raised = ["src/resolve.ts:1 missing (exact_text)"];
    for message in [
        "Failed to resolve import \"./foo\" from \"src/main.ts\". Does the file exist?",
        "Failed to resolve import './foo' from 'src/main.ts'",
        "failed to resolve import `x` from src/main.ts",
    ] {
        assert_eq!(first(&repo, message, 1), raised, "{message}");
    }
    // A place with a line is what a compiler reports about.
    let placed = first(&repo, "src/main.ts:2 failed to resolve import", 1);
    assert!(placed[0].starts_with("src/main.ts:"), "{placed:?}");
    let quoted = first(&repo, "\"./foo\" import", 1);
    assert!(quoted[0].starts_with("src/main.ts:"), "{quoted:?}");
}

#[test]
fn a_line_of_code_is_found_before_what_it_calls() {
    let repo = project();
    repo.write(
        "src/use.py",
        "from pkg.core import Command\n\n\ndef use(ctx):\n    args = Command().parse_args(ctx, [])\n    return args\n",
    );
    repo.commit("use");
    for line in [
        "args = Command().parse_args(ctx, [])",
        "    args = Command().parse_args(ctx, [])\n",
    ] {
        assert_eq!(first(&repo, line, 1), ["src/use.py:5 use (exact_text)"], "{line}");
    }
    let other = first(&repo, "args = Command().parse_args(context)", 1);
    assert!(other[0].contains("Command.parse_args"), "{other:?}");
}

#[test]
fn a_query_that_begins_with_a_hyphen_can_be_quoted() {
    let repo = project();
    repo.write("src/flags.py", "FLAGS = ['--walrus-count']\n");
    repo.commit("flags");
    for args in [
        &["search", "--walrus-count"][..],
        &["--ref", "HEAD", "search", "--walrus-count"],
    ] {
        let refused = call_in(repo.root(), args, b"").expect(2);
        assert!(refused.stderr.contains("put it in double quotes"), "{}", refused.stderr);
    }
    let other = call_in(repo.root(), &["read", "--walrus-count"], b"").expect(2);
    assert!(!other.stderr.contains("double quotes"), "{}", other.stderr);
    assert!(first(&repo, "\"--walrus-count\"", 1)[0].starts_with("src/flags.py:1"));
}

#[test]
fn what_was_typed_is_not_repeated_at_length() {
    let repo = project();
    for query in ["zxqv".repeat(10_000), format!("{}a.py", "zxqv/".repeat(8_000))] {
        let noted = call_in(repo.root(), &["search", &query], b"").expect(1).stderr;
        assert!(noted.len() < 8_000, "{} bytes", noted.len());
    }
    let remarks = called(&repo, "src/pkg/cores.py").json()["remarks"].clone();
    assert!(
        remarks[0].as_str().is_some_and(|remark| remark.contains("cores.py")),
        "{remarks}"
    );
}

#[test]
fn a_text_that_repeats_a_question_is_no_answer() {
    let repo = project();
    repo.write(
        "README.md",
        "# Use\n\nAsk: where is the host locked\n\nThen read on about other things.\n",
    );
    repo.commit("document");
    let found = first(&repo, "where is the host locked", 1);
    assert!(found[0].starts_with("src/pkg/core.py:13 raise_if_locked"), "{found:?}");
}

#[test]
fn questions_about_tests_prefer_tests() {
    let repo = project();
    for query in [
        "tests for exclude patterns with wildcards",
        "how is exclude_patterns tested",
    ] {
        assert!(
            first(&repo, query, 1)[0].starts_with("tests/test_exclude.py:"),
            "{query}"
        );
    }
    assert!(first(&repo, "exclude patterns with wildcards", 1)[0].starts_with("src/exclude.py:"));
}

#[test]
fn words_that_are_there_are_never_nothing() {
    let repo = project();
    assert_eq!(first(&repo, "key rotation", 1), ["CHANGES.rst:1 Changes (exact_text)"]);
    called(&repo, "setting keys").expect(0);
    called(&repo, "rotation selected").expect(0);
    for nonsense in ["frobnicator", "zorblatt_quux", "blivet gribble"] {
        called(&repo, nonsense).expect(1);
    }
    let locked = first(&repo, "walrus-tusk@^1.0.0", 1);
    assert_eq!(locked, ["yarn.lock:2 - (exact_text)"]);
}

#[test]
fn a_report_is_searched_by_its_parts() {
    let repo = project();
    let report = "### [Bug]: Deploy goes on although the host is locked\n\n### Describe the bug\n<!-- text -->\nWhen \
                  another deploy holds the lock of a host, `raise_if_locked` does not raise and nobody sees the \
                  message about the lock help command.\n\n### Environment\n- OS: Linux\n- Version: 1.2.3\n- [x] I \
                  searched\n```bash\n$ run handler request options key\n```\n";
    assert!(
        first(&repo, report, 1)[0].starts_with("src/pkg/core.py:13 raise_if_locked"),
        "{:?}",
        first(&repo, report, 3)
    );
}

#[test]
fn odd_queries_are_answered() {
    let repo = project();
    let long = "lock ".repeat(2_000);
    let file = "def f(x):\n    return x\n".repeat(400);
    for query in [
        "???",
        "((((",
        "core.py:0",
        "src/",
        "a/b/c/d",
        "<<<>>>",
        "解析 core Привет",
        &long,
        &file,
    ] {
        let code = called(&repo, query).code;
        assert!(code == 0 || code == 1, "{query}");
    }
}
