#!/usr/bin/env bash
# A project outside the tree that has the source as a part of it: add_subdirectory, and no package.
set -euo pipefail
source=$1
compiler=$2
work=$3 # kept, so that what has not changed is not compiled again
fail() { echo "$*" >&2; exit 1; }

mkdir -p "$work/project"
cp "$source/examples/hello/hello.cpp" "$work/project/hello.cpp"
cat >"$work/project/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(outside LANGUAGES CXX)
add_subdirectory(${belay_source} belay EXCLUDE_FROM_ALL)
add_executable(hello hello.cpp)
target_link_libraries(hello PRIVATE belay::belay)
END
options=()
if command -v ccache >/dev/null; then
    options=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
    export CCACHE_BASEDIR=$work CCACHE_NOHASHDIR=1
fi
cmake -S "$work/project" -B "$work/build" -G Ninja -Dbelay_source="$source" -DCMAKE_CXX_COMPILER="$compiler" \
    -DCMAKE_CXX_FLAGS=-O0 -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=10 "${options[@]}"
cmake --build "$work/build"
"$source/examples/hello/smoke.sh" "$work/build/hello"
cmake --install "$work/build" --prefix "$work/installed"
[ -z "$(find "$work/installed" -type f 2>/dev/null)" ] || fail "it installs itself with the project"
