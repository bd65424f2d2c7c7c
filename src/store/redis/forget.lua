#!lua flags=allow-oom
-- use: time
-- Forgets an owner that has been dead for long (ms) and has left nothing behind. KEYS: leases, its calls. ARGV: owner,
-- for how long.
local ends = redis.call('ZSCORE', KEYS[1], ARGV[1])
if ends and ends + ARGV[2] < now and redis.call('ZCARD', KEYS[2]) == 0 then
    redis.call('ZREM', KEYS[1], ARGV[1])
end
return { 'ok' }
