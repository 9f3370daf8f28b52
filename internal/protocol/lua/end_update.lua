-- Ends an update. Removes what a load may have stored if the intent was lost, and wakes those that wait for the writer.
-- KEYS: value, lease, intent
-- ARGV: token, channel that local tiers listen to, notice for them
-- Returns 1.
-- Safe to run twice.
forget(KEYS[1], ARGV[2], ARGV[3])
redis.call('HDEL', KEYS[3], 'writer:' .. ARGV[1], 'holder:' .. ARGV[1])
local left, inboxes = read_intent(KEYS[3], (now_ms()))
if left <= 0 then
  redis.call('DEL', KEYS[3])
  wake_readers(KEYS[1], inboxes)
end
return 1
