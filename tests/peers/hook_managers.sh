#!/usr/bin/env bash
# codescout's hooks beside the real husky, lefthook and pre-commit.
#
#   tests/peers/hook_managers.sh target/release/codescout
#
# What: each manager is installed into a repository of its own in a temporary folder, before and after codescout's hooks. Checked:
#   whose hooks git calls, that a commit is indexed, what `codescout hooks status` says of it, and that uninstalling leaves the
#   manager's files as they were.
# Needs: bash, git, and for each manager its registry: npm (husky, lefthook), python3 with venv (pre-commit). A manager that cannot be
#   had is skipped aloud.
# Exit code: 0 if all that was tried holds, 1 if not.
set -uo pipefail

PROGRAM=$(realpath "${1:?the executable of codescout}")
FOLDER=$(mktemp -d)
trap 'rm -rf "$FOLDER"' EXIT
export HOME=$FOLDER/home GIT_CONFIG_NOSYSTEM=1 npm_config_cache=$FOLDER/npm npm_config_update_notifier=false
export GIT_AUTHOR_NAME=peer GIT_AUTHOR_EMAIL=peer@example.com GIT_COMMITTER_NAME=peer GIT_COMMITTER_EMAIL=peer@example.com
# husky and lefthook have to find the program by its name.
export PATH=$FOLDER/bin:$PATH
mkdir -p "$FOLDER/home" "$FOLDER/bin"
ln -s "$PROGRAM" "$FOLDER/bin/codescout"
FAILED=0 CHECKED=0

check() { # what, command…
    CHECKED=$((CHECKED + 1))
    if "${@:2}" >"$FOLDER/out" 2>&1; then echo "  ok      $1"; else echo "  FAILED  $1"; sed 's/^/          /' "$FOLDER/out"; FAILED=1; fi
}
skip() { echo "SKIPPED: $1"; }
not() { ! "$@"; }

# A repository with a package.json, in which the next commands run.
new_repo() {
    echo "$1"
    rm -rf "$FOLDER/repo" && git init -q "$FOLDER/repo" && cd "$FOLDER/repo" || exit 2
    printf '{ "name": "peer", "version": "1.0.0", "private": true }\n' >package.json
    printf 'node_modules\n' >.gitignore
    git add -A && git commit -qm start
}

# Whether the commit that is checked out is indexed by a hook within a minute.
is_indexed() {
    local head
    head=$(git rev-parse HEAD)
    for _ in $(seq 600); do
        status | grep -q "\"outcome\":\"indexed\",\"commit\":\"$head\"" && return 0
        sleep 0.1
    done
    codescout hooks status
    return 1
}
is_not_indexed() {
    sleep 2
    not grep -q "$(git rev-parse HEAD)" .codescout/log/hooks.log .git/codescout-hooks/hooks.log
}
commit() { echo "pub fn $1() {}" >"$1.rs" && git add -A && git commit -qm "$1" >/dev/null 2>&1; }
# Its exit code says whether all hooks are called, which is not always what is asked.
status() { codescout hooks status --json || true; }
state() { status | grep -o "\"event\":\"$1\"[^}]*" | grep -q "\"state\":\"$2\",\"called\":$3"; }
snapshot() { find .git/hooks .husky -type f -not -name '*.sample' -exec sha256sum {} + 2>/dev/null | sort; }

have_npm() { command -v npm >/dev/null && timeout 120 npm install --silent --no-audit --no-fund --save-dev "$1" >"$FOLDER/npm.log" 2>&1; }

husky() {
    new_repo husky
    codescout hooks install >/dev/null
    have_npm husky || { skip "husky cannot be had from npm"; return; }
    echo "  $(node -p "'husky ' + require('./node_modules/husky/package.json').version")"
    timeout 60 npx --no-install husky init >/dev/null
    echo "echo theirs >>told" >.husky/post-commit
    echo told >>.gitignore
    echo .husky/pre-commit >>.gitignore && rm -f .husky/pre-commit
    snapshot >"$FOLDER/before"
    check "core.hooksPath hides ours, and status says so" not codescout hooks status
    commit unseen
    check "a commit is not indexed" is_not_indexed
    check "husky's own hook is called" grep -q theirs told
    codescout hooks install >"$FOLDER/plan"
    check "install names the line for .husky/post-commit" grep -q 'husky/post-commit: (codescout hooks run post-commit' "$FOLDER/plan"
    check "and writes nothing" test "$(snapshot)" = "$(cat "$FOLDER/before")"
    check "install --husky" codescout hooks install --husky
    check "status" codescout hooks status
    rm told
    commit seen
    check "a commit is indexed" is_indexed
    check "husky's own hook is still called" grep -q theirs told
    timeout 60 npx --no-install husky >/dev/null
    check "husky installed again: still called" codescout hooks status
    HUSKY=0 commit switched_off
    check "HUSKY=0: not indexed by a hook, found by a question" codescout grep -l switched_off
    codescout hooks uninstall >/dev/null
    check "uninstall: husky's files are as before" test "$(snapshot)" = "$(grep -v .git/hooks "$FOLDER/before")"
}

lefthook() {
    new_repo lefthook
    codescout hooks install >/dev/null
    printf 'post-commit:\n  commands:\n    theirs:\n      run: echo theirs >>told\n' >lefthook.yml
    echo told >>.gitignore
    have_npm lefthook || { skip "lefthook cannot be had from npm"; return; }
    echo "  lefthook $(npx --no-install lefthook version)"
    timeout 60 npx --no-install lefthook install >/dev/null 2>&1
    check "ours was renamed to post-commit.old" test -e .git/hooks/post-commit.old
    check "status says so" state post-commit replaced false
    check "hooks that lefthook does not manage are called" state post-checkout own true
    commit unseen
    check "a commit is not indexed" is_not_indexed
    codescout hooks install >"$FOLDER/plan"
    check "install prints the snippet" grep -q 'run: codescout hooks run post-commit' "$FOLDER/plan"
    # The snippet as it is printed, below the command that is there.
    sed -n '/^    codescout:/,/run:/p' "$FOLDER/plan" >>lefthook.yml
    timeout 60 npx --no-install lefthook install >/dev/null 2>&1
    check "with the snippet: status" codescout hooks status
    rm -f told
    # Its output is captured: a run that kept it open would be waited for.
    check "a captured commit" timeout 60 bash -c 'echo "pub fn seen() {}" >seen.rs && git add -A && out=$(git commit -qm seen 2>&1)'
    check "a commit is indexed" is_indexed
    check "lefthook's own command is called" grep -q theirs told
    codescout hooks uninstall >/dev/null
    check "uninstall: nothing of ours is left" not grep -rq '>>> codescout >>>' .git/hooks
    check "uninstall: lefthook's hook stays" grep -q lefthook .git/hooks/post-commit
}

pre_commit() {
    new_repo pre-commit
    python3 -m venv "$FOLDER/venv" >/dev/null 2>&1 &&
        timeout 300 "$FOLDER/venv/bin/pip" install -q pre-commit >"$FOLDER/pip.log" 2>&1 || { skip "pre-commit cannot be had from PyPI"; return; }
    local pre_commit=$FOLDER/venv/bin/pre-commit
    echo "  $("$pre_commit" --version)"
    printf 'repos:\n- repo: local\n  hooks:\n  - id: theirs\n    name: theirs\n    entry: sh -c "echo theirs >>told"\n    language: system\n    stages: [post-commit]\n    always_run: true\n' >.pre-commit-config.yaml
    echo told >>.gitignore
    codescout hooks install >/dev/null
    "$pre_commit" install --hook-type post-commit >/dev/null
    check "ours was renamed to post-commit.legacy" test -e .git/hooks/post-commit.legacy
    check "status: still called" codescout hooks status
    check "install changes nothing" bash -c 'codescout hooks install | grep "post-commit  unchanged"'
    commit first
    check "a commit is indexed" is_indexed
    check "pre-commit's own hook is called" grep -q theirs told
    codescout hooks uninstall >/dev/null
    check "uninstall: pre-commit's hook stays" grep -q pre-commit .git/hooks/post-commit

    rm -rf .git/hooks told
    "$pre_commit" install --hook-type post-commit >/dev/null
    cp -p .git/hooks/post-commit "$FOLDER/theirs"
    check "install after pre-commit" codescout hooks install
    check "status: lines in its script" state post-commit added true
    commit second
    check "a commit is indexed" is_indexed
    check "pre-commit's own hook is called" grep -q theirs told
    codescout hooks uninstall >/dev/null
    check "uninstall: pre-commit's hook is as before" cmp .git/hooks/post-commit "$FOLDER/theirs"
}

husky
lefthook
pre_commit
echo "$CHECKED checks, $([ $FAILED -eq 0 ] && echo "all hold" || echo "some FAILED")"
exit $FAILED
