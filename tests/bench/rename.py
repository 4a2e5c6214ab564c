#!/usr/bin/env python3
"""Renames random definitions of a clone, and checks each rename with a compiler and with ground truth.

usage: rename.py PROGRAM CLONE [--truth TRUTH.jsonl.gz] [--check COMMAND] [-n 50] [--seed 1] [--show]

TRUTH is a file of ../shared/graph, described in its score.py. COMMAND is run in the clone before any rename and after each ten
complete ones, and prints one error per line as `path:line…` (pyright, tsc --pretty false, go vet, javac, cargo check). Of ten
with a new error, each is applied and checked alone.
A rename is wrong if
- ground truth says that a changed place means something else (`other`), or that a place which is neither changed nor
  listed means the definition (`missed`), or
- the command reports a new error (`broken`).
Only complete renames are applied, because others are known to need more. A tenth of the new names are names of other
definitions of the same file, which must be refused or work. The clone must be clean; in the end, it is again.
"""
import argparse, collections, gzip, json, os, random, re, subprocess, sys

p = argparse.ArgumentParser()
p.add_argument("program"), p.add_argument("clone"), p.add_argument("--truth"), p.add_argument("--check")
p.add_argument("-n", type=int, default=50), p.add_argument("--seed", type=int, default=1)
p.add_argument("--show", action="store_true")
a = p.parse_args()
a.program = os.path.abspath(a.program)


def run(*command, **more):
    return subprocess.run(command, cwd=a.clone, capture_output=True, text=True, errors="replace", **more)


def lines_of(path):
    try:
        with open(f"{a.clone}/{path}", encoding="utf-8", errors="replace") as f:
            return f.read().split("\n")
    except OSError:
        return []


def errors():
    """Returns the errors, as (path, line, message). What the compiler suggests depends on the names nearby."""
    if not a.check:
        return []
    found, output = [], run("bash", "-c", a.check)
    for line in (output.stdout + output.stderr).split("\n"):
        m = re.match(r"\s*(?:\S*?/?)([\w./@+-]+\.\w+)[:(](\d+)", line.replace(run.root, ""))
        # A private name must be used.
        if m and not re.search("warning|information|reportUnused", line):
            text = re.sub(r"error TS\d+|[.,]( (did|Did) you mean.*)?$", "", line.replace(run.root, "")[m.end():])
            found.append((m[1], int(m[2]), re.sub(r"^[\d:,) -]*", "", text)))
    return found


def new_errors(renamed):
    """Returns the errors that were not there before, whatever the exchanged names are."""
    names = "|".join(sorted({re.escape(name) for old, new, _ in renamed for name in (old, new)}))
    plain = lambda all: collections.Counter(re.sub(rf"\b({names})\b", "_", f"{path}:{line}: {text}") for path, line, text in all)
    return plain(errors()) - plain(before)


run.root = run("git", "rev-parse", "--show-toplevel").stdout.strip() + "/"
truth = collections.defaultdict(list)
if a.truth:
    with gzip.open(a.truth, "rt") as f:
        f.readline()
        for line in f:
            file, at, name, _, targets, outside = json.loads(line)
            truth[name].append((file, at, {tuple(t) for t in targets}, outside))

rows = [json.loads(line) for line in run(a.program, "graph", "export").stdout.split("\n") if line]
known = sorted({(r["file"], r["line"], r["name"]) for r in rows if r["tier"] == "definition"})
lines_defining = collections.defaultdict(set)
names_in = collections.defaultdict(set)
for file, line, name in known:
    lines_defining[name].add((file, line))
    names_in[file].add(name)
code = (".py", ".ts", ".tsx", ".js", ".mjs", ".go", ".java", ".rs")
choice = [k for k in known if k[0].endswith(code) and re.fullmatch(r"[A-Za-z_$][\w$]*", k[2])]
dice = random.Random(a.seed)
dice.shuffle(choice)
before, dirty, batch = errors(), run("git", "diff", "--name-only").stdout, []


def undo():
    run("git", "stash", "-q", "-u"), run("git", "stash", "drop", "-q")


def check(batch):
    """Undoes the renames of a batch, and reports those that have brought errors."""
    found = new_errors(batch)
    undo()
    count["checked"] += len(batch)
    alone = batch if found else []
    n_before = count["broken"]
    for old, new, target in alone:
        if run(a.program, "rename", target, new, "--apply").returncode == 0:
            broken = new_errors([(old, new, target)])
            count["broken"] += bool(broken)
            if broken:
                print("BROKEN", target, old, new, *[error[:160] for error in list(broken)[:5]], sep="\n   ", flush=True)
        undo()
    if found and count["broken"] == n_before:
        count["broken together"] += 1
        print("BROKEN TOGETHER", batch, *[error[:160] for error in list(found)[:8]], sep="\n   ", flush=True)
    batch.clear()


count, why = collections.Counter(), collections.Counter()
for file, line, name in choice:
    if count["done"] >= a.n:
        break
    text = (lines_of(file) + [""] * line)[line - 1]
    column = re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", text)
    if not column:
        continue
    target = f"{file}:{line}:{column.start() + 1}"
    new = dice.choice(sorted(names_in[file])) if dice.random() < 0.1 else (
        name + "Other" if name[0].isupper() and not name.isupper() else name + ("_OTHER" if name.isupper() else "_other"))
    asked = run(a.program, "rename", target, new, "--json")
    if asked.returncode:
        message = json.loads(asked.stdout or "{}").get("error") or asked.stderr
        why[re.sub(r"[\"'`]?[\w./#~$@-]*(\d|[_./#])[\w./#~$@-]*|\b%s\b|\b%s\b" % (name, new), "…", message.strip())[:70]] += 1
        count["refused"] += 1
        if a.show:
            print("refused", target, name, new, message.strip()[:150])
        continue
    count["done"] += 1
    answer = json.loads(asked.stdout)
    listed = {(c["path"], c["line"]) for c in answer["candidates"] + answer["mentions"]}
    cut = answer["n_candidates"] > len(answer["candidates"]) or answer["n_mentions"] > len(answer["mentions"])
    changed, expanded = set(), set()
    for result in answer["results"]:
        at, open_lines = 0, []
        for text in result["patch"].split("\n"):
            hunk = re.match(r"@@ -(\d+)", text)
            if hunk:
                at = int(hunk[1])
            elif text.startswith("-") and not text.startswith("---"):
                changed.add((result["path"], at))
                open_lines.append(at)
                at += 1
            elif text.startswith("+") and not text.startswith("+++"):
                # Ground truth calls the field in `{ name }` something else, and it stays.
                if open_lines and f"{name}: {new}" in text:
                    expanded.add((result["path"], open_lines[0]))
                open_lines = open_lines[1:]
            elif text.startswith(" "):
                open_lines = []
                at += 1
    all_own = changed & lines_defining[name]
    # The name can occur twice in a line.
    own = {k for k in all_own if len(re.findall(rf"\b({re.escape(name)}|{re.escape(new)})\b", (lines_of(k[0]) + [""] * k[1])[k[1] - 1])) == 1}
    wrong = []
    for site_file, at, targets, outside in truth[name]:
        text = lines_of(site_file)
        if (site_file, at) in own | expanded or not own:
            continue
        is_there = at <= len(text) and re.search(rf"\b({re.escape(name)}|{re.escape(new)})\b", text[at - 1])
        if not is_there or len(re.findall(rf"\b({re.escape(name)}|{re.escape(new)})\b", text[at - 1])) > 1:
            continue
        is_changed = (site_file, at) in changed
        # Ground truth names the constructor of a type, or nothing.
        is_created = re.search(rf"\bnew ({re.escape(name)}|{re.escape(new)})\b", text[at - 1])
        made = any(re.search(r"constructor\s*\(|__init__", (lines_of(f) + [""] * l)[l - 1]) for f, l in targets)
        if is_changed and not made and (targets or outside) and not targets & all_own and not is_created:
            wrong.append(("other", site_file, at, sorted(targets)[:2]))
        if not is_changed and targets and targets <= own and not cut and (site_file, at) not in listed:
            wrong.append(("missed", site_file, at, sorted(targets)[:2]))
    count["complete"] += answer["renamed_all"]
    count["places"] += answer["changed"]
    count["wrong"] += bool(wrong)
    if wrong:
        print("WRONG", target, name, new, "complete" if answer["renamed_all"] else "", wrong[:6], flush=True)
    if a.check and answer["renamed_all"]:
        applied = run(a.program, "rename", target, new, "--apply", "--json")
        if applied.returncode:
            count["only dry"] += 1
            print("ONLY DRY", target, new, applied.stdout[:300], applied.stderr[:300], flush=True)
        else:
            batch.append((name, new, target))
    if len(batch) >= 10:
        check(batch)
if batch:
    check(batch)
print(a.clone.rstrip("/").split("/")[-1], dict(count))
for message, n in why.most_common(12):
    print("  ", n, message)
