-- Appending, for both kinds of streams. ARGV from `first` on: two for each event, its payload, and what is special of it.
-- The bytes that the events need, the part of them that was set aside, and whether one is too large.
local events = {}
local function weigh(m, first)
    local need, reserved, is_too_large, keys = 0, 0, false, 0
    local is_counted = {}
    for i = first, last_argument, 2 do
        local payload, special = ARGV[i], ARGV[i + 1]
        local event = { payload = payload, kind = ORDINARY, number = 0 }
        if special ~= '' then
            local parts = cmsgpack.unpack(special)
            event.kind, event.number, event.key, event.progress = parts[1], parts[2], parts[3], parts[4]
        end
        local size = #payload + EVENT
        local reserve
        if event.kind == RESPONSE and m.ra and m.ra[event.number + 1] then
            local place = event.number + 1
            event.answers = place
            if m.ra[place] == 0 and not is_counted[place] then
                is_counted[place] = true
                reserve = m.rr[place]
            end
        end
        if #payload > largest_event and not (reserve and size <= reserve) then
            is_too_large = true
        end
        need = need + size
        if event.kind == QUESTION and event.key then
            keys = keys + #event.key
        end
        reserved = reserved + (reserve or 0)
        events[#events + 1] = event
    end
    return need, reserved, is_too_large, keys
end

-- Nil, or why not. The events come after the higher of the stream's end and `after`.
local function append_events(id, m, is_finish, after, first)
    local need, reserved, is_too_large, keys = weigh(m, first)
    if is_too_large then
        return 'too_large'
    end
    local is_final = reserved > 0 or is_finish
    if is_finish then
        reserved = m.v
    end
    if need + keys > reserved and not make_room(need + keys - reserved, is_final, nil, m) then
        return 'no_space'
    end
    m.v = m.v - reserved
    m.c = m.c + need
    m.l = m.l + keys
    charge(need + keys - reserved)
    raise_end(m, after)
    for _, event in ipairs(events) do
        m.q = m.q + 1
        m.o = m.o + #event.payload
        call('RPUSH', list, struct.pack(HEADER, event.kind, m.q, m.o, now) .. event.payload)
        if event.answers then
            m.ra[event.answers] = m.q
            take_letters(id, m, function(letter) return letter.w == 1 and letter.n == event.number end)
        end
        if event.kind == QUESTION then
            m.qs = m.qs or {}
            m.qs[#m.qs + 1] = { event.number, m.q, event.key or '', event.key and 1 or 0 }
            m.lq = math.max(m.lq or 0, event.number)
        end
        if event.progress then
            m.pr = math.max(m.pr or event.progress, event.progress)
        end
    end
    if m.B then
        m.B = nil
        trim_unpinned(m)
    end
    while count_kept(m) > 1 and (count_kept(m) > most_events or m.c > most_bytes) do
        trim_front(m)
    end
    wake(id, GROWTH)
    return nil
end
