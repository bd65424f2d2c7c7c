#!/usr/bin/env bash
# await-lint: finds expressions that g++ 12 miscompiles when they contain a co_await. docs/gcc12.md has the rule.
#
#   tools/await_lint.sh                       every source file with a co_await, by build/dev's compile commands
#   tools/await_lint.sh -p DIR FILE…          these files, by DIR's compile commands
#   tools/await_lint.sh FILE… -- FLAGS…       these files, with these compiler flags
#
# Exit status 1 with findings, 2 if a file could not be read by the compiler (which would hide findings).
set -euo pipefail

tools=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$tools")
query=${CLANG_QUERY:-clang-query-19}
commands=$root/build/dev
files=()
flags=()
while [ $# -gt 0 ]; do
    case $1 in
    -p) commands=$2; shift 2 ;;
    --) shift; flags=(-- "$@"); break ;;
    *) files+=("$1"); shift ;;
    esac
done
if [ ${#files[@]} -eq 0 ]; then
    # Templates in headers are seen through the files that use them.
    mapfile -t files < <(cd "$root" && grep -rl --include='*.cpp' co_await src examples | sed "s|^|$root/|" | sort)
fi
if [ ${#flags[@]} -eq 0 ] && [ ! -f "$commands/compile_commands.json" ]; then
    echo "await-lint: there is no $commands/compile_commands.json; configure that build first" >&2
    exit 2
fi
command -v "$query" >/dev/null || { echo "await-lint: $query is missing; scripts/setup installs it" >&2; exit 2; }

out=$(mktemp)
trap 'rm -f "$out"' EXIT
lint() {
    if [ ${#flags[@]} -gt 0 ]; then
        "$query" -f "$tools/await-lint.query" "$1" "${flags[@]}"
    else
        "$query" -f "$tools/await-lint.query" -p "$commands" "$1"
    fi
}
findings=0
for file in "${files[@]}"; do
    status=0
    lint "$file" >"$out" 2>&1 || status=$?
    if [ "$status" -ne 0 ] || grep -qE '(error:|Error parsing|Error while processing)' "$out"; then
        cat "$out"
        echo "await-lint: $file could not be read" >&2
        exit 2
    fi
    # A template is matched once per instantiation.
    found=$( (grep -E 'note: "?AWAIT-LINT' "$out" || true) | sort -u | wc -l)
    if [ "$found" -gt 0 ]; then
        grep -E 'note: "?AWAIT-LINT' "$out" | sort -u
        findings=$((findings + found))
    fi
done
echo "await-lint: ${#files[@]} files, $findings findings"
[ "$findings" -eq 0 ]
