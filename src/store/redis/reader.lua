#!lua flags=no-writes
-- use: core streams
-- The stream's mark. ARGV: node, stream.
local kept = call('HMGET', root, 'b', 'a', 'm' .. ARGV[2])
if not kept[1] then
    return { 'not_found' }
end
if not kept[3] then
    return ARGV[2] == kept[2] and { 'ok', 0, 0, 0, 0, 0, 0, '' } or { 'stream_gone' }
end
local m = cmsgpack.unpack(kept[3])
return { 'ok', m.da and 1 or 0, m.dp or 0, m.do_ or 0, m.ds or 0, m.dg or 0, m.dd or 0, m.nr or '' }
