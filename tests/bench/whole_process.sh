#!/usr/bin/env bash
# What codescout costs as a program: indexing, updating and asking, each in a process of its own, on a real repository.
#
#   REPO=path/to/clone tests/bench/whole_process.sh target/release/codescout [update-bench]
#
# What: time, memory and space of the program given as first argument; beside it, in the same run on the same machine, `git grep`
#   and, where it is installed, `rg`. The second argument is the executable of `cargo bench --bench update --no-run`; with it, warm
#   queries are timed in one process too.
# Corpus: REPO, a local clone with a work tree and some hundred commits. Nothing is written there: all happens in a shared clone
#   and a sidecar in a temporary folder, which goes in the end. The figures in the documents come from clones of git,
#   rust-analyzer and ripgrep.
# Needs: bash 5, git, GNU time, awk. Queries are made from the repository: subjects of its commits and names that occur in it.
# Settings: ROUNDS (3) of indexing, COMMITS (10) for each kind of update, QUERIES (60), FOLLOWING (100) commits for growth.
# Read: the best round of indexing; of everything else the median and the 99th percentile.
set -euo pipefail

PROGRAM=$(realpath "${1:?the executable of codescout}")
BENCH=${2:+$(realpath "$2")}
REPO=$(realpath "${REPO:?a local clone}")
ROUNDS=${ROUNDS:-3} COMMITS=${COMMITS:-10} QUERIES=${QUERIES:-60} FOLLOWING=${FOLLOWING:-100}

FOLDER=$(mktemp -d)
trap 'rm -rf "$FOLDER"' EXIT
export CODESCOUT_SIDECAR=$FOLDER/sidecar GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=bench GIT_AUTHOR_EMAIL=bench@example.com GIT_COMMITTER_NAME=bench GIT_COMMITTER_EMAIL=bench@example.com
git clone -q --shared "$REPO" "$FOLDER/clone"
cd "$FOLDER/clone"
git config maintenance.auto false

# Runs a command without output and adds its time in µs to a list. A search without a match is no failure.
timed() {
    local list=$FOLDER/$1 started=$EPOCHREALTIME
    "${@:2}" >"$FOLDER/out" 2>"$FOLDER/err" || [ $? -eq 1 ] || { cat "$FOLDER/err" >&2; exit 2; }
    local ended=$EPOCHREALTIME
    echo $((${ended/./} - ${started/./})) >>"$list"
}

# The given percentile of a list, in ms.
at() { sort -n "$FOLDER/$1" | awk -v p="$2" '{ t[NR] = $1 } END { i = int(NR * p / 100 + 0.5); if (i < 1) i = 1; if (i > NR) i = NR; printf "%.1f", t[i] / 1000 }'; }

row() { printf '%-52s %s\n' "$1" "$2"; }
spread() { row "$1" "$(at "$2" 50) ms, p99 $(at "$2" 99) ms"; }
field() { grep -o "\"$1\": *[0-9]*" | head -1 | grep -o '[0-9]*$'; }
segments() { "$PROGRAM" status --json --ref HEAD | field segments; }
on_disk() { du -sb "$CODESCOUT_SIDECAR" | awk '{ printf "%.1f MB", $1 / 1e6 }'; }

row repository "$(basename "$REPO") at $(git rev-parse --short HEAD), $(git ls-files | wc -l) files"
row program "$("$PROGRAM" --version), $(nproc) processors"

# From nothing.
for _ in $(seq "$ROUNDS"); do
    rm -rf "$CODESCOUT_SIDECAR"
    timed nothing /usr/bin/time -f %M -o "$FOLDER/memory" "$PROGRAM" index -q --json --ref HEAD
    cat "$FOLDER/memory" >>"$FOLDER/memories"
done
TEXT=$(field text_bytes <"$FOLDER/out")
STORED=$(du -sb "$CODESCOUT_SIDECAR" | cut -f1)
BEST=$(at nothing 1)
row "index from nothing" "$(awk -v b="$TEXT" -v t="$BEST" 'BEGIN { printf "%.1f MB of text in %.2f s: %.1f MB/s", b / 1e6, t / 1e3, b / 1e3 / t }')"
row "  peak memory" "$(sort -n "$FOLDER/memories" | tail -1 | awk '{ printf "%.0f MiB", $1 / 1024 }')"
row "  sidecar / text" "$(awk -v s="$STORED" -v t="$TEXT" 'BEGIN { printf "%.1f MB, %.1f %%", s / 1e6, 100 * s / t }')"

# What a process costs that finds everything done.
for _ in $(seq "$COMMITS"); do timed start "$PROGRAM" --version; done
for _ in $(seq "$COMMITS"); do timed nothing_new "$PROGRAM" index -q --ref HEAD; done
spread "process that prints its version" start
spread "index, nothing new" nothing_new

# Source files of middling size, spread over the tree.
mapfile -t FILES < <(git ls-files -s | awk '$1 == "100644"' | cut -f2 | grep -E '\.(rs|c|h|py|go|js|ts|java|rb|sh|cs|php|cpp)$' |
    while read -r file; do size=$(stat -c %s "$file"); [ "$size" -gt 2000 ] && [ "$size" -lt 60000 ] && echo "$file"; done |
    awk '{ all[NR] = $0 } END { step = NR > 200 ? int(NR / 200) : 1; for (i = 1; i <= NR; i += step) print all[i] }')
edit() {
    local file=${FILES[$(($1 % ${#FILES[@]}))]}
    printf '// edited for the %sth time\n' "$1" >>"$file"
    git commit -qam "edit $1"
}

# Updates. git's own time is not in them: they begin when the commit is made.
for i in $(seq "$COMMITS"); do
    edit "$i"
    timed commit "$PROGRAM" index -q --json --ref HEAD
done
spread "update after a commit of one file" commit
git checkout -q --detach
for i in $(seq "$COMMITS"); do
    git mv "${FILES[$i]}" "${FILES[$i]%.*}_moved.${FILES[$i]##*.}"
    git commit -qm "move $i"
    timed rename "$PROGRAM" index -q --json --ref HEAD
    [ "$(field new_blobs <"$FOLDER/out")" -eq 0 ] || { echo "a rename made new blobs" >&2; exit 2; }
done
spread "update after a commit that renames" rename
git checkout -q -
git checkout -q --detach "HEAD~$((COMMITS + 20))"
timed switch_new "$PROGRAM" index -q --json --ref HEAD
row "switch to a branch 20 commits away" "$(at switch_new 50) ms, $(field new_blobs <"$FOLDER/out") new blobs"
for _ in $(seq "$COMMITS"); do
    git checkout -q -
    timed switch_known "$PROGRAM" index -q --json --ref HEAD
done
spread "switch between known branches" switch_known
git checkout -q --detach "$(git for-each-ref --format='%(refname)' refs/heads | head -1)"

# Queries.
git log --no-merges --format=%s -n 3000 | awk 'NF >= 4' | awk -v n="$((QUERIES / 2))" '{ all[NR] = $0 } END { step = NR / n; if (step < 1) step = 1; for (i = 1; i <= NR; i += step) print all[int(i)] }' >"$FOLDER/queries"
git grep -ohIE '\b[a-z]+_[a-z]+(_[a-z]+)?\b' -- "${FILES[@]:0:60}" | sort | uniq -c | awk '$1 < 20 { print $2 }' |
    awk -v n="$((QUERIES / 2))" '{ all[NR] = $0 } END { step = NR / n; if (step < 1) step = 1; for (i = 1; i <= NR; i += step) print all[int(i)] }' >"$FOLDER/names"
cat "$FOLDER/names" >>"$FOLDER/queries"
ask() {
    while IFS= read -r query; do
        timed "$1_head" "$PROGRAM" search -q --json --ref HEAD -- "$query"
        timed "$1_disk" "$PROGRAM" search -q --json -- "$query"
    done <"$FOLDER/queries"
}
"$PROGRAM" search -q --json -- warm >/dev/null || true
ask few
spread "query, new process, at HEAD" few_head
spread "query, new process, on the work tree" few_disk
[ -z "$BENCH" ] || "$BENCH" queries "$FOLDER/clone" "$FOLDER/queries"

# Text search against git and ripgrep.
search() {
    local kind=$1
    while IFS= read -r pattern; do
        timed "${kind}_codescout" "$PROGRAM" grep -q --limit 0 "${@:2}" --ref HEAD -- "$pattern"
        timed "${kind}_disk" "$PROGRAM" grep -q --limit 0 "${@:2}" -- "$pattern"
        timed "${kind}_git_head" git grep -InE "${@:2}" -e "$pattern" HEAD
        timed "${kind}_git" git grep -InE "${@:2}" -e "$pattern"
        [ -z "$(command -v rg)" ] || timed "${kind}_rg" rg -n "${@:2}" -e "$pattern" .
    done
}
compare() {
    spread "$2, codescout at HEAD" "$1_codescout"
    spread "$2, codescout on the work tree" "$1_disk"
    spread "$2, git grep at HEAD" "$1_git_head"
    spread "$2, git grep on the work tree" "$1_git"
    [ ! -e "$FOLDER/$1_rg" ] || spread "$2, rg on the work tree" "$1_rg"
}
head -20 "$FOLDER/names" | search literal -F
compare literal "literal"
head -20 "$FOLDER/names" | sed -E 's/^([a-z]+)_([a-z]+).*/\1_[a-z]+ *\\(/' | search regex
compare regex "regex"

# Growth: what many commits leave behind.
row "segments after the updates above" "$(segments)"
for i in $(seq "$FOLLOWING"); do
    edit "$((i + COMMITS))"
    timed following "$PROGRAM" index -q --json --ref HEAD
done
spread "update, $FOLLOWING commits on" following
row "  segments" "$(segments)"
ask many
spread "query, new process, $FOLLOWING commits on" many_head
row "  sidecar, with what waits to be removed" "$(on_disk)"
