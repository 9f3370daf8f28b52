-- Ends an intent, and then the epochs, as revoke.lua does.
-- KEYS: epoch of the tag, epoch of all tags together, in one slot
-- ARGV: channel that local tiers listen to, notice for them, intent
-- Returns how many epochs there were.
-- Safe to run twice.
for _, key in ipairs(KEYS) do
  redis.pcall('ZREM', untils_of(key), KEYS[1] .. ' ' .. ARGV[3])
end
