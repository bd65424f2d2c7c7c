#!/usr/bin/env bash
# Starts the example, calls its tool over HTTP, and cancels a call that would take minutes.
set -euo pipefail
program=$1

work=$(mktemp -d)
server=
finish() {
    if [ -n "$server" ]; then kill "$server" 2>/dev/null || true; wait "$server" || true; fi
    rm -rf "$work"
}
trap finish EXIT
cd "$work" # no belay.toml here

mkfifo said
"$program" --listen 127.0.0.1:0 --log-level warning >said &
server=$!
exec {said}<said
IFS= read -r -t 20 line <&"$said"
url=$(sed -n 's/^blocking 1\.0 serves MCP at \(http[^ ]*\).*/\1/p' <<<"$line")
[ -n "$url" ]

post() {
    local body=$1
    shift
    curl -sSN --max-time 30 "$url" -H 'Content-Type: application/json' \
        -H 'Accept: application/json, text/event-stream' -d "$body" "$@"
}
post '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"smoke","version":"0"}}}' -D head >/dev/null
session=$(sed -n 's/\r$//; s/^[Mm]cp-[Ss]ession-[Ii]d: *//p' head)
call() {
    post "{\"jsonrpc\":\"2.0\",\"id\":$1,\"method\":\"tools/call\",\"params\":{\"name\":\"count_primes\",\"arguments\":{\"below\":$2},\"_meta\":{\"progressToken\":$1}}}" \
        -H "Mcp-Session-Id: $session"
}

call 1 10000 >answer
grep -q '"progressToken":1,"progress":[0-9]*,"total":10000' answer
grep -q 'counted all below 10000' answer
grep -q '"structuredContent":{"primes":1229}' answer

# The first progress says that it runs; then it is cancelled, and its stream ends with the error that says so.
mkfifo events
call 2 1000000000 >events &
caller=$!
exec {events}<events
is_cancelled=
while IFS= read -r -t 30 line <&"$events"; do
    case $line in
    *'"progressToken":2'*)
        if [ -z "$is_cancelled" ]; then
            post '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}' \
                -H "Mcp-Session-Id: $session"
            is_cancelled=asked
        fi
        ;;
    *'"code":-32800'*) is_cancelled=told ;;
    esac
done
[ "$is_cancelled" = told ]
wait "$caller"

kill "$server"
wait "$server" # with 0: the function has heard of the cancel, so nothing holds the stop up
server=
