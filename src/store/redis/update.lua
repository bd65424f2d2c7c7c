#!lua
-- use: core streams room
-- Replaces the record if it has the revision that was seen. ARGV: node, limits, record, charge, revision seen, next.
local kept = call('HMGET', root, 'b', 'W', 'x', 'r', 'v', 'c')
if not enter(kept[1], kept[2]) or kept[3] then
    return { 'not_found' }
end
if kept[5] == ARGV[6] and kept[4] == ARGV[3] then
    return done()
end
if kept[5] ~= ARGV[5] then
    return { 'conflict' }
end
local grown = ARGV[4] - kept[6]
if grown > 0 and not make_room(grown, false) then
    return { 'no_space' }
end
charge(grown)
call('HSET', root, 'r', ARGV[3], 'v', ARGV[6], 'c', ARGV[4])
wake('s', GROWTH)
return done()
