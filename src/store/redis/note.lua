#!lua flags=allow-oom
-- use: note_fast core streams events
-- A reader's mark. ARGV: node, stream, reader, attached, position, offset, sent, given, delivered.
local kept = call('HMGET', root, 'b', 'W', 'a', 'm' .. ARGV[2])
if not enter(kept[1], kept[2]) then
    return { 'not_found' }
end
local id = ARGV[2]
if kept[4] then
    metas[id] = cmsgpack.unpack(kept[4])
end
local m = find_stream(id, kept[3])
if not m then
    return { 'stream_gone' }
end
advance_mark(id, m, tonumber(ARGV[7]), tonumber(ARGV[9]))
if m.nr == ARGV[3] then
    m.da = ARGV[4] == '1' and 1 or nil
    m.dp, m.do_, m.dg = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[8])
    change(id)
end
wake(id, READER)
return done()
