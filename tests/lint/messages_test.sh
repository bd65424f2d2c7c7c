#!/usr/bin/env bash
# What the compiler says of common mistakes in a tool: each must name the mistake in our words.
#
#   messages_test.sh COMPILER FLAGS…
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/mistakes.cpp" <<'CODE'
#include <belay/server.hpp>
using namespace belay;
struct plain { int a; };
struct nested { int a = 0; };
BOOST_DESCRIBE_STRUCT(nested, (), (a))
struct form { nested inner; };
BOOST_DESCRIBE_STRUCT(form, (), (inner))
struct holds { plain inner; };
BOOST_DESCRIBE_STRUCT(holds, (), (inner))
void add(server& s)
{
    s.tool("a", [] { return 3; });
    s.tool("b", []() -> task<std::string> { co_return "x"; });
    s.tool("c", [](int) { return std::string(); });
    s.tool("d", [](nested, int) { return std::string(); });
    s.tool("e", [n = 0]() mutable { return std::to_string(n++); });
    s.tool("f", [](holds) { return std::string(); });
    s.tool("g", [](call& on) -> task<std::string> {
        auto const got = co_await on.ask<form>("k", "?");
        co_return got ? "y" : "n";
    });
    s.resource("x://y", [](int, int) { return std::string(); });
}
CODE
limit=-ferror-limit=0
case $("$1" --version) in *Free\ Software*) limit=-fmax-errors=0 ;; esac
if "$@" "$limit" -fsyntax-only "$work/mistakes.cpp" >"$work/said" 2>&1; then
    echo "it compiled" >&2
    exit 1
fi
status=0
while IFS= read -r text; do
    if ! grep -qF -- "$text" "$work/said"; then
        echo "not said: $text" >&2
        status=1
    fi
done <<'TEXTS'
put any other value into a struct
a tool that is a coroutine takes belay::call& first
a tool's arguments are a described struct
a tool is R f(), R f(Args)
no `mutable` lambda
a struct needs BOOST_DESCRIBE_STRUCT
a form is a flat described struct
a resource or a prompt is R f()
TEXTS
[ "$status" -eq 0 ] || grep -E 'error' "$work/said" >&2
exit "$status"
