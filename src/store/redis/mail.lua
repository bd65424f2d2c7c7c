#!lua flags=no-writes
-- The letters to a call. ARGV: node, stream, fence, after.
local kept = redis.call('HMGET', KEYS[1], 'b', 'm' .. ARGV[2], 'l' .. ARGV[2], 'a')
if not kept[1] then
    return { 'not_found' }
end
if not kept[2] then
    return { kept[4] == ARGV[2] and 'fenced' or 'stream_gone' }
end
local m = cmsgpack.unpack(kept[2])
if m.k or m.f ~= tonumber(ARGV[3]) or m.ow == '' then
    return { 'fenced' }
end
local letters = {}
for _, each in ipairs(kept[3] and cmsgpack.unpack(kept[3]) or {}) do
    if each.o > tonumber(ARGV[4]) then
        letters[#letters + 1] = { each.w, each.n, each.b, each.o, each.k }
    end
end
return { 'ok', letters }
