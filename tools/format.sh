#!/usr/bin/env bash
# Formats the C++ files of the project in place; with --check, only says which differ (exit status 1).
set -euo pipefail
cd "$(dirname "$0")/.."
format=${CLANG_FORMAT:-clang-format-19}
mapfile -t files < <(find src include examples tests bench cmake -name node_modules -prune -o \( -name '*.cpp' -o -name '*.hpp' \) -print | sort)
if [ "${1:-}" != --check ]; then
    "$format" -i "${files[@]}"
    exit
fi
differing=0
for file in "${files[@]}"; do
    if ! "$format" "$file" | cmp -s - "$file"; then
        echo "$file"
        differing=$((differing + 1))
    fi
done
echo "format: ${#files[@]} files, $differing differ; tools/format.sh mends them"
[ "$differing" -eq 0 ]
