#!lua flags=no-writes
-- use: time lives
-- A session for a listing. ARGV: node, -, leases, whether they are sure.
local kept = redis.call('HMGET', KEYS[1], 'r', 'v', 'P', 't', 'u', 'C', 'R', 'x')
if not kept[1] or kept[8] then
    return { 'gone' }
end
local running, owners, is_held, readers, seen = 0, {}, false, 0, {}
for _, owner in pairs(kept[6] and cmsgpack.unpack(kept[6]) or {}) do
    running = running + 1
    is_held = lives(owner) or is_held
    if owner ~= '' and not seen[owner] then
        seen[owner] = true
        owners[#owners + 1] = owner
    end
end
for _, each in ipairs(kept[7] and cmsgpack.unpack(kept[7]) or {}) do
    if lives(each.o) then
        is_held = true
        readers = readers + 1
    end
end
if is_unsure then
    return { 'who' }
end
return {
    'ok', kept[1], kept[2], kept[3] or '', now - kept[4], is_held and 0 or math.max(0, now - kept[5]), readers, running,
    owners
}
