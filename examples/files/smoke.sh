#!/usr/bin/env bash
# Starts the example on a folder, reads files over HTTP, and changes one that a session is subscribed to.
. "$(dirname "$0")/../smoke_lib.sh"

mkdir -p folder/notes
echo "milk" >folder/list.txt
printf "\001\002" >"folder/two bytes"
echo "deep" >folder/notes/a.md
echo "secret" >outside.txt
ln -s ../outside.txt folder/link.txt
start folder
open_session
grep -q '"resources":{"subscribe":true,"listChanged":true}' answer

ask resources/list '{}'
grep -q '"uri":"files:///list.txt","name":"list.txt","mimeType":"text/plain"' answer
grep -q '"uri":"files:///notes/a.md"' answer
if grep -q 'link.txt' answer; then exit 1; fi
ask resources/templates/list '{}'
grep -q '"uriTemplate":"files:///{+path}"' answer

ask resources/read '{"uri":"files:///list.txt"}'
grep -q '"contents":\[{"uri":"files:///list.txt","mimeType":"text/plain","text":"milk\\n"}\]' answer
ask resources/read '{"uri":"files:///two%20bytes"}'
grep -q '"blob":"AQI="' answer
ask completion/complete '{"ref":{"type":"ref/resource","uri":"files:///{+path}"},"argument":{"name":"path","value":"no"}}'
grep -q '"values":\["notes/a.md"\]' answer

# Nothing outside of the folder, however it is spelled.
for path in ../outside.txt notes/../../outside.txt %2e%2e%2foutside.txt "$PWD/outside.txt" link.txt notes \
    list.txt%00 /etc/passwd; do
    ask resources/read "{\"uri\":\"files:///$path\"}"
    grep -q '"code":-32002' answer
    if grep -q secret answer; then exit 1; fi
done

# A change is announced on the session's own stream, and so is a new file.
ask resources/subscribe '{"uri":"files:///list.txt"}'
grep -q '"result":{}' answer
mkfifo events
curl -sSN --max-time 30 "$url" -H 'Accept: text/event-stream' -H "Mcp-Session-Id: $session" >events &
reader=$!
exec {events}<events
wait_for() {
    local line
    while IFS= read -r -t 20 line <&"$events"; do
        case $line in *"$1"*) return 0 ;; esac
    done
    echo "never heard: $1" >&2
    return 1
}
echo "milk, bread" >folder/list.txt
touch -d '2001-01-01' folder/list.txt # a time that the clock's resolution cannot hide
wait_for '"method":"notifications/resources/updated","params":{"uri":"files:///list.txt"}'
echo "new" >folder/new.txt
wait_for '{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}'
ask resources/read '{"uri":"files:///new.txt"}'
grep -q '"text":"new\\n"' answer
kill "$reader"
wait "$reader" || true
