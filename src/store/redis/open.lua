#!lua
-- use: core time lives streams events room readers
-- Makes a request stream. KEYS[4] is its list. ARGV: node, limits, leases, whether they are sure, stream, owner, what
-- is opened, its reader.
local kept = call('HMGET', root, 'b', 'W', 'x', 'a', 's', 'F', 'p', 'd')
if not enter(kept[1], kept[2]) then
    return { 'not_found' }
end
local id, owner = ARGV[5], ARGV[6]
local there = meta(id)
if there then
    if there.k or there.at > 1 or there.ow ~= owner then
        return { 'conflict' }
    end
    return done(there.f, there.e, there.rp or '', call('HGET', root, 'G') or '')
end
if kept[3] then
    return { 'not_found' }
end
if kept[4] == id then
    return { 'conflict' }
end
if kept[8] and string.find(' ' .. kept[8], ' ' .. id .. ' ', 1, true) then
    return { 'finished' }
end
local wanted = cmsgpack.unpack(ARGV[7])
if wanted.u then
    local own = {}
    for _, label in ipairs(wanted.q) do
        if own[label] then
            return { 'duplicate_id' }
        end
        own[label] = true
        local raw = call('HGET', root, 'q' .. label)
        local places = raw and cmsgpack.unpack(raw) or {}
        for i = 1, #places, 2 do
            if meta(places[i]).ra[places[i + 1] + 1] == 0 then
                return { 'duplicate_id' }
            end
        end
    end
end

local reserved = wanted.h
for _, reserve in ipairs(wanted.rr) do
    reserved = reserved + reserve
end
local need, repeats = wanted.w + reserved, nil
if wanted.kt then
    local raw = call('HGET', root, 'k' .. wanted.kt)
    if raw then
        local entry = cmsgpack.unpack(raw)
        if entry[1] ~= wanted.kf then
            return { 'key_mismatch' }
        end
        if entry[4] then
            return { 'key_spent' }
        end
        repeats = entry[2]
    else
        need = need + #wanted.kt + KEY
    end
end

-- From here on nothing may change until nothing can be refused.
local reader = ARGV[8] ~= '' and cmsgpack.unpack(ARGV[8])
local is_of_page = kept[7] or reader and reader.pg
local removed, oldest = {}, nil
if reader then
    local staying = 0
    for _, each in ipairs(readers) do
        if not lives(each.o) then
            removed[#removed + 1] = each
        elseif not each.w then
            staying = staying + 1
            if not oldest and is_closable(each) then
                oldest = each
            end
        end
    end
    if is_unsure then
        return { 'who' }
    end
    if staying < (is_of_page and reader.bp or reader.b) then
        oldest = nil
    elseif not oldest then
        return { 'too_many_streams' }
    end
end
local count = tonumber(kept[5])
if call('HEXISTS', root, 'm' .. kept[4]) == 1 then
    count = count - 1 -- the session's own
end
local is_full = count >= most_streams
if is_full and not oldest_droppable(repeats) then
    return { 'too_many_streams' }
end
if not could_make_room(need, false, repeats) then
    return { 'no_space' }
end
if is_full then
    drop_stream(oldest_droppable(repeats), most_keys)
end
make_room(need, false, repeats)

call('UNLINK', list) -- of a stream of that name that was dropped
local epoch = epoch_of_session()
local fence = math.max(tonumber(kept[6] or 0) + 1, time_us)
local order = call('HINCRBY', root, 'o', 1)
local m = {
    f = fence, at = 1, ow = owner, op = now, or_ = order, e = epoch, q = 0, o = 0, n = 1, c = 0,
    w = wanted.w, v = reserved, l = 0, rc = 0, ra = {}, rr = wanted.rr, rp = repeats, wk = wanted.wk
}
metas[id] = m
changed[id] = true
for place, label in ipairs(wanted.q) do
    m.ra[place] = 0
    local raw = call('HGET', root, 'q' .. label)
    local places = raw and cmsgpack.unpack(raw) or {}
    places[#places + 1] = id
    places[#places + 1] = place - 1
    call('HSET', root, 'q' .. label, cmsgpack.pack(places))
end
charge(wanted.w + reserved)
if wanted.kt and not repeats then
    call('HSET', root, 'k' .. wanted.kt, cmsgpack.pack({ wanted.kf, id, order }))
    charge(#wanted.kt + KEY)
end
call('HSET', root, 'i' .. id, cmsgpack.pack({ wanted.m, wanted.q, wanted.kt }), 'F', fence, 'u', now)
set_running(id, owner)
count_stream(1)
if reader then
    remove_readers({}, function(each)
        for _, gone in ipairs(removed) do
            if gone == each then
                return true
            end
        end
        return false
    end)
    for _, each in ipairs(removed) do
        reader_removed(each)
    end
    if oldest then
        reader_dismissed(oldest, OVER_BUDGET)
    end
    if is_of_page and not kept[7] then
        call('HSET', root, 'p', 1)
    end
    readers[#readers + 1] = { o = reader.o, c = reader.c, s = id, r = reader.r, f = 0 }
    reader_came(id, m)
    note_known(m, reader.o, reader.c)
    m.da = 1
    m.dp, m.do_ = 0, 0
    note_table(id)
    keep_readers()
end
let_watch(wanted.wn)
return done(fence, epoch, repeats or '', call('HGET', root, 'G') or '')
