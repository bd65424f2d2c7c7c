-- The last is not of the script: it moves the time.
local last_argument = #ARGV - 1
