#!/usr/bin/env python3
"""History and blame beside git's own, on the commit that HEAD names.

    history.py CODESCOUT REPO symbols [N]    the life of N random definitions and `git log -L` of their lines
    history.py CODESCOUT REPO untraced [N]   the same in CPU time, where commits are recorded and definitions not traced
    history.py CODESCOUT REPO blame [N]      every line of N random files and `git blame`
    history.py CODESCOUT REPO hover [N]      blame by definition of N files of about 2,000 lines

Records first what is missing (`codescout index --history`; for `untraced` in a new sidecar, which must not be there yet, commits
alone). Times are of whole processes, and `took_ms` as answers say it. The
choice depends on SEED (default 1) alone.
"""

import json
import os
import pathlib
import random
import re
import resource
import subprocess
import sys
import time

SOURCE = re.compile(r"\.(c|h|cc|cpp|rs|py|js|ts|tsx|go|java|rb|php|cs|kt|scala|swift|lua|sh|pl|zig|ex|ml|hs)$")
KINDS = {"function", "method", "constructor", "class", "struct", "enum", "trait", "interface"}
CODESCOUT, REPO, WHAT = sys.argv[1:4]
N = int(sys.argv[4]) if len(sys.argv) > 4 else 100
DICE = random.Random(int(os.environ.get("SEED", "1")))


def run(command, timeout=600):
    started = time.perf_counter()
    try:
        done = subprocess.run(command, cwd=REPO, capture_output=True, timeout=timeout)
        out = done.stdout
    except subprocess.TimeoutExpired:
        out = None
    return out, (time.perf_counter() - started) * 1e3


def ask(*args):
    out, wall = run([CODESCOUT, *args, "--ref", "HEAD", "--json"])
    return (json.loads(out) if out else {}), wall


def quantiles(values):
    if not values:
        return "nothing measured"
    ordered = sorted(values)
    at = lambda share: ordered[min(len(ordered) - 1, int(len(ordered) * share))]
    return "p50 %.1f, p90 %.1f, p99 %.1f, most %.1f ms" % (at(0.5), at(0.9), at(0.99), ordered[-1])


def files(pattern):
    out, _ = run(["git", "ls-tree", "-r", "-z", "--name-only", "HEAD"])
    names = [name.decode() for name in out.split(b"\0") if name and not name.startswith(b"-")]
    return [name for name in names if pattern.search(name)]


def random_symbols():
    """Random definitions, each as likely as any other."""
    found = []
    for path in files(SOURCE):
        outline, _ = ask("outline", path)
        definitions = [one for one in outline.get("results", []) if "id" in one]
        found += [(one, path) for one in definitions if one["kind"] in KINDS]
    while True:
        symbol, path = DICE.choice(found)
        yield symbol, "%d,%d:%s" % (symbol["start_line"], symbol["end_line"], path)


def cpu(command):
    """What a command printed, and its milliseconds of CPU time."""
    spent = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    before = spent()
    out, _ = run(command)
    return out, (spent() - before) * 1e3


def untraced():
    sidecar = pathlib.Path(REPO, ".codescout")
    if sidecar.exists():
        sys.exit("%s exists: definitions may be traced there" % sidecar)
    ask("history", "-n", "1", ".")
    ours, theirs, n_changes = [], [], 0
    for (symbol, lines), _ in zip(random_symbols(), range(N)):
        # Each as the first question about its file.
        for known in sidecar.glob("history-v1/*.known"):
            known.unlink()
        out, spent = cpu([CODESCOUT, "history", symbol["id"], "-n", "0", "--ref", "HEAD", "--json"])
        n_changes += json.loads(out)["total"]
        ours.append(spent)
        theirs.append(cpu(["git", "log", "-s", "--format=%H", "-L", lines, "HEAD"])[1])
        print("%8.0f %8.0f %s" % (ours[-1], theirs[-1], symbol["id"]), file=sys.stderr)
    print("symbols %d, changes %d" % (len(ours), n_changes))
    print("CPU of codescout history", quantiles(ours), "in all %.1f s" % (sum(ours) / 1e3))
    print("CPU of git log -L       ", quantiles(theirs), "in all %.1f s" % (sum(theirs) / 1e3))


def symbols():
    answers, whole, theirs, ratios, shares, reasons = [], [], [], [], [], {}
    both = ours_alone = git_alone = 0
    for (symbol, lines), _ in zip(random_symbols(), range(N)):
        answer, wall = ask("history", symbol["id"], "-n", "0")
        out, git_wall = run(["git", "log", "-s", "--format=%H", "-L", lines, "HEAD"], timeout=120)
        answers.append(answer["took_ms"])
        whole.append(wall)
        theirs.append(git_wall)
        ratios.append(git_wall / wall)
        if out is None:
            reasons["git took more than two minutes"] = reasons.get("git took more than two minutes", 0) + 1
            continue
        ours = {entry["commit"]: entry["symbol"]["events"] for entry in answer["results"]}
        git = set(out.decode().split())
        both += len(git & set(ours))
        for commit in set(ours) - git:
            ours_alone += 1
            why = "only here: " + "+".join(ours[commit])
            reasons[why] = reasons.get(why, 0) + 1
        for commit in git - set(ours):
            git_alone += 1
            last = answer["results"][-1]["commit"] if answer["results"] else None
            after_start = last is None or run(["git", "merge-base", "--is-ancestor", commit, last])[0] is not None and (
                subprocess.run(["git", "merge-base", "--is-ancestor", commit, last], cwd=REPO).returncode == 0
            )
            why = "only git: before where it began here" if after_start else "only git: while it was here"
            reasons[why] = reasons.get(why, 0) + 1
    print("symbols", len(answers))
    print("answer       ", quantiles(answers))
    print("whole process", quantiles(whole))
    print("git log -L   ", quantiles(theirs))
    print("ratio git / whole process: median %.1f" % sorted(ratios)[len(ratios) // 2])
    print("of git's commits told here %.3f, of ours told by git %.3f" % (
        both / max(1, both + git_alone), both / max(1, both + ours_alone)))
    for why, n in sorted(reasons.items(), key=lambda one: -one[1]):
        print("%6d %s" % (n, why))


def by_git(path, options):
    out, wall = run(["git", "blame", "--porcelain", *options, "HEAD", "--", path])
    found = re.findall(rb"^([0-9a-f]{40,64}) (\d+) (\d+)", out, re.M)
    return {int(line): commit.decode() for commit, _, line in found}, wall


def blame():
    names = DICE.sample(files(re.compile(".")), min(N, len(files(re.compile(".")))))
    n_lines = n_wrong = n_files_wrong = n_files = 0
    ours_ms, git_ms = [], []
    for number, path in enumerate(names):
        options = [[], ["-w"], ["-w", "-M"], ["-C"]][number % 4]
        answer, wall = ask("blame", path, "--by", "line", *options)
        if "results" not in answer:
            continue
        theirs, git_wall = by_git(path, options)
        ours = {line["line"]: line["commit"] for line in answer["results"]}
        wrong = [line for line in set(ours) | set(theirs) if ours.get(line) != theirs.get(line)]
        n_files += 1
        n_lines += len(theirs)
        n_wrong += len(wrong)
        n_files_wrong += bool(wrong)
        ours_ms.append(wall)
        git_ms.append(git_wall)
        if wrong:
            print("differs: %s %s in %d of %d lines, first %d" % (path, options, len(wrong), len(theirs), min(wrong)))
    print("files %d, lines %d; files that differ %d, lines %d" % (n_files, n_lines, n_files_wrong, n_wrong))
    print("whole process", quantiles(ours_ms), "in all %.1f s" % (sum(ours_ms) / 1e3))
    print("git blame    ", quantiles(git_ms), "in all %.1f s" % (sum(git_ms) / 1e3))


def hover():
    sized = []
    for path in DICE.sample(files(SOURCE), len(files(SOURCE))):
        out, _ = run(["git", "show", "HEAD:" + path])
        if 1_800 <= out.count(b"\n") <= 2_300:
            sized.append(path)
        if len(sized) == N:
            break
    whole, one, git = [], [], []
    for path in sized:
        answer, wall = ask("blame", path, "--by", "symbol")
        whole.append(answer["took_ms"])
        if answer.get("results"):
            symbol = DICE.choice(answer["results"])
            found, _ = ask("blame", symbol["id"])
            one.append(found["took_ms"])
        git.append(by_git(path, [])[1])
    print("files of about 2,000 lines:", len(sized))
    print("all definitions", quantiles(whole))
    print("one definition ", quantiles(one))
    print("git blame      ", quantiles(git))


if WHAT != "untraced":
    run([CODESCOUT, "index", "--history", "--ref", "HEAD", "--quiet"], timeout=36_000)
{"symbols": symbols, "untraced": untraced, "blame": blame, "hover": hover}[WHAT]()
