-- Ends an intent, and invalidates the key as invalidate.lua does.
-- KEYS: intents of transactions; the leases and the values of all version slots
-- ARGV: intent, channel that local tiers listen to, notice for them
-- Returns how many values and leases there were.
-- Safe to run twice.
redis.pcall('ZREM', KEYS[1], ARGV[1])
return forget(ARGV[2], ARGV[3])
