-- Stores the place in the log where invalidation has arrived, unless a later reader has done so.
-- KEYS[1] the hash of the place
-- ARGV    the reader's fence, the server, the file, the position, when the file was begun
-- Returns 1 if it is stored. Running twice does no harm.
local fence = redis.call('HGET', KEYS[1], 'fence')
if fence and tonumber(fence) > tonumber(ARGV[1]) then
	return 0
end
redis.call('HSET', KEYS[1], 'fence', ARGV[1], 'server', ARGV[2], 'file', ARGV[3], 'pos', ARGV[4], 'born', ARGV[5])
return 1
