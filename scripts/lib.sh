# What the scripts share. Sourced, not run.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

jobs=$(nproc)

. "$root/scripts/node.sh"
# Sanitizers look for llvm-symbolizer here.
PATH=$PATH:/usr/lib/llvm-19/bin
export PATH

say() { printf '%s\n' "$*"; }
fail() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# configure PRESET: once, and after a change of the presets; when a CMake file has changed, a build does it by itself.
configure() {
    if [ ! "$root/build/$1/build.ninja" -nt "$root/CMakePresets.json" ]; then
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
