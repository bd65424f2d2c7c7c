-- The stream's list, KEYS[4]: first what is pinned though retention has passed it by, then sequences that grow, mostly
-- by one: `h` says how many are missing from `n` on.
-- An entry: kind, sequence, payload bytes of the stream up to its end, when it came (ms), payload.
local list = KEYS[4]
local HEADER, HEADER_BYTES = '<BI6I6I6', 19

local function sequence_at(place)
    local _, sequence = struct.unpack(HEADER, call('LINDEX', list, place))
    return sequence
end

-- How many events there are behind the pinned ones.
local function count_kept(m)
    return m.q - m.n + 1 - (m.h or 0)
end

-- What was there up to that sequence is lost, or was never heard of.
local function raise_end(m, sequence)
    if sequence <= m.q then
        return
    end
    if count_kept(m) == 0 then
        m.n = sequence + 1
    else
        m.h = (m.h or 0) + sequence - m.q
    end
    m.q = sequence
end

-- The first place from `low` on and before `high` that has that sequence or a later one; `high` if there is none.
local function search(sequence, low, high)
    while low < high do
        local middle = math.floor((low + high) / 2)
        if sequence_at(middle) < sequence then
            low = middle + 1
        else
            high = middle
        end
    end
    return low
end

-- Where in the list the events from that sequence on begin, which is `n` or later.
local function place_from(m, sequence)
    local pinned = m.p or 0
    if not m.h then
        return pinned + sequence - m.n
    end
    return search(sequence, pinned, pinned + count_kept(m))
end

-- The place of a kept sequence in the list; nil if it is not kept.
local function place_of(m, sequence)
    if sequence > m.q then
        return nil
    end
    local pinned = m.p or 0
    local place, behind = nil, pinned
    if sequence < m.n then
        place = search(sequence, 0, pinned)
    elseif m.h then
        place, behind = place_from(m, sequence), pinned + count_kept(m)
    else
        return place_from(m, sequence)
    end
    return place < behind and sequence_at(place) == sequence and place or nil
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
    local is_last = count_kept(m) == 1
    local event = call('LINDEX', list, pinned)
    local kind, sequence = struct.unpack(HEADER, event)
    if is_pinned(m, kind, sequence) then
        m.p = pinned + 1
    else
        remove_at(pinned)
        forget(m, kind, sequence, #event)
    end
    if is_last then
        m.n = m.q + 1
        m.h = nil
    elseif m.h then
        m.n = sequence_at(m.p or 0)
        m.h = m.h - (m.n - sequence - 1)
        m.h = m.h > 0 and m.h or nil
    else
        m.n = m.n + 1
    end
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
    return m.p and sequence_at(0) or m.n
end

-- The kept events after that sequence.
local function read_events(m, after, most, most_bytes)
    local events = {}
    if most == 0 then
        return events
    end
    local place = after >= m.n and place_from(m, after + 1) or 0
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
