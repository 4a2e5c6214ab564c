#!/usr/bin/env python3
"""Reads artifacts.toml, the list of what a release consists of. Needs Python 3.11 or newer.

Usage: artifacts.py matrix          print the list as one line of JSON, for the workflow
       artifacts.py version         print the version in Cargo.toml
       artifacts.py rust            print the version of the toolchain
       artifacts.py get TARGET KEY  print one value of an artifact
       artifacts.py check TAG       fail if TAG is not the version, or placeholders are left
"""
import json
import re
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
VERSION = re.compile(r"\d+\.\d+\.\d+")
# The values end up in sh, Ruby, Nix, JSON and YAML, so none may have a character that is special in one of them.
FORMS = {
    "repository": r"https://[\w.~/-]+",
    "downloads": r"https://[\w.~/-]+\{version\}[\w.~/-]*",
    "npm": r"(@[a-z0-9-]+/)?[a-z0-9-]+",
    "pypi": r"[a-z0-9]+(-[a-z0-9]+)*",
    "mcp": r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+",
    "os": r"linux|macos",
    "arch": r"x86_64|aarch64",
    "wheel": r"[a-z0-9_.]+",
    "rust": r"\d+\.\d+\.\d+",
}


def load():
    listed = tomllib.loads((HERE / "artifacts.toml").read_text(encoding="utf-8"))
    for table in [{"rust": listed["rust"]}, listed["owner"], *listed["artifact"]]:
        for key, value in table.items():
            if not re.fullmatch(FORMS.get(key, r"[\w.-]+"), value, re.ASCII):
                sys.exit(f"artifacts.toml: {key} = {value!r} is not of the form that is expected")
    return listed


def cargo_version():
    version = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["package"]["version"]
    if not VERSION.fullmatch(version):
        sys.exit(f"Cargo.toml: the version {version!r} is not MAJOR.MINOR.PATCH")
    return version


def get(target, key):
    for artifact in load()["artifact"]:
        if artifact["target"] == target:
            return artifact[key]
    known = ", ".join(artifact["target"] for artifact in load()["artifact"])
    sys.exit(f"artifacts.toml has no target {target!r}, only {known}")


def check(tag):
    if tag != f"v{cargo_version()}":
        sys.exit(f"the tag is {tag}, the version in Cargo.toml {cargo_version()}")
    left = [key for key, value in load()["owner"].items() if "example" in value or "OWNER" in value]
    if left:
        sys.exit(f"artifacts.toml still has placeholders: {', '.join(left)}")
    return f"{tag} can be released"


def main(arguments):
    match arguments:
        case ["matrix"]:
            listed = load()
            return json.dumps({"include": [{**one, "rust": listed["rust"]} for one in listed["artifact"]]})
        case ["version"]:
            return cargo_version()
        case ["rust"]:
            return load()["rust"]
        case ["get", target, key]:
            return get(target, key)
        case ["check", tag]:
            return check(tag)
    sys.exit(__doc__)


if __name__ == "__main__":
    print(main(sys.argv[1:]))
