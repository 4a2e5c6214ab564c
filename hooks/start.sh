(
    exec </dev/null >/dev/null 2>&1 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
    codescout=@PROGRAM@
    [ -x "$codescout" ] || codescout=codescout
    "$codescout" hooks run @EVENT@ "$@" &
) || :
