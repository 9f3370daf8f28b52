-- Ends an intent, and invalidates the key as invalidate.lua does.
-- KEYS: value
-- ARGV: intent, channel that local tiers listen to, notice for them
-- Returns how many values and leases there were.
-- Safe to run twice.
redis.pcall('ZREM', base_of(KEYS[1]) .. ':until', ARGV[1])
return forget(KEYS[1], ARGV[2], ARGV[3])
