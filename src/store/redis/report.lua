#!lua flags=allow-oom
-- What sessions of a principal use now; not by how much it has changed: a report may be lost or come twice. KEYS: the
-- principal's sessions, principals, totals. ARGV: principal, then session, bytes and streams of each; a session
-- without bytes is gone.
local grown, more = 0, 0
for i = 2, #ARGV, 3 do
    local kept = redis.call('HGET', KEYS[1], ARGV[i])
    local bytes, streams = 0, 0
    if kept then
        bytes, streams = string.match(kept, '(%d+) (%d+)')
    end
    local now_streams = ARGV[i + 2] == '-1' and streams or ARGV[i + 2] -- not known: as before
    grown = grown + ARGV[i + 1] - bytes
    more = more + now_streams - streams
    if ARGV[i + 1] == '0' then
        redis.call('HDEL', KEYS[1], ARGV[i])
    else
        redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1] .. ' ' .. now_streams)
    end
end
local used = redis.call('HINCRBY', KEYS[2], ARGV[1], grown)
if used == 0 then
    redis.call('HDEL', KEYS[2], ARGV[1])
end
return { 'ok', used, redis.call('HINCRBY', KEYS[3], 'bytes', grown), redis.call('HINCRBY', KEYS[3], 'streams', more) }
