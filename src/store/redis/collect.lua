#!lua flags=allow-oom
-- Removes the lists of streams that were dropped: KEYS from 2 on, whose streams are in ARGV from 2 on.
local root = KEYS[1]
local left, named = {}, {}
for i = 2, #KEYS do
    local id = ARGV[i]
    named[id] = true
    if redis.call('HEXISTS', root, 'm' .. id) == 0 then
        redis.call('UNLINK', KEYS[i])
    end
end
for id in string.gmatch(redis.call('HGET', root, 'G') or '', '%S+') do
    if not named[id] then
        left[#left + 1] = id .. ' '
    end
end
if #left > 0 then
    redis.call('HSET', root, 'G', table.concat(left))
else
    redis.call('HDEL', root, 'G')
end
return { 'ok' }
