#!/bin/sh
# Usage: qdrant.sh [URL]
# Compares a fleet on the stub of the tests with one on a Qdrant server, or on Qdrant's own engine (the package qdrant-edge-py behind
# qdrant_engine.py). Needs cargo, and python3 with venv.

here=$(cd "$(dirname "$0")" && pwd)
url=$1
if [ -z "$url" ]; then
    . "$here/install.sh"
    venv="$PEERS/qdrant"
    [ -x "$venv/bin/python" ] || python3 -m venv "$venv" >/dev/null 2>&1
    "$venv/bin/python" -c 'import qdrant_edge' 2>/dev/null || "$venv/bin/pip" install -q 'qdrant-edge-py==0.9.0' >/dev/null 2>&1
    if ! "$venv/bin/python" -c 'import qdrant_edge' 2>/dev/null; then
        echo "skipped: qdrant-edge-py cannot be had"
        exit 0
    fi
    port=${QDRANT_PORT:-17633}
    url=http://127.0.0.1:$port
    "$venv/bin/python" "$here/qdrant_engine.py" "$port" &
    trap "kill $! 2>/dev/null" EXIT
    for _ in $(seq 100); do
        "$venv/bin/python" -c "import urllib.request as r; r.urlopen('$url/')" 2>/dev/null && break
        sleep 0.1
    done
fi
cd "$here/../.." && CODESCOUT_TEST_QDRANT_URL=$url cargo test -q --test it fleet::a_real_qdrant
