#!lua flags=allow-oom
-- use: core streams events
-- What a reader was given before it left has arrived. ARGV: node, stream, sequence.
local kept = call('HMGET', root, 'b', 'W')
if not enter(kept[1], kept[2]) then
    return { 'not_found' }
end
local m = meta(ARGV[2])
if m then
    advance_mark(ARGV[2], m, tonumber(ARGV[3]), tonumber(ARGV[3]))
end
return done()
