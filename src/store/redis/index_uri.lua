#!lua
-- A session is subscribed to a URI. KEYS: its subscribers, URIs, totals. ARGV: URI, subscriber.
redis.call('ZADD', KEYS[1], 0, ARGV[2])
if redis.call('SADD', KEYS[2], ARGV[1]) == 1 then
    redis.call('HINCRBY', KEYS[3], 'uris', 1)
end
return { 'ok' }
