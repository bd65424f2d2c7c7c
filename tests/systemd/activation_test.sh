#!/usr/bin/env bash
# A socket that somebody else has opened: the program is started by the first connection, serves it and those after it,
# tells that it is ready, and ends when it is asked to.
set -euo pipefail
belay=$1

work=$(mktemp -d)
pids=()
finish() {
    for pid in ${pids[@]+"${pids[@]}"}; do
        kill "$pid" 2>/dev/null || true
    done
    wait || true
    rm -rf "$work"
}
trap finish EXIT
fail() { echo "$*" >&2; cat "$work/log" >&2; exit 1; }
cd "$work"

# What the service manager would hear.
python3 - >told <<'END' &
import socket
import sys

heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
heard.bind("notify")
heard.settimeout(50)
while True:
    word = heard.recv(4096).decode()
    print(word, flush=True)
    if word.startswith("STOPPING"):
        sys.exit(0)
END
pids+=($!)
notify=$!
until [ -S notify ]; do
    kill -0 "$notify" || fail "nobody listens for notices"
done

mkfifo log.pipe
systemd-socket-activate -E "NOTIFY_SOCKET=$work/notify" -l "$work/belay.sock" \
    "$belay" serve --listen systemd --log-level warning 2>log.pipe >out &
server=$!
pids+=("$server")
exec {log}<log.pipe
IFS= read -r -t 20 line <&"$log"
echo "$line" >log
case $line in
"Listening on "*) ;;
*) fail "the socket was not opened" ;;
esac
cat <&"$log" >>log &
pids+=($!)

ask() { curl -sS --max-time 20 --unix-socket belay.sock "$@"; }
for _ in 1 2; do
    [ "$(ask http://localhost/readyz)" = ready ] || fail "it is not ready"
    ask http://localhost/hello/mcp -H 'Content-Type: application/json' -d '{"jsonrpc":"2.0","id":1,"method":"ping"}' >answer
    [ "$(cat answer)" = '{"jsonrpc":"2.0","id":1,"result":{}}' ] || fail "ping was answered with $(cat answer)"
done
kill "$server"
wait "$server" || fail "it ended with status $?"
wait "$notify" || fail "it did not tell that it stops"
[ "$(cat told)" = $'READY=1\nSTOPPING=1' ] || fail "the service manager heard: $(cat told)"
