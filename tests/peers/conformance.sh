#!/bin/sh
# Usage: conformance.sh CODESCOUT [STACK]
# Ends with 1 if a check fails that is not about a fixture.

here=$(cd "$(dirname "$0")" && pwd)
. "$here/install.sh"
install_node
if [ -z "$NODE" ]; then
    echo "skipped: conformance (Node 22 cannot be had)"
    exit 0
fi
repo=$(sample_repository)
failed=0

# Scenarios that mean something for a server without the suite's fixtures.
GENERIC="server-initialize logging-set-level ping tools-list resources-list prompts-list completion-complete server-sse-multiple-streams
dns-rebinding-protection"

run() { # name, command…
    name=$1
    shift
    if out=$("$@" 2>&1); then
        echo "pass  $name"
    else
        echo "FAIL  $name"
        echo "$out" | tail -25
        failed=1
    fi
}

start "$1" serve --repo "$repo" --http 127.0.0.1:0 --no-token
echo "# the program, 0.1.16"
for scenario in $GENERIC; do
    run "$scenario" "$NODE" "$CONFORMANCE" server --url "$URL" --scenario "$scenario"
done
for revision in 2025-11-25 2026-07-28; do
    echo "# the program, 0.2.0-alpha.12, requirements of $revision"
    "$NODE" "$CONFORMANCE_NEXT" server --url "$URL" --requirements "$revision" \
        --expected-failures "$here/expected-$revision.yml" --timeout 30000 >"/tmp/conformance-$revision.log" 2>&1
    code=$?
    grep -iE 'passed|failed|total|unexpected' "/tmp/conformance-$revision.log" | tail -6
    [ $code -eq 0 ] || { echo "FAIL  requirements $revision"; failed=1; }
done
kill "$PID"
wait "$PID" 2>/dev/null

if [ -n "$2" ]; then
    start "$2" 127.0.0.1:0
    echo "# the door with the suite's fixtures, 0.1.16"
    "$NODE" "$CONFORMANCE" server --url "$URL" >/tmp/conformance-stack.log 2>&1
    code=$?
    tail -8 /tmp/conformance-stack.log
    [ $code -eq 0 ] || { echo "FAIL  stack 0.1.16"; failed=1; }
    for revision in 2025-11-25 2026-07-28; do
        echo "# the door with the suite's fixtures, 0.2.0-alpha.12, requirements of $revision"
        "$NODE" "$CONFORMANCE_NEXT" server --url "$URL" --requirements "$revision" --timeout 30000 \
            >"/tmp/conformance-stack-$revision.log" 2>&1
        code=$?
        grep -iE 'passed|failed|total|unexpected' "/tmp/conformance-stack-$revision.log" | tail -6
        [ $code -eq 0 ] || { echo "FAIL  stack requirements $revision"; failed=1; }
    done
    kill "$PID"
fi
rm -rf "$repo"
exit $failed
