-- Lets a reader begin at the place in the log: from now on, no earlier reader moves it.
-- KEYS[1] the hash of the place
-- ARGV[1] the reader's fence
-- Returns server, file, position and when the file was begun, each of them false if there is none, or nothing if a later reader has begun. Running twice does no harm.
local fence = redis.call('HGET', KEYS[1], 'fence')
if fence and tonumber(fence) > tonumber(ARGV[1]) then
	return false
end
redis.call('HSET', KEYS[1], 'fence', ARGV[1])
return redis.call('HMGET', KEYS[1], 'server', 'file', 'pos', 'born')
