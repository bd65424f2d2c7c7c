#!lua
-- use: arguments core time streams events room append_events
-- Appends to the session's own stream. ARGV: node, limits, stream, who appends, batch, events.
local kept = call('HMGET', root, 'b', 'W', 'a')
if not enter(kept[1], kept[2]) then
    return { 'not_found' }
end
local id, owner, batch = ARGV[3], ARGV[4], tonumber(ARGV[5])
local m = find_stream(id, kept[3])
if not m or not m.k then
    return { 'stream_gone' }
end
m.wr = m.wr or {}
local writer = m.wr[owner]
if writer and batch <= writer[1] then
    return done(m.e, writer[2], writer[3])
end
local refused = append_events(id, m, false, 0, 6)
if refused then
    return { refused }
end
change(id)
-- One that stood still may come back and repeat its last append: the old are forgotten when there are many.
local MOST_WRITERS, LATE = 16, 120000
if not writer then
    local count = 0
    for _ in pairs(m.wr) do
        count = count + 1
    end
    if count >= MOST_WRITERS then
        for name, each in pairs(m.wr) do
            if each[4] + LATE < now then
                m.wr[name] = nil
            end
        end
    end
end
m.wr[owner] = { batch, m.q, m.o, now }
if not m.g and m.q >= m.n then
    age_at(id, m, now + event_age)
end
return done(m.e, m.q, m.o, must_look_at or 0)
