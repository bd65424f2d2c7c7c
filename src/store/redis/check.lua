#!lua
-- Which commands of the store's the user has no right to. KEYS: four that nobody uses; they are gone afterwards. ARGV:
-- a channel.
local probes = {
    { 'HSET', 'h', 'a', '1' }, { 'HGET', 'h', 'a' }, { 'HMGET', 'h', 'a' }, { 'HINCRBY', 'h', 'n', '1' },
    { 'HEXISTS', 'h', 'a' }, { 'HKEYS', 'h' }, { 'HLEN', 'h' }, { 'HDEL', 'h', 'a', 'n' },
    { 'RPUSH', 'l', 'a', 'b', 'c' }, { 'LINDEX', 'l', '0' }, { 'LSET', 'l', '0', 'x' }, { 'LREM', 'l', '1', 'x' },
    { 'LRANGE', 'l', '0', '-1' }, { 'LPOP', 'l' }, { 'DEL', 'l' }, { 'ZADD', 'z', '0', 'a' }, { 'ZCARD', 'z' },
    { 'ZSCORE', 'z', 'a' }, { 'ZRANGE', 'z', '0', '-1' }, { 'ZRANGEBYSCORE', 'z', '0', '1' },
    { 'ZRANGEBYLEX', 'z', '-', '+' }, { 'ZREMRANGEBYSCORE', 'z', '1', '2' }, { 'ZPOPMIN', 'z' }, { 'ZREM', 'z', 'a' },
    { 'SADD', 's', 'a' }, { 'SCARD', 's' }, { 'SISMEMBER', 's', 'a' }, { 'SMEMBERS', 's' }, { 'SREM', 's', 'a' },
    { 'EXISTS', 'h' }, { 'UNLINK', 'h' }, { 'TIME' },
}
local refused = {}
local function try(name, ...)
    local outcome = redis.pcall(name, ...)
    if type(outcome) == 'table' and outcome.err
        and (string.find(outcome.err, 'NOPERM', 1, true) or string.find(outcome.err, 'run this command', 1, true)) then
        refused[#refused + 1] = name
    end
end
for _, probe in ipairs(probes) do
    local key = probe[2] and KEYS[string.find('hlzs', probe[2], 1, true)]
    if key then
        try(probe[1], key, unpack(probe, 3))
    else
        try(probe[1])
    end
end
for _, key in ipairs(KEYS) do
    redis.pcall('UNLINK', key)
end
try('PUBLISH', ARGV[1], '')
return refused
