#!/usr/bin/env bash
# headers_test.sh finds a header that is too heavy, and one that cannot be included alone.
set -euo pipefail
prefix=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$work/include/belay" "$work/$(dirname "$3")"
cp -r "$prefix/$3" "$work/$3"

refused() { # refused TEXT MESSAGE
    echo "$1" >"$work/include/belay/probe.hpp"
    if "$here/headers_test.sh" "$work" "$2" "$3" >"$work/said" 2>&1; then
        echo "accepted: $1" >&2
        return 1
    fi
    grep -q "$4" "$work/said" || { cat "$work/said" >&2; return 1; }
}
refused '#include <boost/asio/ip/tcp.hpp>' "$2" "$3" 'brings in'
refused '#include <fmt/core.h>' "$2" "$3" 'brings in'
refused 'inline std::string text;' "$2" "$3" 'does not compile alone'
