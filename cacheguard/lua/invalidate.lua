-- Removes the value, kills the right of every running load to store one, and tells who waits to ask again.
-- KEYS: value, lease
-- Returns 1 if there was a value, else 0.
-- Safe to run twice.
local lease, inboxes = read_lease(KEYS[2])
local removed = redis.call('DEL', KEYS[1])
redis.call('DEL', KEYS[2])
if lease.generation then
  wake(KEYS[2], inboxes, 'g' .. lease.generation)
end
return removed
