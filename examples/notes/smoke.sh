#!/usr/bin/env bash
# Starts the example and uses each of its parts over HTTP.
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
url=$(sed -n 's/^notes 1\.0 serves MCP at \(http[^ ]*\).*/\1/p' <<<"$line")
[ -n "$url" ]

post() {
    local body=$1
    shift
    curl -sSN --max-time 30 "$url" -H 'Content-Type: application/json' \
        -H 'Accept: application/json, text/event-stream' -d "$body" "$@"
}
open() {
    post "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"$1\",\"capabilities\":{},\"clientInfo\":{\"name\":\"smoke\",\"version\":\"0\"}}}" -D head >answer
    session=$(sed -n 's/\r$//; s/^[Mm]cp-[Ss]ession-[Ii]d: *//p' head)
    post '{"jsonrpc":"2.0","method":"notifications/initialized"}' -H "Mcp-Session-Id: $session"
}
ask() {
    post "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"$1\",\"params\":$2}" -H "Mcp-Session-Id: $session" >answer
}
call() {
    ask tools/call "{\"name\":\"$1\",\"arguments\":$2}"
}

open 2025-11-25
grep -q '"title":"Notebook"' answer
ask tools/list '{}'
grep -q '"annotations":{"readOnlyHint":true,"openWorldHint":false}' answer
grep -q '"at_most":{"type":"integer","description":"How many notes to give","minimum":1,"maximum":100}' answer

call add_note '{"title":"Not Good","text":"x"}'
grep -q 'small letters' answer
grep -q '"isError":true' answer
call add_note '{"title":"food","text":"bread and milk"}'
grep -q 'Kept.' answer
call find_notes '{"word":"milk"}'
grep -q '"structuredContent":{"notes":\[{"title":"food","length":14}\]}' answer
call find_notes '{"word":"milk","order":"colour"}'
grep -q '/order: expected one of' answer
call show_note '{"title":"food"}'
grep -q '"type":"resource_link","uri":"notes://food"' answer
grep -q '"_meta":{"notes/length":14}' answer
call show_note '{"title":"none"}'
grep -q 'There is no note none' answer
call count_words '{"text":"one two"}'
grep -q '"structuredContent":{"words":2}' answer
call count_words '{}'
grep -q '"isError":true' answer

ask resources/list '{}'
grep -q '"uri":"notes://food"' answer
ask resources/read '{"uri":"notes://food"}'
grep -q '"text":"bread and milk"' answer
ask prompts/get '{"name":"summarise","arguments":{"title":"food"}}'
grep -q '"text":"Summarise this note, short."' answer
ask prompts/get '{"name":"summarise","arguments":{}}'
grep -q 'Invalid arguments for prompt summarise: /title: required' answer
ask prompts/get '{"name":"summarise","arguments":{"title":"none"}}'
grep -q '"code":-32602' answer
ask completion/complete '{"ref":{"type":"ref/prompt","name":"summarise"},"argument":{"name":"title","value":"fo"}}'
grep -q '"values":\["food"\],"total":1,"hasMore":false' answer
ask completion/complete '{"ref":{"type":"ref/prompt","name":"summarise"},"argument":{"name":"style","value":""}}'
grep -q '"values":\["short","long"\]' answer

# An older client gets text in the place of what it does not know.
open 2024-11-05
call show_note '{"title":"food"}'
grep -q '{"type":"text","text":"food: notes://food"}' answer
call find_notes '{"word":"milk"}'
grep -q '"text":"{\\"notes\\":\[{\\"title\\":\\"food\\",\\"length\\":14}\]}"' answer
if grep -q structuredContent answer; then exit 1; fi

call remove_note '{"title":"food"}'
ask resources/read '{"uri":"notes://food"}'
grep -q '"code":-32002' answer
