#!/usr/bin/env python3
"""Scores `search` on the kinds of queries that people paste: paths, stack traces, printed names, messages, typing errors.

Corpus: clones of public repositories with a clean checkout. All queries are made from their files, by seed; none is stored.
Usage: query_kinds.py PROGRAM CLONE... [--n N] [--seed S] [--only TEXT] [--wrong K]
  --n N        at most N queries for each kind and clone (default 12)
  --only TEXT  only the kinds whose name contains TEXT
  --wrong K    also print K wrong cases for each kind

A line per kind: queries, right place first (for a kind with `file`: right file), right file first, all right places among
ten results, nothing found. For stack traces, `first` is the innermost frame of the repository, `ten` all its frames, and
`order` the traces whose files all are found and listed innermost first. A place is right if it covers the line and is not
much longer than the definition there.
"""
import argparse
import collections
import dataclasses
import json
import os
import random
import re
import subprocess
import sys

TEST = re.compile(r"(^|/)(\w*tests?|specs?|__tests__|[\w.-]*Tests?|\w+Test)/|(^|/)test_[^/]*$|[._-](test|spec|unit)s?\.\w+$|Tests?\.\w+$")
ASIDE = re.compile(r"(^|/)(docs?|docs_src|examples?|samples?|bench\w*|perf|fixtures?|testdata|[\w-]*testing[\w-]*|\w*TestHelpers|vendor|third_party|deps|"
                   r"dist|build|node_modules|playground|scripts?|templates?|installer|integration\w*|fuzz\w*|priv/static|(native|js|wasm\w*|apple|mingw\w*|nonJvm)Main)/|\.(min|pb|d)\.\w+$")
STOP = set("the and for with that this from are was not you but can has have will when which its into all any use used one their "
           "they then than also only been such these those there what how our your his her him she who may must should would could "
           "does did done being were had about after before other some more most over under very just".split())
VALUES = ["report.txt", "42", "alice", "127.0.0.1:8080", "widget", "17", "/tmp/data", "orders"]
# Name: extensions, definition (the last group is the name), container
LANGUAGES = {
    "Python": ("py", r"\s*(?:async )?def (\w+)\(", r"\s*class (\w+)"),
    "JavaScript": ("js mjs cjs jsx ts tsx mts", r"\s*(?:export )?(?:default )?(?:async )?function\*? (\w+)\s*[(<]|(\w+)(?:\.prototype)?\.(\w+) = (?:async )?function\b"
                   r"|\s+(?:(?:public|private|protected|static|async|override) )*(?!if\b|for\b|while\b|switch\b|catch\b|function\b|return\b|with\b)(\w+)\([^()]*\)(?:: [^={]+)? \{$",
                   r"\s*(?:export )?(?:default )?(?:abstract )?class (\w+)"),
    "Go": ("go", r"func (?:\((?:\w+ )?(\*?)(\w+)[^)]*\) )?(\w+)[\[(]", None),
    "Java": ("java", r"\s+(?:(?:public|protected|private|static|final|synchronized)\s+)+(?:<[^>]+> )?(?!class |new )[\w<>\[\],.? ]+ (\w+)\(",
             r"\s*(?:(?:public|protected|private|static|final|abstract|sealed)\s+)*(?:class|interface|enum|record) (\w+)"),
    "Kotlin": ("kt", r"\s*(?:(?:public|private|internal|protected|override|open|inline|suspend|operator|infix|actual|final|tailrec) )*"
               r"fun (?:<[^>]+> )?(?:[\w<>?.*, ]+\.)?(\w+)\(", r"\s*(?:\w+ )*(?:class|interface|object) (\w+)"),
    "Rust": ("rs", r"\s*(?:pub(?:\([^)]*\))? )?(?:const )?(?:async )?(?:unsafe )?fn (\w+)",
             r"\s*(?:unsafe )?(?:impl(?:<.*?>)? (?:.* for )?(\w+(?:<'\w+>)?)|(?:pub(?:\([^)]*\))? )?(?:trait|mod) (\w+)\b(?!;))"),
    "Ruby": ("rb", r"\s*def (self\.)?(\w+[!?]?)(?=[\s(]|$)", r"\s*(?:class|module) ([A-Z][\w:]*)(?!.*\bend$)"),
    "PHP": ("php", r"\s*(?:(?:final|public|protected|private|static) )*function &?(\w+)\(", r"\s*(?:(?:final|abstract|readonly) )*(?:class|trait|interface|enum) (\w+)"),
    "C#": ("cs", r"\s+(?:(?:public|private|internal|protected|static|async|override|virtual|sealed|unsafe) )+(?!class |new |struct |record )[\w<>\[\],.? ]+ (\w+)(?:<[^>]*>)?\(",
           r"\s*(?:(?:public|private|internal|protected|static|sealed|abstract|partial|readonly|ref) )*(?:class|struct|interface|record) (\w+)"),
    "C++": ("c cc cpp cxx", r"(?! )(?:[\w:<>,*& ]+[ *&])((?:\w+::)*~?[a-z]\w*)\((?!.*;$)|(?! )(?:[\w:<>,*& ]+[ *&])?((?:\w+::)+~?\w+)\((?!.*;$)", None),
    "Elixir": ("ex", r"\s+(?:def|defp) (\w+[!?]?)\(", r"\s*defmodule ([\w.]+) do"),
    "Swift": ("swift", r"\s*(?:(?:public|private|fileprivate|internal|open|static|final|override|mutating|@\w+) )*func (\w+)[(<]",
              r"\s*(?:(?:public|private|fileprivate|internal|open|final|indirect) )*(?:struct|class|enum|extension|actor|protocol) ([\w.]+)"),
}


@dataclasses.dataclass
class Definition:
    language: str
    path: str
    line: int
    end: int
    name: str
    container: list  # of names, outermost first
    outer: list  # functions around it
    static: bool
    package: str
    inside: list  # lines that a frame can stand at
    signature: str

    def owner(self, join):
        return join.join(self.container)


def indentation(text):
    return len(text) - len(text.lstrip())


def end_of(lines, start):
    """The last line (0-based) of the block that starts at `start`, by indentation."""
    own = indentation(lines[start])
    for i in range(start + 1, len(lines)):
        text = lines[i].strip()
        if not text or indentation(lines[i]) > own or text[0] in "{)]#" or re.match(r"where\b|\w+:$|rescue\b|ensure\b|else\b", text):
            continue
        return i if text[0] == "}" or re.match(r"end\b", text) else i - 1
    return len(lines) - 1


def definitions(repo, path, lines):
    language = repo.language(path)
    _, define, contain = LANGUAGES[language]
    define, contain, stack, found = re.compile(define), contain and re.compile(contain), [], []
    package, shown = package_of(repo, language, path, lines), lines
    lines = re.sub(r'"""[\s\S]*?"""', lambda text: '""' + "\n" * text[0].count("\n"), "\n".join(lines)).split("\n")  # no code in documentation
    for i, line in enumerate(lines):
        text = line.strip()
        if not text or text[0] in "{)]" or text.startswith(("#", "//", "*", "/*")):
            continue
        while stack and indentation(line) <= stack[-1][0]:
            stack.pop()
        container = contain and contain.match(line)
        match = None if container else define.match(line)
        if container:
            stack.append((indentation(line), "type", next(filter(None, container.groups()))))
        if not match or re.match(r"(return|else|new|throw|delete|typedef|case)\b", text):
            continue
        groups, end = [g for g in match.groups() if g], end_of(lines, i)
        opened = next((j for j in range(i, end) if re.search(r"(\{|:|\bdo|=|\|)\s*$", lines[j])), i)
        if language == "C++" and not any("{" in text for text in lines[i:i + 6]):
            continue
        name, owner = groups[-1], [name for _, kind, name in stack if kind == "type"]
        if language == "C++":
            *owner, name = name.split("::")
        elif language in ("Go", "JavaScript") and len(groups) > 1:
            owner = ["".join(groups[:-1])]
        comment = ("#", "//", "*", "/*", "@", '"""', "'''")
        inside = [j + 1 for j in range(opened + 1, end + 1) if re.search(r"\w\(|\w+ = |return", lines[j])
                  and indentation(lines[j]) > indentation(line) and not lines[j].strip().startswith(comment)]
        outer = [name for _, kind, name in stack if kind == "function"]
        stack.append((indentation(line), "function", name))
        if end - i >= 2 and inside and name not in ("__init__", "constructor", "initialize", "init", "main") and (owner or language not in ("Java", "C#")):
            static = bool(re.search(r"\bstatic\b|def self\.", match[0]))
            found.append(Definition(language, path, i + 1, end + 1, name, owner, outer, static, package, inside, " ".join(shown[i:opened + 1])))
    return found


def package_of(repo, language, path, lines):
    text = "\n".join(lines)
    if language == "Python":
        return re.sub(r"^(src|lib)/|\.py$|/__init__\.py$", "", path).replace("/", ".")
    if language == "Rust":
        crate, _, inner = ("/" + path).rpartition("/src/")
        modules = [m for m in re.sub(r"\.rs$", "", inner).split("/") if m not in ("mod", "lib", "main")]
        return "::".join([(os.path.basename(crate) or repo.name).replace("-", "_")] + modules)
    if language == "Go":
        return "/".join(filter(None, [repo.module, os.path.dirname(path)]))
    pattern = {"Java": r"^package ([\w.]+)", "Kotlin": r"^package ([\w.]+)", "C#": r"^namespace ([\w.]+)", "PHP": r"^namespace ([\w\\]+);",
               "C++": r"^namespace (\w+) *\{"}.get(language)
    match = pattern and re.search(pattern, text, re.M)
    return match[1] if match else ""


class Repository:
    def __init__(self, directory):
        self.directory, self.name, self.files = directory, os.path.basename(os.path.abspath(directory)), {}
        for path in subprocess.run(["git", "-C", directory, "ls-files"], capture_output=True, text=True, check=True).stdout.split("\n"):
            full = os.path.join(directory, path)
            if path and os.path.isfile(full) and not os.path.islink(full) and os.path.getsize(full) < 500_000:
                with open(full, encoding="utf-8", errors="ignore") as file:
                    self.files[path] = file.read()
        module = re.search(r"^module (\S+)", self.files.get("go.mod", ""), re.M)
        self.module = module[1] if module else "example.org/" + self.name
        self.sources = [p for p in self.files if self.language(p) and not TEST.search(p) and not ASIDE.search(p)]
        self.tests = [p for p in self.files if self.language(p) and TEST.search(p)]
        self.definitions = [d for p in self.sources for d in definitions(self, p, self.files[p].split("\n"))]
        self.by_path = collections.defaultdict(list)
        for d in self.definitions:
            self.by_path[d.path].append(d)

    def language(self, path):
        return next((name for name, (ends, *_) in LANGUAGES.items() if path.rpartition(".")[2] in ends.split()), None)

    def covering(self, path, line):
        return min((d for d in self.by_path.get(path, []) if d.line <= line <= d.end), key=lambda d: d.end - d.line, default=None)


@dataclasses.dataclass
class Query:
    kind: str
    text: str
    places: list  # each a list of acceptable (path, line or None, length of the definition)
    trace: bool = False
    symbol: str = ""  # container and name, which stand for the place of an overload that is not found by `definitions`


def place(repo, path, line):
    d = repo.covering(path, line)
    return [(path, line, d.end - d.line if d else 20)]


# Paths


def path_queries(repo, rng, n):
    paths = list(repo.by_path)
    for path in rng.sample(paths, min(n, len(paths))):
        line = rng.choice(rng.choice(repo.by_path[path]).inside)
        name = os.path.basename(path)
        root = rng.choice([f"/srv/ci/build/{repo.name}/", f"/opt/ann/src/{repo.name}/", f"/app/vendor/{repo.name}-1.4.2/"])
        namesakes = [p for p in repo.files if os.path.basename(p) == name]
        files = [[(p, None, 0) for p in namesakes]]
        at, named = [place(repo, path, line)], [[x for p in namesakes for x in place(repo, p, line)]]
        yield Query("path (file)", path, [[(path, None, 0)]])
        yield Query("path:line", f"{path}:{line}", at)
        yield Query("file name (file)", name, files)
        yield Query("file name:line", f"{name}:{line}", named)
        yield Query("foreign path:line", f"{root}{path}:{line}", at)
        yield Query("foreign Windows path:line", f"C:\\work\\{repo.name}\\" + path.replace("/", "\\") + f":{line}", at)
        yield Query('File "…", line N', f'File "{root}{path}", line {line}', at)
        yield Query("path(line,col)", f"{path}({line},{rng.randint(3, 30)})", at)
        yield Query("question with path (file)", f"what does {path} do", [[(path, None, 0)]])


# Stack traces. A frame has its definition `d`, `line`, `col` and `at`, the path as printed; a frame of a library is text.

Frame = collections.namedtuple("Frame", "d line col at text")
LIBRARY = {
    "Python": ['  File "/usr/lib/python3.11/threading.py", line 1045, in _bootstrap_inner\n    self.run()',
               '  File "/usr/lib/python3.11/contextlib.py", line 81, in inner\n    return func(*args, **kwds)',
               '  File "/usr/lib/python3.11/json/decoder.py", line 355, in raw_decode\n    raise JSONDecodeError("Expecting value", s, err.value) from None'],
    "JavaScript": ["    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)", "    at Array.forEach (<anonymous>)",
                   "    at new Promise (<anonymous>)"],
    "Go": ["net/http.(*conn).serve(0xc0001b2000, {0x7a1c88, 0xc0001a0ba0})\n\t/usr/local/go/src/net/http/server.go:1995 +0x612",
           "sync.(*Once).doSlow(0xc000012345, 0xc00005af20)\n\t/usr/local/go/src/sync/once.go:74 +0xbf", "panic({0x6b2f40?, 0x8c1d30?})\n\t/usr/local/go/src/runtime/panic.go:914 +0x21f"],
    "Java": ["\tat java.base/java.lang.Thread.run(Thread.java:833)", "\tat java.base/java.util.ArrayList.forEach(ArrayList.java:1511)",
             "\tat java.base/java.util.Objects.requireNonNull(Objects.java:233)"],
    "Rust": ["core::ops::function::FnOnce::call_once\n             at /rustc/9fc6b43126469e3858e2fe86cafb4f0fd5068869/library/core/src/ops/function.rs:250:5",
             "std::thread::local::LocalKey<T>::with\n             at /rustc/9fc6b43126469e3858e2fe86cafb4f0fd5068869/library/std/src/thread/local.rs:283:12",
             "core::panicking::panic_fmt\n             at /rustc/9fc6b43126469e3858e2fe86cafb4f0fd5068869/library/core/src/panicking.rs:74:14"],
    "Ruby": ["/usr/local/lib/ruby/3.2.0/net/http.rb:1018:in `start'", "/usr/local/lib/ruby/3.2.0/timeout.rb:189:in `block in timeout'", "/usr/local/lib/ruby/3.2.0/socket.rb:227:in `tcp'"],
    "C#": ["   at System.Threading.Tasks.Task.Execute()", "   at System.Linq.Enumerable.ToList[TSource](IEnumerable`1 source)", "   at System.ThrowHelper.ThrowKeyNotFoundException[T](T key)"],
    "C++": ["__libc_start_main", "std::thread::_State::_M_run", "malloc"],
    "Elixir": ["    (stdlib 5.1) gen_server.erl:1077: :gen_server.try_handle_call/4", '    (elixir 1.15.7) lib/enum.ex:1693: Enum."-map/2-lists^map/1-1-"/2',
               "    (elixir 1.15.7) lib/keyword.ex:559: Keyword.fetch!/2"],
    "Swift": ["start + 2424 in dyld", "closure #1 in Sequence.forEach(_:) + 88 in libswiftCore.dylib", "_assertionFailure(_:_:file:line:flags:) + 264 in libswiftCore.dylib"],
}
LIBRARY["Kotlin"] = LIBRARY["Java"]
LIBRARY["PHP"] = ["", "array_map(Object(Closure), Array)", "array_key_exists(Object(stdClass), Array)"]


def arity(d):
    """The number of arguments, from the commas that stand in no inner brackets."""
    depth, commas, arguments = 0, 0, d.signature.partition("(")[2]
    for i, c in enumerate(arguments):
        depth += (c in "([{") - (c in ")]}")
        commas += c == "," and depth == 0
        if depth < 0:
            return commas + 1 if arguments[:i].strip() else 0
    return commas + 1


def printed(d):
    """The name of `d` as the runtime of its language prints it."""
    package, owner = d.package, d.owner
    if d.language == "JavaScript":
        return ".".join(d.container[-1:] + [d.name])
    if d.language == "Go":
        receiver = owner("")
        return ".".join(filter(None, [package, f"({receiver})" if "*" in receiver else receiver, d.name]))
    if d.language in ("Java", "Kotlin"):
        file = os.path.splitext(os.path.basename(d.path))[0] + "Kt"
        return ".".join(filter(None, [package, "$".join(d.container) or file, d.name]))
    if d.language == "C#":
        return ".".join(filter(None, [package, owner("."), d.name]))
    if d.language == "Swift":
        labels = re.findall(r"[(,] *(\w+)(?: \w+)?:", d.signature.partition(d.name)[2].partition("->")[0])
        return ".".join(filter(None, [owner("."), d.name])) + "(" + "".join(label + ":" for label in labels) + ")"
    if d.language in ("Rust", "C++"):
        return "::".join(filter(None, [package, owner("::"), d.name]))
    if d.language == "PHP":
        return "\\".join(filter(None, [package, owner("\\")])) + ("::" if d.static else "->") + d.name
    if d.language == "Elixir":
        return f"{owner('.')}.{d.name}/{arity(d)}"
    return d.name


def installed(repo, d, rng):
    """The path of `d` on another machine: in a directory of builds, or where the package manager puts it."""
    crate, slash, inner = ("/" + d.path).rpartition("/src/")
    return rng.choice([
        f"/srv/ci/build/{repo.name}/{d.path}",
        {"Python": "/usr/local/lib/python3.11/site-packages/" + re.sub(r"^(src|lib)/", "", d.path),
         "JavaScript": "/app/node_modules/" + (d.path[9:] if d.path.startswith("packages/") else f"{repo.name}/{d.path}"),
         "Go": f"/srv/go/pkg/mod/{repo.module}@v1.8.2/{d.path}",
         "Rust": f"/srv/.cargo/registry/src/index-6f17d22bba15001f/{os.path.basename(crate) or repo.name}-1.38.0/src/{inner}" if slash else d.path,
         "Ruby": f"/usr/local/bundle/gems/{repo.name}-6.4.2/{d.path}", "PHP": f"/var/www/html/vendor/acme/{repo.name}/{d.path}",
         "C#": f"/_/{d.path}", "C++": f"/build/{repo.name}-1.23/{d.path}",
         "Swift": f"/app/.build/checkouts/{repo.name}/{d.path}"}.get(d.language, d.path)])


def trace_text(repo, language, frames, rng):
    """A stack trace of `frames`, innermost first, in the format of the runtime, with frames of the standard library."""
    outside, middle, innermost = LIBRARY[language]
    stack = frames + [outside]
    stack.insert(rng.randint(1, len(frames)), middle)
    if rng.random() < 0.5:
        stack.insert(0, innermost)
    top, name, version = frames[0], lambda f: printed(f.d), f"{rng.randint(1, 4)}.{rng.randint(0, 20)}.{rng.randint(0, 9)}"
    address = lambda: f"0x{rng.randrange(1 << 44, 1 << 47):016x}"
    each = lambda show: [f if isinstance(f, str) else show(f) for f in stack]
    if language == "Python":
        lines = each(lambda f: f'  File "{f.at}", line {f.line}, in {f.d.name}\n    {f.text}')
        return "\n".join(["Traceback (most recent call last):"] + lines[::-1] + ["ValueError: invalid literal for int() with base 10: 'abc'"])
    if language == "JavaScript":
        return "\n".join(["TypeError: Cannot read properties of undefined (reading 'length')"] + each(lambda f: f"    at {name(f)} ({f.at}:{f.line}:{f.col})"))
    if language == "Go":
        show = lambda f: f"{name(f)}({address()[:2]}c{rng.randrange(1 << 36):09x}, 0x{rng.randrange(64):x})\n\t{f.at}:{f.line} +0x{rng.randrange(2048):x}"
        return "\n".join(["panic: runtime error: invalid memory address or nil pointer dereference", "[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x6f1a2c]", "",
                          f"goroutine {rng.randint(1, 99)} [running]:"] + each(show) + ["exit status 2"])
    if language in ("Java", "Kotlin"):
        return "\n".join(['Exception in thread "main" java.lang.IllegalStateException: closed'] + each(lambda f: f"\tat {name(f)}({os.path.basename(f.d.path)}:{f.line})"))
    if language == "Rust":
        lines = ["rust_begin_unwind\n             at /rustc/9fc6b43126469e3858e2fe86cafb4f0fd5068869/library/std/src/panicking.rs:665:5"]
        lines += each(lambda f: f"{name(f)}\n             at {f.at}:{f.line}:{f.col}")
        return "\n".join([f"thread 'main' panicked at {top.at}:{top.line}:{top.col}:", "called `Option::unwrap()` on a `None` value", "stack backtrace:"]
                         + [f"{i:4}: {text}" for i, text in enumerate(lines)])
    if language == "Ruby":
        new = rng.random() < 0.5  # Ruby 3.4 names the class
        label = lambda d: f"'{d.owner('::')}{'.' if d.static else '#'}{d.name}'" if new and d.container else f"`{d.name}'"
        first, *rest = each(lambda f: f"{f.at}:{f.line}:in {label(f.d)}")
        return "\n".join([f"{first}: undefined method `size' for nil:NilClass (NoMethodError)"] + ["\tfrom " + text for text in rest])
    if language == "PHP":
        # a line holds the place of a call and the name of what is called
        place_of = lambda f: f"{f.at}({f.line})" if f in frames else "[internal function]" if f else "/var/www/html/public/index.php(17)"
        calls = [f"{place_of(caller)}: {f'{name(f)}(Array)' if f in frames else f}" for f, caller in zip(stack, stack[1:])]
        return "\n".join([f"PHP Fatal error:  Uncaught TypeError: Unsupported operand types: string + int in {top.at}:{top.line}", "Stack trace:"]
                         + [f"#{i} {text}" for i, text in enumerate(calls)] + [f"#{len(calls)} {{main}}", f"  thrown in {top.at} on line {top.line}"])
    if language == "C#":
        parameters = lambda d: ", ".join(f"{t} {p}" for t, p in re.findall(r"([\w.]+(?:<[^()]*?>)?\??(?:\[\])?) (\w+)(?=[,)= ])", d.signature.partition("(")[2].replace("this ", ""))[:4])
        return "\n".join(["Unhandled exception. System.NullReferenceException: Object reference not set to an instance of an object."]
                         + each(lambda f: f"   at {name(f)}({parameters(f.d)}) in {f.at}:line {f.line}"))
    if language == "C++":
        if rng.random() < 0.5:
            lines = [f"{f} () from /lib/x86_64-linux-gnu/libc.so.6" if isinstance(f, str) else f"{name(f)} ({f'this={address()}, ' if f.d.container else ''}n=5) at {f.at}:{f.line}" for f in stack]
            return "\n".join(["Program received signal SIGSEGV, Segmentation fault.", "#0  " + lines[0]] + [f"#{i:<2} {address()} in {text}" for i, text in enumerate(lines[1:], 1)])
        lines = [f"{f} (/lib/x86_64-linux-gnu/libc.so.6+0x2409a)" if isinstance(f, str) else f"{name(f)}{'(int)' if f.d.container else ''} {f.at}:{f.line}:{f.col}" for f in stack]
        return "\n".join([f"==4711==ERROR: AddressSanitizer: heap-use-after-free on address {address()} at pc {address()}", f"READ of size 8 at {address()} thread T0"]
                         + [f"    #{i} {address()} in {text}" for i, text in enumerate(lines)])
    if language == "Elixir":
        return "\n".join(["** (FunctionClauseError) no function clause matching in " + name(top)] + each(lambda f: f"    ({repo.name} {version}) {f.d.path}:{f.line}: {name(f)}"))
    lines = each(lambda f: f"{name(f)} + {rng.randint(20, 900)} in {repo.name} at {f.at}:{f.line}:{f.col}")
    return "\n".join([f"{repo.name}/{os.path.basename(top.d.path)}:{top.line}: Fatal error: Unexpectedly found nil while unwrapping an Optional value", "",
                      "Thread 0 crashed:", ""] + [f"{i} {'[ra]' if i else '    '} {address()} {text}" for i, text in enumerate(lines)])


def trace_queries(repo, rng, n):
    names = collections.Counter((d.package, os.path.basename(p)) for p, (d, *_) in repo.by_path.items())
    for language in LANGUAGES:
        paths = [p for p, (d, *_) in repo.by_path.items() if d.language == language
                 and (language not in ("Java", "Kotlin") or names[d.package, os.path.basename(p)] == 1)]
        for _ in range(n if len(paths) >= 4 else 0):
            chosen = rng.sample(paths, 3)
            pool = [d for p in chosen for d in rng.sample(repo.by_path[p], min(2, len(repo.by_path[p])))]
            rng.shuffle(pool)
            frames, roots = [], rng.randrange(1 << 30)  # all frames of a trace have the same kind of prefix
            for d in pool[:rng.randint(3, 5)]:
                line = rng.choice(d.inside)
                frames.append(Frame(d, line, rng.randint(5, 30), installed(repo, d, random.Random(roots)), repo.files[d.path].split("\n")[line - 1].strip()))
            yield Query(f"trace {language}", trace_text(repo, language, frames, rng), [place(repo, f.d.path, f.line) for f in frames], True)


# Names as programs print them


def name_forms(d):
    """(form, text) of the ways to print the name of `d`."""
    c, last, name, full = d.container, (d.container or [""])[-1], d.name, printed(d)
    file, line = os.path.basename(d.path), d.inside[-1]
    if d.outer:
        return [("C.m.<locals>.f", ".".join(c + [d.outer[-1], "<locals>", name]))] if d.language == "Python" and len(d.outer) == 1 else []
    if d.language == "Python" and c:
        return [("Class.method", f"{last}.{name}"), ("pkg.mod.Class.method", f"{d.package}.{d.owner('.')}.{name}")]
    if d.language == "JavaScript" and c:
        of_class = [("Class#method", f"{last}#{name}"), ("C.prototype.m", f"{last}.prototype.{name}")] if last[0].isupper() else []
        return of_class + [("Class.method", f"{last}.{name}")]
    if d.language == "Go" and c:
        return [("pkg.(*T).M", f"{os.path.basename(d.package)}.{full.rpartition('/')[2].partition('.')[2]}"), ("host/pkg.(*T).M", full)]
    if d.language in ("Java", "Kotlin"):
        forms = [("a.b.C.m(C.java:N)", f"{full}({file}:{line})")]
        return forms + ([("C$Inner.m", "$".join(c) + "." + name)] if len(c) > 1 else [("Class#method", f"{last}#{name}")] if c else [("FileKt.m", ".".join(full.split(".")[-2:]))])
    if d.language == "Rust" and c:
        bare = re.sub(r"<.*", "", last)
        borrowing = [("T<'a>::m", f"{last}::{name}")] if "<" in last else []
        return borrowing + [("krate::m::T::m", "::".join(filter(None, [d.package, bare, name])))]
    if d.language == "Ruby" and c:
        sign = "." if d.static else "#"
        return [("Class" + sign + "method", f"{last.split('::')[-1]}{sign}{name}"), ("A::B" + sign + "m", f"{d.owner('::')}{sign}{name}")]
    if d.language == "PHP" and c:
        return [("A\\B\\C::m", full.replace("->", "::")), ("A\\B\\C->m()", full.replace("::", "->") + "()")]
    if d.language == "C#" and c:
        return [("N.C.M(Int32 x)", f"{full}(Int32 x, String y)"), ("Class.method", f"{last}.{name}")]
    if d.language == "C++" and c:
        return [("ns::C::m(int) const", f"{full}(int) const"), ("C::m", f"{last}::{name}")]
    if d.language == "Elixir" and c:
        return [("Mod.f/2", full), ("Mod.f(a)", f"{d.owner('.')}.{name}(a)")]
    if d.language == "Swift" and c:
        return [("C.m(_:)", f"{last}.{name}{full[full.index('('):]}"), ("Class.method", f"{last}.{name}")]
    return []


def name_queries(repo, rng, n):
    """Only names whose last container and name stand in one file, so that one place is right."""
    same = collections.defaultdict(list)
    for d in repo.definitions:
        same[re.sub(r"\W|<.*", "", (d.container or [""])[-1].rpartition(":")[2].rpartition(".")[2]), d.name].append(d)
    for d in rng.sample(repo.definitions, len(repo.definitions)):
        key = re.sub(r"\W|<.*", "", (d.container or [""])[-1].rpartition(":")[2].rpartition(".")[2]), d.name
        if len({x.path for x in same[key]}) == 1:
            for form, text in name_forms(d):
                lines = [(d.path, d.inside[-1], d.end - d.line)] if text.endswith(f":{d.inside[-1]})") else [(x.path, x.line, x.end - x.line) for x in same[key]]
                yield Query("name " + form, text, [lines], symbol=".".join(key) if key[0] else "")


# Messages, tests, words

MESSAGE = re.compile(r"\b(raise|throw|panic|bail|abort|die|err|errors?|errorf|fatal\w*|\w*(Error|Exception)|warn(ing)?|log(ger)?|precondition\w*|expect)\b!?", re.I)
PLACEHOLDER = re.compile(r"%[-+ #0]*\d*(?:\.\d+)?[lzh]*[sdvqwxfpcuiTt]|\$?\{[^{}]*\}|#\{[^{}]*\}|\\\([^()]*(?:\([^()]*\))?\)|\$\w+(?:->\w+|\.\w+)*")


def message_queries(repo, rng, n):
    everything = "\n".join(repo.files[p] for p in repo.sources)
    found = []
    for path in repo.sources:
        lines = repo.files[path].split("\n")
        for i, line in enumerate(lines):
            if re.match(r"\s*(#|//|\*|/\*)", line) or not (MESSAGE.search(line.partition('"')[0].partition("'")[0]) or i and lines[i - 1].rstrip().endswith("(") and MESSAGE.search(lines[i - 1])):
                continue
            for match in re.finditer(r'"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\]|\\.)*)\'|`([^`]*)`', line):
                literal = next(filter(None, match.groups()), "")
                parts = PLACEHOLDER.split(literal)
                if len(re.findall(r"[A-Za-z']{2,}", " ".join(parts))) >= 5 and everything.count(max(parts, key=len)) == 1:
                    found.append((path, i + 1, literal))
    for path, line, literal in rng.sample(found, min(n, len(found))):
        text = re.sub(r"\\[nrt]|\\(?=.)", " ", PLACEHOLDER.sub(lambda _: rng.choice(VALUES), literal)).replace("%%", "%")
        yield Query("message", " ".join(text.split()), [place(repo, path, line)])


def test_queries(repo, rng, n):
    naming = collections.defaultdict(set)
    for path in repo.tests:
        for name in set(re.findall(r"\b(\w+[!?]?)\(" if repo.language(path) != "Ruby" else r"\b(\w+[!?]?)(?=\W|$)", repo.files[path])):
            naming[name].add(path)
    count = collections.Counter(d.name for d in repo.definitions)
    inline = lambda d: d.language == "Rust" and d.name in repo.files[d.path].partition("#[cfg(test)]")[2]
    fit = [d for d in repo.definitions if len(d.name) >= 6 and count[d.name] == 1 and 1 <= len(naming[d.name]) <= 5 and not inline(d)]
    for d in rng.sample(fit, min(n, len(fit))):
        naming_it = [(p, None, 0) for p in repo.tests if re.search(rf"\b{re.escape(d.name)}(?!\w)", repo.files[p])]
        yield Query("tests for X (file)", f"tests for {d.name}", [naming_it])
        yield Query("how is X tested (file)", f"how is {d.name} tested", [naming_it])


def plain_phrases(line, k):
    """Runs of `k` adjacent plain words of `line`, without stop words."""
    words = list(re.finditer(r"(?<!\w)[a-z]{3,14}(?!\w)", line))
    for i in range(len(words) - k + 1):
        part = words[i:i + k]
        if all(line[a.end():b.start()] == " " for a, b in zip(part, part[1:])) and not any(w[0] in STOP for w in part):
            yield " ".join(w[0] for w in part)


def word_queries(repo, rng, n):
    texts = {p: t for p, t in repo.files.items() if repo.language(p) or p.endswith((".md", ".rst", ".txt"))}
    for k, kind in ((2, "two words (file)"), (3, "three words (file)")):
        lines = collections.Counter(phrase for t in texts.values() for line in t.split("\n") for phrase in set(plain_phrases(line, k)))
        fit = sorted(phrase for phrase, count in lines.items() if count <= 5)
        for phrase in rng.sample(fit, min(n, len(fit))):
            yield Query(kind, phrase, [[(p, None, 0) for p, t in repo.files.items() if phrase in t]])


def typo(word, rng):
    i = rng.randrange(1, len(word) - 2)
    return rng.choice([word[:i] + word[i + 1:], word[:i] + word[i + 1] + word[i] + word[i + 2:], word[:i] + rng.choice("aeinorst") + word[i + 1:]])


def typo_queries(repo, rng, n):
    holding = collections.Counter(w for t in repo.files.values() for w in set(re.findall(r"[a-z]+", t.lower())))
    fit = sorted({(phrase, p) for p in repo.sources for line in repo.files[p].split("\n") if re.match(r"\s*(#|//|\*|/\*)", line)
                  for phrase in plain_phrases(line, 3)})
    rng.shuffle(fit)
    for phrase, _ in fit:
        rare = [w for w in phrase.split() if len(w) >= 6 and holding[w] <= 5]
        wrong = typo(rare[0], rng) if rare else ""
        if rare and holding[wrong] == 0:
            yield Query("typing error (file)", phrase.replace(rare[0], wrong), [[(p, None, 0) for p, t in repo.files.items() if phrase in t]])


# Scores


def search(program, repo, text):
    dash = text.startswith("-")
    run = subprocess.run([program, "search", "--json", "-n", "10", "-" if dash else text], cwd=repo.directory, input=text if dash else "", capture_output=True, text=True)
    if run.returncode not in (0, 1):
        print(f"{repo.name}: exit status {run.returncode} for {text!r}: {run.stderr.strip()}", file=sys.stderr)
    return json.loads(run.stdout).get("results", []) if run.stdout.strip() else []


def covers(found, alternatives, symbol=""):
    if symbol and found["path"] == alternatives[0][0] and ("." + (found.get("symbol") or "")).endswith("." + symbol):
        return True
    return any(found["path"] == path and (line is None or found["start_line"] <= line <= found["end_line"]
               and found["end_line"] - found["start_line"] <= 2 * length + 25) for path, line, length in alternatives)


def score(query, results):
    """(first right, right file first, all among ten, nothing found, files of a trace in order)"""
    first = bool(results) and covers(results[0], query.places[0], query.symbol)
    file = bool(results) and results[0]["path"] in {path for path, _, _ in query.places[0]}
    found = [[r] + r.get("places", []) for r in results]
    ten = all(any(covers(f, alternatives, query.symbol) for fs in found for f in fs) for alternatives in query.places)
    files, listed = list(dict.fromkeys(alternatives[0][0] for alternatives in query.places)), [r["path"] for r in results]
    order = [path for path in dict.fromkeys(listed) if path in files] == files
    return first, file, ten, not results, query.trace and order


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("clone", nargs="+")
    parser.add_argument("--n", type=int, default=12)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--only", default="")
    parser.add_argument("--wrong", type=int, default=0)
    options = parser.parse_args()
    program, totals, wrong = os.path.abspath(options.program), {}, collections.defaultdict(list)
    for directory in options.clone:
        repo = Repository(directory)
        for make in (path_queries, trace_queries, name_queries, message_queries, test_queries, word_queries, typo_queries):
            asked = collections.Counter()
            for query in make(repo, random.Random(f"{options.seed} {repo.name} {make.__name__}"), options.n):
                asked[query.kind] += 1
                if asked[query.kind] > options.n or options.only not in query.kind:
                    if make is typo_queries:
                        break
                    continue
                results = search(program, repo, query.text)
                scores = score(query, results)
                total = totals.setdefault(query.kind, [0] * 6)
                totals[query.kind] = [a + b for a, b in zip(total, (1, *scores))]
                if not (scores[2] if query.kind.startswith(("typing", "two", "three")) else scores[0]):
                    wrong[query.kind].append((repo.name, query, results))
        print(repo.name, len(repo.sources), "source files,", len(repo.definitions), "definitions", file=sys.stderr)
    print(f"{'kind':28} {'n':>4} {'first':>6} {'file':>6} {'ten':>6} {'none':>6} {'order':>6}")
    for kind, (n, first, file, ten, none, order) in totals.items():
        print(f"{kind:28} {n:4} {first:6} {file:6} {ten:6} {none:6} {order if kind.startswith('trace') else '':>6}")
    for kind, cases in wrong.items():
        random.Random(options.seed).shuffle(cases)
        for name, query, results in cases[:options.wrong]:
            print(f"\n[{kind}] {name}: {query.text}\n  right:", [alternatives[:3] for alternatives in query.places])
            for r in results[:3]:
                print("  found:", r["path"], r["start_line"], r["end_line"], r.get("symbol"), [(p["path"], p["start_line"], p["end_line"]) for p in r["places"][:3] if p])


main()
