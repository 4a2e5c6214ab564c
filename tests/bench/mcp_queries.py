#!/usr/bin/env python3
"""Times 150 mixed questions over MCP: names, sentences with and without names, words of the text, names that no file
has, paths, tests for a name.

Usage: mcp_queries.py CLONE NAME=PROGRAM... [--dir DIR]
Each program keeps its index in DIR/NAME-CLONE (default: a temporary folder) and is asked every question three times; the
best counts. The questions are made from the tracked files, by a fixed seed.
"""
import argparse
import os
import pathlib
import random
import re
import subprocess
import tempfile
import time

from stdio import Server

SOURCE = re.compile(r"\.(rs|go|py|rb|java|cs|ts|js|c|h|php|kt)$")
DEFINED = re.compile(r"\b(?:def|fn|func|function|class|struct|void|public)\s+([A-Za-z_]\w{4,})")
SENTENCES = [
    "how is a stale lock removed",
    "where are retries scheduled after a failed request",
    "parse command line arguments",
    "how does the connection pool reuse idle connections",
    "what decides whether a cached response is fresh",
    "cancel a running job when the client disconnects",
    "render a template with inherited blocks",
]
N = 150


def questions(clone):
    listed = subprocess.run(["git", "-C", clone, "ls-files"], capture_output=True, text=True, check=True).stdout.split("\n")
    files = [path for path in listed if SOURCE.search(path)]
    drawn = random.Random(5)

    def text(path):
        return (pathlib.Path(clone) / path).read_text(errors="ignore")

    def name(path):
        return drawn.choice(DEFINED.findall(text(path)) or [None])

    def words(path, n):
        lines = [found for line in text(path).split("\n") if len(found := re.findall(r"[A-Za-z]{3,}", line)) >= n]
        if not lines:
            return None
        line = drawn.choice(lines)
        start = drawn.randrange(len(line) - n + 1)
        return " ".join(line[start : start + n])

    made = []
    while len(made) < N:
        path, sentence = drawn.choice(files), drawn.choice(SENTENCES)
        nowhere = f"where is frobnicateQuux{drawn.randrange(99)} used to handle {words(path, 2) or 'errors'}"
        at = f"{path}:{drawn.randrange(1, 60)}"
        kinds = [name(path), name(path), f"{sentence} {name(path) or 'value'}", sentence, words(path, 2), words(path, 3),
                 nowhere, drawn.choice([path, at]), f"tests for {name(path) or 'parser'}", words(path, 5)]
        if question := kinds[len(made) % len(kinds)]:
            made.append(question)
    return made


def started(program, clone, sidecar):
    env = dict(os.environ, CODESCOUT_SIDECAR=str(sidecar))
    subprocess.run([program, "index", "-q"], cwd=clone, env=env, check=True, stderr=subprocess.DEVNULL)
    return Server([program, "serve"], cwd=clone, env=env)


def search(server, query):
    """Returns how long a search takes, in milliseconds."""
    start = time.perf_counter()
    server.call("search", query=query)
    return (time.perf_counter() - start) * 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clone")
    parser.add_argument("programs", nargs="+", metavar="NAME=PROGRAM")
    parser.add_argument("--dir", default=tempfile.gettempdir())
    args = parser.parse_args()
    asked = questions(args.clone)
    for name, program in (item.split("=", 1) for item in args.programs):
        server = started(program, args.clone, pathlib.Path(args.dir) / f"{name}-{pathlib.Path(args.clone).name}")
        search(server, "warm up")
        before = server.cpu()
        best = sorted(min(times) for times in zip(*([search(server, query) for query in asked] for _ in range(3))))
        cpu = (server.cpu() - before) * 1000 / (3 * N)
        p50, p90, p99 = (best[int(share * N)] for share in (0.5, 0.9, 0.99))
        print(f"{name}: p50 {p50:.1f} ms, p90 {p90:.1f} ms, p99 {p99:.1f} ms, {cpu:.1f} ms CPU per question")
        server.close()


main()
