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


class Server:
    def __init__(self, program, repo):
        self.process = subprocess.Popen(
            [program, "serve"], cwd=repo, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.number = 0
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.ask("initialize", params)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def ask(self, method, params):
        self.number += 1
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        while True:
            answer = json.loads(self.process.stdout.readline())
            if answer.get("id") == self.number:
                return answer["result"]

    def graph(self, **arguments):
        """Returns the answer and its time in milliseconds, as measured here."""
        began = time.perf_counter()
        answer = self.ask("tools/call", {"name": "graph", "arguments": arguments})
        return answer["structuredContent"], (time.perf_counter() - began) * 1e3

    def close(self):
        self.process.stdin.close()
        self.process.wait(60)


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

    server = Server(options.program, options.repo)
    server.graph(op="callers", target=ids[0], limit=1)

    def series(label):
        for op, more in [("callers", {}), ("impact", {"depth": 3}), ("flow", {})]:
            times = [server.graph(op=op, target=target, limit=20, **more)[1] for target in ids]
            print(
                f"{label} {op:8} n {len(times)}  p50 {percentile(times, 0.5):.1f}  p90 {percentile(times, 0.9):.1f}  "
                f"p99 {percentile(times, 0.99):.1f}  max {max(times):.1f}"
            )
        answer, took = server.graph(op="stats")
        print(f"{label} stats    {answer['references']} references of {answer['files']} files in {took:.0f}")

    series("first")
    series("again")
    text = edited.read_bytes()
    try:
        edited.write_bytes(text + b"\n")
        _, took = server.graph(op="callers", target=ids[1], limit=1)
        print(f"first question after an edit of one file {took:.1f}")
        series("edited")
    finally:
        edited.write_bytes(text)
        server.close()


if __name__ == "__main__":
    main()
