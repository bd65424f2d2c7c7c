#!lua flags=allow-oom
-- use: core
-- KEYS[2] has the session's subscriptions. ARGV: node, URI, charge.
local kept = call('HMGET', root, 'b', 'W', 'x', 'a')
if not enter(kept[1], kept[2]) or kept[3] then
    return { 'not_found' }
end
if call('SREM', KEYS[2], ARGV[2]) == 1 then
    charge(-ARGV[3])
end
return done(kept[4])
