#!/usr/bin/env bash
# One command with pkg-config's flags builds a server.
set -euo pipefail
prefix=$1
compiler=$2
export PKG_CONFIG_PATH=$prefix/$3/pkgconfig
hello=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

read -ra compile < <(pkg-config --cflags belay)
read -ra link < <(pkg-config --libs belay)
read -ra link_static < <(pkg-config --static --libs belay)
"$compiler" -std=c++23 -O2 "${compile[@]}" "$hello/hello.cpp" -o "$work/hello" "${link[@]}"
"$hello/smoke.sh" "$work/hello"
"$(dirname "$0")/unwinds.sh" "$work/hello"
"$compiler" -std=c++23 "${compile[@]}" -c "$hello/hello.cpp" -o "$work/hello.o"
"$compiler" "$work/hello.o" -o "$work/hello" "${link_static[@]}"
