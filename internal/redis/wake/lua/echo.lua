-- Publishes an echo, if this node is one that invalidations are made on.
-- KEYS: one that is not there, of the part of the keyspace that the echo is for
-- ARGV: channel of the process's inbox, message
-- Returns how many of that node's clients got it, or an error.
-- Safe to run twice.
redis.call('DEL', KEYS[1]) -- refused by a replica, and by a primary that may not write as it has lost its own
return redis.call('PUBLISH', ARGV[1], ARGV[2])
