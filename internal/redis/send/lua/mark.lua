#!lua flags=allow-oom
-- Writes something in any case: whether or not the mark exists, and even when Redis is out of memory.
-- KEYS: the mark
-- ARGV: how long the mark stays, in ms
redis.call('HSET', KEYS[1], 'at', 0)
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
