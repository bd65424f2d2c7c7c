#!/usr/bin/env bash
# Starts the example, calls its tool over HTTP, cancels a call that would take hours, and looks what is left of it.
. "$(dirname "$0")/../smoke_lib.sh"

mkdir tmp
export TMPDIR=$work/tmp
start
open_session
call 1 index_pages '{"pages":20,"milliseconds":1}' >answer
grep -q '"logger":"index","data":"started"' answer
grep -q '"progressToken":1,"progress":20,"total":20,"message":"page 20"' answer
grep -q '"level":"debug","logger":"index","data":{"indexed":10}' answer
grep -q '"structuredContent":{"pages":20,"bytes":151}' answer
call 2 index_pages '{"pages":0}' >answer
grep -q '"text":"Invalid arguments for tool index_pages: /pages: expected integer between 1 and 100000"' answer
grep -q '"isError":true' answer

has_scratch_folder() { [ -n "$(ls tmp)" ]; }
cancel_running 3 index_pages '{"pages":100000,"milliseconds":100}' has_scratch_folder
# A cancelled tool cleans up while the server runs on: at its next await, which is at once.
for _ in {1..200}; do
    has_scratch_folder || break
    ask ping '{}' # what has come this far has gone through the server's loops
done
if has_scratch_folder; then exit 1; fi
stop
