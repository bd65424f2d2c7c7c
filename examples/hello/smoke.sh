#!/usr/bin/env bash
# Starts the example, calls its tool once over HTTP, and checks what comes back.
. "$(dirname "$0")/../smoke_lib.sh"

start
open_session
call 1 countdown '{"from":1}' >answer
grep -q '"level":"info","logger":"countdown","data":"1"' answer
grep -q 'Lift-off' answer
