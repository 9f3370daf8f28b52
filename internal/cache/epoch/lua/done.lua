-- Ends an intent, and then the epochs as revoke.lua does.
-- KEYS: epoch of the tag, epoch of all tags together, then those of the intents on the two, in one slot
-- ARGV: channel that local tiers listen to, notice for them, intent
-- Returns how many epochs there were.
-- Safe to run twice.
for i = 1, names do
  redis.pcall('ZREM', KEYS[names + i], KEYS[1] .. ' ' .. ARGV[3])
end
local removed = redis.call('DEL', unpack(KEYS, 1, names))
publish(ARGV[1], ARGV[2])
return removed
