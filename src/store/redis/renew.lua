#!lua flags=allow-oom
-- use: time
-- KEYS: leases. ARGV: owner, for how long (ms).
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
return { 'ok', now + ARGV[2] }
