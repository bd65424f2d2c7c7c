#!/usr/bin/env bash
# Both ways to find the package say its version, and CMake refuses another one.
set -euo pipefail
prefix=$1
compiler=$2
libdir=$3
version=$4
fail() { echo "$*" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

found=$(PKG_CONFIG_PATH=$prefix/$libdir/pkgconfig pkg-config --modversion belay)
[ "$found" = "$version" ] || fail "pkg-config says $found, not $version"

cat >"$work/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(outside LANGUAGES CXX)
find_package(belay ${wanted} REQUIRED)
message(STATUS "found ${belay_VERSION}")
END
configure() {
    cmake -S "$work" -B "$work/build-$1" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$compiler" -Dwanted="$1" >"$work/said" 2>&1
}
configure "$version" || { cat "$work/said" >&2; fail "version $version is not found"; }
grep -q "found $version" "$work/said" || fail "another version was found: $(grep found "$work/said")"
if configure 99.0; then
    fail "$version was taken for 99.0"
fi
grep -q 'requested version "99.0"' "$work/said" || { cat "$work/said" >&2; fail "refused for another reason"; }
