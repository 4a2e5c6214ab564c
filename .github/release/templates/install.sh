#!/bin/sh
# Installs codescout @VERSION@ for this user: one program, in $CODESCOUT_INSTALL_DIR or ~/.local/bin.
#
#   sh install.sh                install, or replace another version; a server that runs keeps the version it has
#   sh install.sh --uninstall    remove what this script installed
#
# The archive is downloaded over HTTPS, or copied from the folder $CODESCOUT_ARCHIVES. It is unpacked only if it has the
# SHA-256 checksum in this file.
set -eu

say() { printf 'codescout: %s\n' "$*"; }
fail() {
    say "$*" >&2
    exit 1
}
has() { command -v "$1" >/dev/null 2>&1; }

# Sets `target` and `checksum`.
find_platform() {
    case $(uname -s)-$(uname -m) in
@PLATFORMS@
        *) fail "no program for $(uname -s) on $(uname -m); build it from source: @REPOSITORY@" ;;
    esac
}

sha256() {
    if has sha256sum; then
        sha256sum <"$1"
    elif has shasum; then
        shasum -a 256 <"$1"
    else
        openssl dgst -sha256 -r <"$1"
    fi | cut -d ' ' -f 1
}

# Copies or downloads the archive $1 to the file $2.
fetch() {
    if [ -n "${CODESCOUT_ARCHIVES:-}" ]; then
        cp "$CODESCOUT_ARCHIVES/$1" "$2" || fail "cannot copy $1 from $CODESCOUT_ARCHIVES"
    elif has curl; then
        curl --proto =https --tlsv1.2 -fsSL -o "$2" "@DOWNLOADS@/$1" ||
            fail "cannot download @DOWNLOADS@/$1: check the network, or set CODESCOUT_ARCHIVES to a folder with this file"
    elif has wget; then
        wget -q -O "$2" "@DOWNLOADS@/$1" ||
            fail "cannot download @DOWNLOADS@/$1: check the network, or set CODESCOUT_ARCHIVES to a folder with this file"
    else
        fail "curl or wget is needed to download"
    fi
}

# Lists in `missing` which of $1 and its parents do not exist, the deepest first. Refuses if they cannot be made.
find_missing() {
    missing=
    parent=$1
    while [ ! -d "$parent" ]; do
        missing="$missing$parent
"
        parent=$(dirname "$parent")
    done
    [ -w "$parent" ] || fail "cannot write to $parent; set CODESCOUT_INSTALL_DIR to another folder"
}

install() {
    find_platform
    for tool in tar mktemp cut; do has "$tool" || fail "$tool is needed to install"; done
    has sha256sum || has shasum || has openssl || fail "sha256sum, shasum or openssl is needed to check the archive"
    [ ! -d "$program" ] || fail "$program is a folder"
    made=
    [ ! -f "$receipt" ] || made=$(sed 1d "$receipt" && echo .) made=${made%.}
    find_missing "$dir"

    temporary=$(mktemp -d "${TMPDIR:-/tmp}/codescout.XXXXXX") || fail "cannot make a temporary folder"
    stem=codescout-@VERSION@-$target
    fetch "$stem.tar.xz" "$temporary/archive"
    found=$(sha256 "$temporary/archive")
    [ "$found" = "$checksum" ] ||
        fail "$stem.tar.xz has the wrong checksum, nothing was installed: $found instead of $checksum"
    (cd "$temporary" && tar -xf archive "$stem/codescout") || fail "cannot unpack $stem.tar.xz; tar needs the program xz"
    chmod 755 "$temporary/$stem/codescout"

    # First beside its place, then renamed, so that the program is always whole.
    mkdir -p "$dir" || fail "cannot make $dir"
    new=$(mktemp "$dir/.codescout-new.XXXXXX") || fail "cannot write to $dir"
    { cp "$temporary/$stem/codescout" "$new" && chmod 755 "$new"; } || fail "cannot write to $dir"
    version=$("$new" --version) || fail "the program does not start on this machine; nothing was replaced"
    { sha256 "$new" && printf %s "$missing$made"; } >"$temporary/receipt"
    { cp "$temporary/receipt" "$receipt" && mv -f "$new" "$program"; } || fail "cannot write to $dir"

    say "$version is installed as $program"
    case ":$PATH:" in
        *":$dir:"*) ;;
        *) say "add it to PATH, for example in ~/.profile:  export PATH=\"$dir:\$PATH\"" ;;
    esac
}

# Removes folders that the installation made, in this order, while they are empty.
remove_folders() {
    printf '%s\n' "$1" | while IFS= read -r folder && [ -n "$folder" ] && rmdir "$folder" 2>/dev/null; do :; done
}

uninstall() {
    [ -f "$receipt" ] || fail "this script has installed nothing in $dir"
    if [ -e "$program" ] && [ "$(sha256 "$program")" != "$(sed -n 1p "$receipt")" ]; then
        fail "$program is not what this script installed; it was left alone"
    fi
    made=$(sed 1d "$receipt")
    rm -f "$program" "$receipt" || fail "cannot remove $program"
    remove_folders "$made"
    say "$program is removed; indexes in .codescout/ and entries in agents' configurations stay"
}

clean() {
    status=$?
    [ -z "${temporary:-}" ] || rm -rf "$temporary"
    [ -z "${new:-}" ] || rm -f "$new"
    [ "$status" = 0 ] || remove_folders "${missing:-}"
    exit "$status"
}

# Last, so that nothing happens if this file arrives incomplete.
main() {
    dir=${CODESCOUT_INSTALL_DIR:-${HOME:?is not set}/.local/bin}
    case $dir in
        *'
'*) fail "the folder may not have a line break in its name" ;;
        /*) ;;
        *) dir=$PWD/$dir ;;
    esac
    dir=${dir%/}
    program=$dir/codescout
    receipt=$dir/.codescout-installed
    trap clean EXIT
    trap 'exit 1' HUP INT TERM
    case $#-${1:-} in
        0-) install ;;
        1---uninstall) uninstall ;;
        *) fail "usage: install.sh [--uninstall]" ;;
    esac
}
main "$@"
