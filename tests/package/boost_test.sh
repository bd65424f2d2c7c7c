#!/usr/bin/env bash
# What is installed takes every patch release of the Boost that it was built with, and refuses others: CMake and the
# compiler say what to do.
set -euo pipefail
prefix=$1
compiler=$2
libdir=$3
major=$4
minor=$5
fail() { echo "$*" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(outside LANGUAGES CXX)
find_package(belay REQUIRED)
message(STATUS "uses Boost ${Boost_VERSION_STRING}")
END
# boost NAME MINOR PATCH: one that says that it has this version.
boost() {
    mkdir -p "$work/$1/boost"
    cat >"$work/$1/BoostConfig.cmake" <<END
foreach(part IN ITEMS headers boost json)
  if(NOT TARGET Boost::\${part})
    add_library(Boost::\${part} INTERFACE IMPORTED)
  endif()
endforeach()
set(Boost_json_FOUND TRUE)
set(Boost_VERSION $major.$2.$3)
set(Boost_VERSION_STRING $major.$2.$3)
set(Boost_VERSION_MAJOR $major)
set(Boost_VERSION_MINOR $2)
END
    cat >"$work/$1/BoostConfigVersion.cmake" <<END
set(PACKAGE_VERSION $major.$2.$3)
set(PACKAGE_VERSION_COMPATIBLE TRUE)
END
    echo "#define BOOST_VERSION $((major * 100000 + $2 * 100 + $3))" >"$work/$1/boost/version.hpp"
}
boost patch "$minor" 77
boost newer $((minor + 1)) 0

configure() {
    cmake -S "$work" -B "$work/build-$1" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$compiler" -DBoost_DIR="$work/$1" \
        >"$work/said" 2>&1
}
configure patch || { cat "$work/said" >&2; fail "Boost $major.$minor.77 is refused by CMake"; }
grep -q "uses Boost $major.$minor.77" "$work/said" || fail "CMake uses another Boost than it was told: $(grep uses "$work/said")"
if configure newer; then
    fail "Boost $major.$((minor + 1)) is taken by CMake"
fi
tr -s ' \n' ' ' <"$work/said" | grep -q "built with Boost $major.$minor, and Boost $major.$((minor + 1)).0 was found. Name any" \
    || { cat "$work/said" >&2; fail "CMake refuses it for another reason"; }

export PKG_CONFIG_PATH=$prefix/$libdir/pkgconfig
read -ra flags < <(pkg-config --cflags belay)
compile() {
    "$compiler" -std=c++23 -isystem "$work/$1" "${flags[@]}" -fsyntax-only -x c++ - <<<'#include <belay/detail/boost_version.hpp>' \
        >"$work/said" 2>&1
}
compile patch || { cat "$work/said" >&2; fail "Boost $major.$minor.77 is refused by the header"; }
if compile newer; then
    fail "Boost $major.$((minor + 1)) is taken by the header"
fi
grep -q "built with Boost $major.$minor: compile with any" "$work/said" || { cat "$work/said" >&2; fail "the header does not say why"; }
grep -q boost_version.hpp "$prefix/include/belay/json.hpp" || fail "the headers do not ask which Boost it is"
