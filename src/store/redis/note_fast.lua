-- The common mark: of a stream that is not finished, with nothing that it lets go. As append_fast.
do
    local root, id = KEYS[1], ARGV[2]
    local kept = redis.call('HMGET', root, 'b', 'W', 'V', 'm' .. id)
    local m = kept[4] and cmsgpack.unpack(kept[4])
    if m and not m.p and (m.k or not m.z) then
        local delivered = math.min(tonumber(ARGV[9]), m.q)
        m.ds = math.max(m.ds or 0, math.min(math.max(tonumber(ARGV[7]), delivered), m.q))
        m.dd = math.max(m.dd or 0, delivered)
        if m.nr == ARGV[3] then
            m.da = ARGV[4] == '1' and 1 or nil
            m.dp, m.do_, m.dg = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[8])
        end
        local version = (kept[3] or 0) + 1
        redis.call('HSET', root, 'm' .. id, cmsgpack.pack(m), 'V', version)
        local hint = id .. ':2'
        if kept[2] then
            for name in pairs(cmsgpack.unpack(kept[2])) do
                if name ~= ARGV[1] then
                    local prefix, tag = string.match(root, '^(.-){(.-)}')
                    redis.call('PUBLISH', prefix .. 'n:' .. name, tag .. ' ' .. version .. ' ' .. hint)
                end
            end
        end
        return { 'ok', tonumber(kept[1]), 0, -1, 0, hint, version }
    end
end
