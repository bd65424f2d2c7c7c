#!lua
-- use: time
-- A place for a session. KEYS: due, names. ARGV: session, its name, how many there may be, when to look at it (ms).
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then
    if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then
        return { 'too_many_sessions' }
    end
    redis.call('ZADD', KEYS[1], now + ARGV[4], ARGV[1])
end
redis.call('ZADD', KEYS[2], 0, ARGV[2])
return { 'ok', redis.call('ZCARD', KEYS[1]) }
