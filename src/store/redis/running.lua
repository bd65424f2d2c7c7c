#!lua flags=no-writes
-- use: arguments
-- Whether that owner still runs the calls that it is said to. ARGV: node, owner, streams.
local kept = redis.call('HMGET', KEYS[1], 'b', 'P')
local found = {}
for i = 3, last_argument do
    local raw = kept[1] and redis.call('HGET', KEYS[1], 'm' .. ARGV[i])
    local m = raw and cmsgpack.unpack(raw)
    if m and not m.z and m.ow == ARGV[2] then
        found[#found + 1] = { ARGV[i], m.f, m.wk or '0' }
    end
end
return { 'ok', kept[2] or '', found }
