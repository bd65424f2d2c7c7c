#!/usr/bin/env bash
# Runs docs/examples/nginx.conf, with its addresses replaced, before a real server: events pass while the call is
# running, a cut reaches the server, and a resume through the proxy gets the rest.
set -euo pipefail
belay=$1
nginx=$2
root=$(cd "$(dirname "$0")/../.." && pwd)

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
fail() { echo "$*" >&2; cat "$work/nginx.log" >&2 2>/dev/null || true; exit 1; }
cd "$work"

mkfifo said
"$belay" serve --listen 127.0.0.1:0 --allow-host mcp.example.com --log-level warning >said &
pids+=($!)
exec {said}<said
IFS= read -r -t 20 line <&"$said"
port=$(sed -n 's|.* serves MCP at http://127.0.0.1:\([0-9]*\)/mcp.*|\1|p' <<<"$line")
[ -n "$port" ] || fail "the server did not start: $line"

# nginx listens on a socket file: no port has to be guessed.
{
    echo "worker_processes 1; pid $work/nginx.pid; error_log $work/nginx.log info;"
    [ "$(id -u)" -ne 0 ] || echo "user root;" # to reach this folder
    echo "events { }"
    echo "http { access_log off;"
    for kind in client_body proxy fastcgi uwsgi scgi; do echo "${kind}_temp_path $work/$kind;"; done
    sed -e '/ssl_certificate/d' -e "s|listen 443 ssl;|listen unix:$work/gate;|" -e "s|127.0.0.1:3000|127.0.0.1:$port|" \
        "$root/docs/examples/nginx.conf"
    echo "}"
} >nginx.conf
grep -q "listen unix:" nginx.conf || fail "the example has another listen line now"
# It returns when it listens.
"$nginx" -c "$work/nginx.conf" -p "$work" 2>nginx.out || fail "nginx does not take the example: $(cat nginx.out)"
pids+=("$(cat nginx.pid)")

through_proxy=(curl -sS --max-time 30 --unix-socket "$work/gate" http://mcp.example.com/mcp)
as_post=(-H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' -d)
direct() { curl -sS --max-time 30 "http://127.0.0.1:$port/$1"; }
# A counter of the server, by its name with labels.
metric() { direct metrics | sed -n "s/^$1 //p"; }

"${through_proxy[@]}" "${as_post[@]}" '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"proxy","version":"0"}}}' \
    -D head -o answer
session=$(sed -n 's/\r$//; s/^[Mm]cp-[Ss]ession-[Ii]d: *//p' head)
[ -n "$session" ] || fail "no session: $(cat head answer)"

# The tool says something every 100 ms for 3 s. What is read here was written while it runs.
mkfifo stream
"${through_proxy[@]}" "${as_post[@]}" '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"utility-notifications","arguments":{"durationSeconds":3,"intervalMs":100,"messagePrefix":"m"}}}' \
    -H "Mcp-Session-Id: $session" -N >stream &
caller=$!
pids+=("$caller")
exec {stream}<stream
last=
for _ in $(seq 200); do
    IFS= read -r -t 20 line <&"$stream" || fail "the stream ended early"
    line=${line%$'\r'}
    case $line in
    id:*) last=${line#id: } ;;
    *'"m 3/30 '*) break ;;
    esac
done
[ "$(metric belay_calls_running)" = 1 ] || fail "the call had ended before its third message arrived: something buffers"
kill "$caller"
wait "$caller" 2>/dev/null || true
# The server learns it from the proxy, on its own time; a resume before that would take the stream over instead.
for _ in $(seq 1000); do
    closed=$(metric 'belay_stream_connections_closed_total{reason="peer_gone"}')
    [ "${closed:-0}" = 0 ] || break
done
[ "${closed:-0}" = 1 ] || fail "the cut did not reach the server"

"${through_proxy[@]}" -H 'Accept: text/event-stream' -H "Mcp-Session-Id: $session" -H "Last-Event-ID: $last" -N >rest
numbers=$(sed -n 's|.*"data":"m \([0-9]*\)/30.*|\1|p' rest | tr '\n' ' ')
[ "$numbers" = "$(seq 4 30 | tr '\n' ' ')" ] || fail "after $last came: $numbers"
grep -q '"id":1,"result"' rest || fail "no result"
