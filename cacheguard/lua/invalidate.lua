-- Removes the value, kills the right of every running load to store one, and tells who waits to ask again, and local
-- tiers to forget the key.
-- KEYS: value, lease
-- ARGV: channel that local tiers listen to, notice for them
-- Returns 1 if there was a value, else 0.
-- Safe to run twice.
local lease, inboxes = read_lease(KEYS[2])
local removed = redis.call('DEL', KEYS[1])
redis.call('DEL', KEYS[2])
if lease.generation then
  wake(KEYS[2], inboxes, 'g' .. lease.generation)
end
redis.pcall('PUBLISH', ARGV[1], ARGV[2]) -- a user without the right to must still be able to invalidate
return removed
