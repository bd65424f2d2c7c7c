#!/usr/bin/env bash
# Starts the example, answers what its tools ask, and calls them again as a client that cannot be asked.
. "$(dirname "$0")/../smoke_lib.sh"

start
# Calls a tool, answers the one question it asks with $4, and leaves what the stream said in `answer`.
call_and_answer() {
    local tool=$1 arguments=$2 method=$3 reply=$4 line question= caller
    rm -f events
    mkfifo events
    call 1 "$tool" "$arguments" >events &
    caller=$!
    exec {events}<events
    : >answer
    while IFS= read -r -t 20 line <&"$events"; do
        echo "$line" >>answer
        case $line in
        *"\"method\":\"$method\""*)
            question=$(sed -n 's/.*"id":\("[^"]*"\),"method".*/\1/p' <<<"$line")
            post_here "{\"jsonrpc\":\"2.0\",\"id\":$question,$reply}"
            ;;
        esac
    done
    exec {events}<&-
    wait "$caller"
    [ -n "$question" ]
}

open_session 2025-11-25 '{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}'
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

open_session 2025-11-25 '{}'
call 1 book_table '{"day":"Friday"}' >answer
grep -q 'then call book_table_for' answer
call 1 book_table_for '{"day":"Friday","wanted":{"people":2}}' >answer
grep -q 'Booked for Friday: 2 people.' answer
call 1 pay_deposit '{"day":"Friday"}' >answer
grep -q 'The deposit is paid at https://restaurant.example' answer
call 1 describe_dish '{"dish":"Soup"}' >answer
grep -q '"text":"Soup"' answer
call 1 where_to_save '{}' >answer
grep -q 'names no folder' answer
