-- Publishes a message to local tiers.
-- KEYS: any key, whose node publishes it
-- ARGV: channel that local tiers listen to, message
-- Returns how many of that node's clients got it, or an error.
-- Safe to run twice.
return redis.call('PUBLISH', ARGV[1], ARGV[2])
