#!/usr/bin/env bash
# Starts the example, calls its tool over HTTP, cancels a call that would take hours, and looks what is left of it.
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

mkdir tmp
export TMPDIR=$work/tmp
mkfifo said
"$program" --listen 127.0.0.1:0 --log-level warning >said &
server=$!
exec {said}<said
IFS= read -r -t 20 line <&"$said"
url=$(sed -n 's/^long_running 1\.0 serves MCP at \(http[^ ]*\).*/\1/p' <<<"$line")
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
    post "{\"jsonrpc\":\"2.0\",\"id\":$1,\"method\":\"tools/call\",\"params\":{\"name\":\"index_pages\",\"arguments\":$2,\"_meta\":{\"progressToken\":$1}}}" \
        -H "Mcp-Session-Id: $session"
}

call 1 '{"pages":20,"milliseconds":1}' >answer
grep -q '"logger":"index","data":"started"' answer
grep -q '"progressToken":1,"progress":20,"total":20,"message":"page 20"' answer
grep -q '"level":"debug","logger":"index","data":{"indexed":10}' answer
grep -q '"structuredContent":{"pages":20,"bytes":151}' answer
call 2 '{"pages":0}' >answer
grep -q '"text":"Invalid arguments for tool index_pages: /pages: expected integer between 1 and 100000"' answer
grep -q '"isError":true' answer

# The first progress says that it runs; then it is cancelled, and its stream ends with the error that says so.
mkfifo events
call 3 '{"pages":100000,"milliseconds":100}' >events &
caller=$!
exec {events}<events
is_cancelled=
while IFS= read -r -t 30 line <&"$events"; do
    case $line in
    *'"progressToken":3'*)
        if [ -z "$is_cancelled" ]; then
            [ "$(ls tmp)" ] # the scratch folder
            post '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}' \
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
wait "$server"
server=
[ -z "$(ls tmp)" ] # a cancelled tool cleans up
