#!lua flags=allow-oom
-- use: core streams readers
-- The stream's reader has to leave. ARGV: node, stream, why, when to return (or -1).
local kept = call('HMGET', root, 'b', 'W')
if not enter(kept[1], kept[2]) then
    return { 'not_found' }
end
for _, each in ipairs(readers) do
    if each.s == ARGV[2] and not each.w then
        local why, retry = tonumber(ARGV[3]), tonumber(ARGV[4])
        if why == ASKED and not each.r and not each.k then
            return { 'ok' }
        end
        reader_dismissed(each, why, retry >= 0 and retry or nil)
        keep_readers()
        break
    end
end
return done()
