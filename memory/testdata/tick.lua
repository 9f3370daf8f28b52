-- Sets the clock, and removes the keys that have ended.
redis.call('HSET', 'clock', 's', ARGV[1], 'us', ARGV[2])
local flat = redis.call('HGETALL', 'ends')
for i = 1, #flat, 2 do
  if tonumber(flat[i + 1]) <= tonumber(ARGV[3]) then
    redis.call('DEL', flat[i])
    redis.call('HDEL', 'ends', flat[i])
  end
end
return 1
