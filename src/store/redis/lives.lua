-- Which owners live. ARGV[3] has until when (ms), as the node knows; it asks again with what the store says now
-- (ARGV[4] is then 1) if that is not enough to tell.
local leases = cmsgpack.unpack(ARGV[3])
local is_sure = ARGV[4] == '1'
local is_unsure = false

local function lives(owner)
    local lease_end = leases[owner]
    local alive = lease_end ~= nil and lease_end > now
    if not alive and not is_sure then
        is_unsure = true
    end
    return alive
end
