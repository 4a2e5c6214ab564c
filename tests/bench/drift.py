#!/usr/bin/env python3
"""Calibrates the words of `diff --with drift`.

    drift.py PROGRAM REPO… [--functions N] [--commits N] [--seed N]

PROGRAM is a build, each REPO a clone with a work tree and tags. Two sources of changes with a known kind:

- made: up to N functions of each repository in a scratch repository, changed in one way each. `reformat` indents more
  and removes blank lines and lines that are only comments; `rename` replaces up to three variables that occur at least twice by words of other
  functions; `rewrite` keeps the signature and takes the body of another function.
- real: definitions that differ between a sample of commits of the last N and their parents. `reformat` has only the events `formatting` or
  `doc`, `renamed` only `renamed`; `rewrite` are bodies whose lines are mostly (70 %) others, both at least five lines.

Prints quartiles of the distance by kind, the two bounds that separate the made kinds best, and the share of each kind
on its side of the bounds.
"""

import argparse
import difflib
import json
import random
import re
import subprocess
import tempfile
import textwrap
from pathlib import Path

ENDINGS = {".py": "#", ".rs": "//", ".js": "//", ".ts": "//", ".go": "//"}
CODE = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
KEYWORDS = set(
    """and as assert async await break case catch class const continue crate def default del do elif else enum except
    export extends false finally fn for from func function go if impl import in interface is lambda let loop match mod
    move mut new nil none not null or package pass pub raise range ref return self static struct super switch this
    throw trait true try type typeof undefined unsafe use var void where while with yield int str bool string""".split()
)
WORDS = ["reformat", "rename", "rewrite"]
KINDS = ["reformat", "doc", "rename", "rewrite"]


def git(repo, *arguments):
    return subprocess.run(["git", "-C", repo, *arguments], check=True, capture_output=True).stdout.decode(errors="replace")


def differences(program, repo, old, new):
    """Yields the changed definitions of each file that has two versions of them."""
    arguments = [program, "diff", old, new, "--with", "drift", "--json"]
    done = subprocess.run(arguments, cwd=repo, capture_output=True)
    assert done.returncode < 2, done.stderr.decode()
    for file in json.loads(done.stdout)["results"]:
        for symbol in file["symbols"]:
            if symbol.get("drift") and Path(file["path"]).suffix in ENDINGS:
                yield file, symbol


def functions(program, repo, n, rng):
    """Returns up to `n` functions with a body of at least four lines: ending of the file, lines, lines of the head."""
    first = git(repo, "rev-list", "--max-parents=0", "HEAD").split()[-1]
    done = subprocess.run([program, "diff", first, "HEAD", "--json"], cwd=repo, check=True, capture_output=True)
    found = [
        (Path(file["path"]), symbol)
        for file in json.loads(done.stdout)["results"]
        for symbol in file["symbols"]
        if symbol["kind"] in ("function", "method") and symbol["new_lines"] and Path(file["path"]).suffix in ENDINGS
    ]
    texts = []
    for path, symbol in rng.sample(found, min(4 * n, len(found))):
        start, end = symbol["new_lines"]
        lines = git(repo, "show", f"HEAD:{path}").split("\n")[start - 1 : end]
        name = re.compile(rf"\b{re.escape(re.split('[.#~]', symbol['id'])[-1])}\b.*[:{{]$")
        heads = [number for number, line in enumerate(lines) if name.search(line.rstrip())]
        if heads and len(lines) - heads[0] > 4:
            lines = textwrap.dedent("\n".join(lines)).split("\n")
            texts.append((path.suffix, lines, heads[0] + 1))
    return texts[:n]


def reformatted(ending, lines, n_head, *_):
    is_kept = lambda line: line.strip() and not line.strip().startswith(ENDINGS[ending])
    return lines[:n_head] + ["  " + line for line in lines[n_head:] if is_kept(line)]


def renamed(_, lines, n_head, others, rng):
    body = "\n".join(lines[n_head:])
    words = CODE.findall(body)
    is_name = lambda word: words.count(word) > 1 and len(word) > 2 and word.lower() not in KEYWORDS
    names = sorted({word for word in words if is_name(word) and not re.search(rf"[.:]{word}\b|\b{word}\(", body)})
    new = sorted({word for _, other, _ in others for word in CODE.findall("\n".join(other))} - set(words) - KEYWORDS)
    by_name = dict(zip(rng.sample(names, min(3, len(names))), rng.sample(new, 3)))
    return CODE.sub(lambda found: by_name.get(found[0], found[0]), "\n".join(lines)).split("\n")


def rewritten(ending, lines, n_head, others, rng):
    same = [other for other in others if other[0] == ending and other[1] != lines]
    _, other, n_other = rng.choice(same)
    indent = lambda lines: re.match(r"\s*", lines[0])[0]
    shift = len(indent(lines[n_head:])) - len(indent(other[n_other:]))
    moved = [" " * shift + line if shift > 0 else line[-shift:] for line in other[n_other:-1]]
    return lines[:n_head] + moved + ([other[-1]] if ending == ".py" else [lines[-1]])


def made(program, repo, n, rng):
    """Yields the kind and the drift of changes that are made here."""
    texts = functions(program, repo, n, rng)
    with tempfile.TemporaryDirectory() as scratch:
        git(scratch, "init", "-q")
        git(scratch, "config", "user.email", "a@example.org")
        git(scratch, "config", "user.name", "A")

        def commit(change):
            for number, text in enumerate(texts):
                Path(scratch, f"{number}{text[0]}").write_text("\n".join(change(*text, texts, rng)) + "\n")
            git(scratch, "add", "-A")
            git(scratch, "commit", "-q", "-m", "change")
            return git(scratch, "rev-parse", "HEAD").strip()

        first = commit(lambda _, lines, *__: lines)
        for kind, change in zip(WORDS, [reformatted, renamed, rewritten]):
            # Functions inside of functions do not count.
            outermost = {file["path"]: symbol for file, symbol in reversed(list(differences(program, scratch, first, commit(change))))}
            yield from ((kind, symbol["drift"]) for symbol in outermost.values())


def words_of_lines(repo, blob, lines):
    """Returns lines of a blob without white space and punctuation."""
    first, last = lines
    bare = (re.sub(r"\W", "", line) for line in git(repo, "cat-file", "blob", blob).split("\n")[first - 1 : last])
    return [line for line in bare if line]


def real(program, repo, n, rng):
    """Yields the kind and the drift of changes that the history has."""
    commits = git(repo, "rev-list", "--no-merges", "--min-parents=1", f"-{20 * n}", "HEAD").split()
    for commit in rng.sample(commits, min(n, len(commits))):
        for file, symbol in differences(program, repo, f"{commit}~1", commit):
            events, drift = set(symbol["events"]), symbol["drift"]
            if events == {"formatting"}:
                yield "reformat", drift
            elif "doc" in events and events <= {"formatting", "doc"}:
                yield "doc", drift
            elif events == {"renamed"}:
                yield "rename", drift
            elif "body" in events and not symbol["from"]:
                lines = [words_of_lines(repo, file[f"{side}_blob"], symbol[f"{side}_lines"]) for side in ("old", "new")]
                shared = difflib.SequenceMatcher(None, *lines, autojunk=False).ratio()
                if shared < 0.3 and min(map(len, lines)) >= 5:
                    yield "rewrite", drift


def bound(lows, highs):
    """Returns the bound between two kinds with the least sum of wrong shares, where both sources count alike."""

    def wrong(at):
        shares = [sum(x >= at for x, _ in low) / len(low) for low in lows if low]
        return sum(shares + [sum(x < at for x, _ in high) / len(high) for high in highs if high])

    return min(sorted({x for some in [*lows, *highs] for x, _ in some}), key=wrong)


def show(source, drifts):
    print(f"{source:5}             n    25%    50%    75%    90%  " + "  ".join(f"as {word:8}" for word in WORDS))
    for kind in KINDS:
        of_kind = sorted(drifts[kind])
        if not of_kind:
            continue
        quantiles = (of_kind[min(len(of_kind) - 1, int(q * len(of_kind)))][0] for q in [0.25, 0.5, 0.75, 0.9])
        shares = (100 * sum(word == said for _, said in of_kind) / len(of_kind) for word in WORDS)
        quantiles, shares = "  ".join(f"{q:5.3f}" for q in quantiles), "  ".join(f"{share:9.0f} %" for share in shares)
        print(f"{kind:10} {len(of_kind):8}  {quantiles}  {shares}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("repos", nargs="+", type=Path)
    parser.add_argument("--functions", type=int, default=150)
    parser.add_argument("--commits", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    found = {"made": {kind: [] for kind in KINDS}, "real": {kind: [] for kind in KINDS}}
    for repo in arguments.repos:
        for source, changes, n in [("made", made, arguments.functions), ("real", real, arguments.commits)]:
            for kind, drift in changes(arguments.program, repo, n, rng):
                found[source][kind].append((drift["distance"], drift["as_much_as"]))
    of_kind = lambda kind: [drifts[kind] for drifts in found.values()]
    bounds = [bound(of_kind(low), of_kind(high)) for low, high in zip(WORDS, WORDS[1:])]
    print(f"best bounds: {bounds[0]:.3f} {bounds[1]:.3f}")
    for source, drifts in found.items():
        show(source, drifts)


if __name__ == "__main__":
    main()
