#!lua flags=allow-oom
-- use: core time
-- Refuses what is new from now on, and tells the session's calls. KEYS[2] has its subscriptions.
local kept = call('HMGET', root, 'b', 'W', 'x', 'C', 'a')
if not enter(kept[1], kept[2]) then
    return { 'not_found' }
end
local told = {}
for id, owner in pairs(kept[4] and cmsgpack.unpack(kept[4]) or {}) do
    local m = meta(id)
    told[#told + 1] = { id, owner, m.f, m.wk or '0' }
    if not kept[3] then
        local raw = call('HGET', root, 'l' .. id)
        local letters = raw and cmsgpack.unpack(raw) or {}
        m.ml = (m.ml or 0) + 1
        letters[#letters + 1] = { w = 2, n = 0, b = '', o = m.ml, k = '' }
        call('HSET', root, 'l' .. id, cmsgpack.pack(letters))
        m.M = 1
        changed[id] = true
        wake(id, MAIL)
    end
end
if not kept[3] then
    call('HSET', root, 'x', now)
    wake('*', GROWTH) -- all its streams
    wake('s', GROWTH)
end
return done(told, call('SMEMBERS', KEYS[2]), kept[5], kept[3] and tonumber(kept[3]) or now)
