#!/usr/bin/env python3
"""Lists what is linked into the program for one target, with the texts of its licences. Equal input gives equal bytes.

Usage: notices.py TARGET > THIRD-PARTY-NOTICES.txt

Reads the sources of the crates, which cargo downloads if they are missing, and the documents of the toolchain.
"""
import html
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import fill

sys.dont_write_bytecode = True
import artifacts
from artifacts import HERE, ROOT
from sbom import PROGRAM

GRAMMARS = f"{PROGRAM}-grammars"
MODEL = ROOT / "src/embed/weights"
APACHE = (MODEL / "LICENSE-MiniLM-Apache-2.0.txt").read_text(encoding="utf-8")
FILE = re.compile(r"(un)?licen[cs]e|copying|notice|copyright", re.IGNORECASE)
SOURCES = {".c", ".h", ".rs", ".py", ".js"}
# Folders of files that are not linked, and the other choice that zstd offers: the GPL.
LEFT_OUT = {"node_modules", "test_data", "zstd/COPYING"}
# Crates of the standard library for systems that are not in artifacts.toml.
OTHER_SYSTEMS = re.compile(r"windows|wasi|wit-|fortanix-|hermit-|moto-|r-efi|vex-")
HEADER = f"""Third-party software in {PROGRAM}

The program contains what is listed here, under these licences. The licence of {PROGRAM} itself is in the file LICENSE.
The texts follow the list. Where a text is marked as missing, the component came without one: the terms are those of
the MIT licence, as printed in LICENSE, with the named authors as the holders of the copyright.
"""


def run(*command):
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, encoding="utf-8", check=False)
    if done.returncode:
        sys.exit(f"notices.py: {command[0]} {command[1]} failed")
    return done.stdout


def component(name, version, licence, authors, texts, origin=""):
    name = f"{name} {version}".rstrip()
    return {"name": name, "licence": licence, "authors": authors, "texts": texts, "origin": origin}


def texts_in(folder):
    names = (path.relative_to(folder) for path in folder.rglob("*") if FILE.match(path.name) and path.is_file())
    return [
        (folder / name).read_text(encoding="utf-8")
        for name in sorted(names)
        if name.suffix not in SOURCES and not {*name.parts, name.as_posix()} & LEFT_OUT
    ]


def crates(target):
    """Returns the crates that are linked, without those of this project."""
    described = json.loads(run("cargo", "metadata", "--locked", "--format-version=1", f"--filter-platform={target}"))
    packages = {package["id"]: package for package in described["packages"]}
    # Unlike `cargo metadata`, `cargo tree` leaves out what only tests and macros enable.
    edges = ("--edges=normal,no-proc-macro", "--prefix=none", "--format={p}")
    tree = run("cargo", "tree", "--locked", f"--target={target}", *edges)
    linked = {tuple(line.split()[:2]) for line in tree.splitlines()}
    # The build script of the grammars compiles the sources of its dependencies into the program.
    [grammars] = (node for node in described["resolve"]["nodes"] if packages[node["id"]]["name"] == GRAMMARS)
    compiled = {one["pkg"] for one in grammars["deps"] if packages[one["pkg"]]["name"].startswith("tree-sitter-")}
    for key, package in packages.items():
        name, version = package["name"], package["version"]
        if name not in (PROGRAM, GRAMMARS) and (key in compiled or (name, f"v{version}") in linked):
            texts = texts_in(Path(package["manifest_path"]).parent)
            yield component(name, version, package["license"], package["authors"], texts, package["repository"])


def standard_library():
    """Returns the standard library and the crates in it, from a document of the toolchain."""
    version = run("rustc", "--version").split()[1]
    path = Path(run("rustc", "--print", "sysroot").strip()) / "share/doc/rust/COPYRIGHT-library.html"
    if not path.exists():
        sys.exit("notices.py: the toolchain has no COPYRIGHT-library.html: install it with rustup")

    def plain(part):
        return html.unescape(re.sub(r"<[^>]*>", "", part))

    start, *parts = path.read_text(encoding="utf-8").split("<h3>📦 ")
    in_tree = re.sub(r"\n\s*\n", "\n", plain(start.split('<h2 id="longer-version">')[1].partition("</h2>")[2]))
    yield component("Rust standard library", version, "MIT OR Apache-2.0", [], [in_tree, APACHE])
    for part in parts:
        name, version = re.match(r"([\w-]+?)-(\d[^<]*)</h3>", part).groups()
        if not OTHER_SYSTEMS.match(name):
            licence = plain(re.search(r"<b>License:</b>(.*?)</p>", part)[1]).strip()
            texts = [plain(text) for text in re.findall(r"<pre>(.*?)</pre>", part, re.DOTALL)]
            yield component(name, f"{version} (in the standard library)", licence, [], texts)


def others(target):
    if target.endswith("-musl"):
        yield component("musl libc", "", "MIT", [], [(HERE / "musl-COPYRIGHT.txt").read_text(encoding="utf-8")])
    card = (MODEL / "MODEL_CARD.md").read_text(encoding="utf-8")
    notice = card.split("## Licence and attribution\n")[1].split("Training text came")[0]
    yield component("all-MiniLM-L6-v2", "(the embedding model derives from it)", "Apache-2.0", [], [notice, APACHE])


def complete(components):
    """Adds texts where a component has none: those of its repository, or of a licence that names no holder."""
    of_origin = {one["origin"]: one["texts"] for one in components if one["origin"] and one["texts"]}
    for one in components:
        choices = re.split(r"\s+OR\s+|\s*/\s*", one["licence"] or "")
        if not one["texts"]:
            one["texts"] = of_origin.get(one["origin"]) or [APACHE] * ("Apache-2.0" in choices)
        if not one["texts"] and ("MIT" not in choices or not (one["authors"] or one["origin"])):
            sys.exit(f"notices.py: {one['name']} has no text of its licence ({one['licence'] or 'not named either'})")


def tidy(text):
    return "\n".join(line.rstrip() for line in text.replace("\f", "").splitlines()).strip("\n")


def document(components):
    lines, named, users = [HEADER], {}, {}
    for one in components:
        lines.append(f"- {one['name']}: {one['licence'] or 'see the text'}")
        if not one["texts"]:
            lines.append(f"  text missing; by {', '.join(one['authors'] or ['the authors'])} ({one['origin']})")
        for text in map(tidy, one["texts"]):
            # Texts that differ in line breaks only are the same.
            key = " ".join(text.split())
            named.setdefault(key, text)
            users.setdefault(key, {})[one["name"]] = None
    for key, text in named.items():
        lines += ["", "=" * 100, fill(", ".join(users[key]), 100, break_on_hyphens=False), "-" * 100, text]
    return "\n".join(lines) + "\n"


def main(arguments):
    if len(arguments) != 1:
        sys.exit(__doc__)
    [target] = arguments
    artifacts.get(target, "os")
    # That of build.sh, whose standard library is linked.
    os.environ.setdefault("RUSTUP_TOOLCHAIN", artifacts.load()["rust"])
    components = [*crates(target), *standard_library(), *others(target)]
    components.sort(key=lambda one: one["name"])
    complete(components)
    sys.stdout.buffer.write(document(components).encode())


if __name__ == "__main__":
    main(sys.argv[1:])
