"""Counts the declarations of repositories by regular expressions and compares them with the definitions of codescout.

Usage: declarations.py [-v] CODESCOUT REPO...

Reads the files of HEAD that codescout indexes. A declaration is found if codescout has a definition with its name in
the file, once for each declaration. Comments and strings do not count. Prints a line per language: declarations, those
that were found, their share, and the number of files and of repositories; with -v, also the missing ones. The indexes
are in a temporary folder.
"""

import collections
import json
import os
import re
import subprocess
import sys
import tempfile

MODIFIERS = (
    "public protected private internal static final abstract sealed open override inline partial async readonly unsafe "
    "virtual export default declare const suspend operator infix data enum value annotation tailrec external expect "
    "actual inner companion fileprivate mutating indirect case implicit lazy base extern synchronized native strictfp "
    "new nonisolated distributed"
)
MODIFIERS = rf"(?:(?:{MODIFIERS.replace(' ', '|')})\s+)*"
C_TYPES = r"(?:struct|union|enum)\s+(\w+)\s*\{"
SCRIPT = [r"%sfunction\s*\*?\s*(\w+)\s*[(<]" % MODIFIERS, r"%sclass\s+(?!extends\b)(\w+)" % MODIFIERS]
C_FUNCTION = r"^(?!else\b|return\b|typedef\b|#)[A-Za-z_][\w \t*]*?[\s*]([a-z_]\w+)\([^;{}()#]*\)\s*\{"
C_STYLE, HASH = (r"//[^\n]*", r"/\*.*?\*/"), (r"#[^\n]*",)
# The lines of a macro after the first one.
CONTINUED = r"(?<=\\\n)[^\n]+"
DOUBLE = r'"(?:\\.|[^"\\\n])*"'
SINGLE = r"'(?:\\.|[^'\\\n])*'"
CHARACTER = r"'(?:\\[^']+|[^'\\\n])'"
BACKTICKS = r"`(?:\\.|[^`\\])*`"
TRIPLE = r'"""(?:\\.|[^\\])*?"""'

# Endings, what hides declarations, and declarations at the start of a line, with the name in the group that matches.
LANGUAGES = {
    "rust": ("rs", (*C_STYLE, r'r(#+)".*?"\1', r'"(?:\\.|[^"\\])*"', CHARACTER), [
        r"(?:pub(?:\([^)]*\))?\s+)?(?:(?:default|async|const|unsafe|extern\s+\"\w*\")\s+)*"
        r"(?:fn|struct|enum|trait|mod|type)\s+(?:r#)?(\w+)", r"macro_rules!\s+(\w+)"]),
    "python": ("py pyi", (r"'''.*?'''", TRIPLE, *HASH, DOUBLE, SINGLE), [r"(?:async\s+)?(?:def|class)\s+(\w+)"]),
    "javascript": ("js jsx mjs cjs", (*C_STYLE, DOUBLE, SINGLE, BACKTICKS), SCRIPT),
    "typescript": ("ts tsx mts cts", (*C_STYLE, DOUBLE, SINGLE, BACKTICKS), [
        *SCRIPT, r"%s(?:interface|enum)\s+(\w+)" % MODIFIERS, r"^%stype\s+(\w+)\s*[<=]" % MODIFIERS]),
    "go": ("go", (*C_STYLE, DOUBLE, CHARACTER, r"`[^`]*`"), [r"^func\s+(?:\([^)]*\)\s*)?(\w+)", r"^type\s+(\w+)"]),
    "java": ("java", (*C_STYLE, TRIPLE, DOUBLE, CHARACTER), [
        r"%s(?:class|@?interface|enum|record)\s+([\w$]+)" % MODIFIERS,
        r"(?:(?:public|protected|private|static|final|abstract|default|synchronized|native)\s+)+(?!record\b)"
        r"(?:<[^>()]+>\s+)?[\w.<>\[\],? ]+\s+(\w+)\s*\("]),
    "kotlin": ("kt kts", (*C_STYLE, TRIPLE, DOUBLE, CHARACTER), [
        r"%s(?:class|interface|object|typealias)\s+(\w+)" % MODIFIERS,
        r"%sfun\s+(?:<[^>(]*>\s*)?(?:[\w<>?*, ]+\.)*(\w+)\s*\(" % MODIFIERS]),
    "scala": ("scala", (*C_STYLE, TRIPLE, DOUBLE, CHARACTER), [
        r"%s(?:class|trait|object|def)\s+(\w+)" % MODIFIERS]),
    "csharp": ("cs", (*C_STYLE, r'@"(?:""|[^"])*"', TRIPLE, DOUBLE, CHARACTER), [
        r"%s(?:class|interface|struct|enum|record)\s+(\w+)" % MODIFIERS,
        r"(?!(?:[a-z]+\s+)*(?:class|record|struct|delegate|implicit|explicit)\b)"
        r"(?:(?:public|protected|private|internal|static|virtual|override|abstract|async|sealed)\s+)+"
        r"[\w.<>\[\],? ]+\s+(\w+)\s*(?:<[^>()]*>)?\("]),
    "swift": ("swift", (*C_STYLE, TRIPLE, DOUBLE), [
        r"%s(?:class|struct|enum|protocol|actor|typealias)\s+(?!func\b|var\b)(\w+)" % MODIFIERS,
        r"%sfunc\s+(\w+)\s*[(<]" % MODIFIERS]),
    "c": ("c", (CONTINUED, *C_STYLE, DOUBLE, CHARACTER), [C_FUNCTION, C_TYPES, r"#[ \t]*define\s+(\w+)\("]),
    "cpp": ("cc cpp cxx hpp hh", (CONTINUED, r'R"(\w*)\(.*?\)\1"', *C_STYLE, DOUBLE, CHARACTER), [
        r"(?:class|struct)\s+(?:[A-Z_]{3,}\s+)?(?:\w+::)*(\w+)(?:<[^{};]*>)?(?:\s+final)?\s*(?::[^;{}()]*)?\{",
        r"#[ \t]*define\s+(\w+)\(",
        r"^(?!else\b|return\b|#)[A-Za-z_][\w \t*&:<>,]*?[\s*&:]([a-z_]\w+)\([^;{}()#]*\)\s*(?:const\s*)?\{"]),
    "ruby": ("rb", (r"^=begin.*?^=end", r"<<[~-]?['\"]?([A-Z]\w+).*?^\s*\1$", r"#(?!\{)[^\n]*", DOUBLE, SINGLE), [
        r"(?:private\s+|module_function\s+)?def\s+(?:\w+\.)?(\w+[?!=]?)", r"(?:class|module)\s+(?:\w+::)*([A-Z]\w*)"]),
    "php": ("php", (r"<<<['\"]?(\w+).*?^\s*\1\b", *C_STYLE, r"#(?!\[)[^\n]*", DOUBLE, SINGLE), [
        r"%sfunction\s+&?(\w+)\s*\(" % MODIFIERS,
        r"%s(?:class|interface|trait|enum)\s+(?!extends\b|implements\b)(\w+)\s*[{\sei:]" % MODIFIERS]),
    "lua": ("lua", (r"--\[\[.*?\]\]", r"--[^\n]*", r"\[\[.*?\]\]", DOUBLE, SINGLE), [
        r"(?:local\s+)?function\s+(?:\w+[.:])*(\w+)"]),
    "elixir": ("ex exs", (TRIPLE, r"'''.*?'''", *HASH, DOUBLE, r"~S\{[^}]*\}"), [
        r"(?:defmacrop?|defp?)\s+(?!unquote\b)([a-z_]\w*[?!]?)", r"defmodule\s+(?:\w+\.)*(\w+)"]),
    "haskell": ("hs", (r"\{-.*?-\}", r"--[^\n]*", DOUBLE), [
        r"^(?:data|newtype|class)\s+(?:[^=\n]*=>\s*)?([A-Z]\w*)", r"^([a-z]\w*)\s*::"]),
    "dart": ("dart", (*C_STYLE, r"'''.*?'''", TRIPLE, DOUBLE, SINGLE), [
        r"%s(?:mixin\s+class|extension\s+type|class|mixin(?!\s+class\b)|enum|extension(?!\s+type\b))\s+(?!on\b)(\w+)"
        % MODIFIERS]),
    "bash": ("sh bash", (r"(?<!\S)#[^\n]*", r"<<-?\s*\\?['\"]?(\w+).*?^\s*\1$", DOUBLE, r"'[^']*'"),
             [r"(?:function\s+)?([\w-]+)\s*\(\)\s*\{"]),
}
# Elixir and Haskell have several clauses, and Ruby and Python name a definition twice, where one is stored.
ONCE = {"elixir", "haskell"}


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, **options).stdout


def contents(repo, paths):
    """Yields the text of each path in HEAD."""
    request = "".join(f"HEAD:{path}\n" for path in paths)
    out, at = run("git", "-C", repo, "cat-file", "--batch", input=request.encode()), 0
    for path in paths:
        end = out.index(b"\n", at)
        size = int(out[at:end].rsplit(b" ", 1)[1])
        yield path, out[end + 1:end + 1 + size].decode(errors="replace").replace("\r\n", "\n")
        at = end + size + 2


def definitions(codescout, repo):
    """Returns the names of the definitions in each indexed file, as often as there are definitions."""
    with tempfile.TemporaryDirectory() as sidecar:
        def rows(view):
            command = ("-q", "--repo", repo, "--ref", "HEAD", "outline", "--view", view, "--depth", "0", "--json")
            return json.loads(run(codescout, *command, "-n", "0", env=dict(os.environ, CODESCOUT_SIDECAR=sidecar)))

        symbols, nodes = rows("symbols")["results"], rows("tree")["results"]
    names = {node["path"]: collections.Counter() for node in nodes if not node["folder"] and node["lines"]}
    path = None
    for row in symbols:
        if "name" in row:
            names[path][row["name"]] += 1
        else:
            path = row["path"]
    return names


def declarations(text, language):
    _, hidden, patterns = LANGUAGES[language]
    hidden = re.compile("|".join(f"(?:{part})" for part in hidden), re.S | re.M)
    text = hidden.sub(lambda found: "\n" * found.group().count("\n") or " ", text)
    for pattern in patterns:
        pattern = pattern if pattern.startswith("^") else r"^[ \t]*" + pattern
        for found in re.finditer(pattern, text, re.M):
            yield found.group(found.lastindex)


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "-v"]
    by_ending = {ending: name for name, (endings, *_) in LANGUAGES.items() for ending in endings.split()}
    totals = collections.defaultdict(lambda: [0, 0, 0, set()])
    for repo in arguments[1:]:
        known = definitions(arguments[0], repo)
        paths = [path for path in known if path.rsplit(".", 1)[-1] in by_ending]
        for path, text in contents(repo, paths):
            language = by_ending[path.rsplit(".", 1)[-1]]
            declared = collections.Counter(declarations(text, language))
            if language in ONCE:
                declared = collections.Counter(set(declared))
            missing = declared - known[path]
            total = totals[language]
            total[0] += declared.total()
            total[1] += declared.total() - missing.total()
            total[2] += 1
            total[3].add(repo)
            if "-v" in sys.argv and missing:
                print(f"{language} {repo}/{path}: {' '.join(missing.elements())}")
    for language, (n, n_found, n_files, repos) in sorted(totals.items()):
        share = n_found / max(n, 1)
        print(f"{language:<10} {n:>7} {n_found:>7} {share:.4f} {n_files:>6} files {len(repos):>3} repositories")


main()
