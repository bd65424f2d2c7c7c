#!lua flags=allow-oom
-- use: core time streams events readers
-- A reader leaves, perhaps with its last mark. ARGV: node, stream, owner, connection, position (or nothing),
-- offset, sent, delivered.
local kept = call('HMGET', root, 'b', 'W', 'x', 'a')
if not enter(kept[1], kept[2]) then
    return { 'not_found' }
end
local id, owner, connection = ARGV[2], ARGV[3], tonumber(ARGV[4])
local m = find_stream(id, kept[4])
if not m then
    return { 'stream_gone' }
end
change(id)
note_known(m, owner, connection)
if ARGV[5] ~= '' then
    advance_mark(id, m, tonumber(ARGV[7]), tonumber(ARGV[8]))
    if m.nr == owner .. '#' .. connection then
        m.dp, m.do_ = tonumber(ARGV[5]), tonumber(ARGV[6])
    end
end
local removed = {}
remove_readers(removed, function(each) return each.s == id and is(each, owner, connection) end)
if #removed > 0 then
    keep_readers()
    reader_left(id)
    call('HSET', root, 'u', now)
    if kept[3] then
        wake('s', GROWTH)
    end
end
return done()
