"""Plants renames in clones and counts how many of the mentions in their documents `codescout docs audit` finds.

Usage: docs_audit.py CODESCOUT REPO...

In a copy of each repository, renames up to 30 definitions that documents mention in backticks, and up to 10 mentioned
files, one per commit, everywhere but in documents. Names of documents are read by regular expressions of this script.
Prints for each repository the planted renames and mentions, those found, and those with the right fix; then the
findings in the unchanged repository, for judging by hand.
"""

import ast
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

DEFINITION = r"\b(?:def|class|fn|func|struct|enum|trait|type|function|interface)\s+(?:\([^)]*\)\s*)?(\w+)"
LOG = re.compile(r"(?i)(^|/)(change|history|news|release|whatsnew|what.?s.?new|upgrad|migrat|blog)|\.po$|/deprecat")
SPAN = re.compile(r"(?<![`\w])(`{1,2})([^`\n]+?)\1(?!`)")


def git(repo, *args):
    return subprocess.run(["git", "-C", repo, *args], check=True, capture_output=True, text=True, errors="replace").stdout


def audit(codescout, repo):
    ran = subprocess.run([codescout, "-q", "--repo", repo, "docs", "audit", "-n", "0", "--json"], capture_output=True, text=True)
    if ran.returncode == 2 and not ran.stdout:
        raise RuntimeError(ran.stderr)
    return json.loads(ran.stdout)


def texts(repo):
    found = {}
    for path in git(repo, "ls-files", "-z").split("\0"):
        file = pathlib.Path(repo, path)
        if path and file.is_file() and not file.is_symlink() and file.stat().st_size < 1 << 20:
            try:
                found[path] = file.read_bytes().decode()
            except UnicodeDecodeError:
                pass
    return found


def is_document(path):
    return pathlib.Path(path).suffix in {".md", ".rst", ".adoc", ".txt"}


def spans(text):
    """Returns the texts in backticks of prose, with their lines."""
    is_fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith(("```", "~~~")):
            is_fenced = not is_fenced
        elif not is_fenced and not line.startswith("    "):
            for span in SPAN.finditer(line):
                if re.search(r":(doc|ref|gh|issue|pr|term|option|envvar|pep|user):$", line[: span.start()]):
                    continue
                yield number, re.sub(r"^.*<(.+)>$", r"\1", span[2])


def definitions(path, text):
    if not path.endswith(".py"):
        return re.findall(r"(?m)^(?!\s*(?://|\*|#)).*?" + DEFINITION, text)
    try:
        nodes = ast.walk(ast.parse(text))
    except SyntaxError:
        return []
    return [node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))]


def plant(repo, rng):
    all_texts = texts(repo)
    documents = {path: text for path, text in all_texts.items() if is_document(path) and not LOG.search(path)}
    code = {path: text for path, text in all_texts.items() if not is_document(path) and not LOG.search(path)}
    own = [path for path in code if not re.search(r"(^|/)(tests?|examples?|docs?|benches|vendor)/|test", path)]
    defined = {name for path in own for name in definitions(path, code[path]) if len(name) > 3}
    known = defined | {part.split(".")[0] for path in code for part in path.split("/")}
    mentioned, files = {}, {}
    for path, text in documents.items():
        for line, span in spans(text):
            name = re.match(r"^[~.!]*((?:\w+(?:\.|::))*)(\w+)(?:\(.*\))?$", span)
            # The names of other packages are none of ours.
            if name and known.issuperset(re.findall(r"\w+", name[1])):
                mentioned.setdefault(name[2], set()).add((path, line))
            if span in code and "/" in span:
                files.setdefault(span, set()).add((path, line))
    names = sorted(defined & mentioned.keys())
    planted = []
    for name in rng.sample(names, min(30, len(names))):
        new = name + ("_anew" if name.islower() else "Anew")
        word = re.compile(rf"\b{re.escape(name)}\b")
        for path in code:
            if name in code[path]:
                code[path] = word.sub(new, code[path])
                pathlib.Path(repo, path).write_bytes(code[path].encode())
        git(repo, "commit", "-qam", f"rename {name}")
        planted.append((name, new, mentioned[name]))
    for path in rng.sample(sorted(files), min(10, len(files))):
        stem = pathlib.Path(path)
        new = str(stem.with_name("anew_" + stem.name))
        git(repo, "mv", path, new)
        git(repo, "commit", "-qm", f"move {path}")
        planted.append((path, new, files[path]))
    return planted


def main():
    codescout, *repos = sys.argv[1:]
    total = [0] * 5
    for repo in repos:
        before = audit(codescout, repo)["results"]
        with tempfile.TemporaryDirectory() as folder:
            git(repo, "clone", "-q", repo, folder + "/copy")
            copy = folder + "/copy"
            git(copy, "config", "user.email", "a@b")
            git(copy, "config", "user.name", "a")
            planted = plant(copy, random.Random(17))
            found, after = {}, audit(codescout, copy)["results"]
            for finding in after:
                found.setdefault((finding["path"], finding["line"]), []).append(finding)
        counts = [len(planted), 0, 0, 0, 0]
        for old, new, places in planted:
            hits = 0
            for place in places:
                meant = [finding for finding in found.get(place, []) if finding["text"].endswith(old)]
                hits += bool(meant)
                counts[4] += any((finding["fix"] or "").endswith(new) for finding in meant)
                if not any((finding["fix"] or "").endswith(new) for finding in meant):
                    print("no fix" if meant else "missed", *place, old, [f["now"] for f in meant], file=sys.stderr)
            counts[1] += hits > 0
            counts[2] += len(places)
            counts[3] += hits
        olds = tuple(old for old, _, _ in planted)
        others = [finding for finding in after if not finding["text"].endswith(olds)]
        for finding in others:
            print("not planted", finding["path"], finding["line"], finding["text"], file=sys.stderr)
        print(f"{pathlib.Path(repo).name}: renames {counts[0]}, found {counts[1]}; mentions {counts[2]}, "
              f"found {counts[3]}, with the right fix {counts[4]}; findings before {len(before)}, "
              f"after {len(after)} of which not planted {len(others)}")
        for finding in before:
            print("   ", finding["path"], finding["line"], finding["text"], finding["verdict"], finding["now"], finding["subject"])
        total = [a + b for a, b in zip(total, counts)]
    print(f"all: renames {total[0]}, found {total[1]}; mentions {total[2]}, found {total[3]}, right fix {total[4]}")


if __name__ == "__main__":
    main()
