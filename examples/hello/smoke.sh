#!/usr/bin/env bash
# Starts the example, calls its tool once over HTTP, and checks what comes back.
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
url=$(sed -n 's/^hello 1\.0 serves MCP at \(http[^ ]*\).*/\1/p' <<<"$line")
[ -n "$url" ]

post() {
    local body=$1
    shift
    curl -sS --max-time 20 "$url" -H 'Content-Type: application/json' \
        -H 'Accept: application/json, text/event-stream' -d "$body" "$@"
}
post '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"smoke","version":"0"}}}' -D head >/dev/null
session=$(sed -n 's/\r$//; s/^[Mm]cp-[Ss]ession-[Ii]d: *//p' head)
post '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"countdown","arguments":{"from":1}}}' \
    -H "Mcp-Session-Id: $session" >answer
grep -q '"level":"info","logger":"countdown","data":"1"' answer
grep -q 'Lift-off' answer
