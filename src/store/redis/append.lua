#!lua
-- use: arguments append_fast core time streams events room append_events
-- Appends to a call's stream. ARGV: node, limits, stream, fence, batch, whether it is the last, after which
-- sequence, events.
local kept = call('HMGET', root, 'b', 'W', 'x', 'm' .. ARGV[3])
if not enter(kept[1], kept[2]) then
    return { 'not_found' }
end
local id, batch = ARGV[3], tonumber(ARGV[5])
if not kept[4] then
    return { 'stream_gone' }
end
local m = cmsgpack.unpack(kept[4])
metas[id] = m
if m.k or m.f ~= tonumber(ARGV[4]) then
    return { 'fenced' }
end
if batch <= (m.bt or 0) then
    return done(m.e, m.lt or m.q, m.o)
end
if m.z then
    return { 'finished' }
end
if m.ow == '' then
    return { 'fenced' }
end
local is_finish = ARGV[6] == '1'
local refused = append_events(id, m, is_finish, tonumber(ARGV[7]), 8)
if refused then
    return { refused }
end
m.bt = batch
m.lt = nil
changed[id] = true
if is_finish then
    for place, answered_at in ipairs(m.ra) do
        if answered_at == 0 then
            m.ra[place] = m.q
        end
    end
    m.z = 1
    end_call(id, m)
    m.rr = nil
    update_droppable(id, m)
    age_at(id, m, now + event_age)
    call('HSET', root, 'u', now)
    if kept[3] then
        wake('s', GROWTH) -- whoever closed it waits for it to become quiet
    end
end
return done(m.e, m.q, m.o, must_look_at or 0, is_finish and m.ow or '')
