#!/usr/bin/env bash
# Installs a build into a prefix, which the other tests use, and looks at what is there.
set -euo pipefail
build=$1
prefix=$2
source=$3
fail() { echo "$*" >&2; exit 1; }

rm -rf "$prefix"
cmake --install "$build" --prefix "$prefix" >/dev/null
cd "$prefix"

[ -x bin/belay ] || fail "the program is missing"
diff <(cd "$source/include" && find . -name '*.hpp' | sort) <(cd include && find . -type f | sort) \
    || fail "the installed headers are not those of include/"
archives=$(find . -name '*.a')
[ "$(basename "$archives")" = libbelay.a ] || fail "there should be one archive, libbelay.a: $archives"

# Objects of a build that optimises across files are one compiler's own language.
members=$(ar t "$archives" | wc -l)
objects=$(readelf -h "$archives" 2>/dev/null | grep -c 'Class: ' || true)
[ "$objects" -eq "$members" ] || fail "only $objects of the $members objects in libbelay.a are machine code"

# Nothing points back to where it was built.
found=$(grep -rlF -e "$source/" . || true)
[ -z "$found" ] || fail "the name of the source folder is in: $found"
