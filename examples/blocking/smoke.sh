#!/usr/bin/env bash
# Starts the example, calls its tool over HTTP, and cancels a call that would take minutes.
. "$(dirname "$0")/../smoke_lib.sh"

start
open_session
call 1 count_primes '{"below":10000}' >answer
grep -q '"progressToken":1,"progress":[0-9]*,"total":10000' answer
grep -q 'counted all below 10000' answer
grep -q '"structuredContent":{"primes":1229}' answer

cancel_running 2 count_primes '{"below":1000000000}'
stop
# The function has heard of the cancel: nothing held the stop up.
if grep -q 'left behind' log; then exit 1; fi
