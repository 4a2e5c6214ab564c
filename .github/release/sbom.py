#!/usr/bin/env python3
"""Lists what Cargo.lock names as a CycloneDX document. Equal input gives equal bytes: no time, no random number.

Usage: sbom.py > codescout.cdx.json

Cargo.lock does not distinguish what only builds and tests need, so those crates are listed too.
"""
import json
import sys
import tomllib
from urllib.parse import quote

sys.dont_write_bytecode = True
from artifacts import ROOT

PROGRAM = "codescout"


def reference(package):
    return f"pkg:cargo/{package['name']}@{quote(package['version'], safe='.-')}"


def component(package):
    entry = {
        "type": "application" if package["name"] == PROGRAM else "library",
        "bom-ref": reference(package),
        "name": package["name"],
        "version": package["version"],
        "purl": reference(package),
    }
    if "checksum" in package:
        entry["hashes"] = [{"alg": "SHA-256", "content": package["checksum"]}]
    return entry


def main():
    packages = tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))["package"]
    packages.sort(key=reference)
    # A dependency is written as "name", or "name version" where several versions exist.
    named = {package["name"]: reference(package) for package in packages}
    named |= {f"{package['name']} {package['version']}": reference(package) for package in packages}

    def resolve(dependency):
        return named[" ".join(dependency.split()[:2])]

    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component(next(one for one in packages if one["name"] == PROGRAM))},
        "components": [component(package) for package in packages if package["name"] != PROGRAM],
        "dependencies": [
            {"ref": reference(package), "dependsOn": sorted(map(resolve, package.get("dependencies", [])))}
            for package in packages
        ],
    }
    print(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
