#!/usr/bin/env bash
# Starts the example and uses each of its parts over HTTP.
. "$(dirname "$0")/../smoke_lib.sh"

start
use() { call 1 "$1" "$2" >answer; }

open_session 2025-11-25
grep -q '"title":"Notebook"' answer
ask tools/list '{}'
grep -q '"annotations":{"readOnlyHint":true,"openWorldHint":false}' answer
grep -q '"at_most":{"type":"integer","description":"How many notes to give","minimum":1,"maximum":100}' answer

use add_note '{"title":"Not Good","text":"x"}'
grep -q 'small letters' answer
grep -q '"isError":true' answer
use add_note '{"title":"food","text":"bread and milk"}'
grep -q 'Kept.' answer
use find_notes '{"word":"milk"}'
grep -q '"structuredContent":{"notes":\[{"title":"food","length":14}\]}' answer
use find_notes '{"word":"milk","order":"colour"}'
grep -q '/order: expected one of' answer
use show_note '{"title":"food"}'
grep -q '"type":"resource_link","uri":"notes://food"' answer
grep -q '"_meta":{"notes/length":14}' answer
use show_note '{"title":"none"}'
grep -q 'There is no note none' answer
use count_words '{"text":"one two"}'
grep -q '"structuredContent":{"words":2}' answer
use count_words '{}'
grep -q 'Invalid arguments for tool count_words: /text: required' answer

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
open_session 2024-11-05
use show_note '{"title":"food"}'
grep -q '{"type":"text","text":"food: notes://food"}' answer
use find_notes '{"word":"milk"}'
grep -q '"text":"{\\"notes\\":\[{\\"title\\":\\"food\\",\\"length\\":14}\]}"' answer
if grep -q structuredContent answer; then exit 1; fi

use remove_note '{"title":"food"}'
ask resources/read '{"uri":"notes://food"}'
grep -q '"code":-32002' answer
