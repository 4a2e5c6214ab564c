#!/bin/sh
# Packs a program into the archive of one target, with the licences, documents, completions and manual pages, and prints
# the line of its checksum. The same program and commit give the same bytes.
#
# Usage: pack.sh PROGRAM TARGET OUT     writes OUT/codescout-VERSION-TARGET.tar.xz and the same with .sha256
#
# The program is run for its completions and manual pages. The time in the archive is SOURCE_DATE_EPOCH, by default that of the commit.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
program=${1:?usage: pack.sh PROGRAM TARGET OUT} target=${2:?no TARGET} out=${3:?no OUT}
version=$(python3 "$here/artifacts.py" version)
python3 "$here/artifacts.py" get "$target" os >/dev/null
program=$(cd "$(dirname "$program")" && pwd)/$(basename "$program")
found=$("$program" --version)
case $found in
"codescout $version" | "codescout $version ("*) ;;
*) echo "pack.sh: $program is \"$found\", Cargo.toml says $version" >&2; exit 1 ;;
esac
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

stem=codescout-$version-$target
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir -p "$out" "$stage/$stem/completions"
cp "$program" "$stage/$stem/codescout"
cp "$root/LICENSE" "$root/README.md" "$root/CHANGELOG.md" "$stage/$stem/"
python3 "$here/notices.py" "$target" >"$stage/$stem/THIRD-PARTY-NOTICES.txt"
for shell in bash elvish fish powershell zsh; do
    "$program" completions "$shell" >"$stage/$stem/completions/codescout.$shell"
done
"$program" man "$stage/$stem/man"

# Python, since the tar of macOS can neither sort nor set times.
python3 - "$stage" "$stem" "$out" <<'END'
import hashlib, lzma, os, sys, tarfile
from pathlib import Path

stage, stem, out = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
name = stem + ".tar.xz"


def plain(entry):
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = int(os.environ["SOURCE_DATE_EPOCH"])
    entry.mode = 0o755 if entry.isdir() or entry.name == f"{stem}/codescout" else 0o644
    return entry


# `add` sorts the names of a folder. The preset is that of `xz -6`: -9 saves 1 % and unpacks with 65 MB of memory.
with lzma.open(out / name, "wb", preset=6) as packed, tarfile.open(fileobj=packed, mode="w|", format=tarfile.USTAR_FORMAT) as tar:
    tar.add(stage / stem, stem, filter=plain)
line = f"{hashlib.sha256((out / name).read_bytes()).hexdigest()}  {name}"
(out / (name + ".sha256")).write_text(line + "\n")
print(line)
END
