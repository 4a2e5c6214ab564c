#!/bin/sh
# Builds the program for one target of artifacts.toml and prints its path. The same sources, toolchain and C compiler are
# to give the same bytes in any folder.
#
# Usage: build.sh TARGET
#
# On a machine of another kind, set CC_TARGET and CARGO_TARGET_TARGET_LINKER to a cross compiler, in the spelling of the
# cc crate and of cargo (CC_aarch64_unknown_linux_musl, CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${1:?usage: build.sh TARGET}
compiler=$(python3 "$here/artifacts.py" get "$target" compiler)
rust=$(python3 "$here/artifacts.py" rust)
cd "$root"

# rustup reads it; without rustup the version may differ.
export RUSTUP_TOOLCHAIN="$rust"
found=$(rustc --version | cut -d ' ' -f 2)
[ "$found" = "$rust" ] || echo "build.sh: rustc is $found, not $rust: the bytes will differ from the release" >&2

name=$(printf %s "$target" | tr - _)
cross=$(printenv "CC_$name" || true)
compiler=${cross:-$compiler}
machine=$(uname -m | sed 's/^arm64$/aarch64/')
if [ -z "$cross" ] && [ "$machine" != "${target%%-*}" ]; then
    echo "build.sh: this machine is $machine; to build for $target, set CC_$name and the linker" >&2
    exit 1
fi
command -v "$compiler" >/dev/null || { echo "build.sh: no C compiler $compiler" >&2; exit 1; }

# Paths that differ between machines: in messages of panics and in assertions of C.
cargo_home=${CARGO_HOME:-$HOME/.cargo}
separator=$(printf '\037')
CARGO_ENCODED_RUSTFLAGS="--remap-path-prefix=$root=/codescout"
CARGO_ENCODED_RUSTFLAGS="$CARGO_ENCODED_RUSTFLAGS$separator--remap-path-prefix=$cargo_home=/cargo"
CARGO_ENCODED_RUSTFLAGS="$CARGO_ENCODED_RUSTFLAGS$separator--remap-path-prefix=$(rustc --print sysroot)=/rust"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export CARGO_ENCODED_RUSTFLAGS SOURCE_DATE_EPOCH CARGO_INCREMENTAL=0 ZERO_AR_DATE=1 MACOSX_DEPLOYMENT_TARGET=11.0 LC_ALL=C TZ=UTC
CODESCOUT_COMMIT=$(git rev-parse HEAD) CODESCOUT_DATE=$(git log -1 --format=%cs)
export CODESCOUT_COMMIT CODESCOUT_DATE
export "CC_$name=$compiler"
export "CFLAGS_$name=-ffile-prefix-map=$root=/codescout -ffile-prefix-map=$cargo_home=/cargo"

cargo build --locked --profile dist --target "$target" --target-dir target --bin codescout >&2
program="$root/target/$target/dist/codescout"
case $target in
    *-musl)
        if readelf -l "$program" | grep -q INTERP; then
            echo "build.sh: $program is not static" >&2
            exit 1
        fi
        ;;
esac
printf '%s\n' "$program"
