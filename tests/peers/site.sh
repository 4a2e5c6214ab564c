#!/bin/sh
# Usage: site.sh [FOLDER]
# Builds the documents as a site in FOLDER with mdBook, and checks that every link in it leads to a file and a heading.

here=$(cd "$(dirname "$0")" && pwd)
. "$here/install.sh"
root=$(cd "$here/../.." && pwd)
book=$(command -v mdbook || echo "$PEERS/mdbook/bin/mdbook")
[ -x "$book" ] || nice cargo install --quiet --locked --no-default-features --root "$PEERS/mdbook" mdbook@0.4.52 >/dev/null 2>&1
if ! [ -x "$book" ]; then
    echo "skipped: site (mdbook cannot be had)"
    exit 0
fi

stage=$(mktemp -d)
trap 'rm -r "$stage"' EXIT
site=${1:-$stage/book}
mkdir "$stage/src" "$stage/src/hooks"
cp "$root/docs/book.toml" "$stage"
cp -r "$root/README.md" "$root/LICENSE" "$root/docs" "$stage/src"
cp "$root/hooks/start.sh" "$stage/src/hooks"
# mdBook writes README.md as index.html, but not so in links.
sed -i 's/\](\(\(\.\.\|docs\)\/\)\{0,1\}README\.md/](\1index.md/g' "$stage"/src/README.md "$stage"/src/docs/*.md
# The list of documents is the table of contents.
{
    echo '[codescout](README.md)'
    echo '[documents](docs/README.md)'
    sed -n -e 's/^## /# /p' -e 's/^| \[\([^]]*\)\](\([^)]*\)).*/- [\1](docs\/\2)/p' "$root/docs/README.md"
} >"$stage/src/SUMMARY.md"
"$book" build --dest-dir "$(mkdir -p "$site" && cd "$site" && pwd)" "$stage" >"$stage/log" 2>&1 || { cat "$stage/log"; exit 1; }

python3 - "$site" <<'EOF'
import pathlib, re, sys, urllib.parse

site = pathlib.Path(sys.argv[1]).resolve()
pages = {page: page.read_text() for page in site.rglob("*.html") if page.name not in ("404.html", "print.html", "toc.html")}
wrong, n_links = [], 0
for page, text in pages.items():
    for link in re.findall(r'<(?:a|img)\b[^>]*?(?:href|src)="([^"]+)"', text):
        path, _, heading = urllib.parse.unquote(link).partition("#")
        if re.match(r"[a-z]+:", path):
            continue
        n_links += 1
        target = (page.parent / path).resolve() if path else page
        target = target / "index.html" if target.is_dir() else target
        if not target.is_file() or heading and f'id="{heading}"' not in pages.get(target, ""):
            wrong.append(f"{page.relative_to(site)}: {link}")
print(*wrong, f"{'fail' if wrong else 'pass'}  {len(pages)} pages, {n_links} links, {len(wrong)} wrong", sep="\n")
sys.exit(bool(wrong) or not n_links)
EOF
