#!lua
-- use: core streams events room
-- A letter to a call. ARGV: node, limits, stream, kind, number, body.
local kept = call('HMGET', root, 'b', 'W')
if not enter(kept[1], kept[2]) then
    return { 'not_found' }
end
local id, kind, number, body = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
local m = meta(id)
if not m or m.k or m.z then
    return done()
end
local letters = m.M and letters_of(id) or {}
for _, each in ipairs(letters) do
    if each.w == kind and each.n == number then
        return done()
    end
end
local asked
if kind == 0 then
    for _, question in ipairs(m.qs or {}) do
        asked = asked or question[1] == number and question
    end
    if not asked then
        return done()
    end
elseif kind == 1 and m.ra[number + 1] ~= 0 then
    return done()
end
local letter = { w = kind, n = number, b = body, k = asked and asked[3] or '' }
-- It makes room in the end, because its call goes on or ends: it may use what is kept for answers.
if not make_room(letter_charge(letter), true) then
    return { 'no_space' }
end
m.l = m.l + letter_charge(letter)
charge(letter_charge(letter))
m.ml = (m.ml or 0) + 1
letter.o = m.ml
letters[#letters + 1] = letter
keep_letters(id, letters)
m.M = 1
changed[id] = true
wake(id, MAIL)
return done()
