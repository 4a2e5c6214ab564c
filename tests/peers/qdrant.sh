#!/bin/sh
# Usage: qdrant.sh
# The stub of the tests (tests/support/qdrant.rs) beside two others: the Python client's collections in memory, and Qdrant's own
# engine as the package qdrant-edge-py has it. The same points, the same questions, and the answers compared; then the test that a
# real server is given, with that engine behind qdrant_engine.py. Needs cargo, and python3 with venv.

here=$(cd "$(dirname "$0")" && pwd)
. "$here/install.sh"
venv="$PEERS/qdrant"

install_qdrant() {
    [ -x "$venv/bin/python" ] && "$venv/bin/python" -c 'import qdrant_client, numpy' 2>/dev/null && return
    python3 -m venv "$venv" && "$venv/bin/pip" install -q 'qdrant-client==1.20.0' numpy
} >/dev/null 2>&1

if ! install_qdrant; then
    echo "skipped: qdrant-client cannot be had"
    exit 0
fi
"$venv/bin/python" -c 'import qdrant_edge' 2>/dev/null || "$venv/bin/pip" install -q 'qdrant-edge-py==0.9.0' >/dev/null 2>&1
log=$(mktemp)
input=$(mktemp -u)
mkfifo "$input"
(cd "$here/../.." && cargo test -q --test qdrant_stub <"$input" >"$log" 2>&1) &
exec 3>"$input"
trap 'exec 3>&-; rm -f "$input" "$log"' EXIT
for _ in $(seq 6000); do
    url=$(sed -n 's/.*listening at \(http[^ ]*\).*/\1/p' "$log")
    [ -n "$url" ] && break
    sleep 0.1
done
[ -n "$url" ] || { echo "FAIL  the stub does not listen" && tail -5 "$log" && exit 1; }
"$venv/bin/python" "$here/qdrant.py" "$url"
failed=$?
"$venv/bin/python" -c 'import qdrant_edge' 2>/dev/null || exit $failed
# Then all of codescout's part with that engine in the place of the stub.
port=${QDRANT_PORT:-17633}
"$venv/bin/python" "$here/qdrant_engine.py" "$port" &
engine=$!
trap 'exec 3>&-; kill $engine 2>/dev/null; rm -f "$input" "$log"' EXIT
for _ in $(seq 100); do
    "$venv/bin/python" -c "import urllib.request as r; r.urlopen('http://127.0.0.1:$port/')" 2>/dev/null && break
    sleep 0.1
done
if (cd "$here/../.." && CODESCOUT_TEST_QDRANT_URL=http://127.0.0.1:$port cargo test -q --test it qdrant::course::a_real_qdrant) >"$log" 2>&1; then
    echo "pass  Qdrant's engine: clones put, take, remove and move vectors"
else
    echo "FAIL  Qdrant's engine: clones put, take, remove and move vectors" && tail -20 "$log"
    failed=1
fi
exit $failed
