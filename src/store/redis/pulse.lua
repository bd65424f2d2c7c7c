#!lua flags=allow-oom
-- use: time
-- What a node asks each second: it is there, and what is used. KEYS: nodes, totals, due. ARGV: node, for how long it
-- is taken to be there (ms).
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - 86400000)
local totals = redis.call('HMGET', KEYS[2], 'bytes', 'streams', 'record_bytes', 'uris')
return {
    'ok', tonumber(totals[1] or 0), tonumber(totals[2] or 0), tonumber(totals[3] or 0), tonumber(totals[4] or 0),
    redis.call('ZCARD', KEYS[3])
}
