#!/bin/sh
# Signs a file, usually SHA256SUMS, with the owner's key. The signature is written beside it.
#
# Usage: sign.sh FILE
#
#   SIGNING_KEY       the private key itself; without it nothing is signed, which is said
#   SIGNING_TOOL      openssl (Ed25519, in PEM; writes FILE.sig), minisign (FILE.minisig) or cosign (FILE.sigstore.json)
#   SIGNING_PASSWORD  the password of the key; not for openssl
set -eu
file=${1:?usage: sign.sh FILE}
[ -f "$file" ] || { echo "sign.sh: no file $file" >&2; exit 1; }
if [ -z "${SIGNING_KEY:-}" ]; then
    echo "sign.sh: NOT SIGNED: $file: SIGNING_KEY is not set" >&2
    exit 0
fi
tool=${SIGNING_TOOL:-}
case $tool in
    openssl | minisign | cosign) ;;
    *) echo "sign.sh: SIGNING_TOOL is \"$tool\", not openssl, minisign or cosign" >&2; exit 1 ;;
esac
command -v "$tool" >/dev/null || { echo "sign.sh: no program $tool" >&2; exit 1; }

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
printf '%s\n' "$SIGNING_KEY" >"$folder/key"
password=${SIGNING_PASSWORD:-}
unset SIGNING_KEY SIGNING_PASSWORD
case $tool in
    openssl)
        signature=$file.sig
        openssl pkeyutl -sign -rawin -inkey "$folder/key" -in "$file" -out "$folder/signature"
        openssl pkey -in "$folder/key" -pubout -out "$folder/public"
        openssl pkeyutl -verify -rawin -pubin -inkey "$folder/public" -sigfile "$folder/signature" -in "$file" >&2
        ;;
    minisign)
        signature=$file.minisig
        printf '%s\n' "$password" | minisign -S -s "$folder/key" -m "$file" -x "$folder/signature" >&2
        ;;
    cosign)
        signature=$file.sigstore.json
        COSIGN_PASSWORD=$password cosign sign-blob --yes --key "$folder/key" --bundle "$folder/signature" "$file" >&2
        ;;
esac
[ -s "$folder/signature" ] || { echo "sign.sh: $tool wrote no signature" >&2; exit 1; }
cat "$folder/signature" >"$signature"
echo "sign.sh: signed: $signature" >&2
