"""Many HTTP clients at once. Usage: load.py CODESCOUT REPO [SECONDS] [CLIENTS]

Prints errors, calls, latency in milliseconds, and the resident memory (without mapped files) at the beginning and the end."""

import http.client
import json
import re
import subprocess
import sys
import threading
import time

codescout, repo = sys.argv[1:3]
seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 20
n_clients = int(sys.argv[4]) if len(sys.argv) > 4 else 100
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "load", "version": "1"},
}
CALLS = [
    ("search", {"query": "where are errors handled"}),
    ("search", {"query": "main", "limit": 5}),
    ("symbol", {"name": "main"}),
    ("read", {"target": "README.md", "lines": "1-20"}),
    ("outline", {"view": "tree", "depth": 1}),
]

server = subprocess.Popen(
    [codescout, "serve", "--repo", repo, "--http", "127.0.0.1:0", "--no-token"], stderr=subprocess.PIPE, text=True
)
port = None
while port is None:
    found = re.search(r"http://127\.0\.0\.1:(\d+)", server.stderr.readline())
    port = found and int(found.group(1))


def call(connection, name, arguments):
    body = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments, "_meta": META}}
    )
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": name,
    }
    connection.request("POST", "/mcp", body, headers)
    response = connection.getresponse()
    text = response.read()
    assert response.status == 200, (response.status, text[:200])
    if b"\ndata: " in text or text.startswith(b"data: "):
        text = [line[6:] for line in text.split(b"\n") if line.startswith(b"data: ") and len(line) > 6][-1]
    return json.loads(text)["result"]["structuredContent"]


def anonymous_kib():
    with open(f"/proc/{server.pid}/status") as status:
        return int(re.search(r"RssAnon:\s+(\d+)", status.read()).group(1))


connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
while call(connection, "search", {"query": "main"}).get("complete") is False:
    call(connection, "index", {"wait": 60})
errors, latencies = [], []
lock = threading.Lock()
deadline = time.time() + seconds


def work(number):
    own, own_errors = [], []
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    n = number
    while time.time() < deadline:
        name, arguments = CALLS[n % len(CALLS)]
        n += 1
        began = time.time()
        try:
            answer = call(connection, name, arguments)
            if "error" in answer:
                own_errors.append(answer["error"])
        except Exception as error:  # whatever it is, it counts
            own_errors.append(repr(error))
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        own.append((time.time() - began) * 1e3)
    with lock:
        latencies.extend(own)
        errors.extend(own_errors)


threads = [threading.Thread(target=work, args=(number,)) for number in range(n_clients)]
for thread in threads:
    thread.start()
time.sleep(min(3, seconds / 4))
memory = [anonymous_kib()]
while any(thread.is_alive() for thread in threads):
    time.sleep(max(1, seconds / 10))
    memory.append(anonymous_kib())
latencies.sort()
at = lambda share: latencies[min(len(latencies) - 1, int(len(latencies) * share))]
print(f"{n_clients} clients, {seconds:.0f} s: {len(latencies)} calls, {len(latencies) / seconds:.0f}/s, {len(errors)} errors")
print(f"latency ms: p50 {at(0.5):.1f}, p99 {at(0.99):.1f}, max {latencies[-1]:.1f}")
print("anonymous memory MiB:", " ".join(f"{kib / 1024:.0f}" for kib in memory))
for error in sorted(set(errors))[:5]:
    print("error:", error)
server.terminate()
sys.exit(1 if errors or server.wait(20) != 0 else 0)
