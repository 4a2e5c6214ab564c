[ ! -x "${0%/*}/@EVENT@.codescout-orig" ] || exec "${0%/*}/@EVENT@.codescout-orig" "$@"
