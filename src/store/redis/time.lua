-- The store's time: microseconds since the epoch, and milliseconds.
local clock = redis.call('TIME')
local time_us = clock[1] * 1000000 + clock[2]
local now = math.floor(time_us / 1000)
