#!lua flags=allow-oom
-- use: core streams events
-- Takes the payload out of a question. ARGV: node, stream, fence, sequence.
local kept = call('HMGET', root, 'b', 'W', 'a')
if not enter(kept[1], kept[2]) then
    return { 'not_found' }
end
local id, sequence = ARGV[2], tonumber(ARGV[4])
local m = find_stream(id, kept[3])
if not m then
    return { 'stream_gone' }
end
if (m.f or 0) ~= tonumber(ARGV[3]) then
    return { 'fenced' }
end
take_questions(m, function(question)
    if question[2] ~= sequence then
        return false
    end
    if question[4] == 0 then
        take_letters(id, m, function(letter) return letter.w == 0 and letter.n == question[1] end)
    end
    return true
end)
local place = place_of(m, sequence)
if place then
    local event = call('LINDEX', list, place)
    local _, found, offset, at = struct.unpack(HEADER, event)
    local freed = #event - HEADER_BYTES
    m.c = m.c - freed
    charge(-freed)
    call('LSET', list, place, struct.pack(HEADER, ORDINARY, found, offset, at))
    m.B = 1
end
change(id)
return done()
