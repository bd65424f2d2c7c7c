#!lua flags=allow-oom
-- use: time records
-- ARGV: name, revision seen, who takes it, for how long that is remembered (ms).
local name, seen, taker = ARGV[1], tonumber(ARGV[2]), ARGV[3]
forget_old(name)
local known = record_of(name)
if known and known[6] == seen and seen ~= 0 and known[7] == taker then
    return { 'ok', record_bytes() }
end
if not known or known[5] == 1 then
    return { 'not_found', record_bytes() }
end
if known[1] ~= seen then
    return { 'conflict', record_bytes() }
end
-- Its value too: who has put it may not know that yet, and must not put it there once more.
keep(name, { known[1], 0, known[3], known[4], 1, seen, taker }, known, ARGV[4])
return { 'ok', record_bytes() }
