# What the scripts share. Sourced, not run.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# ccache cannot look into a precompiled header; these are the differences it may overlook there.
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime

# So that one clone's objects serve the next.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1

jobs=$(nproc)

. "$root/scripts/node.sh"
# Sanitizers look for llvm-symbolizer here.
PATH=$PATH:/usr/lib/llvm-19/bin
export PATH

say() { printf '%s\n' "$*"; }
fail() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# configure PRESET: once; a build configures again by itself when a CMake file has changed.
configure() {
    if [ ! -f "$root/build/$1/build.ninja" ]; then
        (cd "$root" && cmake --preset "$1")
    fi
}

# A prefix for what computes, so that it gives way to tests that run beside it.
give_way=()

# build PRESET [targets…]
build() {
    local preset=$1
    shift
    configure "$preset"
    (cd "$root" && ${give_way[@]+"${give_way[@]}"} cmake --build --preset "$preset" -j "$jobs" ${1:+--target "$@"})
}
