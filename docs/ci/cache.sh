#!/bin/sh
# The index of this repository, kept in a folder that outlives the job. Arguments: the folder, and "save" in jobs that
# run only what people with write access to the repository have committed.
set -eu
store=${1:?the folder that keeps archives}
mode=${2:-read}
case $mode in read | save) ;; *) echo "cache.sh: $mode is neither read nor save" >&2 && exit 2 ;; esac

key=$(codescout ci key | head -n 1)
prefix=$(codescout ci key | tail -n 1)
mkdir -p "$store"

# The archive of this tree, else the newest one that this build can read.
archive="$store/$key.bundle"
newest=$(ls -t "$store/$prefix"*.bundle 2>/dev/null | head -n 1 || true)
if [ -f "$archive" ] || [ -z "$newest" ]; then
  newest=$archive
fi
# A damaged archive is reported and deleted, and the index is built anew.
codescout ci restore "$newest" || rm -f "$newest"
codescout index

# Your own commands go here: search, outline, serve, ...

if [ "$mode" = save ]; then
  codescout ci save "$archive"
fi
