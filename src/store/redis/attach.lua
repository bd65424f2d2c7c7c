#!lua
-- use: core time lives streams events readers
-- A connection follows a stream. ARGV: node, -, leases, whether they are sure, stream, what is asked.
local kept = call('HMGET', root, 'b', 'W', 'x', 'a', 'p', 'K')
if not enter(kept[1], kept[2]) or kept[3] then
    return { 'not_found' }
end
local id, ask = ARGV[5], cmsgpack.unpack(ARGV[6])
local m = find_stream(id, kept[4])
if not m then
    return { 'stream_gone' }
end
local known = find_reader(id, ask.o, ask.c)
if not known and is_known(m, ask.o, ask.c) then
    return { 'fenced' }
end
for _, each in ipairs(readers) do
    lives(each.o)
end
if is_unsure then
    return { 'who' }
end

local start, is_other_epoch, is_ahead = ask.sk and m.q or m.dd or 0, false, false
if ask.fe then
    is_other_epoch = ask.fe ~= m.e
    is_ahead = not is_other_epoch and ask.fs > m.q
    if not m.k and (is_other_epoch or is_ahead and (m.z or ask.fs - m.q > ask.we)) then
        return { 'bad_cursor' }
    end
    if not m.k and m.z and ask.fs >= m.q then
        advance_mark(id, m, ask.fs, ask.fs) -- or the client could not name it
        done()
        return { 'finished' }
    end
    is_other_epoch = is_other_epoch or is_ahead and m.k
    start = is_other_epoch and 0 or ask.fs
end

local is_new, waits = not known, false
local removed = {}
local function waits_for(each)
    return each.s == id and not is(each, ask.o, ask.c)
end
remove_readers(removed, function(each) return not is(each, ask.o, ask.c) and not lives(each.o) end)
if known then
    if not known.w and not known.f then
        if ask.ins then
            remove_readers(removed, function(each) return waits_for(each) and each.w end)
        end
        for _, each in ipairs(readers) do
            waits = waits or waits_for(each)
        end
    end
else
    local rival
    for _, each in ipairs(readers) do
        if each.s == id and not each.w then
            rival = each
            break
        end
    end
    local took_over, dismissed = false, {}
    if rival then
        took_over = not (ask.bro and is(rival, ask.bro, ask.brc))
        if m.k and took_over then
            local recent = {}
            for at in string.gmatch(kept[6] or '', '%S+') do
                if at + ask.tw > now then
                    recent[#recent + 1] = at
                end
            end
            if ask.cf or #recent >= ask.tm then
                for _, each in ipairs(removed) do
                    reader_removed(each)
                end
                if #removed > 0 then
                    keep_readers()
                end
                local told = done()
                told[1] = 'conflict'
                return told
            end
            recent[#recent + 1] = string.format('%.0f', now)
            call('HSET', root, 'K', table.concat(recent, ' '))
        end
        rival.w = TAKEN_OVER
        dismissed[1] = rival
    end
    local staying, oldest = 0, nil
    for _, each in ipairs(readers) do
        if not each.w then
            staying = staying + 1
            if not oldest and is_closable(each) then
                oldest = each
            end
        end
    end
    if oldest and staying + 1 > ((kept[5] or ask.pg) and ask.bp or ask.b) then
        dismissed[#dismissed + 1] = oldest
        oldest.w = OVER_BUDGET
    end
    if ask.pg and not kept[5] then
        call('HSET', root, 'p', 1)
    end
    if ask.ins then
        remove_readers(removed, waits_for)
    end
    for _, each in ipairs(readers) do
        waits = waits or waits_for(each)
    end
    known = { o = ask.o, c = ask.c, s = id, k = m.k, r = ask.r, t = took_over and 1 or nil }
    readers[#readers + 1] = known
    for _, each in ipairs(dismissed) do
        wake(each.s, DISMISSAL)
        if each.s ~= id and meta(each.s) then
            note_table(each.s)
        end
    end
    change(id)
    reader_came(id, m)
end
change(id)
for _, each in ipairs(removed) do
    reader_removed(each)
end
note_known(m, ask.o, ask.c, lives)

local is_first = not waits and not known.w and not known.f
if is_first then
    if is_ahead then
        -- The store has lost what the cursor has seen. What comes now must not have its names.
        if m.k then
            m.e = string.format('%.0f', time_us)
        else
            m.lt = m.lt or m.q
            raise_end(m, ask.fs)
        end
        wake(id, GROWTH)
    end
    known.f = start
    known.e = is_other_epoch and 1 or nil
    if ask.fe and not is_other_epoch then
        advance_mark(id, m, start, start)
    end
    m.da = 1
    m.dp = start
    -- Payload bytes up to there, as far as what is kept can tell.
    local place = start > 0 and start < m.q and place_of(m, start)
    if start == 0 then
        m.do_ = 0
    elseif start >= m.q then
        m.do_ = m.o
    elseif place then
        local _, _, offset = struct.unpack(HEADER, call('LINDEX', list, place))
        m.do_ = offset
    else
        local next_event = read_events(m, start, 1, 0)[1]
        m.do_ = m.o
        if next_event then
            local _, _, offset = struct.unpack(HEADER, next_event)
            m.do_ = offset - #next_event + HEADER_BYTES
        end
    end
    wake(id, READER)
end
keep_readers()
note_table(id)
call('HSET', root, 'u', now)

let_watch(ask.wn)
local info = not m.k and cmsgpack.unpack(call('HGET', root, 'i' .. id))[1] or ''
local events, questions = {}, {}
if waits or known.w and not known.f then
    start = start or 0
else
    start = known.f
    events = read_events(m, start, ask.le, ask.lb)
    if ask.qs and m.qs then
        local answered = {}
        for _, letter in ipairs(m.M and letters_of(id) or {}) do
            if letter.w == 0 then
                answered[letter.n] = true
            end
        end
        for _, question in ipairs(m.qs) do
            local place = place_of(m, question[2])
            if question[2] <= start and place and not answered[question[1]] then
                questions[#questions + 1] = string.sub(call('LINDEX', list, place), HEADER_BYTES + 1)
            end
        end
    end
end
return done(
    m.k and 1 or 0, info, waits and 1 or 0, known.t and 1 or 0, known.e and 1 or 0, start, events, state_of(m, false),
    known.w or -1, known.y or -1, questions)
