#!lua flags=no-writes
-- use: time
-- Leases, and the time. KEYS: leases, nodes.
return {
    'ok', now, redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES'),
    redis.call('ZRANGEBYSCORE', KEYS[2], now, '+inf')
}
