#!/usr/bin/env bash
# What hooks cost: time added to `git commit`, and runs of the index that a rebase starts.
#
#   tests/bench/hooks.sh target/release/codescout
#
# What: empty commits, one with the hooks and one without in turn, each timed as a process whose output is captured; then a rebase
#   of 63 commits. Beside it, to tell what a hook costs at all: commits with a hook that does nothing.
# Corpus: REPO, a local clone (a copy of it is used); without it a repository of FILES (200) small files.
# Needs: bash 5, git, awk. Settings: ROUNDS (50).
# Read: medians, and the median of the differences within a round. Runs still under way from the round before share the processors
#   with the commit that is timed, as they would when somebody commits every few moments; with WAIT=1 they are waited for.
set -euo pipefail

PROGRAM=$(realpath "${1:?the executable of codescout}")
ROUNDS=${ROUNDS:-50} FILES=${FILES:-200} WAIT=${WAIT:-0}
FOLDER=$(mktemp -d)
trap 'rm -rf "$FOLDER"' EXIT
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=bench GIT_AUTHOR_EMAIL=bench@example.com GIT_COMMITTER_NAME=bench GIT_COMMITTER_EMAIL=bench@example.com

if [ -n "${REPO:-}" ]; then
    git clone -q --shared "$(realpath "$REPO")" "$FOLDER/repo"
    cd "$FOLDER/repo"
else
    git init -q "$FOLDER/repo"
    cd "$FOLDER/repo"
    for i in $(seq "$FILES"); do printf 'pub fn number_%s() -> u32 {\n    %s\n}\n' "$i" "$i" >"file_$i.rs"; done
    git add -A && git commit -qm start
fi
git config maintenance.auto false
"$PROGRAM" index -q
"$PROGRAM" hooks install -q >/dev/null
mv .git/hooks "$FOLDER/ours"
mkdir "$FOLDER/none" "$FOLDER/nothing"
printf '#!/bin/sh\n:\n' >"$FOLDER/nothing/post-commit"
chmod +x "$FOLDER/nothing/post-commit"

# The time of a commit in µs, with the hooks of a folder.
commit() {
    local started=$EPOCHREALTIME out ended
    out=$(git -c core.hooksPath="$FOLDER/$1" commit -q --allow-empty -m x 2>&1)
    ended=$EPOCHREALTIME
    [ -z "$out" ] || { echo "a commit printed: $out" >&2; exit 2; }
    echo $((${ended/./} - ${started/./}))
}
settled() { while pgrep -f "hooks run .*--repo $FOLDER/repo" >/dev/null; do sleep 0.02; done; }

for round in $(seq "$ROUNDS"); do
    # Each is first in turn.
    case $((round % 3)) in
        0) order="none nothing ours" ;;
        1) order="ours none nothing" ;;
        2) order="nothing ours none" ;;
    esac
    for kind in $order; do
        [ "$WAIT" = 0 ] || settled
        commit "$kind" >>"$FOLDER/$kind.times"
    done
done
median() { sort -n | awk '{ t[NR] = $1 } END { m = NR % 2 ? t[(NR + 1) / 2] : (t[NR / 2] + t[NR / 2 + 1]) / 2; printf "%.1f ms", m / 1000 }'; }
row() { printf '%-52s %s\n' "$1" "$2"; }
row "program" "$("$PROGRAM" --version), $(nproc) processors, $ROUNDS rounds"
row "commit without hooks, median" "$(median <"$FOLDER/none.times")"
row "commit with a hook that does nothing, median" "$(median <"$FOLDER/nothing.times")"
row "commit with the hooks, median" "$(median <"$FOLDER/ours.times")"
row "added by the hooks, median of differences" "$(paste "$FOLDER/none.times" "$FOLDER/ours.times" | awk '{ print $2 - $1 }' | median)"
settled

# A rebase.
mv "$FOLDER/ours" .git/hooks
git branch -q side
for i in $(seq 63); do echo "pub fn rebased_$i() {}" >"rebased_$i.rs" && git add -A && git -c core.hooksPath="$FOLDER/none" commit -qm "commit $i"; done
git switch -q side 2>/dev/null
echo "pub fn elsewhere() {}" >elsewhere.rs && git add -A && git commit -qm elsewhere
git switch -q -
sleep 1
settled
runs() { cat .codescout/log/hooks.log .git/codescout-hooks/hooks.log 2>/dev/null | grep -c '"outcome":"started"' || true; }
BEFORE=$(runs)
started=$EPOCHREALTIME
git rebase -q side
ended=$EPOCHREALTIME
sleep 1
settled
row "rebase of 63 commits" "$(((${ended/./} - ${started/./}) / 1000)) ms, $(($(runs) - BEFORE)) runs of the index"
"$PROGRAM" status --ref HEAD --json | grep -q '"index":"up_to_date"' || { echo "HEAD is not indexed" >&2; exit 1; }
