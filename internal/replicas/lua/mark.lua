#!lua flags=allow-oom
-- Writes something, whatever was written before, also when there is no memory for more.
-- KEYS: the mark
-- ARGV: how long it stays, in ms
redis.call('HSET', KEYS[1], 'at', 0)
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
