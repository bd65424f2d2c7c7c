#!lua flags=allow-oom
-- use: time records
-- Forgets some of the records whose time has come, and says how many: there may be more.
local count = forget_old()
return { 'ok', record_bytes(), count }
