#!/usr/bin/env python3
"""Measures the pages of `codescout web`: milliseconds to the first byte, and their sizes.

usage: web.py PROGRAM CLONE... [-n 40] [--seed 1] [--review A..B]

Of each clone, n files of at most 2,000 lines, n definitions and n searches for their names are drawn by seed. The server has
answered one page of each kind before; "again" is a second request for the same page.
"""
import argparse, json, os, random, re, subprocess, sys, threading, time, urllib.parse, http.client

p = argparse.ArgumentParser()
p.add_argument("program"), p.add_argument("clone", nargs="+")
p.add_argument("-n", type=int, default=40), p.add_argument("--seed", type=int, default=1), p.add_argument("--review")
a = p.parse_args()


def serve(clone):
    server = subprocess.Popen([a.program, "web", "--repo", clone], stderr=subprocess.PIPE, text=True)
    address = None
    for line in server.stderr:
        if found := re.search(r"listening at http://([^/ ;]+)", line):
            address = found[1]
        if found := re.search(r"type the code (\S+)", line):
            break
    threading.Thread(target=lambda: [None for _ in server.stderr], daemon=True).start()
    door = http.client.HTTPConnection(address)
    door.request("POST", "/-/open", f"code={found[1]}")
    cookie = door.getresponse().getheader("set-cookie").split(";")[0]
    return server, address, cookie


def get(address, cookie, path):
    """Returns the milliseconds to the first byte, the status and the page."""
    connection = http.client.HTTPConnection(address, timeout=120)
    connection.connect()
    began = time.perf_counter()
    connection.request("GET", path, headers={"cookie": cookie})
    answer = connection.getresponse()
    first = (time.perf_counter() - began) * 1e3
    return first, answer.status, answer.read()


def of(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else float("nan")


print(f"{'':12} {'page':8} {'n':>4} {'p50':>8} {'p95':>8} {'again p50':>10} {'p95':>8} {'median KB':>10}")
for clone in a.clone:
    name, rng = os.path.basename(os.path.abspath(clone)), random.Random(a.seed)
    subprocess.run([a.program, "--repo", clone, "index", "--quiet"], check=True)
    files = subprocess.run(["git", "ls-files"], cwd=clone, capture_output=True, text=True).stdout.split("\n")
    rng.shuffle(files)
    chosen, definitions = [], []
    for path in files:
        full = f"{clone}/{path}"
        if not re.search(r"\.(py|rs|go|js|ts|java|rb|c|h|cpp|cs|kt|swift|php)$", path) or not os.path.isfile(full):
            continue
        if open(full, "rb").read().count(b"\n") > 2_000:
            continue
        out = subprocess.run([a.program, "--repo", clone, "outline", path, "--json"], capture_output=True, text=True).stdout
        ids = re.findall(r'"id":\s*"([^"]+#[^"]+)"', out)
        if ids:
            chosen.append(path)
            definitions.append(rng.choice(ids))
        if len(chosen) == a.n:
            break
    server, address, cookie = serve(clone)
    try:
        page = lambda kind, rest: f"/{urllib.parse.quote(name)}/-/{kind}/{rest}"
        pages = {
            "file": [page("file", "HEAD:" + urllib.parse.quote(path)) for path in chosen],
            "search": [page("search", "HEAD?q=" + urllib.parse.quote(id.split("#")[1])) for id in definitions],
            "def": [page("def", "HEAD:{}?name={}".format(*map(urllib.parse.quote, id.split("#")))) for id in definitions],
            "life": [page("life", "HEAD:")], "index": [page("index", "HEAD:")],
        }
        if a.review:
            pages["review"] = [page("review", a.review)]
        for kind, urls in pages.items():
            if len(urls) > 1:
                get(address, cookie, urls[-1])
            first, again, sizes = [], [], []
            for url in urls:
                took, status, body = get(address, cookie, url)
                if status != 200:
                    print(f"{status} {url}", file=sys.stderr)
                    continue
                first.append(took), sizes.append(len(body) / 1e3)
                again.append(get(address, cookie, url)[0])
            if first:
                print(f"{name:12} {kind:8} {len(first):4} {of(first, .5):8.1f} {of(first, .95):8.1f} {of(again, .5):10.1f} "
                      f"{of(again, .95):8.1f} {of(sizes, .5):10.0f}", flush=True)
    finally:
        server.kill()
