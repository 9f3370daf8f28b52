-- Reads which keys the fleet was asked for most.
-- KEYS    sorted sets, one for each period
-- ARGV[1] the rank of the last key wanted, from 0
-- Returns a key and its count, again for each, from all sets. It changes nothing.
local all = {}
for _, set in ipairs(KEYS) do
	for _, word in ipairs(redis.call('ZREVRANGE', set, 0, ARGV[1], 'WITHSCORES')) do
		all[#all + 1] = word
	end
end
return all
