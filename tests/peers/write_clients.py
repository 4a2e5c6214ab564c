#!/usr/bin/env python3
"""Coding agents with the tools that change files. Usage: write_clients.py CODESCOUT [CLIENT…]

Each agent is installed from npm, gets codescout by `codescout install`, and runs offline in a repository of its own, with
a model that is scripted: a server on this machine, which asks for one tool after another and answers in words at the end.
"""

import glob
import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

PEERS = Path(os.environ.get("PEERS", "/tmp/codescout-peers")) / "agents"
SERVED = ["edit", "rename", "memory", "docs"]
PROMPT = "Rename area to surface."
LAST_WORDS = "All done."


def blob(answer):
    """Returns the blob id that an answer gives for the edited file."""
    found = re.search(r"shapes\.py blob ([0-9a-f]{12,40})", answer)
    return found.group(1) if found else "0" * 40


def edit(factor, answers):
    text = f"return width * height * {factor}"
    one = {"op": "replace_body", "target": "shapes.py#surface", "expect": blob(answers[0]), "text": text}
    return "edit", {"edits": [one]}


NOTE = {"op": "write", "name": "surface", "about": ["shapes.py#surface"], "text": "Doubled.\n"}
# The script: the call of each turn, given the answers to those before, and what its own answer has to contain.
SCRIPT = [
    (lambda _: ("rename", {"target": "shapes.py#area", "new_name": "surface", "apply": True}), "3 places changed"),
    (lambda answers: edit(2, answers), "+    return width * height * 2"),
    (lambda _: ("memory", NOTE), "surface: Doubled."),
    (lambda answers: edit(3, answers), "error: shapes.py has changed"),
    (lambda _: ("docs", {"op": "list"}), "README.md"),
]


class Chat:
    """Chat completions, as many servers have them."""

    path = "/chat/completions"

    @staticmethod
    def tools(body):
        return [(tool["function"]["name"], None) for tool in body.get("tools", [])]

    @staticmethod
    def answers(body):
        return [plain(message["content"]) for message in body["messages"] if message["role"] == "tool"]

    @staticmethod
    def events(call, words):
        if call:
            function = {"name": call[0][0], "arguments": json.dumps(call[1])}
            delta = {"tool_calls": [{"index": 0, "id": call[2], "type": "function", "function": function}]}
        else:
            delta = {"content": words}
        for delta, reason in [({"role": "assistant", **delta}, None), ({}, "tool_calls" if call else "stop")]:
            choice = {"index": 0, "delta": delta, "finish_reason": reason}
            yield {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "scripted", "choices": [choice]}


class Responses:
    """The responses of OpenAI, where the tools of a server can be a namespace."""

    path = "/responses"

    @staticmethod
    def tools(body):
        for tool in body.get("tools", []):
            inner = [(one["name"], tool["name"]) for one in tool.get("tools", [])]
            yield from inner or [(tool.get("name", ""), None)]

    @staticmethod
    def answers(body):
        return [plain(item["output"]) for item in body["input"] if item.get("type") == "function_call_output"]

    @staticmethod
    def events(call, words):
        if call:
            (name, namespace), arguments, id = call
            item = {"type": "function_call", "id": f"f_{id}", "call_id": id, "name": name}
            item |= {"arguments": json.dumps(arguments)} | ({"namespace": namespace} if namespace else {})
        else:
            content = [{"type": "output_text", "text": words, "annotations": []}]
            item = {"type": "message", "id": "m", "role": "assistant", "content": content}
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        usage |= {"input_tokens_details": None, "output_tokens_details": None}
        yield {"type": "response.created", "response": {"id": "r"}}
        yield {"type": "response.output_item.done", "output_index": 0, "item": item}
        yield {"type": "response.completed", "response": {"id": "r", "output": [item], "usage": usage}}


class Messages:
    """The messages of Anthropic."""

    path = "/messages"

    @staticmethod
    def tools(body):
        return [(tool["name"], None) for tool in body.get("tools", [])]

    @staticmethod
    def answers(body):
        contents = [message["content"] for message in body["messages"] if isinstance(message["content"], list)]
        return [plain(part["content"]) for parts in contents for part in parts if part["type"] == "tool_result"]

    @staticmethod
    def events(call, words):
        message = {"id": "m", "type": "message", "role": "assistant", "model": "scripted", "content": []}
        usage = {"input_tokens": 1, "output_tokens": 1}
        yield {"type": "message_start", "message": message | {"usage": usage, "stop_reason": None, "stop_sequence": None}}
        if call:
            block = {"type": "tool_use", "id": call[2], "name": call[0][0], "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(call[1])}
        else:
            block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": words}
        yield {"type": "content_block_start", "index": 0, "content_block": block}
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
        yield {"type": "content_block_stop", "index": 0}
        end = {"stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None}
        yield {"type": "message_delta", "delta": end, "usage": usage}
        yield {"type": "message_stop"}


class Contents:
    """The contents of Google."""

    path = ":streamGenerateContent"

    @staticmethod
    def tools(body):
        return [(one["name"], None) for tool in body.get("tools", []) for one in tool.get("functionDeclarations", [])]

    @staticmethod
    def answers(body):
        parts = [part for content in body["contents"] for part in content["parts"]]
        responses = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
        return [response.get("output") or response["error"] for response in responses]

    @staticmethod
    def events(call, words):
        part = {"functionCall": {"name": call[0][0], "args": call[1]}} if call else {"text": words}
        yield {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}]}


SPEECHES = [Chat, Responses, Messages, Contents]


def plain(content):
    """Returns the text of content that is a text or a list of parts."""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def own(tool):
    """Returns the name that codescout gives to a tool of a client."""
    name, namespace = tool
    return re.split("[-_]", name)[-1] if "codescout" in f"{namespace} {name}" else None


class Model(http.server.BaseHTTPRequestHandler):
    """The scripted model. It keeps no state: a request has all answers so far."""

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        speech = next((one for one in SPEECHES if self.path.split("?")[0].endswith(one.path)), None)
        if speech is None:
            return self.send_error(404)
        tools = {own(tool): tool for tool in speech.tools(body) if own(tool)}
        answers = speech.answers(body)
        call = None
        # A client also asks for titles, without tools.
        if "rename" in tools:
            self.server.seen = list(tools), answers
            if len(answers) < len(SCRIPT):
                name, arguments = SCRIPT[len(answers)][0](answers)
                call = (tools[name], arguments, f"call_{len(answers)}") if name in tools else None
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in speech.events(call, LAST_WORDS):
            kind = f"event: {event['type']}\n" if "type" in event else ""
            self.wfile.write(f"{kind}data: {json.dumps(event)}\n\n".encode())
        if speech is Chat:
            self.wfile.write(b"data: [DONE]\n\n")


def opencode(home, url):
    provider = {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": f"{url}/v1", "apiKey": "x"}}
    config = {"model": "own/scripted", "provider": {"own": provider | {"models": {"scripted": {}}}}}
    write(home / ".config/opencode/opencode.json", json.dumps(config, indent=2))
    return ["run", PROMPT], {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"}


def codex(home, url):
    provider = f'[model_providers.own]\nname = "own"\nbase_url = "{url}/v1"\nwire_api = "responses"\n'
    write(home / ".codex/config.toml", f'model = "scripted"\nmodel_provider = "own"\n\n{provider}')
    return ["exec", "--dangerously-bypass-approvals-and-sandbox", PROMPT], {}


def claude_code(_, url):
    env = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "x", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    # Else the client keeps the tools back until the model searches for them.
    env["ENABLE_TOOL_SEARCH"] = "false"
    return ["-p", PROMPT, "--allowedTools", "mcp__codescout"], env


def gemini(home, url):
    config = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "model": {"name": "gemini-2.5-flash"}}
    write(home / ".gemini/settings.json", json.dumps(config, indent=2))
    env = {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "x", "GEMINI_CLI_TRUST_WORKSPACE": "true"}
    return ["-p", PROMPT, "--approval-mode", "yolo"], env


def copilot(_, url):
    env = {"COPILOT_PROVIDER_BASE_URL": f"{url}/v1", "COPILOT_MODEL": "scripted", "COPILOT_OFFLINE": "true"}
    return ["-p", PROMPT, "--allow-tool", "codescout"], env


def goose(_, url):
    env = {"GOOSE_PROVIDER": "openai", "GOOSE_MODEL": "scripted", "OPENAI_HOST": url, "OPENAI_API_KEY": "x"}
    return ["run", "--no-session", "--text", PROMPT], env | {"GOOSE_DISABLE_KEYRING": "1", "GOOSE_MODE": "auto"}


# By the name that `codescout install` knows: package, program in it, and what configures the model and runs the agent.
CLIENTS = {
    "opencode": ("opencode-ai@1.18.33", "opencode-*/bin/opencode", opencode),
    "codex": ("@openai/codex@0.171.0", "@openai/codex-*/vendor/*/bin/codex", codex),
    "claude-code": ("@anthropic-ai/claude-code@2.1.332", "@anthropic-ai/claude-code-*/claude", claude_code),
    "gemini": ("@google/gemini-cli@0.61.0", ".bin/gemini", gemini),
    "copilot-cli": ("@github/copilot@1.0.102", "@github/copilot-*/copilot", copilot),
    "goose": ("@aaif/goose-acp@1.50.0", "@aaif/goose-binary-*/bin/goose", goose),
}


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def installed(name):
    """Returns the program of a client; `None` if it cannot be had."""
    package, program, _ = CLIENTS[name]
    folder = PEERS / re.sub(r"\W+", "-", package)
    if not glob.glob(program, root_dir=folder / "node_modules"):
        folder.mkdir(parents=True, exist_ok=True)
        # Without a prefix npm would take a folder further up that has packages.
        npm = ["npm", "install", "--prefix", folder, "--no-fund", "--no-audit", "--ignore-scripts", "--silent", package]
        try:
            subprocess.run(npm, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            return None
    found = sorted(glob.glob(program, root_dir=folder / "node_modules"))
    return folder / "node_modules" / found[0] if found else None


def sample(folder):
    write(folder / "shapes.py", "def area(width, height):\n    return width * height\n")
    write(folder / "main.py", "from shapes import area\n\nprint(area(2, 3))\n")
    write(folder / "README.md", "---\nkind: guide\n---\n# Shapes\n")
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    for words in [["init", "-q"], ["add", "-A"], [*identity, "commit", "-q", "-m", "first"]]:
        subprocess.run(["git", "-C", folder, *words], check=True)


def check(repo, seen, printed):
    """Returns what is not as it should be."""
    tools, answers = seen
    wrong = [f"the model was not offered {name}" for name in SERVED if name not in tools]
    wrong += [f"{len(answers)} answers"] if len(answers) != len(SCRIPT) else []
    wrong += [f"no {wanted!r} in {answer!r}" for (_, wanted), answer in zip(SCRIPT, answers) if wanted not in answer]
    expected = {
        "shapes.py": "def surface(width, height):\n    return width * height * 2\n",
        "main.py": "from shapes import surface\n\nprint(surface(2, 3))\n",
    }
    wrong += [f"{path} is {(repo / path).read_text()!r}" for path in expected if (repo / path).read_text() != expected[path]]
    wrong += [] if any("Doubled." in note.read_text() for note in repo.rglob("*.md")) else ["no note"]
    return wrong + ([] if LAST_WORDS in printed else ["the last words are missing"])


def attempt(codescout, name, folder):
    """Runs one client; returns True if nothing is wrong."""
    program = installed(name)
    if program is None:
        print(f"skipped: {name} ({CLIENTS[name][0]} cannot be had from npm)")
        return True
    home, repo = folder / "home", folder / "repo"
    home.mkdir()
    sample(repo)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    server.seen = [], []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    arguments, variables = CLIENTS[name][2](home, f"http://127.0.0.1:{server.server_port}")
    env = {"PATH": os.environ["PATH"], "HOME": str(home), **variables}
    install = [codescout, "install", name, "--profile", "write,memory,docs", "--yes"]
    subprocess.run(install, cwd=repo, env=env, check=True, capture_output=True)
    with open(folder / "printed", "w+") as printed:
        streams = {"stdin": subprocess.DEVNULL, "stdout": printed, "stderr": subprocess.STDOUT}
        try:
            subprocess.run([program, *arguments], cwd=repo, env=env, timeout=180, **streams)
        except subprocess.TimeoutExpired:
            print("no end", file=printed)
    server.shutdown()
    printed = (folder / "printed").read_text()
    wrong = check(repo, server.seen, printed)
    for fault in wrong:
        print(f"FAIL  {name}: {fault}")
    if wrong:
        print(printed[-3000:])
    else:
        print(f"pass  {name} {CLIENTS[name][0].rpartition('@')[2]}: {len(SCRIPT)} calls, {len(server.seen[0])} tools")
    return not wrong


def main():
    codescout = Path(sys.argv[1]).resolve()
    failed = False
    for name in sys.argv[2:] or CLIENTS:
        with tempfile.TemporaryDirectory() as folder:
            failed |= not attempt(codescout, name, Path(folder))
    sys.exit(failed)


main()
