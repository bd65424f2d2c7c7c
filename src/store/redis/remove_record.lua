#!lua flags=allow-oom
-- use: time records
-- ARGV: name, revision seen.
forget_old(ARGV[1])
local there = record_of(ARGV[1])
if not there then
    return { 'not_found', record_bytes() }
end
if there[1] ~= tonumber(ARGV[2]) then
    return { 'conflict', record_bytes() }
end
forget(ARGV[1], there[2])
return { 'ok', record_bytes() }
