-- Streams of the session: finding them, what they cost, dropping them.
-- KEYS[2] has the streams that may be dropped, oldest first; KEYS[3] the keys of calls whose streams are gone.
-- Which life of its streams this is: the session's beginning, as it is never made again. A stream that has lost events
-- begins another.
local function epoch_of_session()
    local kept = call('HMGET', root, 'e', 't')
    return kept[1] or kept[2]
end

local ORDINARY, QUESTION, RESPONSE = 0, 1, 2
local EVENT, KEY, LETTER = 64, 160, 96 -- bytes charged beside their texts

local function standalone_of()
    return { k = 1, e = epoch_of_session(), q = 0, o = 0, n = 1, c = 0, w = 0, v = 0, l = 0, rc = 0 }
end

-- The stream, the standalone one also before its first use; false if there is none.
local function find_stream(id, standalone)
    local m = meta(id)
    if not m and id == standalone then
        m = standalone_of()
        m.fresh = true
        metas[id] = m
    end
    return m
end

local function change(id)
    local m = metas[id]
    if m.fresh then
        m.fresh = nil
        m.or_ = call('HINCRBY', root, 'o', 1)
        count_stream(1)
    end
    changed[id] = true
    return m
end

local function all_charges(m)
    return m.w + m.c + m.v + m.l
end

local function is_pinned(m, kind, sequence)
    return kind ~= ORDINARY and (sequence > (m.dd or 0) or not (m.z or m.k))
end

local function update_droppable(id, m)
    if m.k or not m.z then
        return
    end
    local is_droppable = m.rc == 0 and (m.dd or 0) >= m.q
    if is_droppable and not m.D then
        call('ZADD', KEYS[2], m.or_, id)
        m.D = 1
    elseif m.D and not is_droppable then
        call('ZREM', KEYS[2], id)
        m.D = nil
    end
    changed[id] = true
end

-- Unfinished calls: by stream, who runs them.
local calls
local function running()
    if not calls then
        local raw = call('HGET', root, 'C')
        calls = raw and cmsgpack.unpack(raw) or {}
    end
    return calls
end
local function set_running(id, owner)
    running()[id] = owner
    if next(calls) then
        call('HSET', root, 'C', cmsgpack.pack(calls))
    else
        call('HDEL', root, 'C')
    end
end

-- Letters to the stream's call.
local function letters_of(id)
    local raw = call('HGET', root, 'l' .. id)
    return raw and cmsgpack.unpack(raw) or {}
end
local function letter_charge(letter)
    return letter.w == 2 and 0 or LETTER + #letter.b + #letter.k
end
local function keep_letters(id, letters)
    if #letters > 0 then
        call('HSET', root, 'l' .. id, cmsgpack.pack(letters))
    else
        call('HDEL', root, 'l' .. id)
    end
end
local function take_letters(id, m, condition)
    if not m.M then
        return
    end
    local left, taken = {}, 0
    for _, letter in ipairs(letters_of(id)) do
        if condition(letter) then
            taken = taken + letter_charge(letter)
        else
            left[#left + 1] = letter
        end
    end
    keep_letters(id, left)
    m.M = #left > 0 and 1 or nil
    m.l = m.l - taken
    charge(-taken)
end
local function take_questions(m, condition)
    if not m.qs then
        return
    end
    local left = {}
    for _, question in ipairs(m.qs) do
        if condition(question) then
            m.l = m.l - #question[3]
            charge(-#question[3])
        else
            left[#left + 1] = question
        end
    end
    m.qs = #left > 0 and left or nil
end

-- The call is over: nobody waits for letters, and it holds the session no more.
local function end_call(id, m)
    take_questions(m, function() return true end)
    take_letters(id, m, function() return true end)
    if not m.k then
        set_running(id, nil)
    end
end

local function spend_key(text, id, most)
    local raw = call('HGET', root, 'k' .. text)
    local entry = raw and cmsgpack.unpack(raw)
    if not entry or entry[2] ~= id then
        return
    end
    entry[4] = 1
    call('HSET', root, 'k' .. text, cmsgpack.pack(entry))
    call('ZADD', KEYS[3], entry[3], text)
    -- Only keys without a stream are counted: the others are as many as the streams.
    if call('ZCARD', KEYS[3]) > most then
        local oldest = call('ZPOPMIN', KEYS[3])[1]
        call('HDEL', root, 'k' .. oldest)
        charge(-#oldest - KEY)
    end
end

local function forget_label(label, id)
    local places = cmsgpack.unpack(call('HGET', root, 'q' .. label))
    local left = {}
    for i = 1, #places, 2 do
        if places[i] ~= id then
            left[#left + 1] = places[i]
            left[#left + 1] = places[i + 1]
        end
    end
    if #left > 0 then
        call('HSET', root, 'q' .. label, cmsgpack.pack(left))
    else
        call('HDEL', root, 'q' .. label)
    end
end

-- Its list is of a key that this script need not have: it is noted, and a script that has the key removes it. An open of it may come late: those that were dropped last are remembered.
local MOST_DROPPED = 16
local function drop_stream(id, most_keys)
    local m = meta(id)
    wake(id, ALL)
    end_call(id, m)
    charge(-all_charges(m))
    local raw = call('HGET', root, 'i' .. id)
    if raw then
        local info = cmsgpack.unpack(raw)
        local seen = {}
        for _, label in ipairs(info[2]) do
            if not seen[label] then
                seen[label] = true
                forget_label(label, id)
            end
        end
        if info[3] then
            spend_key(info[3], id, most_keys)
        end
    end
    call('HDEL', root, 'm' .. id, 'i' .. id)
    if m.D then
        call('ZREM', KEYS[2], id)
    end
    metas[id] = false
    changed[id] = nil
    local dropped = (call('HGET', root, 'd') or '') .. id .. ' '
    if select(2, string.gsub(dropped, ' ', '')) > MOST_DROPPED then
        dropped = string.match(dropped, ' (.*)')
    end
    call('HSET', root, 'd', dropped)
    call('HSET', root, 'G', (call('HGET', root, 'G') or '') .. id .. ' ')
    count_stream(-1)
end

-- When the session is to be looked at for the age of its streams: said once, by the first that will be old.
local must_look_at
local function age_at(id, m, when)
    m.g = when
    changed[id] = true
    local kept = call('HGET', root, 'g')
    if not kept or tonumber(kept) > when then
        call('HSET', root, 'g', when)
        must_look_at = when
    end
end
