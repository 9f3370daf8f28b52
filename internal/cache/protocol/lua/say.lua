-- Publishes a message to local tiers.
-- KEYS: any key, whose node publishes it
-- ARGV: channel that local tiers listen to, message
-- Returns 1.
-- Safe to run twice.
publish(ARGV[1], ARGV[2])
return 1
