#!/usr/bin/env python3
"""Usage: stub_embedder.py PORT MILLISECONDS DIM

A server for embeddings (OpenAI's form) that takes MILLISECONDS for every request, however many come at once, and gives
vectors of DIM numbers; at /embed_sparse sparse vectors of DIM tokens, in text-embeddings-inference's form. Ends on a line of
standard input, and then prints how many requests and texts came, how many requests were in the works at most, for which share
of the time from the first request to the last answer as many as that were, and how many on average.
"""

import asyncio
import hashlib
import json
import random
import sys
import time

PORT, DELAY, DIM = int(sys.argv[1]), float(sys.argv[2]) / 1000, int(sys.argv[3])
seen = {"requests": 0, "texts": 0, "now": 0, "most": 0}
# Time with so many in the works.
spent = {}
last = None

BASE = [str(round(random.Random(at).gauss(0, 1), 4)) for at in range(DIM)]
# As JSON, made before: the time is to be what was asked for.
VECTORS = ["[" + ",".join(BASE[start:] + BASE[:start]) + "]" for start in range(DIM)]


def vector(text):
    return VECTORS[int.from_bytes(hashlib.blake2b(text.encode()).digest()[:4], "big") % DIM]


def sparse(text):
    start = int.from_bytes(hashlib.blake2b(text.encode()).digest()[:2], "big") % 30000
    return "[" + ",".join('{"index":%d,"value":%s}' % (start + at, 0.5 + at / DIM) for at in range(DIM)) + "]"


def moved(by):
    global last
    now = time.monotonic()
    if last is not None:
        spent[seen["now"]] = spent.get(seen["now"], 0) + now - last
    last = now
    seen["now"] += by
    seen["most"] = max(seen["most"], seen["now"])


async def serve(reader, writer):
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            path = head.split(b" ")[1]
            length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
            request = await reader.readexactly(length)
            moved(1)
            started = time.monotonic()
            asked = json.loads(request)
            texts = asked.get("input") or asked["inputs"]
            if path == b"/embed_sparse":
                body = "[%s]" % ",".join(sparse(text) for text in texts)
            else:
                data = ['{"index":%d,"embedding":%s}' % (at, vector(text)) for at, text in enumerate(texts)]
                body = '{"object":"list","data":[%s],"model":"stub"}' % ",".join(data)
            body = body.encode()
            await asyncio.sleep(max(0, DELAY - (time.monotonic() - started)))
            seen["requests"] += 1
            seen["texts"] += len(texts)
            moved(-1)
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", PORT, limit=1 << 24, backlog=1024)
    print("listening", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    server.close()


asyncio.run(main())
# Before the first request nothing was to do.
total = sum(spent.values()) or 1
share = spent.get(seen["most"], 0) / total
mean = sum(number * time for number, time in spent.items()) / total
print(
    f"{seen['requests']} requests, {seen['texts']} texts in {total:.1f} s; at most {seen['most']} at once, {share:.0%} of the time; "
    f"{mean:.1f} on average, {mean / (seen['most'] or 1):.0%} of it"
)
