#!/usr/bin/env python3
"""Times questions about relations against one server.

    graph.py PROGRAM REPO [--names N] [--seed N]

PROGRAM is a release build, REPO a clone with a work tree. The server is asked for the callers of N random functions
outside of tests, for their impact to depth 3, for the flow from them, and for all links (`stats`): each first on a
server that knows no links yet, then once more. Then one file is edited, and the same is asked again. Times are those
that the answers report, in milliseconds.
"""

import argparse
import json
import random
import subprocess
import time
from pathlib import Path

from stdio import Server


def graph(server, **arguments):
    """Returns the answer and its time in milliseconds, as measured here."""
    began = time.perf_counter()
    answer = server.call("graph", **arguments)["result"]
    return answer["structuredContent"], (time.perf_counter() - began) * 1e3


def percentile(times, share):
    return sorted(times)[min(len(times) - 1, int(len(times) * share))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("repo", type=Path)
    parser.add_argument("--names", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    random.seed(options.seed)

    command = [options.program, "outline", "--view", "symbols", "--tests", "no", "--json"]
    listed = json.loads(subprocess.run(command, cwd=options.repo, capture_output=True, text=True, check=True).stdout)
    ids = [row["id"] for row in listed["results"] if row.get("kind") in ("function", "method")]
    ids = random.sample(ids, min(options.names, len(ids)))
    edited = options.repo / ids[0].split("#")[0]

    server = Server([options.program, "serve"], cwd=options.repo)
    graph(server, op="callers", target=ids[0], limit=1)

    def series(label):
        for op, more in [("callers", {}), ("impact", {"depth": 3}), ("flow", {})]:
            times = [graph(server, op=op, target=target, limit=20, **more)[1] for target in ids]
            print(
                f"{label} {op:8} n {len(times)}  p50 {percentile(times, 0.5):.1f}  p90 {percentile(times, 0.9):.1f}  "
                f"p99 {percentile(times, 0.99):.1f}  max {max(times):.1f}"
            )
        answer, took = graph(server, op="stats")
        print(f"{label} stats    {answer['references']} references of {answer['files']} files in {took:.0f}")

    series("first")
    series("again")
    text = edited.read_bytes()
    try:
        edited.write_bytes(text + b"\n")
        _, took = graph(server, op="callers", target=ids[1], limit=1)
        print(f"first question after an edit of one file {took:.1f}")
        series("edited")
    finally:
        edited.write_bytes(text)
        server.close()


if __name__ == "__main__":
    main()
