#!/usr/bin/env python3
"""Usage: stub_embedder.py PORT MILLISECONDS DIM

A server for embeddings (OpenAI's form) that takes MILLISECONDS for every request, however many come at once, and gives
vectors of DIM numbers; at /embed_sparse sparse vectors of DIM tokens in text-embeddings-inference's form. Ends on a line of standard input, and then tells how many requests and texts came, how many
requests were in the works at most, and for which share of the time since the first as many as that were.
"""

import hashlib
import json
import random
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT, DELAY, DIM = int(sys.argv[1]), float(sys.argv[2]) / 1000, int(sys.argv[3])
lock = threading.Lock()
seen = {"requests": 0, "texts": 0, "now": 0, "most": 0}
# Time with so many in the works.
spent = {}
last = None


BASE = [str(round(random.Random(at).gauss(0, 1), 4)) for at in range(DIM)]


def vector(text):
    """As JSON: cheap, so that the time is what was asked for."""
    start = int.from_bytes(hashlib.blake2b(text.encode()).digest()[:4], "big") % DIM
    return "[" + ",".join(BASE[start:] + BASE[:start]) + "]"


def sparse(text):
    start = int.from_bytes(hashlib.blake2b(text.encode()).digest()[:2], "big") % 30000
    return "[" + ",".join('{"index":%d,"value":%s}' % (start + at, 0.5 + at / DIM) for at in range(DIM)) + "]"


def moved(by):
    global last
    with lock:
        now = time.monotonic()
        if last is not None:
            spent[seen["now"]] = spent.get(seen["now"], 0) + now - last
        last = now
        seen["now"] += by
        seen["most"] = max(seen["most"], seen["now"])


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        moved(1)
        started = time.monotonic()
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        texts = asked.get("input") or asked["inputs"]
        if self.path == "/embed_sparse":
            body = "[%s]" % ",".join(sparse(text) for text in texts)
        else:
            data = ['{"index":%d,"embedding":%s}' % (at, vector(text)) for at, text in enumerate(texts)]
            body = '{"object":"list","data":[%s],"model":"stub"}' % ",".join(data)
        body = body.encode()
        time.sleep(max(0, DELAY - (time.monotonic() - started)))
        with lock:
            seen["requests"] += 1
            seen["texts"] += len(texts)
        moved(-1)
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print("listening", flush=True)
sys.stdin.readline()
total = sum(time for number, time in spent.items()) or 1
share = spent.get(seen["most"], 0) / total
print(f"{seen['requests']} requests, {seen['texts']} texts; at most {seen['most']} at once, {share:.0%} of the time")
