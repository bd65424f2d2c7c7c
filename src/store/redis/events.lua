-- The stream's list, KEYS[4]: first what is pinned though retention has passed it by, then consecutive sequences.
-- An entry: kind, sequence, payload bytes of the stream up to its end, when it came (ms), payload.
local list = KEYS[4]
local HEADER, HEADER_BYTES = '<BI6I6I6', 19

-- The place of a kept sequence in the list; nil if it is not kept.
local function place_of(m, sequence)
    local pinned = m.p or 0
    if sequence >= m.n then
        return sequence <= m.q and pinned + sequence - m.n or nil
    end
    local low, high = 0, pinned
    while low < high do
        local middle = math.floor((low + high) / 2)
        local _, found = struct.unpack(HEADER, call('LINDEX', list, middle))
        if found == sequence then
            return middle
        elseif found < sequence then
            low = middle + 1
        else
            high = middle
        end
    end
    return nil
end

local function remove_at(place)
    if place == 0 then
        call('LPOP', list)
    else
        call('LSET', list, place, '')
        call('LREM', list, 1, '')
    end
end

local function forget(m, kind, sequence, size)
    local freed = size - HEADER_BYTES + EVENT
    m.c = m.c - freed
    charge(-freed)
    -- The questions of a call are open until they are blank; those of nobody only while they are kept.
    if m.k and kind == QUESTION then
        take_questions(m, function(question) return question[2] == sequence end)
    end
end

local function trim_front(m)
    local pinned = m.p or 0
    local event = call('LINDEX', list, pinned)
    local kind, sequence = struct.unpack(HEADER, event)
    if is_pinned(m, kind, sequence) then
        m.p = pinned + 1
    else
        remove_at(pinned)
        forget(m, kind, sequence, #event)
    end
    m.n = m.n + 1
end

-- What retention had passed by, and nothing keeps any more.
local function trim_unpinned(m)
    local pinned = m.p or 0
    if pinned == 0 then
        return
    end
    local left = 0
    for _, event in ipairs(call('LRANGE', list, 0, pinned - 1)) do
        local kind, sequence = struct.unpack(HEADER, event)
        if is_pinned(m, kind, sequence) then
            left = left + 1
        else
            remove_at(left)
            forget(m, kind, sequence, #event)
        end
    end
    m.p = left > 0 and left or nil
end

-- A reader was given events up to `sent` and has them up to `delivered`.
local function advance_mark(id, m, sent, delivered)
    delivered = math.min(delivered, m.q)
    sent = math.min(math.max(sent, delivered), m.q)
    local is_changed = false
    if sent > (m.ds or 0) then
        m.ds = sent
        is_changed = true
    end
    if delivered > (m.dd or 0) then
        m.dd = delivered
        is_changed = true
        trim_unpinned(m)
    end
    if is_changed then
        change(id)
    end
    update_droppable(id, m)
end

local function first_kept(m)
    if m.p then
        local _, sequence = struct.unpack(HEADER, call('LINDEX', list, 0))
        return sequence
    end
    return m.n
end

-- The kept events after that sequence.
local function read_events(m, after, most, most_bytes)
    local events = {}
    if most == 0 then
        return events
    end
    local pinned = m.p or 0
    local place = pinned + math.max(0, after - m.n + 1)
    if after < m.n and pinned > 0 then
        place = 0
    end
    local size = 0
    while #events < most do
        local chunk = call('LRANGE', list, place, place + math.min(most - #events, 256) - 1)
        if #chunk == 0 then
            return events
        end
        for _, event in ipairs(chunk) do
            local _, sequence = struct.unpack(HEADER, event)
            if sequence > after then
                size = size + #event - HEADER_BYTES
                if #events > 0 and size > most_bytes then
                    return events
                end
                events[#events + 1] = event
            end
        end
        place = place + #chunk
    end
    return events
end

local function state_of(m, closed)
    return {
        m.e, m.q, m.o, first_kept(m), m.z and 1 or 0, closed and 1 or 0,
        m.da and 1 or 0, m.dp or 0, m.do_ or 0, m.ds or 0, m.dg or 0, m.dd or 0, m.nr or ''
    }
end
