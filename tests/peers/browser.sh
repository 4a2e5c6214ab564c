#!/bin/sh
# Usage: browser.sh CODESCOUT [SCREENS]
# The pages of `codescout web` in Chromium: links, keyboard, accessibility, sizes. SCREENS is a folder for pictures of them.

here=$(cd "$(dirname "$0")" && pwd)
. "$here/install.sh"

install_browser
if [ -z "$CHROMEDRIVER" ]; then
    echo "skipped: pages in a browser (Chromium, its driver, axe-core or Python cannot be had)"
    exit 0
fi
python3 "$here/browser.py" "$1" "$CHROMEDRIVER" "$AXE" ${2:+"$2"}
