#!/usr/bin/env bash
# Proves that the await lint can fail: every bad_*.cpp has findings, no good_*.cpp has one.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
lint=$here/../../tools/await_lint.sh
wrong=0
for probe in "$here"/await_probes/*.cpp; do
    said=$("$lint" "$probe" -- -std=c++23 2>&1)
    status=$?
    case ${probe##*/} in
    bad_*) expected=1 ;;
    *) expected=0 ;;
    esac
    if [ "$status" -ne "$expected" ]; then
        echo "${probe##*/}: exit status $status instead of $expected"
        echo "$said"
        wrong=1
    fi
done
# A file that does not compile hides its findings; that is not a pass.
if "$lint" "$here/await_probes/missing.cpp" -- -std=c++23 >/dev/null 2>&1; then
    echo "a file that cannot be read passed"
    wrong=1
fi
exit $wrong
