-- Small records. KEYS: records, when they end, totals. A record: its revision, its charge, its value, the revision that
-- its author had seen, whether it was taken and is only remembered, and of the last that was taken its revision and who
-- took it.
local call = redis.call
local RECORD, AT_ONCE = 160, 100

local function count_taken(before, after)
    local more = (after and after[5] or 0) - (before and before[5] or 0)
    if more ~= 0 then
        call('HINCRBY', KEYS[3], 'taken_records', more)
    end
end
local function forget(name, record)
    call('HDEL', KEYS[1], name)
    call('ZREM', KEYS[2], name)
    call('HINCRBY', KEYS[3], 'record_bytes', -record[2])
    count_taken(record, nil)
end
local function charge_of(name, value)
    return RECORD + 2 * #name + #value
end
-- `former` is what was kept of that name.
local function keep(name, record, former, lifetime)
    record[2] = charge_of(name, record[3]) + #record[7]
    call('HSET', KEYS[1], name, cmsgpack.pack(record))
    call('ZADD', KEYS[2], now + lifetime, name)
    call('HINCRBY', KEYS[3], 'record_bytes', record[2] - (former and former[2] or 0))
    count_taken(former, record)
end

-- Some of those whose time has come, and this one if it is of them.
local function forget_old(name)
    local function forget_one(old)
        local raw = call('HGET', KEYS[1], old)
        if raw then
            forget(old, cmsgpack.unpack(raw))
        else
            call('ZREM', KEYS[2], old)
        end
    end
    local ends = name and call('ZSCORE', KEYS[2], name)
    if ends and tonumber(ends) <= now then
        forget_one(name)
    end
    local old = call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, AT_ONCE)
    for _, each in ipairs(old) do
        forget_one(each)
    end
    return #old
end

local function record_of(name)
    local raw = call('HGET', KEYS[1], name)
    return raw and cmsgpack.unpack(raw)
end
-- Without those that were taken.
local function record_count()
    return call('HLEN', KEYS[1]) - (call('HGET', KEYS[3], 'taken_records') or 0)
end
local function record_bytes()
    return tonumber(call('HGET', KEYS[3], 'record_bytes') or 0)
end
