#!lua flags=allow-oom
-- The session is gone. KEYS: due, names, aging. ARGV: session, its name.
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[2])
redis.call('ZREM', KEYS[3], ARGV[1])
return { 'ok', redis.call('ZCARD', KEYS[1]) }
