#!lua
-- use: time
-- The record; that is activity.
local root = KEYS[1]
local kept = redis.call('HMGET', root, 'r', 'v', 'x', 'b', 's')
if not kept[1] or kept[3] then
    return { 'not_found' }
end
redis.call('HSET', root, 'u', now)
return { 'ok', tonumber(kept[4]), 0, tonumber(kept[5]), 0, '', 0, kept[1], kept[2] }
