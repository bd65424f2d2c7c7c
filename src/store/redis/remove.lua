#!lua flags=allow-oom
-- use: core time
-- Removes the session, if KEYS has all of it: root, droppable, spent, subscriptions, and then its lists, whose streams
-- are in ARGV from 2 on. Says otherwise which there are, and closes it, so that they become no more.
local kept = call('HMGET', root, 'b', 'W', 'x', 'G', 'a', 's')
if not enter(kept[1], kept[2]) then
    call('UNLINK', unpack(KEYS))
    return { 'gone' }
end
local named = {}
for i = 2, 1 + #KEYS - 4 do
    named[ARGV[i]] = true
end
local ids, uris, calls, is_whole = {}, call('SMEMBERS', KEYS[4]), {}, true
for _, field in ipairs(call('HKEYS', root)) do
    if string.sub(field, 1, 1) == 'm' then
        local id = string.sub(field, 2)
        ids[#ids + 1] = id
        is_whole = is_whole and named[id]
    end
end
for id in string.gmatch(kept[4] or '', '%S+') do
    ids[#ids + 1] = id
    is_whole = is_whole and named[id]
end
local raw = call('HGET', root, 'C')
for id, owner in pairs(raw and cmsgpack.unpack(raw) or {}) do
    calls[#calls + 1] = { id, owner }
end
if not is_whole then
    if not kept[3] then
        call('HSET', root, 'x', now)
    end
    return { 'more', ids, uris, calls, kept[5] }
end
wake('*', ALL)
wake('s', GROWTH)
local told = publish()
call('UNLINK', unpack(KEYS))
return { 'ok', 0, -bytes, 0, -kept[6], told, version, uris, calls, kept[5] }
