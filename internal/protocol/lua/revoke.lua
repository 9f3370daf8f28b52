-- Removes a version, so that all entries with its stamp are invalid, and notifies local tiers.
-- KEYS: version
-- ARGV: channel that local tiers listen to, notice for them
-- Returns 1 if there was a version, else 0.
-- Safe to run twice.
local removed = redis.call('DEL', KEYS[1])
redis.pcall('PUBLISH', ARGV[1], ARGV[2]) -- a user that may not publish must still be able to invalidate
return removed
