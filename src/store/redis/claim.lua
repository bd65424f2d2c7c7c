#!lua
-- use: core time streams readers
-- Takes a call over. ARGV: node, stream, fence seen, owner.
local kept = call('HMGET', root, 'b', 'W', 'a', 'F')
if not enter(kept[1], kept[2]) then
    return { 'not_found' }
end
local id, seen, owner = ARGV[2], tonumber(ARGV[3]), ARGV[4]
local m = meta(id)
if not m or m.k then
    return { 'stream_gone' }
end
if m.z then
    return { 'finished' }
end
local former = ''
if not (m.cf == seen and m.ow == owner and m.at > 1) then
    if m.f ~= seen then
        return { 'conflict' }
    end
    former = m.ow
    set_running(id, owner)
    -- Whoever came with the call goes with it: it may have been opened when nobody counted on it any more.
    local removed = {}
    remove_readers(removed, function(each) return each.s == id and each.o == former end)
    for _, each in ipairs(removed) do
        reader_removed(each)
    end
    if #removed > 0 then
        keep_readers()
    end
    m.ow = owner
    m.cf = seen
    m.f = math.max(m.f + 1, tonumber(kept[4] or 0) + 1, time_us)
    m.bt = nil
    m.at = m.at + 1
    changed[id] = true
    call('HSET', root, 'F', m.f)
    wake(id, MAIL) -- its former owner finds that it is not any more
end
local unanswered, questions = {}, {}
for place, answered_at in ipairs(m.ra) do
    if answered_at == 0 then
        unanswered[#unanswered + 1] = place - 1
    end
end
for _, question in ipairs(m.qs or {}) do
    questions[#questions + 1] = question[1]
    questions[#questions + 1] = question[2]
end
return done(
    m.f, cmsgpack.unpack(call('HGET', root, 'i' .. id))[1], m.e, m.q, m.o, unanswered, questions, m.at, now - m.op,
    m.lq or 0, m.pr and string.format('%.17g', m.pr) or '', m.rp or '', former)
