#!lua flags=allow-oom
-- use: core time streams events room
-- Drops what is older than the age limit. KEYS from 4 on are lists, whose streams are in ARGV from 3 on. Gives the
-- streams whose lists it would need beside those, and when to look again (0: when something finishes).
local kept = call('HMGET', root, 'b', 'W')
if not enter(kept[1], kept[2]) then
    return { 'gone' }
end
local lists = {}
for i = 4, #KEYS do
    lists[ARGV[i - 1]] = KEYS[i]
end
local missing, again = {}, nil
local function look_again(id, m, when)
    m.g = when
    changed[id] = true
    if when and (not again or when < again) then
        again = when
    end
end
for _, field in ipairs(call('HKEYS', root)) do
    local id = string.sub(field, 2)
    local m = string.sub(field, 1, 1) == 'm' and meta(id)
    if m and m.g then
        if m.g > now or not m.k and m.rc > 0 then -- still being read: look again later
            look_again(id, m, m.g > now and m.g or now + event_age)
        elseif not lists[id] then
            missing[#missing + 1] = id
        else
            list = lists[id]
            if m.k then
                local oldest
                while count_kept(m) > 0 do
                    local _, _, _, at = struct.unpack(HEADER, call('LINDEX', list, m.p or 0))
                    if at + event_age > now then
                        oldest = at
                        break
                    end
                    trim_front(m)
                end
                look_again(id, m, oldest and oldest + event_age)
            else
                while count_kept(m) > 0 do
                    trim_front(m)
                end
                trim_unpinned(m)
                if m.p then
                    look_again(id, m, now + event_age)
                else
                    drop_stream(id, most_keys)
                end
            end
        end
    end
end
if #missing > 0 then
    again = now
end
if again then
    call('HSET', root, 'g', again)
else
    call('HDEL', root, 'g')
end
return done(missing, again or 0, call('HGET', root, 'G') or '')
