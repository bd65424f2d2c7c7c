#!lua
-- use: core streams room
-- KEYS[4] has the session's subscriptions. ARGV: node, limits, URI, charge, how many there may be.
local kept = call('HMGET', root, 'b', 'W', 'x', 'a')
if not enter(kept[1], kept[2]) or kept[3] then
    return { 'not_found' }
end
if call('SISMEMBER', KEYS[4], ARGV[3]) == 1 then
    return done(kept[4])
end
if call('SCARD', KEYS[4]) >= tonumber(ARGV[5]) then
    return { 'too_many_subscriptions' }
end
if not make_room(tonumber(ARGV[4]), false) then
    return { 'no_space' }
end
charge(tonumber(ARGV[4]))
call('SADD', KEYS[4], ARGV[3])
return done(kept[4])
