"""How fast, how large. Usage: figures.py CODESCOUT REPO [QUERY…]

The repository should be indexed. Prints the time from the start of the process to the answers of `initialize` and of
`server/discover`, a warm search through the protocol, and the memory at rest."""

import json
import os
import re
import subprocess
import sys
import time

codescout, repo = sys.argv[1:3]
QUERIES = sys.argv[3:] or [
    "where are errors handled",
    "parse the command line",
    "main",
    "read a file from disk",
    "how is configuration loaded",
    "write to the index",
    "open",
    "compare two strings",
]
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "figures", "version": "1"},
}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "figures", "version": "1"}}


def start():
    return subprocess.Popen(
        [codescout, "serve", "--repo", repo], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )


def request(server, method, params, id=1):
    server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode() + b"\n")
    server.stdin.flush()
    while True:
        message = json.loads(server.stdout.readline())
        if message.get("id") == id:
            return message


def median(values):
    return sorted(values)[len(values) // 2]


for method, params in [("initialize", HELLO), ("server/discover", {"_meta": META})]:
    times = []
    for _ in range(15):
        began = time.time()
        server = start()
        request(server, method, params)
        times.append((time.time() - began) * 1e3)
        server.stdin.close()
        assert server.wait() == 0
    print(f"{method} from process start: median {median(times):.1f} ms, worst {max(times):.1f} ms")

server = start()
request(server, "initialize", HELLO)
call = lambda name, arguments: request(server, "tools/call", {"name": name, "arguments": arguments})["result"]
began = time.time()
answer = call("search", {"query": QUERIES[0]})["structuredContent"]
print(f"first search: {(time.time() - began) * 1e3:.0f} ms, complete: {answer['complete']}")
while not call("search", {"query": QUERIES[0]})["structuredContent"]["complete"]:
    call("index", {"wait": 100})


def cpu_seconds():
    with open(f"/proc/{server.pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


for reference in ["WORKTREE", "HEAD"]:
    times = []
    cpu = cpu_seconds()
    for n in range(400):
        began = time.time()
        call("search", {"query": QUERIES[n % len(QUERIES)], "ref": reference})
        times.append((time.time() - began) * 1e3)
    cpu = (cpu_seconds() - cpu) / 400 * 1e3
    times = sorted(times[50:])
    print(f"warm search at {reference}: p50 {median(times):.2f} ms, p99 {times[int(len(times) * 0.99)]:.2f} ms, processor {cpu:.2f} ms")
status = call("status", {})["structuredContent"]
print(f"chunks: {status['chunks']}, files: {status['coverage']['files']}")
time.sleep(12)
with open(f"/proc/{server.pid}/status") as file:
    text = file.read()
kib = {name: int(re.search(name + r":\s+(\d+)", text).group(1)) for name in ["RssAnon", "RssFile"]}
print(f"at rest: {kib['RssAnon'] / 1024:.1f} MiB, and {kib['RssFile'] / 1024:.1f} MiB of mapped files")
server.stdin.close()
sys.exit(server.wait())
