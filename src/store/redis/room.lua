-- Room within the limits, which ARGV[2] has: of the session exactly, of its principal and the store as the node knows
-- what is left of them.
local session_limit, session_reserve, user_room, user_reserve, total_room, total_reserve, most_events, most_bytes,
    largest_event, event_age, most_streams, most_keys = struct.unpack('<dddddddddddd', ARGV[2])

local function fits(need, is_final, freed)
    local grown = bytes - bytes_before
    return bytes + need <= session_limit + (is_final and session_reserve or 0) + freed
        and grown + need <= user_room + (is_final and user_reserve or 0) + freed
        and grown + need <= total_room + (is_final and total_reserve or 0) + freed
end

-- Whether dropping streams, and events of the one that is appended to, would be enough. Changes nothing.
local function could_make_room(need, is_final, spare, appending)
    if fits(need, is_final, 0) then
        return true
    end
    local freed = 0
    for _, id in ipairs(call('ZRANGE', KEYS[2], 0, -1)) do
        if id ~= spare then
            freed = freed + all_charges(meta(id))
            if fits(need, is_final, freed) then
                return true
            end
        end
    end
    if appending then
        local place = appending.p or 0
        while true do
            local event = call('LINDEX', KEYS[4], place)
            if not event then
                return false
            end
            local kind, sequence = struct.unpack('<BI6', event)
            if not is_pinned(appending, kind, sequence) then
                freed = freed + #event - HEADER_BYTES + EVENT
                if fits(need, is_final, freed) then
                    return true
                end
            end
            place = place + 1
        end
    end
    return false
end

local function oldest_droppable(spare)
    for _, id in ipairs(call('ZRANGE', KEYS[2], 0, 1)) do
        if id ~= spare then
            return id
        end
    end
    return nil
end

local function make_room(need, is_final, spare, appending)
    if fits(need, is_final, 0) then
        return true
    end
    if not could_make_room(need, is_final, spare, appending) then
        return false
    end
    while not fits(need, is_final, 0) do
        local old = oldest_droppable(spare)
        if old then
            drop_stream(old, most_keys)
        else
            trim_front(appending)
        end
    end
    return true
end
