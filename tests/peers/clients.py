"""The Python SDK as a client: every mode, stdio and HTTP. Usage: clients.py CODESCOUT REPO URL"""

import asyncio
import shutil
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from mcp import Client, StdioServerParameters

CALLS = [
    ("search", {"query": "cut text into tokens"}),
    ("search", {"query": "token_", "mode": "regex", "limit": 3}),
    ("outline", {}),
    ("outline", {"view": "tree"}),
    ("symbol", {"name": "lex", "include": ["body", "refs"]}),
    ("graph", {"op": "callers", "target": "lex"}),
    ("graph", {"op": "stats"}),
    ("read", {"target": "README.md", "heading": ["Installation"]}),
    ("status", {}),
    ("status", {"op": "guide"}),
    ("status", {"op": "usage"}),
    ("status", {"op": "health"}),
    ("status", {"op": "projects"}),
    ("index", {"wait": 20}),
    ("index", {"wait": 20, "history": True}),
    ("symbol", {"name": "lex", "include": ["history"]}),
    ("history", {"target": "lex", "detail": "full"}),
    ("history", {"target": "."}),
    ("history", {"target": "README.md", "op": "introduced"}),
    ("history", {"op": "deleted"}),
    ("history", {"target": "README.md", "op": "cochange"}),
    ("blame", {"target": "README.md"}),
    ("blame", {"target": "lex"}),
    ("blame", {"target": "README.md", "by": "owner"}),
    ("diff", {}),
    ("diff", {"to": "HEAD", "from": "HEAD", "by": "text"}),
    ("review", {"range": "HEAD", "diff": True}),
    ("index", {"op": "gc", "dry_run": True}),
    ("index", {"op": "verify"}),
    ("index", {"op": "pin", "refs": ["HEAD"], "dry_run": True}),
    ("search", {"query": ""}),
    ("read", {"target": ".env"}),
]
# Calls that are expected to fail.
FAILING = [{"query": ""}, {"target": ".env"}]


async def check(client, label):
    # In this mode nothing is asked before the first call.
    if not label.startswith("2026-07-28"):
        assert client.instructions.startswith("codescout searches")
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    known = ["search", "outline", "symbol", "graph", "read", "history", "blame", "diff", "review", "status", "index"]
    assert list(tools) == known, list(tools)
    n_calls = 0
    for name, arguments in CALLS:
        result = await client.call_tool(name, arguments)
        assert bool(result.is_error) == (arguments in FAILING), (name, result)
        assert result.content[0].text
        if arguments not in FAILING:
            assert "error" not in result.structured_content, (name, arguments, result.structured_content)
        n_calls += 1
    called = {name for name, _ in CALLS}
    assert called == set(tools), set(tools) - called
    failure = await client.call_tool("read", {"target": ".env"})
    assert "credentials" in failure.structured_content["error"]
    # Page after page until the end.
    seen, cursor, n_pages = [], None, 0
    while True:
        arguments = {"query": "token_", "mode": "regex", "limit": 7}
        if cursor:
            arguments["cursor"] = cursor
        page = (await client.call_tool("search", arguments)).structured_content
        seen += [result["start_line"] for result in page["results"] if result["path"] == "many.rs"]
        n_pages += 1
        cursor = page.get("next_cursor")
        if not cursor:
            break
    assert len(seen) == 40 and len(set(seen)) == 40, seen
    # A call that is given up does not disturb the next.
    try:
        await asyncio.wait_for(client.call_tool("index", {"wait": 60, "refs": ["HEAD"]}), 0.001)
    except (asyncio.TimeoutError, TimeoutError):
        pass
    assert (await client.call_tool("symbol", {"name": "lex"})).structured_content["total"] == 1
    resources = (await client.list_resources()).resources
    for resource in resources:
        assert (await client.read_resource(resource.uri)).contents[0].text
    prompts = (await client.list_prompts()).prompts
    assert len(prompts) == 3
    await client.get_prompt("onboard", {})
    try:
        await client.call_tool("no_such_tool", {})
        raise SystemExit("an unknown tool was answered")
    except SystemExit:
        raise
    except Exception as error:
        assert "unknown tool" in str(error), error
    print(f"pass  {label}: {client.protocol_version}, {n_calls} calls, {n_pages} pages, {len(resources)} resources")


async def check_writing(repo, client, label):
    """Calls the tools that change files, in a copy of the repository."""
    n_calls = 0

    async def call(name, fault=None, /, **arguments):
        nonlocal n_calls
        n_calls += 1
        result = await client.call_tool(name, arguments)
        facts = result.structured_content
        assert bool(result.is_error) == bool(fault) and (fault or "") in facts.get("error", ""), (name, arguments, facts)
        return facts

    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    for name in ["edit", "rename", "memory", "docs"]:
        assert tools[name].annotations.destructive_hint, name
    lexer = repo / "lexer.rs"
    before = lexer.read_text()
    names = {"target": "lexer.rs#lex", "new_name": "cut"}
    assert (await call("rename", **names))["dry_run"] and lexer.read_text() == before
    old = (await call("rename", apply=True, **names))["files"][0]["blob"]
    assert lexer.read_text() == before.replace("lex(", "cut(")
    unseen = {"op": "replace_body", "target": "lexer.rs#cut", "text": "text.lines().collect()"}
    body = {**unseen, "expect": old}
    new = (await call("edit", edits=[body]))["files"][0]["blob"]
    changed = before.replace("lex(", "cut(").replace("split(' ')", "lines()")
    assert lexer.read_text() == changed
    await call("edit", "has changed", edits=[body])
    await call("edit", "expect", edits=[unseen])
    assert lexer.read_text() == changed
    assert (await call("edit", dry_run=True, edits=[{**body, "expect": new, "text": "vec![]"}]))["dry_run"]
    assert lexer.read_text() == changed
    note = {"op": "write", "name": "cut", "about": ["lexer.rs#cut"], "text": "By lines.\n"}
    await call("memory", **note)
    await call("memory", "cut", **note)
    assert "By lines." in str(await client.call_tool("memory", {"op": "read", "name": "cut"}))
    assert (await call("memory"))["results"][0]["name"] == "cut"
    assert (await call("docs", op="list"))["complete"]
    await call("docs", op="audit")
    print(f"pass  {label}: {client.protocol_version}, {n_calls} calls")


async def passes(label, target, mode, check):
    began = time.time()
    try:
        async with Client(target, mode=mode) as client:
            await check(client, label)
        return True
    except BaseException as error:
        print(f"FAIL  {label} after {time.time() - began:.1f} s: {error!r}")
        return False


async def main():
    codescout, repo, url = sys.argv[1:4]
    failed = False
    for mode in ["legacy", "auto", "2026-07-28"]:
        stdio = StdioServerParameters(command=codescout, args=["serve", "--repo", repo])
        failed |= not await passes(f"{mode} over stdio", stdio, mode, check)
        failed |= not await passes(f"{mode} over http", url, mode, check)
        with tempfile.TemporaryDirectory() as folder:
            copy = shutil.copytree(repo, Path(folder) / "copy")
            args = ["serve", "--repo", str(copy), "--profile", "write,memory,docs"]
            writing = StdioServerParameters(command=codescout, args=args)
            failed |= not await passes(f"{mode}, files changed", writing, mode, partial(check_writing, copy))
    sys.exit(failed)


asyncio.run(main())
