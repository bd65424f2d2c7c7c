#!lua flags=allow-oom
-- use: time
-- A call that is about to have that owner: it is found even if nothing else happens. KEYS: leases, the owner's calls.
-- ARGV: owner, call.
if ARGV[1] ~= '' then
    redis.call('ZADD', KEYS[1], 'NX', now, ARGV[1]) -- dead, unless it renews
end
redis.call('ZADD', KEYS[2], 0, ARGV[2])
return { 'ok' }
