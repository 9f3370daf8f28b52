-- The rest of unlock_update.lua.
finish({unpack(KEYS, 7)}, {ARGV[4], ARGV[5], ARGV[6]})
return give_up()
