#!/bin/sh
# Usage: windows.sh
# How far the program is from Windows: the number of errors of `cargo check` for it, if this machine has the target and a
# C compiler for it; then the uses of interfaces that only Unix has, by room of src.

cd "$(dirname "$0")/../.." || exit 1
target=x86_64-pc-windows-gnu

if ! rustup target list --installed 2>/dev/null | grep -qx "$target"; then
    echo "skipped: cargo check (rustup target add $target)"
elif ! command -v x86_64-w64-mingw32-gcc >/dev/null; then
    echo "skipped: cargo check (no x86_64-w64-mingw32-gcc, which the grammars need)"
else
    log=$(mktemp)
    timeout 50 cargo check --locked --quiet --target "$target" >"$log" 2>&1
    case $? in
        0) echo "pass  cargo check --target $target" ;;
        124) echo "skipped: cargo check (not done in 50 s; run it again, it continues)" ;;
        *) echo "fail  cargo check --target $target: $(grep -c '^error' "$log") errors" ;;
    esac
    rm "$log"
fi

printf '%-12s %6s %6s %6s %6s\n' room unix:: rustix libc cfg
row() {
    printf '%-12s' "$1"
    for pattern in 'std::os::unix' 'rustix::' 'libc::' 'cfg!\?(\(not(\)\?unix'; do
        printf ' %6s' "$(grep -rho --include='*.rs' "$pattern" "$2" | wc -l)"
    done
    echo
}
for room in src/*/; do row "$(basename "$room")" "$room"; done
row src src
