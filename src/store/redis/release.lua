#!lua flags=allow-oom
-- use: core streams
-- Gives a call up. ARGV: node, stream, fence, whether it has run.
local kept = call('HMGET', root, 'b', 'W', 'a')
if not enter(kept[1], kept[2]) then
    return { 'not_found' }
end
local id, fence = ARGV[2], tonumber(ARGV[3])
local m = meta(id)
if not m then
    return { id == kept[3] and 'fenced' or 'stream_gone' }
end
if m.k then
    return { 'fenced' }
end
if m.rf == fence and fence ~= 0 then
    return done('')
end
if m.f ~= fence then
    return { 'fenced' }
end
if m.z then
    return { 'finished' }
end
local former = m.ow
set_running(id, '')
m.ow = ''
m.rf = fence
if ARGV[4] == '0' and m.at > 1 then
    m.at = m.at - 1
end
changed[id] = true
return done(former)
