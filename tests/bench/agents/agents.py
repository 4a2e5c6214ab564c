#!/usr/bin/env python3
"""Counts the calls and tokens that a scripted agent needs until it has seen the judged place.

    agents.py PROGRAM JUDGEMENTS CLONES [--work DIR] [--policies grep,whole,codescout,pack] [--calls N] [--semble PROGRAM]

PROGRAM is a release build of codescout. JUDGEMENTS is a folder of judged queries and CLONES a folder of clones, both as
for `codescout eval`. Each clone is checked out at the judged commit below the work folder and indexed there. No language
model takes part: `policies.py` says what is done with a question.

A question is answered by any of its judged places of grade 2. Such a place is *named* once an output contains its path
with a line or range that overlaps it by a third of the shorter one (a matching line that grep prints inside the place
is enough), and *read* once a third of its lines, or 20 of them if that is fewer, were printed, in any number of outputs.
Tokens are the characters of all calls and outputs until then, divided by 4. The list of a server's tools, which an agent
receives once per session, is printed apart and not part of the figures. A question that the bound on calls leaves
unanswered counts as infinitely many in medians and quartiles, where a dash marks it.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import policies
from shown import Trace, Tree
from tools import Codescout, Grep, Server

NEVER = (float("inf"), float("inf"))


def clone_of(clones, repository):
    owner, name = repository.split("/")
    for folder in [clones / name, clones / owner / name, clones / f"{owner}+{name}" / "repo"]:
        if folder.is_dir():
            return folder
    return None


def checkout(program, clones, work, judged):
    source = clone_of(clones, judged["repository"])
    if source is None:
        return None
    folder = work / judged["repository"].replace("/", "+")
    if not folder.exists():
        run("git", "clone", "-q", "--shared", "--no-checkout", source, folder)
        run("git", "-C", folder, "-c", "advice.detachedHead=false", "checkout", "-q", judged["commit"])
    run(program, "-q", "index", cwd=folder)
    # Records the messages of commits, as the first question about history does.
    run(program, "search", "--in", "commits", "x", cwd=folder, check=False)
    return folder


def run(*command, cwd=None, check=True):
    subprocess.run(list(map(str, command)), cwd=cwd, check=check, stdout=subprocess.DEVNULL)


def replay(options, judged, folder):
    """Returns, for each policy, the traces of all queries."""
    tree = Tree(folder)
    root = judged["root"]
    servers = {"codescout": Codescout([options.program, "serve"], folder)}
    if "semble" in options.policies:
        servers["semble"] = Server([options.semble], folder, {**os.environ, "PYTHONUNBUFFERED": "1"})
    grep = Grep(tree, root)
    traces = {}
    for query in judged["queries"]:
        for name in options.policies:
            trace = Trace(query, options.calls)
            policy = getattr(policies, name)
            if name in ("grep", "whole"):
                policy(trace, tree, grep, query["query"])
            else:
                server = servers["semble" if name == "semble" else "codescout"]
                policy(trace, tree, server, query["query"], root)
            traces.setdefault(name, []).append((query, trace))
    for name, server in servers.items():
        options.tools[name] = server.tool_characters // 4
        server.close()
    return traces


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def shown(values):
    figures = [quantile(values, share) for share in (0.25, 0.5, 0.75)]
    return " ".join("–".rjust(7) if figure == float("inf") else f"{figure:7,.0f}" for figure in figures)


def report(title, traces):
    print(f"\n{title}: {len(next(iter(traces.values())))} queries")
    print(f"{'policy':10} {'until':6} {'tokens: quarter, median, 3/4':>25} {'calls: likewise':>25} {'never':>8}")
    for name, found in traces.items():
        for until in ("named", "read"):
            costs = [getattr(trace, until) or NEVER for _, trace in found]
            never = sum(cost == NEVER for cost in costs) / len(costs)
            tokens, calls = zip(*costs)
            print(f"{name:10} {until:6} {shown(tokens)}    {shown(calls)} {never:8.1%}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=lambda path: str(Path(path).resolve()))
    parser.add_argument("judgements", type=Path)
    parser.add_argument("clones", type=Path)
    parser.add_argument("--work", type=Path, default=Path("agents-work"))
    parser.add_argument("--policies", type=lambda text: text.split(","), default=["grep", "whole", "codescout", "pack"])
    parser.add_argument("--calls", type=int, default=20, help="bound on the calls per question")
    parser.add_argument("--semble", help="the program semble, for the policy of that name")
    parser.add_argument("--traces", type=Path, help="also write one line of JSON per question and policy")
    options = parser.parse_args()
    options.work = options.work.resolve()
    options.work.mkdir(exist_ok=True)
    options.tools = {}

    whole = {}
    for file in sorted(options.judgements.glob("*.json")):
        judged = json.loads(file.read_text())
        folder = checkout(options.program, options.clones.resolve(), options.work, judged)
        if folder is None:
            print(f"{judged['repository']}: no clone", file=sys.stderr)
            continue
        print(judged["repository"], file=sys.stderr)
        for name, found in replay(options, judged, folder).items():
            whole.setdefault(name, []).extend(found)
    if not whole:
        sys.exit("no query was replayed")
    report("all", whole)
    for category in sorted({query["category"] for query, _ in whole[options.policies[0]]}):
        some = {name: [one for one in found if one[0]["category"] == category] for name, found in whole.items()}
        report(category, some)
    for name, tokens in options.tools.items():
        print(f"\ntools of {name}, once per session: {tokens:,} tokens")
    if options.traces:
        with open(options.traces, "w") as file:
            for name, found in whole.items():
                for query, trace in found:
                    one = {"policy": name, "id": query["id"], "named": trace.named, "read": trace.read}
                    one |= {"calls": trace.calls, "tokens": trace.tokens}
                    file.write(json.dumps(one) + "\n")


if __name__ == "__main__":
    main()
