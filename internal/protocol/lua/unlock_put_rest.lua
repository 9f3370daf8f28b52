-- The rest of unlock_put.lua.
local seat = tonumber(ARGV[7])
local status = finish({KEYS[13 + seat], KEYS[8 + seat], KEYS[7]}, {ARGV[4], ARGV[5], ARGV[6], unpack(ARGV, 8, 13)})
return {give_up(), status}
