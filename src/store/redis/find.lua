#!lua flags=no-writes
-- use: core
-- The newest call with that request and no answer to it. ARGV: node, request.
if redis.call('EXISTS', root) == 0 then
    return { 'not_found' }
end
local raw = call('HGET', root, 'q' .. ARGV[2])
local places = raw and cmsgpack.unpack(raw) or {}
local running, crossed -- the newest with an answer that is under way
for i = 1, #places, 2 do
    local m = meta(places[i])
    local place = places[i + 1]
    local answered_at = m.ra[place + 1]
    if answered_at == 0 then
        if not running or m.or_ > running.m.or_ or m.or_ == running.m.or_ and place < running.place then
            running = { m = m, id = places[i], place = place }
        end
    elseif answered_at > (m.dd or 0) then
        crossed = math.max(crossed or 0, m.or_)
    end
end
if crossed and (not running or crossed > running.m.or_) then
    return { 'finished' }
end
if not running then
    return { 'not_found' }
end
return { 'ok', running.id, running.m.ow, running.m.f, running.place, running.m.wk or '0' }
