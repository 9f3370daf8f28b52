-- Gives a cache a name of its own, unless it has one.
-- KEYS[1] the name
-- ARGV[1] a new one
-- Returns the name. Running twice does no harm.
redis.call('SET', KEYS[1], ARGV[1], 'NX')
return redis.call('GET', KEYS[1])
