-- What every script of a session begins with: its root, what it changes, whom it wakes.
-- KEYS[1] is the root; ARGV[1] names the node that asks.
local call = redis.call
local root = KEYS[1]
local node = ARGV[1]
local bytes, bytes_before, watchers
local streams, streams_grown, version = -1, 0, 0
local metas, changed, hints = {}, {}, {}
local GROWTH, READER, MAIL, DISMISSAL, ALL = 1, 2, 4, 8, 15

-- The root's bytes are there as long as the session is.
local function enter(kept_bytes, kept_watchers)
    if not kept_bytes then
        return false
    end
    bytes = tonumber(kept_bytes)
    bytes_before = bytes
    watchers = kept_watchers
    return true
end

-- A stream more or less.
local function count_stream(by)
    streams = call('HINCRBY', root, 's', by)
    streams_grown = streams_grown + by
end

-- The node that asks watches the session.
local function let_watch(number)
    local all = watchers and cmsgpack.unpack(watchers) or {}
    if not all[node] then
        all[node] = number
        watchers = cmsgpack.pack(all)
        call('HSET', root, 'W', watchers)
    end
end

local function charge(by)
    bytes = bytes + by
end

local function meta(id)
    local m = metas[id]
    if m == nil then
        local raw = call('HGET', root, 'm' .. id)
        m = raw and cmsgpack.unpack(raw) or false
        metas[id] = m
    end
    return m
end

local function wake(what, bits)
    hints[what] = bit.bor(hints[what] or 0, bits)
end

-- Tells the other nodes that watch the session, and gives the hints for the node that asked.
local function publish()
    local texts = {}
    for what, bits in pairs(hints) do
        texts[#texts + 1] = what .. ':' .. bits
    end
    if #texts == 0 then
        return ''
    end
    local text = table.concat(texts, ' ')
    version = call('HINCRBY', root, 'V', 1)
    if watchers then
        local prefix, tag = string.match(root, '^(.-){(.-)}')
        for name in pairs(cmsgpack.unpack(watchers)) do
            if name ~= node then
                call('PUBLISH', prefix .. 'n:' .. name, tag .. ' ' .. version .. ' ' .. text)
            end
        end
    end
    return text
end

-- Writes what has changed. Every answer but a refusal begins with this: what the session uses and by how much that has
-- changed, its streams likewise (-1: as before), hints and the version of the session that they are of.
local function done(...)
    local sets = {}
    for id in pairs(changed) do
        sets[#sets + 1] = 'm' .. id
        sets[#sets + 1] = cmsgpack.pack(metas[id])
    end
    if bytes ~= bytes_before then
        sets[#sets + 1] = 'b'
        sets[#sets + 1] = bytes
    end
    if #sets > 0 then
        call('HSET', root, unpack(sets))
    end
    local told = publish()
    return { 'ok', bytes, bytes - bytes_before, streams, streams_grown, told, version, ... }
end
