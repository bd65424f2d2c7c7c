#!lua
-- use: time records
-- ARGV: name, revision seen, value, lifetime (ms), how many records there may be, how many bytes.
local name, seen, value = ARGV[1], tonumber(ARGV[2]), ARGV[3]
forget_old(name)
local there = record_of(name)
local revision = there and there[1] or 0
if there and revision == seen + 1 and there[3] == value then
    return { 'ok', record_bytes(), revision }
end
if revision ~= seen then
    return { 'conflict', record_bytes() }
end
local charge, freed = RECORD + 2 * #name + #value, there and there[2] or 0
if not there and call('HLEN', KEYS[1]) >= tonumber(ARGV[5])
    or charge > freed and record_bytes() + charge - freed > tonumber(ARGV[6]) then
    return { 'no_space', record_bytes() }
end
call('HSET', KEYS[1], name, cmsgpack.pack({ seen + 1, charge, value }))
call('ZADD', KEYS[2], now + ARGV[4], name)
call('HINCRBY', KEYS[3], 'record_bytes', charge - freed)
return { 'ok', record_bytes(), seen + 1 }
