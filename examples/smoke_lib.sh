# What the examples' smoke tests share. Sourced, not run; $1 is the example's program.
set -euo pipefail
program=$1

work=$(mktemp -d)
server=
finish() {
    if [ -n "$server" ]; then kill "$server" 2>/dev/null || true; wait "$server" || true; fi
    if [ -f "$work/log" ]; then cat "$work/log" >&2; fi
    rm -rf "$work"
}
trap finish EXIT
cd "$work" # no belay.toml here

# start [ARGUMENTS…]: starts the program on a free port; sets url. What it logs is in the file log.
start() {
    local line
    mkfifo said
    "$program" "$@" --listen 127.0.0.1:0 --log-level warning >said 2>log &
    server=$!
    exec {said}<said
    IFS= read -r -t 20 line <&"$said"
    url=$(sed -n "s/^${program##*/} 1\\.0 serves MCP at \\(http[^ ]*\\).*/\\1/p" <<<"$line")
    [ -n "$url" ]
}
# stop: the program ends by itself, with status 0.
stop() {
    local ending=$server
    server=
    kill "$ending"
    wait "$ending"
}
# post BODY [OPTIONS OF CURL…]
post() {
    local body=$1
    shift
    curl -sSN --max-time 30 "$url" -H 'Content-Type: application/json' \
        -H 'Accept: application/json, text/event-stream' -d "$body" "$@"
}
# open_session [REVISION [CAPABILITIES]]: sets session; the answer is in the file answer.
open_session() {
    post "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"${1:-2025-11-25}\",\"capabilities\":${2:-"{}"},\"clientInfo\":{\"name\":\"smoke\",\"version\":\"0\"}}}" -D head >answer
    session=$(sed -n 's/\r$//; s/^[Mm]cp-[Ss]ession-[Ii]d: *//p' head)
    post_here '{"jsonrpc":"2.0","method":"notifications/initialized"}'
}
# post_here BODY: in the session.
post_here() { post "$1" -H "Mcp-Session-Id: $session"; }
# call ID TOOL ARGUMENTS: a call whose progress has the id as its token. Prints what comes back.
call() {
    post_here "{\"jsonrpc\":\"2.0\",\"id\":$1,\"method\":\"tools/call\",\"params\":{\"name\":\"$2\",\"arguments\":$3,\"_meta\":{\"progressToken\":$1}}}"
}
# ask METHOD PARAMS: a request that is answered at once; the answer is in the file answer.
ask() { post_here "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"$1\",\"params\":$2}" >answer; }
# cancel_running ID TOOL ARGUMENTS [COMMAND…]: makes a call, cancels it once its first progress says that it runs (and
# COMMAND has looked), and reads its stream to the error that says so.
cancel_running() {
    local id=$1 line caller is_cancelled=
    mkfifo events
    call "$1" "$2" "$3" >events &
    caller=$!
    shift 3
    exec {events}<events
    while IFS= read -r -t 30 line <&"$events"; do
        case $line in
        *"\"progressToken\":$id"*)
            if [ -z "$is_cancelled" ]; then
                "${@:-true}"
                post_here "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":$id}}"
                is_cancelled=asked
            fi
            ;;
        *'"code":-32800'*) is_cancelled=told ;;
        esac
    done
    exec {events}<&-
    wait "$caller"
    [ "$is_cancelled" = told ]
}
