#!/usr/bin/env python3
"""Writes what package managers need, from artifacts.toml, the templates and the archives.

Usage: generate.py VERSION CHECKSUMS OUT

CHECKSUMS has the lines that pack.sh prints, for every artifact of the list; the archives are in the same folder and must
have these checksums. OUT must not exist. Equal input gives equal bytes.
"""
import base64
import hashlib
import json
import re
import shutil
import sys
import tarfile
import zipfile
from pathlib import Path

sys.dont_write_bytecode = True
import artifacts

LISTED = artifacts.load()
OWNER = LISTED["owner"]
SERVER = json.loads((artifacts.ROOT / "server.json").read_text(encoding="utf-8"))
SUMMARY = SERVER["description"]
LICENSE = (artifacts.ROOT / "LICENSE").read_bytes()
NOTICES = "THIRD-PARTY-NOTICES.txt"
UNAME = {"linux": "Linux", "macos": "Darwin"}
NODE = {"linux": "linux", "macos": "darwin", "x86_64": "x64", "aarch64": "arm64"}
IMAGE = {"x86_64": "amd64", "aarch64": "arm64"}


def checksums(path):
    """Reads `HEX  NAME` lines into a dictionary from names."""
    found = {}
    for line in path.read_text(encoding="ascii").splitlines():
        match = re.fullmatch(r"([0-9a-f]{64})  ([\w.-]+)", line, re.ASCII)
        if not match or match[2] in found:
            sys.exit(f"{path}: not a line of a checksum, or one too many: {line!r}")
        found[match[2]] = match[1]
    return found


class Release:
    def __init__(self, version, sums, out):
        self.version, self.out = version, out
        self.downloads = OWNER["downloads"].replace("{version}", version)
        self.artifacts = LISTED["artifact"]
        found = checksums(sums)
        expected = {self.archive(one) for one in self.artifacts}
        if set(found) != expected:
            sys.exit(f"{sums}: missing or not in artifacts.toml: {', '.join(sorted(set(found) ^ expected))}")
        for one in self.artifacts:
            one["sha256"] = found[self.archive(one)]
            one["program"], one["notices"] = self.contents(sums.parent / self.archive(one), one)

    def archive(self, one):
        return f"codescout-{self.version}-{one['target']}.tar.xz"

    def url(self, one):
        return f"{self.downloads}/{self.archive(one)}"

    def contents(self, path, one):
        """Returns the bytes of the program and of the notices in an archive, once its checksum is right."""
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != one["sha256"]:
                sys.exit(f"{path}: wrong checksum")
        with tarfile.open(path) as tar:
            stem = f"codescout-{self.version}-{one['target']}"
            return [tar.extractfile(f"{stem}/{name}").read() for name in ("codescout", NOTICES)]

    def write(self, name, content, mode=0o644):
        path = self.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        path.chmod(mode)

    def fill(self, template, name, mode=0o644, **more):
        """Writes a template, with each @NAME@ replaced."""
        values = {
            "VERSION": self.version,
            "DESCRIPTION": SUMMARY,
            "REPOSITORY": OWNER["repository"],
            "DOWNLOADS": self.downloads,
            "NPM": OWNER["npm"],
            **more,
        }
        text = (artifacts.HERE / "templates" / template).read_text(encoding="utf-8")
        self.write(name, re.sub(r"@([A-Z_]+)@", lambda match: values[match[1]], text), mode)

    def json(self, name, content):
        self.write(name, json.dumps(content, indent=2) + "\n")

    def scripts(self):
        def pattern(one):
            arches = [one["arch"]] + ["arm64"] * (one["arch"] == "aarch64")
            return " | ".join(f"{UNAME[one['os']]}-{arch}" for arch in arches)

        lines = [f"        {pattern(one)}) target={one['target']} checksum={one['sha256']} ;;" for one in self.artifacts]
        self.fill("install.sh", "install.sh", 0o755, PLATFORMS="\n".join(lines))
        self.fill("action.yml", "action/action.yml")
        shutil.copy(self.out / "install.sh", self.out / "action/install.sh")
        self.fill("pre-commit-hooks.yaml", "pre-commit/.pre-commit-hooks.yaml")
        self.fill("binstall.toml", "binstall.toml", DOWNLOADS_OF_ANY=OWNER["downloads"].replace("{version}", "{ version }"))

    def homebrew(self):
        blocks = []
        for os in UNAME:
            blocks.append(f"  on_{os} do")
            for one in (one for one in self.artifacts if one["os"] == os):
                kind = {"x86_64": "on_intel", "aarch64": "on_arm"}[one["arch"]]
                blocks += [f"    {kind} do", f'      url "{self.url(one)}"', f'      sha256 "{one["sha256"]}"', "    end"]
            blocks.append("  end")
        self.fill("codescout.rb", "homebrew/codescout.rb", BLOCKS="\n".join(blocks))

    def nix(self):
        lines = [
            f'        {one["arch"]}-{NODE[one["os"]]} = {{ url = "{self.url(one)}"; sha256 = "{one["sha256"]}"; }};'
            for one in self.artifacts
        ]
        self.fill("flake.nix", "nix/flake.nix", ARCHIVES="\n".join(lines))

    def image(self):
        kinds = [IMAGE[one["arch"]] for one in self.artifacts if one["os"] == "linux"]
        self.fill("Dockerfile", "image/Dockerfile", IMAGE_PLATFORMS=",".join(f"linux/{kind}" for kind in kinds))
        self.write("image/LICENSE", LICENSE)
        for one in (one for one in self.artifacts if one["os"] == "linux"):
            self.write(f"image/{IMAGE[one['arch']]}/codescout", one["program"], 0o755)
            self.write(f"image/{IMAGE[one['arch']]}/{NOTICES}", one["notices"])

    def npm(self):
        """One package per platform with the program, and one that depends on all of them and starts the right one."""
        common = {
            "version": self.version,
            "description": SUMMARY,
            "license": "MIT OR Apache-2.0",
            "repository": {"type": "git", "url": f"git+{OWNER['repository']}.git"},
        }
        names = []
        for one in self.artifacts:
            os, cpu = NODE[one["os"]], NODE[one["arch"]]
            names.append(f"{OWNER['npm']}-{os}-{cpu}")
            self.write(f"npm/{os}-{cpu}/codescout", one["program"], 0o755)
            self.write(f"npm/{os}-{cpu}/LICENSE", LICENSE)
            self.write(f"npm/{os}-{cpu}/{NOTICES}", one["notices"])
            self.json(f"npm/{os}-{cpu}/package.json", {"name": names[-1], **common, "os": [os], "cpu": [cpu]})
        self.fill("codescout.js", "npm/main/codescout.js", 0o755)
        self.write("npm/main/LICENSE", LICENSE)
        self.write("npm/main/README.md", self.readme())
        self.json("npm/main/package.json", {
            "name": OWNER["npm"], **common, "mcpName": OWNER["mcp"],
            "bin": {"codescout": "codescout.js"}, "files": ["codescout.js"],
            "optionalDependencies": {name: self.version for name in names},
        })

    def readme(self):
        return f"# codescout\n\n{SUMMARY}.\n\nDocumentation: {OWNER['repository']}\n\nmcp-name: {OWNER['mcp']}\n"

    def wheels(self):
        """A wheel per platform, with the program as its only script; pip and uv put it beside the interpreter's."""
        stem = f"{OWNER['pypi'].replace('-', '_')}-{self.version}"
        info = f"{stem}.dist-info"
        metadata = "\n".join([
            "Metadata-Version: 2.1", f"Name: {OWNER['pypi']}", f"Version: {self.version}", f"Summary: {SUMMARY}",
            "License: MIT OR Apache-2.0", "License-File: LICENSE", f"License-File: {NOTICES}",
            f"Project-URL: Repository, {OWNER['repository']}",
            "Description-Content-Type: text/markdown", "", self.readme(),
        ])
        for one in self.artifacts:
            tags = "".join(f"Tag: py3-none-{tag}\n" for tag in one["wheel"].split("."))
            files = {
                f"{stem}.data/scripts/codescout": one["program"],
                f"{info}/LICENSE": LICENSE,
                f"{info}/{NOTICES}": one["notices"],
                f"{info}/METADATA": metadata.encode(),
                f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: codescout\nRoot-Is-Purelib: false\n{tags}".encode(),
            }
            record = "".join(f"{name},sha256={digest(content)},{len(content)}\n" for name, content in files.items())
            files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
            path = self.out / "wheels" / f"{stem}-py3-none-{one['wheel']}.whl"
            path.parent.mkdir(exist_ok=True)
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
                for name, content in files.items():
                    entry = zipfile.ZipInfo(name)  # 1980-01-01
                    entry.compress_type = zipfile.ZIP_DEFLATED
                    entry.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
                    wheel.writestr(entry, content)

    def server(self):
        """The description for the MCP registry, with the packages that have the server."""
        common = {
            "version": self.version,
            "transport": {"type": "stdio"},
            "packageArguments": [{"type": "positional", "value": "serve"}],
        }
        packages = [{"registryType": kind, "identifier": OWNER[kind], **common} for kind in ("npm", "pypi")]
        self.json("server.json", {**SERVER, "name": OWNER["mcp"], "version": self.version, "packages": packages})


def digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def main(arguments):
    if len(arguments) != 3:
        sys.exit(__doc__)
    version, sums, out = arguments[0], Path(arguments[1]), Path(arguments[2])
    if version != artifacts.cargo_version():
        sys.exit(f"generate.py: {version!r} is not the version in Cargo.toml, {artifacts.cargo_version()}")
    release = Release(version, sums, out)
    out.mkdir()
    for step in (release.scripts, release.homebrew, release.nix, release.image, release.npm, release.wheels, release.server):
        step()


if __name__ == "__main__":
    main(sys.argv[1:])
