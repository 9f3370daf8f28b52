-- Gives a cache a name of its own, unless it has one.
-- KEYS[1] the name
-- ARGV[1] a new one
-- Returns the name, also from a Redis that is full. Running twice does no harm.
local name = redis.call('GET', KEYS[1])
if not name then
  redis.call('SET', KEYS[1], ARGV[1])
  name = ARGV[1]
end
return name
