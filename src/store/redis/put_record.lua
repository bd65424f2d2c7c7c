#!lua
-- use: time records
-- ARGV: name, revision seen, value, lifetime (ms), how many records there may be, how many bytes.
local name, seen, value = ARGV[1], tonumber(ARGV[2]), ARGV[3]
forget_old(name)
local known = record_of(name)
local is_there = known and known[5] == 0
if known and known[4] == seen and known[3] == value then
    return { 'ok', record_bytes(), known[1] }
end
if (is_there and known[1] or 0) ~= seen then
    return { 'conflict', record_bytes() }
end
local charge, freed = charge_of(name, value), known and known[2] or 0
if not is_there and record_count() >= tonumber(ARGV[5])
    or charge > freed and record_bytes() + charge - freed > tonumber(ARGV[6]) then
    return { 'no_space', record_bytes() }
end
local revision = (known and known[1] or 0) + 1
keep(name, { revision, 0, value, seen, 0, known and known[6] or 0, known and known[7] or '' }, known, ARGV[4])
return { 'ok', record_bytes(), revision }
