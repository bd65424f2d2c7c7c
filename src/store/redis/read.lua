#!lua flags=no-writes
-- use: read_fast core streams events
-- A page. ARGV: node, stream, after, how many events, how many bytes, who asks (or nothing).
local kept = call('HMGET', root, 'b', 'W', 'x', 'a', 'm' .. ARGV[2])
if not enter(kept[1], kept[2]) then
    return { 'not_found' }
end
local id = ARGV[2]
if kept[5] then
    metas[id] = cmsgpack.unpack(kept[5])
end
local m = find_stream(id, kept[4])
if not m then
    return { 'stream_gone' }
end
local why, retry = -1, -1
if ARGV[6] ~= '' and m.cu ~= ARGV[6] then
    why = 0 -- one that is not known has been taken over from
    local raw = call('HGET', root, 'R')
    for _, each in ipairs(raw and cmsgpack.unpack(raw) or {}) do
        if each.s == id and each.o .. '#' .. each.c == ARGV[6] then
            why, retry = each.w or -1, each.y or -1
        end
    end
end
return { 'ok', read_events(m, tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])), state_of(m, kept[3]), why, retry }
