#!/bin/sh
# Usage: clients.sh CODESCOUT
# The Python SDK in every mode, and the Inspector in both eras.

here=$(cd "$(dirname "$0")" && pwd)
. "$here/install.sh"
codescout=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
repo=$(sample_repository)
failed=0
start "$codescout" serve --repo "$repo" --http 127.0.0.1:0 --no-token

install_python
if [ -z "$PYTHON" ]; then
    echo "skipped: Python SDK (mcp 2.3.0 cannot be had)"
else
    "$PYTHON" "$here/clients.py" "$codescout" "$repo" "$URL" 2>/dev/null || failed=1
fi

install_node
if [ -z "$NODE" ]; then
    echo "skipped: Inspector (Node 22 cannot be had)"
else
    inspect() { # what, era, arguments…
        what=$1 era=$2
        shift 2
        # Only the list can be looked at strictly.
        [ "$what" = tools/list ] && set -- "$@" --strict
        if out=$("$NODE" "$INSPECTOR" --cli "$codescout" serve --repo "$repo" --protocol-era "$era" "$@" 2>&1); then
            echo "pass  inspector $era stdio $what"
        else
            echo "FAIL  inspector $era stdio $what" && echo "$out" | tail -15 && failed=1
        fi
        if out=$("$NODE" "$INSPECTOR" --cli "$URL" --transport http --protocol-era "$era" "$@" 2>&1); then
            echo "pass  inspector $era http $what"
        else
            echo "FAIL  inspector $era http $what" && echo "$out" | tail -15 && failed=1
        fi
    }
    for era in legacy modern; do
        inspect tools/list $era --method tools/list
        inspect tools/call $era --method tools/call --tool-name search --tool-arg 'query=cut text into tokens'
        inspect resources/list $era --method resources/list
        inspect prompts/list $era --method prompts/list
    done
fi
kill "$PID"
rm -rf "$repo"
exit $failed
