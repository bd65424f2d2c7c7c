#!lua flags=no-writes
-- use: time lives
-- Whether no living owner has a call or a reader in the session. ARGV: node, -, leases, whether they are sure.
local kept = redis.call('HMGET', KEYS[1], 'b', 'C', 'R')
if not kept[1] then
    return { 'ok', 1 }
end
local is_held = false
for _, owner in pairs(kept[2] and cmsgpack.unpack(kept[2]) or {}) do
    is_held = is_held or lives(owner)
end
for _, each in ipairs(kept[3] and cmsgpack.unpack(kept[3]) or {}) do
    is_held = is_held or lives(each.o)
end
if not is_held and is_unsure then
    return { 'who' }
end
return { 'ok', is_held and 0 or 1 }
