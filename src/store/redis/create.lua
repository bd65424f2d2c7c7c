#!lua
-- use: core time streams room
-- Makes a session. ARGV: node, limits, record, charge, standalone stream, principal, revision, epoch (or nothing).
local kept = call('HMGET', root, 'b', 'r', 'x', 'v')
if kept[1] then
    if kept[3] or kept[2] ~= ARGV[3] or kept[4] ~= ARGV[7] then
        return { 'conflict' }
    end
    return { 'ok', tonumber(kept[1]), 0, -1, 0, '', 0 }
end
bytes, bytes_before = 0, 0
local size = tonumber(ARGV[4])
if not fits(size, false, 0) then
    return { 'no_space' }
end
charge(size)
call('HSET', root, 'r', ARGV[3], 'v', ARGV[7], 'c', size, 'a', ARGV[5], 't', now, 'u', now, 's', 0)
if ARGV[6] ~= '' then
    call('HSET', root, 'P', ARGV[6])
end
if ARGV[8] ~= '' then
    call('HSET', root, 'e', ARGV[8])
end
return done()
