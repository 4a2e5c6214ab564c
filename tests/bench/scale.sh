#!/bin/sh
# How updates behave at scale: a tree of a million entries under 100,000 commits, made by git fast-import.
#
#   tests/bench/scale.sh PROGRAM FOLDER [ENTRIES [COMMITS [worktree]]]
#
# PROGRAM is a release build. FOLDER is made and kept: a second run measures again without making it anew. It takes about 2 GB;
# with `worktree`, which checks the million files out, 6 GB more. Printed: seconds and peak memory of each step; `git` is the
# nearest that git itself does for the same question.
set -eu
program=$1
folder=$2
entries=${3:-1000000}
commits=${4:-100000}
kind=${5:-bare}
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.com GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.com
repo=$folder/repo.git

# The entries stand in folders of a hundred, two deep; each has a text of its own. Every commit changes one file.
stream() {
    awk -v entries="$entries" -v commits="$commits" '
        function path(i) { return sprintf("d%03d/e%02d/f%02d.rs", i / 10000, (i / 100) % 100, i % 100) }
        function text(i, version) {
            return sprintf("/// Item %d.\npub fn item_%d(x: u64) -> u64 {\n    x.wrapping_mul(%.0f) ^ %.0f\n}\n", i, i, i * 7919, version)
        }
        function put(i, version,    t) { t = text(i, version); printf "M 100644 inline %s\ndata %d\n%s\n", path(i), length(t), t }
        function commit(n) {
            printf "commit refs/heads/main\ncommitter a <a@example.com> %d +0000\ndata 2\nc\n", 1500000000 + n * 60
        }
        BEGIN {
            commit(0)
            for (i = 0; i < entries; i++) put(i, 0)
            for (n = 1; n <= commits; n++) { commit(n); put((n * 7) % entries, n) }
        }'
}

# Seconds and peak memory of a command.
timed() {
    name=$1
    shift
    env time -f "%e s  %M KB  $name" "$@" >"$folder/out" 2>"$folder/err" || { cat "$folder/err"; exit 1; }
    tail -n 1 "$folder/err"
}

if [ ! -d "$repo" ]; then
    mkdir -p "$folder"
    git init --quiet --bare --initial-branch=main "$repo"
    stream | git -C "$repo" fast-import --quiet
    # As any repository of this size is kept.
    git -C "$repo" commit-graph write --reachable 2>/dev/null
fi
echo "entries $(git -C "$repo" ls-tree -r main | wc -l), commits $(git -C "$repo" rev-list --count main), objects $(du -sm "$repo/objects" | cut -f 1) MB"

timed "index from nothing, or going on" "$program" --repo "$repo" -q index
for round in 1 2 3; do
    timed "no-op update $round" "$program" --repo "$repo" -q index
done
timed "git: rev-parse HEAD^{tree}" git -C "$repo" rev-parse "HEAD^{tree}"

# One file changed, without a work tree: what `git commit` leaves behind.
for round in 1 2 3; do
    blob=$(printf 'pub fn changed_%s() -> u64 { %s }\n' "$$" "$round" | git -C "$repo" hash-object -w --stdin)
    GIT_INDEX_FILE=$folder/index git -C "$repo" read-tree main
    GIT_INDEX_FILE=$folder/index git -C "$repo" update-index --add --cacheinfo "100644,$blob,d001/e02/f03.rs"
    tree=$(GIT_INDEX_FILE=$folder/index git -C "$repo" write-tree)
    git -C "$repo" update-ref refs/heads/main "$(git -C "$repo" commit-tree -p main -m one "$tree")"
    timed "one-file update $round" "$program" --repo "$repo" -q index
    timed "git: diff-tree -r HEAD~ HEAD" git -C "$repo" diff-tree -r HEAD~ HEAD
done
timed "search HEAD" "$program" --repo "$repo" -q --ref HEAD search "changed_$$"
timed "status" "$program" --repo "$repo" -q status
echo "sidecar $(du -sm "$repo/codescout" | cut -f 1) MB"

if [ "$kind" = worktree ]; then
    tree=$folder/tree
    [ -d "$tree" ] || git -C "$repo" worktree add --quiet "$tree" main
    git -C "$tree" status --short >/dev/null
    timed "git: status" git -C "$tree" status --short
    timed "git: status" git -C "$tree" status --short
    timed "search WORKTREE, nothing changed" "$program" --repo "$tree" -q search "item_77"
    timed "search WORKTREE, nothing changed" "$program" --repo "$tree" -q search "item_77"
    echo "pub fn edited() {}" >"$tree/d001/e02/f04.rs"
    timed "search WORKTREE, one file edited" "$program" --repo "$tree" -q search "edited"
    timed "git: status, one file edited" git -C "$tree" status --short
fi
