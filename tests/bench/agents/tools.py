"""The tools that policies call. Each returns what an agent would receive and adds to the trace what that shows."""

import json
import re
import subprocess

GREP_LINES = 100
GREP_COLUMNS = 500
READ_LINES = 2000
READ_COLUMNS = 2000


class Grep:
    """`git grep` below a folder: tracked text files in path order, as ripgrep lists them."""

    def __init__(self, tree, root):
        self.tree, self.root = tree, root

    def run(self, *arguments):
        command = ["git", "-c", "core.quotePath=false", "grep", "-I", "-i", "-E", *arguments, "--", self.root]
        found = subprocess.run(command, cwd=self.tree.root, capture_output=True)
        return found.stdout.decode(errors="replace").splitlines()

    def count(self, pattern):
        return sum(int(line.rsplit(":", 1)[1]) for line in self.run("-c", "-e", pattern))

    def lines(self, trace, pattern):
        """Returns the first matching lines as (path, line, text)."""
        output = [line[:GREP_COLUMNS] for line in self.run("-n", "-e", pattern)[:GREP_LINES]]
        trace.call({"tool": "grep", "pattern": pattern, "path": self.root}, "\n".join(output))
        found = [re.match(r"(.*?):(\d+):(.*)", line) for line in output]
        found = [(match[1], int(match[2]), match[3]) for match in found if match]
        for path, line, _ in found:
            trace.prints(path, line)
        return found

    def files(self, trace, pattern):
        """Returns the first files with the number of their matching lines."""
        output = self.run("-c", "-e", pattern)[:GREP_LINES]
        trace.call({"tool": "grep", "pattern": pattern, "path": self.root, "mode": "count"}, "\n".join(output))
        found = [line.rsplit(":", 1) for line in output]
        return [(path, int(count)) for path, count in found]


def read(tree, trace, path, start=1, count=READ_LINES):
    """Reads lines of a file, printed as by `cat -n`."""
    lines = tree.lines(path)[start - 1 : start - 1 + count]
    output = "\n".join(f"{start + at:6}\t{line[:READ_COLUMNS]}" for at, line in enumerate(lines))
    trace.call({"tool": "read", "path": path, "start": start, "count": count}, output)
    trace.shows(path, start, start + len(lines) - 1)
    for at in range(len(lines)):
        trace.prints(path, start + at)


class Server:
    """A server of the Model Context Protocol over standard input and output."""

    def __init__(self, command, folder, environment=None):
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.number = 0
        # codescout gives this client, as any that shows its model structured content, only the text.
        client = {"name": "claude-code", "version": "2"}
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.tool_characters = len(json.dumps(self.ask("tools/list", {})["tools"], separators=(",", ":")))

    def send(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def ask(self, method, params):
        self.number += 1
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        for line in self.process.stdout:
            answer = json.loads(line)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
        raise RuntimeError(f"the server ended during {method}")

    def call(self, trace, tool, **arguments):
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        text = "\n".join(item["text"] for item in result["content"] if item["type"] == "text")
        trace.call({"tool": tool, **arguments}, text)
        return text

    def close(self):
        self.process.stdin.close()
        self.process.wait(60)


RANGE = r"(\d+)(?:-(\d+))?"
HEADER = re.compile(rf"(?:\S[^:]*: )?(\S[^:]*?):{RANGE}(?= |$)(.*)")
FURTHER = re.compile(rf"(?:also |, ){RANGE}")
NUMBERED = re.compile(r" *(\d+) (.*)")


class Codescout(Server):
    """codescout's tools. What an answer shows is read from its text, as an agent would."""

    def search(self, trace, tree, **arguments):
        """Returns the results and their further parts as ranges, and the cursor of the next page."""
        text = self.call(trace, "search", **arguments)
        cursor = re.search(r"^next_cursor: (\S+)", text, re.M)
        results, further = note(trace, tree, text)
        return results, further, cursor and cursor[1]

    def read(self, trace, tree, path, start, end):
        text = self.call(trace, "read", target=f"{path}:{start}-{end}")
        note(trace, tree, f"{path}:{start}-{end}\n" + text)


def note(trace, tree, text):
    """Tells the trace which ranges and lines a text names and prints. Lines without numbers count where they equal
    the file's lines in order."""
    results, further = [], []
    path, follows = None, 0
    for line in text.split("\n"):
        header = HEADER.match(line.strip())
        if header and tree.lines(header[1]) != [""]:
            start, end = int(header[2]), int(header[3] or header[2])
            trace.shows(header[1], start, end)
            if not line.startswith(" "):
                path, follows = header[1], start
                results.append((path, start, end))
            continue
        if path is None:
            continue
        lines = tree.lines(path)
        part = re.match(rf"lines {RANGE}", line)
        numbered = NUMBERED.match(line)
        if part:
            follows = int(part[1])
        elif line.startswith("       also "):
            for first, last in FURTHER.findall(line):
                further.append((path, int(first), int(last or first)))
                trace.shows(*further[-1])
        elif numbered and is_line(lines, int(numbered[1]), numbered[2]):
            trace.prints(path, int(numbered[1]))
        elif is_line(lines, follows, line):
            trace.prints(path, follows)
            follows += 1
    return results, further


def is_line(lines, number, text):
    """A long signature is shown joined to one line: it counts as its first line."""
    return 0 < number <= len(lines) and (
        lines[number - 1].strip() == text.strip() or text.strip().startswith(lines[number - 1].strip() or "\0")
    )
