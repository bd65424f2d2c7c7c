#!/usr/bin/env bash
# Each public header can be included alone, and brings in no library that only the rooms use.
set -euo pipefail
prefix=$1
compiler=$2
export PKG_CONFIG_PATH=$prefix/$3/pkgconfig
fail() { echo "$*" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

private='/(boost/beast|boost/asio/(ip|ssl|local|posix)|prometheus|fmt|CLI|toml\+\+)/|/boost/asio\.hpp$'
read -ra flags < <(pkg-config --cflags belay)
flags+=(-std=c++23 -x c++)
status=0
for header in "$prefix"/include/belay/*.hpp; do
    name=belay/${header##*/}
    "$compiler" "${flags[@]}" -Wall -Werror -fsyntax-only -MD -MF "$work/used" - <<<"#include <$name>" \
        || fail "<$name> does not compile alone"
    found=$(tr ' ' '\n' <"$work/used" | grep -E "$private" || true)
    if [ -n "$found" ]; then
        echo "<$name> brings in $(wc -l <<<"$found") headers that no user of it should pay for: $(sed -n 1p <<<"$found")"
        status=1
    fi
done
exit "$status"
