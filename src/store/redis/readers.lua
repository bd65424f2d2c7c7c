-- Which connections follow which streams of the session: the reader_table, in the store. Longest attached first.
-- An entry: o(wner), c(onnection), s(tream), k (1: standalone), r (1: can return), t (1: took over), w (why it has to
-- leave), y (when to return, ms), f (from where it began to read), e (1: its cursor was of an earlier life).
local raw_readers = call('HGET', root, 'R')
local readers = raw_readers and cmsgpack.unpack(raw_readers) or {}
local TAKEN_OVER, OVER_BUDGET, ASKED = 0, 1, 2

local function is(entry, owner, connection)
    return entry.o == owner and entry.c == connection
end
local function find_reader(stream, owner, connection)
    for _, each in ipairs(readers) do
        if each.s == stream and is(each, owner, connection) then
            return each
        end
    end
    return nil
end
local function newest_reader(stream)
    for i = #readers, 1, -1 do
        if readers[i].s == stream then
            return readers[i]
        end
    end
    return nil
end
local function remove_readers(removed, condition)
    local left = {}
    for _, each in ipairs(readers) do
        if condition(each) then
            removed[#removed + 1] = each
        else
            left[#left + 1] = each
        end
    end
    readers = left
end
local function is_closable(each)
    return not each.w and each.r and not each.k
end

-- What the stream keeps of its readers, so that a mark or a page needs no look at all of them: who has begun to read
-- last, and who reads and need not leave.
local function note_table(id)
    local m = metas[id]
    if not m then
        return
    end
    local newest = newest_reader(id)
    m.nr = newest and newest.f and newest.o .. '#' .. newest.c or nil
    m.cu = nil
    for _, each in ipairs(readers) do
        if each.s == id and each.f and not each.w then
            m.cu = each.o .. '#' .. each.c
        end
    end
    changed[id] = true
end

local function keep_readers()
    if #readers > 0 then
        call('HSET', root, 'R', cmsgpack.pack(readers))
    else
        call('HDEL', root, 'R')
    end
end

local function reader_came(id, m)
    m.rc = m.rc + 1
    update_droppable(id, m)
end
local function reader_left(id)
    local m = meta(id)
    if not m then
        return
    end
    m.rc = m.rc - 1
    if m.rc == 0 then
        m.da = nil
    end
    update_droppable(id, m)
    note_table(id)
    wake(id, READER)
end
-- It did not leave by itself.
local function reader_removed(each)
    wake(each.s, DISMISSAL)
    reader_left(each.s)
end
local function reader_dismissed(each, why, retry)
    each.w = why
    each.y = retry
    if meta(each.s) then
        note_table(each.s)
    end
    wake(each.s, DISMISSAL)
end

local function is_known(m, owner, connection)
    return m.lr and m.lr[owner] and m.lr[owner] >= connection or false
end
-- Of many owners those are forgotten that have no reader here: `lives` may not be known for all.
local MOST_OWNERS = 16
local function note_known(m, owner, connection, alive)
    local kept = m.lr or {}
    if kept[owner] == nil then
        local count = 0
        for _ in pairs(kept) do
            count = count + 1
        end
        if count >= MOST_OWNERS and alive then
            for name in pairs(kept) do
                if not alive(name) then
                    kept[name] = nil
                end
            end
        end
    end
    kept[owner] = math.max(kept[owner] or 0, connection)
    m.lr = kept
end
