#!lua flags=allow-oom
-- use: time
-- The session is in use.
if redis.call('EXISTS', KEYS[1]) == 1 then
    redis.call('HSET', KEYS[1], 'u', now)
end
return { 'ok' }
