#!lua flags=allow-oom
-- use: time
-- Sessions that are to be looked at. Nobody else is given them for a while (ms): whoever looks says when to look again.
-- KEYS: due or aging. ARGV: how many, for how long.
local found = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])
for _, session in ipairs(found) do
    redis.call('ZADD', KEYS[1], now + ARGV[2], session)
end
return { 'ok', found }
