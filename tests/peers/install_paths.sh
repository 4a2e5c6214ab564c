#!/usr/bin/env bash
# Packs a release from one program and installs it in every way that can be tried without a network.
#
#   tests/peers/install_paths.sh target/release/codescout
#
# What: the archive of this machine's platform is packed twice and compared; those of the others hold a stand-in. Then all
#   that .github/release/generate.py writes is read by the programs it is for, and what installs is run and removed again.
# Needs: bash, git, tar, xz, Python 3.11, openssl, cargo with the sources of the crates for every platform (or a network
#   for them). node with npm, pip, docker, ruby and nix are skipped aloud if missing.
# Exit code: 0 if all that was tried holds, 1 if not. Takes about two minutes, most of them in xz.
set -uo pipefail

PROGRAM=$(cd "$(dirname "${1:?the executable of codescout}")" && pwd)/$(basename "$1")
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
RELEASE=$ROOT/.github/release
FOLDER=$(mktemp -d)
trap 'rm -rf "$FOLDER"' EXIT
chmod 755 "$FOLDER"
# Before the home changes: for .github/release/notices.py.
export CARGO_HOME=${CARGO_HOME:-$HOME/.cargo} RUSTUP_HOME=${RUSTUP_HOME:-$HOME/.rustup}
export HOME=$FOLDER/home GIT_CONFIG_NOSYSTEM=1 npm_config_cache=$FOLDER/npm-cache npm_config_update_notifier=false
export GIT_AUTHOR_NAME=peer GIT_AUTHOR_EMAIL=peer@example.com GIT_COMMITTER_NAME=peer GIT_COMMITTER_EMAIL=peer@example.com
unset CODESCOUT_INSTALL_DIR CODESCOUT_ARCHIVES SIGNING_KEY SIGNING_TOOL SIGNING_PASSWORD
mkdir "$HOME"
FAILED=0
# The real Python: a launcher may need the home directory.
PYTHON=$(python3 -c 'import sys; print(sys.executable)')
mkdir "$FOLDER/bin" && ln -s "$PYTHON" "$FOLDER/bin/python3" && PATH=$FOLDER/bin:$PATH
export SOURCE_DATE_EPOCH=1700000000

check() { # what, command…
    if "${@:2}" >"$FOLDER/out" 2>&1; then echo "  ok      $1"; else echo "  FAILED  $1"; sed 's/^/          /' "$FOLDER/out"; FAILED=1; fi
}
skip() { echo "  SKIPPED $1"; }
not() { ! "$@"; }
has() { command -v "$1" >/dev/null 2>&1; }
# The command fails and its output has the text.
refuses() { local text=$1; shift; not "$@" >"$FOLDER/refusal" 2>&1 && cat "$FOLDER/refusal" && grep -qF -- "$text" "$FOLDER/refusal"; }
prints() { local text=$1; shift; "$@" 2>&1 | tee /dev/stderr | grep -qF -- "$text"; }
listing() { (cd "$1" && find . -exec ls -ld {} + | awk '{ print $1, $NF }' | sort); }

VERSION=$("$PYTHON" "$RELEASE/artifacts.py" version)
TARGETS=$("$PYTHON" "$RELEASE/artifacts.py" matrix | "$PYTHON" -c 'import json, sys; [print(one["target"]) for one in json.load(sys.stdin)["include"]]')
case $(uname -s)-$(uname -m) in
    Linux-x86_64) TARGET=x86_64-unknown-linux-musl ;;
    Linux-aarch64) TARGET=aarch64-unknown-linux-musl ;;
    Darwin-arm64) TARGET=aarch64-apple-darwin ;;
    Darwin-x86_64) TARGET=x86_64-apple-darwin ;;
    *) echo "no artifact for this platform" && exit 2 ;;
esac
ARCHIVE=codescout-$VERSION-$TARGET.tar.xz

echo packing
cp "$PROGRAM" "$FOLDER/codescout" && strip "$FOLDER/codescout" 2>/dev/null
"$RELEASE/pack.sh" "$FOLDER/codescout" "$TARGET" "$FOLDER/again" >"$FOLDER/again.sum" 2>&1 &
check "an archive" "$RELEASE/pack.sh" "$FOLDER/codescout" "$TARGET" "$FOLDER/archives"
wait $!
check "the same bytes a second time" cmp "$FOLDER/archives/$ARCHIVE" "$FOLDER/again/$ARCHIVE"
NOTICES=THIRD-PARTY-NOTICES.txt
tar -xJOf "$FOLDER/archives/$ARCHIVE" "codescout-$VERSION-$TARGET/$NOTICES" >"$FOLDER/$NOTICES"
# A crate, a grammar, the standard library, a library in C, the vectors that the model derives from.
for part in "tantivy " "tree-sitter-python " "Rust standard library " "zstd-sys " "all-MiniLM-L6-v2 "; do
    check "notices of $part" grep -q "^- $part" "$FOLDER/$NOTICES"
done
check "no path of this machine in them" not grep -qF -e "$ROOT" -e "$CARGO_HOME" -e "$RUSTUP_HOME" "$FOLDER/$NOTICES"
check "no crate that only tests need" not grep -q "^- proptest " "$FOLDER/$NOTICES"
bytes=$(wc -c <"$FOLDER/archives/$ARCHIVE")
check "$((bytes / 1000)) kB, at most 25 MB" test "$bytes" -le 25000000
printf '#!/bin/sh\necho "codescout %s"\n' "$VERSION" >"$FOLDER/stand-in" && chmod +x "$FOLDER/stand-in"
for target in $TARGETS; do
    [ "$target" = "$TARGET" ] || check "a stand-in for $target" "$RELEASE/pack.sh" "$FOLDER/stand-in" "$target" "$FOLDER/archives"
done
printf '#!/bin/sh\necho "codescout 0.0.0"\n' >"$FOLDER/other" && chmod +x "$FOLDER/other"
check "another version is refused" refuses "Cargo.toml says" "$RELEASE/pack.sh" "$FOLDER/other" "$TARGET" "$FOLDER/other.d"
check "an unknown target is refused" refuses "no target" "$RELEASE/pack.sh" "$FOLDER/stand-in" ../x "$FOLDER/other.d"
SUMS=$FOLDER/archives/SHA256SUMS
cat "$FOLDER"/archives/*.sha256 >"$SUMS"

echo generating
OUT=$FOLDER/out.d
check "everything" "$RELEASE/generate.py" "$VERSION" "$SUMS" "$OUT"
check "a second time" "$RELEASE/generate.py" "$VERSION" "$SUMS" "$FOLDER/out2.d"
check "the same bytes" diff -r "$OUT" "$FOLDER/out2.d"
rm -rf "$FOLDER/out2.d"
sed 1d "$SUMS" >"$FOLDER/archives/short"
sed '1s/^./g/' "$SUMS" >"$FOLDER/archives/odd"
sed '1s/^......../00000000/' "$SUMS" >"$FOLDER/archives/wrong"
check "a missing archive is refused" refuses "missing or not in" "$RELEASE/generate.py" "$VERSION" "$FOLDER/archives/short" "$FOLDER/no"
check "an odd line is refused" refuses "not a line of a checksum" "$RELEASE/generate.py" "$VERSION" "$FOLDER/archives/odd" "$FOLDER/no"
check "a wrong checksum is refused" refuses "wrong checksum" "$RELEASE/generate.py" "$VERSION" "$FOLDER/archives/wrong" "$FOLDER/no"
check "another version is refused" refuses "is not the version" "$RELEASE/generate.py" 9.9.9 "$SUMS" "$FOLDER/no"
check "no placeholder of a template is left" not grep -rIE '@[A-Z_]+@' "$OUT" --include='*.*' --exclude="$NOTICES"
notices_everywhere() {
    local n=0 path
    for path in "$OUT"/npm/*-*/codescout "$OUT"/image/*/codescout; do
        test -s "${path%/*}/$NOTICES" && n=$((n + 1)) || return 1
    done
    for path in "$OUT"/wheels/*.whl; do
        "$PYTHON" -m zipfile -l "$path" | grep -qF "dist-info/$NOTICES" && n=$((n + 1)) || return 1
    done
    echo "$n packages" && test "$n" -ge 3
}
check "the notices are in every package with a program" notices_everywhere
check "list of components, twice" cmp <("$RELEASE/sbom.py") <("$RELEASE/sbom.py")
check "JSON and TOML" "$PYTHON" -c 'import json, pathlib, sys, tomllib
for path in pathlib.Path(sys.argv[1]).rglob("*.json"): json.loads(path.read_text())
tomllib.loads((pathlib.Path(sys.argv[1]) / "binstall.toml").read_text())' "$OUT"
if "$PYTHON" -c 'import yaml' 2>/dev/null; then
    check "YAML" "$PYTHON" -c 'import sys, yaml; [yaml.safe_load(open(path)) for path in sys.argv[1:]]' \
        "$OUT/action/action.yml" "$OUT/pre-commit/.pre-commit-hooks.yaml" "$ROOT/.github/workflows/release.yml"
else
    skip "YAML: no module yaml in Python"
fi
if has ruby; then check "Homebrew formula: syntax" ruby -c "$OUT/homebrew/codescout.rb"; else skip "Homebrew formula: no ruby"; fi
if has nix-instantiate; then check "Nix flake: syntax" nix-instantiate --parse "$OUT/nix/flake.nix"; else skip "Nix flake: no nix"; fi

echo signing
sign() { env "$@" "$RELEASE/sign.sh" "$SUMS"; }
check "without a key: said" prints "NOT SIGNED" sign A=
check "a key without a tool is refused" refuses "SIGNING_TOOL" sign SIGNING_KEY=x
check "a wrong key is refused" not sign SIGNING_KEY=x SIGNING_TOOL=openssl
check "and nothing is written" not test -e "$SUMS.sig"
openssl genpkey -algorithm ed25519 -out "$FOLDER/key.pem" 2>/dev/null
if prints "signed: " sign SIGNING_KEY="$(cat "$FOLDER/key.pem")" SIGNING_TOOL=openssl 2>/dev/null; then
    openssl pkey -in "$FOLDER/key.pem" -pubout -out "$FOLDER/public.pem"
    verify() { openssl pkeyutl -verify -rawin -pubin -inkey "$FOLDER/public.pem" -sigfile "$SUMS.sig" -in "$1"; }
    check "signature by openssl" verify "$SUMS"
    check "not of another file" not verify "$FOLDER/archives/short"
else
    skip "signature: this openssl cannot sign with Ed25519"
fi

echo install.sh
mkdir "$FOLDER/repo" && cd "$FOLDER/repo" && git init -q && printf '/// Cuts text into tokens.\npub fn lex() {}\n' >lexer.rs
git add -A && git commit -qm start
export CODESCOUT_ARCHIVES=$FOLDER/archives
INSTALL=$OUT/install.sh BIN=$HOME/.local/bin
listing "$HOME" >"$FOLDER/before"
is_as_before() { diff "$FOLDER/before" <(listing "$HOME"); }
check "installs, and says what to add to PATH" prints "add it to PATH" sh "$INSTALL" </dev/null
check "the program starts" prints "codescout $VERSION" "$BIN/codescout" --version
check "the program searches" prints "lexer.rs" "$BIN/codescout" search "cut text into tokens"
check "a second time" sh "$INSTALL"
check "silent about PATH if that has it" not prints "add it" env PATH="$BIN:$PATH" sh "$INSTALL"
check "uninstalls" sh "$INSTALL" --uninstall
check "the home is as before" is_as_before
check "nothing to uninstall is said" refuses "installed nothing" sh "$INSTALL" --uninstall
mkdir "$FOLDER/bad" && printf x | cat "$FOLDER/archives/$ARCHIVE" - >"$FOLDER/bad/$ARCHIVE"
check "a wrong checksum is refused" refuses "wrong checksum" env CODESCOUT_ARCHIVES="$FOLDER/bad" sh "$INSTALL"
check "no archive is said" refuses "cannot copy" env CODESCOUT_ARCHIVES="$FOLDER/none" sh "$INSTALL"
proxy=http://127.0.0.1:9
check "no network is said" refuses "check the network" env CODESCOUT_ARCHIVES= https_proxy=$proxy HTTPS_PROXY=$proxy sh "$INSTALL"
mkdir "$FOLDER/uname" && printf '#!/bin/sh\necho Plan9\n' >"$FOLDER/uname/uname" && chmod +x "$FOLDER/uname/uname"
check "another platform is refused" refuses "no program for Plan9" env PATH="$FOLDER/uname:$PATH" sh "$INSTALL"
mkdir "$FOLDER/few" && for tool in sh uname sed dirname mktemp cut rm; do ln -s "$(command -v $tool)" "$FOLDER/few/$tool"; done
check "no tar is said" refuses "tar is needed" env PATH="$FOLDER/few" sh "$INSTALL"
check "an unknown option is refused" refuses "usage" sh "$INSTALL" --prefix /
mkdir "$FOLDER/closed" && chmod 555 "$FOLDER/closed"
# Permissions do not stop root.
as_user=(env)
[ "$(id -u)" = 0 ] && as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
if "${as_user[@]}" true 2>/dev/null; then
    check "a read-only home is refused" refuses "cannot write to $FOLDER/closed" "${as_user[@]}" env HOME="$FOLDER/closed" sh "$INSTALL"
else
    skip "read-only home: root, and no setpriv"
fi
check "the home is as before" is_as_before

echo upgrade
# An older version, which differs in one byte, and its install.sh.
old=codescout-$VERSION-$TARGET
mkdir -p "$FOLDER/old/$old" && cp "$FOLDER/codescout" "$FOLDER/old/$old/" && printf x >>"$FOLDER/old/$old/codescout"
tar -C "$FOLDER/old" -cf - "$old" | xz -0 >"$FOLDER/old/$ARCHIVE"
sum=$(openssl dgst -sha256 -r "$FOLDER/old/$ARCHIVE" | cut -d ' ' -f 1)
sed "s/target=$TARGET checksum=[0-9a-f]*/target=$TARGET checksum=$sum/" "$INSTALL" >"$FOLDER/old/install.sh"
check "installs the older one" env CODESCOUT_ARCHIVES="$FOLDER/old" sh "$FOLDER/old/install.sh"
mkfifo "$FOLDER/requests"
"$BIN/codescout" serve <"$FOLDER/requests" >"$FOLDER/answers" 2>/dev/null &
server=$!
exec 9>"$FOLDER/requests"
answers() { for _ in $(seq 300); do grep -q "\"id\":$1" "$FOLDER/answers" && return 0; sleep 0.1; done; return 1; }
echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"peer","version":"1"}}}' >&9
check "it serves" answers 1
check "installs over it" sh "$INSTALL"
check "the new one is in place" cmp "$FOLDER/codescout" "$BIN/codescout"
echo '{"jsonrpc":"2.0","method":"notifications/initialized"}' >&9
echo '{"jsonrpc":"2.0","id":2,"method":"tools/list"}' >&9
check "the old one still answers" answers 2
exec 9>&-
wait "$server"
printf x >>"$BIN/codescout"
check "a changed program is not removed" refuses "left alone" sh "$INSTALL" --uninstall
check "until it is installed again" sh "$INSTALL"
check "uninstalls" sh "$INSTALL" --uninstall
check "the home is as before" is_as_before

echo action
mkdir "$FOLDER/runner"
export RUNNER_TEMP=$FOLDER/runner GITHUB_PATH=$FOLDER/github-path GITHUB_ACTION_PATH=$OUT/action
sed '1,/run: |/d; s/^        //' "$OUT/action/action.yml" >"$FOLDER/step"
check "its step" sh -e "$FOLDER/step"
check "the program is on the path" prints "codescout $VERSION" env PATH="$(cat "$GITHUB_PATH"):$PATH" codescout --version

echo npm
if has node && has npm; then
    mkdir "$FOLDER/npm" && cd "$FOLDER/npm" && echo '{ "private": true }' >package.json
    native=$(node -p 'process.platform + "-" + process.arch')
    npm() { command npm "$@" --silent --offline --no-audit --no-fund; }
    check "packs" npm pack "$OUT/npm/main" "$OUT/npm/$native"
    check "installs" npm install ./*.tgz
    check "the program starts" prints "codescout $VERSION" npx --no-install codescout --version
    check "passes the exit code on" prints 2 sh -c 'node_modules/.bin/codescout nonsense >/dev/null 2>&1; echo $?'
    name=$(node -p 'require(process.argv[1]).name' "$OUT/npm/main/package.json")
    check "one package is uninstalled" npm uninstall "$name-$native"
    rm -rf "node_modules/$name-$native"
    check "which is said" refuses "is missing" node_modules/.bin/codescout --version
    check "the other too" npm uninstall "$name"
    check "nothing is left" not test -e node_modules/.bin/codescout
else
    skip "npm: no node or no npm"
fi

echo pip
if "$PYTHON" -m venv "$FOLDER/venv" >/dev/null 2>&1; then
    name=$("$PYTHON" -c 'import sys; sys.path.insert(0, sys.argv[1]); sys.dont_write_bytecode = True
import artifacts; print(artifacts.load()["owner"]["pypi"])' "$RELEASE")
    pip=("$FOLDER/venv/bin/python" -m pip --quiet --disable-pip-version-check)
    check "installs" "${pip[@]}" install --no-index --no-cache-dir --find-links "$OUT/wheels" "$name"
    check "the program starts" prints "codescout $VERSION" "$FOLDER/venv/bin/codescout" --version
    check "uninstalls" "${pip[@]}" uninstall --yes "$name"
    check "the program is gone" not test -e "$FOLDER/venv/bin/codescout"
else
    skip "pip: no module venv in Python"
fi

echo image
if docker info >/dev/null 2>&1; then
    check "builds" docker build --quiet --tag codescout-install-paths "$OUT/image"
    if readelf -l "$FOLDER/codescout" 2>/dev/null | grep -q INTERP; then
        skip "image: the program given is not static, so it cannot run there"
    else
        check "the program starts" prints "codescout $VERSION" docker run --rm codescout-install-paths --version
    fi
    docker image rm --force codescout-install-paths >/dev/null 2>&1
else
    skip "image: no docker that runs"
fi
exit $FAILED
