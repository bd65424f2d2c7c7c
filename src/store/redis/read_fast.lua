-- The common page: of the stream's reader, or of nobody in particular, that is short. As append_fast.
do
    local kept = redis.call('HMGET', KEYS[1], 'x', 'm' .. ARGV[2])
    local m = kept[2] and cmsgpack.unpack(kept[2])
    if m and not (m.p or m.h) and (ARGV[6] == '' or m.cu == ARGV[6]) then
        local after, most, most_bytes = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
        local left = math.max(0, math.min(m.q - after, m.q - m.n + 1))
        if left <= 64 or most <= 64 then
            local events, size = {}, 0
            if left > 0 and most > 0 then
                local first = m.q - m.n + 1 - left
                for i, event in ipairs(redis.call('LRANGE', KEYS[4], first, first + math.min(left, most) - 1)) do
                    size = size + #event - 19
                    if i > 1 and size > most_bytes then
                        break
                    end
                    events[i] = event
                end
            end
            return {
                'ok', events,
                {
                    m.e, m.q, m.o, m.n, m.z and 1 or 0, kept[1] and 1 or 0, m.da and 1 or 0, m.dp or 0, m.do_ or 0,
                    m.ds or 0, m.dg or 0, m.dd or 0, m.nr or ''
                },
                -1, -1
            }
        end
    end
end
