-- Ends an update. Removes what a load may have stored if the intent was lost, and wakes those that wait for the writer.
-- KEYS: as begin_update.lua
-- ARGV: token, channel that local tiers listen to, notice for them
-- Returns 1.
-- Safe to run twice.
forget(ARGV[2], ARGV[3])
redis.call('HDEL', KEYS[1], 'writer:' .. ARGV[1], 'holder:' .. ARGV[1])
local left, inboxes = read_intent(KEYS[1], (now_ms()))
if left <= 0 then
  redis.call('DEL', KEYS[1])
  wake_readers(inboxes)
end
return 1
