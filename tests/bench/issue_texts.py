#!/usr/bin/env python3
"""Scores `search` on texts that describe a problem, by the files that its fix changes.

Corpus: clones of public repositories with their history. A text is the message of a commit that tells of a problem at some
length, changes 1 to 6 source files and does not name them. It is searched at the parent commit, thus without the fix.
A message is nearer to the code than an issue by a user: compare programs with these figures, do not take them for recall.
Usage: issue_texts.py PROGRAM CLONE... [--n N] [--seed S] [--ids even|odd|all] [--wrong K]
  --n N      at most N texts for each clone (default 8)
  --ids      only these; the id of a text is its number in a shuffle, by seed, over the texts of all given clones
  --wrong K  also print K texts (form B) with the worst recall

Forms: A, the first line; B, the whole text without trailers; C, B in the template of a bug report.
Means with 95 % bootstrap intervals, over the texts: recall and precision of files among ten results, right file first.
"""
import argparse
import json
import os
import random
import re
import subprocess
import sys

SOURCE = set("py js mjs cjs jsx ts tsx mts go java kt kts rs rb php cs c cc cpp cxx h hh hpp ex swift scala lua sh vue svelte m mm y l".split())
NOT_SOURCE = re.compile(r"(^|/)(tests?|specs?|__tests__|[\w.-]*Tests?|\w+Test|testdata|fixtures|docs?|examples?|playground|bench\w*|vendor|node_modules|dist|priv/static|ci|scripts?)/"
                        r"|(^|/)test_[^/]*$|[._-](test|spec)s?\.\w+$|Tests?\.\w+$|changelog|history|(^|/)Package\.swift$", re.I)
TRAILER = re.compile(r"\s*(([A-Z][\w]*-)+(by|id|url|on|from|revid|to)|Cc|Refs?|Bug|Link|Assisted-By|PR-URL|git-svn-id|cherry.picked|\(cherry picked)\b.*[:/@].*$"
                     r"|\s*((closes?|fix(es|ed)?|resolves?|refs?|see|related|supersedes)[: ]*)?((and|,)? *(https?://\S+/(issues|pull)/\d+|[\w/-]*#\d+))+[.,]?\s*$|\s*-{3,}\s*$", re.I)
PROBLEM = re.compile(r"\b(bug|issues?|crash\w*|fail(s|ed|ing|ure)?|errors?|wrong\w*|incorrect\w*|broken|breaks?|regression|unexpected\w*|panics?|exceptions?|leaks?|race|"
                     r"hangs?|deadlocks?|stuck|overflow|reproduc\w+|traceback|segfault|doesn't|does not|didn't|did not|can't|cannot|missing|invalid|never)\b", re.I)
FAULT = re.compile(r"\b(fix\w*|bug\w*|crash\w*|regression|broken|wrong\w*|incorrect\w*|panic\w*|fail\w*|races?|leak\w*|hang\w*|deadlock\w*)\b", re.I)
CHORE = re.compile(r"(refactor|add|create|feat|introduce|implement|rename|revert|bump|release|merge|update (dep|version)|(chore|docs?|ci|style|test|tests|build)\b.*?:)", re.I)
TEMPLATE = """{title}

<!-- Thank you for filing a bug report! Please search the existing issues before you open a new one. -->

### Checklist

- [x] I have searched the existing issues
- [x] I am using the latest version
- [ ] I am willing to submit a pull request

### Describe the bug

<!-- A clear and concise description of what the bug is. -->

{first}

### To Reproduce

<!-- Steps to reproduce the behavior, as short as possible. -->

{rest}

### Expected behavior

<!-- A clear and concise description of what you expected to happen. -->

It should work as the documentation says.

### Environment

```
OS: Ubuntu 22.04.3 LTS (x86_64), Linux 6.2.0-39-generic
{name} version: 1.4.2
Installed with: package manager
```

### Additional context

_No response_
"""


def git(clone, *arguments):
    return subprocess.run(["git", "-C", clone, *arguments], capture_output=True, text=True, errors="replace", check=True).stdout


def text_of(message):
    """(title, rest) without trailers and numbers of pull requests."""
    title, _, body = message.strip().partition("\n")
    lines = [line.rstrip() for line in body.split("\n") if not TRAILER.match(line)]
    return re.sub(r"\s*\((close[sd]?|fix(es|ed)?)? ?#\d+\)\s*$", "", title), re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def describes_problem(title, rest):
    lines = [line for line in rest.split("\n") if line.strip()]
    listed = sum(bool(re.match(r"\s*[*-] ", line)) for line in lines)
    form = re.search(r"^\s*- \[[ x]\]|^\| *Q", rest, re.M) or len(re.findall(r"^\* [A-Z]", rest, re.M)) > 1  # of a pull request, or squashed
    return (len(rest.split()) >= 40 and len(lines) >= 3 and listed * 2 < len(lines) and not form and not CHORE.match(title) and FAULT.search(title + "\n" + rest)
            and len({match[0].lower() for match in PROBLEM.finditer(title + "\n" + rest)}) >= 2)


def changed_sources(clone, commit):
    """Source files of the parent that `commit` changes."""
    fields = git(clone, "diff-tree", "-r", "-M", "-z", "--no-commit-id", "--name-status", commit).split("\0")[:-1]
    paths = set()
    while fields:
        status, path = fields.pop(0), fields.pop(0)
        if status[0] in "RC":
            fields.pop(0)
        if status[0] in "MDR" and path.rpartition(".")[2] in SOURCE and not NOT_SOURCE.search(path):
            paths.add(path)
    return paths


def names_files(text, paths):
    return sum(os.path.basename(path).lower() in text.lower() for path in paths) * 2 >= len(paths)


def texts(clone, n, seed):
    """At most `n` texts: (clone, commit, title, rest, files of the answer)."""
    found = []
    messages = [entry.strip("\n").split("\0") for entry in git(clone, "log", "--no-merges", "--min-parents=1", "--format=%H%x00%B%x1e", "HEAD").split("\x1e")[:-1]]
    random.Random(f"{seed} {os.path.basename(os.path.abspath(clone))}").shuffle(messages)
    for commit, message in messages:
        title, rest = text_of(message)
        if len(found) < n and describes_problem(title, rest):
            paths = changed_sources(clone, commit)
            if 1 <= len(paths) <= 6 and not names_files(title + "\n" + rest, paths):
                found.append((clone, commit, title, rest, paths))
    return found


def bug_report(clone, title, rest):
    """The text in a template: its first half under the description, the second under the reproduction."""
    parts = rest.split("\n\n")
    half = (len(parts) + 1) // 2
    return TEMPLATE.format(title=title, first="\n\n".join(parts[:half]), rest="\n\n".join(parts[half:]) or "See above.", name=os.path.basename(os.path.abspath(clone)))


def search(program, clone, commit, text):
    """Paths of the results, best first."""
    run = subprocess.run([program, "search", "--json", "-n", "10", "--ref", f"{commit}^", "-"], cwd=clone, input=text, capture_output=True, text=True)
    if run.returncode not in (0, 1):
        print(f"{clone} {commit}: exit status {run.returncode}: {run.stderr.strip()[-300:]}", file=sys.stderr)
    results = json.loads(run.stdout).get("results", []) if run.stdout.strip() else []
    return list(dict.fromkeys(result["path"] for result in results))


def interval(values):
    """The mean with its 95 % bootstrap interval."""
    rng = random.Random(0)
    means = sorted(sum(rng.choices(values, k=len(values))) / len(values) for _ in range(1000))
    return f"{sum(values) / len(values):.3f} [{means[25]:.3f}, {means[974]:.3f}]"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("clone", nargs="+")
    parser.add_argument("--n", type=int, default=8)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--ids", choices=["even", "odd", "all"], default="all")
    parser.add_argument("--wrong", type=int, default=0)
    options = parser.parse_args()
    program = os.path.abspath(options.program)
    found = [text for clone in options.clone for text in texts(clone, options.n, options.seed)]
    random.Random(options.seed).shuffle(found)
    scores, cases = {}, []
    for i, (clone, commit, title, rest, paths) in enumerate(found):
        half = "odd" if i % 2 else "even"
        if options.ids not in (half, "all"):
            continue
        for form, text in (("A title", title), ("B text", f"{title}\n\n{rest}"), ("C template", bug_report(clone, title, rest))):
            listed = search(program, clone, commit, text)
            right = len(paths.intersection(listed))
            score = right / len(paths), right / max(1, len(listed)), float(listed[:1] != [] and listed[0] in paths)
            scores.setdefault((half, form), []).append(score)
            if form[0] == "B":
                cases.append((score, i, clone, commit, text, paths, listed))
    print(f"{len(found)} texts of {len({text[0] for text in found})} repositories, {sum(len(text[4]) for text in found) / len(found):.2f} files each")
    print(f"{'ids':5} {'form':11} {'n':>3}  {'recall':22} {'precision':22} right file first")
    for (half, form), values in sorted(scores.items()):
        print(f"{half:5} {form:11} {len(values):3} ", *(interval(column) for column in zip(*values)))
    for score, i, clone, commit, text, paths, listed in sorted(cases, key=lambda case: case[:2])[:options.wrong]:
        print(f"\n{i} {clone} {commit} recall {score[0]:.2f}\n{text}\n  right: {sorted(paths)}\n  found: {listed}")


main()
