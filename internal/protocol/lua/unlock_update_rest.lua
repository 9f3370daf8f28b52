-- The rest of unlock_update.lua.
local seat = tonumber(ARGV[7])
finish({KEYS[13 + seat], KEYS[8 + seat], KEYS[7]}, {ARGV[4], ARGV[5], ARGV[6]})
return give_up()
