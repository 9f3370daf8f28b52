-- The rest of unlock_put.lua.
local status = finish({unpack(KEYS, 7)}, {unpack(ARGV, 4, 13)})
return {give_up(), status}
