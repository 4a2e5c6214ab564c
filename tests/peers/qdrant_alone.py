"""Usage: qdrant_alone.py CODESCOUT REPOSITORY QDRANT

How near answers are to one another with vectors that are here and with vectors that a Qdrant at the address QDRANT (qdrant_engine.py
will do) alone has. The vectors are of hashed words and their trigrams, 256 numbers, made by this script; the questions are subjects of
commits of REPOSITORY, a clone that may be written to. Needs numpy.
"""

import hashlib
import json
import re
import statistics
import subprocess
import sys
import threading
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy

CODESCOUT, REPOSITORY, QDRANT = sys.argv[1:]


@cache
def of_word(word):
    seed = int.from_bytes(hashlib.md5(word.encode()).digest()[:4], "little")
    return numpy.random.default_rng(seed).normal(size=256)


def embed(text):
    vector = numpy.zeros(256)
    for word in re.findall("[a-z]+", re.sub("([a-z])([A-Z])", r"\1 \2", text).lower())[:400]:
        vector += of_word(word) + 0.3 * sum((of_word("#" + word[at : at + 3]) for at in range(len(word) - 2)), numpy.zeros(256))
    return (vector if vector.any() else of_word("none")).tolist()


class Embedder(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        texts = json.loads(self.rfile.read(int(self.headers["content-length"])))["input"]
        data = [{"index": at, "embedding": embed(text)} for at, text in enumerate(texts)]
        body = json.dumps({"data": data}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def run(*args):
    return subprocess.run([CODESCOUT, *args], cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout


def ask(question, mode):
    answer = json.loads(run("search", question, "--mode", mode, "--ref", "HEAD", "--limit", "10", "--json"))
    assert answer["complete"], answer["incomplete_because"]
    return [(found["path"], found["start_line"]) for found in answer["results"]], answer["took_ms"]


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Embedder)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    log = ["git", "-C", REPOSITORY, "log", "--format=%s", "-n", "400", "--no-merges"]
    subjects = subprocess.run(log, capture_output=True, text=True, check=True).stdout.splitlines()
    questions = [subject for subject in subjects if len(subject.split()) >= 4 and not subject.startswith(("deps", "release"))][::7]
    settings = {
        "embedding.server": f"http://127.0.0.1:{server.server_port}",
        "embedding.model": "hashed",
        "qdrant.server": QDRANT,
        "qdrant.query_timeout_ms": "10000",
    }
    run("index", "HEAD")
    for key, value in settings.items():
        run("config", "set", key, value)
    answers = {}
    for keep_local in ("true", "false"):
        run("config", "set", "qdrant.keep_local", keep_local)
        run("index", "HEAD")
        answers[keep_local] = {mode: [ask(question, mode) for question in questions] for mode in ("semantic", "auto")}
    for mode in ("semantic", "auto"):
        here, alone = answers["true"][mode], answers["false"][mode]
        pairs = [(ours, theirs) for (ours, _), (theirs, _) in zip(here, alone)]
        shared = statistics.mean(len(set(ours) & set(theirs)) / max(1, len(ours)) for ours, theirs in pairs)
        same_first = sum(ours[:1] == theirs[:1] for ours, theirs in pairs)
        same = sum(ours == theirs for ours, theirs in pairs)
        took = [round(statistics.median(took for _, took in of)) for of in (here, alone)]
        print(f"{mode}: {len(pairs)} questions, {shared:.3f} of ten in both, the first the same {same_first}, all the same {same}, ms {took}")


main()
