#!/usr/bin/env python3
"""A fleet on a real Qdrant server: load, questions, freshness, kills, isolation.

Usage: fleet.py PROGRAM QDRANT FOLDER load MIRROR...      add and store the mirrors; print costs
       fleet.py PROGRAM QDRANT FOLDER ask [N]             N questions over MCP (200); print percentiles
       fleet.py PROGRAM QDRANT FOLDER follow [SECONDS]    100 commits a minute (600 s); print how late each is found
       fleet.py PROGRAM QDRANT FOLDER kill [N]            N kills (50) each of feeder, gateway and server; print differences
       fleet.py PROGRAM QDRANT FOLDER isolate [N]         N hostile calls (1000) by a reader of one of two groups

QDRANT is the server's program; it runs in FOLDER/server on the port FLEET_PORT (16333), for this machine alone. The fleet is
FOLDER/fleet. `follow`, `kill` and `isolate` make small repositories of their own below FOLDER.
"""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

from stdio import Server, cpu

program, qdrant, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]).absolute()
port = os.environ.get("FLEET_PORT", "16333")
KEY = "fleet-bench-key"
ENV = dict(os.environ, CODESCOUT_QDRANT_KEY=KEY, HOME=str(folder / "home"))
FLEET = folder / "fleet"
SENTENCES = [
    "how is a stale lock removed", "where are retries scheduled after a failed request", "parse command line arguments",
    "how does the connection pool reuse idle connections", "what decides whether a cached response is fresh",
    "cancel a running job when the client disconnects", "render a template with inherited blocks",
    "validate the configuration at startup", "escape html in output", "compute a checksum of a file",
]


def memory(pid, field="VmRSS"):
    return int(re.search(rf"{field}:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1)) / 1024


class Qdrant:
    """The server. Its data stay in the folder between runs."""

    def __init__(self):
        self.start()

    def start(self):
        home = folder / "server"
        home.mkdir(parents=True, exist_ok=True)
        env = dict(
            os.environ, QDRANT__SERVICE__API_KEY=KEY, QDRANT__SERVICE__HOST="127.0.0.1", QDRANT__SERVICE__HTTP_PORT=port,
            QDRANT__SERVICE__GRPC_PORT=str(int(port) + 1), QDRANT__TELEMETRY_DISABLED="true", QDRANT__LOG_LEVEL="WARN",
        )
        log = open(home / "log", "ab")
        self.process = subprocess.Popen([qdrant], cwd=home, env=env, stdout=log, stderr=log)
        for _ in range(1200):
            try:
                return self.get("/")
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.05)
        sys.exit("the server does not start; see server/log")

    def get(self, path):
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"api-key": KEY})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read()

    def collections(self):
        listed = json.loads(self.get("/collections"))["result"]["collections"]
        return {one["name"]: json.loads(self.get(f"/collections/{one['name']}"))["result"] for one in listed}

    def settled(self):
        """Waits until nothing is being optimised."""
        while any(of["status"] != "green" for of in self.collections().values()):
            time.sleep(0.5)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def gateway_of(fleet, *args):
    return Server([program, "serve", f"--fleet={fleet}", *args], env=ENV)


def run(*args, check=True, fleet=None, **options):
    done = subprocess.run([program, "fleet", "--dir", str(fleet or FLEET), *args], env=ENV, capture_output=True, text=True, **options)
    if check and done.returncode != 0:
        sys.exit(f"fleet {' '.join(args)}: {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done


def git(repo, *args):
    env = dict(os.environ, GIT_AUTHOR_NAME="b", GIT_AUTHOR_EMAIL="b@b", GIT_COMMITTER_NAME="b", GIT_COMMITTER_EMAIL="b@b")
    return subprocess.run(["git", "-C", str(repo), *args], env=env, check=True, capture_output=True, text=True).stdout


def made_fleet(name, repositories):
    """Makes a fleet of its own with these repositories: name -> (groups, files)."""
    home = folder / name
    shutil.rmtree(home, ignore_errors=True)
    fleet = home / "fleet"
    for repository, (groups, files) in repositories.items():
        repo = home / repository
        repo.mkdir(parents=True)
        git(repo, "init", "-q")
        commit(repo, files)
        run("add", str(repo), *(f"--group={group}" for group in groups), fleet=fleet)
    settings = (fleet / "fleet.toml").read_text()
    (fleet / "fleet.toml").write_text(re.sub(r"127\.0\.0\.1:\d+", f"127.0.0.1:{port}", settings))
    return home, fleet


def commit(repo, files):
    for path, text in files.items():
        (repo / path).parent.mkdir(parents=True, exist_ok=True)
        (repo / path).write_text(text)
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "more")


def source(word, n=6):
    return "\n".join(f"/// Handles {word} {i} after a retry.\npub fn {word}_{i}(x: u32) -> u32 {{\n    x + {i}\n}}\n" for i in range(n))


def percentiles(values):
    values = sorted(values)
    at = lambda share: values[min(int(share * len(values)), len(values) - 1)]
    return f"p50 {at(0.5):.0f}, p95 {at(0.95):.0f}, p99 {at(0.99):.0f}, most {values[-1]:.0f}"


def load(server, mirrors):
    for mirror in mirrors:
        path = pathlib.Path(mirror)
        name = path.parent.name if path.name == "repo" else path.stem
        run("add", f"{re.sub('[^A-Za-z0-9_]', '-', name)}={mirror}")
    settings = FLEET / "fleet.toml"
    settings.write_text(re.sub(r"127\.0\.0\.1:\d+", f"127.0.0.1:{port}", settings.read_text()))
    before, start = cpu(server.process.pid), time.time()
    children = os.times()
    done = subprocess.run([program, "fleet", "--dir", str(FLEET), "index"], env=ENV, text=True, stdout=subprocess.PIPE)
    after = os.times()
    print(done.stdout[-1500:], f"exit {done.returncode}")
    fed = time.time() - start
    server.settled()
    feeder = after.children_user + after.children_system - children.children_user - children.children_system
    print(f"stored in {fed:.0f} s, settled in {time.time() - start:.0f} s; CPU: feeder {feeder:.0f} s, server {cpu(server.process.pid) - before:.0f} s")
    shown(server)


def shown(server):
    disk = sum(file.stat().st_blocks * 512 for file in (folder / "server/storage").rglob("*") if file.is_file())
    for name, of in server.collections().items():
        strict = of["config"].get("strict_mode_config", {}).get("enabled")
        print(f"{name}: {of['points_count']} points, {of['segments_count']} segments, strict mode {strict}")
    pid = server.process.pid
    print(f"server: {disk / 1e6:.0f} MB on disk, {memory(pid):.0f} MB resident, {memory(pid, 'RssAnon'):.0f} MB of it not mapped files")


def ask(server, n):
    shown(server)
    start = time.perf_counter()
    gateway = gateway_of(FLEET)
    gateway.call("search", query="warm up")
    print(f"first answer of a gateway after {time.perf_counter() - start:.2f} s")
    drawn = random.Random(7)
    # Names from answers, whose words are the next questions.
    names, sentences = [], list(SENTENCES)
    for _ in range(n):
        answer = json.dumps(gateway.call("search", query=drawn.choice(sentences), limit=50))
        names = sorted(set(names) | set(re.findall(r"\b[a-z]+(?:[A-Z][a-z]+|_[a-z]+)+\b", answer)))
        sentences.extend(" ".join(re.findall("[A-Z]?[a-z]+", name)) for name in drawn.sample(names, min(8, len(names))))
        if len(names) >= n // 3:
            break
    questions = [drawn.choice(kind) for _ in range(n) for kind in [drawn.choice([sentences, names, [f"where is {name} used" for name in names]])]]
    times, before = [], (cpu(gateway.process.pid), cpu(server.process.pid))
    incomplete = 0
    for question in questions:
        start = time.perf_counter()
        answer = gateway.call("search", query=question)
        times.append((time.perf_counter() - start) * 1000)
        assert not answer["result"].get("isError"), answer
        incomplete += "Qdrant does not answer" in json.dumps(answer)
    spent = [(cpu(pid) - was) * 1000 / n for pid, was in zip((gateway.process.pid, server.process.pid), before)]
    print(f"{n} questions over MCP, ms: {percentiles(times)}; CPU per question: gateway {spent[0]:.0f} ms, server {spent[1]:.0f} ms; {incomplete} without Qdrant")
    print(f"gateway: {memory(gateway.process.pid):.0f} MB resident, {memory(gateway.process.pid, 'RssAnon'):.0f} MB of it not mapped files")
    gateway.close()


def follow(seconds):
    home, fleet = made_fleet("follow", {f"repo{i}": ([], {"src/a.rs": source(f"start{i}")}) for i in range(5)})
    run("index", fleet=fleet)
    watch = subprocess.Popen([program, "fleet", "--dir", str(fleet), "index", "--watch"], env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    gateway = gateway_of(fleet)
    gateway.call("symbol", name="start0_0")
    time.sleep(2)
    waiting, late, stop = {}, [], time.time() + seconds
    lock = threading.Lock()

    def commits():
        n = 0
        while time.time() < stop:
            start = time.time()
            word = f"fresh{n}x"
            commit(home / f"repo{n % 5}", {f"src/{n}.rs": source(word, 1)})
            with lock:
                waiting[word] = time.time()
            n += 1
            time.sleep(max(0, 0.6 - (time.time() - start)))

    writer = threading.Thread(target=commits)
    writer.start()
    while writer.is_alive() or waiting:
        with lock:
            open_words = sorted(waiting, key=waiting.get)[:1]
        for word in open_words:
            if f"{word}_0" in json.dumps(gateway.call("symbol", name=f"{word}_0").get("result", {}).get("structuredContent", {}).get("results", [])):
                late.append((time.time() - waiting.pop(word)) * 1000)
            elif time.time() - waiting[word] > 60:
                print(f"not found after 60 s: {word}")
                waiting.pop(word)
        time.sleep(0.05)
    watch.send_signal(signal.SIGINT)
    watch.wait()
    gateway.close()
    print(f"{len(late)} commits in {seconds:.0f} s; found after, ms: {percentiles(late)}")
    print(run("verify", fleet=fleet, check=False).stdout[-300:])


def kill(server, n):
    home, fleet = made_fleet("kill", {f"repo{i}": ([], {f"src/{j}.rs": source(f"word{i}x{j}") for j in range(20)}) for i in range(3)})
    drawn = random.Random(3)
    run("index", fleet=fleet)
    wrong, labelled = [], 0

    def compared(what, number):
        run("index", fleet=fleet)
        done = run("verify", fleet=fleet, check=False)
        if done.returncode != 0:
            wrong.append(f"{what} {number}: {done.stdout[-300:]}")

    def asked():
        """Asks for a definition that is always there, and for one that is there if the answer does not say otherwise."""
        nonlocal labelled
        done = run("symbol", "word0x0_1", "--json", fleet=fleet, check=False)
        answer = done.stdout + done.stderr
        if "src/0.rs" not in done.stdout:
            if "incomplete_because" in answer or done.returncode == 2:
                labelled += 1
            else:
                wrong.append(f"an answer without its definition says nothing: {answer[-300:]}")

    for number in range(n):
        repo = home / f"repo{number % 3}"
        commit(repo, {f"src/feeder{number}x{i}.rs": source(f"feeder{number}x{i}") for i in range(40)})
        feeder = subprocess.Popen([program, "fleet", "--dir", str(fleet), "index"], env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(drawn.uniform(0, 0.6))
        feeder.kill()
        feeder.wait()
        asked()
        compared("feeder", number)
    print(f"feeder killed {n} times: {len(wrong)} wrong, {labelled} answers incomplete and labelled", flush=True)
    for number in range(n):
        gateway = gateway_of(fleet)
        gateway.send({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "search", "arguments": {"query": "retry"}}})
        time.sleep(drawn.uniform(0, 0.2))
        gateway.process.kill()
        gateway.process.wait()
        asked()
    compared("gateway", n)
    print(f"gateway killed {n} times: {len(wrong)} wrong", flush=True)
    for number in range(n):
        repo = home / f"repo{number % 3}"
        commit(repo, {f"src/server{number}x{i}.rs": source(f"server{number}x{i}") for i in range(40)})
        feeder = subprocess.Popen([program, "fleet", "--dir", str(fleet), "index"], env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(drawn.uniform(0, 0.6))
        server.process.kill()
        server.process.wait()
        asked()
        feeder.wait()
        server.start()
        asked()
        compared("server", number)
    print(f"server killed {n} times: {len(wrong)} wrong in all, {labelled} answers incomplete and labelled")
    for line in wrong[:20]:
        print("WRONG", line)
    return not wrong


def isolate(n):
    secret = {f"src/canary_{i}.rs": source(f"canaryword{i}") + "// zyxcanary\n" for i in range(20)}
    shown_files = {f"src/open_{i}.rs": source(f"openword{i}") for i in range(20)}
    home, fleet = made_fleet("isolate", {"openrepo": (["readers"], shown_files), "canaryrepo": (["others"], secret)})
    run("index", fleet=fleet)
    blob = git(home / "canaryrepo", "rev-parse", "HEAD:src/canary_0.rs").strip()
    tip = git(home / "canaryrepo", "rev-parse", "HEAD").strip()
    other = gateway_of(fleet, "--group", "others")
    cursors = re.findall(r'"(?:next_)?cursor": ?"([^"]+)"', json.dumps(other.call("search", query="canaryword", limit=2)))
    gateway, drawn, leaks, times = gateway_of(fleet, "--group", "readers"), random.Random(11), [], {"hidden": [], "missing": []}
    listed = gateway.ask("tools/list", {})["result"]["tools"]
    tools = {tool["name"]: sorted(tool["inputSchema"].get("properties", {})) for tool in listed}
    bait = [
        "canaryrepo", "canaryrepo:/src/canary_0.rs", "canaryrepo:/src/canary_0.rs#canaryword0_1", "canaryword0_1", "zyxcanary",
        "others", "readers,others", "*", "openrepo,canaryrepo", blob, tip, blob[:8], f"{tip}:src/canary_0.rs", "../canaryrepo",
        str(home / "canaryrepo"), f"{home}/canaryrepo/src/canary_0.rs", "file:canary_0.rs", "path:canary", "canary.*", "[[", "",
        "openrepo:/../canaryrepo/src/canary_0.rs", "openrepo:/src/open_0.rs", "HEAD", "WORKTREE", "a" * 5000, *cursors,
    ]
    # Words of the hidden repository. A word that a call itself contains tells nothing new.
    words = re.compile(r"canaryrepo|zyxcanary|others|canary_[1-9]|canaryword[1-9]|canary_0|canaryword0")
    for number in range(n):
        tool = drawn.choice(sorted(tools))
        chosen = drawn.sample(tools[tool], min(len(tools[tool]), drawn.randrange(1, 5)))
        required = next(one for one in listed if one["name"] == tool)["inputSchema"].get("required", [])
        arguments = {}
        for name in {*chosen, *required}:
            schema = next(one for one in listed if one["name"] == tool)["inputSchema"]["properties"][name]
            text = drawn.choice(bait)
            kind = json.dumps(schema)
            if '"array"' in kind and drawn.random() < 0.8:
                arguments[name] = [text, drawn.choice(bait)]
            elif '"integer"' in kind and '"string"' not in kind:
                arguments[name] = drawn.choice([0, 1, 2, 50, 10_000])
            elif '"boolean"' in kind and '"string"' not in kind:
                arguments[name] = drawn.random() < 0.5
            elif '"enum"' in kind and drawn.random() < 0.7:
                arguments[name] = drawn.choice(re.findall(r'"enum": \[([^\]]*)\]', kind)[0].replace('"', "").split(", "))
            else:
                arguments[name] = text
        answer = json.dumps(gateway.call(tool, **arguments))
        shown = sorted(set(words.findall(answer)) - set(words.findall(json.dumps(arguments))))
        if shown:
            leaks.append((tool, arguments, shown, answer[:600]))
    # The time of an answer does not tell a hidden word from a missing one.
    for _ in range(60):
        for kind, word in (("hidden", "canaryword3_2"), ("missing", "nosuchword3_2")):
            start = time.perf_counter()
            gateway.call("search", query=word)
            times[kind].append((time.perf_counter() - start) * 1000)
    print(f"{n} calls of {len(tools)} tools: {len(leaks)} leaks")
    print("a hidden word, ms:", percentiles(times["hidden"]), "| a missing word, ms:", percentiles(times["missing"]))
    for leak in leaks[:10]:
        print("LEAK", *leak)
    same = [json.dumps(gateway.call("read", target=f"{name}:/src/a.rs")).replace(name, "NAME") for name in ("canaryrepo", "nosuchrepo")]
    print("a hidden and a missing repository answer alike:", re.sub(r'"id": \d+', "", same[0]) == re.sub(r'"id": \d+', "", same[1]))
    for one in (gateway, other):
        one.close()
    return not leaks


def main():
    what, rest = sys.argv[4], sys.argv[5:]
    (folder / "home").mkdir(parents=True, exist_ok=True)
    server = Qdrant()
    try:
        number = int(rest[0]) if rest and what != "load" else None
        done = {
            "load": lambda: load(server, rest),
            "ask": lambda: ask(server, number or 200),
            "follow": lambda: follow(number or 600),
            "kill": lambda: kill(server, number or 50),
            "isolate": lambda: isolate(number or 1000),
        }[what]()
    finally:
        server.stop()
    sys.exit(done is False)


main()
