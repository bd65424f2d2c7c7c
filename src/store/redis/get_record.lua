#!lua flags=no-writes
-- use: time
-- KEYS: records, when they end. ARGV: name.
local raw = redis.call('HGET', KEYS[1], ARGV[1])
local ends = redis.call('ZSCORE', KEYS[2], ARGV[1])
if not raw or not ends or tonumber(ends) <= now then
    return { 'not_found' }
end
local record = cmsgpack.unpack(raw)
if record[5] == 1 then
    return { 'not_found' }
end
return { 'ok', record[1], record[3] }
