-- Removes an epoch, so that all entries with it are invalid, and notifies local tiers.
-- KEYS: of the epoch; for a tag, also of the epoch of all tags together; in one slot
-- ARGV: channel that local tiers listen to, notice for them
-- Returns how many epochs there were.
-- Safe to run twice.
local removed = redis.call('DEL', unpack(KEYS))
publish(ARGV[1], ARGV[2])
return removed
