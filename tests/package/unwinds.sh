#!/usr/bin/env bash
# Stops the server in the middle of a call: the library's compiler throws through the coroutine that the user's compiler
# made.
#
#   unwinds.sh PROGRAM    the example hello
set -euo pipefail
program=$1
fail() { echo "$*" >&2; exit 1; }
work=$(mktemp -d)
pids=()
finish() {
    for pid in ${pids[@]+"${pids[@]}"}; do
        kill "$pid" 2>/dev/null || true
    done
    wait
    rm -rf "$work"
}
trap finish EXIT
cd "$work" # no belay.toml here

mkfifo said stream
"$program" --listen 127.0.0.1:0 --drain 10ms --log-level error >said &
server=$!
pids+=("$server")
exec {said}<said
IFS= read -r -t 20 line <&"$said"
url=$(sed -n 's/.* serves MCP at \(http[^ ]*\).*/\1/p' <<<"$line")
[ -n "$url" ] || fail "the server did not start: $line"

post=(curl -sS -N --max-time 20 "$url" -H 'Content-Type: application/json'
    -H 'Accept: application/json, text/event-stream' -d)
"${post[@]}" '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"unwinds","version":"0"}}}' \
    -D head -o /dev/null
session=$(sed -n 's/\r$//; s/^[Mm]cp-[Ss]ession-[Ii]d: *//p' head)
"${post[@]}" '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"countdown","arguments":{"from":60}}}' \
    -H "Mcp-Session-Id: $session" >stream &
pids+=($!)
exec {stream}<stream
while IFS= read -r -t 20 line <&"$stream"; do
    case $line in
    *'"data":"60"'*) kill "$server" ;; # it runs, and sleeps next
    *'"belay/ended"'*) break ;;
    esac
done
[[ $line == *'"reason":"interrupted"'* ]] || fail "the call did not end as interrupted: $line"
status=0
wait "$server" || status=$?
[ "$status" -eq 0 ] || fail "the server ended with status $status"
