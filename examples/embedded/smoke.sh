#!/usr/bin/env bash
# Starts the program, calls its tool while it goes on measuring, and stops it by the program's own handling of SIGTERM.
. "$(dirname "$0")/../smoke_lib.sh"

echo 'this is = not [right' >belay.toml # not the program's, and not read
mkfifo said
"$program" 127.0.0.1:0 >said 2>log &
server=$!
exec {said}<said
IFS= read -r -t 20 line <&"$said"
url=${line#station: measuring; MCP at }
open_session
call 1 latest '{}' >answer
grep -q '"structuredContent":{"number":[0-9]*,"celsius":2[0-9.E]*' answer
stop
IFS= read -r -t 20 line <&"$said"
[ "$line" = 'station: stopping' ]
IFS= read -r -t 20 line <&"$said"
[ "$line" = 'station: stopped' ]
[ ! -s log ]

# Its own words for an address that cannot be had.
if "$program" 0.0.0.0:0 2>log; then exit 1; fi
grep -q '^station: .*--allow-host' log
rm log
