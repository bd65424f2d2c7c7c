#!/usr/bin/env bash
# Starts the example, answers what its tools ask, and calls them again as a client that cannot be asked.
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
url=$(sed -n 's/^ask 1\.0 serves MCP at \(http[^ ]*\).*/\1/p' <<<"$line")
[ -n "$url" ]

post() {
    local body=$1
    shift
    curl -sSN --max-time 30 "$url" -H 'Content-Type: application/json' \
        -H 'Accept: application/json, text/event-stream' -d "$body" "$@"
}
open() {
    post "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":$1,\"clientInfo\":{\"name\":\"smoke\",\"version\":\"0\"}}}" -D head >/dev/null
    session=$(sed -n 's/\r$//; s/^[Mm]cp-[Ss]ession-[Ii]d: *//p' head)
}
call() {
    post "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"$1\",\"arguments\":$2}}" \
        -H "Mcp-Session-Id: $session"
}
# Calls a tool, answers the one question it asks with $4, and leaves what the stream said in `answer`.
call_and_answer() {
    local tool=$1 arguments=$2 method=$3 reply=$4 line question= caller
    rm -f events
    mkfifo events
    call "$tool" "$arguments" >events &
    caller=$!
    exec {events}<events
    : >answer
    while IFS= read -r -t 20 line <&"$events"; do
        echo "$line" >>answer
        case $line in
        *"\"method\":\"$method\""*)
            question=$(sed -n 's/.*"id":\("[^"]*"\),"method".*/\1/p' <<<"$line")
            post "{\"jsonrpc\":\"2.0\",\"id\":$question,$reply}" -H "Mcp-Session-Id: $session"
            ;;
        esac
    done
    exec {events}<&-
    wait "$caller"
    [ -n "$question" ]
}

open '{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}'
call_and_answer book_table '{"day":"Friday"}' elicitation/create \
    '"result":{"action":"accept","content":{"people":4,"where":"outside"}}'
grep -q '"mode":"form","message":"A table for Friday","requestedSchema":{"type":"object"' answer
grep -q '"enum":\["inside","outside"\]' answer
grep -q 'Booked for Friday: 4 people, outside.' answer
call_and_answer book_table '{"day":"Friday"}' elicitation/create '"result":{"action":"decline"}'
grep -q 'Nothing was booked' answer
call_and_answer book_table '{"day":"Friday"}' elicitation/create \
    '"result":{"action":"accept","content":{"people":400}}'
grep -q 'not what was asked for: /people: expected integer between 1 and 20' answer
grep -q '"isError":true' answer
call_and_answer pay_deposit '{"day":"Friday"}' elicitation/create '"result":{"action":"accept"}'
grep -q '"mode":"url","message":"Please pay the deposit","url":"https://restaurant.example/pay?day=Friday","elicitationId":"deposit-Friday"' answer
grep -q 'The payment page was opened' answer
call_and_answer describe_dish '{"dish":"Soup"}' sampling/createMessage \
    '"result":{"role":"assistant","content":{"type":"text","text":"Warm."},"model":"m"}'
grep -q 'Soup: Warm.' answer
call_and_answer describe_dish '{"dish":"Soup"}' sampling/createMessage '"error":{"code":-1,"message":"refused"}'
grep -q 'written without a model: refused' answer
grep -q '"text":"Soup"' answer
call_and_answer where_to_save '{}' roots/list '"result":{"roots":[{"uri":"file:///home/me/menus","name":"menus"}]}'
grep -q 'would go to file:///home/me/menus' answer

open '{}'
call book_table '{"day":"Friday"}' >answer
grep -q 'then call book_table_for' answer
call book_table_for '{"day":"Friday","wanted":{"people":2}}' >answer
grep -q 'Booked for Friday: 2 people.' answer
call pay_deposit '{"day":"Friday"}' >answer
grep -q 'The deposit is paid at https://restaurant.example' answer
call describe_dish '{"dish":"Soup"}' >answer
grep -q '"text":"Soup"' answer
call where_to_save '{}' >answer
grep -q 'names no folder' answer
