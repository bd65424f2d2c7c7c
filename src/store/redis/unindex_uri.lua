#!lua flags=allow-oom
-- A session is not subscribed to a URI any more. KEYS and ARGV as of index_uri.
redis.call('ZREM', KEYS[1], ARGV[2])
if redis.call('EXISTS', KEYS[1]) == 0 and redis.call('SREM', KEYS[2], ARGV[1]) == 1 then
    redis.call('HINCRBY', KEYS[3], 'uris', 1)
end
return { 'ok' }
