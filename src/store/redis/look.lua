#!lua flags=allow-oom
-- use: core time lives streams events readers
-- What has become of the session, for whoever expires sessions. What has been idle for too long ends here: from now on
-- it is closed. ARGV: node, -, leases, whether they are sure, idle limit, lifetime (0: none), how long a closed one
-- stays (all ms), the nodes
-- that live.
local kept = call('HMGET', root, 'b', 'W', 'x', 'u', 't', 'C', 'g')
if not enter(kept[1], kept[2]) then
    return { 'gone' }
end
local idle_limit, lifetime, closed_limit = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
if kept[3] then
    local ends = kept[3] + closed_limit
    if ends <= now then
        return { 'ended', 'closed', call('HGET', root, 'P') or '' }
    end
    return { 'later', ends, tonumber(kept[7] or 0) }
end

local used, is_held = tonumber(kept[4]), false
local dead = {}
local function look_at(owner)
    if lives(owner) then
        is_held = true
    else
        used = math.max(used, math.min(leases[owner] or 0, now))
        dead[owner] = true
    end
end
for _, owner in pairs(kept[6] and cmsgpack.unpack(kept[6]) or {}) do
    look_at(owner)
end
for _, each in ipairs(readers) do
    look_at(each.o)
end
if is_unsure then
    return { 'who' }
end

local raw_watchers = watchers
if raw_watchers and ARGV[8] ~= '' then
    local living, left = cmsgpack.unpack(ARGV[8]), {}
    for name, number in pairs(cmsgpack.unpack(raw_watchers)) do
        if living[name] then
            left[name] = number
        end
    end
    watchers = next(left) and cmsgpack.pack(left) or false
    if not watchers then
        call('HDEL', root, 'W')
    elseif watchers ~= raw_watchers then
        call('HSET', root, 'W', watchers)
    end
end
local removed = {}
remove_readers(removed, function(each) return dead[each.o] end)
for _, each in ipairs(removed) do
    reader_removed(each)
end
if #removed > 0 then
    keep_readers()
    call('HSET', root, 'u', used)
end
local is_overdue = lifetime > 0 and kept[5] + lifetime <= now
if not is_held and used + idle_limit <= now then
    call('HSET', root, 'x', now)
    wake('*', GROWTH)
    wake('s', GROWTH)
    local told = done()
    return { 'ended', 'idle', call('HGET', root, 'P') or '', '', told[6], told[7] }
end
local told = done()
local due = is_held and now + idle_limit or used + idle_limit
if lifetime > 0 and not is_overdue then
    due = math.min(due, kept[5] + lifetime)
end
return {
    is_overdue and 'overdue' or 'later', due, tonumber(kept[7] or 0), call('HGET', root, 'P') or '', told[6],
    told[7]
}
