-- The common append, ahead of everything that it has no use for: events that are nothing special, room for them, no
-- hole, and nothing to trim. Whatever is not so is left to what comes behind. Keys, entries and charges are as in core, streams
-- and events; an entry of a call's stream needs no time.
if ARGV[6] == '0' then
    local root, id = KEYS[1], ARGV[3]
    local kept = redis.call('HMGET', root, 'b', 'W', 'V', 'm' .. id)
    local m = kept[4] and cmsgpack.unpack(kept[4])
    if m and m.f == tonumber(ARGV[4]) and tonumber(ARGV[5]) > (m.bt or 0) and m.ow ~= ''
        and not (m.k or m.z or m.B or m.h) and tonumber(ARGV[7]) <= m.q then
        local session_limit, _, user_room, _, total_room, _, most_events, most_bytes, largest
            = struct.unpack('<ddddddddd', ARGV[2])
        local entries, need, q, o = {}, 0, m.q, m.o
        for i = 8, last_argument, 2 do
            local payload = ARGV[i]
            if ARGV[i + 1] ~= '' or #payload > largest or q - m.q >= 1000 then
                need = math.huge
                break
            end
            need = need + #payload + 64
            q, o = q + 1, o + #payload
            entries[q - m.q] = struct.pack('<BI6I6I6', 0, q, o, 0) .. payload
        end
        local bytes = kept[1] + need
        if need > 0 and bytes <= session_limit and need <= user_room and need <= total_room
            and q - m.n + 1 <= most_events and m.c + need <= most_bytes then
            local version = (kept[3] or 0) + 1
            m.q, m.o, m.c, m.bt, m.lt = q, o, m.c + need, tonumber(ARGV[5]), nil
            redis.call('RPUSH', KEYS[4], unpack(entries))
            redis.call('HSET', root, 'm' .. id, cmsgpack.pack(m), 'b', bytes, 'V', version)
            local hint = id .. ':1'
            if kept[2] then
                for name in pairs(cmsgpack.unpack(kept[2])) do
                    if name ~= ARGV[1] then
                        local prefix, tag = string.match(root, '^(.-){(.-)}')
                        redis.call('PUBLISH', prefix .. 'n:' .. name, tag .. ' ' .. version .. ' ' .. hint)
                    end
                end
            end
            return { 'ok', bytes, need, -1, 0, hint, version, m.e, q, o, 0, '' }
        end
    end
end
