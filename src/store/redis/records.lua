-- Small records. KEYS: records, when they end, totals. A record: its revision, its charge, its value.
local call = redis.call
local RECORD, AT_ONCE = 160, 100

local function forget(name, charge)
    call('HDEL', KEYS[1], name)
    call('ZREM', KEYS[2], name)
    call('HINCRBY', KEYS[3], 'record_bytes', -charge)
end

-- Some of those whose time has come, and this one if it is of them.
local function forget_old(name)
    local function forget_one(old)
        local raw = call('HGET', KEYS[1], old)
        if raw then
            forget(old, cmsgpack.unpack(raw)[2])
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
local function record_bytes()
    return tonumber(call('HGET', KEYS[3], 'record_bytes') or 0)
end
