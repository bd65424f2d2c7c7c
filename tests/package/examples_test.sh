#!/usr/bin/env bash
# The examples, copied away from the tree, built with find_package(belay) and run.
set -euo pipefail
prefix=$1
compiler=$2
examples=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cp -r "$examples" "$work/examples"
options=()
if command -v ccache >/dev/null; then
    options=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
    export CCACHE_BASEDIR=$work CCACHE_NOHASHDIR=1 # the folder is another one every time
fi
cmake -S "$work/examples" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Debug \
    -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$prefix" "${options[@]}"
cmake --build "$work/build"
ctest --test-dir "$work/build" --output-on-failure --no-tests=error
