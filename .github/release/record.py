#!/usr/bin/env python3
"""Records commands of a built program in a fresh clone of this repository as an SVG for README.md.

Usage: record.py PROGRAM > docs/recording.svg

The program runs in a pseudo terminal, so the colours are its own; equal output gives equal bytes. A mailmap shortens
the names of authors. The picture contains no script and no font.
"""
import fcntl
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path
from xml.sax.saxutils import escape

COMMANDS = [
    'codescout search "where is a file replaced atomically" -n 1',
    "codescout graph callers write_atomic",
    "codescout history src/sidecar/location.rs#is_own",
]
ROOT = Path(__file__).resolve().parents[2]
ROWS, COLUMNS = 50, 110
# Of one character, in units of the picture; glyphs of monospaced fonts are about 0.6 times as wide as high.
WIDTH, HEIGHT, FONT = 7.9, 18, 13
MARGIN = 14
# What the program may print beside text, and the style of each code.
SEQUENCE = re.compile("\x1b\\[([0-9;]*)m")
STYLES = {"1": "bold", "2": "dim", "31": "red", "32": "green", "33": "yellow", "35": "magenta", "36": "cyan"}
CSS = """
text{font:%dpx ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#1f2328;white-space:pre}
rect{fill:#f6f8fa;stroke:#d1d9e0}
.bold{font-weight:bold}.dim{fill:#59636e}.red{fill:#c62828}.green{fill:#116329}.yellow{fill:#7d4e00}
.magenta{fill:#8250df}.cyan{fill:#1b7c83}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}rect{fill:#0d1117;stroke:#3d444d}.dim{fill:#9198a1}
.red{fill:#ff7b72}.green{fill:#3fb950}.yellow{fill:#d29922}.magenta{fill:#d2a8ff}.cyan{fill:#39c5cf}}
""" % FONT


def run(arguments, folder, environment):
    """Returns what a command writes to a terminal."""
    child, terminal = pty.fork()
    if child == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        os.chdir(folder)
        os.execve(arguments[0], arguments, environment)
    output = b""
    while True:
        try:
            read = os.read(terminal, 1 << 16)
        except OSError:  # Linux reports the end so.
            read = b""
        if not read:
            break
        output += read
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status != 0:
        sys.exit(f"record.py: {shlex.join(arguments)} failed with {status}: {output.decode()}")
    return output.decode()


def rows(output):
    """Returns the rows that a terminal shows, each as pairs of a style and a text. Long lines are continued."""
    styles, found = set(), [[]]
    for line in output.rstrip().split("\r\n"):
        width = 0
        for at, part in enumerate(SEQUENCE.split(line)):
            if at % 2 == 1:
                styles = styles | {STYLES[code] for code in part.split(";")} if part.strip("0") else set()
            elif not part.isprintable():
                sys.exit(f"record.py: unknown control characters in {part!r}")
            while at % 2 == 0 and part:
                if width == COLUMNS:
                    found.append([])
                    width = 0
                piece, part = part[: COLUMNS - width], part[COLUMNS - width :]
                found[-1].append((" ".join(sorted(styles)), piece))
                width += len(piece)
        found.append([])
    return found[:-1]


def tspan(style, text):
    return f'<tspan class="{style}">{escape(text)}</tspan>' if style else escape(text)


def picture(outputs):
    lines = []
    for command, output in outputs:
        lines += [[("bold", f"$ {command}")], *rows(output), []]
    lines.pop()
    texts = [
        f'<text x="{MARGIN}" y="{MARGIN + FONT + at * HEIGHT}">{"".join(tspan(*pair) for pair in line)}</text>\n'
        for at, line in enumerate(lines)
        if line
    ]
    width, height = round(COLUMNS * WIDTH) + 2 * MARGIN, len(lines) * HEIGHT + 2 * MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'xml:space="preserve" role="img" aria-label="codescout in a terminal">\n<style>{CSS}</style>\n'
        f'<rect x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="6"/>\n{"".join(texts)}</svg>\n'
    )


def main():
    program = str(Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder, "codescout")
        git = ["git", "-C", str(clone)]
        subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
        authors = subprocess.run([*git, "log", "--format=<%ae>"], check=True, capture_output=True, text=True).stdout
        mailmap = Path(folder, "mailmap")
        mailmap.write_text("".join(f"… {author}\n" for author in sorted(set(authors.splitlines()))), encoding="utf-8")
        subprocess.run([*git, "config", "mailmap.file", str(mailmap)], check=True)
        environment = {"PATH": os.environ["PATH"], "HOME": folder, "TERM": "xterm-256color", "PAGER": "cat"}
        run([program, "index"], clone, environment)
        outputs = [(command, run([program, *shlex.split(command)[1:]], clone, environment)) for command in COMMANDS]
    sys.stdout.write(picture(outputs))


if __name__ == "__main__":
    main()
