-- Adds what an instance has counted to the counts of the fleet, and drops the keys that were asked for least.
-- KEYS[1] sorted set: how often each key was asked for in a period
-- ARGV    how long the set stays after this (ms), how many keys it may have, then a count and its key, again for each
-- Returns how many keys it dropped. If it runs twice, the counts of ten seconds of one instance count twice.
for i = 3, #ARGV, 2 do
	redis.call('ZADD', KEYS[1], 'INCR', ARGV[i], ARGV[i + 1])
end
local least = redis.call('ZREVRANGE', KEYS[1], ARGV[2], -1)
for _, key in ipairs(least) do
	redis.call('ZREM', KEYS[1], key)
end
redis.call('PEXPIRE', KEYS[1], ARGV[1]) -- the last command: see prelude.lua of package protocol
return #least
