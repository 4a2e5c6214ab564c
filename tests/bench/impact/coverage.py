#!/usr/bin/env python3
"""How well `graph impact A..B` selects tests, against the coverage of each test.

    coverage.py PROGRAM REPO CACHE [--python PYTHON]... [--source src] [--commits N] [--since DATE] [--seed N]

PROGRAM is a release build, REPO a clone with history, CACHE a folder that is made and kept: a second run only asks
PROGRAM again. The language is Go if there is a `go.mod`, else Python. Go needs `go` on the path, and the modules that
the tests import. Python needs an interpreter with pytest, pytest-cov and what the tests import; of several, the first
one that runs the tests of a commit counts.

For each of N random commits B with the parent A: a function changed if its code at B, without comments and docstrings,
differs from A, or is new and not moved. The tests that should be selected ("wanted") are those that execute a line of a
changed function at B, apart from what runs on import or before any test. Functions are compared by their name in the
file, without help of PROGRAM. Tests and what is defined in them do not count as changed functions; fixtures and helpers
in test files do in Python, while Go does not measure them. Skipped are commits that change no function outside of test
files, and those whose tests cannot be run. Parametrised tests count once; skipped tests do not count.

Printed: recall, the share of all tests that is selected, and how much of the selection is wanted, for all commits
together (micro) and as the mean of the commits (macro): for sure tests, for all that are named with --candidates, and
for the wanted ones themselves. CACHE/results.json has the tests of each commit.
"""

import argparse
import ast
import gzip
import json
import os
import random
import re
import sqlite3
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

# Seconds for one test of Go, and for all tests of Python.
LIMIT_OF_TEST = 60
LIMIT_OF_SUITE = 900
# Percentage of tests that may fail in a suite that counts as running.
MAX_FAILED = 5


class Unrunnable(Exception):
    """The tests of a commit cannot be run."""


def run(*command, **options):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, errors="replace", **options)


def git(repo, *words):
    done = run("git", "-C", repo, *words)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return done.stdout


class Python:
    ending = ".py"

    def __init__(self, options):
        self.pythons = options.python or [sys.executable]
        self.source = options.source

    def is_test_file(self, path):
        name = path.rsplit("/", 1)[-1]
        return "tests/" in path or name.startswith("test_") or name == "conftest.py"

    def is_measured(self, path):
        return path.startswith((self.source + "/", "tests/"))

    def functions(self, text):
        """Returns name -> (code, lines) of each function; the lines are those that no inner function has."""
        found = {}
        try:
            self._visit(ast.parse(text), "", found)
        except SyntaxError:
            pass
        return found

    def _visit(self, node, prefix, found):
        """Adds the functions inside of a node, empties them, and returns their lines."""
        inner = set()
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                inside = f"{prefix}{child.name}." if isinstance(child, ast.ClassDef) else prefix
                inner |= self._visit(child, inside, found)
                continue
            lines = set(range(child.body[0].lineno, child.end_lineno + 1))
            if ast.get_docstring(child) is not None:
                del child.body[0]
            own = lines - self._visit(child, f"{prefix}{child.name}.", found)
            name, n = prefix + child.name, 1
            while name in found:
                n += 1
                name = f"{prefix}{child.name}#{n}"
            found[name] = (ast.dump(child), own)
            inner |= lines
            child.body = []
        return inner

    def measure(self, tree, scratch, _functions):
        """Returns the lines that each test executes: test -> path -> lines."""
        options = ["tests", "-q", "-p", "no:cacheprovider", "-o", "filterwarnings=default", f"--cov={self.source}"]
        options += ["--cov=tests", "--cov-context=test", "--cov-config=/dev/null", "--cov-report="]
        data = scratch / "coverage.db"
        environment = os.environ | {"PYTHONPATH": str(tree / self.source), "COVERAGE_FILE": str(data)}
        for python in self.pythons:
            data.unlink(missing_ok=True)
            try:
                done = run(python, "-m", "pytest", *options, cwd=tree, env=environment, timeout=LIMIT_OF_SUITE)
            except subprocess.TimeoutExpired:
                failure = "timeout"
                continue
            outcome = {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|error)", done.stdout[-400:])}
            bad = outcome.get("failed", 0) + outcome.get("error", 0)
            if done.returncode in (0, 1) and bad * 100 <= MAX_FAILED * (bad + outcome.get("passed", 0)):
                return self._read(data, tree)
            failure = (done.stdout + done.stderr)[-600:]
        raise Unrunnable(failure)

    def _read(self, data, tree):
        with sqlite3.connect(data) as database:
            contexts = dict(database.execute("select id, context from context"))
            files = dict(database.execute("select id, path from file"))
            rows = database.execute("select context_id, file_id, numbits from line_bits").fetchall()
        # Tests that are skipped have no context of their run.
        ran = {context.rsplit("|", 1)[0] for context in contexts.values() if context.endswith("|run")}
        lines = defaultdict(lambda: defaultdict(set))
        for context, file, bits in rows:
            node = contexts[context].rsplit("|", 1)[0]
            if node in ran:
                path, *names = node.split("[", 1)[0].split("::")
                numbers = (at * 8 + bit for at, byte in enumerate(bits) for bit in range(8) if byte >> bit & 1)
                lines[path, ".".join(names)][os.path.relpath(files[file], tree)].update(numbers)
        return lines


class Go:
    ending = ".go"
    comment_or_literal = re.compile(r"""(//[^\n]*|/\*.*?\*/)|`[^`]*`|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'""", re.S)
    head = re.compile(r"func (?:\((?:\w+ )?\*?(\w+)[^)]*\) )?(\w+)")

    def is_test_file(self, path):
        return path.endswith("_test.go")

    def is_measured(self, path):
        return not any(part.startswith(("_", ".")) or part in ("testdata", "vendor") for part in path.split("/"))

    def functions(self, text):
        """Returns name -> (code, lines) of each function, as gofmt lays them out: from `func` to `}` at the margin."""

        def blank(match):
            return re.sub(r"[^\n]+", "", match[0])

        code = self.comment_or_literal.sub(lambda match: blank(match) if match[1] else match[0], text).split("\n")
        bare = self.comment_or_literal.sub(blank, text).split("\n")
        found = {}
        for first, line in enumerate(bare):
            head = self.head.match(line)
            if not head:
                continue
            last = first
            if not line.rstrip().endswith("}"):
                last = next((at for at in range(first, len(bare)) if bare[at].startswith("}")), first)
            words = " ".join(code[first : last + 1]).split()
            name = f"{head[1]}.{head[2]}" if head[1] else head[2]
            found[name] = (" ".join(words), set(range(first + 1, last + 2)))
        return found

    def measure(self, tree, scratch, functions):
        """Returns the lines that each test executes: test -> path -> lines."""
        form = "{{.Module.Path}} {{.Dir}} {{len .TestGoFiles}}{{len .XTestGoFiles}}"
        listed = run("go", "list", "-f", form, "./...", cwd=tree)
        if listed.returncode != 0:
            raise Unrunnable(listed.stderr)
        lines, binary = {}, scratch / "package.test"
        for module, folder, n_files in (row.split() for row in listed.stdout.splitlines()):
            if n_files == "00":
                continue
            flags = ["-c", "-cover", "-covermode=count", "-coverpkg=./...", "-o", binary]
            built = run("go", "test", *flags, folder, cwd=tree)
            if built.returncode != 0:
                raise Unrunnable(built.stderr)
            inside = os.path.relpath(folder, tree).removeprefix(".")
            here = (key for key in functions if os.path.dirname(key[0]) == inside and self.is_test_file(key[0]))
            paths = {name: path for path, name in here}
            # What runs before any test, such as `init`.
            start = self._profile(binary, folder, "^$", module)
            for name in run(binary, "-test.list", ".*", cwd=folder).stdout.split():
                if name in paths and not name.startswith("Benchmark"):
                    blocks = self._profile(binary, folder, f"^{name}$", module) - start
                    lines[paths[name], name] = by_path = defaultdict(set)
                    for path, place in blocks:
                        by_path[path].add(int(place.split(".", 1)[0]))
        return lines

    def _profile(self, binary, folder, pattern, module):
        """Returns how often each block is executed: (path, place) -> count."""
        profile = binary.with_name("profile")
        profile.unlink(missing_ok=True)
        try:
            run(binary, "-test.run", pattern, f"-test.coverprofile={profile}", cwd=folder, timeout=LIMIT_OF_TEST)
        except subprocess.TimeoutExpired:
            pass
        blocks = Counter()
        for row in profile.read_text().splitlines()[1:] if profile.exists() else []:
            place, _, count = row.split(" ")
            path, where = place.rsplit(":", 1)
            blocks[path.removeprefix(module + "/"), where] = int(count)
        return blocks


class Bench:
    def __init__(self, options):
        self.options = options
        self.repo = options.repo.resolve()
        self.cache = options.cache.resolve()
        self.language = Go() if (self.repo / "go.mod").exists() else Python(options)
        self.tree = self.cache / "tree"
        if not self.tree.exists():
            git(".", "clone", "-q", "--shared", "--no-checkout", self.repo, self.tree)

    def functions(self, commit, paths):
        """Returns (path, name) -> (code, lines) of each function in those of the paths that the commit has."""
        measured = {path for path in paths if path.endswith(self.language.ending) and self.language.is_measured(path)}
        found = {}
        for path in measured.intersection(git(self.repo, "ls-tree", "-r", "--name-only", commit).splitlines()):
            for name, function in self.language.functions(git(self.repo, "show", f"{commit}:{path}")).items():
                found[path, name] = function
        return found

    def changed(self, commit):
        """Returns (path, name) of each function that a commit changes or adds."""
        paths = git(self.repo, "diff", "--name-only", "--no-renames", f"{commit}^", commit).splitlines()
        before, after = self.functions(f"{commit}^", paths), self.functions(commit, paths)
        moved = {code for key, (code, _) in before.items() if key not in after}
        return {k for k, (code, _) in after.items() if (before[k][0] != code if k in before else code not in moved)}

    def covered(self, commit):
        """Returns the tests of a commit, and those that execute each function."""
        kept = self.cache / f"{commit[:12]}.json.gz"
        if not kept.exists():
            git(self.tree, "clean", "-qfdx")
            git(self.tree, "checkout", "-qf", commit)
            functions = self.functions(commit, git(self.tree, "ls-files").splitlines())
            try:
                lines = self.language.measure(self.tree, self.cache, functions)
                failure = None if lines else "no tests"
            except Unrunnable as error:
                lines, failure = {}, str(error) or "no output"
            tests = sorted(lines)
            runs = [
                [path, name, [at for at, test in enumerate(tests) if not own.isdisjoint(lines[test].get(path, ()))]]
                for (path, name), (_, own) in functions.items()
            ]
            record = {"failure": failure, "tests": tests, "functions": runs}
            kept.write_bytes(gzip.compress(json.dumps(record).encode()))
        record = json.loads(gzip.decompress(kept.read_bytes()))
        if record["failure"]:
            raise Unrunnable(record["failure"])
        tests = [tuple(test) for test in record["tests"]]
        return tests, {(path, name): {tests[at] for at in run_by} for path, name, run_by in record["functions"]}

    def selected(self, commit, tests):
        """Returns the tests that PROGRAM selects as sure, and all that it names."""
        command = [self.options.program, "--repo", self.repo, "-q", "graph", "impact", f"{commit}^..{commit}"]
        done = run(*command, "-n", "0", "--json", "--candidates")
        # 1 says that nothing was found.
        if done.returncode not in (0, 1):
            raise SystemExit(f"{commit}: {done.stderr}")
        sure, named = set(), set()
        for row in json.loads(done.stdout)["results"]:
            if row["kind"] == "definition":
                continue
            # `~2` marks the second definition of a name.
            one = tuple(row["id"].split("~", 1)[0].split("#", 1)) if row["kind"] == "test" else None
            found = {test for test in tests if test == one or one is None and test[0] == row["path"]}
            named |= found
            sure |= found if row["sure"] else set()
        return sure, named

    def outcome(self, commit):
        """Returns what should be selected and what is; `None` if no function outside of test files changed."""
        changed = self.changed(commit)
        if all(self.language.is_test_file(path) for path, _ in changed):
            return None
        tests, covered = self.covered(commit)
        # Without the tests, and what is defined in them.
        starts = {path: tuple(f"{test}." for at, test in tests if at == path) for path, _ in changed}
        changed = {(path, name) for path, name in changed if not f"{name}.".startswith(starts[path])}
        wanted = set().union(*(covered.get(key, set()) for key in changed))
        sure, named = self.selected(commit, tests)
        found = {"tests": tests, "changed": changed, "wanted": wanted, "sure": sure, "named": named}
        return {"commit": commit} | {name: sorted(part) for name, part in found.items()}

    def run(self):
        one_parent = ["--min-parents=1", "--max-parents=1"]
        commits = sorted(git(self.repo, "log", *one_parent, "--format=%H", "--since", self.options.since).split())
        random.Random(self.options.seed).shuffle(commits)
        measured, skipped = [], Counter()
        for commit in commits:
            if len(measured) == self.options.commits:
                break
            try:
                found = self.outcome(commit)
            except Unrunnable:
                skipped["whose tests do not run"] += 1
                continue
            if found is None:
                skipped["that change no function"] += 1
                continue
            measured.append(found)
            sizes = " ".join(f"{name} {len(part)}" for name, part in found.items() if name != "commit")
            print(commit[:12], sizes, file=sys.stderr, flush=True)
        (self.cache / "results.json").write_text(json.dumps(measured, indent=1))
        print(f"{self.repo.name}: {len(measured)} commits", *(f"{n} {why}" for why, n in skipped.items()), sep=", ")
        for name in ("sure", "named", "wanted"):
            print(f"  {name:6} {figures(measured, name)}")


def figures(measured, name):
    def both(part, whole):
        pairs = [(len(set(one[part]) & set(one[whole])), len(one[whole])) for one in measured if one[whole]]
        micro = sum(n for n, _ in pairs) / max(1, sum(n for _, n in pairs))
        macro = sum(n / n_all for n, n_all in pairs) / max(1, len(pairs))
        return f"{micro:.3f} micro {macro:.3f} macro"

    return f"recall {both(name, 'wanted')}, share {both(name, 'tests')}, of which wanted {both('wanted', name)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("repo", type=Path)
    parser.add_argument("cache", type=Path)
    parser.add_argument("--python", action="append", help="interpreter with what the tests need")
    parser.add_argument("--source", default="src", help="folder of the sources of Python (src)")
    parser.add_argument("--commits", type=int, default=30)
    parser.add_argument("--since", default="2023-01-01", help="date of the oldest commits (2023-01-01)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    Bench(options).run()


if __name__ == "__main__":
    main()
