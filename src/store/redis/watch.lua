#!lua flags=allow-oom
-- The node watches something in the session, or nothing any more (ARGV[3] is 0). The number of its change decides:
-- an older one that comes late changes nothing. Gives what tells whether anything has happened.
local root = KEYS[1]
if redis.call('EXISTS', root) == 0 then
    return { 'gone' }
end
local raw = redis.call('HGET', root, 'W')
local watchers = raw and cmsgpack.unpack(raw) or {}
local number = tonumber(ARGV[2])
local known = watchers[ARGV[1]]
if ARGV[3] == '0' then
    if known and known <= number then
        watchers[ARGV[1]] = nil
    end
elseif not known or known < number then
    watchers[ARGV[1]] = number
end
if watchers[ARGV[1]] ~= known then
    if next(watchers) then
        redis.call('HSET', root, 'W', cmsgpack.pack(watchers))
    else
        redis.call('HDEL', root, 'W')
    end
end
return { 'ok', tonumber(redis.call('HGET', root, 'V') or 0) }
